/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/counted.h"
#include "probe/known.h"
#include "probe/reach.h"

enum { BACK_INSNS = 24, BACK_BYTES = 64 << 10 };

void rt_counted_deinit(struct rt_counted *counted)
{
	rt_vec_deinit(&counted->sites);
}

/* A part of the instance's code. */
struct part {
	struct rt_elfaddr start, end; /* [start, end) */
	size_t first, count;          /* sites */
};

struct branch {
	struct rt_elfaddr target;
	size_t part; /* where it is */
};

struct search {
	struct rt_plan_build *b;
	const struct rt_plan_type *type;
	int16_t delta;
	struct rt_counted *counted;
	RT_VEC(struct part) parts;
	RT_VEC(struct branch) branches;
	bool failed;
};

/* Memory of the function's own frame, where copies are kept. */
static bool in_frame(struct rt_plan_build *b, const struct rt_insn *insn)
{
	struct rt_cfi_row row;

	if (insn->mem.base == RT_REG_RSP)
		return true;
	return insn->mem.base == RT_REG_RBP &&
	       (!rt_dwarf_cfi(b->module->dwarf, insn->addr, &row) || row.cfa_reg == RT_REG_RBP);
}

/* The changes of the last instruction of straight code [from, insn] to what reg points to. false: not followed */
static bool change_of(struct rt_plan_build *b, struct rt_elfaddr from, const struct rt_insn *insn,
		      struct rt_change *ret)
{
	struct rt_track track;
	struct rt_insn at;
	unsigned before;

	rt_track_init(&track, insn->mem.base);
	for (; from.v < insn->addr.v; from.v += at.length) {
		if (!rt_plan_decode(b, from, &at))
			return false;
		rt_track_step(&track, &at);
	}
	before = track.change_count;
	rt_track_step(&track, insn);
	if (track.too_many || track.change_count != before + 1 || !track.changes[before].known)
		return false;
	*ret = track.changes[before];
	return true;
}

/* One whose target nobody knows leads to code with the same frame, or out of the function: a tail call has none. */
static bool may_lead_to(struct rt_plan_build *b, const struct rt_insn *jump, struct rt_elfaddr to)
{
	struct rt_cfi_row here, there;

	if (jump->has_target)
		return jump->target.v == to.v;
	return !rt_dwarf_cfi(b->module->dwarf, jump->addr, &here) || !rt_dwarf_cfi(b->module->dwarf, to, &there) ||
	       (here.cfa_reg == there.cfa_reg && here.cfa_offset == there.cfa_offset);
}

/*
 * [at, to] does not read what just [from, at) has put into registers. Where a switch leads, code begins like this: who
 * comes there by its jump has nothing in them.
 */
static bool begins_anew(struct rt_plan_build *b, struct rt_elfaddr from, struct rt_elfaddr at, struct rt_elfaddr to)
{
	struct rt_insn insn;
	uint32_t set = 0;

	for (; from.v <= to.v; from.v += insn.length) {
		if (!rt_plan_decode(b, from, &insn))
			return true;
		if (from.v < at.v) {
			set |= insn.writes & ~(1u << RT_REG_RSP);
			continue;
		}
		if (insn.reads & set)
			return false;
		set &= ~insn.writes;
	}
	return true;
}

bool rt_counted_leads_into(struct rt_plan_build *b, const struct rt_insn *jump, struct rt_elfaddr from,
			   struct rt_elfaddr to)
{
	struct rt_elfaddr at = from;
	struct rt_insn insn;

	if (jump->has_target)
		return jump->target.v > from.v && jump->target.v <= to.v;
	while (at.v < to.v) {
		if (!rt_plan_decode(b, at, &insn))
			return true;
		at.v += insn.length;
		if (begins_anew(b, from, at, to) && may_lead_to(b, jump, at))
			return true;
	}
	return false;
}

bool rt_counted_joined(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr from,
		       struct rt_elfaddr to)
{
	struct rt_insn insn;

	for (; start.v < end.v; start.v += insn.length) {
		if (!rt_plan_decode(b, start, &insn))
			return true;
		if (insn.jump && rt_counted_leads_into(b, &insn, from, to))
			return true;
	}
	return false;
}

/*
 * test reg,reg and a jump: who goes on has an object, and who does not has none to be told of. Or no object is put into
 * reg right before the jump. Or something is compared with -1: the count of constants, for which nothing counts.
 */
static bool only_null_leaves(const struct rt_insn *before, const struct rt_insn *jump, uint8_t reg)
{
	if (jump->jump && !jump->conditional)
		return before->is_zero && before->dst_reg == reg && before->addr.v + before->length == jump->addr.v;
	if (jump->jump && before->is_test_or_cmp && before->has_imm && before->imm == -1 && before->width >= 4 &&
	    before->addr.v + before->length == jump->addr.v)
		return true;
	return jump->jump && jump->conditional && before->is_test_or_cmp && !before->has_mem && !before->has_imm &&
	       before->width == 8 && before->dst_reg == reg && before->src_reg == reg &&
	       before->addr.v + before->length == jump->addr.v;
}

/* Whoever jumps to `to` has no object in reg, or jumps there from behind `from`. */
static bool only_null_joins(struct rt_plan_build *b, const struct rt_site_request *request, struct rt_elfaddr to)
{
	struct rt_insn one, last = { .length = 0 };

	for (struct rt_elfaddr at = request->start; at.v < request->end.v; at.v += one.length) {
		if (!rt_plan_decode(b, at, &one) || (one.jump && may_lead_to(b, &one, to) &&
						     !(one.has_target && only_null_leaves(&last, &one, request->reg))))
			return false;
		last = one;
	}
	return true;
}

/* The instruction right behind: those who come there by a jump have nothing to be told of. */
static bool place_behind(struct rt_plan_build *b, const struct rt_site_request *request, struct rt_site *ret)
{
	struct rt_site_request behind = *request;
	struct rt_insn counts;
	const char *why;

	if (!rt_plan_decode(b, request->entry, &counts) || rt_counted_ends_line(&counts) ||
	    (counts.writes & (1u << request->reg)))
		return false;
	behind.entry.v += counts.length;
	if (!only_null_joins(b, request, behind.entry) || !rt_site_find(&behind, ret, &why) ||
	    ret->address.v != behind.entry.v)
		return false;
	rt_track_init(&ret->track, request->reg);
	rt_track_step(&ret->track, &counts);
	return rt_track_object(&ret->track, ret->reg) == ret->reg;
}

bool rt_counted_place(struct rt_plan_build *b, const struct rt_site_request *request, struct rt_site *ret,
		      const char **ret_why)
{
	struct rt_site_request before = *request;
	struct rt_elfaddr at, lines[BACK_INSNS];
	struct rt_insn one, last = { .length = 0 };
	size_t count = 0;
	const char *why;

	if (rt_site_find(request, ret, ret_why))
		return true;
	if (!request->start.v || request->entry.v - request->start.v > BACK_BYTES || request->reg >= RT_TRACK_REGS ||
	    request->slot)
		return false;
	for (at = request->start; at.v < request->entry.v; at.v += one.length) {
		if (!rt_plan_decode(b, at, &one))
			return false;
		if ((rt_counted_ends_line(&one) && !only_null_leaves(&last, &one, request->reg)) ||
		    (one.writes & (1u << request->reg)))
			count = 0;
		else
			lines[count++ % BACK_INSNS] = at;
		last = one;
	}
	for (size_t back = 1; at.v == request->entry.v && back <= count && back <= BACK_INSNS; back++) {
		before.entry = lines[(count - back) % BACK_INSNS];
		if (rt_counted_joined(b, request->start, request->end, before.entry, request->entry))
			break;
		if (rt_site_find(&before, ret, &why))
			return ret->address.v < request->entry.v;
	}
	return at.v == request->entry.v && place_behind(b, request, ret);
}

bool rt_counted_bias(struct rt_plan_build *b, const struct rt_site *site, struct rt_elfaddr counts, int64_t offset,
		     uint32_t size, int64_t delta, int8_t *ret)
{
	struct rt_track track = site->track;
	struct rt_change *first = &track.changes[0];
	struct rt_insn insn;
	int8_t before;

	/* the walk to the site began there, without what had been put into registers before */
	if (site->address.v > counts.v && track.change_count && !first->known && first->offset == offset &&
	    first->size == size) {
		first->known = true;
		first->delta = delta;
	}
	if (!rt_track_bias(&track, offset, size, ret))
		return false;
	/* a site before it: another operation may come between the two */
	rt_track_init(&track, site->reg);
	for (struct rt_elfaddr at = site->address; at.v < counts.v; at.v += insn.length) {
		if (!rt_plan_decode(b, at, &insn))
			return false;
		rt_track_step(&track, &insn);
	}
	if (!rt_track_bias(&track, offset, size, &before) || *ret - before < INT8_MIN || *ret - before > INT8_MAX)
		return false;
	*ret = (int8_t)(*ret - before);
	return true;
}

bool rt_counted_holds(struct rt_plan_build *b, const struct rt_counted_site *site, struct rt_elfaddr from)
{
	struct rt_elfaddr start, end, at = from;
	struct rt_insn insn;

	if (from.v >= site->address.v || site->address.v - from.v > BACK_BYTES ||
	    !rt_survey_range(&b->survey, site->address, &start, &end) || end.v - start.v > BACK_BYTES)
		return false;
	for (; at.v < site->address.v; at.v += insn.length)
		if (!rt_plan_decode(b, at, &insn) || insn.call || insn.ret || (insn.jump && !insn.conditional) ||
		    (insn.writes & (1u << site->reg)))
			return false;
	return at.v == site->address.v && !rt_counted_joined(b, start, end, from, site->address);
}

/*
 * What the instruction does as the end of straight code before it, in which nothing writes the register that it stores
 * through, and that nobody joins on the way. The shortest that tells. false: none does
 */
static bool change_of_line(struct rt_plan_build *b, const struct rt_insn *insn, struct rt_change *ret)
{
	struct rt_elfaddr start, end, at, lines[BACK_INSNS];
	struct rt_insn one;
	size_t count = 0;

	if (!rt_survey_range(&b->survey, insn->addr, &start, &end) || end.v - start.v > BACK_BYTES)
		return false;
	for (at = start; at.v < insn->addr.v; at.v += one.length) {
		if (!rt_plan_decode(b, at, &one))
			return false;
		if (rt_counted_ends_line(&one) || (one.writes & (1u << insn->mem.base)))
			count = 0;
		else
			lines[count++ % BACK_INSNS] = at;
	}
	for (size_t back = 1; at.v == insn->addr.v && back <= count && back <= BACK_INSNS; back++) {
		at = lines[(count - back) % BACK_INSNS];
		if (change_of(b, at, insn, ret))
			return !rt_counted_joined(b, start, end, at, insn->addr);
		at = insn->addr;
	}
	return false;
}

/*
 * A few more or less than in register *ret_from, which insn puts into reg; compilers make one addition of two. 0: it is
 * no such instruction
 */
static int64_t few_by(const struct rt_insn *insn, uint8_t reg, uint32_t width, uint8_t *ret_from)
{
	int64_t by = insn->is_lea ? insn->mem.disp : insn->is_sub ? -insn->imm : insn->imm;
	bool lea = insn->is_lea && insn->mem.index == RT_REG_NONE && insn->mem.base < RT_TRACK_REGS;

	if (insn->dst_reg != reg || insn->width != width || by > RT_COUNTED_AT_ONCE || by < -RT_COUNTED_AT_ONCE ||
	    !(lea || (!insn->has_mem && insn->has_imm && (insn->is_add || insn->is_sub))))
		return 0;
	*ret_from = lea ? insn->mem.base : reg;
	return by;
}

/* it reads into a register what insn stores; 0: it does not */
static uint32_t reads_same(const struct rt_insn *one, const struct rt_insn *insn)
{
	bool same = one->is_mov && one->has_mem && one->mem.reads && !one->mem.writes && !one->mem.segment &&
		    one->dst_reg < RT_TRACK_REGS && one->mem.base == insn->mem.base &&
		    one->mem.disp == insn->mem.disp && one->mem.index == RT_REG_NONE && one->mem.size == insn->mem.size;

	return same ? 1u << one->dst_reg : 0;
}

/* into what a register points to, from another register */
static bool stores_register(const struct rt_insn *insn)
{
	return insn->is_mov && !insn->has_imm && insn->src_reg < RT_TRACK_REGS && insn->mem.base < RT_TRACK_REGS &&
	       insn->mem.index == RT_REG_NONE && !insn->mem.segment;
}

/*
 * What was read is tested first (an immortal object's counter is left alone), and changed and stored behind branches:
 * the store of a register that the function has read there, or of one made of such, changed by a few, and no more, in
 * the same line.
 */
static bool change_of_tested(struct rt_plan_build *b, const struct rt_insn *insn, struct rt_change *ret)
{
	struct rt_elfaddr start, end, at, from = { 0 };
	struct rt_insn one;
	int64_t delta = 0;
	uint32_t read = 0; /* registers */

	if (!stores_register(insn) || !rt_survey_range(&b->survey, insn->addr, &start, &end) ||
	    end.v - start.v > BACK_BYTES)
		return false;
	for (at = start; at.v < insn->addr.v; at.v += one.length) {
		uint32_t both = 1u << insn->src_reg | 1u << insn->mem.base;
		uint8_t reg = 0;
		int64_t by;

		if (!rt_plan_decode(b, at, &one))
			return false;
		read |= reads_same(&one, insn);
		by = delta ? 0 : few_by(&one, insn->src_reg, insn->mem.size, &reg);
		if (by && read & 1u << reg) {
			delta = by;
			from = at;
		} else if (rt_counted_ends_line(&one) || (one.writes & both)) {
			delta = 0;
		}
	}
	*ret = (struct rt_change){
		.offset = insn->mem.disp, .size = (uint8_t)insn->mem.size, .known = true, .delta = delta
	};
	return delta && at.v == insn->addr.v && !rt_counted_joined(b, start, end, from, insn->addr);
}

/* both read the pointer that lies in one place */
static bool reads_pointer_of(const struct rt_insn *one, const struct rt_insn *other)
{
	return one->is_mov && one->has_mem && one->mem.reads && one->mem.size == 8 && one->mem.index == RT_REG_NONE &&
	       other->is_mov && other->has_mem && other->mem.reads && other->mem.size == 8 &&
	       other->mem.index == RT_REG_NONE && one->mem.base == other->mem.base &&
	       one->mem.disp == other->mem.disp && one->mem.segment == other->mem.segment;
}

/*
 * Without optimisation each mention of a variable reads it anew: the pointer, what it leads to, one more or less, the
 * pointer again, and the store. Nothing else is between.
 */
static bool change_of_reloaded(struct rt_plan_build *b, const struct rt_insn *insn, struct rt_change *ret)
{
	enum { POINTER, COUNT, CHANGE, AGAIN, BEFORE };
	struct rt_insn line[BEFORE];
	struct rt_elfaddr start, end, at;
	unsigned n = 0;
	uint8_t reg = 0;
	int64_t by;

	if (!stores_register(insn) || !rt_survey_range(&b->survey, insn->addr, &start, &end) ||
	    end.v - start.v > BACK_BYTES)
		return false;
	for (at = start; at.v < insn->addr.v; at.v += line[BEFORE - 1].length, n++) {
		memmove(line, line + 1, sizeof(line) - sizeof(line[0]));
		if (!rt_plan_decode(b, at, &line[BEFORE - 1]))
			return false;
	}
	if (n < BEFORE || at.v != insn->addr.v)
		return false;
	by = few_by(&line[CHANGE], insn->src_reg, insn->mem.size, &reg);
	*ret = (struct rt_change){
		.offset = insn->mem.disp, .size = (uint8_t)insn->mem.size, .known = true, .delta = by
	};
	return by && reads_pointer_of(&line[POINTER], &line[AGAIN]) && line[AGAIN].dst_reg == insn->mem.base &&
	       line[AGAIN].dst_reg != insn->src_reg && line[COUNT].is_mov && line[COUNT].has_mem &&
	       line[COUNT].mem.reads && line[COUNT].dst_reg == reg && line[COUNT].mem.index == RT_REG_NONE &&
	       line[COUNT].mem.base == line[POINTER].dst_reg && line[COUNT].mem.disp == insn->mem.disp &&
	       line[COUNT].mem.size == insn->mem.size &&
	       !rt_counted_joined(b, start, end, line[POINTER].addr, insn->addr);
}

/* By itself, or at the end of its line. */
static bool change_by(struct rt_plan_build *b, const struct rt_insn *insn, struct rt_change *ret)
{
	return change_of(b, insn->addr, insn, ret) || change_of_line(b, insn, ret) || change_of_tested(b, insn, ret) ||
	       change_of_reloaded(b, insn, ret) || rt_known_change(b, insn, ret);
}

bool rt_counted_delta(struct rt_plan_build *b, const struct rt_insn *insn, int64_t *ret_delta)
{
	struct rt_change change;

	if (!change_by(b, insn, &change))
		return false;
	*ret_delta = change.delta;
	return true;
}

/* An instruction of the instance that writes as many bytes as the counter has, somewhere. */
static void consider(struct search *s, const struct rt_insn *insn)
{
	struct rt_counted_site site = { .address = insn->addr, .reg = insn->mem.base };
	const struct rt_plan_type *type = s->type;
	struct rt_change change;
	bool clear = insn->mem.base < RT_TRACK_REGS && insn->mem.index == RT_REG_NONE && !insn->mem.segment;

	if (!clear || !change_by(s->b, insn, &change) || change.delta != s->delta ||
	    s->counted->sites.len == RT_COUNTED_MAX) {
		s->counted->unclear++;
		return;
	}
	site.offset = change.offset - type->counter_offset;
	s->failed |= !rt_vec_push(&s->counted->sites, site);
}

static void look(struct rt_elfaddr start, struct rt_elfaddr end, void *arg)
{
	struct search *s = arg;
	struct part part = { .start = start, .end = end, .first = s->counted->sites.len };
	struct rt_insn insn;

	for (; start.v < end.v; start.v += insn.length) {
		struct branch branch = { .part = s->parts.len };

		if (!rt_plan_decode(s->b, start, &insn)) {
			s->counted->unclear++;
			break;
		}
		branch.target = insn.target;
		if (insn.jump && insn.has_target)
			s->failed |= !rt_vec_push(&s->branches, branch);
		if (insn.has_mem && insn.mem.writes && insn.mem.size == s->type->counter_size && !insn.push &&
		    !insn.call && !in_frame(s->b, &insn))
			consider(s, &insn);
	}
	part.count = s->counted->sites.len - part.first;
	s->failed |= !rt_vec_push(&s->parts, part);
}

/* Who runs it has run another part before: one jumps there, or ends there. */
static bool goes_on(const struct search *s, size_t index)
{
	const struct part *part = &s->parts.data[index];

	for (size_t i = 0; i < s->branches.len; i++) {
		const struct branch *b = &s->branches.data[i];

		if (b->part != index && b->target.v >= part->start.v && b->target.v < part->end.v)
			return true;
	}
	for (size_t i = 0; i < s->parts.len; i++)
		if (s->parts.data[i].end.v == part->start.v)
			return true;
	return false;
}

bool rt_counted_find(struct rt_plan_build *b, const struct rt_plan_type *type, int16_t delta,
		     const struct rt_inlined *instance, struct rt_counted *ret)
{
	struct search s = { .b = b, .type = type, .delta = delta, .counted = ret };

	*ret = (struct rt_counted){ 0 };
	if (type->counter_offset == RT_COUNTER_UNKNOWN || !delta)
		return true;
	rt_dwarf_inlined_ranges(b->module->dwarf, instance, look, &s);
	ret->plain = ret->sites.len && !ret->unclear;
	for (size_t i = 0; i < s.parts.len && !s.failed; i++) {
		const struct part *part = &s.parts.data[i];
		bool is_way_in = part->count && !goes_on(&s, i);

		ret->copies += is_way_in;
		ret->plain &= part->count <= 1 && (!part->count || !ret->sites.data[part->first].offset);
		for (size_t k = part->first; k < part->first + part->count; k++)
			ret->sites.data[k].begin.v = is_way_in && part->count == 1 ? part->start.v : UINT64_MAX;
	}
	rt_vec_deinit(&s.parts);
	rt_vec_deinit(&s.branches);
	return !s.failed;
}

/* The count was moved ahead: who does it comes to where the instance begins next, whatever way led there. */
static bool is_ahead(struct rt_plan_build *b, struct rt_elfaddr at, struct rt_elfaddr entry)
{
	struct rt_insn insn;

	for (; at.v < entry.v; at.v += insn.length) {
		if (!rt_plan_decode(b, at, &insn) || rt_counted_ends_line(&insn))
			return false;
	}
	return at.v == entry.v;
}

bool rt_counted_passed(struct rt_plan_build *b, const struct rt_inlined *instance, const struct rt_counted *counted)
{
	struct rt_elfaddr start, end;
	bool passed = false;

	if (!rt_survey_range(&b->survey, instance->entry, &start, &end))
		return false;
	for (size_t i = 0; i < counted->sites.len && !passed; i++) {
		const struct rt_elfaddr at = counted->sites.data[i].address;

		passed = at.v >= start.v && at.v < end.v && !is_ahead(b, at, instance->entry) &&
			 rt_reach_past(b, start, end, instance->entry, at);
	}
	return passed;
}

/* Was the site's register loaded from [reg + offset] in the straight code before it, and reg is what it was then? */
static bool is_loaded(struct rt_plan_build *b, const struct rt_counted_site *site, uint8_t reg, int64_t offset)
{
	struct rt_elfaddr at, end;
	struct rt_insn insn;
	bool loaded = false;

	if (!rt_survey_range(&b->survey, site->address, &at, &end) || end.v - at.v > BACK_BYTES)
		return false;
	for (; at.v < site->address.v; at.v += insn.length) {
		if (!rt_plan_decode(b, at, &insn))
			return false;
		if (rt_counted_ends_line(&insn) || (insn.writes & (1u << site->reg | 1u << reg)))
			loaded = insn.is_mov && insn.has_mem && insn.mem.reads && insn.mem.size == 8 &&
				 insn.dst_reg == site->reg && site->reg != reg && insn.mem.base == reg &&
				 insn.mem.disp == offset && insn.mem.index == RT_REG_NONE && !insn.mem.segment;
	}
	return loaded && at.v == site->address.v;
}

enum rt_counted_proof rt_counted_prove(struct rt_plan_build *b, const struct rt_inlined *instance, unsigned param,
				       const struct rt_counted *counted)
{
	enum rt_counted_proof proof = RT_COUNTED_SILENT;

	for (size_t i = 0; i < counted->sites.len; i++) {
		const struct rt_counted_site *site = &counted->sites.data[i];
		struct rt_inlined there = *instance;

		/* another register may hold a copy, which tells nothing */
		if (!rt_dwarf_inlined_at(b->module->dwarf, &there, param, site->address) ||
		    (there.deref ? !is_loaded(b, site, there.reg, there.offset) : there.reg != site->reg))
			continue;
		if (site->offset != (there.deref ? 0 : there.offset))
			return RT_COUNTED_OTHER;
		proof = RT_COUNTED_SAME;
	}
	return proof;
}
