/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who put the last reference, and goes on with the object: its code says so, and surely comes by there. Nobody met the
 * object after its death, and the life looks like any other.
 */
#include "lifetime/answer.h"
#include "lifetime/extra.h"

/* the put that ended the object, as the function that did it uses the object behind it; LT_NO_EVENT: it does not */
static uint16_t used_behind(const struct lt_answer *a, const struct lt_inc *inc)
{
	const struct rt_lifetime *lt = a->lt;
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

void lt_went_on(struct lt_answer *a, uint32_t type, const struct lt_model *m)
{
	enum { FEW = 3 };
	struct lt_blame b = { .kind = RT_USE_AFTER_PUT, .role = RT_ROLE_USE, .confidence = 0.85 };
	struct lt_inc *inc;
	uint64_t n = 0;
	uint32_t at = 0;

	while ((inc = lt_row_newer(&a->lt->graves, &at)))
		n += inc->type == type && inc->klass == m->klass && used_behind(a, inc) != LT_NO_EVENT;
	/* what is done to most of them is how it is done: the memory is another one's, who ends it */
	if (!n || (n > FEW && 2 * n > m->type->died) || lt_damaged(a->lt, m->type))
		return;
	at = 0;
	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		struct lt_ref ref = { .inc = inc, .ev = LT_NO_EVENT, .bad = LT_NO_EVENT };

		if (inc->type == type && inc->klass == m->klass)
			ref.bad = used_behind(a, inc);
		if (ref.bad == LT_NO_EVENT)
			continue;
		b.guilty = lt_event_src(a->lt, &inc->ledger[ref.bad]);
		b.why = "it put the last reference, and behind that its code uses the object";
		lt_extra_taken(a, inc, &ref);
		if (b.guilty)
			lt_accuse(a, &ref, &b);
	}
}
