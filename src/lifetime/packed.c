/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A packed life is written down as what differs from what could be guessed. Behind its key come:
 *
 *     a byte          the size of its ledger, and whether there is a life before it
 *     a number        of events in the ledger
 *     the events      each from the one before (write_event())
 *     what is left    of struct lt_inc, word by word, where it is not as in the first life of the domain that was
 *                     packed, or as its ledger says (guess()); fields that come to struct lt_inc need nothing here
 *     the life before it at its address, in the same way
 */
#include "lifetime/packed.h"

#include <stdlib.h>
#include <string.h>

#include "lifetime/life.h"

enum {
	LOOKS = 4, /* lives that are looked at with each record */
	SOON = 8,  /* and fetched so many before */
	WORDS = sizeof(struct lt_inc) / sizeof(uint64_t),
	PLACES = 2 * LT_CONTEXTS,
	EVENT_MOST = 96,                /* bytes of one event, and more */
	LIFE_MOST = 8 + 5 + 10 * WORDS, /* of the rest of a life */
	CAP_BITS = 4,
	HAS_BEFORE = 1 << CAP_BITS,
};

/* What an event says that the one before does not. */
enum {
	SAYS_ACT = 1 << 0, /* act is another one */
	SAYS_UP = 1 << 1,  /* up is not act */
	IS_DUE = 1 << 2,   /* count is what the last one that was read leaves */
	IS_READ = 1 << 3,  /* count is another one */
	HAS_SLOT = 1 << 4,
	WIDE_SLOT = 1 << 5, /* with more than 48 bits */
	IS_SILENT = 1 << 6, /* counts nothing, as it was when the life was packed */
};

/* The first life of a domain that was packed. */
struct lt_usual {
	struct lt_inc inc;
	struct lt_event first;
};

/* What the next event is compared to, and what the ledger up to there says of its life. */
struct last {
	uint64_t time_ns;
	uint32_t act;
	int64_t due;
	/* of what counts */
	uint64_t last_ns;
	uint32_t last_tid;
	struct lt_recent recent;
};

static void put_bytes(uint8_t **at, const void *from, size_t n)
{
	memcpy(*at, from, n);
	*at += n;
}

static void get_bytes(const uint8_t **at, void *to, size_t n)
{
	memcpy(to, *at, n);
	*at += n;
}

static void put_number(uint8_t **at, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		*(*at)++ = (uint8_t)(n | 0x80);
	*(*at)++ = (uint8_t)n;
}

static uint64_t get_number(const uint8_t **at)
{
	uint64_t n = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = *(*at)++;
		n |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return n;
}

/* small in both directions */
static void put_change(uint8_t **at, uint64_t from, uint64_t to)
{
	uint64_t n = to - from;

	put_number(at, n << 1 ^ (0 - (n >> 63)));
}

static uint64_t get_change(const uint8_t **at, uint64_t from)
{
	uint64_t n = get_number(at);

	return from + (n >> 1 ^ (0 - (n & 1)));
}

static uint32_t hash_of(const struct lt_context *c)
{
	return (uint32_t)(rt_hash(0, c, sizeof(*c)) >> 16) % PLACES;
}

/* number of the context, made when new; 0: there is none, and will not be one */
static uint32_t context_of(struct lt_packing *p, const struct lt_context *c)
{
	uint32_t i;

	if (!p->context_of)
		return 0;
	for (i = hash_of(c); p->context_of[i]; i = (i + 1) % PLACES) {
		if (!memcmp(&p->contexts.data[p->context_of[i] - 1], c, sizeof(*c)))
			return p->context_of[i];
	}
	if (p->contexts.len == LT_CONTEXTS || !rt_vec_push(&p->contexts, *c))
		return 0;
	p->context_of[i] = (uint32_t)p->contexts.len;
	return p->context_of[i];
}

/* e is event number i of its life */
static void pass(struct last *last, uint32_t i, const struct lt_event *e, bool silent)
{
	last->time_ns = e->time_ns;
	last->act = e->act;
	last->due = (e->count == INT32_MIN ? last->due : e->count) + e->delta;
	last->recent.tid[i % LT_RECENT] = silent ? 0 : e->tid;
	last->recent.op[i % LT_RECENT] = e->op;
	if (silent)
		return;
	last->last_ns = e->time_ns;
	last->last_tid = e->tid;
}

static void write_event(struct lt_packing *p, uint8_t **at, const struct last *last, const struct lt_event *e,
			bool silent)
{
	const struct lt_context c = {
		.sp = e->sp, .tid = e->tid, .use = e->use, .delta = e->delta, .op = e->op, .flags = e->flags
	};
	const uint32_t context = context_of(p, &c);
	const bool read = e->count != INT32_MIN, due = read && e->count == last->due;

	*(*at)++ = (uint8_t)((e->act != last->act ? SAYS_ACT : 0) | (e->up != e->act ? SAYS_UP : 0) |
			     (due ? IS_DUE : 0) | (read && !due ? IS_READ : 0) | (e->slot ? HAS_SLOT : 0) |
			     (e->slot >> 48 ? WIDE_SLOT : 0) | (silent ? IS_SILENT : 0));
	put_number(at, context);
	if (!context)
		put_bytes(at, &c, sizeof(c));
	put_change(at, last->time_ns, e->time_ns);
	if (e->act != last->act)
		put_change(at, last->act, e->act);
	if (e->up != e->act)
		put_change(at, e->act, e->up);
	if (read && !due)
		put_change(at, (uint64_t)last->due, (uint64_t)(int64_t)e->count);
	if (e->slot)
		put_bytes(at, &e->slot, e->slot >> 48 ? 8 : 6);
}

/* returns whether it is silent */
static bool read_event(const struct lt_packing *p, const uint8_t **at, const struct last *last, struct lt_event *ret)
{
	const uint8_t says = *(*at)++;
	const uint32_t context = (uint32_t)get_number(at);
	struct lt_context c;
	struct lt_event e;

	if (context)
		c = p->contexts.data[context - 1];
	else
		get_bytes(at, &c, sizeof(c));
	e = (struct lt_event){ .sp = c.sp,
			       .tid = c.tid,
			       .use = c.use,
			       .delta = c.delta,
			       .op = c.op,
			       .flags = c.flags,
			       .count = INT32_MIN };
	e.time_ns = get_change(at, last->time_ns);
	e.act = says & SAYS_ACT ? (uint32_t)get_change(at, last->act) : last->act;
	e.up = says & SAYS_UP ? (uint32_t)get_change(at, e.act) : e.act;
	if (says & IS_DUE)
		e.count = (int32_t)last->due;
	else if (says & IS_READ)
		e.count = (int32_t)get_change(at, (uint64_t)last->due);
	if (says & HAS_SLOT)
		get_bytes(at, &e.slot, says & WIDE_SLOT ? 8 : 6);
	*ret = e;
	return says & IS_SILENT;
}

/* a life of this key and place with this ledger, by all that is usual */
static void guess(const struct lt_usual *usual, const struct lt_packed *key, const struct lt_inc *ledger,
		  const struct last *last, struct lt_inc *ret)
{
	*ret = usual->inc;
	ret->object = key->object;
	ret->place = key->place;
	ret->nr = ledger->nr;
	ret->cap = ledger->cap;
	if (ledger->nr)
		ret->birth_ns = ledger->ledger[0].time_ns;
	ret->recent = last->recent;
	ret->last_tid = last->last_tid;
	ret->last_ns = last->last_ns;
}

static struct last before_first(const struct lt_usual *usual)
{
	return (struct last){ .time_ns = usual->first.time_ns, .act = usual->first.act, .due = usual->first.count };
}

/* the bytes of each word that are not as guessed */
static void write_rest(uint8_t **at, const struct lt_inc *guessed, const struct lt_inc *inc)
{
	uint64_t is[WORDS], was[WORDS];
	uint64_t words = 0;

	memcpy(is, inc, sizeof(is));
	memcpy(was, guessed, sizeof(was));
	for (unsigned i = 0; i < WORDS; i++)
		words |= (uint64_t)(is[i] != was[i]) << i;
	put_number(at, words);
	for (; words; words &= words - 1) {
		unsigned i = (unsigned)__builtin_ctzll(words);
		uint64_t differ = is[i] ^ was[i];
		uint8_t *bytes = (*at)++;

		*bytes = 0;
		for (unsigned k = 0; k < 8; k++, differ >>= 8) {
			if (!(differ & 0xff))
				continue;
			*bytes |= (uint8_t)(1 << k);
			*(*at)++ = (uint8_t)differ;
		}
	}
}

static void read_rest(const uint8_t **at, struct lt_inc *inc)
{
	uint64_t is[WORDS];

	memcpy(is, inc, sizeof(is));
	for (uint64_t words = get_number(at); words; words &= words - 1) {
		unsigned i = (unsigned)__builtin_ctzll(words);

		for (uint8_t bytes = *(*at)++; bytes; bytes &= (uint8_t)(bytes - 1))
			is[i] ^= (uint64_t) * (*at)++ << 8 * __builtin_ctz(bytes);
	}
	memcpy(inc, is, sizeof(is));
}

/* false: it is too long */
static bool write_life(struct rt_lifetime *lt, uint8_t **at, const uint8_t *end, const struct lt_packed *key,
		       const struct lt_usual *usual, const struct lt_inc *inc)
{
	struct last last = before_first(usual);
	struct lt_inc guessed, rest = *inc;

	if (end - *at < LIFE_MOST + EVENT_MOST * (int)inc->nr)
		return false;
	*(*at)++ = (uint8_t)((inc->cap ? __builtin_ctz(inc->cap) + 1 : 0) | (inc->before ? HAS_BEFORE : 0));
	put_number(at, inc->nr);
	for (uint32_t i = 0; i < inc->nr; i++) {
		bool silent = lt_event_silent(lt, &inc->ledger[i]);

		write_event(&lt->packing, at, &last, &inc->ledger[i], silent);
		pass(&last, i, &inc->ledger[i], silent);
	}
	guess(usual, key, inc, &last, &guessed);
	rest.ledger = NULL;
	rest.before = NULL;
	write_rest(at, &guessed, &rest);
	return !inc->before || write_life(lt, at, end, key, usual, inc->before);
}

/* NULL: out of memory */
static struct lt_inc *read_life(struct rt_lifetime *lt, const uint8_t **at, const struct lt_packed *key,
				const struct lt_usual *usual)
{
	struct last last = before_first(usual);
	struct lt_inc *inc, ledger = { 0 };
	const uint8_t head = *(*at)++;
	const unsigned nr = (unsigned)get_number(at), cap = head & (HAS_BEFORE - 1);

	if (cap && !lt_ledger_make(lt, &ledger, 1u << (cap - 1)))
		return NULL;
	for (ledger.nr = 0; ledger.nr < nr; ledger.nr++) {
		struct lt_event *e = &ledger.ledger[ledger.nr];
		bool silent = read_event(&lt->packing, at, &last, e);

		pass(&last, ledger.nr, e, silent);
	}
	inc = lt_inc_take(lt);
	if (!inc)
		return NULL;
	guess(usual, key, &ledger, &last, inc);
	read_rest(at, inc);
	inc->ledger = ledger.ledger;
	if (!(head & HAS_BEFORE))
		return inc;
	inc->before = read_life(lt, at, key, usual);
	if (inc->before)
		return inc;
	lt_inc_spare(lt, inc);
	return NULL;
}

/* what is usual in a domain, or this life from now on; NULL: out of memory */
static const struct lt_usual *usual_of(struct rt_lifetime *lt, uint32_t domain, const struct lt_inc *inc)
{
	struct lt_packing *p = &lt->packing;
	struct lt_usual *u;

	if (!rt_vec_extend(&p->usual, domain))
		return NULL;
	if (p->usual.data[domain - 1])
		return p->usual.data[domain - 1];
	u = rt_arena_alloc(&lt->arena, sizeof(*u));
	if (!u)
		return NULL;
	u->inc = *inc;
	u->inc.ledger = NULL;
	u->inc.before = NULL;
	u->first = inc->nr ? inc->ledger[0] : (struct lt_event){ 0 };
	p->usual.data[domain - 1] = u;
	return u;
}

/* those that others point to stay as they are */
static bool may_pack(const struct lt_inc *inc)
{
	return inc->life == LT_LIVE && inc->current && !inc->watched && !inc->census &&
	       (!inc->before || !inc->before->watched);
}

/* false: it stays as it is */
static bool pack(struct rt_lifetime *lt, struct lt_inc *inc)
{
	union {
		struct lt_packed key;
		uint8_t bytes[RT_SLAB_MOST];
	} u;
	const uint32_t domain = lt_domain(lt, inc->pid, inc->type), from = rt_slab_ref(inc);
	const struct lt_usual *usual = domain ? usual_of(lt, domain, inc) : NULL;
	uint8_t *at = u.key.rest;
	void *packed;
	uint32_t ref;

	if (!usual)
		return false;
	u.key.object = inc->object;
	u.key.place = inc->place;
	put_number(&at, domain);
	if (!write_life(lt, &at, u.bytes + sizeof(u.bytes), &u.key, usual, inc))
		return false;
	packed = rt_slab_alloc(&lt->slabs, (size_t)(at - u.bytes));
	if (!packed)
		return false;
	memcpy(packed, &u, (size_t)(at - u.bytes));
	ref = rt_slab_ref(packed) | LT_PACKED;
	lt_index_moved(lt, lt_index_hash(inc->object, inc->pid, inc->type), from, ref);
	lt->live.lives[inc->place] = ref;
	lt->packing.packed++;
	if (inc->before)
		lt_inc_spare(lt, inc->before);
	lt_inc_spare(lt, inc);
	return true;
}

void lt_pack(struct rt_lifetime *lt, uint64_t now_ns)
{
	struct lt_packing *p = &lt->packing;

	if (!p->context_of)
		p->context_of = calloc(PLACES, sizeof(*p->context_of));
	for (unsigned looks = 0; looks < LOOKS; looks++) {
		struct lt_inc *inc;

		if (p->hand >= lt->incs.len) {
			p->hand = 0;
			p->turn_ns = now_ns;
		}
		inc = lt->incs.data[p->hand++];
		if (p->hand + SOON < lt->incs.len)
			__builtin_prefetch(&lt->incs.data[p->hand + SOON]->last_ns);
		if (inc->last_ns < p->turn_ns && may_pack(inc))
			pack(lt, inc);
	}
}

struct lt_inc *lt_unpack(struct rt_lifetime *lt, uint32_t ref)
{
	struct lt_packed *packed = rt_slab_at(&lt->slabs, ref & ~LT_PACKED);
	const uint8_t *at = packed->rest;
	const struct lt_usual *usual = lt->packing.usual.data[get_number(&at) - 1];
	struct lt_inc *inc = read_life(lt, &at, packed, usual);

	if (!inc) {
		lt->nomem = true;
		return NULL;
	}
	lt_index_moved(lt, lt_index_hash(inc->object, inc->pid, inc->type), ref, rt_slab_ref(inc));
	lt->live.lives[inc->place] = rt_slab_ref(inc);
	lt->packing.packed--;
	rt_slab_free(&lt->slabs, packed);
	return inc;
}

uint32_t lt_packed_domain(const struct lt_packed *packed)
{
	const uint8_t *at = packed->rest;

	return (uint32_t)get_number(&at);
}

void lt_packing_deinit(struct lt_packing *packing)
{
	rt_vec_deinit(&packing->contexts);
	rt_vec_deinit(&packing->usual);
	free(packing->context_of);
}
