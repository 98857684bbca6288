/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A reference that a constructor takes for the object it makes is given back by what ends that object. Where none of
 * them was, though such objects have ended, the place that lacks the put has no event of its own on the object that
 * leaks: it is the put, or the free function, of the holder's type.
 */
#include "lifetime/answer.h"

const struct lt_type *lt_made_by(const struct rt_lifetime *lt, uint32_t name, uint32_t type)
{
	for (uint32_t i = 0; name && i < lt->types.len; i++) {
		const struct lt_type *t = &lt->types.data[i];
		const uint64_t *api = i == type ? NULL : rt_map_get(&t->api, rt_key_make(name, 0));

		if (api && (*api & LT_API_NEW))
			return t;
	}
	return NULL;
}

/* what ends objects of the type: its free function where that was seen at work, else its put */
static const struct lt_point *ender(const struct rt_lifetime *lt, uint32_t type)
{
	const struct lt_point *best = NULL;

	for (size_t i = 0; i < lt->points.len; i++) {
		const struct lt_point *p = &lt->points.data[i];

		if (p->type != type || !p->events || (p->op != RT_OP_PUT && p->op != RT_OP_FREE))
			continue;
		if (!best || (p->op == RT_OP_FREE && best->op == RT_OP_PUT) ||
		    (p->op == best->op && p->events > best->events))
			best = p;
	}
	return best;
}

uint32_t lt_holder_end(struct rt_lifetime *lt, const struct lt_model *m, const struct lt_ref *ref)
{
	const struct lt_src *src = lt_src(lt, lt_site(lt, ref->site)->src[0]);
	const struct lt_type *holder = lt_made_by(lt, src->name, ref->inc->type);
	uint32_t type = holder ? (uint32_t)(holder - lt->types.data) : 0;
	uint64_t ended = holder ? lt_type_healthy(lt, type) : 0;
	const struct lt_point *p;

	if (!ended || lt_model_closed(m, ref->site) > 0)
		return 0;
	/* as many of them have ended as left a reference: none of these was given back */
	if ((double)ended < lt_model_left_open(m, ref->site))
		return 0;
	p = ender(lt, type);
	return p ? lt_src_named(lt, p) : 0;
}
