/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel hands out: ranges of addresses, and descriptors, which are ranges of one. It hands nothing out twice,
 * so what a new one covers is gone. A part of a range can be taken back: the object lives as long as any part of it
 * does. What was there before we looked is nobody's.
 */
#include <stdlib.h>

#include "lifetime/life.h"

/* [start, end) belongs to the object that began at `object`. */
struct lt_part {
	uint64_t start, end, object, since_ns;
	bool split; /* there may be others of the object */
};

/* The parts that a process has, of one type; by address, and none reaches into another. */
struct lt_ranges {
	RT_VEC(struct lt_part) parts;
};

static struct lt_ranges *ranges_of(struct rt_lifetime *lt, uint32_t pid, uint32_t type)
{
	bool made;
	uint64_t *index = rt_map_put(&lt->ranges_by_key, rt_key_make(pid, type), &made);
	struct lt_ranges *r;

	if (!index)
		return NULL;
	if (!made)
		return lt->ranges.data[*index];
	r = calloc(1, sizeof(*r));
	if (!r || !rt_vec_push(&lt->ranges, r)) {
		free(r);
		rt_map_remove(&lt->ranges_by_key, rt_key_make(pid, type), NULL);
		return NULL;
	}
	*index = lt->ranges.len - 1;
	return r;
}

void lt_ranges_free(struct rt_lifetime *lt)
{
	for (size_t i = 0; i < lt->ranges.len; i++) {
		rt_vec_deinit(&lt->ranges.data[i]->parts);
		free(lt->ranges.data[i]);
	}
	rt_vec_deinit(&lt->ranges);
	rt_map_deinit(&lt->ranges_by_key);
}

/* the first part that ends behind address */
static size_t first_behind(const struct lt_ranges *r, uint64_t address)
{
	size_t low = 0, high = r->parts.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->parts.data[mid].end > address)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static bool insert(struct lt_ranges *r, size_t at, struct lt_part part)
{
	if (!rt_vec_push(&r->parts, part))
		return false;
	memmove(&r->parts.data[at + 1], &r->parts.data[at], (r->parts.len - 1 - at) * sizeof(part));
	r->parts.data[at] = part;
	return true;
}

static void remove_part(struct lt_ranges *r, size_t at)
{
	r->parts.len--;
	memmove(&r->parts.data[at], &r->parts.data[at + 1], (r->parts.len - at) * sizeof(r->parts.data[0]));
}

/* Is a part of the object left? */
static bool has_part(const struct lt_ranges *r, uint64_t object)
{
	for (size_t i = 0; i < r->parts.len; i++) {
		if (r->parts.data[i].object == object)
			return true;
	}
	return false;
}

uint32_t lt_range_size(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	const uint64_t *index = rt_map_get(&lt->ranges_by_key, rt_key_make(inc->pid, inc->type));
	const struct lt_ranges *r = index ? lt->ranges.data[*index] : NULL;
	size_t at = r ? first_behind(r, inc->object) : 0;
	uint64_t size;

	if (!r || at >= r->parts.len || r->parts.data[at].object != inc->object)
		return 0;
	size = r->parts.data[at].end - inc->object;
	return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

static void end_object(struct rt_lifetime *lt, const struct lt_seen *seen, uint64_t object)
{
	struct rt_wire_event e = *seen->e;
	struct lt_seen end = *seen;
	const struct lt_inc *inc = lt_inc_find(lt, e.head.pid, seen->type, object);

	if (!inc || inc->life != LT_LIVE)
		return;
	e.object = object;
	e.head.op = RT_OP_FREE;
	end.e = &e;
	end.ev.op = RT_OP_FREE;
	end.ev.delta = 0;
	lt_life_operation(lt, &end);
}

/* [start, end) is nobody's from now on */
static void cut(struct rt_lifetime *lt, struct lt_ranges *r, const struct lt_seen *seen, uint64_t start, uint64_t end)
{
	for (size_t i = first_behind(r, start); i < r->parts.len && r->parts.data[i].start < end;) {
		struct lt_part part = r->parts.data[i];

		/* a call that took long, and is told late: this one came after it began */
		if (part.since_ns > seen->ev.time_ns) {
			i++;
			continue;
		}
		if (part.end > end && part.start < start) {
			part.split = true;
			r->parts.data[i] = part;
			r->parts.data[i].start = end;
			part.end = start;
			lt->nomem |= !insert(r, i, part);
			return;
		}
		if (part.end > end) {
			r->parts.data[i].start = end;
			return;
		}
		if (part.start < start) {
			r->parts.data[i++].end = start;
			continue;
		}
		remove_part(r, i);
		if (!part.split || !has_part(r, part.object))
			end_object(lt, seen, part.object);
	}
}

/* What is mapped over a part of one that is larger takes its place there: a reservation that is filled. */
static bool lies_within(const struct lt_ranges *r, uint64_t start, uint64_t end)
{
	size_t at = first_behind(r, start);
	const struct lt_part *p = at < r->parts.len ? &r->parts.data[at] : NULL;

	return p && p->start <= start && p->end >= end && (p->start < start || p->end > end);
}

/* Mappings are whole pages, whatever size was asked for. */
static uint64_t end_of(const struct rt_lifetime *lt, const struct lt_seen *seen)
{
	enum { PAGE = 4096 };
	bool pages = !(lt->types.data[seen->type].flags & RT_TYPE_DESCRIPTOR);
	uint64_t bytes = seen->sized ? seen->e->aux : 1, end = seen->e->object + bytes;

	if (end < bytes || end > UINT64_MAX - PAGE)
		return UINT64_MAX;
	return pages ? (end + PAGE - 1) & ~(uint64_t)(PAGE - 1) : end;
}

void lt_range_operation(struct rt_lifetime *lt, struct lt_seen *seen)
{
	const struct rt_wire_event *e = seen->e;
	struct lt_ranges *r = ranges_of(lt, e->head.pid, seen->type);
	uint64_t end = end_of(lt, seen);

	if (!r) {
		lt->nomem = true;
		return;
	}
	if (seen->ev.op == RT_OP_NEW && lies_within(r, e->object, end))
		return;
	cut(lt, r, seen, e->object, end);
	if (seen->ev.op != RT_OP_NEW)
		return;
	lt->nomem |= !insert(r, first_behind(r, e->object),
			     (struct lt_part){ e->object, end, e->object, e->head.time_ns, false });
	lt_life_operation(lt, seen);
}

/* The process before its exec; false: it did not come from one. */
static bool before_exec(uint32_t pid, uint32_t *ret)
{
	*ret = pid - (1u << RT_PID_BITS);
	return RT_GEN_OF(pid) != 0;
}

static void give_part(struct rt_lifetime *lt, uint32_t from, uint32_t to, uint32_t type, uint64_t object)
{
	struct lt_ranges *r = ranges_of(lt, from, type), *other;
	size_t at = r ? first_behind(r, object) : 0;
	struct lt_part part;

	if (!r || at >= r->parts.len || r->parts.data[at].object != object)
		return;
	part = r->parts.data[at];
	remove_part(r, at);
	other = ranges_of(lt, to, type);
	lt->nomem |= !other || !insert(other, first_behind(other, object), part);
}

void lt_range_goes_on(struct rt_lifetime *lt, uint32_t pid, uint64_t object)
{
	uint32_t old;

	if (!before_exec(pid, &old))
		return;
	for (uint32_t i = 0; i < lt->types.len; i++) {
		struct lt_inc *inc =
			lt->types.data[i].flags & RT_TYPE_DESCRIPTOR ? lt_inc_find(lt, old, i, object) : NULL;

		if (!inc || inc->life != LT_LIVE || lt_inc_find(lt, pid, i, object))
			continue;
		lt_index_remove(lt, inc);
		inc->pid = pid;
		lt->nomem |= !lt_index_put(lt, inc);
		give_part(lt, old, pid, i, object);
	}
}

void lt_range_execed(struct rt_lifetime *lt, uint32_t pid)
{
	struct lt_inc *inc;
	uint32_t at = 0, old;

	if (!before_exec(pid, &old))
		return;
	while ((inc = lt_row_newer(&lt->live, &at))) {
		if (inc->pid == old && (lt_inc_type(lt, inc)->flags & RT_TYPE_KERNEL))
			lt_life_drop(lt, inc);
	}
}
