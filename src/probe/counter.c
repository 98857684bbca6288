/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the counter of a type lies: told by name, declared in debug info, or seen in the code of its get and put. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "probe/build.h"
#include "probe/effect.h"
#include "probe/scan.h"
#include "probe/spec_type.h"

enum { COUNTER_PAIRS = 16 };

static bool counter_size_ok(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* What a preset says about the struct may be about another program of the same names. */
static bool counter_is_told(const struct rt_plan_type *type)
{
	return type->spec->counter_struct && !rt_spec_is_preset(type->spec);
}

static bool set_member(struct rt_plan_type *type, const struct rt_member *m, const char *from)
{
	if (m->offset > INT32_MAX || !counter_size_ok(m->size))
		return false;
	type->counter_offset = (int32_t)m->offset;
	type->counter_size = m->size;
	type->counter_from = from;
	return true;
}

/* Tag or typedef of what target's object argument points to; NULL: unknown. */
static const char *pointee(struct rt_plan_build *b, const struct rt_target *t)
{
	const struct rt_spec_function *f = &t->as;
	const struct rt_survey_function *declared = rt_survey_declaration(&b->survey, t->name, t->addr);
	const struct rt_param *p;
	unsigned levels = f->place == RT_PLACE_ARG_PTR                               ? 1 + f->levels
			  : f->place == RT_PLACE_RET_PTR || f->place == RT_PLACE_OUT ? 2
										     : 1;

	/* behind something else's pointer */
	if (!declared || f->behind)
		return NULL;
	p = f->place == RT_PLACE_RET || f->place == RT_PLACE_RET_PTR ? &declared->returns
								     : rt_survey_param(&b->survey, declared, f->arg);
	return p && p->pointers == levels ? p->pointee : NULL;
}

/*
 * Of objects that nobody takes a reference to, what is called a count may be one of anything (a table's entries): its
 * name says references, or a put counts it down.
 */
static bool counts_references(struct rt_plan_build *b, const struct rt_target *t, const struct rt_member *member)
{
	struct rt_effect put;

	/* what is only inlined has no code to look at */
	if (member->says_reference || rt_spec_has_op(b->plan->types.data[t->type].spec, RT_OP_GET) || !t->symbol)
		return true;
	if (t->as.op != RT_OP_PUT || t->as.place != RT_PLACE_ARG)
		return false;
	rt_effect_of(b->module->image, b->module->symtab, b->decoder, t->addr, (uint8_t)rt_reg_argument(t->as.arg),
		     &put);
	for (unsigned i = 0; i < put.count; i++)
		if (put.fields[i].delta == -1 && put.fields[i].offset == (int64_t)member->offset)
			return true;
	return false;
}

static void from_debug_info(struct rt_plan_build *b, const struct rt_target *t)
{
	struct rt_plan_type *type = &b->plan->types.data[t->type];
	const char *structure = pointee(b, t);
	struct rt_member member;
	uint64_t size;

	if (!structure)
		return;
	if (!type->object_size) {
		size = rt_dwarf_struct_size(b->module->dwarf, structure);
		type->object_size = size <= UINT32_MAX ? (uint32_t)size : 0;
	}
	if (type->counter_offset == RT_COUNTER_UNKNOWN && !counter_is_told(type) &&
	    rt_dwarf_counter(b->module->dwarf, structure, &member) && counts_references(b, t, &member))
		(void)set_member(type, &member, "debug info");
}

static bool plain_argument(const struct rt_spec_function *f)
{
	return f->place == RT_PLACE_ARG && !f->hidden;
}

/* Tries the type's gets against its puts in this module. */
static void from_code(struct rt_plan_build *b, uint32_t index)
{
	struct rt_plan_type *type = &b->plan->types.data[index];
	unsigned tried = 0;

	for (size_t i = 0; i < b->targets.len; i++) {
		const struct rt_target *get = &b->targets.data[i];
		const struct rt_spec_function *g = &get->as;

		if (get->type != index || g->op != RT_OP_GET || !plain_argument(g))
			continue;
		for (size_t j = 0; j < b->targets.len && tried < COUNTER_PAIRS; j++) {
			const struct rt_target *put = &b->targets.data[j];
			const struct rt_spec_function *p = &put->as;

			if (put->type != index || p->op != RT_OP_PUT || !plain_argument(p))
				continue;
			tried++;
			if (rt_scan_counter(b->module, get->addr, (uint8_t)rt_reg_argument(g->arg), put->addr,
					    (uint8_t)rt_reg_argument(p->arg), &type->counter_offset,
					    &type->counter_size)) {
				type->counter_from = "inferred";
				return;
			}
		}
	}
}

/* Puts that end in another module or behind a pointer show nothing; a get that does one thing shows enough. */
static void from_get_alone(struct rt_plan_build *b, uint32_t index)
{
	struct rt_plan_type *type = &b->plan->types.data[index];

	for (size_t i = 0; i < b->targets.len; i++) {
		const struct rt_target *get = &b->targets.data[i];
		const struct rt_spec_function *g = &get->as;
		struct rt_effect effect;

		if (get->type != index || g->op != RT_OP_GET || !plain_argument(g))
			continue;
		rt_effect_of(b->module->image, b->module->symtab, b->decoder, get->addr,
			     (uint8_t)rt_reg_argument(g->arg), &effect);
		if (rt_effect_single(&effect, &type->counter_offset, &type->counter_size))
			type->counter_from = "inferred";
		return;
	}
}

/* Functions that are only inlined have no target, but a declaration. */
static void from_inlined(struct rt_plan_build *b, uint32_t index)
{
	const struct rt_spec_type *spec = b->plan->types.data[index].spec;

	for (uint32_t i = 0; i < spec->functions.len; i++) {
		struct rt_target t = { .type = index,
				       .function = i,
				       .name = spec->functions.data[i].name,
				       .as = spec->functions.data[i] };

		if (rt_plan_dso_fits(spec->functions.data[i].dso, b->module->name))
			from_debug_info(b, &t);
	}
}

/* the member that was told to be the counter; one that is no integer is refused: what was read there would mean nothing
 */
static struct rt_error *from_member(struct rt_plan_build *b, uint32_t index)
{
	struct rt_plan_type *type = &b->plan->types.data[index];
	const struct rt_spec_type *spec = type->spec;
	struct rt_member member;
	char name[128];

	if (type->counter_offset != RT_COUNTER_UNKNOWN || !spec->counter_struct ||
	    !rt_dwarf_member(b->module->dwarf, spec->counter_struct, spec->counter_member, &member) ||
	    set_member(type, &member, "told"))
		return NULL;
	snprintf(name, sizeof(name), "%s.%s", spec->counter_struct, spec->counter_member);
	return rt_plan_refuse(b, index, (uint32_t)spec->functions.len, name, RT_E_UNARMED,
			      "as a counter it has %" PRIu32 " bytes: name the integer in it, %s.MEMBER", member.size,
			      name);
}

struct rt_error *rt_plan_counters(struct rt_plan_build *b)
{
	bool dwarf = b->module->dwarf && rt_dwarf_present(b->module->dwarf);

	for (uint32_t i = 0; dwarf && i < b->plan->types.len; i++)
		RT_TRY(from_member(b, i));
	for (size_t i = 0; dwarf && i < b->targets.len; i++)
		from_debug_info(b, &b->targets.data[i]);
	for (uint32_t i = 0; dwarf && i < b->plan->types.len; i++)
		if (!b->plan->types.data[i].object_size)
			from_inlined(b, i);
	for (uint32_t i = 0; i < b->plan->types.len; i++) {
		const struct rt_plan_type *type = &b->plan->types.data[i];

		if (type->counter_offset == RT_COUNTER_UNKNOWN && !counter_is_told(type))
			from_code(b, i);
		if (type->counter_offset == RT_COUNTER_UNKNOWN && !counter_is_told(type))
			from_get_alone(b, i);
	}
	return NULL;
}

bool rt_scan_counter(const struct rt_plan_module *module, struct rt_elfaddr get, uint8_t get_reg, struct rt_elfaddr put,
		     uint8_t put_reg, int32_t *ret_offset, uint32_t *ret_size)
{
	_cleanup_(rt_decoder_destroyp) struct rt_decoder *decoder = NULL;
	_cleanup_error_ struct rt_error *err = rt_decoder_create(module->image->machine, &decoder);
	struct rt_effect get_effect, put_effect;

	if (err)
		return false;
	rt_effect_of(module->image, module->symtab, decoder, get, get_reg, &get_effect);
	rt_effect_of(module->image, module->symtab, decoder, put, put_reg, &put_effect);
	return rt_effect_counter(&get_effect, &put_effect, ret_offset, ret_size);
}
