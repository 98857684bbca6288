/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A call through the PLT goes where the dynamic linker found the function: mostly another module, but a library calls
 * what it exports itself that way, too. What a stub stands for is the one definition of its name among the modules of
 * the process. Only modules whose file is open are asked.
 */
#include <string.h>

#include "symbol/parts.h"

struct search {
	struct rt_chain *chain;
	const char *name;
	uint64_t found; /* runtime address */
	bool several;
};

static bool visit(const struct rt_mapping *mapping, void *arg)
{
	struct search *s = arg;
	struct rt_chain_module *module = rt_chain_module(s->chain, mapping->module);
	const struct rt_symbol *symbol;
	struct rt_foff offset;

	/* a file that is not there would be noted as missed, though nobody asked for it */
	if (module && module->image)
		rt_chain_open(s->chain, module);
	if (!module || !module->symtab)
		return true;
	symbol = rt_symtab_find(module->symtab, s->name);
	if (!symbol || symbol->plt || symbol->ifunc || !symbol->function || symbol->bind == RT_BIND_LOCAL ||
	    !symbol->addr.v || !rt_image_offset(module->image, symbol->addr, &offset) || offset.v < mapping->offset.v ||
	    offset.v - mapping->offset.v >= mapping->end - mapping->start)
		return true;
	s->several |= s->found != 0;
	s->found = mapping->start + (offset.v - mapping->offset.v);
	return !s->several;
}

uint64_t rt_chain_behind_stub(struct rt_chain *chain, const struct rt_chain_module *module, uint32_t pid,
			      uint64_t time_ns, struct rt_elfaddr target)
{
	const struct rt_symbol *stub = module->symtab ? rt_symtab_at(module->symtab, target) : NULL;
	struct search s = { .chain = chain };

	if (!stub || !stub->plt || stub->addr.v != target.v)
		return 0;
	s.name = stub->name;
	rt_maps_each(chain->maps, pid, time_ns, visit, &s);
	return s.several ? 0 : s.found;
}
