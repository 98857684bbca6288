/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who is to blame for a reference that was left open. Events alone allow this much:
 *
 * Is it a leak?
 *  - The census found no pointer to the object: certain. The open reference is
 *    the fault; where several could be, the doubt of the matching lowers confidence.
 *  - Somebody points to it: a cache, unless healthy twins overrule: references
 *    of this site are closed by the function that took them (at least TWINS of
 *    them, OWN of all), the activation that took this one is proven over, and few stay
 *    open. How sure depends on whether there are more references than pointers,
 *    and on what became of other objects that this site left open.
 *    More open references than pointers alone is a suspicion.
 *  - No census: twins as above; or references of this site are closed elsewhere
 *    and younger ones were (a queue that is not yet drained has no younger ones
 *    gone); or objects of the type die, but none that passed here. A name that says
 *    "add", "cache", ... and a type of which no object ever dies make it a suspicion only.
 *  - A process that did not end well leaves everything behind: only twins whose
 *    activation is proven over count, and what was seen to be lost before.
 *  - A process that was let go and goes on may have been at work on the youngest.
 *  - Events are missing for this object or type: a suspicion at most. Functions
 *    that are not probed do not matter where the counter was read at the end and agrees.
 *
 * Who is it?
 *  - F, the innermost source function that took the reference.
 *  - F returns the object and never closes such references itself: F's caller. Where returns are seen (hand.c), only
 *    if F returned this one; and the same for what F leaves where a T ** of its caller points to.
 *  - Healthy twins are closed in another function P, and P worked on this
 *    object: P (it took the reference over). P did not: P still, where it runs
 *    in another thread and F did all that it does with healthy objects, the
 *    hand-over included; else F, with P as alternative.
 *  - F took two references in one activation and gave back fewer: an extra get.
 *  - F makes objects of another type, and as many of these ended as references were left: what ends them (holder.c).
 */
#include <math.h>
#include <string.h>

#include "lifetime/answer.h"
#include "lifetime/slot.h"
#include "lifetime/stem.h"

static const double TWINS = 3, OWN = 0.9, SHOWN = 0.65, SUSPECT = 0.45, TWICE = 0.65, LEFT_TO_POOL = 0.4,
		    STANDING = 0.3;

/* It was at work on the object when the look at the process ended: what comes next was not seen. */
static bool in_work(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	enum { FRESH_NS = 50000000 }; /* a thread may wait that long for a processor */
	const uint64_t *at = rt_map_get(&lt->process_by_pid, rt_key_make(inc->pid, 0));
	const struct lt_process *p = at ? &lt->processes.data[*at] : NULL;

	return p && p->left_ns && !p->ended && inc->last_ns + FRESH_NS > p->left_ns;
}

/* nothing runs any more of that activation; 0: which one it is is not known */
static bool is_over(const struct lt_answer *a, uint32_t act)
{
	return act && !rt_map_get(&a->running, rt_key_make(act, 0));
}

bool lt_activation_over(const struct lt_answer *a, const struct lt_ref *ref, bool *ret_proven)
{
	const struct lt_event *e = &ref->inc->ledger[ref->ev];
	uint32_t act = lt_site(a->lt, ref->site)->nr > 1 ? e->up : e->act;

	*ret_proven = is_over(a, act);
	/* the end of the process ends every function, though not always by its return */
	return *ret_proven || lt_ended_well(a->lt, ref->inc->pid);
}

bool lt_puts_unseen(const struct lt_type *type)
{
	const uint64_t *op = type->op;

	return !(type->flags & RT_TYPE_HEAP_ONLY) && !op[RT_OP_PUT] && op[RT_OP_FREE] &&
	       (op[RT_OP_GET] || op[RT_OP_FREE] > op[RT_OP_NEW]);
}

bool lt_damaged(const struct rt_lifetime *lt, const struct lt_type *type)
{
	return lt_puts_unseen(type) || type->damaged || type->miscounted || lt->unbound_loss || lt->cut ||
	       lt->untraced || lt->gaps || lt->inconsistent || lt->lifeless || lt->late_birth || lt->began_earlier ||
	       lt->goes_on;
}

/*
 * No pointer tells who has a descriptor. One may be there for all of its process' life (a wakeup), and so may some
 * where not many more were closed.
 */
static bool may_be_for_life(const struct lt_answer *a, const struct lt_ref *ref, double closed)
{
	const uint64_t *left = rt_map_get(&a->left_here, rt_key_make(ref->inc->pid, ref->site));

	return !left || *left < 2 || closed < 4 * (double)*left;
}

/* without a census, and not closed where it was taken: do twins say that this reference should have been closed? */
static double by_twins(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref)
{
	const struct lt_stat *stat = lt_learnt_stat(m->learnt, ref->site);
	double closed = lt_model_closed(m, ref->site);
	uint64_t taken_ns = ref->inc->ledger[ref->ev].time_ns;

	if (!lt_ended_well(a->lt, ref->inc->pid))
		return 0;
	if (closed >= TWINS) {
		if (!stat || stat->newest_ns <= taken_ns)
			return 0.3; /* the youngest ones: on their way */
		if (m->type->flags & RT_TYPE_DESCRIPTOR && may_be_for_life(a, ref, closed))
			return SUSPECT;
		return lt_site_keeps(a->lt, ref->site) ? 0.35 : 0.65;
	}
	if (!m->learnt->healthy)
		return lt_site_keeps(a->lt, ref->site) ? 0.2 : 0.4;
	if (lt_kept(a, ref))
		return 0.3;
	if (ref->inc->last_ns < m->type->first_death_ns)
		return 0.3; /* made at the start, never touched again: a table or a pool */
	return lt_site_keeps(a->lt, ref->site) ? 0.35 : 0.6;
}

/*
 * The reference was taken through helpers, by an owner who is known: as good as twins of his own where he never gives
 * such a reference back, or has left more than one.
 */
static bool owes(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref,
		 const struct lt_blame *b)
{
	const uint64_t *left = rt_map_get(&a->owner_left, rt_key_make(lt_src(a->lt, b->owner)->function,
								      (uint64_t)(m->type - a->lt->types.data)));

	return left && *left > 1 && ref->inc->known;
}

static void note_worker(uint32_t *of, unsigned *nr, unsigned max, uint32_t function)
{
	for (unsigned i = 0; i < *nr; i++) {
		if (of[i] == function)
			return;
	}
	if (*nr < max)
		of[(*nr)++] = function;
}

void lt_workers(struct lt_answer *a, uint32_t type, const struct lt_model *m)
{
	struct lt_workers *w = &a->workers;

	*w = (struct lt_workers){ 0 };
	for (size_t i = 0; i < a->lt->uses.len && w->keepers < LT_KEEPERS; i++) {
		const struct lt_use *use = &a->lt->uses.data[i];
		const struct lt_point *p = &a->lt->points.data[use->point];

		if (!use->events || p->type != type || p->op != RT_OP_GET)
			continue;
		if (lt_model_closed(m, use->site) >= 1 && lt_model_own(m, use->site) >= OWN)
			note_worker(w->worker, &w->workers, LT_WORKERS, use->function);
		else
			note_worker(w->keeper, &w->keepers, LT_KEEPERS, use->function);
	}
}

/*
 * All other functions that take references to such objects give them back themselves: they take them to work with the
 * object, and none keeps one in what it returns.
 */
static bool taken_to_work(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_workers *w = &a->workers;
	uint32_t mine = lt_site_function(a->lt, ref->site);
	unsigned others = w->workers;

	for (unsigned i = 0; i < w->workers; i++)
		others -= w->worker[i] == mine;
	return others >= LT_WORKERS - 1 && (!w->keepers || (w->keepers == 1 && w->keeper[0] == mine));
}

/*
 * Nobody was ever seen to close such a reference, and the function that took it may not be the one that kept it: its
 * result is a pointer to something else, which holds the reference, or is the object under the name of what is derived
 * from it. The result of what a thread begins with is nobody's; but that, as main(), may have what it took once to its
 * end, unless it puts such objects itself, and so does not leave them to the end of the process.
 */
static bool may_have_passed_it_on(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref,
				  const struct lt_blame *b)
{
	const struct lt_site *site = lt_site(a->lt, ref->site);
	const struct rt_frame *f = &lt_src(a->lt, b->guilty)->frame;
	bool few = lt_model_left_open(m, ref->site) < 2;

	if (f->function && !strcmp(f->function, "main"))
		return few && !lt_puts_itself(a->lt, lt_src(a->lt, b->guilty)->function, ref->inc->type);
	if (b->guilty != site->src[site->nr - 1] || !lt_returns_stranger(a->lt, f) || taken_to_work(a, ref) ||
	    lt_stored_for_others(a, ref))
		return false;
	return few || !lt_starts_with(a->lt, &a->lt->uses.data[ref->inc->ledger[ref->ev].use],
				      lt_src(a->lt, b->guilty)->function);
}

/*
 * Where the function that takes such references gives them back itself, it does so mostly in the run that took them,
 * and not when it is called again. Of one that they are handed up to it is not known which run did.
 */
static bool gives_back_at_once(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref)
{
	uint32_t function = lt_site_function(a->lt, ref->site), pos = 0;
	const struct lt_cell *c;
	double own = 0, at_once = 0;

	while ((c = lt_model_next(m, ref->site, &pos))) {
		if (lt_site_function(a->lt, c->site) != function)
			continue;
		own += lt_model_pair(m, ref->site, c->site);
		at_once += lt_model_certain(m, ref->site, c->site);
	}
	return 2 * at_once >= own;
}

/*
 * That the reference is lost is certain; whose fault that is follows from what became of others like it. The figures
 * are what came true in the mass test (docs/mass.md), or above it: a function that gives such references back mostly
 * forgot this one. Where nobody was ever seen to close one, it may have been handed to a container whose end lacks the
 * put; where others close them, one of these may, and where the function itself does so when it is called again, and
 * replaces what it keeps, whoever ends what it keeps them in.
 */
static double who(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref)
{
	static const double SURE = 0.97, ALL = 0.85, NOBODY = 0.65, OTHERS = 0.55, LEAST = 0.5;
	double lost = SURE * (1 - ref->doubt), share;

	if (lt_took_twice(a, ref))
		return lost;
	if (ref->invariant)
		share = ALL;
	else if (lt_model_closed(m, ref->site) < 1)
		share = NOBODY;
	else
		share = lt_model_own(m, ref->site) >= OWN && gives_back_at_once(a, m, ref) ? SURE : OTHERS;
	/* it was taken for memory that somebody else had to give it back from */
	if (ref->inc->ledger[ref->ev].flags & LT_EV_KEPT)
		share = fmin(share, OTHERS);
	/* objects of this site mostly end in a way that is not seen, and this one, or what it was, may have, too */
	if (lt_end_unseen(m, ref->site) > lt_model_fates(m, ref->site, true))
		return fmin(lost, SUSPECT);
	/* it is lost all the same: no mere suspicion, where the matching does not make it one */
	return lost < LEAST ? lost : fmax(LEAST, share * (1 - ref->doubt));
}

static double confidence(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref,
			 struct lt_blame *b)
{
	const struct lt_inc *inc = ref->inc;
	bool proven, over = lt_activation_over(a, ref, &proven);
	bool closed = lt_model_closed(m, ref->site) >= TWINS && over, own = lt_model_own(m, ref->site) >= OWN;
	bool twins = closed && (own || (b->learnt && owes(a, m, ref, b)));

	if (inc->life == LT_LIVE && in_work(a->lt, inc))
		return 0;
	/*
	 * Exec takes everything with it, and nobody could look who still pointed to it: only what provably should have
	 * been put before counts. A block that its function mostly frees may be one of those that it hands on.
	 */
	if (lt_left_by_exec(a->lt, inc->pid))
		return twins && proven && !(m->type->flags & RT_TYPE_HEAP_ONLY) ? 0.8 : 0;
	if (inc->life != LT_LIVE || (inc->census && inc->returned)) {
		if (m->type->flags & RT_TYPE_OWNED) /* so its owner ended it, wherever that is done */
			return 0;
		b->why = "the memory was freed all the same, with the reference open";
		/* a pool that is torn down takes along what its users still held, and who used it through helpers may
		 * have ended with it: only a function that puts with its own hands is known to have forgotten */
		if (!(closed && own))
			return lt_took_twice(a, ref) ? TWICE : twins ? LEFT_TO_POOL : 0;
		/* what ends so many objects unseen may have ended the reference, too */
		return m->type->incomplete < m->type->forced ? 0.8 : SUSPECT;
	}
	if (inc->floating && lt_ended_well(a->lt, inc->pid) && (inc->nobody || !inc->census)) {
		b->why = "the floating reference was never sunk";
		return inc->nobody ? 0.95 : 0.55;
	}
	if (inc->nobody) {
		b->lost = true;
		return who(a, m, ref);
	}
	if (inc->child)
		return 0;
	if (inc->census)
		return lt_pointed(a, m, ref, twins && proven);
	if (!twins)
		return by_twins(a, m, ref);
	/* that somebody further out closes what a helper opens need not hold for each that opens by it */
	if (m->type->flags & RT_TYPE_DESCRIPTOR && b->guilty != lt_site(a->lt, ref->site)->src[0] &&
	    may_be_for_life(a, ref, lt_model_closed(m, ref->site)))
		return SUSPECT;
	/* where most stay open, those that were closed may be the exception: a failed insertion */
	if (lt_model_closed(m, ref->site) < 2 * lt_model_left_open(m, ref->site))
		return SUSPECT;
	if (!proven)
		return 0.85;
	return lt_ended_well(a->lt, inc->pid) ? 0.95 : 0.75;
}

/*
 * The outermost function of the path has put, besides what it took itself, as many references as were handed up to it:
 * one by each run of the function that took this one. What is open still was not handed up.
 */
static bool gave_back(const struct lt_ref *ref)
{
	const struct lt_event *mine = &ref->inc->ledger[ref->ev];
	uint32_t last = 0;
	int runs = 0, puts = 0;

	for (uint32_t i = 0; mine->up && mine->act && i < ref->inc->nr; i++) {
		const struct lt_event *e = &ref->inc->ledger[i];

		if (e->act == mine->up) {
			puts -= e->op == RT_OP_NEW ? 1 : e->delta;
		} else if (e->up == mine->up && e->delta >= 0 && e->act != last) {
			last = e->act;
			runs++;
		}
	}
	return runs && puts >= runs;
}

/*
 * A function returns one reference. The run that took this one has left several open, as far as stacks tell runs apart,
 * and what its callers do close is the smaller part.
 */
static bool kept_inside(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref,
			const double closed[LT_PATH])
{
	const uint64_t *n = rt_map_get(&a->runs, rt_key_make(ref->inc->ledger[ref->ev].act, ref->inc->type));
	double outside = 0;

	for (unsigned i = 1; i < LT_PATH; i++)
		outside += closed[i];
	return n && *n > 1 && outside > 0 && outside < lt_model_closed(m, ref->site) / 2;
}

/*
 * The level of the path that keeps what is handed up to it: where healthy twins are closed; without twins, the top. As
 * far as it was handed up: *ret_kept says that the function of the level did not, though it hands out others.
 */
static unsigned climb(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref, bool *ret_kept)
{
	const struct lt_site *s = lt_site(m->lt, ref->site);
	const struct lt_cell *c;
	double closed[LT_PATH] = { 0 }; /* by the functions of the path */
	double certain = 0, outside = 0;
	unsigned level = 0, top = lt_handed_up(a, ref, ret_kept);
	uint32_t pos = 0;

	while (s->nr > 1 && (c = lt_model_next(m, ref->site, &pos))) {
		uint32_t function = lt_site_function(m->lt, c->site);

		for (unsigned i = 0; function && i < s->nr; i++)
			closed[i] += lt_src(m->lt, s->src[i])->function == function ? m->n.data[c->n] : 0;
		if (lt_src(m->lt, s->src[0])->function == function)
			certain += lt_model_certain(m, ref->site, c->site);
	}
	for (unsigned i = 1; i < LT_PATH; i++)
		outside += closed[i];
	if (s->nr < 2 || kept_inside(a, m, ref, closed) || (gave_back(ref) && !lt_was_handed_up(a, ref, true))) {
		*ret_kept = false;
		return 0;
	}
	/*
	 * A run of the innermost function that closes by itself never handed up: what it hands up its callers close,
	 * and this one was seen to be handed up.
	 */
	if (closed[0] > 0 && ((outside > 0 && (closed[0] - certain) * 10 <= outside) ||
			      ((closed[0] - certain) * 10 <= certain && lt_was_handed_up(a, ref, false))))
		closed[0] = 0;
	while (level < top && closed[level] <= 0)
		level++;
	*ret_kept &= level == top;
	return level;
}

static bool event_in(const struct lt_answer *a, const struct lt_inc *inc, uint32_t function, uint16_t except)
{
	for (uint32_t i = 0; function && i < inc->nr; i++) {
		if (i != except && lt_event_function(a->lt, &inc->ledger[i]) == function)
			return true;
	}
	return false;
}

/* the function that took the reference did with this object all that it does with healthy ones */
static bool did_its_part(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref)
{
	uint32_t function = lt_site_function(a->lt, ref->site);

	for (size_t i = 0; i < m->learnt->stats.len; i++) {
		const struct lt_stat *s = &m->learnt->stats.data[i];
		bool found = false;

		if ((double)s->objects < OWN * (double)m->learnt->healthy ||
		    lt_site_function(a->lt, s->site) != function)
			continue;
		for (uint32_t k = 0; k < ref->inc->nr && !found; k++)
			found = a->lt->uses.data[ref->inc->ledger[k].use].site == s->site;
		if (!found)
			return false;
	}
	return true;
}

/* younger references were taken over and put by another thread, and nobody keeps this one: it got there */
static bool went_over(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref)
{
	const struct lt_stat *stat = lt_learnt_stat(m->learnt, ref->site);

	return lt_model_crossed(m, ref->site) >= OWN * lt_model_closed(m, ref->site) && stat &&
	       (ref->inc->nobody || stat->newest_ns > ref->inc->ledger[ref->ev].time_ns) && did_its_part(a, m, ref);
}

/* src is guilty instead; who was thought to be it may be it all the same, as likely as that */
static void rather(struct lt_blame *b, uint32_t src, double confidence)
{
	b->alternative = b->guilty;
	b->alternative_confidence = confidence;
	b->guilty = src;
}

/* references of this site are handed to another function that closes them */
static void handed_over(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref,
			struct lt_blame *b)
{
	double share;
	uint32_t p = lt_model_usual(m, ref->site, &share), function = lt_site_function(a->lt, p);

	if (!function || share < OWN || lt_model_closed(m, ref->site) < TWINS ||
	    lt_site_passes(a->lt, ref->site, function))
		return;
	if (event_in(a, ref->inc, function, ref->ev)) {
		rather(b, lt_site(a->lt, p)->src[0], 0.2);
		b->confidence = fmin(b->confidence, 0.8);
		b->why = "it took the reference over: healthy objects are put here";
	} else if (went_over(a, m, ref)) {
		rather(b, lt_site(a->lt, p)->src[0], 0.35);
		b->confidence = fmin(b->confidence, 0.65);
		b->why = "references like these go to another thread, which puts them here";
	} else {
		b->alternative = lt_site(a->lt, p)->src[0];
		b->alternative_confidence = 0.35;
		b->confidence = fmin(b->confidence, 0.6);
		b->why = "healthy references taken here are put by the function named as alternative";
	}
}

/* the reference was taken for an object that has ended without giving it back */
static bool held_on(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref, struct lt_blame *b)
{
	uint32_t end = lt_holder_end(a->lt, m, ref);

	if (!end)
		return false;
	rather(b, end, 0.25);
	b->confidence = fmin(b->confidence, 0.7);
	b->why = "it ends the objects for which references like these are taken, and puts none of them";
	return true;
}

/* the counter itself says at the end that nothing was missed */
static bool audited(const struct lt_inc *inc)
{
	return inc->known && inc->final_known && inc->final == inc->balance;
}

/* a constructor that calls another one did not return what that had made */
static bool kept_by_maker(const struct lt_answer *a, const struct lt_ref *ref, struct lt_blame *b)
{
	uint32_t maker = lt_kept_by_maker(a, ref);

	if (!maker)
		return false;
	rather(b, maker, 0.2);
	b->why = "it is a constructor, and did not return the object that it had made";
	return true;
}

/* The process died of a fault, and the run that did event number ev was over: it would not have put anything later. */
static bool was_over(const struct lt_answer *a, const struct lt_inc *inc, uint32_t ev)
{
	return lt_crashed(a->lt, inc->pid, false) && is_over(a, inc->ledger[ev].act);
}

/* a store has lost the pointer that stood for the reference */
static bool overwritten(const struct lt_answer *a, const struct lt_ref *ref, struct lt_blame *b)
{
	bool held = !ref->inc->nobody;
	struct lt_loser loser = { 0 };

	/* an index may point to the object still, that has no reference of its own */
	if (!held || (ref->inc->life == LT_LIVE && ref->inc->census && !ref->inc->child && lt_overwritten_all(a, ref)))
		loser = lt_overwriter(a, ref);
	/* lost objects that live on stand for all that is left: in their memory the pointers are still there */
	if (!held && lt_held_by_lost(ref->inc) && !loser.own)
		return false;
	/* who frees such blocks puts none of what they point to where others put it before, as all of them show */
	if (loser.freed && ref->inc->nobody && !lt_puts_made(a, ref->inc, lt_src(a->lt, loser.by)->function) &&
	    lt_received_forgot(a, ref))
		return false;
	/* what all objects say outweighs a pointer that may have stood for another reference, now and then */
	if (!loser.by || (ref->invariant && !loser.own && !loser.always))
		return false;
	if (held && (lt_ended_well(a->lt, ref->inc->pid) || was_over(a, ref->inc, loser.at)))
		b->confidence = fmax(b->confidence, 0.6);
	/* the store itself was seen: no guess from what became of others */
	if (b->lost)
		b->confidence = fmax(b->confidence, 1 - ref->doubt);
	b->alternative = loser.around ? loser.around : b->guilty;
	b->alternative_confidence = 0.25;
	b->guilty = loser.by;
	/* that it was for what is called to put it, nobody saw */
	b->confidence = fmin(b->confidence, loser.thin || loser.around ? 0.65 : loser.own ? 0.9 : 0.85);
	b->own = loser.own;
	b->seen = true;
	b->why = loser.around ? "it ends the parts of what held the pointer to the object, which was freed then, and "
				"did not put this one"
		 : loser.ends ? "it ends what held the pointer to the object, called what cleared that, and put nothing"
		 : loser.cleared ? "it called what cleared the pointer to the object, and did not put it, as others do"
		 : loser.freed   ? "it freed what held the pointer to the object, and put nothing"
				 : "it overwrote the pointer to the object, and put nothing";
	return true;
}

/* who took the reference gave it to a function that passes such references on, and that did nothing with this one */
static bool given_over(const struct lt_answer *a, const struct lt_ref *ref, struct lt_blame *b)
{
	uint32_t to = ref->inc->nobody ? lt_given_to(a, ref) : 0;

	if (!to)
		return false;
	rather(b, to, 0.25);
	b->confidence = fmin(b->confidence, 0.85);
	b->why = "it was given the reference, and neither passed it on nor put it, as it does otherwise";
	return true;
}

/* the last who received the object, and did nothing with it */
static bool received(const struct lt_answer *a, const struct lt_ref *ref, struct lt_blame *b)
{
	static const char *const why[] = {
		[LT_BY_ITSELF] =
			"it was the last to receive the object, and neither put nor stored it, as it does otherwise",
		[LT_BY_KIN] = "it was the last to receive the object, and neither put nor stored it, as others do that "
			      "receive "
			      "such objects there",
		[LT_BY_SLOT] = "it took the object out of where it was stored last, and neither put nor stored it",
		[LT_BY_SHARERS] =
			"it gave the object to what takes a reference of its own, and did not put the one that it had, "
			"as others do",
		[LT_BY_CALLERS] =
			"it called what takes a reference of its own, and did not put the first one, as others do that "
			"call it",
		[LT_BY_PUTTERS] = "it called what puts a reference, and did not put the one that it has itself, as "
				  "others do that call it",
	};
	/* at least and at most */
	static const double claims[][2] = {
		[LT_BY_ITSELF] = { 0.7, 0.85 },   [LT_BY_KIN] = { 0.65, 0.75 },   [LT_BY_SLOT] = { 0.65, 0.75 },
		[LT_BY_SHARERS] = { 0.75, 0.85 }, [LT_BY_CALLERS] = { 0.6, 0.7 }, [LT_BY_PUTTERS] = { 0.6, 0.7 }
	};
	struct lt_receiver last = { 0 };

	if (ref->inc->nobody)
		last = lt_received_last(a, ref);
	if (!last.src || lt_src(a->lt, last.src)->function == lt_src(a->lt, b->guilty)->function)
		return false;
	rather(b, last.src, 0.25);
	b->confidence = fmin(fmax(b->confidence, claims[last.by][0]), claims[last.by][1]);
	b->why = why[last.by];
	return true;
}

/* the object was given to what ends such things, and nothing was put there */
static bool not_ended(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref, struct lt_blame *b)
{
	struct lt_ender ender = { 0 };

	/* who gives such references back otherwise would have been the one to end it */
	if (ref->inc->nobody && !(lt_model_closed(m, ref->site) >= TWINS && lt_model_own(m, ref->site) >= OWN))
		ender = lt_ender_of(a, ref);
	if (!ender.src || lt_src(a->lt, ender.src)->function == lt_src(a->lt, b->guilty)->function)
		return false;
	rather(b, ender.src, 0.25);
	b->confidence = ender.does ? fmin(fmax(b->confidence, 0.7), 0.85) : fmin(b->confidence, 0.65);
	b->why = ender.does ? "it was given the object, and put nothing, as it does otherwise"
			    : "it was the last to be given the object, by its name to end it, and put nothing";
	return true;
}

/* what was taken along with such references is given back by a function that has no hand in this one */
static bool left_behind(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref,
			struct lt_blame *b)
{
	uint32_t by = b->lost && lt_model_closed(m, ref->site) < 1 ? lt_along_forgot(a, ref) : 0;

	if (!by || lt_src(a->lt, by)->function == lt_src(a->lt, b->guilty)->function)
		return false;
	rather(b, by, 0.25);
	b->confidence = fmin(b->confidence, 0.7);
	b->why = "it gives back what was taken along with references like these, and none of them";
	return true;
}

/*
 * The reference was taken for somebody who is called later, with the object, and nobody was ever seen to give such a
 * one back.
 */
static bool called_later(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref,
			 struct lt_blame *b)
{
	uint32_t by = b->lost && lt_model_closed(m, ref->site) < 1 ? lt_callback(a->lt, &ref->inc->ledger[ref->ev]) : 0;

	if (!by || lt_src(a->lt, by)->function == lt_src(a->lt, b->guilty)->function)
		return false;
	rather(b, by, 0.25);
	b->confidence = fmin(b->confidence, 0.7);
	b->why = "it is called with the object that the reference was taken for, and puts none of them";
	return true;
}

/*
 * The process ended while the very run that took the reference, or kept it, was still at work: it owed nothing yet.
 * Where it ended well, its end was that run's own doing (exit() in main()), and what it otherwise gives back, or took
 * more than once, it should have given back before; unless another thread ended the process.
 */
static bool stood_in(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref, unsigned level)
{
	const struct lt_event *e = &ref->inc->ledger[ref->ev];
	const uint64_t *process = rt_map_get(&a->lt->process_by_pid, rt_key_make(ref->inc->pid, 0));
	uint32_t act = level ? e->up : e->act;

	if (lt_cut_short(a, ref->inc, ref->ev, level))
		return true;
	if (!act || !process || !rt_map_get(&a->standing, rt_key_make(act, 0)))
		return false;
	return a->lt->processes.data[*process].status ||
	       (lt_counted(&a->runs, rt_key_make(e->act, ref->inc->type)) < 2 && lt_model_closed(m, ref->site) < 1);
}

/*
 * What the function took was lost by so many whose business it was, that it is no fault of theirs: what they share is
 * at fault.
 */
static bool many_owners(const struct lt_answer *a, const struct lt_ref *ref)
{
	enum { MANY = 3 };

	return lt_counted(&a->owners, rt_key_make(lt_site_function(a->lt, ref->site), ref->inc->type)) >= MANY;
}

/*
 * Operations on the object were not seen, but the counter says at the end how many references are left, and nobody
 * points to it: who took two in one line, which no healthy object has, took one too many whatever the others did.
 */
static bool shown_all_the_same(const struct lt_answer *a, const struct lt_ref *ref, bool twice)
{
	const struct lt_inc *inc = ref->inc;

	return twice && inc->nobody && audited(inc) && !inc->attached && !inc->inherited &&
	       !lt_counter_vague(a->lt, inc) && lt_twice_in_line(a->lt, inc, ref->ev);
}

/*
 * One reference is left, nobody points to it, and its memory is not free: no put came that would have ended it. Where
 * most are left like that, it may be in use again for other things.
 */
static bool was_not_ended(const struct lt_type *type, const struct lt_inc *inc)
{
	return inc->census && inc->nobody && !inc->returned && inc->known && inc->balance == 1 &&
	       type->died >= type->objects - type->died;
}

/*
 * What would have ended it may be what is not probed. Of what has one owner, and was found by itself, the ends are not
 * all known: where more of such objects ended unseen than were left, so may these have. And a program that mostly
 * leaves them to its end may do so on purpose; not where it was seen to lose the pointer.
 */
static bool ends_elsewhere(const struct lt_model *m, const struct lt_ref *ref, bool seen)
{
	const struct lt_type *type = m->type;

	if (type->flags & RT_TYPE_OWNED)
		return lt_end_unseen(m, ref->site) >=
			       lt_model_left_open(m, ref->site) - lt_model_ends_unseen(m, ref->site) ||
		       (!seen && type->died < type->objects - type->died);
	return type->unarmed && !audited(ref->inc) && !was_not_ended(type, ref->inc);
}

static void taken_by_helper(struct lt_blame *b, uint32_t by)
{
	rather(b, by, 0.1);
	b->role = RT_ROLE_EXTRA_GET;
	b->seen = true;
	b->why = "it called what takes a reference twice in one line";
	if (b->lost)
		b->confidence = fmax(b->confidence, 0.9);
}

struct lt_blame lt_blame_leak(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref)
{
	struct lt_blame b = { .kind = RT_LEAK, .role = RT_ROLE_MISSING_PUT };
	const struct lt_site *site = lt_site(a->lt, ref->site);
	/* who takes one for each function that he calls, and these keep them, has not taken one too many */
	const bool twice = ref->ev != LT_NO_EVENT && lt_took_twice(a, ref) && !lt_given_to(a, ref);
	const uint32_t helped = twice ? 0 : lt_took_twice_by_helper(a, ref);
	unsigned level;
	bool kept = false;

	if (!site->nr || ref->ev == LT_NO_EVENT)
		return b;
	/* who takes two and gives back one keeps the other */
	level = twice ? 0 : climb(a, m, ref, &kept);
	b.guilty = site->src[level];
	b.owner = !kept && !twice && !many_owners(a, ref) ? lt_owner_beyond(a, ref, level, &b.learnt) : 0;
	if (b.owner)
		b.guilty = b.owner;
	if (kept)
		b.why = "it returned something else, and kept the reference";
	else if (ref->invariant)
		b.why = "each object has as many references left as it took, whatever number that is";
	b.confidence = confidence(a, m, ref, &b);
	if (ref->alternative) {
		b.alternative = lt_site(a->lt, ref->alternative)->src[0];
		b.alternative_confidence = ref->doubt;
	} else if (b.owner || level) {
		b.alternative = site->src[b.owner ? level : level - 1];
		b.alternative_confidence = 0.2;
	} else if (kept && site->nr > 1) {
		b.alternative = site->src[1];
		b.alternative_confidence = 0.2;
	}
	if (twice) {
		/* the matching has doubts that the lines have not: nearly all of these are it */
		b.role = RT_ROLE_EXTRA_GET;
		b.confidence = b.confidence < 0.7 ? b.confidence : fmin(b.confidence + 0.1, 0.97);
	} else if (helped)
		taken_by_helper(&b, helped);
	else if (!kept_by_maker(a, ref, &b) && !called_later(a, m, ref, &b) && !overwritten(a, ref, &b) &&
		 !not_ended(a, m, ref, &b) && !held_on(a, m, ref, &b) && !given_over(a, ref, &b) &&
		 !received(a, ref, &b) && !left_behind(a, m, ref, &b) && !b.owner)
		handed_over(a, m, ref, &b);
	/* two gets in one line are one too many, whatever would have come */
	if (!kept && !b.seen && (twice ? !lt_twice_in_line(a->lt, ref->inc, ref->ev) : b.role == RT_ROLE_MISSING_PUT) &&
	    b.guilty == site->src[level] && stood_in(a, m, ref, level)) {
		b.confidence = fmin(b.confidence, STANDING);
		b.why = "it was still at work when the process ended";
	}
	b.passed = b.lost && b.role == RT_ROLE_MISSING_PUT && !b.seen && lt_model_closed(m, ref->site) < 1 &&
		   may_have_passed_it_on(a, m, ref, &b);
	if (lt_life_vague(a->lt, ref->inc) || lt_damaged(a->lt, m->type) || ends_elsewhere(m, ref, b.seen)) {
		b.confidence = fmin(b.confidence, shown_all_the_same(a, ref, twice) ? SHOWN : SUSPECT);
		b.seen = false;
	} else if (m->type->unarmed && !audited(ref->inc)) {
		b.confidence = fmin(b.confidence, SHOWN); /* what takes references may be what is not probed */
	}
	return b;
}
