/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An operation that one run of a function does twice: at two places of its code. What is done again and again at one
 * place is a loop (over a table that holds one object several times), and an inlined function has no run of its own:
 * called twice it does the same at two places, which are told apart by who called it.
 */
#include <stdlib.h>

#include "lifetime/state.h"

/* the function of the site and all it is inlined into, from the site on; *ret_nr: how many there are */
static const uint32_t *inlined_chain(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t *ret_nr)
{
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	const struct lt_machine *m;
	uint32_t site = use->site ? lt_site(lt, use->site)->src[0] : 0;

	*ret_nr = 0;
	if (!s || !site || use->machine >= LT_JUMPED || use->machine >= s->nr)
		return NULL;
	m = &lt->machines.data[s->first + use->machine];
	for (uint32_t i = 0; i < m->srcs; i++) {
		if (lt->stack_srcs.data[m->src + i] == site) {
			*ret_nr = m->srcs - i;
			return &lt->stack_srcs.data[m->src + i];
		}
	}
	return NULL;
}

/* both lie in one instance of one function: not more than this many lines apart */
static bool one_instance(const struct rt_lifetime *lt, const struct lt_use *x, const struct lt_use *y, int lines)
{
	uint32_t nx, ny;
	const uint32_t *cx = inlined_chain(lt, x, &nx), *cy = inlined_chain(lt, y, &ny);
	const struct lt_src *sx, *sy;

	if (!cx || !cy || nx != ny)
		return false;
	sx = lt_src(lt, cx[0]);
	sy = lt_src(lt, cy[0]);
	if (sx->function != sy->function || abs((int)sx->frame.line - (int)sy->frame.line) > lines)
		return false;
	for (uint32_t i = 1; i < nx; i++) {
		if (cx[i] != cy[i])
			return false;
	}
	return true;
}

bool lt_twice_in_run(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y)
{
	enum { ANY_LINE = 1 << 30 };

	/* a find that calls another one tells of one reference twice */
	if ((x->flags | y->flags) & (LT_EV_HIDDEN | LT_EV_RETURN))
		return false;
	return x->use != y->use && x->act && x->act == y->act &&
	       one_instance(lt, &lt->uses.data[x->use], &lt->uses.data[y->use], ANY_LINE);
}

static bool again(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y)
{
	return x->op == y->op && x->delta == y->delta && x->tid == y->tid && lt_twice_in_run(lt, x, y) &&
	       one_instance(lt, &lt->uses.data[x->use], &lt->uses.data[y->use], 1);
}

bool lt_back_at_once(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *put = &inc->ledger[ev], *get;
	uint32_t i = ev;

	while (i > 0 && !inc->ledger[i - 1].delta && inc->ledger[i - 1].op != RT_OP_NEW)
		i--;
	if (!i || put->op != RT_OP_PUT || put->delta >= 0)
		return false;
	get = &inc->ledger[i - 1];
	return get->op == RT_OP_GET && get->delta == -put->delta && get->tid == put->tid &&
	       lt_twice_in_run(lt, get, put) && one_instance(lt, &lt->uses.data[get->use], &lt->uses.data[put->use], 1);
}

bool lt_twice_in_row(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *mine = &inc->ledger[ev];
	uint32_t i = ev;

	while (i > 0 && !inc->ledger[i - 1].delta && inc->ledger[i - 1].op != RT_OP_NEW)
		i--;
	if (i > 0 && again(lt, mine, &inc->ledger[i - 1]))
		return true;
	i = ev + 1u;
	while (i < inc->nr && !inc->ledger[i].delta)
		i++;
	return i < inc->nr && again(lt, mine, &inc->ledger[i]);
}
