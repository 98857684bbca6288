/* SPDX-License-Identifier: GPL-2.0-only */
/* What a full ledger loses, as counts by place: enough to tell which place took more than was given back. */
#include "lifetime/spill.h"

static struct rt_key key_of(const struct lt_inc *inc)
{
	return rt_key_make(inc->serial, inc->type);
}

static struct lt_spilled *find(struct rt_lifetime *lt, uint64_t *first, const struct lt_event *e)
{
	struct lt_spilled *one;

	for (uint64_t i = *first; i; i = lt->spill.all.data[i - 1].next) {
		one = &lt->spill.all.data[i - 1];
		if (one->use == e->use && one->opens == (e->delta > 0))
			return one;
	}
	one = rt_vec_add(&lt->spill.all);
	if (!one)
		return NULL;
	*one = (struct lt_spilled){ .use = e->use, .opens = e->delta > 0, .next = (uint32_t)*first };
	*first = lt->spill.all.len;
	return one;
}

void lt_spill(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *e)
{
	uint64_t *first = e->delta ? rt_map_put(&lt->spill.first, key_of(inc), NULL) : NULL;
	struct lt_spilled *one = first ? find(lt, first, e) : NULL;

	if (one)
		one->n += (uint64_t)(e->delta > 0 ? e->delta : -e->delta);
	else
		lt->nomem |= e->delta != 0;
}

const struct lt_spilled *lt_spill_next(const struct rt_lifetime *lt, const struct lt_inc *inc,
				       const struct lt_spilled *one)
{
	const uint64_t *first = one ? NULL : rt_map_get(&lt->spill.first, key_of(inc));
	uint64_t at = one ? one->next : first ? *first : 0;

	return at ? &lt->spill.all.data[at - 1] : NULL;
}

void lt_spill_free(struct rt_lifetime *lt)
{
	rt_map_deinit(&lt->spill.first);
	rt_vec_deinit(&lt->spill.all);
}
