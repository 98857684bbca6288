/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/known.h"

#include "probe/counted.h"

enum { FUNCTION_BYTES = 64 << 10 };

/* A walk through a function's code to the store of a constant in it. */
struct constant_search {
	const struct rt_insn *store;
	uint32_t bases;        /* registers that hold what the store goes through, by copies in this line */
	uint32_t holders;      /* and what it overwrites */
	bool compared, agreed; /* it was compared in this line; all ways to the store lead from the same comparison */
	int64_t with, agreed_with;
	unsigned ways;
};

/* of all that reads or writes what the store overwrites */
static bool at_same(const struct constant_search *s, const struct rt_insn *one)
{
	return one->has_mem && !one->mem.segment && one->mem.base < RT_TRACK_REGS && (s->bases & 1u << one->mem.base) &&
	       one->mem.disp == s->store->mem.disp && one->mem.index == RT_REG_NONE &&
	       one->mem.size == s->store->mem.size;
}

/* of a test or cmp: cmp $1,8(%rbx), or what was read from there: test %eax,%eax, cmp $1,%eax */
static bool compares(const struct constant_search *s, const struct rt_insn *one, int64_t *ret_with)
{
	bool held = !one->has_mem && one->dst_reg < RT_TRACK_REGS && (s->holders & 1u << one->dst_reg) &&
		    one->width == s->store->mem.size;

	if (!held && !(one->has_imm && at_same(s, one)))
		return false;
	*ret_with = one->has_imm ? one->imm : 0;
	return one->has_imm ? one->is_cmp : one->src_reg == one->dst_reg && !one->is_cmp;
}

static void leads_there(struct constant_search *s)
{
	s->agreed = s->compared && (!s->ways || (s->agreed && s->with == s->agreed_with));
	s->agreed_with = s->with;
	s->ways++;
}

/* the registers after it */
static void pass_registers(struct constant_search *s, const struct rt_insn *one)
{
	uint32_t base = 1u << s->store->mem.base, dst = one->dst_reg < RT_TRACK_REGS ? 1u << one->dst_reg : 0;
	uint32_t src = one->src_reg < RT_TRACK_REGS ? 1u << one->src_reg : 0;
	bool reads = one->is_mov && at_same(s, one) && one->mem.reads;
	bool copies = one->is_mov && !one->has_mem && !one->has_imm && one->width == 8 && dst && src;
	bool same = copies && (s->bases & src);

	if ((one->writes & base) && !same) {
		s->bases = base | (copies ? src : 0);
		s->holders = 0;
		return;
	}
	s->holders = (s->holders & ~one->writes) | (reads ? dst : 0);
	s->bases = (s->bases & ~one->writes) | base | (same ? dst : 0);
}

static void pass(struct constant_search *s, const struct rt_insn *one)
{
	if (rt_counted_ends_line(one)) {
		s->bases = 1u << s->store->mem.base;
		s->holders = 0;
		s->compared = false;
		return;
	}
	if (one->is_test_or_cmp)
		s->compared = compares(s, one, &s->with);
	else /* flags live on over moves, and over nothing else that is known here */
		s->compared = s->compared && one->is_mov && !(one->writes & 1u << s->store->mem.base) &&
			      !(at_same(s, one) && one->mem.writes);
	pass_registers(s, one);
}

/* [ret_begin, store]: what is run after the last branch, or call, before the store. false: it writes the base, too */
static bool line_of(struct rt_plan_build *b, const struct rt_insn *store, struct rt_elfaddr start,
		    struct rt_elfaddr *ret_begin, struct rt_insn *ret_before)
{
	struct rt_insn one;
	bool kept = true;

	*ret_begin = start;
	*ret_before = (struct rt_insn){ .length = 0 };
	for (struct rt_elfaddr at = start; at.v < store->addr.v; at.v += one.length) {
		if (!rt_plan_decode(b, at, &one))
			return false;
		kept = rt_counted_ends_line(&one) || (kept && !(one.writes & 1u << store->mem.base));
		if (rt_counted_ends_line(&one)) {
			ret_begin->v = at.v + one.length;
			*ret_before = one;
		}
	}
	return kept;
}

bool rt_known_change(struct rt_plan_build *b, const struct rt_insn *insn, struct rt_change *ret)
{
	struct constant_search s = { .store = insn };
	struct rt_elfaddr start, end, begin;
	struct rt_insn one, before;

	if (!insn->is_mov || !insn->has_imm || !insn->mem.writes || insn->mem.base >= RT_TRACK_REGS ||
	    insn->mem.index != RT_REG_NONE || insn->mem.segment ||
	    !rt_survey_range(&b->survey, insn->addr, &start, &end) || end.v - start.v > FUNCTION_BYTES ||
	    !line_of(b, insn, start, &begin, &before) || !before.length || before.call)
		return false;
	s.bases = 1u << insn->mem.base;
	for (struct rt_elfaddr at = start; at.v < end.v; at.v += one.length) {
		if (!rt_plan_decode(b, at, &one))
			return false;
		if (one.jump && rt_counted_leads_into(b, &one, before.addr, insn->addr))
			leads_there(&s);
		if (one.jump && one.conditional && at.v + one.length == begin.v)
			leads_there(&s);
		pass(&s, &one);
	}
	*ret = (struct rt_change){ .offset = insn->mem.disp,
				   .size = (uint8_t)insn->mem.size,
				   .known = true,
				   .delta = insn->imm - s.agreed_with };
	return s.ways && s.agreed;
}
