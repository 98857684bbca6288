/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent reads the time stamp counter alone. It is turned into CLOCK_MONOTONIC by what both showed at the same
 * moments: whenever rings are read, so that what is in them lies between two of these moments, and the line between
 * the two is true to what the kernel did to its clock meanwhile. Engine K asks the kernel's clock, and the events of
 * both are put in order.
 */
#include <time.h>

#include "engine/agent_priv.h"

#define APART_NS 2000000 /* moments that are kept; as many of them as an event may have to wait */

uint64_t rt_agent_tsc(void)
{
	return __builtin_ia32_rdtsc();
}

/* Both clocks at once: the closest of some tries. */
static struct rt_agent_moment read_both(void)
{
	struct rt_agent_moment ret = { 0 };
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = rt_agent_tsc(), after;
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC, &t);
		after = rt_agent_tsc();
		if (after - before < best) {
			best = after - before;
			ret.tsc = before + best / 2;
			ret.ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
		}
	}
	return ret;
}

static double slope_of(const struct rt_agent_moment *from, const struct rt_agent_moment *to)
{
	return (double)(to->ns - from->ns) / (double)(to->tsc - from->tsc);
}

static struct rt_agent_moment *moment(struct rt_agent_clock *c, uint64_t n)
{
	return &c->moment[n % RT_AGENT_MOMENTS];
}

void rt_agent_clock_init(struct rt_agent_clock *c)
{
	struct rt_agent_moment now;

	c->first = *moment(c, 0) = read_both();
	do {
		now = read_both();
	} while (now.ns - c->first.ns < APART_NS);
	*moment(c, 1) = now;
	c->nr = 2;
	c->slope = slope_of(&c->first, &now);
}

void rt_agent_clock_set(struct rt_agent_clock *c)
{
	struct rt_agent_moment now = read_both();

	if (now.ns <= moment(c, c->nr - 1)->ns)
		return;
	/* the last one is there for the events of now, and goes when it was of no use for later ones */
	if (moment(c, c->nr - 1)->ns - moment(c, c->nr - 2)->ns < APART_NS)
		c->nr--;
	*moment(c, c->nr++) = now;
	c->slope = slope_of(&c->first, &now);
	c->from = c->to = now; /* to be looked for again */
}

/* The two moments around tsc, or the first or last two there are. */
static void look_up(struct rt_agent_clock *c, uint64_t tsc)
{
	uint64_t oldest = c->nr > RT_AGENT_MOMENTS ? c->nr - RT_AGENT_MOMENTS : 0, i = c->nr - 2;

	while (i > oldest && moment(c, i)->tsc > tsc)
		i--;
	c->from = *moment(c, i);
	c->to = *moment(c, i + 1);
	c->between = slope_of(&c->from, &c->to);
}

uint64_t rt_agent_clock_at(struct rt_agent_clock *c, uint64_t tsc)
{
	int64_t ns;

	if (tsc - c->from.tsc >= c->to.tsc - c->from.tsc)
		look_up(c, tsc);
	/* what has come since: by the slope of all, a short piece says little */
	if (tsc > c->to.tsc)
		return c->to.ns + (uint64_t)((double)(tsc - c->to.tsc) * c->slope);
	ns = (int64_t)c->from.ns + (int64_t)((double)(int64_t)(tsc - c->from.tsc) * c->between);
	return ns > 0 ? (uint64_t)ns : 0;
}

uint64_t rt_agent_clock_ns(struct rt_agent_clock *c, uint64_t tsc, uint64_t *last_ns)
{
	uint64_t ns = rt_agent_clock_at(c, tsc);

	if (ns < *last_ns)
		return *last_ns;
	*last_ns = ns;
	return ns;
}
