/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the code of a process lies and how to unwind it, for an engine that
 * walks stacks by itself. A module's rows are compiled when the first process
 * that has points needs them, which takes milliseconds, and live in the engine
 * from then on.
 */
#include "base/log.h"
#include "dwarf/rows.h"
#include "session/internal.h"

struct list {
	RT_VEC(struct rt_engine_code) code;
	RT_VEC(struct rt_unwind_rows *) rows; /* of the modules that the engine is told of for the first time */
};

static void deinit(struct list *list)
{
	for (size_t i = 0; i < list->rows.len; i++)
		rt_unwind_rows_destroy(list->rows.data[i]);
	rt_vec_deinit(&list->rows);
	rt_vec_deinit(&list->code);
}

static struct rt_error *add(struct rt_session *s, struct rt_process *p, const struct rt_session_map *map,
			    struct list *list)
{
	struct rt_module *m = rt_session_module(s, map->module);
	struct rt_engine_code code = { .start = map->start, .end = map->end, .module = map->module };

	if (!m || !rt_session_map_bias(s, map, &code.bias))
		return NULL;
	if (!m->rows_told) {
		struct rt_unwind_rows *rows = NULL;

		RT_TRY(rt_unwind_rows_create(m->image, &rows));
		if (!rt_vec_push(&list->rows, rows)) {
			rt_unwind_rows_destroy(rows);
			return rt_error_nomem();
		}
		if (rows->limited)
			RT_TRY(rt_emit_loss(s, RT_LOSS_STACKMAP, rt_process_wire(p), 0,
					    "%s: stacks end in its last functions: it has more than %u unwind rows",
					    rt_module_basename(m), RT_UNWIND_ROWS_MAX));
		m->rows_told = true;
		code.rows = rows;
	}
	return rt_vec_push(&list->code, code) ? NULL : rt_error_nomem();
}

/* Whether anything will be armed in p. */
static bool has_points(const struct rt_session *s, const struct rt_process *p)
{
	for (size_t i = 0; i < p->maps.len; i++) {
		const struct rt_module *m = rt_session_module(s, p->maps.data[i].module);

		if (m && m->point_nr)
			return true;
	}
	return s->call_nr;
}

static uint64_t digest_of(const struct rt_process *p)
{
	uint64_t digest = p->maps.len + 1;

	for (size_t i = 0; i < p->maps.len; i++) {
		const struct rt_session_map *m = &p->maps.data[i];
		uint64_t words[4] = { m->start, m->end, m->offset, m->module };

		digest = m->executable ? rt_hash(digest, words, sizeof(words)) : digest;
	}
	return digest | 1;
}

/* The engine has lost, or never had, what it was told. */
static void forget_told(struct rt_session *s)
{
	struct rt_map_slot *slot;
	size_t pos = 0;

	s->code_epoch = s->engine->code_epoch;
	for (size_t i = 0; i < s->modules.len; i++)
		s->modules.data[i]->rows_told = false;
	while ((slot = rt_map_next(&s->processes, &pos)) != NULL)
		((struct rt_process *)(uintptr_t)slot->value)->code_told = 0;
}

struct rt_error *rt_session_tell_code(struct rt_session *s, struct rt_process *p)
{
	struct rt_error *err = NULL, *lost;
	struct list list = { 0 };
	const struct rt_arm where = {
		.pid = p->tgid, .wire_pid = rt_process_wire(p), .tid = rt_process_standing(p), .unfit = p->unfit
	};
	uint64_t digest = digest_of(p);

	if (s->code_epoch != s->engine->code_epoch)
		forget_told(s);
	if (!s->ops->code || digest == p->code_told || !has_points(s, p))
		return NULL;
	p->code_told = digest;
	for (size_t i = 0; i < p->maps.len && !err; i++) {
		if (p->maps.data[i].executable)
			err = add(s, p, &p->maps.data[i], &list);
	}
	if (!err)
		err = s->ops->code(s->engine, &where, list.code.data, list.code.len);
	deinit(&list);
	if (!err || err->code != RT_E_LIMIT)
		return err;
	lost = rt_emit_loss(s, RT_LOSS_STACKMAP, rt_process_wire(p), 0, "%s", err->message);
	rt_error_free(err);
	return lost;
}
