/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points -> engine: arms in a stopped process what its modules have, and the
 * dynamic linker's hook, where the process stops whenever modules come or go.
 */
#include <elf.h>
#include <inttypes.h>

#include "base/log.h"
#include "engine/point_probe.h"
#include "session/internal.h"

#ifndef AT_BASE
#define AT_BASE 7
#endif
#define R_STATE_OFFSET 24 /* of r_state in struct r_debug, 64 bit */
#define R_CONSISTENT 0
#define HASTE_NS 5000000 /* in which most programs have loaded their libraries */

struct failures {
	struct rt_session *s;
	const struct rt_process *p;
	const struct rt_module *m;
	struct rt_error *err;
};

static void failed(const struct rt_arm_failure *failure, void *arg)
{
	struct failures *f = arg;
	/* a point has its own name */
	const char *name = failure->point ? "" : f->m ? rt_module_basename(f->m) : "system calls";

	if (f->err)
		return;
	f->s->armed_failed++;
	f->err = rt_emit_loss(f->s, RT_LOSS_UNARMED, rt_process_wire(f->p), failure->point, "%s%s%s%s%s", name,
			      *name ? ": " : "", failure->why ? failure->why : "",
			      failure->why && failure->errnum ? ": " : "",
			      failure->errnum ? strerror(failure->errnum) : "");
}

/* What the point would have told counts nothing. */
static void not_missed(const struct rt_arm_failure *failure, void *arg)
{
	const struct failures *f = arg;

	rt_log_debug("session", "%s: %s", rt_module_basename(f->m), failure->why ? failure->why : "");
}

/* The executable mapping by which a module is armed. */
static const struct rt_session_map *code_of(const struct rt_process *p, uint32_t module)
{
	for (size_t i = 0; i < p->maps.len; i++) {
		if (p->maps.data[i].module == module && p->maps.data[i].executable)
			return &p->maps.data[i];
	}
	return NULL;
}

static void file_path(const struct rt_session *s, const struct rt_process *p, const struct rt_session_map *map,
		      char *path, size_t size)
{
	const struct rt_module *m = rt_session_module(s, map->module);

	snprintf(path, size, "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, p->tgid, map->start, map->end);
	if (access(path, F_OK) == 0)
		return;
	if (m->id == p->main_module)
		snprintf(path, size, "/proc/%u/exe", p->tgid);
	else
		snprintf(path, size, "/proc/%u/root%s", p->tgid, m->path);
}

/* Does the process still live? It may be killed at any time, and then nothing is lost. */
static bool is_alive(const struct rt_process *p)
{
	char state = rt_proc_state(p->tgid);

	return state && state != 'Z' && state != 'X';
}

/* What of a module is to be armed. */
enum part { POINTS, STOP, UNWINDERS, FREED };

static struct rt_error *arm_module(struct rt_session *s, struct rt_process *p, const struct rt_module *m,
				   enum part part, struct rt_elfaddr stop_at)
{
	const struct rt_session_map *map = code_of(p, m->id);
	const uint32_t first = part == FREED ? m->freed : m->point, nr = part == FREED ? m->freed_nr : m->point_nr;
	_cleanup_free_ const struct rt_point **points = calloc(nr + 1, sizeof(points[0]));
	_cleanup_free_ uint32_t *tids = s->attaching ? calloc(p->threads.len + 1, sizeof(*tids)) : NULL;
	struct failures failures = { s, p, m, NULL };
	char path[4300];
	struct rt_arm arm = { .pid = p->tgid,
			      .wire_pid = rt_process_wire(p),
			      .tid = rt_process_standing(p),
			      .unfit = p->unfit,
			      .path = path,
			      .points = points,
			      .point_count = part == POINTS || part == FREED ? nr : 0,
			      .unwinders = m->unwinders.list.data,
			      .unwinder_count = part == UNWINDERS ? m->unwinders.list.len : 0,
			      .stop_at = stop_at,
			      .threads = tids,
			      .thread_count = tids ? p->threads.len : 0 };
	struct rt_error *err;

	if (!points || (s->attaching && !tids))
		return rt_error_nomem();
	if (!map || !rt_session_map_bias(s, map, &arm.bias))
		return NULL;
	if (stop_at.v && !rt_image_offset(m->image, stop_at, &arm.stop_offset))
		arm.stop_at.v = 0;
	for (size_t i = 0; i < arm.point_count; i++)
		points[i] = &s->points.data[first + i];
	for (size_t i = 0; i < arm.thread_count; i++)
		tids[i] = p->threads.data[i]->tid;
	file_path(s, p, map, path, sizeof(path));
	err = s->ops->extend(s->engine, &arm, part == FREED ? not_missed : failed, &failures);
	if (!err) {
		s->armed_points += arm.point_count;
		p->stop_armed |= arm.stop_at.v != 0;
		return failures.err;
	}
	rt_error_free(failures.err);
	if (!is_alive(p)) {
		rt_error_free(err);
		return NULL;
	}
	/* this process alone; where it is the program itself, nothing has run yet */
	if (err->code == RT_E_UNSUPPORTED && (s->root_running || p->tgid != s->root)) {
		p->foreign = s->untraced = true;
		failures.err = rt_emit_loss(s, RT_LOSS_UNTRACED, rt_process_wire(p), 0, "%s", err->message);
		rt_error_free(err);
		return failures.err;
	}
	/* nothing works at all: better now, before the program has run, than an empty report later */
	if (!s->armed_points && arm.point_count)
		return err;
	failures.err = rt_emit_loss(s, RT_LOSS_UNARMED, rt_process_wire(p), 0, "%s in process %u: %s",
				    rt_module_basename(m), p->tgid, err->message);
	rt_error_free(err);
	return failures.err;
}

/* Where the dynamic linker says that modules came or went; v = 0: a static program, or a linker without the hook. */
static struct rt_elfaddr find_hook(struct rt_session *s, struct rt_process *p)
{
	uint64_t base = rt_proc_auxv(p->tgid, AT_BASE), bias;
	const struct rt_session_map *map = NULL;
	const struct rt_symtab *symtab;
	const struct rt_symbol *hook, *debug;
	struct rt_error *err;

	/* a program that is the dynamic linker itself (ld.so ./prog) has no base */
	for (size_t i = 0; i < p->maps.len && !map; i++) {
		const struct rt_session_map *at = &p->maps.data[i];

		if (!at->executable || !rt_session_map_bias(s, at, &bias))
			continue;
		if (base ? bias == base : at->module == p->main_module)
			map = at;
	}
	if (!map)
		return (struct rt_elfaddr){ 0 };
	err = rt_module_symtab(rt_session_module(s, map->module), &symtab);
	if (err) {
		rt_log_debug("session", "dynamic linker: %s", err->message);
		rt_error_free(err);
		return (struct rt_elfaddr){ 0 };
	}
	hook = rt_symtab_find(symtab, "_dl_debug_state");
	if (!hook || (!base && !hook->dynamic))
		return (struct rt_elfaddr){ 0 };
	p->loader = map->module;
	debug = rt_symtab_find(symtab, "_r_debug");
	if (debug && rt_session_map_bias(s, map, &bias))
		p->debug_state = debug->addr.v + bias + R_STATE_OFFSET;
	return hook->addr;
}

/* The dynamic linker is in the middle of its work: what is mapped is not all. */
static bool is_loading(const struct rt_process *p, bool at_exec)
{
	uint32_t state;

	if (!p->stop_armed || p->attached)
		return false;
	if (at_exec)
		return true;
	if (!p->debug_state || rt_proc_read(p->tgid, p->debug_state, &state, sizeof(state)) != sizeof(state))
		return false;
	return state != R_CONSISTENT;
}

/* System calls belong to no module: a process is watched once. */
static struct rt_error *arm_calls(struct rt_session *s, struct rt_process *p)
{
	_cleanup_free_ const struct rt_point **points = NULL;
	struct failures failures = { s, p, NULL, NULL };
	struct rt_arm arm = {
		.pid = p->tgid, .wire_pid = rt_process_wire(p), .tid = rt_process_standing(p), .point_count = s->call_nr
	};

	if (!s->call_nr || p->calls_armed || p->foreign)
		return NULL;
	p->calls_armed = true;
	arm.points = points = calloc(s->call_nr, sizeof(points[0]));
	if (!points)
		return rt_error_nomem();
	for (size_t i = 0; i < s->call_nr; i++)
		points[i] = &s->points.data[s->call + i];
	RT_TRY(s->ops->extend(s->engine, &arm, failed, &failures));
	s->armed_points += arm.point_count;
	return failures.err;
}

struct rt_error *rt_session_arm_stop(struct rt_session *s, struct rt_process *p, const struct rt_module *m,
				     struct rt_elfaddr at)
{
	return arm_module(s, p, m, STOP, at);
}

/* Whether any return is waited for in p. */
static bool waits_for_returns(const struct rt_session *s, const struct rt_process *p)
{
	for (size_t i = 0; i < p->armed.len; i++) {
		const struct rt_module *m = rt_session_module(s, p->armed.data[i]);

		for (uint32_t k = 0; k < m->point_nr; k++)
			if (rt_point_at_return(&s->points.data[m->point + k]))
				return true;
	}
	return false;
}

/* The type of the first point of p that tells of what is over when it is freed; 0: there is none. */
static uint32_t type_in_blocks(const struct rt_session *s, const struct rt_process *p)
{
	for (size_t i = 0; i < p->armed.len; i++) {
		const struct rt_module *m = rt_session_module(s, p->armed.data[i]);

		for (uint32_t k = 0; k < m->point_nr; k++) {
			const struct rt_point *point = &s->points.data[m->point + k];

			if (point->stored || point->filled || point->owned)
				return point->type;
		}
	}
	return 0;
}

/* Where slots are known, what is freed with them in it is of interest; and who frees an object itself. */
static struct rt_error *arm_freed(struct rt_session *s, struct rt_process *p)
{
	uint32_t type = p->foreign || p->freed_armed ? 0 : type_in_blocks(s, p);

	for (size_t i = 0; type && i < p->maps.len && !p->freed_armed; i++) {
		struct rt_module *m = rt_session_module(s, p->maps.data[i].module);

		if (!p->maps.data[i].executable)
			continue;
		if (!m->freed_planned)
			RT_TRY(rt_session_plan_freed(s, m, type));
		if (!m->freed_nr)
			continue;
		p->freed_armed = true;
		RT_TRY(arm_module(s, p, m, FREED, (struct rt_elfaddr){ 0 }));
	}
	return NULL;
}

static bool is_hooked(const struct rt_process *p, uint32_t module)
{
	for (size_t i = 0; i < p->hooked.len; i++)
		if (p->hooked.data[i] == module)
			return true;
	return false;
}

/* All places where stacks are unwound, on which returns may be waited for. */
static struct rt_error *arm_unwinders(struct rt_session *s, struct rt_process *p)
{
	if (p->foreign || !waits_for_returns(s, p))
		return NULL;
	for (size_t i = 0; i < p->maps.len; i++) {
		struct rt_module *m = rt_session_module(s, p->maps.data[i].module);
		const struct rt_symtab *symtab;

		if (!p->maps.data[i].executable || is_hooked(p, m->id))
			continue;
		if (!rt_vec_push(&p->hooked, m->id))
			return rt_error_nomem();
		if (!m->unwinders_known) {
			m->unwinders_known = true;
			RT_TRY(rt_module_symtab(m, &symtab));
			RT_TRY(rt_unwinders_find(m->image, symtab, s->ops->room, &m->unwinders));
		}
		if (m->unwinders.list.len)
			RT_TRY(arm_module(s, p, m, UNWINDERS, (struct rt_elfaddr){ 0 }));
	}
	return NULL;
}

struct rt_error *rt_session_arm(struct rt_session *s, struct rt_process *p)
{
	RT_TRY(rt_session_tell_code(s, p));
	RT_TRY(arm_calls(s, p));
	for (size_t i = 0; i < p->maps.len; i++) {
		const struct rt_module *m = rt_session_module(s, p->maps.data[i].module);

		if (p->foreign || !m->point_nr || rt_process_has_armed(p, m->id))
			continue;
		if (!rt_vec_push(&p->armed, m->id))
			return rt_error_nomem();
		if (p->main_module)
			rt_session_module(s, p->main_module)->watched = true;
		/* an engine that comes in by this has not heard of them */
		rt_vec_clear(&p->hooked);
		RT_TRY(arm_module(s, p, m, POINTS, (struct rt_elfaddr){ 0 }));
	}
	RT_TRY(arm_freed(s, p));
	/* arming may have brought in an engine that knows nothing yet */
	if (s->code_epoch != s->engine->code_epoch)
		RT_TRY(rt_session_tell_code(s, p));
	RT_TRY(arm_unwinders(s, p));
	return rt_session_arm_exit(s, p);
}

/* A forked child: what its parent had, under its own pid. */
struct rt_error *rt_session_arm_child(struct rt_session *s, struct rt_process *p)
{
	if (p->foreign || p->bystander)
		return NULL;
	if (p->loader) {
		struct rt_elfaddr hook = find_hook(s, p);

		if (hook.v)
			RT_TRY(arm_module(s, p, rt_session_module(s, p->loader), STOP, hook));
	}
	return p->loaded ? rt_session_arm(s, p) : NULL;
}

static struct rt_error *first_look(struct rt_session *s, struct rt_process *p)
{
	const struct rt_module *m = rt_session_module(s, p->main_module);
	struct rt_elfaddr hook;

	if (m && (!m->image->is_64 || m->image->machine != RT_MACHINE_X86_64)) {
		p->foreign = true;
		return rt_emit_loss(s, RT_LOSS_UNTRACED, rt_process_wire(p), 0,
				    "process %u (%s) is not traced: not an x86-64 program", p->tgid,
				    rt_module_basename(m));
	}
	RT_TRY(rt_session_examine(s, p));
	if (p->foreign)
		return NULL;
	RT_TRY(rt_session_find_bystander(s, p));
	if (p->bystander)
		return NULL;
	hook = find_hook(s, p);
	return hook.v ? arm_module(s, p, rt_session_module(s, p->loader), STOP, hook) : NULL;
}

struct rt_error *rt_session_look(struct rt_session *s, struct rt_process *p)
{
	bool first = !p->looked;

	p->looked = true;
	if (p->foreign || p->bystander || p->left)
		return NULL;
	RT_TRY(rt_session_drain(s));
	RT_TRY(rt_session_sync(s, p));
	if (first)
		RT_TRY(first_look(s, p));
	if (p->foreign || p->bystander)
		return NULL;
	if (!p->loaded) {
		if (is_loading(p, first)) {
			s->haste_ns = rt_now_ns() + HASTE_NS;
			return NULL;
		}
		p->loaded = true;
		s->haste_ns = 0;
		RT_TRY(rt_session_plan(s, p));
		if (p->tgid == s->root && !p->gen)
			RT_TRY(rt_session_check_missing(s, p));
	} else {
		RT_TRY(rt_session_plan(s, p));
	}
	RT_TRY(rt_session_arm(s, p));
	s->root_running |= p->tgid == s->root;
	return NULL;
}
