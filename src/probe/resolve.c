/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of the spec to functions with code in one module. */
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "probe/build.h"
#include "probe/call.h"
#include "probe/spec_type.h"
#include "probe/tail.h"

bool rt_plan_dso_fits(const char *dso, const char *path)
{
	const char *base = rt_basename(path);
	size_t len;

	if (!dso || rt_glob_match(dso, base))
		return true;
	/* libfoo and libfoo.so stand for libfoo.so.1.2 */
	len = strlen(dso);
	return strncmp(base, dso, len) == 0 &&
	       (strncmp(base + len, ".so", 3) == 0 || (base[len] == '.' && len > 3 && !strcmp(dso + len - 3, ".so")));
}

/*
 * A swap is what it consists of: a reference to the object that follows the slot
 * among the arguments, and what the slot holds is given back. The get goes first: both may be one object.
 */
static struct rt_error *push_target(struct rt_plan_build *b, const struct rt_target *target)
{
	struct rt_target part = *target;

	/* without such a jump the function does the counting itself */
	if (part.as.tail && part.symbol &&
	    rt_tail_of(b->module->image, b->module->symtab, b->decoder, part.symbol,
		       (uint8_t)rt_reg_argument(part.as.arg), &part.addr)) {
		part.symbol = b->module->symtab ? rt_symtab_at(b->module->symtab, part.addr) : NULL;
		if (part.symbol && part.symbol->addr.v != part.addr.v)
			part.symbol = NULL;
	}
	if (target->as.op == RT_OP_SWAP && target->as.place == RT_PLACE_ARG_PTR && target->as.arg < RT_SPEC_ARG_MAX) {
		part.as.op = RT_OP_GET;
		part.as.place = RT_PLACE_ARG;
		part.as.arg++;
		if (!rt_vec_push(&b->targets, part))
			return rt_error_nomem();
		part.as = target->as;
		part.as.op = RT_OP_PUT;
	}
	return rt_vec_push(&b->targets, part) ? NULL : rt_error_nomem();
}

static struct rt_error *add_target(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *name,
				   const struct rt_survey_symbol *s)
{
	const struct rt_spec_function *f = &b->plan->types.data[type].spec->functions.data[function];
	struct rt_target target = {
		.type = type, .function = function, .name = name, .symbol = s->symbol, .addr = s->symbol->addr, .as = *f
	};
	bool exact = strcmp(f->name, s->symbol->name) == 0;

	if (s->clone == RT_CLONE_PART && !exact)
		return NULL;
	if (s->symbol->ifunc)
		return rt_plan_refuse(b, type, function, name, RT_E_UNARMED,
				      "its code is chosen at run time (IFUNC): name the variant that runs");
	/* a clone may have lost parameters before the object's; one that is first and is counted stays first */
	if (s->clone == RT_CLONE_ARGS && !exact && f->arg > 1)
		return rt_plan_refuse(b, type, function, name, RT_E_UNARMED,
				      "compiled as %s: argument %u may be elsewhere", s->symbol->name, f->arg);
	rt_plan_made_place(b, &target);
	return push_target(b, &target);
}

static struct rt_error *resolve_pattern(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *pattern)
{
	for (size_t i = 0; i < b->survey.symbols.len; i++) {
		const struct rt_survey_symbol *s = &b->survey.symbols.data[i];
		const char *name = rt_intern_text(&b->survey.names, s->name);

		if (rt_spec_means(pattern, name, rt_spec_is_told(b->plan->types.data[type].spec)))
			RT_TRY(add_target(b, type, function, name, s));
	}
	return NULL;
}

static struct rt_error *resolve_address(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *name)
{
	struct rt_target target = { .type = type,
				    .function = function,
				    .name = name,
				    .as = b->plan->types.data[type].spec->functions.data[function] };
	const struct rt_symbol *symbol;
	uint64_t addr;

	if (!rt_parse_u64(name + 2, strlen(name) - 2, 16, &addr))
		return NULL;
	target.addr.v = addr;
	if (!rt_image_at(b->module->image, target.addr, 1).size)
		return rt_plan_refuse(b, type, function, name, RT_E_NO_FUNCTION, "no code at this address");
	symbol = b->module->symtab ? rt_symtab_at(b->module->symtab, target.addr) : NULL;
	if (symbol && symbol->addr.v == addr) {
		target.symbol = symbol;
		target.name = symbol->name;
	}
	return push_target(b, &target);
}

/* "obj_put.isra.0" names just that clone */
static struct rt_error *resolve_clone(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *name)
{
	enum rt_clone clone;
	uint32_t stem;

	if (!name[rt_clone_base(name, &clone)])
		return NULL;
	stem = rt_intern_bytes(&b->survey.names, name, rt_clone_base(name, &clone));
	if (!stem)
		return rt_error_nomem();
	for (const struct rt_survey_symbol *s = NULL;
	     (s = rt_survey_symbol(&b->survey, rt_intern_text(&b->survey.names, stem), s));)
		if (strcmp(s->symbol->name, name) == 0)
			RT_TRY(add_target(b, type, function, name, s));
	return NULL;
}

static struct rt_error *resolve_name(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *name)
{
	const struct rt_survey_symbol *s = NULL;
	size_t targets = b->targets.len;

	while ((s = rt_survey_symbol(&b->survey, name, s)))
		RT_TRY(add_target(b, type, function, name, s));
	RT_TRY(resolve_clone(b, type, function, name));
	/* a function of C++ outside of all namespaces is called so in its source */
	if (!rt_spec_is_told(b->plan->types.data[type].spec) || b->targets.len != targets)
		return NULL;
	return resolve_pattern(b, type, function, name);
}

struct rt_error *rt_plan_resolve(struct rt_plan_build *b)
{
	for (uint32_t t = 0; t < b->plan->types.len; t++) {
		const struct rt_spec_type *spec = b->plan->types.data[t].spec;

		for (uint32_t i = 0; i < spec->functions.len; i++) {
			const struct rt_spec_function *f = &spec->functions.data[i];

			if (rt_spec_is_marker(f) || rt_spec_call(f) || !rt_plan_dso_fits(f->dso, b->module->name))
				continue;
			if (strncmp(f->name, "0x", 2) == 0)
				RT_TRY(resolve_address(b, t, i, f->name));
			else if (rt_spec_is_pattern(f))
				RT_TRY(resolve_pattern(b, t, i, f->name));
			else
				RT_TRY(resolve_name(b, t, i, f->name));
		}
	}
	return NULL;
}
