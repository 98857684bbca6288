/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults that nobody met: the object was dead by then, and its life looks like any other. What tells is how the put was
 * done, and what the code does behind it.
 */
#include "lifetime/answer.h"
#include "lifetime/extra.h"

/*
 * The run that did event number ev took or was handed one reference to the object, and did no more to it than to put
 * that, here, and another one. One that puts more was given more: a loop over what somebody held, a thread.
 */
static bool took_one(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const uint32_t act = inc->ledger[ev].act;
	unsigned takes = 0, puts = 0;

	for (uint32_t i = 0; act && i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->act != act)
			continue;
		takes += lt_event_takes(e) || lt_point_hands(lt_event_point(lt, e));
		puts += e->delta < 0;
	}
	return takes == 1 && puts && puts <= 2;
}

/*
 * Nobody met the object after its death, which looks like any other. But one run took one reference, and put two in one
 * line: the other one was somebody else's, who did not come back to it.
 */
static uint16_t put_anothers(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	if (inc->life != LT_DEAD || inc->post || inc->folded || (!inc->has_new && !lt_born_bare(lt, inc)) ||
	    lt_life_vague(lt, inc))
		return LT_NO_EVENT;
	for (uint16_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		uint16_t first = e->op == RT_OP_PUT ? lt_first_of_two(lt, inc, i) : i;

		/* without lines nothing says that both are one thing */
		if (first != i && lt_src(lt, lt_event_src(lt, e))->frame.line && took_one(lt, inc, first))
			return i;
	}
	return LT_NO_EVENT;
}

/*
 * Who put the last reference, by the event that this returns, goes on with the object: its code says so, and surely
 * comes by there.
 */
static uint16_t used_behind(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	const struct lt_event *e;
	uint32_t i = inc->nr;

	if (inc->life != LT_DEAD || inc->post || inc->folded || inc->forced || !inc->known || lt_life_vague(lt, inc))
		return LT_NO_EVENT;
	while (i > 0 && !inc->ledger[i - 1].delta)
		i--;
	if (!i)
		return LT_NO_EVENT;
	e = &inc->ledger[i - 1];
	/* of a call that jumped to the put nobody knows what it was given */
	if (e->op != RT_OP_PUT || e->delta >= 0 || !lt_use_called(lt, &lt->uses.data[e->use]) ||
	    !(lt_event_point(lt, e)->flags & RT_EV_FIRST) || !(lt_hands(lt, e, 0) & RT_HANDS_AGAIN))
		return LT_NO_EVENT;
	return (uint16_t)(i - 1);
}

struct rule {
	/* the event that is the fault, or LT_NO_EVENT */
	uint16_t (*find)(const struct rt_lifetime *lt, const struct lt_inc *inc);
	struct lt_blame blame;
};

static const struct rule rules[LT_SILENT_RULES] = {
	{ put_anothers,
	  { .kind = RT_EXTRA_PUT,
	    .role = RT_ROLE_EXTRA_PUT,
	    .confidence = 0.85,
	    .why = "it took one reference, and put two in one line" } },
	{ used_behind,
	  { .kind = RT_USE_AFTER_PUT,
	    .role = RT_ROLE_USE,
	    .confidence = 0.85,
	    .why = "it put the last reference, and behind that its code uses the object" } },
};

bool lt_silent_fault(struct rt_lifetime *lt, const struct lt_inc *inc)
{
	for (unsigned r = 0; r < LT_SILENT_RULES; r++) {
		uint16_t ev = rules[r].find(lt, inc);

		if (ev != LT_NO_EVENT)
			return lt->uses.data[inc->ledger[ev].use].silent[r]++ < LT_SILENT;
	}
	return false;
}

/* lives of the type that the rule finds and that were not kept */
static uint64_t not_kept(const struct rt_lifetime *lt, uint32_t type, const struct rule *rule)
{
	uint64_t n = 0;

	for (size_t i = 0; i < lt->uses.len; i++) {
		const struct lt_use *use = &lt->uses.data[i];
		uint32_t silent = use->silent[rule - rules];

		if (silent > LT_SILENT && lt->points.data[use->point].type == type)
			n += silent - LT_SILENT;
	}
	return n;
}

static void judge(struct lt_answer *a, uint32_t type, const struct lt_model *m, const struct rule *rule)
{
	enum { FEW = 3 };
	struct lt_blame b = rule->blame;
	struct lt_inc *inc;
	uint64_t n = not_kept(a->lt, type, rule);
	uint32_t at = 0;

	while ((inc = lt_row_newer(&a->lt->graves, &at)))
		n += inc->type == type && inc->klass == m->klass && rule->find(a->lt, inc) != LT_NO_EVENT;
	/* what is done to most of them is how it is done */
	if (!n || (n > FEW && 2 * n > m->type->died) || lt_damaged(a->lt, m->type))
		return;
	at = 0;
	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		struct lt_ref ref = { .inc = inc, .ev = LT_NO_EVENT };

		if (inc->type != type || inc->klass != m->klass)
			continue;
		ref.bad = rule->find(a->lt, inc);
		if (ref.bad == LT_NO_EVENT)
			continue;
		b.guilty = lt_extra_doer(a, inc, ref.bad);
		lt_extra_taken(a, inc, &ref);
		if (b.guilty)
			lt_accuse(a, &ref, &b);
	}
}

void lt_silent(struct lt_answer *a, uint32_t type, const struct lt_model *m)
{
	for (size_t i = 0; i < LT_SILENT_RULES; i++)
		judge(a, type, m, &rules[i]);
}
