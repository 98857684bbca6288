/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a constructor or a find leaves the object when nobody said so: its result is a status by its declaration, and a
 * T ** or T * of the type is among its arguments. C has both customs, and a list of names says neither.
 */
#include <string.h>

#include "probe/build.h"
#include "probe/handing.h"

const char *rt_plan_structure(struct rt_plan_build *b, const struct rt_spec_function *f)
{
	const char *alias = rt_survey_alias(&b->survey, f->name);
	const struct rt_survey_function *d = rt_survey_function(&b->survey, alias ? alias : f->name, NULL);
	const struct rt_param *p;

	if (!d || f->place == RT_PLACE_RET_PTR || rt_spec_levels(f) > 1)
		return NULL;
	p = f->place == RT_PLACE_RET ? &d->returns : rt_survey_param(&b->survey, d, f->arg);
	return p && p->pointers == (f->place == RT_PLACE_ARG || f->place == RT_PLACE_RET ? 1 : 2) ? p->pointee : NULL;
}

/* the structure is the type's own, by its name or by what its gets and puts are declared to take */
static bool is_object(struct rt_plan_build *b, const struct rt_spec_type *spec, const char *structure)
{
	if (strcmp(structure, spec->name) == 0)
		return true;
	for (size_t i = 0; i < spec->functions.len; i++) {
		const struct rt_spec_function *f = &spec->functions.data[i];
		const char *own = f->place <= RT_PLACE_ARG_PTR ? rt_plan_structure(b, f) : NULL;

		if (own && strcmp(own, structure) == 0)
			return true;
	}
	return false;
}

bool rt_made_is_status(const struct rt_param *result)
{
	return !result->type || (!result->pointers && (strstr(result->type, "int") || strstr(result->type, "ool") ||
						       strstr(result->type, "enum ") || strstr(result->type, "long")));
}

enum rt_condition rt_made_condition(const struct rt_param *result)
{
	if (!result->type)
		return RT_IF_ALWAYS;
	/* most say failure by a negative number; what they leave then may be anything */
	return strstr(result->type, "ool") ? RT_IF_NONZERO : RT_IF_NOT_NEGATIVE;
}

/* the first argument of the type with so many levels, that is in a register; 0: none */
static unsigned argument_of(struct rt_plan_build *b, const struct rt_spec_type *spec,
			    const struct rt_survey_function *d, uint8_t pointers)
{
	for (unsigned i = 1; i <= d->param_count; i++) {
		const struct rt_param *p = rt_survey_param(&b->survey, d, i);

		if (p->pointers == pointers && p->pointee && is_object(b, spec, p->pointee))
			return rt_takers_in_registers(&b->survey, d, i) ? i : 0;
	}
	return 0;
}

void rt_plan_made_place(struct rt_plan_build *b, struct rt_target *target)
{
	const struct rt_spec_type *spec = b->plan->types.data[target->type].spec;
	const struct rt_survey_function *d;
	unsigned arg;

	if (target->as.place != RT_PLACE_RET || target->as.condition != RT_IF_ALWAYS || target->as.guessed)
		return;
	d = rt_survey_declaration(&b->survey, target->name, target->addr);
	if (!d || !rt_made_is_status(&d->returns))
		return;
	arg = argument_of(b, spec, d, 2);
	if (arg) {
		target->as.place = RT_PLACE_OUT;
		target->as.condition = (uint8_t)rt_made_condition(&d->returns);
	} else if (target->as.op == RT_OP_NEW && (arg = argument_of(b, spec, d, 1))) {
		target->as.place = RT_PLACE_ARG;
	}
	target->as.arg = arg ? (uint8_t)arg : target->as.arg;
}
