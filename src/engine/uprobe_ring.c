// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draining: events from their slots (wire/probe.h), stacks from the kernel's
 * ring buffer. Producers never wake anybody (a wake-up costs more than the
 * record), so the owner's timer asks; one call takes what was there when it
 * began, and so ends however fast producers are.
 */
#include <errno.h>
#include <sys/mman.h>

#include "engine/uprobe_priv.h"

#define BUSY (1u << 31)
#define DISCARD (1u << 30)
#define HEAD 8
/* Producers look at the reader's position for every event: move it now and then only. */
#define BATCH 64

struct rt_error *rt_ring_open(struct rt_uprobe_ring *ring, int map_fd)
{
	size_t page = sysconf(_SC_PAGESIZE), size = ring->size;
	void *consumer, *producer;

	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (consumer == MAP_FAILED)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot map the ring buffer");
	/* The data follow twice, so that a record which wraps lies in one piece. */
	producer = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, map_fd, page);
	if (producer == MAP_FAILED) {
		munmap(consumer, page);
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot map the ring buffer");
	}
	/* A child has no use for it, and copying its page tables would make every fork of ours slow. */
	(void)madvise(producer, page + 2 * size, MADV_DONTFORK);
	ring->consumer = consumer;
	ring->producer = producer;
	ring->data = (uint8_t *)producer + page;
	return NULL;
}

void rt_ring_close(struct rt_uprobe_ring *ring)
{
	size_t page = sysconf(_SC_PAGESIZE);

	if (!ring->consumer)
		return;
	munmap(ring->consumer, page);
	munmap(ring->producer, page + 2 * ring->size);
	ring->consumer = ring->producer = NULL;
}

static struct rt_error *damaged(size_t size)
{
	return rt_error_new(RT_E_INTERNAL, "engine uprobe: damaged record of %zu bytes in the ring", size);
}

/* Hands a stack on, in a copy that the sink may change (the kernel's ring is read-only). */
static struct rt_error *deliver(struct rt_uprobe *u, const void *bytes, size_t size, struct rt_event_sink *sink)
{
	struct rt_wire_head *head = (void *)u->ring.buffer;

	if (size > sizeof(u->ring.buffer) || !rt_record_valid(bytes, size))
		return damaged(size);
	memcpy(head, bytes, size);
	return sink->record(sink, head);
}

/* *ret_all: nothing that was begun is missing. */
static struct rt_error *drain_stacks(struct rt_uprobe *u, struct rt_event_sink *sink, bool *ret_all)
{
	struct rt_uprobe_ring *ring = &u->ring;
	uint64_t pos = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);
	uint64_t end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	struct rt_error *err = NULL;

	while (pos < end && !err) {
		uint8_t *at = ring->data + (pos & (ring->size - 1));
		uint32_t head = __atomic_load_n((uint32_t *)(void *)at, __ATOMIC_ACQUIRE);
		uint32_t size = head & ~(BUSY | DISCARD);

		if (head & BUSY)
			break;
		if (!(head & DISCARD))
			err = deliver(u, at + HEAD, size, sink);
		pos += RT_WIRE_ALIGN(size + HEAD);
	}
	__atomic_store_n(ring->consumer, pos, __ATOMIC_RELEASE);
	*ret_all = pos >= end;
	return err;
}

/* Slots taken before `end`, up to the first that is not filled yet. */
static struct rt_error *drain_events(struct rt_uprobe *u, uint64_t end, struct rt_event_sink *sink)
{
	struct rt_event_ring *counters = u->ring.counters;
	uint64_t pos = counters->read;
	struct rt_wire_event block[BATCH];
	struct rt_error *err = NULL;
	size_t n;

	do {
		for (n = 0; n < BATCH && pos < end && !err; n++, pos++) {
			struct rt_wire_event *e = &u->ring.slot[pos & (u->ring.slots - 1)];
			uint64_t *first = (void *)e;

			if (!__atomic_load_n(first, __ATOMIC_ACQUIRE))
				break;
			block[n] = *e;
			__atomic_store_n(first, 0, __ATOMIC_RELAXED);
			if (!rt_record_valid(&block[n], sizeof(block[n])) || block[n].head.kind != RT_WIRE_EVENT)
				err = damaged(block[n].head.size);
			else if (block[n].point <= u->last_point)
				u->records[block[n].point]++;
		}
		__atomic_store_n(&counters->read, pos, __ATOMIC_RELEASE);
		if (!err && n)
			err = rt_event_sink_events(sink, block, n);
	} while (n == BATCH && !err);
	return err;
}

struct rt_error *rt_ring_drain(struct rt_uprobe *u, struct rt_event_sink *sink)
{
	/* before the stacks are taken: those that these events name are all begun by now */
	uint64_t end = __atomic_load_n(&u->ring.counters->taken, __ATOMIC_ACQUIRE);
	bool all;

	RT_TRY(drain_stacks(u, sink, &all));
	return all ? drain_events(u, end, sink) : NULL;
}
