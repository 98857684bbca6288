/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inlined instances of a function, and where a parameter is when one begins.
 * Only what is exactly a register plus an offset, or the 8 bytes of memory
 * there, is told; everything else is refused with the reason.
 */
#include "dwarf/location.h"

#include <stdlib.h>
#include <string.h>

#define RT_MOVE_MAX 32        /* bytes that entry may move to where the parameter is known */
#define RT_LOCATIONS_MAX 4096 /* entries looked at in one location list */

struct question {
	struct rt_dwarf *dwarf;
	struct rt_unit *unit;
	const struct rt_node *node;
	uint64_t size; /* bytes of the parameter */
};

/* NULL and *ret, or why the location cannot be told. */
static const char *evaluate(const struct question *q, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t nops,
			    uint64_t addr, struct rt_inlined *ret)
{
	struct rt_expression e = { .dwarf = q->dwarf, .unit = q->unit, .node = q->node, .attr = attr, .addr = addr };
	struct rt_location l;
	const char *why = rt_location_evaluate(&e, ops, nops, &l);
	unsigned derefs;

	if (why)
		return why;
	if (l.at_entry)
		return "only its value at the caller's entry is known (DW_OP_entry_value)";
	if (l.base == RT_LOCATION_ADDRESS)
		return "a fixed address (DW_OP_addr)";
	if (l.base == RT_LOCATION_NUMBER)
		return "a constant";
	derefs = l.deref_count + !l.is_value;
	if (derefs > 1)
		return "behind two pointers (DW_OP_deref)";
	if (l.deref_count && l.offset)
		return "computed (an addition behind DW_OP_deref)";
	if (derefs && q->size != 8)
		return "in memory, and not 8 bytes wide";
	ret->located = true;
	ret->reg = l.reg;
	ret->deref = derefs;
	ret->offset = l.deref_count ? l.derefs[0] : l.offset;
	return NULL;
}

/* End of the range of node that holds addr. */
static uint64_t range_end(const struct rt_unit *unit, const struct rt_node *node, uint64_t addr)
{
	size_t pos = SIZE_MAX;
	uint32_t index;

	while (rt_spans_next(&unit->spans, addr, &pos, &index)) {
		if (&unit->nodes.data[index] == node)
			return unit->spans.v.data[pos].hi;
	}
	return addr;
}

static const char *locate(const struct question *q, Dwarf_Die *param, struct rt_inlined *ret)
{
	uint64_t end = range_end(q->unit, q->node, ret->start.v), best = UINT64_MAX;
	Dwarf_Addr base, lo, hi;
	Dwarf_Op *ops, *best_ops = NULL;
	size_t nops, best_nops = 0;
	Dwarf_Attribute attr;
	ptrdiff_t at = 0;

	if (dwarf_hasattr(param, DW_AT_const_value))
		return "a constant (DW_AT_const_value)";
	if (!dwarf_attr(param, DW_AT_location, &attr))
		return "optimised away (no location)";
	for (unsigned i = 0; i < RT_LOCATIONS_MAX; i++) {
		at = dwarf_getlocations(&attr, at, &base, &lo, &hi, &ops, &nops);
		if (at <= 0)
			break;
		if (lo >= hi || ret->start.v >= hi)
			continue;
		if (lo < ret->start.v)
			lo = ret->start.v;
		if (lo < end && lo - ret->start.v <= RT_MOVE_MAX && lo < best) {
			best = lo;
			best_ops = ops;
			best_nops = nops;
		}
	}
	if (!best_ops)
		return "not known where the instance begins";
	ret->entry.v = best;
	return evaluate(q, &attr, best_ops, best_nops, best, ret);
}

static bool nth_param(Dwarf_Die *die, unsigned n, Dwarf_Die *ret)
{
	if (dwarf_child(die, ret) != 0)
		return false;
	do {
		if (dwarf_tag(ret) == DW_TAG_formal_parameter && --n == 0)
			return true;
	} while (rt_die_next(ret));
	return false;
}

/* The instance's own DIE of an abstract parameter. */
static bool own_param(Dwarf_Die *instance, const Dwarf_Die *abstract, Dwarf_Die *ret)
{
	Dwarf_Die origin;

	if (dwarf_child(instance, ret) != 0)
		return false;
	do {
		if (dwarf_tag(ret) == DW_TAG_formal_parameter && rt_die_ref(ret, DW_AT_abstract_origin, &origin) &&
		    origin.addr == abstract->addr)
			return true;
	} while (rt_die_next(ret));
	return false;
}

/* The instance's own DIE of its n-th parameter. NULL, or why there is none */
static const char *find_param(struct question *q, unsigned n, Dwarf_Die *ret)
{
	Dwarf_Die abstract, type;
	Dwarf_Word size;

	if (!n || !nth_param(&q->dwarf->fns.data[q->node->fn].die, n, &abstract))
		return "the function has no such parameter";
	if (!own_param((Dwarf_Die *)(uintptr_t)&q->node->die, &abstract, ret))
		return "optimised away (not in the instance)";
	if (rt_die_type(ret, &type) && dwarf_aggregate_size(&type, &size) == 0)
		q->size = size;
	return NULL;
}

static void answer(struct rt_dwarf *dwarf, struct rt_unit *unit, struct rt_node *node, unsigned param,
		   struct rt_inlined *ret)
{
	struct question q = { .dwarf = dwarf, .unit = unit, .node = node };
	Dwarf_Die own;

	*ret = (struct rt_inlined){ .entry = { node->entry }, .start = { node->entry } };
	ret->unit = (size_t)(unit - dwarf->units.data);
	ret->node = (uint32_t)(node - unit->nodes.data);
	ret->file = node->call_file;
	ret->line = node->call_line;
	if (node->parent) {
		struct rt_fn *fn = &dwarf->fns.data[unit->nodes.data[node->parent - 1].fn];

		rt_fn_resolve(dwarf, fn);
		ret->caller = fn->name;
	}
	ret->why_not = find_param(&q, param, &own);
	if (ret->why_not)
		return;
	ret->why_not = locate(&q, &own, ret);
	if (ret->why_not)
		ret->entry = ret->start;
}

struct rt_error *rt_dwarf_inlined(struct rt_dwarf *dwarf, const char *function, unsigned param, struct rt_inlined **ret,
				  size_t *ret_count)
{
	RT_VEC(struct rt_inlined) list = { 0 };

	if (dwarf->dw)
		RT_TRY(rt_dwarf_walk_all(dwarf));
	function = rt_dwarf_text(dwarf, function);
	if (!function)
		return rt_error_nomem();
	for (size_t u = 0; u < dwarf->units.len; u++) {
		struct rt_unit *unit = &dwarf->units.data[u];

		for (size_t i = 0; i < unit->nodes.len; i++) {
			struct rt_node *node = &unit->nodes.data[i];
			struct rt_fn *fn = &dwarf->fns.data[node->fn];
			struct rt_inlined *one;

			if (!node->inlined)
				continue;
			rt_fn_resolve(dwarf, fn);
			/* interned: equal text, equal pointer */
			if (fn->name != function && fn->linkage != function)
				continue;
			rt_node_name(dwarf, unit, node);
			if (node->split)
				continue;
			one = rt_vec_add(&list);
			if (!one) {
				rt_vec_deinit(&list);
				return rt_error_nomem();
			}
			answer(dwarf, unit, node, param, one);
		}
	}
	*ret = list.data;
	*ret_count = list.len;
	return NULL;
}

struct rt_error *rt_dwarf_inlined_into(struct rt_dwarf *dwarf, struct rt_elfaddr addr,
				       bool (*visit)(const char *name, void *arg), void *arg)
{
	size_t pos = SIZE_MAX;
	uint32_t index;

	while (dwarf->dw && rt_spans_next(&dwarf->spans, addr.v, &pos, &index)) {
		struct rt_unit *unit = &dwarf->units.data[index];
		const struct rt_node *around;

		RT_TRY(rt_unit_walk(dwarf, unit));
		around = rt_unit_innermost(unit, addr.v);
		if (!around)
			continue;
		for (size_t i = 0; i < unit->nodes.len; i++) {
			struct rt_node *node = &unit->nodes.data[i];

			if (!node->inlined || node->parent != around - unit->nodes.data + 1)
				continue;
			rt_node_name(dwarf, unit, node);
			if (!node->split && node->function && !visit(node->function, arg))
				return NULL;
		}
		return NULL;
	}
	return NULL;
}

void rt_dwarf_inlined_ranges(struct rt_dwarf *dwarf, const struct rt_inlined *instance,
			     void (*visit)(struct rt_elfaddr start, struct rt_elfaddr end, void *arg), void *arg)
{
	Dwarf_Die die = dwarf->units.data[instance->unit].nodes.data[instance->node].die;
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	for (unsigned i = 0; i < RT_DWARF_RANGES_MAX && (at = dwarf_ranges(&die, at, &base, &lo, &hi)) > 0; i++)
		if (lo < hi && rt_dwarf_in_code(dwarf, lo))
			visit((struct rt_elfaddr){ lo }, (struct rt_elfaddr){ hi }, arg);
}

bool rt_dwarf_inlined_at(struct rt_dwarf *dwarf, struct rt_inlined *instance, unsigned param, struct rt_elfaddr addr)
{
	struct question q = { .dwarf = dwarf, .unit = &dwarf->units.data[instance->unit] };
	Dwarf_Attribute attr;
	Dwarf_Die own;
	Dwarf_Op *ops;
	size_t nops;

	q.node = &q.unit->nodes.data[instance->node];
	return !find_param(&q, param, &own) && dwarf_attr(&own, DW_AT_location, &attr) &&
	       dwarf_getlocation_addr(&attr, addr.v, &ops, &nops, 1) == 1 &&
	       !evaluate(&q, &attr, ops, nops, addr.v, instance);
}
