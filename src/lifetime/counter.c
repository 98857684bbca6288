/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is what is read as the counter of a type its count of references at all? A
 * wrong field tells of deaths that were none and of references that nobody
 * took. Each type is judged by what its lives show, all of them together:
 *
 *  - it moves as the operations do. Operations that are not seen make a right
 *    counter jump now and then, and races of threads a little more often; what
 *    disagrees more often than it agrees is none.
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
	uint32_t at = UINT32_MAX;
	struct lt_inc *inc;

	type->counting.off = true;
	if (type->start_learnt) {
		type->start = RT_START_UNKNOWN;
		type->start_learnt = false;
	}
	while ((inc = lt_row_older(&lt->live, &at))) {
		if (inc->type == index)
			recount(type, inc);
	}
}

/*
 * The balance of evidence: threads that race make two of three steps differ, so these count a quarter; and where two
 * threads meet at each object all of theirs cross, so of these a few that agree weigh more than all.
 */
static uint64_t against(const struct lt_counting *c)
{
	return c->differ + c->raced / 4 + c->crossed / 32;
}

/*
 * A thread tells of its operation behind it, and may come late: another one has told meanwhile, of a counter that had
 * moved for no reason yet. What that one was off, the late one is as well, the other way.
 */
static bool has_crossed(const struct lt_inc *inc, const struct lt_seen *seen, int64_t off)
{
	return inc->astray && off == -inc->astray && inc->last_tid != seen->ev.tid &&
	       (int64_t)(seen->ev.time_ns - inc->last_ns) <= LT_RACE_NS;
}

/* A step that differs, and was counted as such: does it explain the last one that did? */
static void differs(struct lt_counting *c, struct lt_inc *inc, const struct lt_seen *seen, bool raced)
{
	int64_t off = seen->raw - inc->due;

	if (has_crossed(inc, seen, off)) {
		c->differ--;
		c->raced--;
		c->crossed += 2;
		inc->fits += inc->fits < 0;
		inc->astray = 0;
		return;
	}
	inc->astray = raced || off != (int16_t)off || off == INT16_MIN ? 0 : (int16_t)off;
}

/* The counter did what the operation before seen should have done to it, or not. */
static void step(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen, bool agrees)
{
	struct lt_counting *c = counting_of(lt, inc);
	const bool raced = lt_counter_count(c, inc, seen->ev.tid, seen->ev.time_ns, agrees);

	if (!agrees)
		differs(c, inc, seen, raced);
	if (!c->off && against(c) > 2 * c->agree && against(c) >= MANY && !agrees)
		disbelieve(lt, inc->type);
	else if (c->off && c->agree > 2 * against(c))
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
		lt_counter_unread(inc, ev->delta);
		return;
	}
	/* read before or after the operation: who can tell */
	if (ev->flags & LT_EV_RETURN) {
		inc->counts = false;
		return;
	}
	if (inc->counts && inc->moved)
		step(lt, inc, seen, seen->raw == inc->due);
	if (inc->nr == 1 && inc->has_new && inc->born == INT32_MIN)
		lt_counter_birth(lt, inc, seen);
	lt_counter_due(inc, seen->raw, ev->delta);
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
	if (seen->ev.delta > 0 && !seen->raw && !inc->freed && !inc->rose) {
		counting_of(lt, inc)->rose++;
		inc->rose = true;
	}
	if (seen->ev.delta >= 0 || inc->born != 0 || inc->over)
		return;
	counting_of(lt, inc)->zero_over++;
	inc->over = true;
}

#define ULL(x) ((unsigned long long)(x))

/* what the births need as proof, where nobody said with what objects begin; *ret_most: it concerns most objects */
static const char *births(struct rt_lifetime *lt, uint32_t index, struct rt_arena *arena, bool *ret_most)
{
	struct lt_type *type = &lt->types.data[index];
	struct lt_counting c = type->counting;
	uint64_t born = c.born_one + c.born_zero + c.born_more + c.born_odd;
	const struct lt_inc *inc;
	uint32_t at = UINT32_MAX;

	*ret_most = true;
	if (c.born_odd * 2 > born)
		return lt_printf(arena, "%llu of %llu objects began with what is no count", ULL(c.born_odd), ULL(born));
	if (!type->start_learnt && !c.off)
		return NULL;
	while ((inc = lt_row_older(&lt->live, &at))) {
		if (inc->type == index)
			rest(&c, inc);
	}
	type->counting.more_unproven = c.born_more && c.more_died <= c.more_rest;
	type->counting.zero_unproven = c.born_zero && c.zero_over * 2 >= c.born_zero;
	*ret_most = type->counting.more_unproven * c.born_more + type->counting.zero_unproven * c.born_zero > born / 2;
	if (type->counting.more_unproven)
		return lt_printf(arena, "%llu objects began with more than 1 reference, and %llu of them got to 0",
				 ULL(c.born_more), ULL(c.more_died));
	if (type->counting.zero_unproven)
		return lt_printf(arena, "%llu objects began with 0, and %llu of them were put when it was 0",
				 ULL(c.born_zero), ULL(c.zero_over));
	return NULL;
}

const char *lt_counter_wrong(struct rt_lifetime *lt, uint32_t index, struct rt_arena *arena)
{
	struct lt_type *type = &lt->types.data[index];
	const struct lt_counting *c = &type->counting;
	bool most = true;
	const char *why = births(lt, index, arena, &most);
	const uint64_t differ = c->differ + c->raced + c->crossed;

	if (against(c) > 1 && against(c) > c->agree) {
		most = true;
		why = lt_printf(arena, "it did not follow %llu of %llu gets and puts", ULL(differ),
				ULL(differ + c->agree));
	}
	type->miscounted = why && most;
	return why;
}

bool lt_counter_rests(const struct lt_type *type)
{
	enum { SURE = 4, PART = 4 };

	return type->counting.rose >= SURE && type->counting.rose >= type->put_deaths / PART;
}

bool lt_counter_vague(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	const struct lt_counting *c = &lt->types.data[inc->type].counting;

	if (inc->fits <= -2)
		return true;
	if (inc->born == INT32_MIN || inc->born == 1)
		return false;
	return inc->born < 0 || inc->born >= LT_COUNT_SANE || (inc->born ? c->more_unproven : c->zero_unproven);
}
