/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which lives are traced: what the stream is told of it, and where --max-overhead is given, the choice of the rate
 * while the program runs. What the hooks cost is their number times what one costs here; the programs' own time is what
 * the kernel says of their CPU time, less that. Too much, and the rate is halved as often as that takes; little for
 * long, and it is doubled once. Rates are powers of two, so that those who are traced at one are among those of the
 * next.
 */
#include "session/internal.h"

enum {
	LOOK_NS = 100000000,
	LEAST_NS = 20000000, /* of CPU time: less says nothing */
	ENOUGH = 3,          /* at a third of what is allowed */
	PATIENCE = 10,       /* and for that many looks the rate is doubled */
	PPM = 1000000,
};

static struct rt_error *tell(struct rt_session *s, uint32_t flags, double cost)
{
	struct rt_governor *g = &s->governor;
	struct rt_wire_sample record = {
		.head = { .size = sizeof(record), .kind = RT_WIRE_SAMPLE },
		.rate = g->rank ? 1u << (32 - g->rank) : s->options.engine.sample.rate,
		.flags = flags,
		.limit_ppm = (uint32_t)(s->options.max_overhead * PPM),
		.cost_ppm = cost < 0      ? 0
			    : cost > 4000 ? UINT32_MAX
					  : (uint32_t)(cost * PPM),
		.event_ns = g->price.event_ns,
		.passed_ns = g->price.passed_ns,
	};

	return rt_emit(s, &record.head, 0, 0);
}

struct rt_error *rt_governor_begin(struct rt_session *s)
{
	if (!s->options.engine.sample.on)
		return NULL;
	s->governor.look_ns = rt_now_ns();
	return tell(s, s->options.engine.sample.governed ? RT_SAMPLE_GOVERNED : 0, 0);
}

void rt_governor_process(struct rt_session *s, struct rt_process *p)
{
	uint64_t now = rt_proc_cpu_ns(p->tgid);

	if (!s->options.engine.sample.governed || p->foreign)
		return;
	/* what it did before is none of ours */
	if (p->attached && !p->cpu_ns)
		p->cpu_ns = now;
	if (now > p->cpu_ns) {
		s->governor.cpu_ns += now - p->cpu_ns;
		p->cpu_ns = now;
	}
}

static struct rt_error *visit(struct rt_session *s, struct rt_process *p)
{
	rt_governor_process(s, p);
	return NULL;
}

/* CPU time of the hooks, at a rate that is divided by 2^more. */
static double hooks_ns(const struct rt_governor *g, const struct rt_governed *d, unsigned more)
{
	double events = (double)d->records / (double)(1u << more), passed = (double)d->hits - events;

	return events * g->price.event_ns + (passed > 0 ? passed : 0) * g->price.passed_ns +
	       (double)d->returns * g->price.return_ns + (double)d->steps * g->price.step_ns;
}

/* Of the programs' own time. */
static double overhead(const struct rt_governor *g, const struct rt_governed *d)
{
	double hooks = hooks_ns(g, d, 0), own = (double)d->cpu_ns - hooks;

	/* more than all of it: the price is a little high, and nearly all of it was hooks */
	if (own < (double)d->cpu_ns / 100)
		own = (double)d->cpu_ns / 100;
	return own > 0 ? hooks / own : 0;
}

/* The rank at which the events are paid for, or where what is left is the price of hits that nobody is told of. */
static unsigned choose(const struct rt_session *s, const struct rt_governed *d)
{
	const struct rt_governor *g = &s->governor;
	double own = hooks_ns(g, d, 0) / overhead(g, d), may = own * s->options.max_overhead;
	unsigned more = 0;

	while (g->rank + more < RT_RANK_MAX && hooks_ns(g, d, more) > may &&
	       hooks_ns(g, d, more) > 1.05 * hooks_ns(g, d, RT_RANK_MAX))
		more++;
	return g->rank + more;
}

static struct rt_error *change(struct rt_session *s, unsigned rank, double cost)
{
	struct rt_governor *g = &s->governor;
	bool fewer = rank > g->rank;

	g->rank = rank;
	g->calm = 0;
	/* what is told of more lives than the stream says is taken for what it is; not the other way round */
	if (fewer)
		RT_TRY(tell(s, RT_SAMPLE_GOVERNED, cost));
	s->ops->sample(s->engine, rank ? 1u << (32 - rank) : 0);
	return fewer ? NULL : tell(s, RT_SAMPLE_GOVERNED, cost);
}

/* What there was since the last look, or *ret_all. */
static struct rt_error *measure(struct rt_session *s, struct rt_governed *ret, struct rt_governed *ret_all)
{
	struct rt_governor *g = &s->governor;
	struct rt_engine_stats stats;

	RT_TRY(rt_process_each(s, visit));
	RT_TRY(s->ops->cost(s->engine, &g->price));
	s->ops->stats(s->engine, &stats);
	*ret_all = (struct rt_governed){ .hits = stats.hits,
					 .records = stats.hits - (stats.passed < stats.hits ? stats.passed : 0),
					 .returns = stats.returns,
					 .steps = stats.steps,
					 .cpu_ns = g->cpu_ns };
	ret->hits = ret_all->hits - g->before.hits;
	ret->records = ret_all->records - g->before.records;
	ret->returns = ret_all->returns - g->before.returns;
	ret->steps = ret_all->steps - g->before.steps;
	ret->cpu_ns = ret_all->cpu_ns - g->before.cpu_ns;
	return NULL;
}

struct rt_error *rt_governor_look(struct rt_session *s)
{
	struct rt_governor *g = &s->governor;
	struct rt_governed since, all;
	uint64_t now = rt_now_ns();
	double cost;

	if (!s->options.engine.sample.governed || now - g->look_ns < LOOK_NS)
		return NULL;
	RT_TRY(measure(s, &since, &all));
	if (since.cpu_ns < LEAST_NS)
		return NULL;
	g->look_ns = now;
	g->before = all;
	cost = overhead(g, &since);
	if (cost > s->options.max_overhead) {
		unsigned rank = choose(s, &since);

		g->calm = 0;
		return rank > g->rank ? change(s, rank, cost) : NULL;
	}
	g->calm = cost * ENOUGH < s->options.max_overhead ? g->calm + 1 : 0;
	return g->rank && g->calm >= PATIENCE ? change(s, g->rank - 1, cost) : NULL;
}

struct rt_error *rt_governor_end(struct rt_session *s)
{
	struct rt_governed since, all;

	if (!s->options.engine.sample.governed)
		return NULL;
	RT_TRY(measure(s, &since, &all));
	return tell(s, RT_SAMPLE_GOVERNED | RT_SAMPLE_TOTAL, all.cpu_ns ? overhead(&s->governor, &all) : 0);
}
