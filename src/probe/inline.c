/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points for inlined instances: the instruction where an instance begins, with
 * the object wherever debug information has it just there.
 */
#include <string.h>

#include "probe/build.h"
#include "probe/call.h"
#include "probe/counted.h"
#include "probe/spec_type.h"

enum { GAP_INSNS = 16, LOOK_BACK_BYTES = 64 << 10 };

/* Between the instance's first instruction and the one where its object is known: straight code that stores nothing? */
static bool gap_is_straight(struct rt_plan_build *b, const struct rt_inlined *i, bool *ret_stores)
{
	struct rt_elfaddr at = i->start;

	*ret_stores = false;
	for (unsigned n = 0; n < GAP_INSNS && at.v < i->entry.v; n++) {
		struct rt_insn insn;

		if (!rt_plan_decode(b, at, &insn) || insn.jump || insn.ret || insn.call)
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

		if (!rt_plan_decode(b, at, &insn) || insn.jump || insn.ret || insn.call)
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

		if (!rt_plan_decode(b, at, &insn))
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
	uint8_t place; /* enum rt_place */
	unsigned back; /* parameter, from 1, that holds what is told to be in the result; 0: place says where it is */
};

static struct rt_error *refuse(struct rt_plan_build *b, const struct instance *in, const char *why)
{
	RT_TRY(rt_plan_inner_find(b, in->type, in->function, in->at->start));
	return rt_plan_refuse(b, in->type, in->function, in->name, RT_E_UNARMED, "inlined into %s (line %u): %s",
			      in->at->caller ? in->at->caller : "?", in->at->line, why);
}

static struct rt_site_request site_request(struct rt_plan_build *b, const struct instance *in, struct rt_elfaddr entry,
					   uint8_t reg)
{
	struct rt_site_request request = { .image = b->module->image,
					   .decoder = b->decoder,
					   .entry = entry,
					   .reg = reg,
					   .nearest = true,
					   .first_insn = b->plan->options.first_insn,
					   .avoid_nop5 = b->plan->options.avoid_nop5,
					   .room = b->plan->options.room,
					   .breakpoints = b->plan->options.breakpoints };

	(void)rt_survey_range(&b->survey, in->at->entry, &request.start, &request.end);
	return request;
}

/* What does not depend on where it stands. */
static struct rt_point start_point(const struct rt_plan_build *b, const struct instance *in)
{
	const struct rt_plan_type *type = &b->plan->types.data[in->type];
	const struct rt_spec_function *f = &type->spec->functions.data[in->function];

	return (struct rt_point){ .kind = RT_POINT_INSN,
				  .op = f->op,
				  .delta = rt_op_delta(f->op, type->start),
				  .guessed = f->guessed,
				  .function = in->at->start,
				  .place = in->place,
				  .counter_offset = RT_COUNTER_UNKNOWN,
				  .flags = (uint16_t)(RT_EV_INLINE | (f->hidden ? RT_EV_HIDDEN : 0)) };
}

static struct rt_error *add_point(struct rt_plan_build *b, const struct instance *in, struct rt_point *p)
{
	bool mine = false;

	RT_TRY(rt_plan_take_place(b, in->type, p, &mine));
	return mine ? rt_plan_add(b, in->type, in->function, p, in->name) : NULL;
}

/* NULL: out of file */
static const char *set_site(struct rt_plan_build *b, const struct rt_site *site, struct rt_point *p)
{
	if (!rt_image_offset(b->module->image, site->address, &p->offset))
		return "its code is not in the file";
	p->address = site->address;
	p->cost = site->cost;
	p->before = site->before;
	p->breakpoint = site->breakpoint;
	p->reg = site->reg;
	p->cfa_delta = rt_plan_cfa_delta(b, site->address);
	return NULL;
}

/*
 * The counter may be reached through another register than the object (a pointer to the member). How many instructions
 * of [at, end) change something of the counter's size like the operation does, or in a way that is not followed?
 */
static unsigned counts_elsewhere(struct rt_plan_build *b, const struct rt_plan_type *type, const struct rt_point *p,
				 struct rt_elfaddr at, struct rt_elfaddr end)
{
	unsigned found = 0;
	struct rt_insn insn;
	int64_t delta;

	for (; at.v < end.v; at.v += insn.length) {
		if (!rt_plan_decode(b, at, &insn))
			return 2;
		if (insn.has_mem && insn.mem.writes && insn.mem.reads && insn.mem.size == type->counter_size &&
		    insn.mem.base != p->reg && insn.mem.base != RT_REG_RSP)
			found += rt_counted_delta(b, &insn, &delta) && delta == p->delta ? 1 : 2;
	}
	return found;
}

/*
 * No probe can stand on a locked instruction, where an instance may begin: it stands before that, and what comes
 * between the two may be another instance of the same function. The counter read there is put right by that.
 */
static void count_what_comes_between(struct rt_plan_build *b, const struct rt_plan_type *type,
				     const struct rt_site *site, struct rt_elfaddr entry, struct rt_point *p)
{
	int8_t bias;

	if (site->address.v >= entry.v || p->counter_offset == RT_COUNTER_UNKNOWN)
		return;
	if (rt_counted_bias(b, site, entry, type->counter_offset, type->counter_size, p->delta, &bias))
		p->counter_bias = bias;
	else
		p->counter_offset = RT_COUNTER_UNKNOWN;
}

/* Where the instance begins. NULL and *ret, or why there can be none. */
static const char *entry_point(struct rt_plan_build *b, const struct instance *in, struct rt_point *ret)
{
	const struct rt_plan_type *type = &b->plan->types.data[in->type];
	const struct rt_spec_function *f = &type->spec->functions.data[in->function];
	struct rt_site_request request = site_request(b, in, in->at->entry, in->at->reg);
	struct rt_point p = start_point(b, in);
	struct rt_site site;
	const char *why;
	bool stores;

	request.slot = p.place == RT_PLACE_ARG_PTR;
	p.deref = (uint8_t)(in->at->deref + rt_spec_levels(f));
	p.reg_offset = in->at->offset + (p.place == RT_PLACE_ARG_PTR ? f->behind : 0);
	if (f->behind && in->at->deref)
		return "its object is behind too many pointers";
	if (!in->at->located)
		return in->at->why_not ? in->at->why_not : "its object cannot be located";
	if (!gap_is_straight(b, in->at, &stores))
		return "its object is only known behind a branch";
	if (!rt_counted_place(b, &request, &site, &why))
		return why;
	why = set_site(b, &site, &p);
	if (why)
		return why;
	/* the walk knows the object's fields only where the register holds the object itself */
	if (!stores && !p.deref && !p.reg_offset) {
		unsigned behind = site.track.elsewhere ? counts_elsewhere(b, type, &p, in->at->entry, site.address) : 0;

		rt_plan_set_counter(type, behind > 1 ? NULL : &site.track, &p);
		if (behind == 1 && p.counter_offset != RT_COUNTER_UNKNOWN && !p.counter_bias)
			p.counter_bias = (int8_t)-p.delta;
		else if (behind > 1)
			p.counter_offset = RT_COUNTER_UNKNOWN;
		else
			count_moved_ahead(b, type, request.start, &p);
		count_what_comes_between(b, type, &site, in->at->entry, &p);
	} else if (!stores && site.address.v == in->at->entry.v) {
		rt_plan_set_counter(type, NULL, &p);
	}
	*ret = p;
	return NULL;
}

/* The counter is at reg + offset + counter_offset there, whatever else the register points to. */
static bool counted_point(struct rt_plan_build *b, const struct instance *in, const struct rt_counted_site *at,
			  struct rt_elfaddr from, struct rt_point *ret)
{
	const struct rt_plan_type *type = &b->plan->types.data[in->type];
	struct rt_site_request request = site_request(b, in, from, at->reg);
	struct rt_point p = start_point(b, in);
	struct rt_site site;
	const char *why;
	int8_t bias;

	if (!rt_counted_place(b, &request, &site, &why) || set_site(b, &site, &p))
		return false;
	p.reg_offset = at->offset;
	if (rt_counted_bias(b, &site, at->address, at->offset + type->counter_offset, type->counter_size, p.delta,
			    &bias)) {
		p.counter_offset = type->counter_offset;
		p.counter_size = (uint8_t)type->counter_size;
		p.counter_bias = bias;
	}
	*ret = p;
	return true;
}

/* Where the site's copy begins instead: behind a locked instruction there may be a place that others come to, too. */
static bool copy_point(struct rt_plan_build *b, const struct instance *in, const struct rt_counted_site *at,
		       struct rt_point *ret)
{
	const struct rt_spec_function *f = &b->plan->types.data[in->type].spec->functions.data[in->function];
	struct rt_counted_site begin = *at;
	struct rt_inlined there = *in->at;

	if (at->begin.v == UINT64_MAX)
		return false;
	if (rt_counted_holds(b, at, at->begin))
		return counted_point(b, in, at, at->begin, ret);
	if (!rt_dwarf_inlined_at(b->module->dwarf, &there, f->arg ? f->arg : 1, at->begin) || there.deref)
		return false;
	begin.reg = there.reg;
	begin.offset = there.offset;
	return counted_point(b, in, &begin, at->begin, ret);
}

struct counting {
	struct rt_point points[RT_COUNTED_MAX];
	size_t count;
	size_t missing;     /* places that may count and have none */
	const char *unseen; /* why some do not come by where it begins; NULL: all do */
};

static struct rt_error *counted_points(struct rt_plan_build *b, const struct instance *in, struct counting *ret)
{
	const struct rt_plan_type *type = &b->plan->types.data[in->type];
	const struct rt_counted_site *sites;
	struct rt_counted counted;
	size_t n = 0;

	if (!rt_counted_find(b, type, rt_op_delta(type->spec->functions.data[in->function].op, type->start), in->at,
			     &counted)) {
		rt_counted_deinit(&counted);
		return rt_error_nomem();
	}
	sites = counted.sites.data;
	for (size_t i = 0; i < counted.sites.len; i++)
		n += counted_point(b, in, &sites[i], sites[i].address, &ret->points[n]) ||
		     copy_point(b, in, &sites[i], &ret->points[n]);
	ret->count = n;
	ret->missing = counted.sites.len - n + counted.unclear;
	ret->unseen = counted.copies > 1                       ? "it is copied, and only the first copy is seen"
		      : rt_counted_passed(b, in->at, &counted) ? "some come in behind its begin, where none is seen"
							       : NULL;
	rt_counted_deinit(&counted);
	return NULL;
}

/*
 * Does the instruction that counts tell the object? It does where debug information says so of at least one, and of
 * none says that it counts something else; or says nothing of any, and each counts once, where objects have their
 * counter.
 */
static struct rt_error *counts_tell(struct rt_plan_build *b, const struct instance *first, size_t count, bool *ret)
{
	const struct rt_plan_type *type = &b->plan->types.data[first->type];
	const struct rt_spec_function *f = &type->spec->functions.data[first->function];
	bool any = false, other = false, plain = count > 0;

	*ret = false;
	if (type->counter_offset == RT_COUNTER_UNKNOWN || f->place != RT_PLACE_ARG)
		return NULL;
	for (size_t i = 0; i < count && !other; i++) {
		const struct rt_inlined *at = first->at + i;
		struct rt_counted counted;
		enum rt_counted_proof proof;
		bool found;

		found = rt_counted_find(b, type, rt_op_delta(f->op, type->start), at, &counted);
		plain &= !counted.sites.len || counted.plain;
		proof = found ? rt_counted_prove(b, at, f->arg ? f->arg : 1, &counted) : RT_COUNTED_SILENT;
		rt_counted_deinit(&counted);
		if (!found)
			return rt_error_nomem();
		any |= proof == RT_COUNTED_SAME;
		other |= proof == RT_COUNTED_OTHER;
	}
	*ret = (any || plain) && !other;
	return NULL;
}

/* tell: the instructions that count tell the object (counts_tell()). */
static struct rt_error *add_instance(struct rt_plan_build *b, const struct instance *in, bool tell)
{
	struct counting c = { .count = 0 };
	struct rt_point entry;
	const char *why = entry_point(b, in, &entry);

	RT_TRY(counted_points(b, in, &c));
	/* where each place that counts is known, nobody need come by the place where the instance begins */
	if (!tell || !c.count || !(c.unseen || (why && !c.missing))) {
		if (why)
			return refuse(b, in, why);
		RT_TRY(add_point(b, in, &entry));
		return c.unseen ? refuse(b, in, c.unseen) : NULL;
	}
	for (size_t i = 0; i < c.count; i++)
		RT_TRY(add_point(b, in, &c.points[i]));
	return c.missing ? refuse(b, in, "not each place where it counts can be followed, or hold a probe") : NULL;
}

/*
 * A get that is told by its result, and is given an object of the same type: where it is inlined, and shows no result,
 * it mostly hands out what it was given. The counter tells where it does not. 0: it is none
 */
static unsigned given_back(struct rt_plan_build *b, const struct rt_spec_function *f, const char *name)
{
	const struct rt_survey_function *d = rt_survey_function(&b->survey, name, NULL);
	unsigned found = 0;

	if (!d || f->op != RT_OP_GET || f->hidden || f->place != RT_PLACE_RET || f->condition != RT_IF_ALWAYS ||
	    d->returns.pointers != 1 || !d->returns.pointee)
		return 0;
	for (unsigned n = 1; n <= d->param_count && n <= RT_SPEC_ARG_MAX; n++) {
		const struct rt_param *p = rt_survey_param(&b->survey, d, n);

		if (!p->pointee || strcmp(p->pointee, d->returns.pointee) != 0)
			continue;
		if (found || p->pointers != 1)
			return 0;
		found = n;
	}
	return found;
}

static struct rt_error *add_instances(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *name)
{
	const struct rt_spec_function *f = &b->plan->types.data[type].spec->functions.data[function];
	struct instance in = {
		.type = type, .function = function, .name = name, .place = f->place, .back = given_back(b, f, name)
	};
	_cleanup_free_ struct rt_inlined *list = NULL;
	size_t count = 0;
	bool tell;

	/* the gets inside a find's inlined instances are seen by themselves, and its name is known there */
	if (f->hidden)
		return NULL;
	if (in.back)
		in.place = RT_PLACE_ARG;
	RT_TRY(rt_dwarf_inlined(b->module->dwarf, name, in.back ? in.back : f->arg ? f->arg : 1, &list, &count));
	if (count && !in.back && rt_needs_return(f)) {
		const size_t all = count;

		RT_TRY(rt_plan_inner(b, type, function, list, count, &count));
		if (count < all)
			b->plan->types.data[type].seen[function] |= RT_SEEN_INNER;
		if (!count)
			return NULL;
		return rt_plan_refuse(b, type, function, name, RT_E_UNARMED,
				      "inlined at %zu place%s, where its result cannot be seen", count,
				      count == 1 ? "" : "s");
	}
	in.at = list;
	RT_TRY(counts_tell(b, &in, count, &tell));
	for (; count; count--, in.at++)
		RT_TRY(add_instance(b, &in, tell));
	return NULL;
}

/* One name may be declared in many files: ask for its instances once. */
static bool first_of_name(struct rt_survey *survey, const struct rt_survey_function *f, bool by_linkage)
{
	const struct rt_survey_function *other = NULL;

	while ((other = rt_survey_function(survey, f->name, other)) && other != f)
		if (other->has_inlined &&
		    (!by_linkage || !f->linkage || (other->linkage && !strcmp(other->linkage, f->linkage))))
			return false;
	return true;
}

static struct rt_error *inlined_function(struct rt_plan_build *b, uint32_t type, uint32_t function)
{
	const struct rt_spec_function *f = &b->plan->types.data[type].spec->functions.data[function];
	const struct rt_survey_function *declared = NULL;
	const bool source = rt_source_is(f->name);

	if (!rt_spec_is_pattern(f)) {
		const char *name = rt_survey_alias(&b->survey, f->name) ?: f->name;

		while ((declared = rt_survey_function(&b->survey, name, declared)))
			if (declared->has_inlined)
				return add_instances(b, type, function, name);
		return NULL;
	}
	for (size_t i = 0; i < b->survey.functions.len; i++) {
		const char *name;

		declared = &b->survey.functions.data[i];
		name = source && declared->linkage ? declared->linkage : declared->name;
		if (declared->has_inlined && rt_spec_means(f->name, name, false) &&
		    first_of_name(&b->survey, declared, source))
			RT_TRY(add_instances(b, type, function, name));
	}
	return NULL;
}

struct rt_error *rt_plan_inlined(struct rt_plan_build *b)
{
	for (uint32_t t = 0; b->survey.functions.len && t < b->plan->types.len; t++) {
		const struct rt_spec_type *spec = b->plan->types.data[t].spec;

		for (uint32_t i = 0; i < spec->functions.len; i++)
			if (!rt_spec_is_marker(&spec->functions.data[i]) && !rt_spec_call(&spec->functions.data[i]) &&
			    rt_plan_dso_fits(spec->functions.data[i].dso, b->module->name))
				RT_TRY(inlined_function(b, t, i));
	}
	return NULL;
}
