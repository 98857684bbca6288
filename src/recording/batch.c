/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/batch.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(RT_BATCH_MAX - 1 <= INT16_MAX, "turns fit");

void rt_batch_clear(struct rt_batch *batch)
{
	rt_vec_clear(&batch->events);
	rt_vec_clear(&batch->turns);
}

void rt_batch_deinit(struct rt_batch *batch)
{
	rt_vec_deinit(&batch->events);
	rt_vec_deinit(&batch->turns);
}

static void number(uint16_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++)
		order[i] = (uint16_t)i;
}

/* Sorts order by the keys that it points to; equal ones stay as they are. Only bytes that differ are looked at. */
static void sort(struct rt_batch *b, uint16_t *order, size_t n)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= b->keys[i] ^ b->keys[0];
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t start[256] = { 0 }, sum = 0;

		if (!(differ >> shift & 0xff))
			continue;
		for (size_t i = 0; i < n; i++)
			start[b->keys[i] >> shift & 0xff]++;
		for (size_t i = 0; i < 256; i++) {
			size_t count = start[i];

			start[i] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			b->spare[start[b->keys[order[i]] >> shift & 0xff]++] = order[i];
		memcpy(order, b->spare, n * sizeof(*order));
	}
}

/* Sorts order by a member of the event that names_[i] is, for each event i. */
#define SORT_BY(b, names_, member) \
	do { \
		for (size_t i_ = 0; i_ < (b)->events.len; i_++) \
			(b)->keys[i_] = (b)->events.data[(names_)[i_]].member; \
		sort(b, (b)->order, (b)->events.len); \
	} while (0)

/*
 * site[i] becomes an event at whose place in the file i goes: i itself, or where one thread does several things at the
 * same time, the first of them. So perf, which keeps the file's order then, shows them in theirs.
 */
static void choose_sites(struct rt_batch *b, size_t n, uint16_t *site)
{
	const struct rt_wire_event *events = b->events.data;

	number(b->order, n);
	number(site, n);
	SORT_BY(b, site, head.pid);
	SORT_BY(b, site, head.tid);
	for (size_t i = 1; i < n; i++) {
		const struct rt_wire_head *before = &events[b->order[i - 1]].head, *h = &events[b->order[i]].head;

		if (h->time_ns == before->time_ns && h->tid == before->tid && h->pid == before->pid)
			site[b->order[i]] = site[b->order[i - 1]];
	}
}

/* rank becomes the places in the file by time; those of the same time by place. */
static void by_time(struct rt_batch *b, size_t n, const uint16_t *event)
{
	for (size_t i = 0; i < n; i++)
		b->keys[i] = b->events.data[event ? event[i] : i].head.time_ns;
	number(b->rank, n);
	sort(b, b->rank, n);
}

static void turn_round(uint16_t *order, size_t from, size_t to)
{
	while (from + 1 < to) {
		uint16_t first = order[from];

		order[from++] = order[--to];
		order[to] = first;
	}
}

static bool together(const struct rt_batch *b, uint16_t i, uint16_t k, const uint16_t *site)
{
	const struct rt_wire_event *a = &b->events.data[site[i]], *c = &b->events.data[site[k]];

	return a->stack == c->stack && a->point == c->point && a->head.tid == c->head.tid && a->head.pid == c->head.pid;
}

/*
 * Every other group goes backwards in time: perf puts a sample into its list from where it put the one before, and so
 * needs not go back over the whole batch between two groups. What happened at the same time stays as it is.
 */
static void alternate(struct rt_batch *b, size_t n, const uint16_t *site)
{
	bool backwards = false;

	for (size_t from = 0, to; from < n; from = to, backwards = !backwards) {
		for (to = from + 1; to < n && together(b, b->order[from], b->order[to], site); to++)
			;
		if (!backwards)
			continue;
		turn_round(b->order, from, to);
		for (size_t i = from, end; i < to; i = end) {
			for (end = i + 1; end < to && site[b->order[end]] == site[b->order[i]]; end++)
				;
			turn_round(b->order, i, end);
		}
	}
}

void rt_batch_to_file(struct rt_batch *b)
{
	size_t n = b->events.len;

	/* threads are in order after this */
	choose_sites(b, n, b->rank);
	SORT_BY(b, b->rank, point);
	SORT_BY(b, b->rank, stack);
	SORT_BY(b, b->rank, head.pid);
	alternate(b, n, b->rank);
	by_time(b, n, b->order);
	for (size_t i = 0; i < n; i++)
		b->turn[b->rank[i]] = (int16_t)(b->order[b->rank[i]] - (int)i);
}

bool rt_batch_to_stream(struct rt_batch *b)
{
	size_t n = b->events.len;

	by_time(b, n, NULL);
	memset(b->spare, 0, n * sizeof(*b->spare));
	for (size_t i = 0; i < n; i++) {
		int at = (int)i + b->turns.data[b->rank[i]];

		if (at < 0 || (size_t)at >= n || b->spare[at]) {
			memcpy(b->order, b->rank, n * sizeof(*b->order));
			return false;
		}
		b->spare[at] = 1;
		b->order[at] = b->rank[i];
	}
	return true;
}
