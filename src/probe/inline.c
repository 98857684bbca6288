/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points for inlined instances: the instruction where an instance begins, with
 * the object wherever debug information has it just there.
 */
#include <string.h>

#include "probe/build.h"
#include "probe/spec_type.h"

enum { GAP_INSNS = 16, LOOK_BACK_BYTES = 64 << 10 };

/* Between the instance's first instruction and the one where its object is known: straight code that stores nothing? */
static bool gap_is_straight(struct rt_plan_build *b, const struct rt_inlined *i, bool *ret_stores)
{
	struct rt_elfaddr at = i->start;

	*ret_stores = false;
	for (unsigned n = 0; n < GAP_INSNS && at.v < i->entry.v; n++) {
		struct rt_insn insn;

		if (!rt_decode(b->decoder, rt_image_at(b->module->image, at, 16), at, &insn) || insn.jump || insn.ret ||
		    insn.call)
			return false;
		*ret_stores |= insn.has_mem && insn.mem.writes;
		at.v += insn.length;
	}
	return at.v == i->entry.v;
}

int32_t rt_plan_cfa_delta(struct rt_plan_build *b, struct rt_elfaddr addr)
{
	struct rt_cfi_row row;

	if (!b->module->dwarf || !rt_dwarf_cfi(b->module->dwarf, addr, &row) || row.cfa_reg != RT_REG_RSP ||
	    row.cfa_offset < 0 || row.cfa_offset > INT32_MAX)
		return 0;
	return (int32_t)row.cfa_offset;
}

/* Does straight code from at to end (or to its first branch) change the counter by delta, with the object in reg? */
static bool counts_between(struct rt_plan_build *b, const struct rt_plan_type *type, const struct rt_point *p,
			   struct rt_elfaddr at, struct rt_elfaddr end)
{
	struct rt_track track;

	rt_track_init(&track, p->reg);
	for (unsigned n = 0; n < GAP_INSNS && at.v < end.v; n++) {
		struct rt_insn insn;

		if (!rt_decode(b->decoder, rt_image_at(b->module->image, at, 16), at, &insn) || insn.jump || insn.ret ||
		    insn.call)
			break;
		rt_track_step(&track, &insn);
		at.v += insn.length;
	}
	for (unsigned i = 0; i < track.change_count; i++)
		if (track.changes[i].known && track.changes[i].offset == type->counter_offset &&
		    track.changes[i].size == type->counter_size && track.changes[i].delta == p->delta)
			return true;
	return false;
}

/* The start of the straight code before the address in which reg is not written; the address itself if none. */
static struct rt_elfaddr line_before(struct rt_plan_build *b, struct rt_elfaddr at, struct rt_elfaddr end, uint8_t reg)
{
	struct rt_elfaddr line = at;

	if (!at.v || end.v - at.v > LOOK_BACK_BYTES)
		return end;
	while (at.v < end.v) {
		struct rt_insn insn;

		if (!rt_decode(b->decoder, rt_image_at(b->module->image, at, 16), at, &insn))
			return end;
		at.v += insn.length;
		if (insn.jump || insn.ret || insn.call || (insn.writes & (1u << reg)))
			line = at;
	}
	return at.v == end.v ? line : end;
}

/*
 * Compilers move an instance's first instructions: when the one that counts
 * stands before the place where the instance is said to begin, the counter
 * read there is already changed.
 */
static void count_moved_ahead(struct rt_plan_build *b, const struct rt_plan_type *type, struct rt_elfaddr function,
			      struct rt_point *p)
{
	struct rt_elfaddr line = line_before(b, function, p->address, p->reg);

	if (p->counter_offset == RT_COUNTER_UNKNOWN || p->counter_bias || !p->delta ||
	    counts_between(b, type, p, p->address, (struct rt_elfaddr){ UINT64_MAX }) ||
	    !counts_between(b, type, p, line, p->address))
		return;
	p->counter_bias = (int8_t)-p->delta;
}

struct instance {
	uint32_t type, function; /* indexes */
	const struct rt_inlined *at;
	const char *name;
};

static struct rt_error *refuse(struct rt_plan_build *b, const struct instance *in, const char *why)
{
	RT_TRY(rt_plan_inner_find(b, in->type, in->function, in->at->start));
	return rt_plan_refuse(b, in->type, in->function, in->name, RT_E_UNARMED, "inlined into %s (line %u): %s",
			      in->at->caller ? in->at->caller : "?", in->at->line, why);
}

static struct rt_error *add_instance(struct rt_plan_build *b, const struct instance *in)
{
	const struct rt_plan_type *type = &b->plan->types.data[in->type];
	const struct rt_spec_function *f = &type->spec->functions.data[in->function];
	struct rt_site_request request = { .image = b->module->image,
					   .decoder = b->decoder,
					   .entry = in->at->entry,
					   .reg = in->at->reg,
					   .nearest = true,
					   .slot = f->place == RT_PLACE_ARG_PTR,
					   .first_insn = b->plan->options.first_insn,
					   .avoid_nop5 = b->plan->options.avoid_nop5 };
	struct rt_point p = { .kind = RT_POINT_INSN,
			      .op = f->op,
			      .delta = rt_op_delta(f->op, type->start),
			      .guessed = f->guessed,
			      .function = in->at->start,
			      .deref = (uint8_t)(in->at->deref + (f->place == RT_PLACE_ARG_PTR)),
			      .reg_offset = in->at->offset,
			      .place = f->place,
			      .counter_offset = RT_COUNTER_UNKNOWN,
			      .flags = (uint16_t)(RT_EV_INLINE | (f->hidden ? RT_EV_HIDDEN : 0)) };
	struct rt_site site;
	const char *why;
	bool stores, mine = false;

	if (!in->at->located)
		return refuse(b, in, in->at->why_not ? in->at->why_not : "its object cannot be located");
	if (!gap_is_straight(b, in->at, &stores))
		return refuse(b, in, "its object is only known behind a branch");
	(void)rt_survey_range(&b->survey, in->at->entry, &request.start, &request.end);
	if (!rt_site_find(&request, &site, &why))
		return refuse(b, in, why);
	if (!rt_image_offset(b->module->image, site.address, &p.offset))
		return refuse(b, in, "its code is not in the file");
	p.address = site.address;
	p.cost = site.cost;
	p.reg = site.reg;
	p.cfa_delta = rt_plan_cfa_delta(b, site.address);
	/* the walk knows the object's fields only where the register holds the object itself */
	if (!stores && !p.deref && !p.reg_offset) {
		rt_plan_set_counter(type, &site.track, &p);
		count_moved_ahead(b, type, request.start, &p);
	} else if (!stores && site.address.v == in->at->entry.v) {
		rt_plan_set_counter(type, NULL, &p);
	}
	RT_TRY(rt_plan_take_place(b, in->type, &p, &mine));
	return mine ? rt_plan_add(b, in->type, in->function, &p, in->name) : NULL;
}

static struct rt_error *add_instances(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *name)
{
	const struct rt_spec_function *f = &b->plan->types.data[type].spec->functions.data[function];
	_cleanup_free_ struct rt_inlined *list = NULL;
	size_t count = 0;

	/* the gets inside a find's inlined instances are seen by themselves, and its name is known there */
	if (f->hidden)
		return NULL;
	RT_TRY(rt_dwarf_inlined(b->module->dwarf, name, f->arg ? f->arg : 1, &list, &count));
	if (count && rt_needs_return(f)) {
		RT_TRY(rt_plan_inner(b, type, function, list, count, &count));
		if (!count)
			return NULL;
		return rt_plan_refuse(b, type, function, name, RT_E_UNARMED,
				      "inlined at %zu place%s, where its result cannot be seen", count,
				      count == 1 ? "" : "s");
	}
	for (size_t i = 0; i < count; i++) {
		struct instance in = { .type = type, .function = function, .at = &list[i], .name = name };

		RT_TRY(add_instance(b, &in));
	}
	return NULL;
}

/* One name may be declared in many files: ask for its instances once. */
static bool first_of_name(struct rt_survey *survey, const struct rt_survey_function *f)
{
	const struct rt_survey_function *other = NULL;

	while ((other = rt_survey_function(survey, f->name, other)) && other != f)
		if (other->has_inlined)
			return false;
	return true;
}

static struct rt_error *inlined_function(struct rt_plan_build *b, uint32_t type, uint32_t function)
{
	const struct rt_spec_function *f = &b->plan->types.data[type].spec->functions.data[function];
	const struct rt_survey_function *declared = NULL;

	if (!rt_glob_is(f->name)) {
		while ((declared = rt_survey_function(&b->survey, f->name, declared)))
			if (declared->has_inlined)
				return add_instances(b, type, function, f->name);
		return NULL;
	}
	for (size_t i = 0; i < b->survey.functions.len; i++) {
		declared = &b->survey.functions.data[i];
		if (declared->has_inlined && rt_glob_match(f->name, declared->name) &&
		    first_of_name(&b->survey, declared))
			RT_TRY(add_instances(b, type, function, declared->name));
	}
	return NULL;
}

struct rt_error *rt_plan_inlined(struct rt_plan_build *b)
{
	for (uint32_t t = 0; b->survey.functions.len && t < b->plan->types.len; t++) {
		const struct rt_spec_type *spec = b->plan->types.data[t].spec;

		for (uint32_t i = 0; i < spec->functions.len; i++)
			if (!rt_spec_is_marker(&spec->functions.data[i]) &&
			    rt_plan_dso_fits(spec->functions.data[i].dso, b->module->name))
				RT_TRY(inlined_function(b, t, i));
	}
	return NULL;
}
