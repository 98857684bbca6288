/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a function does with what it got from a call, as far as its code tells: for functions of stripped files, which
 * no declaration says the result of. All ways from the call on are followed to the function's ends; what is not
 * understood is no proof.
 */
#include "symbol/parts.h"

enum { INSNS_MAX = 4000, WAYS_MAX = 256, ADDRESS_BYTES = 8, REGS = 16 };

/* Which registers hold what is looked for, and which 0. */
struct way {
	struct rt_elfaddr at;
	uint32_t value, zero;
};

struct walk {
	const struct rt_image *image;
	struct rt_decoder *decoder;
	struct rt_elfaddr start, end, after; /* of the function; behind the call */
	uint32_t registers;                  /* that hold what is looked for there */
	struct rt_elfaddr callee;            /* where the call leads; 0: who knows */
	RT_VEC(struct way) waiting;
	struct rt_map entered; /* (address, registers) */
	unsigned insns;
	bool returned, unknown;
};

static bool copies(const struct rt_insn *insn)
{
	return insn->is_mov && !insn->has_mem && !insn->has_imm && insn->width == ADDRESS_BYTES &&
	       insn->dst_reg < REGS && insn->src_reg < REGS;
}

static bool zeroes(const struct rt_insn *insn)
{
	return insn->dst_reg < REGS &&
	       (insn->is_zero || (insn->is_mov && insn->has_imm && !insn->has_mem && !insn->imm));
}

static void step(struct way *way, const struct rt_insn *insn)
{
	uint32_t value = way->value, zero = way->zero;

	way->value &= ~(insn->call ? RT_CHAIN_CLOBBERED : insn->writes);
	way->zero &= ~(insn->call ? RT_CHAIN_CLOBBERED : insn->writes);
	if (copies(insn)) {
		way->value |= (value >> insn->src_reg & 1u) << insn->dst_reg;
		way->zero |= (zero >> insn->src_reg & 1u) << insn->dst_reg;
	} else if (zeroes(insn)) {
		way->zero |= 1u << insn->dst_reg;
	}
}

static void go_on(struct walk *w, struct way way)
{
	bool made = false;

	if (way.at.v < w->start.v || way.at.v >= w->end.v)
		w->unknown = true; /* goes on in another function, or in a part of this one elsewhere */
	else if (!rt_map_put(&w->entered, rt_key_make(way.at.v, (uint64_t)way.value << 32 | way.zero), &made))
		w->unknown = true;
	else if (made && (w->waiting.len == WAYS_MAX || !rt_vec_push(&w->waiting, way)))
		w->unknown = true;
}

/* It calls, or jumps to, the function that was called: what that returns now is as good as what it returned then. */
static bool is_same(const struct walk *w, const struct rt_insn *call)
{
	return w->registers == 1u << RT_REG_RAX && w->callee.v && call->has_target && call->target.v == w->callee.v;
}

/* a call of the same; or the next turn of a loop, that calls once more */
static bool gives_another(const struct walk *w, const struct rt_insn *call)
{
	return call->addr.v + call->length == w->after.v || is_same(w, call);
}

/* until the way ends, or parts: then what is to be followed waits */
static void follow(struct walk *w, struct way way)
{
	while (!w->unknown) {
		struct rt_insn insn;

		if (++w->insns > INSNS_MAX ||
		    !rt_decode(w->decoder, rt_image_at(w->image, way.at, 16), way.at, &insn) || !insn.length ||
		    (insn.jump && !insn.has_target)) {
			w->unknown = true;
			return;
		}
		if (insn.ret) {
			w->returned |= way.value >> RT_REG_RAX & 1u;
			w->unknown |= !((way.value | way.zero) >> RT_REG_RAX & 1u);
			return;
		}
		step(&way, &insn);
		if (insn.jump && !is_same(w, &insn)) /* else it returns for this one */
			go_on(w, (struct way){ insn.target, way.value, way.zero });
		if (insn.jump && !insn.conditional)
			return;
		way.at.v += insn.length;
		if (insn.call && way.at.v >= w->end.v)
			return; /* does not return */
		if (insn.call && gives_another(w, &insn))
			way.value = w->registers;
		if (insn.jump) {
			go_on(w, way);
			return;
		}
		w->unknown |= way.at.v >= w->end.v;
	}
}

/* what the registers hold behind the call is what the function returns, or 0 */
static bool returns(struct walk *w, uint32_t registers)
{
	w->registers = registers;
	w->insns = 0;
	w->waiting.len = 0;
	w->returned = w->unknown = false;
	rt_map_deinit(&w->entered);
	if (!registers)
		return false;
	go_on(w, (struct way){ w->after, registers, 0 });
	while (w->waiting.len && !w->unknown)
		follow(w, w->waiting.data[--w->waiting.len]);
	return w->returned && !w->unknown;
}

/*
 * The registers that the call leaves alone and that hold its first argument, as the code stands, without its jumps;
 * *ret_own: that is the function's own. Where the call leads is noted.
 */
static uint32_t same_as_argument(struct walk *w, struct rt_elfaddr after, bool *ret_own)
{
	uint32_t number[REGS], next = REGS, same = 0;
	struct rt_elfaddr at = w->start;
	struct rt_insn insn = { .length = 0 };

	*ret_own = false;
	for (unsigned i = 0; i < REGS; i++)
		number[i] = i;
	for (unsigned n = 0; at.v < after.v; n++, at.v += insn.length) {
		uint32_t writes;

		if (n > INSNS_MAX || !rt_decode(w->decoder, rt_image_at(w->image, at, 16), at, &insn) || !insn.length)
			return 0;
		if (at.v + insn.length >= after.v)
			break;
		writes = insn.call ? RT_CHAIN_CLOBBERED : insn.writes;
		for (unsigned i = 0; i < REGS; i++) {
			if (writes >> i & 1u)
				number[i] = copies(&insn) && i == insn.dst_reg ? number[insn.src_reg] : next++;
		}
	}
	if (!insn.call || at.v + insn.length != after.v)
		return 0;
	if (insn.has_target)
		w->callee = insn.target;
	*ret_own = number[RT_REG_RDI] == RT_REG_RDI;
	for (unsigned i = 0; i < REGS; i++)
		same |= number[i] == number[RT_REG_RDI] && !(RT_CHAIN_CLOBBERED >> i & 1u) ? 1u << i : 0;
	return same;
}

uint8_t rt_chain_hands(const struct rt_image *image, struct rt_decoder *decoder, struct rt_elfaddr start,
		       struct rt_elfaddr end, struct rt_elfaddr after)
{
	struct walk w = { .image = image, .decoder = decoder, .start = start, .end = end, .after = after };
	bool own;
	uint32_t same = same_as_argument(&w, after, &own);
	uint8_t hands = own ? RT_HANDS_OWN : 0;

	hands |= returns(&w, 1u << RT_REG_RAX) ? RT_HANDS_RESULT : 0;
	hands |= returns(&w, same) ? RT_HANDS_ARGUMENT : 0;
	rt_vec_deinit(&w.waiting);
	rt_map_deinit(&w.entered);
	return hands;
}
