/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is what is read as the counter of a type its count of references at all? A
 * wrong field tells of deaths that were none and of references that nobody
 * took. Each type is judged by what its lives show, all of them together:
 *
 *  - it moves as the operations do. Steps of one thread count, and those that
 *    lie so far apart that no race explains them. Operations that are not seen
 *    make a right counter jump now and then; what disagrees more often than it
 *    agrees is none.
 *  - objects are born with a plausible count, and where that is learnt from
 *    the counter and is not 1, their ends prove it: what is born with N > 1
 *    gets to 0 and does not come to rest at N - 1; what is born with 0 is not
 *    put again after its death.
 *
 * While the steps say that it is none, its counts are taken as not read and
 * the running balance stands alone; they are still compared, so that this is
 * revised. The verdict decides once more, from the whole stream.
 */
#include "lifetime/answer.h"
#include "lifetime/life.h"

enum { MANY = 16 }; /* steps before a stream that runs is judged */

static struct lt_counting *counting_of(struct rt_lifetime *lt, const struct lt_inc *inc)
{
	return &lt_inc_type(lt, inc)->counting;
}

/* the balance of inc as if no counter had ever been read */
static void recount(const struct lt_type *type, struct lt_inc *inc)
{
	int64_t moved = 0;

	for (uint32_t i = 0; i < inc->nr; i++)
		moved += inc->ledger[i].delta;
	inc->known = inc->has_new && !inc->folded;
	inc->assumed = inc->known && type->start < 0;
	inc->start = inc->known ? lt_type_start(type) : 0;
	inc->base = 0;
	inc->gap = 0;
	inc->balance = inc->start + moved;
	/* what it has more puts than references for was not counted right before, either */
	if (inc->known && inc->balance <= 0)
		inc->known = false;
}

/* the counts of the type are not believed from here on */
static void disbelieve(struct rt_lifetime *lt, uint32_t index)
{
	struct lt_type *type = &lt->types.data[index];

	type->counting.off = true;
	if (type->start_learnt) {
		type->start = RT_START_UNKNOWN;
		type->start_learnt = false;
	}
	for (struct lt_inc *inc = lt->live; inc; inc = inc->older) {
		if (inc->type == index)
			recount(type, inc);
	}
}

static void step(struct rt_lifetime *lt, const struct lt_inc *inc, bool agrees)
{
	struct lt_counting *c = counting_of(lt, inc);

	c->agree += agrees;
	c->differ += !agrees;
	if (!c->off && c->differ >= MANY && c->differ > 2 * c->agree)
		disbelieve(lt, inc->type);
	else if (c->off && c->agree > 2 * c->differ)
		c->off = false;
}

void lt_counter_birth(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	struct lt_counting *c = counting_of(lt, inc);

	inc->born = seen->raw;
	if (inc->born == 1)
		c->born_one++;
	else if (inc->born == 0)
		c->born_zero++;
	else if (inc->born > 0 && inc->born < LT_COUNT_SANE)
		c->born_more++;
	else
		c->born_odd++;
}

void lt_counter_step(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	const struct lt_event *ev = &seen->ev;

	if (seen->raw == INT32_MIN) {
		inc->moved = (int16_t)(inc->moved + ev->delta);
		inc->due += ev->delta;
		return;
	}
	/* read before or after the operation: who can tell */
	if (ev->flags & LT_EV_RETURN) {
		inc->counts = false;
		return;
	}
	if (inc->counts && inc->moved) {
		bool agrees = seen->raw == inc->due;

		if (agrees || inc->last_tid == ev->tid || (int64_t)(ev->time_ns - inc->last_ns) > LT_RACE_NS)
			step(lt, inc, agrees);
	}
	if (inc->nr == 1 && inc->has_new && inc->born == INT32_MIN)
		lt_counter_birth(lt, inc, seen);
	inc->counts = true;
	inc->moved = ev->delta;
	inc->due = (int64_t)seen->raw + ev->delta;
}

static void rest(struct lt_counting *c, const struct lt_inc *inc)
{
	if (!inc->counts || inc->born < 2 || inc->born >= LT_COUNT_SANE)
		return;
	c->more_died += inc->due == 0;
	c->more_rest += inc->due == inc->born - 1;
}

void lt_counter_end(struct rt_lifetime *lt, const struct lt_inc *inc)
{
	rest(counting_of(lt, inc), inc);
}

void lt_counter_after(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	if (seen->ev.delta >= 0 || inc->born != 0)
		return;
	counting_of(lt, inc)->zero_over++;
	inc->born = INT32_MIN; /* each life once */
}

static const char *wrong(const struct rt_lifetime *lt, uint32_t index, struct rt_arena *arena)
{
	const struct lt_type *type = &lt->types.data[index];
	struct lt_counting c = type->counting;
	uint64_t born = c.born_one + c.born_zero + c.born_more + c.born_odd;

	if (c.differ > 1 && c.differ > c.agree)
		return lt_printf(arena, "it did not follow %llu of %llu gets and puts", (unsigned long long)c.differ,
				 (unsigned long long)(c.differ + c.agree));
	if (c.born_odd * 2 > born)
		return lt_printf(arena, "%llu of %llu objects began with what is no count",
				 (unsigned long long)c.born_odd, (unsigned long long)born);
	if (!type->start_learnt && !c.off)
		return NULL;
	for (const struct lt_inc *inc = lt->live; inc; inc = inc->older) {
		if (inc->type == index)
			rest(&c, inc);
	}
	if (c.born_more * 2 > born && c.more_died <= c.more_rest)
		return lt_printf(arena, "objects begin with more than 1, and %llu of %llu get to 0",
				 (unsigned long long)c.more_died, (unsigned long long)c.born_more);
	if (c.born_zero * 2 > born && c.zero_over * 2 >= c.born_zero)
		return lt_printf(arena, "objects begin with 0, and %llu of %llu are put when it is 0",
				 (unsigned long long)c.zero_over, (unsigned long long)c.born_zero);
	return NULL;
}

const char *lt_counter_wrong(struct rt_lifetime *lt, uint32_t index, struct rt_arena *arena)
{
	const char *why = wrong(lt, index, arena);

	lt->types.data[index].miscounted = why != NULL;
	return why;
}
