/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent reads the time stamp counter alone. It is turned into CLOCK_MONOTONIC by a line that is set right now and
 * then: its slope comes from the whole run, and what is left of a difference is made up for in the next moments, so
 * that time neither leaps nor goes back.
 */
#include <time.h>

#include "engine/agent_priv.h"

#define SET_NS 2000000        /* not more often */
#define MAKE_UP_NS 50000000.0 /* how long a difference takes to go */

uint64_t rt_agent_tsc(void)
{
	return __builtin_ia32_rdtsc();
}

/* Both clocks at once: the closest of some tries. */
static void read_both(uint64_t *ret_tsc, uint64_t *ret_ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = rt_agent_tsc(), after;
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC, &t);
		after = rt_agent_tsc();
		if (after - before < best) {
			best = after - before;
			*ret_tsc = before + best / 2;
			*ret_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
		}
	}
}

static double since(const struct rt_agent_clock *c, uint64_t tsc)
{
	return (double)(int64_t)(tsc - c->at) * c->slope;
}

void rt_agent_clock_init(struct rt_agent_clock *c)
{
	uint64_t tsc, ns;

	read_both(&c->first, &c->first_ns);
	do {
		read_both(&tsc, &ns);
	} while (ns - c->first_ns < SET_NS);
	c->at = tsc;
	c->at_ns = ns;
	c->slope = (double)(ns - c->first_ns) / (double)(tsc - c->first);
}

void rt_agent_clock_set(struct rt_agent_clock *c)
{
	uint64_t tsc, ns, said;
	double slope;

	read_both(&tsc, &ns);
	said = c->at_ns + (uint64_t)since(c, tsc);
	if (ns - c->at_ns < SET_NS)
		return;
	slope = (double)(ns - c->first_ns) / (double)(tsc - c->first);
	c->at = tsc;
	c->at_ns = said;
	c->slope = slope * (1 + (double)(int64_t)(ns - said) / MAKE_UP_NS);
}

uint64_t rt_agent_clock_at(const struct rt_agent_clock *c, uint64_t tsc)
{
	return c->at_ns + (uint64_t)(int64_t)since(c, tsc);
}

uint64_t rt_agent_clock_ns(struct rt_agent_clock *c, uint64_t tsc)
{
	uint64_t ns = rt_agent_clock_at(c, tsc);

	if (ns < c->last_ns)
		return c->last_ns;
	c->last_ns = ns;
	return ns;
}
