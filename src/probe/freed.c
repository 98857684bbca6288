/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks that are freed with pointers to objects in them, whatever they are: lists, tables and entries that no debug
 * information tells of. The C library's blocks say how long they are, and the engine knows in which words pointers to
 * objects were stored; whose these were, and who should have given them back, the analysis knows.
 */
#include "probe/build.h"
#include "wire/probe.h"

static const struct {
	const char *name;
	uint8_t look;
} functions[] = { { "free", RT_LOOK_TELL }, { "realloc", RT_LOOK_FORGET } };

static struct rt_error *add(struct rt_plan_build *b, uint32_t type, const char *name, uint8_t look)
{
	const struct rt_symbol *symbol = rt_symtab_find(b->module->symtab, name);
	size_t first = b->plan->points.len;
	struct rt_target target = {
		.type = type,
		.function = (uint32_t)b->plan->types.data[type].spec->functions.len,
		.name = name,
		.symbol = symbol,
		.as = { .op = RT_OP_MOVE, .place = RT_PLACE_ARG, .arg = 1, .hidden = true, .guessed = true },
		.optional = true,
		.maybe = true
	};

	if (!symbol || !symbol->function || !symbol->addr.v)
		return NULL;
	target.addr = symbol->addr;
	RT_TRY(rt_plan_point(b, &target));
	for (size_t i = first; i < b->plan->points.len; i++)
		b->plan->points.data[i].look = look;
	return NULL;
}

struct rt_error *rt_plan_freed(struct rt_plan *plan, uint32_t type, const struct rt_plan_module *module,
			       size_t *ret_first)
{
	struct rt_plan_build b = { .plan = plan, .module = module };
	struct rt_error *err;

	*ret_first = plan->points.len;
	if (!module->symtab || !plan->options.room || !plan->options.return_points || plan->options.counts_only ||
	    !rt_symtab_find(module->symtab, "gnu_get_libc_version"))
		return NULL;
	RT_TRY(rt_decoder_create(module->image->machine, &b.decoder));
	err = NULL;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && !err; i++)
		err = add(&b, type, functions[i].name, functions[i].look);
	rt_decoder_destroy(b.decoder);
	rt_map_deinit(&b.taken);
	rt_arena_deinit(&b.arena);
	return err;
}
