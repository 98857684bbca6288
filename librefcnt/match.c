/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Which get does a put give back, where no key says? The likeliest: taken by the same run of functions. Stacks are
 * compared from the outermost frame; the function in which they part may be the same still. Of equals the one that was
 * taken nearest to that function, then the same thread, then the newest. Where they have no function of the program in
 * common, the oldest: what a program gives back at its end is what it began with.
 *
 * Before all that, what objects that are released have shown: a put that found but one reference open was for that one,
 * and puts of this place are then likely for references of that place (rc_ledger_learn()).
 */
#include "ledger.h"
#include "stack.h"

/* operations: more are not looked through for rivals */
#define RIVALS_LOOKED 64

/* pairs of get and put that were seen, by the numbers of their stacks; what finds no room is not known */
#define LEARNT (1u << 14)
#define LEARNT_TRIES 16

static uint64_t learnt[LEARNT];

struct likeness {
	bool learnt;
	unsigned common; /* frames from outside, and one for the function where they part */
	unsigned beyond; /* frames of the get below that */
	bool thread;
	bool shared; /* the function where they part is the program's, not what starts or ends it */
};

static uint64_t *find_pair(const struct rc_op *get, const struct rc_op *put, bool add)
{
	uint64_t key = (uint64_t)get->stack << 32 | put->stack;
	uint32_t at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40);

	if (!get->stack || !put->stack)
		return NULL;
	for (uint32_t i = 0; i < LEARNT_TRIES; i++) {
		uint64_t *slot = &learnt[(at + i) % LEARNT], have = __atomic_load_n(slot, __ATOMIC_RELAXED);

		if (!have && add &&
		    __atomic_compare_exchange_n(slot, &have, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return slot;
		if (have == key)
			return slot;
		if (!have)
			return NULL;
	}
	return NULL;
}

static bool same_function(const void *a, const void *b)
{
	uintptr_t f = rc_function_start((uintptr_t)a - 1);

	return f && f == rc_function_start((uintptr_t)b - 1);
}

/* Stacks that were cut do not end at the same caller: the offset at which most frames are the same counts. */
static unsigned common_frames(const struct rc_stack *a, const struct rc_stack *b, int *ret_shift)
{
	int most = a->cut || b->cut ? RC_FRAMES : 0, shift = (int)a->n - (int)b->n;
	unsigned best = 0;

	*ret_shift = shift;
	for (int s = shift - most; s <= shift + most; s++) {
		int i = (int)b->n - 1 + s < (int)a->n - 1 ? (int)b->n - 1 : (int)a->n - 1 - s;
		unsigned n = 0;

		for (; i >= 0 && i + s >= 0 && a->frames[i + s] == b->frames[i]; i--)
			n++;
		if (n > best) {
			best = n;
			*ret_shift = s;
		}
	}
	return best;
}

static struct likeness compare(const struct rc_op *get, const struct rc_op *put)
{
	const struct rc_stack *g = rc_stack_of(get->stack), *p = rc_stack_of(put->stack);
	struct likeness like = { .thread = get->tid == put->tid, .learnt = find_pair(get, put, false) != NULL };
	int shift, inner_g, inner_p;

	if (!g || !p)
		return like;
	like.common = common_frames(g, p, &shift);
	/* where they part: with equal ends these are the frames before the common ones */
	inner_p = (int)p->n - 1 - (int)like.common;
	inner_g = inner_p + shift;
	if (g->cut || p->cut) {
		for (inner_p = (int)p->n - 1; inner_p >= 0; inner_p--) {
			inner_g = inner_p + shift;
			if (inner_g >= 0 && inner_g < (int)g->n && g->frames[inner_g] != p->frames[inner_p])
				break;
		}
	}
	like.beyond = inner_g > 0 ? (unsigned)inner_g : 0;
	if (inner_p >= 0 && inner_g >= 0 && inner_g < (int)g->n &&
	    same_function(g->frames[inner_g], p->frames[inner_p])) {
		like.common++;
		like.shared = !rc_function_in_libc((uintptr_t)p->frames[inner_p]);
	}
	return like;
}

static bool likelier(const struct likeness *a, const struct likeness *b)
{
	if (a->learnt != b->learnt)
		return a->learnt;
	if (a->thread != b->thread && (a->common == b->common))
		return a->thread;
	if (a->common != b->common)
		return a->common > b->common;
	if (!a->shared && !b->shared)
		return false;
	return a->beyond <= b->beyond;
}

struct rc_op *rc_ledger_likeliest(struct rc_object *o, const struct rc_op *put, uint32_t before)
{
	struct likeness best = { 0 };
	struct rc_op *found = NULL;
	unsigned choices = 0;

	for (uint32_t i = 0; i < before; i++) {
		struct rc_op *get = &o->ops[i];
		struct likeness like;

		if (get->kind == RC_PUT || get->closed || get->key)
			continue;
		choices++;
		like = compare(get, put);
		if (!found || likelier(&like, &best)) {
			found = get;
			best = like;
		}
	}
	if (choices == 1 && o->dead && !o->uncounted)
		(void)find_pair(found, put, true);
	return found;
}

/* The likeliest of the gets that were given back; ret: how it is like the put. NULL when there is none */
static const struct rc_op *likeliest_closed(const struct rc_object *o, const struct rc_op *put, struct likeness *ret)
{
	const struct rc_op *found = NULL;

	for (const struct rc_op *get = o->ops; get < put; get++) {
		struct likeness like;

		if (get->kind == RC_PUT || get->key || !get->closed)
			continue;
		like = compare(get, put);
		if (found && !likelier(&like, ret))
			continue;
		found = get;
		*ret = like;
	}
	return found;
}

unsigned rc_ledger_rivals(const struct rc_object *o, const struct rc_op *get, uint32_t *ret_stacks, unsigned room)
{
	unsigned n = 0;

	if (get->key || o->n > RIVALS_LOOKED)
		return 0;
	for (const struct rc_op *put = get + 1; put < o->ops + o->n && n < room; put++) {
		const struct rc_op *other;
		struct likeness like = { 0 }, mine;
		bool known;

		if (put->kind != RC_PUT || put->key)
			continue;
		other = likeliest_closed(o, put, &like);
		mine = compare(get, put);
		known = !other || other->stack == get->stack || (like.learnt && !mine.learnt) ||
			(like.learnt == mine.learnt && mine.common < like.common);
		for (unsigned i = 0; i < n && !known; i++)
			known = ret_stacks[i] == other->stack;
		if (!known)
			ret_stacks[n++] = other->stack;
	}
	return n;
}

void rc_ledger_match(struct rc_object *o)
{
	for (uint32_t i = 0; i < o->n; i++) {
		struct rc_op *put = &o->ops[i], *get;

		if (put->kind != RC_PUT || put->closed || put->key)
			continue;
		get = rc_ledger_likeliest(o, put, i);
		if (!get && !o->uncounted)
			continue;
		put->closed = 1;
		if (get)
			get->closed = 1;
		else
			o->uncounted--;
	}
}
