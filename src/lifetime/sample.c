/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which lives are traced at all. Where the rate is fixed there is little to do: a life is told as a whole or not. Where
 * it follows the cost, each event says the rank of its object: fewer lives than before means that those of lower ranks
 * are told no further, and are forgotten; more means that lives of lower ranks are told from their middle on.
 */
#include "lifetime/life.h"

static uint32_t fewer(uint32_t a, uint32_t b)
{
	return a - 1 < b - 1 ? a : b; /* 0 is all of them */
}

/* Lives that go on and are not told any more. What has ended is known as a whole. */
static void drop_below(struct rt_lifetime *lt, unsigned rank)
{
	struct lt_inc *inc;
	uint32_t at = 0;

	while ((inc = lt_row_newer(&lt->live, &at))) {
		const struct lt_process *p = lt_process(lt, inc->pid);

		if (!(lt_inc_type(lt, inc)->flags & RT_TYPE_SAMPLED) || inc->rank >= rank || !p || p->ended)
			continue;
		lt->sample.left++;
		lt_inc_type(lt, inc)->outside++;
		lt_life_drop(lt, inc);
	}
}

void lt_sample_record(struct rt_lifetime *lt, const struct rt_wire_sample *r)
{
	struct lt_sample *s = &lt->sample;
	unsigned rank = r->rate ? (unsigned)__builtin_clz(r->rate) + 1 : 0;

	s->last = *r;
	if (r->flags & RT_SAMPLE_TOTAL)
		return;
	s->lowest = s->on ? fewer(s->lowest, r->rate) : r->rate;
	s->rate = r->rate;
	s->on = true;
	s->governed = r->flags & RT_SAMPLE_GOVERNED;
	if (!s->governed)
		return;
	if (rank > s->rank)
		drop_below(lt, rank);
	s->rank = rank;
	s->highest = rank > s->highest ? rank : s->highest;
}

void lt_sample_passed(struct rt_lifetime *lt, struct lt_point *point, uint64_t hits)
{
	lt->sample.passed += hits;
	if (point)
		point->passed += hits;
}

bool lt_sample_passes(const struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	return lt->sample.governed && RT_RANK_OF(e->flags) < lt->sample.rank && !(e->flags & RT_EV_OUTSIDE);
}

bool lt_sample_began(const struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	return lt->sample.governed && RT_RANK_OF(e->flags) < lt->sample.highest;
}

/*
 * Its birth was taken like any other, so that what its constructor had done is its own; that was all of it, and none of
 * it is counted.
 */
void lt_sample_outside(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type)
{
	struct lt_inc *inc = lt_inc_find(lt, e->head.pid, type, e->object);

	if (!inc || inc->life != LT_LIVE)
		return;
	for (uint32_t i = 0; i < inc->nr; i++) {
		struct lt_use *use = &lt->uses.data[inc->ledger[i].use];

		lt->types.data[type].op[inc->ledger[i].op]--;
		use->events--;
		lt->points.data[use->point].outside++;
	}
	lt->types.data[type].outside++;
	lt_life_drop(lt, inc);
}

bool lt_sample_partial(const struct rt_lifetime *lt)
{
	return lt->sample.on && (lt->sample.passed || lt->sample.left);
}

static double rate_of(uint32_t rate)
{
	return rate ? rate / 4294967296.0 : 1;
}

void lt_sample_fill(const struct rt_lifetime *lt, struct rt_sampling *ret)
{
	const struct lt_sample *s = &lt->sample;

	*ret = (struct rt_sampling){ .on = s->on,
				     .partial = lt_sample_partial(lt),
				     .governed = s->governed,
				     .rate = rate_of(s->rate),
				     .lowest = rate_of(s->lowest),
				     .passed = s->passed,
				     .left = s->left,
				     .limit = s->last.limit_ppm / 1e6,
				     .cost = s->last.cost_ppm / 1e6,
				     .event_ns = s->last.event_ns,
				     .passed_ns = s->last.passed_ns };
}
