/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last pointer. A function that stores another pointer, or NULL, where one to the object was, or frees the block
 * that this lies in, and does not put the object, has lost the reference that the slot stood for: it has no get or put
 * on the object at all, and is guilty all the same.
 *
 * Not each slot stands for a reference. One that a function overwrites in healthy objects, too, and nobody puts for
 * that, was borrowed: nearly all objects that it overwrote a pointer to, without a put, must have been left. And one in
 * which it mostly finds what is no object, or one that others have put long ago, held nothing: the memory is new to it.
 */
#include <limits.h>

#include "base/words.h"
#include "lifetime/answer.h"
#include "lifetime/slot.h"
#include "lifetime/stem.h"

static const double SHARE = 0.8, FEW = 2;
enum { CALLERS = 3 /* that put what they had cleared then */, BEHIND = 2 /* pointers to what was put behind that */ };
/* for a source id: something puts such objects, but not for sure these */
static const uint64_t FURTHER_IN = UINT64_MAX;
/* beside one: it ends the very same, by its name */
static const uint64_t TWIN = (uint64_t)1 << 32;
/* what it put the parts for jumped to free() itself: the function holds nothing */
static const uint64_t JUMPED = (uint64_t)1 << 33;

/* the block that the slot lies in is freed there */
static bool is_block(const struct lt_answer *a, const struct lt_event *e)
{
	return lt_event_point(a->lt, e)->aux == RT_AUX_BLOCK;
}

/*
 * Nobody was seen to store the pointer there, and the function finds it at that place of a block again when it frees
 * another one: it lies in memory that is used over and over.
 */
static bool found_again(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	bool again = false;

	for (uint32_t k = 0; w->slot && is_block(a, w) && k < inc->nr; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->slot != w->slot)
			continue;
		if (lt_slot_fills(a->lt, e) || lt_event_takes(e))
			return false;
		again |= k != i && is_block(a, e) && lt_event_function(a->lt, e) == lt_event_function(a->lt, w);
	}
	return again;
}

static bool drops(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	return lt_slot_dropped(a->lt, inc, i) && !found_again(a, inc, i);
}

/* the function has lost a pointer to the object before event number i */
static bool dropped_earlier(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++) {
		if (lt_event_function(a->lt, &inc->ledger[k]) == lt_event_function(a->lt, &inc->ledger[i]) &&
		    drops(a, inc, k))
			return true;
	}
	return false;
}

/*
 * The event from number `from` on that frees the block to which the object's one reference went last; *ret_stored: the
 * store that it went there by. LT_NO_EVENT: none.
 */
static uint32_t freed_with(const struct lt_answer *a, const struct lt_inc *inc, uint32_t from, uint32_t *ret_stored)
{
	uint32_t stored = LT_NO_EVENT;

	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (lt_slot_fills(a->lt, e))
			stored = i;
		else if (i >= from && stored != LT_NO_EVENT && e->slot == inc->ledger[stored].slot &&
			 lt_point_looks(lt_event_point(a->lt, e))) {
			*ret_stored = stored;
			return i;
		}
	}
	return LT_NO_EVENT;
}

static void count(struct lt_answer *a, const struct lt_inc *inc, struct rt_map *dropped, struct rt_map *freed)
{
	uint32_t stored, i;

	for (i = 0; i < inc->nr; i++) {
		if (drops(a, inc, i) && !dropped_earlier(a, inc, i))
			lt_count_one(dropped, rt_key_make(lt_event_function(a->lt, &inc->ledger[i]), inc->type));
	}
	if (!lt_has_one(inc))
		return;
	for (i = freed_with(a, inc, 0, &stored); i != LT_NO_EVENT; i = freed_with(a, inc, i + 1, &stored))
		lt_count_one(freed, rt_key_make(lt_event_function(a->lt, &inc->ledger[i]), inc->type));
}

void lt_overwrites_left(struct lt_answer *a, const struct lt_inc *inc)
{
	count(a, inc, &a->dropped_left, &a->freed_left);
}

/* of an object that was seen to be made: by that function and one that puts it */
static struct rt_key key_of_made(const struct lt_answer *a, const struct lt_inc *inc, uint32_t function)
{
	return rt_key_make((uint64_t)lt_event_function(a->lt, &inc->ledger[0]) << 32 | function, inc->type);
}

/* what is done to the object next behind event number i is that the caller of its function puts it: "unlink(o); put(o)"
 */
static bool put_behind(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	unsigned own, in;

	for (uint32_t k = i + 1; k < inc->nr; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->delta)
			return e->delta < 0 && e->tid == w->tid && lt_come_together(a->lt, e, w, &own, &in) && !own &&
			       in == 1;
	}
	return false;
}

void lt_overwrites_healthy(struct lt_answer *a, const struct lt_inc *inc)
{
	count(a, inc, &a->dropped_healthy, &a->freed_healthy);
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (lt_slot_empties(a->lt, e) && !is_block(a, e) && put_behind(a, inc, i))
			lt_count_one(&a->put_behind, rt_key_make(lt_event_function(a->lt, e), inc->type));
	}
	for (uint32_t i = 1; i < inc->nr && inc->ledger[0].op == RT_OP_NEW; i++) {
		if (inc->ledger[i].delta < 0)
			lt_count_one(&a->puts_made, key_of_made(a, inc, lt_event_function(a->lt, &inc->ledger[i])));
	}
}

bool lt_puts_made(const struct lt_answer *a, const struct lt_inc *inc, uint32_t function)
{
	return inc->nr && inc->ledger[0].op == RT_OP_NEW &&
	       lt_counted(&a->puts_made, key_of_made(a, inc, function)) > 0;
}

/* objects from which the function took a pointer without a put, and that ended all the same */
static double in_healthy(const struct lt_answer *a, uint32_t function, uint32_t type)
{
	return lt_counted(&a->dropped_healthy, rt_key_make(function, type)) * a->healthy_each;
}

/* it takes references of the type itself: what it stores stands for one */
static bool takes(const struct lt_answer *a, uint32_t function, uint32_t type)
{
	for (size_t i = 0; i < a->lt->uses.len; i++) {
		const struct lt_use *use = &a->lt->uses.data[i];
		const struct lt_point *p = &a->lt->points.data[use->point];

		if (use->events && p->type == type && lt_site_passes(a->lt, use->site, function) &&
		    (p->op == RT_OP_GET || p->op == RT_OP_NEW))
			return true;
	}
	return false;
}

bool lt_overwritten_all(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;
	int64_t n = 0;

	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		const uint32_t function = lt_event_function(a->lt, e);

		/* what goes away with its block is that one's business who puts what such blocks have */
		n += drops(a, inc, i) && (takes(a, function, inc->type) ||
					  ((!is_block(a, e) || lt_puts_itself(a->lt, function, inc->type)) &&
					   lt_slot_owned(a->lt, inc, i)));
	}
	/* where other slots have all that is left, it is not what the emptied ones had */
	return inc->known && n >= inc->balance && lt_slots_kept(a->lt, inc) < inc->balance;
}

/* the same pointer once more: a helper frees the block that it was given by who was about to free it */
static bool dropped_before(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];

	for (uint32_t k = i; w->slot && k-- > 0;) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->delta || (e->slot == w->slot && lt_point_stores(lt_event_point(a->lt, e))))
			return false;
		if (e->slot == w->slot && e->tid == w->tid && drops(a, inc, k))
			return true;
	}
	return false;
}

/* event number i frees the very block that the one before it does: both have lost the pointer that is there twice */
static bool same_block(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *e = &inc->ledger[i];

	return i && is_block(a, e) && is_block(a, e - 1) && e->act && e->act == e[-1].act && e->slot != e[-1].slot &&
	       a->lt->uses.data[e->use].site == a->lt->uses.data[e[-1].use].site && drops(a, inc, i - 1);
}

/* Pointers to the object that the function lost, and nobody put; *ret_blocks: those that went with one block are one.
 */
static int64_t dropped_by(const struct lt_answer *a, const struct lt_inc *inc, uint32_t function, int64_t *ret_blocks)
{
	int64_t n = 0;

	*ret_blocks = 0;
	for (uint32_t i = 0; i < inc->nr; i++) {
		if (!drops(a, inc, i) || dropped_before(a, inc, i) ||
		    lt_event_function(a->lt, &inc->ledger[i]) != function)
			continue;
		n++;
		*ret_blocks += !same_block(a, inc, i);
	}
	return n;
}

/*
 * Before event number i one run stored the pointer into the slot where another one had left it, and no reference was
 * taken for that: it stands for none.
 */
static bool stored_over_itself(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *last = NULL;

	for (uint32_t k = 0; inc->ledger[i].slot && k < i; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->slot != inc->ledger[i].slot)
			continue;
		if (lt_slot_empties(a->lt, e) || e->delta)
			last = NULL;
		if (!lt_slot_fills(a->lt, e))
			continue;
		if (last && e->act && last->act && e->act != last->act)
			return true;
		last = e;
	}
	return false;
}

/*
 * Another run of the function that did event number i, or the same place of its code for another slot, empties one that
 * is known to stand for no reference.
 */
static bool lends(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	uint32_t function = lt_event_function(a->lt, w);

	if (stored_over_itself(a, inc, i))
		return true;
	for (uint32_t k = 0; k < inc->nr; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if ((e->act != w->act || (e->use == w->use && e->slot != w->slot)) && lt_slot_borrowed(a->lt, inc, k) &&
		    lt_event_function(a->lt, e) == function)
			return true;
	}
	return false;
}

/* These do not stand for what is left: there are more of them, or, where blocks went with them, fewer. */
static bool borrowed(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i, bool freed)
{
	int64_t blocks, n = dropped_by(a, inc, lt_event_function(a->lt, &inc->ledger[i]), &blocks);

	return lends(a, inc, i) || (inc->known && (blocks > inc->balance || (freed && n < inc->balance)));
}

/*
 * A run that took the reference and passed the object to nobody who may keep it has it itself, whatever the functions
 * that it calls do to w.
 */
static bool still_held(const struct lt_answer *a, const struct lt_ref *ref, const struct lt_event *w)
{
	const struct lt_inc *inc = ref->inc;
	const struct lt_event *taken = &inc->ledger[ref->ev];
	unsigned out, in;

	if (!lt_come_together(a->lt, taken, w, &out, &in) || out || !in)
		return false;
	for (uint32_t i = ref->ev + 1u; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->op == RT_OP_MOVE && e->act == taken->act && lt_point_given(lt_event_point(a->lt, e)))
			return false;
	}
	return taken->op == RT_OP_GET;
}

/*
 * The call that led to the put led to the free() as well: what stands between has no frame there, as it jumped to
 * free(), and is who called the destructor. "obj_put(o)" jumps to obj_free(o), which calls o->ops->fini(o).
 */
static bool freed_by_jump(const struct lt_answer *a, const struct lt_use *put, uint32_t function)
{
	const struct rt_lifetime *lt = a->lt;

	for (size_t i = 0; i < lt->uses.len; i++) {
		const struct lt_use *freed = &lt->uses.data[i];

		if (freed->events && lt->points.data[freed->point].aux == RT_AUX_BLOCK &&
		    lt_site_function(lt, freed->site) == function && lt_use_within_call(lt, put, freed, 2))
			return true;
	}
	return false;
}

/*
 * A destructor that a function calls for the parts of what it frees puts what these held: where the function itself
 * puts no such objects, and one that it calls itself does, it was that one's to put. Those further in take apart what
 * the parts hold, in blocks of their own: *ret_further says that there are such.
 */
static uint64_t done_within(const struct lt_answer *a, uint32_t function, uint32_t type, bool *ret_further)
{
	const struct rt_lifetime *lt = a->lt;
	uint32_t site = 0;
	uint64_t most = 0, jumped = 0;

	for (size_t i = 0; i < lt->uses.len; i++) {
		const struct lt_use *use = &lt->uses.data[i];
		const struct lt_point *p = &lt->points.data[use->point];
		unsigned depth = UINT_MAX;
		bool called;

		if (use->events && p->type == type && p->op == RT_OP_PUT)
			depth = lt_use_depth(lt, use, function);
		if (depth == UINT_MAX)
			continue;
		if (lt_site_function(lt, use->site) == function) {
			*ret_further = false;
			return 0;
		}
		called = depth == 1 || freed_by_jump(a, use, function);
		*ret_further |= !called;
		if (called && use->events > most) {
			most = use->events;
			site = use->site;
			jumped = depth == 1 ? 0 : JUMPED;
		}
	}
	return site ? lt_site(lt, site)->src[0] | jumped : 0;
}

/*
 * What was inlined into a function to take apart what it frees, as it puts objects of other types, which the function
 * itself never does. 0: nothing was.
 */
static uint32_t parted_within(const struct lt_answer *a, uint32_t function)
{
	const struct rt_lifetime *lt = a->lt;
	uint32_t site = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < lt->uses.len; i++) {
		const struct lt_use *use = &lt->uses.data[i];

		if (!use->events || lt->points.data[use->point].op != RT_OP_PUT)
			continue;
		if (lt_site_function(lt, use->site) == function)
			return 0;
		if (use->events > most && lt_use_inlined(lt, use, function)) {
			most = use->events;
			site = use->site;
		}
	}
	return site ? lt_site(lt, site)->src[0] : 0;
}

/*
 * x_del() calls x_fini(), which takes x apart, and frees it then: what x held was the latter's to put. What just resets
 * it leaves it whole. 0: it is not so
 */
static uint32_t twin_within(const struct rt_lifetime *lt, uint32_t function)
{
	static const char *const resets[] = { "reset" };
	uint32_t src[LT_LEVELS];
	uint16_t place[LT_LEVELS];

	for (size_t i = 0; i < lt->uses.len; i++) {
		const struct lt_use *use = &lt->uses.data[i];
		unsigned n = use->events ? lt_use_levels(lt, use, src, place, LT_LEVELS) : 0;

		for (unsigned k = 1; k < n; k++) {
			const char *inner = lt_src_text(lt, src[k - 1]);

			if (lt_src(lt, src[k])->function == function && !rt_words_have(inner, resets, 1) &&
			    lt_stem_twins(inner, lt_src_text(lt, src[k])))
				return src[k - 1];
		}
	}
	return 0;
}

void lt_overwrites_settle(struct lt_answer *a, uint32_t type)
{
	const struct rt_map_slot *s;
	size_t pos = 0;

	while ((s = rt_map_next(&a->dropped_left, &pos))) {
		uint64_t *src = s->key.b == type ? rt_map_put(&a->taken_apart, s->key, NULL) : NULL;
		bool further = false;

		a->nomem |= s->key.b == type && !src;
		if (!src)
			continue;
		*src = twin_within(a->lt, (uint32_t)s->key.a);
		if (*src) {
			*src |= TWIN;
			continue;
		}
		*src = done_within(a, (uint32_t)s->key.a, type, &further) ?: parted_within(a, (uint32_t)s->key.a);
		if (!*src && further)
			*src = FURTHER_IN;
	}
}

/*
 * The place that e lies at stores pointers to such objects, and mostly not over others: where it does, the memory may
 * have been freed in between, which nobody saw.
 */
static bool seldom(const struct lt_answer *a, const struct lt_event *e)
{
	const struct lt_point *point = lt_event_point(a->lt, e);
	uint64_t stored = 0;

	for (size_t i = 0; point->aux != RT_AUX_BLOCK && i < a->lt->points.len; i++) {
		const struct lt_point *p = &a->lt->points.data[i];

		if (lt_point_stores(p) && p->type == point->type && p->name == point->name &&
		    p->module == point->module)
			stored += p->hits;
	}
	return stored > 2 * point->found;
}

static uint32_t module_of(const struct lt_answer *a, const struct lt_event *e)
{
	return lt_src(a->lt, lt_event_src(a->lt, e))->frame.module_id;
}

/*
 * Event number i found the pointer in a block that was freed, and it was not the library that stored it there that
 * freed it: an allocator, that takes anything apart.
 */
static bool frees_others(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];

	for (uint32_t k = i; lt_point_looks(lt_event_point(a->lt, w)) && k-- > 0;) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->slot == w->slot && lt_point_stores(lt_event_point(a->lt, e)))
			return module_of(a, e) != module_of(a, w);
	}
	return false;
}

/* the slot that the reference was taken for was emptied without a put; 0: not so, or it was passed on from there */
static struct lt_loser own_slot(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;
	uint32_t i = lt_slot_lost(a->lt, inc, ref->ev),
		 function = i == LT_NO_EVENT ? 0 : lt_event_function(a->lt, &inc->ledger[i]);
	double left = lt_counted(&a->dropped_left, rt_key_make(function, inc->type));
	double healthy = in_healthy(a, function, inc->type);
	/* what no code was seen to know of has to be odd, and is likely at most */
	const bool looked = function && lt_point_looks(lt_event_point(a->lt, &inc->ledger[i]));
	const double least = looked ? SHARE * (left + healthy) : healthy;
	int64_t blocks;

	/* who lost more pointers to it than are left, or some that were borrowed, had borrowed this one, too */
	if (!function || left < least || lends(a, inc, i) || frees_others(a, inc, i) || lt_received_before(a, inc, i))
		return (struct lt_loser){ 0 };
	dropped_by(a, inc, function, &blocks);
	if (inc->known && blocks > inc->balance)
		return (struct lt_loser){ 0 };
	/* what looks like a free() is the put of the object that the slot lies in, and that lives on with the pointer
	 */
	if (is_block(a, &inc->ledger[i]) && lt_in_holder(a->lt, inc, inc->ledger[i].slot))
		return (struct lt_loser){ 0 };
	return (struct lt_loser){ .by = lt_event_src(a->lt, &inc->ledger[i]),
				  .at = i,
				  .freed = is_block(a, &inc->ledger[i]),
				  .thin = seldom(a, &inc->ledger[i]) || looked,
				  .own = true };
}

/*
 * The block that the object's one reference went to last was freed with it: whoever received it after that only looked
 * at it, and what that function frees so in healthy objects it has not handed on. 0: it is not so.
 */
static struct lt_loser last_block(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;
	uint32_t stored = LT_NO_EVENT, i = LT_NO_EVENT, next = ref->ev;
	struct rt_key key;
	double left, healthy;

	while (lt_has_one(inc) && (next = freed_with(a, inc, next + 1u, &stored)) != LT_NO_EVENT)
		i = next;
	if (i == LT_NO_EVENT || !lt_event_function(a->lt, &inc->ledger[i]))
		return (struct lt_loser){ 0 };
	for (uint32_t k = stored + 1; k < inc->nr; k++) {
		/* it went on, or to who should have ended it */
		if (lt_slot_fills(a->lt, &inc->ledger[k]) || lt_point_ends(lt_event_point(a->lt, &inc->ledger[k])))
			return (struct lt_loser){ 0 };
	}
	key = rt_key_make(lt_event_function(a->lt, &inc->ledger[i]), inc->type);
	left = lt_counted(&a->freed_left, key);
	healthy = lt_counted(&a->freed_healthy, key) * a->healthy_each;
	if (left < SHARE * (left + healthy) || frees_others(a, inc, i) || !lt_slot_only(a->lt, inc, stored, i) ||
	    !lt_received_to_look(a, inc, stored, inc->nr))
		return (struct lt_loser){ 0 };
	return (struct lt_loser){ .by = lt_event_src(a->lt, &inc->ledger[i]), .at = i, .freed = true, .thin = true };
}

/* the reference is known to be kept in another slot than event number i emptied, of which nobody knows what it held */
static bool elsewhere(const struct lt_answer *a, const struct lt_ref *ref, uint32_t i)
{
	const struct lt_event *taken = &ref->inc->ledger[ref->ev], *w = &ref->inc->ledger[i];

	return (taken->flags & LT_EV_KEPT) && w->slot && taken->slot != w->slot && !lt_slot_owned(a->lt, ref->inc, i);
}

/*
 * The pointer that event number i took out of its slot was stored there before the reference was taken, by a run that
 * had nothing to do with that: it stood for another one.
 */
static bool was_there_before(const struct lt_answer *a, const struct lt_ref *ref, uint32_t i)
{
	const struct lt_inc *inc = ref->inc;
	const struct lt_event *taken = &inc->ledger[ref->ev];
	unsigned out, in;

	for (uint32_t k = i; inc->ledger[i].slot && k-- > 0;) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->slot == inc->ledger[i].slot && lt_slot_fills(a->lt, e))
			return k < ref->ev && e->act != taken->act && !lt_come_together(a->lt, e, taken, &out, &in);
	}
	return false;
}

/* Whose store or free() it was, by the event of it. */
static struct lt_loser loser_of(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;
	struct lt_loser own = own_slot(a, ref);

	if (own.by)
		return own;
	for (uint32_t i = inc->nr; i-- > ref->ev + 1u;) {
		bool freed = is_block(a, &inc->ledger[i]);
		uint32_t function;
		double left, healthy;

		/* who frees a block of somebody's has lost that one's */
		if (!drops(a, inc, i) || lt_point_looks(lt_event_point(a->lt, &inc->ledger[i])) ||
		    elsewhere(a, ref, i) || was_there_before(a, ref, i) || lt_received_before(a, inc, i) ||
		    (lt_has_one(inc) && lt_received_passed_on(a, inc, i)))
			continue;
		function = lt_event_function(a->lt, &inc->ledger[i]);
		left = lt_counted(&a->dropped_left, rt_key_make(function, inc->type));
		healthy = in_healthy(a, function, inc->type);
		if (left < SHARE * (left + healthy) || borrowed(a, inc, i, freed) ||
		    (freed && still_held(a, ref, &inc->ledger[i])))
			continue;
		return (struct lt_loser){ .by = lt_event_src(a->lt, &inc->ledger[i]),
					  .at = i,
					  .freed = freed,
					  .thin = left < FEW || seldom(a, &inc->ledger[i]),
					  .always = freed && left > FEW && !healthy };
	}
	return last_block(a, ref);
}

/* who ends something, by its name, and calls what ends other things: the pointer that it held itself was its own */
static bool takes_other_apart(const struct lt_answer *a, const struct lt_loser *loser, uint64_t within)
{
	const char *name = lt_src_text(a->lt, loser->by);

	return !(within & (TWIN | JUMPED)) && rt_words_end(name) &&
	       (loser->own || !lt_stem_within(lt_src_text(a->lt, (uint32_t)within), name));
}

/*
 * Source id of who is inlined into the function that event number i frees the block in, or called by it before, and
 * ends the part that held the pointer, by its name and what it is given; 0: nobody, or the function puts such objects
 * itself.
 */
static uint32_t part_ender(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	struct lt_point as = *lt_event_point(a->lt, &inc->ledger[i]);

	if (!as.ender || lt_puts_itself(a->lt, lt_event_function(a->lt, &inc->ledger[i]), inc->type))
		return 0;
	as.name = as.ender;
	as.function = 0;
	return lt_src_named(a->lt, &as);
}

/*
 * What the function calls has put this very object there, for another reference: one that it had taken itself, so that
 * its puts say nothing about who was to put this one.
 */
static bool put_another(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_loser *loser, uint32_t src)
{
	for (uint32_t i = 0; i < loser->at; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->delta < 0 && lt_event_function(a->lt, e) == lt_src(a->lt, src)->function &&
		    lt_use_depth(a->lt, &a->lt->uses.data[e->use], lt_src(a->lt, loser->by)->function) != UINT_MAX)
			return true;
	}
	return false;
}

/*
 * Source id of who called the function that event number i tells to have cleared a slot, where callers put what was in
 * it, before that or behind it, and it never did itself; 0: it is not so.
 */
static uint32_t cleared_for(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	const struct rt_key key = rt_key_make(lt_event_function(a->lt, w), inc->type);
	const double behind = lt_counted(&a->put_behind, key);

	if (lt_event_point(a->lt, w)->cleared < CALLERS &&
	    (behind < BEHIND || behind < SHARE * (behind + lt_counted(&a->dropped_healthy, key)) ||
	     lt_puts_itself(a->lt, lt_event_function(a->lt, w), inc->type)))
		return 0;
	return lt_src_around(a->lt, w, 1);
}

/*
 * Source id of who called the function that event number i tells to have cleared a slot, where by its name the caller
 * ends things and the function does not: "x_unref(x)" calls "x_defaults(x)" at its end. 0: it is not so, or the
 * function puts such objects itself.
 */
static uint32_t cleared_at_the_end(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	const uint32_t by = lt_event_src(a->lt, w), caller = lt_src_around(a->lt, w, 1);

	if (!caller || rt_words_end(lt_src_text(a->lt, by)) || !rt_words_destroy(lt_src_text(a->lt, caller)) ||
	    takes(a, lt_event_function(a->lt, w), inc->type) ||
	    lt_puts_itself(a->lt, lt_event_function(a->lt, w), inc->type))
		return 0;
	return caller;
}

struct lt_loser lt_overwriter(const struct lt_answer *a, const struct lt_ref *ref)
{
	struct lt_loser loser = loser_of(a, ref);
	const uint64_t *within =
		rt_map_get(&a->taken_apart, rt_key_make(lt_src(a->lt, loser.by)->function, ref->inc->type));
	uint32_t destroyer = loser.freed ? lt_destroyer_before(a, ref, loser.at) : 0;
	uint32_t caller = loser.by && !loser.freed ? cleared_for(a, ref->inc, loser.at) : 0;

	if (!caller && loser.by && !loser.freed) {
		caller = cleared_at_the_end(a, ref->inc, loser.at);
		loser.ends = caller;
	}
	if (caller) {
		loser.by = caller;
		loser.cleared = true;
		return loser;
	}
	if (!destroyer && loser.freed)
		destroyer = part_ender(a, ref->inc, loser.at);
	if (destroyer) {
		loser.around = loser.by;
		loser.by = destroyer;
		return loser;
	}
	if (!loser.freed || !within || !*within)
		return loser;
	if (*within != FURTHER_IN && put_another(a, ref->inc, &loser, (uint32_t)*within))
		return loser;
	if (*within == FURTHER_IN || takes_other_apart(a, &loser, *within)) {
		loser.thin |= !loser.own;
	} else {
		loser.around = loser.by;
		loser.by = (uint32_t)*within;
	}
	return loser;
}
