/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Walks that need not be made: most are the same as one before. What that one has read is compared, place by place,
 * which proves that this one would come to the same stack.
 *
 * Many ways may lead to a place. Which of them this is, a few return addresses tell: those at which ways were found to
 * part. Whether they are where they would be is looked at without a branch, and leads to the memo; another one is then
 * rarely tried.
 *
 * A hook that came into another one (a signal's handler) looks at these tables and changes nothing: what the hook below
 * it reads stays as it is. While that one changes a memo, the memo says that none is here.
 */
#pragma once

#include "walk.h"

#define barrier() asm volatile("" : : : "memory")

/* Which memo is looked for, and where it is to be put. */
struct memo_search {
	uint64_t how, code, key;
	struct rt_agent_memo *place;
	struct rt_agent_forks *forks;
};

/* 0: what a memo has read is still there. */
static inline uint64_t is_other(const struct rt_agent_memo *m, uint64_t sp, uint64_t bp)
{
	uint64_t other = m->bp == RT_AGENT_NOT_HUNG ? 0 : bp ^ (sp + m->bp * 8ull);

	for (uint32_t i = 0; i < m->nr; i += RT_AGENT_MEMO_STRIDE) {
#pragma GCC unroll 4
		for (uint32_t k = i; k < i + RT_AGENT_MEMO_STRIDE; k++)
			other |= load_at(sp, m->at[k], &other) ^ m->ra[k];
	}
	for (uint32_t i = 0; i < m->hung_nr; i += RT_AGENT_MEMO_STRIDE) {
#pragma GCC unroll 4
		for (uint32_t k = i; k < i + RT_AGENT_MEMO_STRIDE; k++)
			other |= load_at(sp, m->hung[k].at, &other) ^ (sp + m->hung[k].bp * 8ull);
	}
	return other;
}

/* Which of what a memo has read is something else now, and *ret what. */
static uint32_t first_other(const struct rt_agent_memo *m, uint64_t sp, uint64_t bp, uint64_t *ret)
{
	uint64_t bad = 0;
	uint32_t i;

	for (i = 0; i < m->nr; i++) {
		*ret = load_at(sp, m->at[i], &bad);
		if (bad || *ret != m->ra[i])
			return i;
	}
	for (i = 0; i < m->hung_nr; i++) {
		*ret = load_at(sp, m->hung[i].at, &bad) - sp;
		if (bad || *ret != m->hung[i].bp * 8ull)
			return m->nr + i;
	}
	*ret = bp - sp;
	return m->nr + i;
}

/* Which of the known forks the way here goes through, a bit for each. */
static inline uint64_t turns(const struct rt_agent_forks *f, uint64_t sp)
{
	uint64_t bits = 0, bad = 0;

	for (uint32_t i = 0; i < f->nr; i++)
		bits = bits << 1 | (load_at(sp, f->at[i], &bad) == f->ra[i]);
	return bits;
}

/* The way here was taken for that of m, which has another return address at a place. */
static void learn_fork(struct rt_agent_forks *f, const struct rt_agent_memo *m, uint32_t at)
{
	if (at >= m->nr || f->nr == RT_AGENT_FORKS)
		return;
	f->at[f->nr] = m->at[at];
	f->ra[f->nr] = m->ra[at];
	barrier();
	f->nr++;
}

static inline struct rt_agent_forks *forks_here(struct hit *h, uint64_t key, uint64_t sp)
{
	struct rt_agent_forks *f = &h->thread->forks[key * MIX >> (64 - RT_AGENT_FORKS_BITS) & ~1u];

	f += f->sp != sp || f->ip != h->ip;
	if (f->ip == h->ip && f->sp == sp)
		return f;
	if (h->nested)
		return NULL;
	f -= !f[-1].ip;
	f->nr = 0;
	f->ip = h->ip;
	f->sp = sp;
	return f;
}

/* The place of a memo is the first of two, or where that has another one, the second. */
static inline struct rt_agent_memo *memo_of(struct rt_agent_thread *t, uint64_t key)
{
	struct rt_agent_memo *m = &t->memo[key * MIX >> (64 - RT_AGENT_MEMO_BITS)];

	if (!m->id || m->key == key)
		return m;
	return &t->memo[key * (MIX << 32 | MIX >> 32) >> (64 - RT_AGENT_MEMO_BITS)];
}

/*
 * Looks for a walk that is the same one as from here. Where it was another one, what is there instead of its first
 * return address that is not leads on to the next. 0: none is known, and s->place is for the one that has to be made.
 */
static inline uint32_t find_memo(struct hit *h, struct memo_search *s)
{
	uint64_t sp = h->regs->reg[RSP], bp = h->regs->reg[RBP], other = 0, key = h->ip ^ sp << 20;

	s->forks = forks_here(h, key, sp);
	if (s->forks)
		key = spread(key ^ turns(s->forks, sp), 0);
	for (uint32_t n = 0; n < RT_AGENT_MEMO_WAYS; n++) {
		struct rt_agent_memo *m = memo_of(h->thread, key);
		uint32_t at;

		s->place = m;
		if (m->key != key || !m->id || m->ip != h->ip || m->how != s->how ||
		    m->generation != RT_CODE_GENERATION(s->code))
			break;
		if (__builtin_expect(!is_other(m, sp, bp), 1))
			return m->id;
		at = first_other(m, sp, bp, &other);
		if (!n && s->forks && !h->nested)
			learn_fork(s->forks, m, at);
		key = spread(key ^ other, at);
	}
	if (h->nested)
		s->place = NULL;
	else
		s->place->id = 0;
	barrier();
	s->key = key;
	return 0;
}

/* Remembers that the walk that was written down in s->place came to the stack `id`. */
static void keep_memo(struct hit *h, const struct memo_search *s, const struct walk *w, uint32_t id)
{
	struct rt_agent_memo *m = s->place;

	m->key = s->key;
	m->ip = h->ip;
	m->how = s->how;
	m->generation = RT_CODE_GENERATION(s->code);
	for (m->nr = (uint16_t)w->steps; m->nr % RT_AGENT_MEMO_STRIDE; m->nr++) {
		m->at[m->nr] = m->at[0];
		m->ra[m->nr] = m->ra[0];
	}
	for (m->hung_nr = (uint16_t)w->hung; m->hung_nr % RT_AGENT_MEMO_STRIDE; m->hung_nr++)
		m->hung[m->hung_nr] = m->hung[0];
	barrier();
	m->id = id;
}
