/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/result.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

enum { RESULT_INSNS = 4000, RESULT_WAYS = 256, FIRST_PAGE = 4096, ADDRESS_BYTES = 8 };

/* What the register of the result holds. */
enum result { NOTHING /* what the caller left */, ZERO, NUMBER, ADDRESS /* maybe */ };

struct way {
	struct rt_elfaddr at;
	enum result result;
};

struct walk {
	const struct rt_image *image;
	struct rt_decoder *decoder;
	struct rt_elfaddr start, end;
	RT_VEC(struct way) waiting;
	struct rt_map entered; /* (address, result) */
	unsigned insns;
	bool number, unknown;
};

static void go_on(struct walk *w, uint64_t at, enum result result)
{
	struct way way = { .at = { at }, .result = result };
	bool made = false;

	if (at < w->start.v || at >= w->end.v)
		w->unknown = true; /* a tail call, a cold part, or no end at all */
	else if (!rt_map_put(&w->entered, rt_key_make(at, result), &made))
		w->unknown = true;
	else if (made && (w->waiting.len == RESULT_WAYS || !rt_vec_push(&w->waiting, way)))
		w->unknown = true;
}

static enum result result_after(enum result before, const struct rt_insn *insn)
{
	if (insn->call)
		return ADDRESS;
	if (!(insn->writes & 1u << RT_REG_RAX))
		return before;
	if (insn->is_zero)
		return ZERO;
	if (insn->is_mov && insn->has_imm && !insn->has_mem && insn->imm >= 0 && insn->imm < FIRST_PAGE)
		return insn->imm ? NUMBER : ZERO;
	if (insn->is_mov && insn->has_imm && !insn->has_mem)
		return insn->imm < 0 ? NUMBER : ADDRESS; /* that of a variable of a program at a fixed place */
	return insn->dst_reg == RT_REG_RAX && insn->width < ADDRESS_BYTES ? NUMBER : ADDRESS;
}

static void follow(struct walk *w, struct way way)
{
	while (!w->unknown) {
		struct rt_insn insn;

		if (++w->insns > RESULT_INSNS ||
		    !rt_decode(w->decoder, rt_image_at(w->image, way.at, 16), way.at, &insn) ||
		    (insn.jump && !insn.has_target)) {
			w->unknown = true;
			return;
		}
		way.result = result_after(way.result, &insn);
		if (insn.ret) {
			w->number |= way.result == NUMBER || way.result == NOTHING;
			w->unknown |= way.result == ADDRESS;
			return;
		}
		if (insn.jump)
			go_on(w, insn.target.v, way.result);
		way.at.v += insn.length;
		if (insn.jump) {
			if (insn.conditional)
				go_on(w, way.at.v, way.result);
			return;
		}
		if (way.at.v >= w->end.v) {
			w->unknown = true;
			return;
		}
	}
}

bool rt_result_is_number(const struct rt_image *image, struct rt_decoder *decoder, const struct rt_symbol *function)
{
	struct walk w = { .image = image,
			  .decoder = decoder,
			  .start = function->addr,
			  .end = { function->addr.v + function->size } };

	go_on(&w, function->addr.v, NOTHING);
	while (w.waiting.len && !w.unknown)
		follow(&w, w.waiting.data[--w.waiting.len]);
	rt_vec_deinit(&w.waiting);
	rt_map_deinit(&w.entered);
	return w.number && !w.unknown;
}
