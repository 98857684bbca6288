/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process died of. The fatal signal hit somebody who met what was gone; who had taken it from him is found in
 * lives that look balanced: by what was done last, or twice, and by whose run was not over.
 */
#include <math.h>
#include <string.h>

#include "base/words.h"
#include "lifetime/answer.h"
#include "lifetime/extra.h"

/* the put of the last reference to a dead object, LT_NO_EVENT: there was none; its memory may have been freed in it */
static uint16_t last_put(const struct lt_inc *inc)
{
	for (uint32_t i = inc->nr; i-- > 0;) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->op == RT_OP_PUT && e->delta < 0)
			return (uint16_t)i;
		if (lt_event_takes(e))
			break;
	}
	return LT_NO_EVENT;
}

/* NULL: of nobody that is known */
static const struct lt_thread *thread_that_did(const struct lt_answer *a, const struct lt_inc *inc, uint32_t ev)
{
	const uint64_t *at = rt_map_get(&a->lt->thread_by_id, rt_key_make(inc->pid, inc->ledger[ev].tid));

	return at ? (const struct lt_thread *)(uintptr_t)*at : NULL;
}

/* nothing was done in the process of inc to any object after the end of inc, but by the put that ended it */
static bool was_last(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	const struct lt_event *put = &inc->ledger[inc->nr - 1];
	const struct lt_row *const rows[] = { &lt->graves, &lt->live };

	for (size_t i = 0; i < 2; i++) {
		const struct lt_inc *other;
		uint32_t at = UINT32_MAX;

		while ((other = lt_row_older(rows[i], &at))) {
			if (other != inc && other->pid == inc->pid && other->nr &&
			    other->ledger[other->nr - 1].time_ns > put->time_ns &&
			    !lt_nested(lt, &other->ledger[other->nr - 1], put))
				return false;
		}
	}
	return true;
}

/*
 * The program died of a fault, and the last thing that was seen of it is that it put the last reference to an object:
 * where the run of the function that did so was not over, it went on with what it had given away.
 */
static bool died_with(struct lt_answer *a, uint32_t type, struct lt_model *m)
{
	struct lt_ref ref = { .ev = LT_NO_EVENT, .bad = LT_NO_EVENT };
	struct lt_blame b = { .kind = RT_USE_AFTER_PUT, .role = RT_ROLE_USE, .confidence = 0.6 };
	const struct lt_thread *t;
	const struct lt_event *e;
	struct lt_inc *inc, *last = NULL;
	uint32_t at = 0;

	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		if (inc->post && inc->type == type && lt_crashed(a->lt, inc->pid, true))
			return false; /* there is more to go by */
		if (inc->life == LT_DEAD && inc->nr && !inc->forced && (!last || inc->end_ns > last->end_ns) &&
		    lt_crashed(a->lt, inc->pid, true))
			last = inc;
	}
	if (!last || last->type != type || last->klass != m->klass || last->folded || !was_last(a->lt, last))
		return false;
	e = &last->ledger[last->nr - 1];
	t = thread_that_did(a, last, last->nr - 1);
	if (t && t->stood && !t->struck)
		return false; /* the signal hit another one */
	if (e->op != RT_OP_PUT || e->delta >= 0 || !e->act || !rt_map_get(&a->running, rt_key_make(e->act, 0)))
		return false;
	ref.inc = last;
	ref.bad = last->nr - 1;
	b.guilty = lt_event_src(a->lt, e);
	b.why = "it put the last reference, and the program died of a fault before anything else was done";
	if (lt_life_vague(a->lt, last) || lt_damaged(a->lt, m->type))
		b.confidence = 0.45;
	lt_extra_taken(a, last, &ref);
	if (b.guilty)
		lt_accuse(a, &ref, &b);
	return b.guilty;
}

/* The same of the last stack of the thread: where a function was inlined, its run may be over while its frame stands.
 */
static bool stands_in(const struct rt_lifetime *lt, const struct lt_thread *t, uint32_t function,
		      const struct lt_type *type)
{
	return lt_in_stack(lt, t->stand, function, type);
}

static bool ends_process(const char *function)
{
	static const char *const names[] = { "exit", "_exit", "_Exit", "quick_exit" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(function, names[i]))
			return true;
	return false;
}

/* the thread called what ends a process, as its last stack shows */
static bool ended_itself(const struct rt_lifetime *lt, const struct lt_stack *s)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		for (uint32_t k = 0; k < m->srcs; k++)
			if (ends_process(lt_src_text(lt, lt->stack_srcs.data[m->src + k])))
				return true;
	}
	return false;
}

bool lt_cut_short(const struct lt_answer *a, const struct lt_inc *inc, uint32_t ev, bool up)
{
	const struct rt_lifetime *lt = a->lt;
	const struct lt_event *e = &inc->ledger[ev];
	const struct lt_use *use = &lt->uses.data[e->use];
	const struct lt_thread *t = thread_that_did(a, inc, ev);
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	const struct lt_stack *last = t && t->stood && t->stand ? &lt->stacks.data[t->stand - 1] : NULL;
	uint32_t at = up ? use->up : use->machine;
	const struct lt_machine *mine = s && at < s->nr ? &lt->machines.data[s->first + at] : NULL;

	if (!last || !mine || !mine->cfa || !e->sp || t->tid == RT_PID_OF(inc->pid) || ended_itself(lt, last))
		return false;
	for (uint32_t i = 0; i < last->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[last->first + i];

		if (m->cfa && t->stand_sp + m->cfa == e->sp + mine->cfa && m->function == mine->function)
			return true;
	}
	return false;
}

/*
 * One function put all references to the object, and had taken them itself or had had them made: nobody else had one
 * that may have been missing. *ret_over: it was over when the process died, and does not miss one either.
 */
static bool kept_to_itself(const struct lt_answer *a, const struct lt_inc *inc, bool *ret_over)
{
	const uint16_t last = last_put(inc);
	const struct lt_event *put = last == LT_NO_EVENT ? NULL : &inc->ledger[last];
	const struct lt_thread *t = put ? thread_that_did(a, inc, last) : NULL;
	const uint32_t function = put ? lt_event_function(a->lt, put) : 0;

	if (!put || !inc->has_new || !t || !t->stood)
		return false;
	*ret_over = !stands_in(a->lt, t, function, NULL);
	/* it may have handed out what it had just made, and let go with that */
	if (lt_back_at_once(a->lt, inc, last))
		return false;
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		uint32_t stack = a->lt->uses.data[e->use].stack;

		if (e->op == RT_OP_NEW ? !stack || !lt_in_stack(a->lt, stack, function, NULL)
				       : e->delta && lt_event_function(a->lt, e) != function)
			return false;
		if (e->tid != put->tid)
			return false;
	}
	return true;
}

/*
 * The thread that did event number ev has ended so many objects since this one was gone that a fault now is hardly for
 * that.
 */
static bool long_since(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	enum { MANY = 30 };
	const struct lt_inc *other;
	uint32_t at = UINT32_MAX;
	unsigned ended = 0;

	while (ended <= MANY && (other = lt_row_older(&lt->graves, &at))) {
		uint16_t last = other->pid == inc->pid ? last_put(other) : LT_NO_EVENT;

		ended += last != LT_NO_EVENT && other->ledger[last].tid == inc->ledger[ev].tid &&
			 other->end_ns > inc->end_ns;
	}
	return ended > MANY;
}

/*
 * The program died of a fault, and nothing was done any more to the object that had gone: in the books all is well. A
 * put twice in a row, which few objects had, is then what it died of, or one right where the reference was taken; the
 * last one that came before the end.
 */
static bool died_of(struct lt_answer *a, uint32_t type, struct lt_model *m)
{
	enum { FEW = 3 };
	struct lt_ref ref = { .ev = LT_NO_EVENT, .bad = LT_NO_EVENT, .death = true };
	struct lt_blame b = { .kind = RT_EXTRA_PUT, .role = RT_ROLE_EXTRA_PUT, .confidence = 0.85 };
	struct lt_inc *inc;
	uint32_t at = 0;
	unsigned n = 0;
	bool in_line;

	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		bool over = false, kept;
		uint16_t ev;

		if (inc->type != type || inc->klass != m->klass)
			continue;
		if (inc->post)
			return false; /* there is more to go by */
		if (inc->life != LT_DEAD || inc->folded || !lt_crashed(a->lt, inc->pid, false))
			continue;
		ev = lt_extra_for_nothing(a, m, inc);
		kept = ev != LT_NO_EVENT && kept_to_itself(a, inc, &over);
		if (ev == LT_NO_EVENT || (kept && over))
			continue;
		n++;
		if (ref.inc && ref.inc->end_ns > inc->end_ns)
			continue;
		ref.inc = inc;
		ref.bad = ev;
		/* it may have gone on with what it had given back; or died of anything else */
		b.confidence = kept ? 0.6 : 0.85;
	}
	if (!n || n > FEW)
		return false;
	b.guilty = lt_extra_doer(a, ref.inc, ref.bad);
	b.why = lt_back_at_once(a->lt, ref.inc, ref.bad)
			? "it gave back at once what it had taken, and the program died of a fault soon after"
			: "the program died of a fault soon after, and nobody else put twice in a row";
	ref.shown = lt_shown_by_counter(a, &ref);
	if (lt_life_vague(a->lt, ref.inc) || lt_damaged(a->lt, m->type))
		b.confidence = ref.shown ? 0.65 : 0.45;
	/*
	 * An assertion may be about anything, and two lines in a row may well be about two references. What is done
	 * twice in one line is odd, however long ago that was.
	 */
	in_line = lt_twice_in_line(a->lt, ref.inc, ref.bad) || lt_twice_by_helper(a->lt, ref.inc, ref.bad);
	if (in_line && long_since(a->lt, ref.inc, ref.bad))
		b.confidence = fmin(b.confidence, 0.6);
	else if (long_since(a->lt, ref.inc, ref.bad) ||
		 (!in_line && !lt_crashed(a->lt, ref.inc->pid, true) && !lt_back_at_once(a->lt, ref.inc, ref.bad)))
		b.confidence = 0.45;
	lt_extra_taken(a, ref.inc, &ref);
	if (b.guilty)
		lt_accuse(a, &ref, &b);
	return true;
}

/*
 * Frame number i of the stack s was called from just where the put e was; where who did that had jumped, from where he
 * had been called; where that is not known: by who did it.
 */
static bool called_there(const struct lt_answer *a, const struct lt_thread *t, const struct lt_stack *s, uint32_t i,
			 const struct lt_event *e)
{
	const struct lt_use *use = &a->lt->uses.data[e->use];
	const struct lt_stack *of = use->stack ? &a->lt->stacks.data[use->stack - 1] : NULL;
	const uint32_t at = use->machine == LT_JUMPED ? 0 : use->machine;

	if (!of || at >= of->nr)
		return stands_in(a->lt, t, lt_event_function(a->lt, e), NULL);
	return i + 1 < s->nr && a->lt->machines.data[s->first + i + 1].pc == a->lt->machines.data[of->first + at].pc;
}

bool lt_died_in(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *e = &inc->ledger[ev];
	const struct lt_thread *t = e->delta < 0 ? thread_that_did(a, inc, ev) : NULL;
	const struct lt_stack *s = t && t->struck && t->stood ? &a->lt->stacks.data[t->stand - 1] : NULL;

	for (uint32_t i = 0; s && e->sp && i < s->nr; i++) {
		const struct lt_machine *m = &a->lt->machines.data[s->first + i];

		/* of the same depth another call may be */
		if (m->cfa && t->stand_sp + m->cfa == e->sp)
			return called_there(a, t, s, i, e);
	}
	return false;
}

/*
 * The put is inlined, and what its run calls in the thread's last stack ends things, by its name: that is what follows
 * from the last put.
 */
static bool died_in_end(const struct lt_answer *a, const struct lt_thread *t, const struct lt_event *put)
{
	const struct rt_lifetime *lt = a->lt;
	const struct lt_use *use = &lt->uses.data[put->use];
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	const struct lt_stack *last = t->stood ? &lt->stacks.data[t->stand - 1] : NULL;
	const struct lt_machine *mine = s && use->machine < s->nr ? &lt->machines.data[s->first + use->machine] : NULL;

	if (!last || !mine || !mine->cfa || !put->sp || !(lt_event_point(lt, put)->flags & RT_EV_INLINE))
		return false;
	for (uint32_t i = 1; i < last->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[last->first + i], *called = m - 1;

		if (m->cfa && t->stand_sp + m->cfa == put->sp + mine->cfa && m->function == mine->function)
			return called->srcs &&
			       rt_words_end(lt_src_text(lt, lt->stack_srcs.data[called->src + called->srcs - 1u]));
	}
	return false;
}

/*
 * How far in the thread that the fatal signal hit still ran what ended the object, or ran what that had jumped to;
 * 0: it was another's, or is over.
 */
static uint64_t ended_by_struck(const struct lt_answer *a, const struct lt_inc *inc)
{
	const uint16_t put = last_put(inc);
	const struct lt_event *end = put == LT_NO_EVENT ? NULL : &inc->ledger[put];
	const struct lt_thread *t = end ? thread_that_did(a, inc, put) : NULL;
	const uint64_t *at = t && t->struck && end->act ? rt_map_get(&a->standing, rt_key_make(end->act, 0)) : NULL;
	uint64_t depth = 0;

	if (at && t->stood && stands_in(a->lt, t, lt_event_function(a->lt, end), NULL))
		depth = *at;
	else if (t && t->struck && t->stood && end->act && end->act == t->left)
		depth = t->nr + 1u;
	/* what it died in ends the object: it may have found that wrong, but used nothing that was gone */
	if (depth && !lt_crashed(a->lt, inc->pid, true) && (lt_died_in(a, inc, put) || died_in_end(a, t, end)))
		return 0;
	if (!depth || lt_crashed(a->lt, inc->pid, true))
		return depth;
	/* an assertion may be about anything, and a limit of time is about nothing */
	return lt_crashed(a->lt, inc->pid, false) && stands_in(a->lt, t, 0, lt_inc_type(a->lt, inc)) ? depth : 0;
}

/* All that was done to it is that it was put with no reference left: it was another one's end that this came behind. */
static bool was_gone(const struct lt_inc *inc)
{
	const uint16_t put = last_put(inc);
	unsigned operations = 0;

	for (uint32_t i = 0; i < inc->nr; i++)
		operations += inc->ledger[i].delta != 0;
	return put != LT_NO_EVENT && !inc->has_new && operations == 1 && !inc->ledger[put].count;
}

/*
 * The program died in a put of what had no reference left, as its counter says; some run had put that one twice in a
 * row, or for nothing, before it was gone.
 */
static bool died_behind(struct lt_answer *a, uint32_t type, struct lt_model *m, struct lt_pasts *pasts)
{
	struct lt_blame b = { .kind = RT_EXTRA_PUT, .role = RT_ROLE_EXTRA_PUT, .confidence = 0.85 };
	struct lt_ref ref = { .ev = LT_NO_EVENT, .bad = LT_NO_EVENT };
	struct lt_inc *inc;
	uint32_t at = 0;

	while (!b.guilty && (inc = lt_row_newer(&a->lt->graves, &at))) {
		if (inc->type != type || inc->klass != m->klass || inc->post || !was_gone(inc) ||
		    !lt_crashed(a->lt, inc->pid, false) ||
		    !rt_map_get(&a->standing, rt_key_make(inc->ledger[last_put(inc)].act, 0)))
			continue;
		ref.inc = lt_past_of(a, inc, pasts);
		ref.bad = ref.inc ? lt_extra_for_nothing(a, m, ref.inc) : LT_NO_EVENT;
		b.guilty = ref.bad == LT_NO_EVENT ? 0 : lt_extra_doer(a, ref.inc, ref.bad);
	}
	if (!b.guilty)
		return false;
	b.why = "it put for nothing, and the program died in a later put, which found no reference left";
	if (lt_life_vague(a->lt, ref.inc) || lt_damaged(a->lt, m->type))
		b.confidence = 0.45;
	lt_extra_taken(a, ref.inc, &ref);
	lt_accuse(a, &ref, &b);
	return true;
}

/*
 * Since event number put of inc its run took another object of the type, or its thread has ended several: it was at
 * something else by then, in a loop of its own or of what it called.
 */
static bool went_on(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t put)
{
	enum { FEW = 3 };
	const struct lt_row *const rows[] = { &lt->live, &lt->graves };
	const struct lt_event *mine = &inc->ledger[put];
	unsigned ended = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct lt_inc *other;
		uint32_t at = UINT32_MAX;

		while ((other = lt_row_older(rows[i], &at))) {
			uint16_t last = other->pid == inc->pid && !i ? last_put(other) : LT_NO_EVENT;

			ended += last != LT_NO_EVENT && other->ledger[last].tid == mine->tid &&
				 other->ledger[last].time_ns > mine->time_ns;
			if (ended > FEW)
				return true;
			for (uint32_t k = 0; other->type == inc->type && other->pid == inc->pid && k < other->nr; k++) {
				const struct lt_event *e = &other->ledger[k];

				if (lt_event_takes(e) && e->act == mine->act && e->time_ns > mine->time_ns)
					return true;
			}
		}
	}
	return false;
}

/*
 * The thread that ended inc has put, or used, another object since that was gone by then, in a run that still stands:
 * the process died of that one.
 */
static bool met_dead(const struct lt_answer *a, const struct lt_inc *inc, uint16_t put)
{
	const struct lt_event *mine = &inc->ledger[put];
	const struct lt_inc *other;
	uint32_t at = 0;

	while ((other = lt_row_newer(&a->lt->graves, &at))) {
		const struct lt_event *e = other->post && other->nr ? &other->ledger[other->nr - 1] : NULL;

		if (e && other != inc && other->pid == inc->pid && e->tid == mine->tid && (e->flags & LT_EV_POST) &&
		    e->time_ns > mine->time_ns && e->act && rt_map_get(&a->standing, rt_key_make(e->act, 0)))
			return true;
	}
	return false;
}

/*
 * The thread that the fatal signal hit was, as its last stack shows, in a call of the very run that had put the last
 * reference to an object: of several such runs the innermost one, of its objects the last one, went on with what was
 * gone. What others did meanwhile, or it did with other objects, does not matter.
 */
static bool died_within(struct lt_answer *a, uint32_t type, struct lt_model *m)
{
	struct lt_blame b = { .kind = RT_USE_AFTER_PUT, .role = RT_ROLE_USE, .confidence = 0.85 };
	struct lt_ref ref = { .ev = LT_NO_EVENT, .bad = LT_NO_EVENT };
	uint64_t deepest = 0;
	struct lt_inc *inc;
	uint32_t at = 0;

	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		uint64_t depth = inc->life == LT_DEAD && !inc->forced && !was_gone(inc) ? ended_by_struck(a, inc) : 0;

		if (!depth || depth < deepest || (depth == deepest && inc->end_ns < ref.inc->end_ns) ||
		    met_dead(a, inc, last_put(inc)) ||
		    (went_on(a->lt, inc, last_put(inc)) && !lt_back_at_once(a->lt, inc, last_put(inc))))
			continue;
		deepest = depth;
		ref.inc = inc;
	}
	if (!ref.inc || ref.inc->type != type || ref.inc->klass != m->klass || ref.inc->folded || ref.inc->post)
		return ref.inc;
	ref.bad = last_put(ref.inc);
	b.guilty = lt_event_src(a->lt, &ref.inc->ledger[ref.bad]);
	b.why = "it put the last reference, and in a call that it made after that the program died";
	if (lt_damaged(a->lt, m->type))
		b.confidence = 0.45;
	(void)lt_extra_at_once(a, m, ref.inc, &ref, &b);
	lt_extra_taken(a, ref.inc, &ref);
	if (b.guilty)
		lt_accuse(a, &ref, &b);
	return true;
}

/*
 * The fatal signal hit inside of a put that its run had done just before: whatever references there are by the books
 * (they end with holders that nobody sees end), the first of the two took the last one.
 */
static bool died_again(struct lt_answer *a, uint32_t type, struct lt_model *m)
{
	struct lt_blame b = { .kind = RT_EXTRA_PUT, .role = RT_ROLE_EXTRA_PUT, .confidence = 0.85 };
	struct lt_ref ref = { .ev = LT_NO_EVENT, .bad = LT_NO_EVENT, .shown = true };
	struct lt_inc *inc;
	uint32_t at = 0;

	while (!ref.inc && (inc = lt_row_newer(&a->lt->live, &at))) {
		uint16_t put = inc->type == type && inc->klass == m->klass ? last_put(inc) : LT_NO_EVENT;

		if (put == LT_NO_EVENT || !lt_twice_in_row(a->lt, inc, put) || !lt_died_in(a, inc, put))
			continue;
		ref.inc = inc;
		ref.bad = put;
		b.guilty = lt_extra_doer(a, inc, put);
	}
	if (!b.guilty)
		return false;
	b.why = "it put twice in a row, and the program died in the second put";
	if (lt_damaged(a->lt, m->type))
		b.confidence = 0.45;
	lt_extra_taken(a, ref.inc, &ref);
	lt_accuse(a, &ref, &b);
	return true;
}

bool lt_died(struct lt_answer *a, uint32_t type, struct lt_model *m, struct lt_pasts *pasts)
{
	return died_again(a, type, m) || died_behind(a, type, m, pasts) || died_of(a, type, m) ||
	       died_within(a, type, m) || died_with(a, type, m);
}
