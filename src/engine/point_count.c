// SPDX-License-Identifier: GPL-2.0-only
#include "engine/point_count.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

void rt_point_count_add(struct rt_point_count *count, const struct rt_probe_count *part)
{
	struct rt_probe_count *sum = &count->sum;

	sum->hits += part->hits;
	sum->unmet += part->unmet;
	sum->passed += part->passed;
	sum->ring += part->ring;
	sum->busy += part->busy;
	sum->faults += part->faults;
	sum->entries += part->entries;
	sum->resent += part->resent;
}

static uint64_t events(const struct rt_point_count *count)
{
	return count->sum.hits - count->sum.unmet;
}

bool rt_point_count_balances(const struct rt_point_count *count)
{
	return events(count) == count->records + count->sum.ring + count->sum.busy + count->sum.passed;
}

uint64_t rt_point_count_missed(const struct rt_point_count *count)
{
	uint64_t returns = count->sum.hits + count->waiting;

	return count->sum.entries > returns ? count->sum.entries - returns : 0;
}

/* at most *struck of n, which it takes off that */
static uint64_t take(uint64_t n, uint64_t *struck)
{
	n = n < *struck ? n : *struck;
	*struck -= n;
	return n;
}

void rt_point_count_struck(struct rt_point_count *count, uint64_t *struck)
{
	struct rt_probe_count *sum = &count->sum;
	uint64_t told = count->records + sum->ring + sum->busy + sum->passed, untold;

	untold = take(events(count) > told ? events(count) - told : 0, struck);
	sum->hits -= untold;
	/* calls that did not return are not waited for, either */
	sum->entries -= sum->entries < untold ? sum->entries : untold;
	sum->entries -= take(rt_point_count_missed(count), struck);
}

static struct rt_error *say(struct rt_event_sink *sink, uint8_t kind, enum rt_loss cause, uint32_t point,
			    uint64_t value, const char *text)
{
	_cleanup_free_ struct rt_wire_loss *r = NULL;

	if (!value && kind == RT_WIRE_LOSS)
		return NULL;
	r = rt_record_loss(cause, point, value, text);
	if (!r)
		return rt_error_nomem();
	r->head.kind = kind;
	r->head.time_ns = rt_now_ns();
	return sink->record(sink, &r->head);
}

struct rt_error *rt_point_say_loss(struct rt_event_sink *sink, enum rt_loss cause, uint32_t point, uint64_t value,
				   const char *text)
{
	return say(sink, RT_WIRE_LOSS, cause, point, value, text);
}

struct rt_error *rt_point_say(struct rt_event_sink *sink, uint32_t point, const struct rt_point_count *count,
			      const char *full, const char *missed)
{
	const struct rt_probe_count *sum = &count->sum;
	uint64_t all = events(count);

	RT_TRY(say(sink, RT_WIRE_HITS, 0, point, all, ""));
	RT_TRY(rt_point_say_loss(sink, RT_LOSS_RING, point, sum->ring, full));
	RT_TRY(rt_point_say_loss(sink, RT_LOSS_PASSED, point, sum->passed, ""));
	RT_TRY(rt_point_say_loss(sink, RT_LOSS_RING, point, sum->busy, "no free stack buffer on the CPU"));
	RT_TRY(rt_point_say_loss(sink, RT_LOSS_FAULT, point, sum->faults, "object or counter could not be read"));
	RT_TRY(rt_point_say_loss(sink, RT_LOSS_STACKMAP, point, sum->resent, "the table of stacks is full"));
	RT_TRY(rt_point_say_loss(sink, RT_LOSS_RETURNS, point, rt_point_count_missed(count), missed));
	if (rt_point_count_balances(count))
		return NULL;
	return rt_point_say_loss(sink, RT_LOSS_BALANCE, point, all > count->records ? all - count->records : 0,
				 "hits differ from events and drops");
}
