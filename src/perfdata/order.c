/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A heap of records that wait, by time, then by their number in the file. What is in the file itself is kept as a
 * place there; only what was unpacked from compressed data is copied. A file without rounds (or with one that
 * never ends) must not fill the memory: beyond a limit the earlier half goes out.
 */
#include <string.h>

#include "base/vec.h"
#include "perfdata/reading.h"

enum { WAITING_BYTES_MAX = 128 * 1024 * 1024 };

struct waiting {
	uint64_t time_ns, number, offset;
	const uint8_t *data;
	uint32_t size;
	bool owned;
};

struct rt_perf_order {
	struct rt_perf_reader *reader;
	RT_VEC(struct waiting) heap;
	size_t copied;      /* bytes of the owned ones */
	uint64_t number;    /* of the next record */
	uint64_t limit_ns;  /* everything up to it may go */
	uint64_t latest_ns; /* of what was read */
	uint64_t round_ns;  /* latest_ns when the last round ended */
	size_t surplus;     /* as many go, whatever their time is */
	bool ended;         /* nothing more to read: everything may go */
	bool has_round;     /* goes out behind what it allows */
	struct rt_perf_record round;
	uint8_t *current; /* copy of the record that was given out */
};

struct rt_error *rt_perf_order_create(struct rt_perf_reader *reader, struct rt_perf_order **ret)
{
	struct rt_perf_order *o = calloc(1, sizeof(*o));

	if (!o)
		return rt_error_nomem();
	o->reader = reader;
	*ret = o;
	return NULL;
}

static void free_copy(const struct waiting *w)
{
	if (w->owned)
		free((void *)(uintptr_t)w->data);
}

void rt_perf_order_destroy(struct rt_perf_order *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->heap.len; i++)
		free_copy(&o->heap.data[i]);
	rt_vec_deinit(&o->heap);
	free(o->current);
	free(o);
}

static bool before(const struct waiting *a, const struct waiting *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static struct rt_error *push(struct rt_perf_order *o, struct waiting w)
{
	struct waiting *heap;
	size_t at = o->heap.len;

	if (!rt_vec_push(&o->heap, w))
		return rt_error_nomem();
	heap = o->heap.data;
	for (; at && before(&w, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = w;
	return NULL;
}

static struct waiting pop(struct rt_perf_order *o)
{
	struct waiting *heap = o->heap.data, top = heap[0], last = heap[--o->heap.len];
	size_t at = 0, len = o->heap.len;

	for (size_t child = 1; child < len; child = 2 * at + 1) {
		if (child + 1 < len && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return top;
}

static struct rt_error *keep(struct rt_perf_order *o, const struct rt_perf_record *record)
{
	struct waiting w = { .time_ns = record->id.time_ns, .number = o->number++, .offset = record->offset };
	struct rt_error *err;

	w.size = (uint32_t)record->bytes.size;
	w.data = record->bytes.data;
	w.owned = !rt_perf_reader_lasting(o->reader, record->bytes);
	if (w.owned) {
		uint8_t *copy = malloc(w.size);

		if (!copy)
			return rt_error_nomem();
		memcpy(copy, record->bytes.data, w.size);
		w.data = copy;
	}
	err = push(o, w);
	if (err) {
		free_copy(&w);
		return err;
	}
	if (w.owned)
		o->copied += w.size;
	if (w.time_ns > o->latest_ns)
		o->latest_ns = w.time_ns;
	if (o->copied + o->heap.len * sizeof(w) > WAITING_BYTES_MAX)
		o->surplus = o->heap.len / 2;
	return NULL;
}

static struct rt_error *give(struct rt_perf_order *o, struct rt_perf_record *ret)
{
	struct waiting w = pop(o);
	struct rt_perf_record record;

	free(o->current);
	o->current = NULL;
	if (w.owned) {
		o->current = (uint8_t *)(uintptr_t)w.data;
		o->copied -= w.size;
	}
	RT_TRY(rt_perf_reader_decode(o->reader, rt_bytes_make(w.data, w.size), &record));
	record.offset = w.offset;
	*ret = record;
	return NULL;
}

/* Whether the earliest of the waiting may go. */
static bool may_go(struct rt_perf_order *o)
{
	if (!o->heap.len)
		return false;
	if (o->surplus) {
		o->surplus--;
		return true;
	}
	return o->ended || (o->limit_ns && o->heap.data[0].time_ns <= o->limit_ns);
}

/* The round ended: whatever comes from now on is later than all that was there one round ago. */
static void end_round(struct rt_perf_order *o, const struct rt_perf_record *record)
{
	o->limit_ns = o->round_ns;
	o->round_ns = o->latest_ns;
	o->round = *record;
	o->has_round = true;
}

struct rt_error *rt_perf_order_next(struct rt_perf_order *o, struct rt_perf_record *ret, bool *ret_more)
{
	struct rt_perf_record record;

	for (;;) {
		bool more;

		if (may_go(o)) {
			*ret_more = true;
			return give(o, ret);
		}
		if (o->has_round) {
			o->has_round = false;
			*ret = o->round;
			*ret_more = true;
			return NULL;
		}
		if (o->ended)
			break;
		RT_TRY(rt_perf_reader_next(o->reader, &record, &more));
		if (!more) {
			o->ended = true;
		} else if (record.type == RT_PERF_FINISHED_ROUND) {
			end_round(o, &record);
		} else if (record.type < RT_PERF_USER_FIRST && record.id.has_time && record.id.time_ns) {
			RT_TRY(keep(o, &record));
		} else {
			*ret = record;
			*ret_more = true;
			return NULL;
		}
	}
	*ret_more = false;
	return NULL;
}
