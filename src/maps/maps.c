/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each process keeps its MAP and UNMAP records as they came, ordered by start
 * address with a tail of new ones; an answer is the newest record that covers
 * the address and is not younger than the question. So records may come in any
 * order. A fork is a link to the parent at that time, not a copy: what the
 * parent's late records say counts for the child too.
 */
#include "maps/maps.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

#define RT_ANCESTORS_MAX 256 /* forks that are followed upward */
#define RT_TAIL_MAX 32       /* unordered records that a question walks over */

struct change {
	uint64_t start, end; /* [start, end) */
	uint64_t reach;      /* largest end up to here, for the ordered part */
	uint64_t time_ns;
	uint64_t order; /* of arrival: decides between equal times */
	struct rt_foff offset;
	uint32_t module;
	bool unmap;
};

/* A process id may be used again: each life begins with a fork or exec. */
struct birth {
	uint64_t time_ns;
	uint32_t parent; /* RT_PID_MAKE() */
	bool forked;
};

struct process {
	RT_VEC(struct change) changes;
	RT_VEC(struct birth) births; /* by time */
	size_t ordered;              /* this many changes are ordered by start */
};

struct state {
	RT_VEC(struct process) processes;
	struct rt_map by_pid; /* pid -> index of processes + 1 */
	uint64_t order;
};

/* What a question looks at is put in order on the way, hence the step between. */
struct rt_maps {
	struct state *state;
};

struct rt_error *rt_maps_create(struct rt_maps **ret)
{
	struct rt_maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return rt_error_nomem();
	maps->state = calloc(1, sizeof(*maps->state));
	if (!maps->state) {
		free(maps);
		return rt_error_nomem();
	}
	*ret = maps;
	return NULL;
}

void rt_maps_destroy(struct rt_maps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < maps->state->processes.len; i++) {
		rt_vec_deinit(&maps->state->processes.data[i].changes);
		rt_vec_deinit(&maps->state->processes.data[i].births);
	}
	rt_vec_deinit(&maps->state->processes);
	rt_map_deinit(&maps->state->by_pid);
	free(maps->state);
	free(maps);
}

static struct process *get_process(struct state *state, uint32_t pid)
{
	uint64_t *slot = rt_map_get(&state->by_pid, rt_key_make(pid, 0));

	return slot ? &state->processes.data[*slot - 1] : NULL;
}

/* NULL: out of memory */
static struct process *make_process(struct state *state, uint32_t pid)
{
	struct process *process = get_process(state, pid);
	uint64_t *slot;

	if (process)
		return process;
	process = rt_vec_add(&state->processes);
	slot = process ? rt_map_put(&state->by_pid, rt_key_make(pid, 0), NULL) : NULL;
	if (!slot) {
		state->processes.len -= process != NULL;
		return NULL;
	}
	*slot = state->processes.len;
	return process;
}

static struct rt_error *add_birth(struct state *state, uint32_t pid, struct birth birth)
{
	struct process *process = make_process(state, pid);
	size_t i;

	if (!process || !rt_vec_push(&process->births, birth))
		return rt_error_nomem();
	for (i = process->births.len - 1; i > 0 && process->births.data[i - 1].time_ns > birth.time_ns; i--)
		process->births.data[i] = process->births.data[i - 1];
	process->births.data[i] = birth;
	return NULL;
}

static struct rt_error *add_change(struct state *state, const struct rt_wire_map *map, bool unmap)
{
	struct process *process;

	if (map->start >= map->end)
		return NULL;
	process = make_process(state, map->head.pid);
	if (!process || !rt_vec_push(&process->changes, ((struct change){ .start = map->start,
									  .end = map->end,
									  .time_ns = map->head.time_ns,
									  .order = state->order++,
									  .offset = { map->file_offset },
									  .module = map->module,
									  .unmap = unmap })))
		return rt_error_nomem();
	return NULL;
}

struct rt_error *rt_maps_record(struct rt_maps *maps, const struct rt_wire_head *record)
{
	const struct rt_wire_task *task = (const struct rt_wire_task *)(const void *)record;

	switch (record->kind) {
	case RT_WIRE_MAP:
	case RT_WIRE_UNMAP:
		return add_change(maps->state, (const struct rt_wire_map *)(const void *)record,
				  record->kind == RT_WIRE_UNMAP);
	case RT_WIRE_FORK:
		return add_birth(maps->state, task->other,
				 (struct birth){ .time_ns = record->time_ns, .parent = record->pid, .forked = true });
	case RT_WIRE_EXEC:
		return add_birth(maps->state, record->pid, (struct birth){ .time_ns = record->time_ns });
	default:
		return NULL;
	}
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void put_in_order(struct process *p)
{
	size_t tail = p->changes.len - p->ordered;
	uint64_t reach = 0;

	/* a tail that grows with the rest keeps the cost of ordering even over many records */
	if (tail <= RT_TAIL_MAX || tail < p->ordered / 8)
		return;
	qsort(p->changes.data, p->changes.len, sizeof(*p->changes.data), compare_changes);
	for (size_t i = 0; i < p->changes.len; i++) {
		if (p->changes.data[i].end > reach)
			reach = p->changes.data[i].end;
		p->changes.data[i].reach = reach;
	}
	p->ordered = p->changes.len;
}

struct lookup {
	uint64_t addr, time_ns;
	uint64_t since, until;      /* life of the process: [since, until) */
	const struct change *found; /* newest one not younger than time_ns */
	const struct change *later; /* oldest MAP younger than time_ns */
};

static void consider(struct lookup *l, const struct change *c)
{
	if (l->addr < c->start || l->addr >= c->end || c->time_ns < l->since || c->time_ns >= l->until)
		return;
	if (c->time_ns <= l->time_ns) {
		if (!l->found || c->time_ns > l->found->time_ns ||
		    (c->time_ns == l->found->time_ns && c->order > l->found->order))
			l->found = c;
	} else if (!c->unmap && (!l->later || c->time_ns < l->later->time_ns)) {
		l->later = c;
	}
}

/* Looks up one process alone; *ret_birth: the life that was looked at, or NULL. */
static void look(struct process *p, struct lookup *l, const struct birth **ret_birth)
{
	size_t lo = 0, hi, at;

	*ret_birth = NULL;
	l->since = 0;
	l->until = UINT64_MAX;
	for (at = 0; at < p->births.len && p->births.data[at].time_ns <= l->time_ns; at++)
		;
	if (p->births.len) {
		size_t life = at ? at - 1 : 0;

		*ret_birth = &p->births.data[life];
		/* clocks differ a little: the first life has whatever is older than it */
		if (life)
			l->since = p->births.data[life].time_ns;
		if (life + 1 < p->births.len)
			l->until = p->births.data[life + 1].time_ns;
	}
	put_in_order(p);
	hi = p->ordered;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->changes.data[mid].start <= l->addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i > 0 && p->changes.data[i - 1].reach > l->addr; i--)
		consider(l, &p->changes.data[i - 1]);
	for (size_t i = p->ordered; i < p->changes.len; i++)
		consider(l, &p->changes.data[i]);
}

/* The record that decides about addr; strict: only what was there by then. */
static const struct change *find(const struct rt_maps *maps, uint32_t pid, uint64_t time_ns, uint64_t addr, bool strict)
{
	const struct change *later = NULL;

	for (unsigned i = 0; i < RT_ANCESTORS_MAX; i++) {
		struct process *p = get_process(maps->state, pid);
		struct lookup l = { .addr = addr, .time_ns = time_ns };
		const struct birth *birth;

		if (!p)
			break;
		look(p, &l, &birth);
		if (l.found)
			return l.found->unmap ? NULL : l.found;
		if (!later)
			later = l.later;
		if (!birth || !birth->forked)
			break;
		pid = birth->parent;
		if (birth->time_ns < time_ns)
			time_ns = birth->time_ns;
	}
	return strict ? NULL : later;
}

bool rt_maps_find(const struct rt_maps *maps, uint32_t pid, uint64_t time_ns, struct rt_vaddr addr,
		  struct rt_mapping *ret)
{
	const struct change *c = find(maps, pid, time_ns, addr.v, false);

	if (!c)
		return false;
	*ret = (struct rt_mapping){ .start = c->start, .end = c->end, .offset = c->offset, .module = c->module };
	return true;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct edges {
	RT_VEC(uint64_t) v;
};

/* Every address where the answer may change, in pid and its ancestors. */
static bool collect_edges(const struct rt_maps *maps, uint32_t pid, uint64_t time_ns, struct edges *ret)
{
	for (unsigned i = 0; i < RT_ANCESTORS_MAX; i++) {
		struct process *p = get_process(maps->state, pid);
		const struct birth *birth = NULL;

		if (!p)
			break;
		for (size_t k = 0; k < p->changes.len; k++) {
			if (!rt_vec_push(&ret->v, p->changes.data[k].start) ||
			    !rt_vec_push(&ret->v, p->changes.data[k].end))
				return false;
		}
		for (size_t k = 0; k < p->births.len && (!k || p->births.data[k].time_ns <= time_ns); k++)
			birth = &p->births.data[k];
		if (!birth || !birth->forked)
			break;
		pid = birth->parent;
		if (birth->time_ns < time_ns)
			time_ns = birth->time_ns;
	}
	return true;
}

void rt_maps_each(const struct rt_maps *maps, uint32_t pid, uint64_t time_ns,
		  bool (*visit)(const struct rt_mapping *mapping, void *arg), void *arg)
{
	const struct change *last = NULL;
	struct rt_mapping piece = { 0 };
	struct edges edges = { 0 };

	if (collect_edges(maps, pid, time_ns, &edges) && edges.v.len)
		qsort(edges.v.data, edges.v.len, sizeof(*edges.v.data), compare_u64);
	for (size_t i = 0; i < edges.v.len; i++) {
		uint64_t at = edges.v.data[i];
		const struct change *c;

		if (i && at == edges.v.data[i - 1])
			continue;
		c = find(maps, pid, time_ns, at, true);
		if (c == last)
			continue;
		if (last) {
			piece.end = at;
			last = NULL;
			if (!visit(&piece, arg))
				break;
		}
		if (c)
			piece = (struct rt_mapping){ .start = at,
						     .offset = { c->offset.v + (at - c->start) },
						     .module = c->module };
		last = c;
	}
	rt_vec_deinit(&edges.v);
}
