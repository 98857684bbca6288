/* SPDX-License-Identifier: GPL-2.0-only */
/* Each instruction of the wrapper is looked at once. */
#include "probe/tail.h"

#include "probe/track.h"

enum {
	TAIL_BYTES = 256, /* a wrapper is small */
	TAIL_PATHS = 16,
};

struct path {
	struct rt_elfaddr at;
	struct rt_track track;
};

struct walk {
	const struct rt_symtab *symtab;
	const struct rt_symbol *function;
	bool entered[TAIL_BYTES];
	struct path waiting[TAIL_PATHS];
	unsigned count;
	struct rt_elfaddr tail;
	bool found, failed;
};

/* Is at the beginning of a function that can be called by name? */
static bool is_public(const struct rt_symtab *symtab, struct rt_elfaddr at)
{
	const struct rt_symbol *symbol = symtab ? rt_symtab_at(symtab, at) : NULL;

	return symbol && symbol->addr.v == at.v && (symbol->plt || symbol->bind != RT_BIND_LOCAL);
}

static void go(struct walk *w, struct rt_elfaddr at, const struct rt_track *track, uint8_t reg)
{
	const struct rt_value *v = &track->regs[reg];
	uint64_t offset = at.v - w->function->addr.v;

	if (at.v < w->function->addr.v || offset >= w->function->size) {
		if (v->kind != RT_VALUE_OBJECT || v->n || is_public(w->symtab, at))
			return;
		w->failed |= w->found && w->tail.v != at.v;
		w->found = true;
		w->tail = at;
		return;
	}
	if (w->entered[offset])
		return;
	w->entered[offset] = true;
	if (w->count == TAIL_PATHS)
		w->failed = true;
	else
		w->waiting[w->count++] = (struct path){ .at = at, .track = *track };
}

bool rt_tail_of(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		const struct rt_symbol *function, uint8_t reg, struct rt_elfaddr *ret)
{
	struct walk w = { .symtab = symtab, .function = function };
	struct rt_track start;

	if (function->size > TAIL_BYTES || reg >= RT_TRACK_REGS)
		return false;
	rt_track_init(&start, reg);
	go(&w, function->addr, &start, reg);
	while (w.count && !w.failed) {
		struct path p = w.waiting[--w.count];
		struct rt_insn insn;

		if (!rt_decode(decoder, rt_image_at(image, p.at, 16), p.at, &insn))
			return false;
		rt_track_step(&p.track, &insn);
		p.track.change_count = 0;
		if (insn.jump && insn.has_target)
			go(&w, insn.target, &p.track, reg);
		if (!insn.ret && (!insn.jump || insn.conditional))
			go(&w, (struct rt_elfaddr){ p.at.v + insn.length }, &p.track, reg);
	}
	if (!w.found || w.failed)
		return false;
	*ret = w.tail;
	return true;
}
