/* SPDX-License-Identifier: GPL-2.0-only */
/* The census of one process: its live objects as the owner knows them, its stopped threads as roots. */
#include <dirent.h>

#include "base/log.h"
#include "base/text.h"
#include "engine/census.h"
#include "session/internal.h"

struct gather {
	RT_VEC(struct rt_census_object) objects;
	bool failed;
};

static bool take(const struct rt_live *live, void *arg)
{
	struct gather *g = arg;
	struct rt_census_object *o;

	/* no pointer means a descriptor */
	if (live->type_flags & RT_TYPE_DESCRIPTOR)
		return true;
	o = rt_vec_add(&g->objects);
	if (!o) {
		g->failed = true;
		return false;
	}
	o->address = live->object;
	o->size = live->object_size;
	o->counter_offset = live->counter_offset;
	o->counter_size = live->counter_size;
	o->range = live->type_flags & RT_TYPE_KERNEL;
	return true;
}

/* Then there are no objects. Those of a module that is gone by now are there still. */
static bool had_no_points(const struct rt_session *s, const struct rt_process *p)
{
	const struct rt_module *program = rt_session_module(s, p->main_module);

	return program && !program->watched && !p->calls_armed;
}

struct rt_error *rt_session_census(struct rt_session *s, struct rt_process *p)
{
	struct rt_census_options options = { 0 };
	RT_VEC(uint64_t) stacks = { 0 };
	RT_VEC(int) tids = { 0 };
	struct gather g = { 0 };
	struct rt_error *err = NULL;

	/* a vfork child looks at its parent's memory */
	if (had_no_points(s, p) || s->options.no_census || !s->hooks.live || p->shares_mm || p->foreign)
		return NULL;
	RT_TRY(rt_session_drain(s));
	s->hooks.live(s->hooks.arg, rt_process_wire(p), take, &g);
	for (size_t i = 0; i < p->threads.len && !g.failed && !err; i++) {
		const struct rt_thread *t = p->threads.data[i];

		if (g.objects.len && t->stopped && rt_stands_inside(s, p, t))
			err = rt_emit_task(s, RT_WIRE_MARK, rt_process_wire(p), t->tid, 0, RT_MARK_INSIDE);
		if (t->stopped && (!rt_vec_push(&tids, (int)t->tid) || !rt_vec_push(&stacks, rt_exit_stack(s, p, t))))
			g.failed = true;
	}
	options.tids = tids.data;
	options.tid_count = tids.len;
	options.stack_from = stacks.data;
	if (g.failed && !err)
		err = rt_error_nomem();
	else if (g.objects.len && !err)
		err = rt_census(p->tgid, rt_process_wire(p), rt_now_ns(), g.objects.data, g.objects.len, &options,
				s->hooks.sink);
	rt_vec_deinit(&g.objects);
	rt_vec_deinit(&tids);
	rt_vec_deinit(&stacks);
	return err;
}

/* The kernel has closed those that are closed on exec, and the program has not run yet: what is there lives on. */
struct rt_error *rt_session_tell_open(struct rt_session *s, const struct rt_process *p)
{
	enum { DESCRIPTOR_BIAS = 1 }; /* as in probe/call.c */
	struct rt_wire_held held = { .head = { .size = sizeof(held), .kind = RT_WIRE_HELD }, .where = RT_HOLDER_EXEC };
	const struct dirent *entry;
	struct rt_error *err = NULL;
	DIR *dir;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/fd", p->tgid);
	dir = opendir(path);
	if (!dir)
		return NULL; /* killed; or not ours to look into: then nothing is said of them */
	while (!err && (entry = readdir(dir)) != NULL) {
		if (!rt_parse_u64(entry->d_name, strlen(entry->d_name), 10, &held.object))
			continue;
		held.object += DESCRIPTOR_BIAS;
		err = rt_emit(s, &held.head, rt_process_wire(p), 0);
	}
	closedir(dir);
	if (err)
		return err;
	return rt_emit_task(s, RT_WIRE_MARK, rt_process_wire(p), p->tgid, 0, RT_MARK_EXECED);
}
