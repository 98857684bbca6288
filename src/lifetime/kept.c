/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel handed out and nobody took back, of a site of which nothing ever was: programs keep descriptors and
 * mappings to their end on purpose, and no pointer tells who. A leak comes again and again while the program runs; what
 * is kept was opened once, or in one go. And the mappings that the C library makes for itself are its own affair, as
 * are its blocks, as long as somebody has a pointer to them.
 */
#include "lifetime/answer.h"
#include "lifetime/life.h"

/* A leak comes more often than that, and its first and last are a quarter of the rest of the run apart, or more. */
enum { KEPT_MOST = 4, SPREAD = 4 };

struct lt_keeping {
	uint64_t first_ns, last_ns;
	uint64_t recent_ns; /* of the one that was counted last */
	uint64_t comings;   /* the two of a pipe are one */
};

static struct rt_key key_of(const struct lt_ref *ref)
{
	return rt_key_make((uint64_t)ref->inc->type << 32 | ref->site, ref->inc->pid);
}

void lt_kept_count(struct lt_answer *a, const struct lt_ref *ref)
{
	uint64_t born_ns = ref->inc->birth_ns, *index;
	struct lt_keeping *k;
	bool made;

	if (!(lt_inc_type(a->lt, ref->inc)->flags & RT_TYPE_KERNEL))
		return;
	index = rt_map_put(&a->kept_by, key_of(ref), &made);
	k = index && !made ? &a->kept.data[*index] : index ? rt_vec_add(&a->kept) : NULL;
	if (!k) {
		a->nomem = true;
		return;
	}
	if (made) {
		*index = a->kept.len - 1;
		k->first_ns = born_ns;
	}
	k->first_ns = born_ns < k->first_ns ? born_ns : k->first_ns;
	k->last_ns = born_ns > k->last_ns ? born_ns : k->last_ns;
	k->comings += k->recent_ns != born_ns;
	k->recent_ns = born_ns;
}

bool lt_kept(const struct lt_answer *a, const struct lt_ref *ref)
{
	const uint64_t *at = rt_map_get(&a->lt->process_by_pid, rt_key_make(ref->inc->pid, 0));
	const uint64_t *index = rt_map_get(&a->kept_by, key_of(ref));
	const struct lt_keeping *k = index ? &a->kept.data[*index] : NULL;
	uint64_t end_ns = at && a->lt->processes.data[*at].ended ? a->lt->processes.data[*at].end_ns : a->lt->last_ns;

	if (!(lt_inc_type(a->lt, ref->inc)->flags & RT_TYPE_KERNEL) || !k)
		return false;
	return k->comings <= KEPT_MOST || k->last_ns - k->first_ns < (end_ns - k->first_ns) / SPREAD;
}

static const struct lt_stack *stack_of(const struct rt_lifetime *lt, const struct lt_use *use)
{
	static const struct lt_stack none;

	return use->stack ? &lt->stacks.data[use->stack - 1] : &none;
}

/* The innermost nr frames of s, which has them, are the C library's. */
static bool library_made(const struct rt_lifetime *lt, const struct lt_stack *s, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		if (!m->srcs || !lt_is_c_library(lt_src(lt, lt->stack_srcs.data[m->src])))
			return false;
	}
	return true;
}

bool lt_library_alone(const struct rt_lifetime *lt, const struct lt_use *use)
{
	const struct lt_stack *s = stack_of(lt, use);

	return s->nr && !s->cut && library_made(lt, s, s->nr);
}

bool lt_kept_by_library(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	const struct lt_type *type = lt_inc_type(lt, inc);
	const struct lt_use *use = inc->nr ? &lt->uses.data[inc->ledger[0].use] : NULL;
	const struct lt_stack *s = use ? stack_of(lt, use) : NULL;

	if (!use || (type->flags & RT_TYPE_DESCRIPTOR))
		return false;
	/* the call itself, and who made it; a block's first frame is who called malloc() */
	if (type->flags & RT_TYPE_KERNEL)
		return s->nr >= 2 && library_made(lt, s, 2);
	if (!(type->flags & RT_TYPE_HEAP_ONLY))
		return false;
	return lt_library_alone(lt, use) || (!inc->nobody && s->nr >= 1 && library_made(lt, s, 1));
}
