/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/reach.h"

#include <stdlib.h>

#include "insn/noreturn.h"

enum { WAYS_MAX = 4096 }; /* that are still to be followed */

struct walk {
	struct rt_plan_build *b;
	struct rt_elfaddr start, end;
	bool *seen; /* for each byte: an instruction that begins there was reached */
	struct rt_elfaddr ways[WAYS_MAX];
	unsigned count;
};

static bool add(struct walk *w, struct rt_elfaddr at)
{
	if (at.v < w->start.v || at.v >= w->end.v || w->seen[at.v - w->start.v])
		return true;
	if (w->count == WAYS_MAX)
		return false;
	w->seen[at.v - w->start.v] = true;
	w->ways[w->count++] = at;
	return true;
}

/* all ways begin at the entry, or behind what writes one of the registers */
static bool begin(struct walk *w, struct rt_elfaddr by, uint32_t regs)
{
	struct rt_insn insn;

	if (!add(w, w->start))
		return false;
	for (struct rt_elfaddr at = w->start; at.v < w->end.v; at.v += insn.length) {
		if (!rt_plan_decode(w->b, at, &insn))
			return false;
		if (at.v != by.v && insn.writes & regs && !insn.ret &&
		    !add(w, (struct rt_elfaddr){ at.v + insn.length }))
			return false;
	}
	return true;
}

static bool never_returns(const struct walk *w, const struct rt_insn *insn)
{
	const struct rt_plan_module *m = w->b->module;

	return rt_noreturn(m->image, m->symtab, w->b->decoder, insn);
}

static bool follow(struct walk *w, struct rt_elfaddr by, struct rt_elfaddr at)
{
	struct rt_insn insn;

	while (w->count) {
		struct rt_elfaddr now = w->ways[--w->count];

		if (now.v == by.v)
			continue;
		if (now.v == at.v || !rt_plan_decode(w->b, now, &insn))
			return false;
		if (insn.ret || (insn.call && never_returns(w, &insn)))
			continue;
		if (insn.jump && (!insn.has_target || !add(w, insn.target)))
			return false;
		if (!(insn.jump && !insn.conditional) && !add(w, (struct rt_elfaddr){ now.v + insn.length }))
			return false;
	}
	return true;
}

bool rt_reach_only_by(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr by,
		      struct rt_elfaddr at, uint32_t regs)
{
	struct walk w = { .b = b, .start = start, .end = end };
	bool only;

	w.seen = end.v > start.v ? calloc(end.v - start.v, sizeof(*w.seen)) : NULL;
	only = w.seen && begin(&w, by, regs) && follow(&w, by, at);
	free(w.seen);
	return only;
}
