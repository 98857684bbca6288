/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Walks that need not be made: most are the same as one before. What that one has read is compared, place by place,
 * which proves that this one would come to the same stack.
 *
 * Many ways may lead to a spot. Which of them this is, the return addresses tell at which ways were found to part: they
 * are looked at without a branch, and lead to the memo; another one is then rarely tried.
 *
 * A hook that came into another one (a signal's handler) looks at these tables and changes nothing: what the hook below
 * it reads stays as it is. While that one changes a memo, the memo says that none is here.
 */
#pragma once

#include "walk.h"

#define barrier() asm volatile("" : : : "memory")

/* Which memo is looked for, and where it is to be put. */
struct memo_search {
	uint64_t sp, bp, from, here, key;
	struct rt_agent_memo *place;
	struct rt_agent_forks *forks;
};

static inline void search_init(struct memo_search *s, uint64_t sp, uint64_t bp, uint32_t spot, uint64_t code)
{
	s->sp = sp;
	s->bp = bp;
	s->from = RT_AGENT_FROM(code, spot);
	s->here = (sp ^ (uint64_t)spot << 48) * MIX;
}

/* It is of a walk from here, where the code is the same. */
static inline bool is_from(const struct rt_agent_memo *m, uint64_t sp, uint64_t bp, uint32_t spot, uint64_t code)
{
	return m->sp == sp && (uint32_t)m->from == spot && m->from >> 32 == code >> 32 &&
	       (__builtin_expect(!m->hangs, 1) || m->bp == bp);
}

/* What it has read from there on is still there. */
static inline __attribute__((always_inline)) bool are_words(const struct rt_agent_memo *m, uint64_t from, uint64_t sp)
{
	for (uint64_t i = from; i < m->nr; i += RT_AGENT_MEMO_STRIDE) {
		EXPECT_AT(sp, m->at[i], m->value[i], other);
		EXPECT_AT(sp, m->at[i + 1], m->value[i + 1], other);
		EXPECT_AT(sp, m->at[i + 2], m->value[i + 2], other);
		EXPECT_AT(sp, m->at[i + 3], m->value[i + 3], other);
	}
	_Static_assert(RT_AGENT_MEMO_STRIDE == 4, "each of them above");
	return true;
other:
	return false;
}

/* So are the first ones, which hang on each other, two by two. */
static inline __attribute__((always_inline)) bool is_chain(const struct rt_agent_memo *m, uint64_t sp)
{
	const uint64_t below = sp - 8, nr = m->chained;
	uint64_t here = m->at[0], next;
	uint64_t i = nr & 1;

	if (i) {
		next = m->at[1];
		EXPECT_AT(sp, here, m->value[0], other);
		EXPECT_AT(below, here, below + next * 8, other);
		here = next;
	}
	for (; i < nr; i += 2) {
		next = m->at[i + 1];
		EXPECT_AT(sp, here, m->value[i], other);
		EXPECT_AT(below, here, below + next * 8, other);
		here = m->at[i + 2];
		EXPECT_AT(sp, next, m->value[i + 1], other);
		EXPECT_AT(below, next, below + here * 8, other);
	}
	return true;
other:
	return false;
}

/* It is of a walk from here, and what that has read is still there. */
static inline __attribute__((always_inline)) bool is_same(const struct rt_agent_memo *m, const struct memo_search *s)
{
	const uint64_t sp = s->sp;

	if (m->sp != sp || m->from != s->from || (__builtin_expect(m->hangs, 0) && m->bp != s->bp))
		goto other;
	if (!is_chain(m, sp))
		goto other;
	return are_words(m, m->chained, sp);
other:
	return false;
}

/* Which of what a memo has read is something else now, and *ret what. */
static uint32_t first_other(const struct rt_agent_memo *m, const struct memo_search *s, uint64_t *ret)
{
	uint64_t bad = 0, below = s->sp - 8;
	uint32_t i;

	for (i = 0; i < m->nr; i++) {
		*ret = load_at(s->sp, m->at[i], &bad);
		if (bad || *ret != m->value[i])
			return i;
	}
	for (uint32_t k = 0; k < m->chained; k++) {
		*ret = load_at(below, m->at[k], &bad);
		if (bad || *ret != below + m->at[k + 1] * 8ull)
			return i + k;
	}
	*ret = s->bp;
	return i;
}

static inline uint64_t turned(uint64_t v, unsigned by)
{
	return v << by | v >> (64 - by);
}

/* How far the word at a fork is from what was seen there. */
static inline uint64_t turn(uint64_t sp, uint64_t near, uint64_t limit)
{
	uint64_t bad = 0, far = load_at(sp, RT_AGENT_READ_AT(near), &bad) ^ RT_AGENT_READ_VALUE(near);

	return far < limit ? far : limit;
}

/*
 * What the way here is by the known forks: one number, in which a word counts as what it is where it is near to what
 * was seen there. Who comes another way may have anything at that place.
 */
static inline uint64_t turns(const struct rt_agent_forks *f, uint64_t sp)
{
	const uint64_t *near = f->near, *end = near + f->nr;
	uint64_t way = 0, limit = RT_AGENT_NEAR;

	HOLD(limit);
	for (; near < end; near += RT_AGENT_FORKS_STRIDE) {
		const uint64_t a = turn(sp, near[0], limit), b = turn(sp, near[1], limit);
		const uint64_t c = turn(sp, near[2], limit), d = turn(sp, near[3], limit);

		way = turned(way, 44) + ((turned(a, 33) + turned(b, 22)) + (turned(c, 11) + d));
	}
	_Static_assert(RT_AGENT_FORKS_STRIDE == 4, "each of them above");
	return way;
}

/* The way here was taken for that of m, which has another word at a place. */
static void learn_fork(struct rt_agent_forks *f, const struct rt_agent_memo *m, uint32_t at)
{
	if (at >= m->nr || f->nr == RT_AGENT_FORKS)
		return;
	for (uint32_t i = f->nr; i == f->nr || i % RT_AGENT_FORKS_STRIDE; i++)
		f->near[i] = RT_AGENT_READ_MAKE(m->at[at], m->value[at]);
	barrier();
	f->nr++;
}

static inline bool are_here(const struct rt_agent_forks *f, const struct memo_search *s)
{
	return f->sp == s->sp && f->spot == (uint32_t)s->from;
}

/* The forks here; else where they are to be: are_here() says so. */
static inline struct rt_agent_forks *forks_of(struct rt_agent_thread *t, const struct memo_search *s)
{
	struct rt_agent_forks *f = &t->forks[s->here >> (64 - RT_AGENT_FORKS_BITS) & ~1u];

	return __builtin_expect(are_here(f, s), 1) ? f : f + 1;
}

static __attribute__((noinline)) struct rt_agent_forks *begin_forks(struct rt_agent_forks *f,
								    const struct memo_search *s)
{
	f -= !f[-1].spot;
	f->nr = 0;
	f->spot = (uint32_t)s->from;
	f->sp = s->sp;
	return f;
}

static inline uint64_t memo_key(const struct memo_search *s, uint64_t turns)
{
	uint64_t key = s->here ^ turns;

	return (key ^ key >> 32) * MIX;
}

/* The rest of a key says where its memo is. */
static inline uint32_t tag_of(uint64_t key)
{
	_Static_assert(RT_AGENT_MEMO_BITS <= 11, "bits that are left");
	return (uint32_t)(key >> 12);
}

/* The place of a memo is the first of two, or where that has another one, the second. */
static inline struct rt_agent_memo *memo_of(struct rt_agent_thread *t, uint64_t key)
{
	struct rt_agent_memo *m = &t->memo[key >> (64 - RT_AGENT_MEMO_BITS)];

	if (__builtin_expect(m->key == tag_of(key), 1) || !m->id)
		return m;
	return &t->memo[key >> (64 - 2 * RT_AGENT_MEMO_BITS) & ((1u << RT_AGENT_MEMO_BITS) - 1)];
}

/*
 * Looks for a walk that is the same one as from here. Where it was another one, what is there instead of its first
 * word that is not leads on to the next. 0: none is known, and s->place is for the one that has to be made.
 */
static uint32_t find_memo(struct hit *h, struct memo_search *s)
{
	uint64_t other = 0, key;

	s->forks = forks_of(h->thread, s);
	if (!are_here(s->forks, s))
		s->forks = h->nested ? NULL : begin_forks(s->forks, s);
	key = memo_key(s, s->forks ? turns(s->forks, s->sp) : 0);
	for (uint32_t n = 0; n < RT_AGENT_MEMO_WAYS; n++) {
		struct rt_agent_memo *m = memo_of(h->thread, key);
		uint32_t at;

		s->place = m;
		if (!m->id || m->key != tag_of(key) || m->from != s->from || m->sp != s->sp)
			break;
		if (is_same(m, s))
			return m->id;
		at = first_other(m, s, &other);
		if (!n && s->forks && !h->nested)
			learn_fork(s->forks, m, at);
		key = spread(key ^ other, at);
	}
	if (h->nested)
		s->place = NULL;
	else
		s->place->id = s->place->from = 0;
	barrier();
	s->key = key;
	return 0;
}

/* Puts the words of the chain first. */
static void put_chain_first(struct rt_agent_memo *m, const struct walk *w)
{
	for (uint32_t from = w->chain, to = 0; from > 0 && from <= w->chain_end; from++, to++) {
		uint64_t value = m->value[from];
		uint16_t at = m->at[from];

		for (uint32_t i = from; i > to; i--) {
			m->value[i] = m->value[i - 1];
			m->at[i] = m->at[i - 1];
		}
		m->value[to] = value;
		m->at[to] = at;
	}
}

/* Remembers that the walk that was written down in s->place came to the stack `id`. */
static void keep_memo(const struct memo_search *s, const struct walk *w, uint32_t id)
{
	struct rt_agent_memo *m = s->place;

	m->key = tag_of(s->key);
	m->sp = s->sp;
	m->bp = s->bp;
	m->hangs = w->hangs;
	m->chained = (uint16_t)(w->chain_end - w->chain);
	if (m->chained)
		put_chain_first(m, w);
	for (m->nr = (uint16_t)w->read; (m->nr - m->chained) % RT_AGENT_MEMO_STRIDE; m->nr++) {
		m->value[m->nr] = m->value[0];
		m->at[m->nr] = m->at[0];
	}
	barrier();
	m->id = id;
	m->from = s->from;
}
