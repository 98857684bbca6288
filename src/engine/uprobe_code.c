// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the code of a process lies, and how to unwind it: entries of two tables
 * that the BPF programs search (wire/probe.h, wire/unwind.h). Rows are there once
 * for a module and stay; the mappings of a process are given up with it, or when
 * they change, and used again. A hit that still reads them then sees that the
 * process has other code by now.
 */
#include <string.h>

#include "base/log.h"
#include "engine/uprobe_priv.h"

_Static_assert(RT_UPROBE_MAPPINGS <= 1u << RT_CODE_FIRST_BITS, "mappings");
_Static_assert(RT_UPROBE_ROWS <= 1u << RT_ROW_BITS, "rows");

/* The module's rows, made known when it is new; NULL: out of memory. *ret_full: they do not fit. */
static const struct rt_uprobe_module *get_module(struct rt_uprobe_code *c, const struct rt_engine_code *of,
						 bool *ret_full)
{
	bool fresh = false;
	uint64_t *known = rt_map_put(&c->by_module, rt_key_make(of->module, 0), &fresh);
	struct rt_uprobe_module *m;

	*ret_full = false;
	if (!known)
		return NULL;
	if (!fresh)
		return &c->modules.data[*known];
	*known = c->modules.len;
	m = rt_vec_add(&c->modules);
	if (!m) {
		(void)rt_map_remove(&c->by_module, rt_key_make(of->module, 0), NULL);
		return NULL;
	}
	if (!of->rows)
		return m;
	*ret_full = of->rows->count > RT_UPROBE_ROWS - c->row_end;
	if (!*ret_full && of->rows->count) {
		memcpy(&c->rows[c->row_end], of->rows->row, of->rows->count * sizeof(c->rows[0]));
		m->base = of->rows->base.v;
		m->row = c->row_end;
		m->row_nr = (uint32_t)of->rows->count;
		c->row_end += m->row_nr;
	}
	return m;
}

/* What the table is to say; err: RT_E_LIMIT for modules whose rows do not fit. */
static struct rt_error *describe(struct rt_uprobe_code *c, const struct rt_engine_code *list, size_t count,
				 struct rt_probe_code *ret)
{
	struct rt_error *err = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct rt_uprobe_module *m;
		bool full = false;

		m = get_module(c, &list[i], &full);
		if (!m) {
			rt_error_free(err);
			return rt_error_nomem();
		}
		if (full && !err)
			err = rt_error_new(RT_E_LIMIT,
					   "stacks end in %zu bytes of code: its %zu unwind rows do not fit",
					   (size_t)(list[i].end - list[i].start), list[i].rows->count);
		ret[i] =
			(struct rt_probe_code){ list[i].start, list[i].end, list[i].bias + m->base, m->row, m->row_nr };
	}
	return err;
}

/* An unused space of at least so many entries: behind those ever used, or given up. 0: none. */
static uint32_t get_space(struct rt_uprobe_code *c, uint32_t count)
{
	struct rt_uprobe_space *s;

	if (!c->spaces.len && !rt_vec_add(&c->spaces))
		return 0;
	for (size_t i = 1; i < c->spaces.len; i++) {
		s = &c->spaces.data[i];
		if (!s->users && s->count >= count && s->count <= 2 * count)
			return (uint32_t)i;
	}
	if (count > RT_UPROBE_MAPPINGS - c->mapping_end)
		return 0;
	s = rt_vec_add(&c->spaces);
	if (!s)
		return 0;
	s->first = c->mapping_end;
	s->count = count;
	c->mapping_end += count;
	return (uint32_t)(c->spaces.len - 1);
}

static void leave(struct rt_uprobe_code *c, uint32_t space)
{
	if (space && !--c->spaces.data[space].users)
		(void)rt_map_remove(&c->known, c->spaces.data[space].key, NULL);
}

/* Lets a process use a space whose entries are written. */
static void enter(struct rt_uprobe *u, uint32_t entry, uint32_t space, uint64_t code)
{
	uint32_t old = u->processes[entry].space;

	u->processes[entry].space = space;
	/* before the old entries can be written again */
	__atomic_store_n(&u->process_table[entry].code, code, __ATOMIC_SEQ_CST);
	leave(&u->code, old);
}

static struct rt_error *publish(struct rt_uprobe *u, uint32_t entry, const struct rt_probe_code *table, size_t count)
{
	struct rt_uprobe_code *c = &u->code;
	size_t size = count * sizeof(table[0]);
	struct rt_key key = rt_key_make(rt_hash(1, table, size), rt_hash(2, table, size));
	bool fresh = false;
	uint64_t *known = rt_map_put(&c->known, key, &fresh);
	uint32_t space;

	if (!known)
		return rt_error_nomem();
	if (fresh) {
		space = get_space(c, (uint32_t)count);
		if (!space) {
			(void)rt_map_remove(&c->known, key, NULL);
			return rt_error_new(RT_E_LIMIT,
					    "stacks of process %u are walked by frame pointers: its %zu mappings "
					    "do not fit",
					    u->processes[entry].pid, count);
		}
		c->spaces.data[space].key = key;
		c->spaces.data[space].users = 0;
		memcpy(&c->mappings[c->spaces.data[space].first], table, size);
		*known = (uint64_t)++c->generation << 32 | space;
	}
	space = (uint32_t)*known;
	c->spaces.data[space].users++;
	enter(u, entry, space, RT_CODE_MAKE(*known >> 32, c->spaces.data[space].first, count));
	return NULL;
}

struct rt_error *rt_uprobe_code(struct rt_uprobe *u, uint32_t entry, const struct rt_engine_code *list, size_t count)
{
	_cleanup_free_ struct rt_probe_code *table = calloc(count + 1, sizeof(*table));
	struct rt_error *err, *other;

	if (!table)
		return rt_error_nomem();
	if (!count || count >= 1u << RT_CODE_COUNT_BITS) {
		enter(u, entry, 0, 0);
		return count ? rt_error_new(RT_E_LIMIT,
					    "stacks of process %u are walked by frame pointers: it has %zu "
					    "mappings of code",
					    u->processes[entry].pid, count)
			     : NULL;
	}
	err = describe(&u->code, list, count, table);
	if (err && err->code != RT_E_LIMIT)
		return err;
	other = publish(u, entry, table, count);
	if (other) {
		enter(u, entry, 0, 0);
		rt_error_free(err);
		return other;
	}
	return err;
}

void rt_uprobe_code_forget(struct rt_uprobe *u, uint32_t entry)
{
	enter(u, entry, 0, 0);
}

void rt_uprobe_code_deinit(struct rt_uprobe_code *c)
{
	rt_map_deinit(&c->by_module);
	rt_vec_deinit(&c->modules);
	rt_map_deinit(&c->known);
	rt_vec_deinit(&c->spaces);
}
