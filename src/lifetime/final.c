/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who took apart what held a pointer. Objects of class systems are freed by who freed all of them alike, in another
 * library or file than any code that knows what is in them: the class's finalizer, which that called before, has put
 * what the object held, or forgot to. A slot that goes with such a block is that one's, so the event has its function
 * as its site.
 *
 * Which finalizer it was: of the last that this thread was seen to enter, those that were given what lies nearest to
 * the slot; and of these, the last one that stands in the file of who stored the pointer there, or goes by the same
 * name.
 */
#include <string.h>

#include "lifetime/life.h"
#include "lifetime/site.h"

enum { REACH = 4096 /* bytes between an object and a slot of its own, on either side */ };

void lt_final_enter(struct rt_lifetime *lt, const struct lt_seen *seen)
{
	struct lt_thread *t = lt_thread(lt, seen->e->head.pid, seen->ev.tid);

	if (t && seen->e->object)
		t->finals[t->final_next++ % LT_FINALS] = (struct lt_final){ seen->e->object, seen->ev.use };
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* "_auth_finalize" and "_auth_set_stream" are of one class */
static bool same_class(const char *final, const char *stores)
{
	const char *last = strrchr(final, '_');
	size_t n = last ? (size_t)(last - final) + 1 : 0;

	return n > strspn(final, "_") + 1 && !strncmp(final, stores, n);
}

/* source id of the finalizer; in which file it stands may show in a frame that is seen later. 0: out of memory */
static uint32_t source_of(struct rt_lifetime *lt, const struct lt_final *f)
{
	struct lt_point *p = &lt->points.data[lt->uses.data[f->use].point];

	if (!p->final || (!lt_src(lt, p->final)->frame.file && lt->srcs.len >= 2u * p->sources)) {
		p->sources = (uint32_t)lt->srcs.len;
		p->final = lt_src_named(lt, p);
	}
	return p->final;
}

/* the same, where it belongs to who stored the pointer, by that one's source id; 0: it does not */
static uint32_t final_for(struct rt_lifetime *lt, const struct lt_final *f, uint32_t by)
{
	const uint32_t src = source_of(lt, f); /* sources may lie elsewhere from here on */
	const struct rt_frame *final = &lt_src(lt, src)->frame, *stores = &lt_src(lt, by)->frame;

	if (!src || !final->function || !stores->function || final->module_id != stores->module_id)
		return 0;
	if (final->file && stores->file && !strcmp(final->file, stores->file))
		return src;
	return same_class(final->function, stores->function) ? src : 0;
}

/* who stored the pointer in the slot last; NULL: nobody was seen to */
static const struct lt_event *store_of(const struct rt_lifetime *lt, const struct lt_inc *inc, uint64_t slot)
{
	for (uint32_t i = inc->nr; i-- > 0;) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->slot == slot && lt_point_stores(&lt->points.data[lt->uses.data[e->use].point]))
			return e;
	}
	return NULL;
}

/*
 * Who frees the block: whose site it is, or the put of its type that this called, which is no site. What is further in
 * is how blocks are freed there.
 */
static const struct rt_frame *freer_of(const struct rt_lifetime *lt, const struct lt_inc *inc,
				       const struct lt_event *freed)
{
	const uint32_t stack = lt->uses.data[freed->use].stack, site = lt_event_src(lt, freed);
	const struct lt_stack *s = stack ? &lt->stacks.data[stack - 1] : NULL;
	uint32_t src = site;

	for (uint32_t i = 0; s && i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		for (uint32_t k = 0; k < m->srcs; k++) {
			const uint32_t at = lt->stack_srcs.data[m->src + k];

			if (at == site)
				return &lt_src(lt, src)->frame;
			if (lt_is_api(lt, lt_inc_type(lt, inc), lt_src(lt, at)))
				src = at;
		}
	}
	return &lt_src(lt, site)->frame;
}

/* that one stands in another library, or file, than who stored the pointer in it: it knows nothing of what is in there
 */
static bool frees_alike(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *freed,
			uint32_t by)
{
	const struct rt_frame *stores = &lt_src(lt, by)->frame, *frees = freer_of(lt, inc, freed);

	return frees->module_id != stores->module_id ||
	       (frees->file && stores->file && strcmp(frees->file, stores->file) != 0);
}

/* the finalizer still runs: it frees the block itself, or has it freed */
static bool still_runs(const struct rt_lifetime *lt, const struct lt_event *freed, uint32_t src)
{
	const uint32_t stack = lt->uses.data[freed->use].stack;

	return stack && lt_in_stack(lt, stack, lt_src(lt, src)->function, NULL);
}

bool lt_final_of(struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t pid, struct lt_event *freed)
{
	const struct lt_thread *t = lt_thread(lt, pid, freed->tid);
	const struct lt_event *stored = t ? store_of(lt, inc, freed->slot) : NULL;
	const uint32_t by = stored ? lt_event_src(lt, stored) : 0;
	uint64_t nearest = REACH;
	uint32_t src = 0, use;

	if (!by || !frees_alike(lt, inc, freed, by))
		return true;
	for (unsigned i = 0; i < LT_FINALS; i++) {
		if (t->finals[i].object && distance(t->finals[i].object, freed->slot) < nearest)
			nearest = distance(t->finals[i].object, freed->slot);
	}
	for (unsigned i = 0; i < LT_FINALS && !src; i++) {
		const struct lt_final *f = &t->finals[(t->final_next - 1u - i) % LT_FINALS];

		if (f->object && distance(f->object, freed->slot) == nearest)
			src = final_for(lt, f, by);
	}
	if (!src || still_runs(lt, freed, src))
		return true;
	use = lt_use_instead(lt, freed->use, src);
	if (use == UINT32_MAX)
		return false;
	freed->use = use;
	/* it is over: what it put in its run was for what is freed now */
	freed->act = freed->up = 0;
	return true;
}
