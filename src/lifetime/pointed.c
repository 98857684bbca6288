/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Somebody points to the object when its process ends: a cache, or an index that has no reference of its own, or what
 * is left of a pointer in memory that is used no more. Whether a reference is lost all the same follows from what
 * became of others that were taken there, and from how many pointers there are.
 */
#include "lifetime/answer.h"
#include "lifetime/stem.h"

bool lt_has_more(const struct lt_inc *inc)
{
	double pointers = 0;

	for (unsigned i = RT_HOLDER_GLOBAL; i <= RT_HOLDER_OBJECT; i++)
		pointers += inc->held[i];
	return inc->known && (double)inc->balance > pointers;
}

double lt_end_unseen(const struct lt_model *m, uint32_t site)
{
	const struct lt_stat *stat = lt_learnt_stat(m->learnt, site);

	return lt_model_ends_unseen(m, site) + (stat ? (double)stat->replaced : 0);
}

/*
 * Somebody points to the object. Stale pointers are frequent, on stacks above
 * all: objects that share their fault with lost ones are lost, too.
 */
double lt_pointed(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref, bool twins)
{
	static const double TWINS = 3;
	const struct lt_inc *inc = ref->inc;
	double closed = lt_model_closed(m, ref->site), left = lt_model_left_open(m, ref->site);
	double lost = lt_model_fates(m, ref->site, true), held = lt_model_fates(m, ref->site, false);
	bool stack_only = !inc->held[RT_HOLDER_GLOBAL] && !inc->held[RT_HOLDER_HEAP] && !inc->held[RT_HOLDER_OBJECT];
	bool more = lt_has_more(inc), crashed = lt_crashed(a->lt, inc->pid, false);
	/* what memory points to for each of its references was put there on purpose; one global may be left over */
	int64_t globals = inc->held[RT_HOLDER_GLOBAL] ? inc->held[RT_HOLDER_GLOBAL] - 1 : 0;
	bool kept = inc->known && inc->balance <= globals + inc->held[RT_HOLDER_HEAP] + inc->held[RT_HOLDER_OBJECT];
	/* a block has one owner: who can be reached has not lost it, and frees it before he takes the next one */
	bool owned = m->type->flags & RT_TYPE_HEAP_ONLY && inc->rooted;

	/* pointers that are left in memory that is used no more look like holders */
	twins &= lt_end_unseen(m, ref->site) <= lost + held;
	if (twins && lost >= held && !crashed)
		return 0.9;
	/* two pointers that one line takes references for are both there, or one is taken for nobody */
	if (more && ref->ev != LT_NO_EVENT && ref->inc->ledger[ref->ev].op == RT_OP_GET &&
	    lt_twice_in_line(a->lt, inc, ref->ev))
		return 0.7;
	/* who has it would have given it back later, had the program not died */
	if (crashed)
		return twins && more ? 0.65 : a->lt->strict ? 0.5 : 0;
	if (stack_only && lost >= TWINS * held)
		return 0.7;
	if (twins && more && closed >= left)
		return 0.85;
	if (twins && closed >= 10 && closed >= 4 * left && !owned && !kept && !lt_site_keeps(a->lt, ref->site))
		return 0.6;
	if (more || twins)
		return 0.4;
	return a->lt->strict ? 0.5 : 0;
}
