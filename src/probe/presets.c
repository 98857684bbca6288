/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/presets.h"

#include <stdlib.h>

#include "base/map.h"
#include "probe/call.h"
#include "probe/source_name.h"

struct rt_presets {
	struct rt_spec spec;
	struct rt_map names; /* function -> index of seen */
	uint32_t *seen;      /* round in which a module had the function */
	uint32_t round;
};

static bool is_counted(const struct rt_spec_type *type)
{
	bool counts = false;

	for (size_t i = 0; i < type->functions.len; i++) {
		const struct rt_spec_function *f = &type->functions.data[i];

		counts |= f->op == RT_OP_GET || f->op == RT_OP_PUT;
	}
	return counts && !rt_spec_is_calls(type);
}

static struct rt_error *name_functions(struct rt_presets *p)
{
	uint32_t count = 0;

	for (size_t i = 0; i < p->spec.types.len; i++) {
		const struct rt_spec_type *type = &p->spec.types.data[i];

		for (size_t k = 0; k < type->functions.len; k++) {
			bool made;
			uint64_t *at = rt_map_put(&p->names, rt_key_text(type->functions.data[k].name), &made);

			if (!at)
				return rt_error_nomem();
			if (made)
				*at = count++;
		}
	}
	p->seen = calloc(count + 1, sizeof(p->seen[0]));
	return p->seen ? NULL : rt_error_nomem();
}

struct rt_error *rt_presets_create(struct rt_spec *types, struct rt_presets **ret)
{
	_cleanup_(rt_presets_destroyp) struct rt_presets *p = calloc(1, sizeof(*p));

	if (!p)
		return rt_error_nomem();
	for (size_t i = 0; i < types->types.len;) {
		if (is_counted(&types->types.data[i]))
			RT_TRY(rt_spec_move(types, i, &p->spec));
		else
			i++;
	}
	RT_TRY(name_functions(p));
	*ret = rt_take(p);
	return NULL;
}

void rt_presets_destroy(struct rt_presets *presets)
{
	rt_spec_deinit(&presets->spec);
	rt_map_deinit(&presets->names);
	free(presets->seen);
	free(presets);
}

static bool has(struct rt_presets *p, const char *function)
{
	const uint64_t *at = rt_map_get(&p->names, rt_key_text(function));

	return at && p->seen[*at] == p->round;
}

/*
 * Does the module that was looked at have the type? A get or put that is not there may be a macro, or inline
 * (Py_DECREF), and is where most of the counting happens: then the rest would be half the truth.
 */
static bool has_type(struct rt_presets *p, const struct rt_spec_type *type)
{
	size_t functions = 0, there = 0;
	bool ends = false;

	for (size_t i = 0; i < type->functions.len; i++) {
		const struct rt_spec_function *f = &type->functions.data[i];
		bool here = has(p, f->name), counts = !f->hidden && (f->op == RT_OP_GET || f->op == RT_OP_PUT);

		if (rt_spec_is_glob(f->name))
			continue;
		if (counts && !here)
			return false;
		functions++;
		there += here;
		ends |= here && (f->op == RT_OP_PUT || f->op == RT_OP_FREE);
	}
	return ends && 2 * there >= functions;
}

struct rt_error *rt_presets_adopt(struct rt_presets *p, const struct rt_plan_module *module, struct rt_spec *spec)
{
	p->round++;
	for (size_t i = 0; module->symtab && i < module->symtab->count; i++) {
		const struct rt_symbol *symbol = &module->symtab->symbols[i];
		const uint64_t *at =
			symbol->function && !symbol->plt ? rt_map_get(&p->names, rt_key_text(symbol->name)) : NULL;

		if (at)
			p->seen[*at] = p->round;
	}
	for (size_t i = 0; i < p->spec.types.len;) {
		struct rt_spec_type *type = &p->spec.types.data[i];

		if (!has_type(p, type)) {
			i++;
			continue;
		}
		rt_spec_guess(type);
		RT_TRY(rt_spec_move(&p->spec, i, spec));
	}
	return NULL;
}
