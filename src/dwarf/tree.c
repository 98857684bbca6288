/* SPDX-License-Identifier: GPL-2.0-only */
/* A unit's tree as a flat list: functions with code, and what is inlined in them. */
#include "dwarf/unit.h"

struct walk {
	struct rt_dwarf *dwarf;
	struct rt_unit *unit;
	uintptr_t high; /* DIEs up to here were seen */
	bool c_only;    /* no functions inside structs */
};

/* What an instance is an instance of: the abstract one. */
static void abstract_of(const Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Die next;

	*ret = *die;
	for (unsigned i = 0; i < RT_DWARF_HOPS_MAX && rt_die_ref(ret, DW_AT_abstract_origin, &next); i++)
		*ret = next;
}

static unsigned count_params(Dwarf_Die *die)
{
	unsigned n = 0;
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return 0;
	do {
		n += dwarf_tag(&child) == DW_TAG_formal_parameter;
	} while (rt_die_next(&child));
	return n;
}

static struct rt_error *add_node(struct walk *w, Dwarf_Die *die, uint32_t parent, bool inlined, uint32_t *ret)
{
	struct rt_dwarf *dwarf = w->dwarf;
	struct rt_unit *unit = w->unit;
	uint32_t index = unit->nodes.len;
	struct rt_node *node;
	bool any = false, is_new;
	uint64_t *slot;
	Dwarf_Die abstract;
	struct rt_fn *fn;

	if (!rt_dwarf_add_ranges(dwarf, die, &unit->spans, index, &any))
		return rt_error_nomem();
	if (!any)
		return NULL;
	abstract_of(die, &abstract);
	slot = rt_map_put(&dwarf->fn_by_die, rt_key_make((uintptr_t)abstract.addr, 0), &is_new);
	node = slot ? rt_vec_add(&unit->nodes) : NULL;
	if (!node || (is_new && !rt_vec_add(&dwarf->fns)))
		return rt_error_nomem();
	if (is_new) {
		*slot = dwarf->fns.len;
		dwarf->fns.data[*slot - 1].die = abstract;
	}
	fn = &dwarf->fns.data[*slot - 1];
	*node = (struct rt_node){ .die = *die, .parent = parent, .fn = *slot - 1, .inlined = inlined };
	node->depth = parent ? unit->nodes.data[parent - 1].depth + 1 : 0;
	if (!rt_die_entry(dwarf, die, &node->entry))
		node->entry = unit->spans.v.data[unit->spans.v.len - 1].lo;
	/* a part split off a function and inlined back into it is no call, see rt_node_name() */
	fn->has_inlined |= inlined && !(parent && unit->nodes.data[parent - 1].fn == node->fn);
	/* of a function and its other clones, the one with all the parameters is the function */
	if (!inlined && !rt_dwarf_is_part(dwarf, node->entry) &&
	    (!fn->body ||
	     count_params(die) > count_params(&dwarf->units.data[fn->body_unit].nodes.data[fn->body - 1].die))) {
		fn->body = index + 1;
		fn->body_unit = unit - dwarf->units.data;
		fn->addr = node->entry;
	}
	*ret = index + 1;
	return NULL;
}

/* -1: not of interest, 0: look inside, 1: a function, 2: an inlined instance. */
static int interest(unsigned tag, bool c_only)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return 1;
	case DW_TAG_inlined_subroutine:
		return 2;
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_common_block:
		return 0;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return c_only ? -1 : 0;
	default:
		return -1;
	}
}

static struct rt_error *walk_children(struct walk *w, Dwarf_Die *die, uint32_t parent, unsigned level)
{
	Dwarf_Die child;

	if (level > RT_DWARF_DEPTH_MAX || dwarf_child(die, &child) != 0)
		return NULL;
	do {
		int what = interest((unsigned)dwarf_tag(&child), w->c_only);
		uint32_t node = parent;

		if ((uintptr_t)child.addr <= w->high)
			return NULL;
		w->high = (uintptr_t)child.addr;
		if (what > 0)
			RT_TRY(add_node(w, &child, parent, what == 2, &node));
		if (what >= 0)
			RT_TRY(walk_children(w, &child, node, level + 1));
	} while (rt_die_next(&child));
	return NULL;
}

/* The unit's DIEs by its bytes, which takes a third of the time. false: libdw has to do it */
static bool skim(const struct walk *w)
{
	struct rt_dwarf *dwarf = w->dwarf;
	Dwarf_Die *tree = &w->unit->tree;
	uint64_t die = dwarf_dieoffset(tree), at = die - dwarf_cuoffset(tree);
	struct rt_skim_unit unit;

	return dwarf->has_bytes && !w->unit->skeleton && rt_skim_open(dwarf->info, dwarf->abbrev, at, die, &unit) &&
	       unit.bytes.data + unit.first == (const unsigned char *)tree->addr &&
	       rt_skim_tree(&dwarf->skim, &unit, interest, w->c_only);
}

/* What skim() found, by way of libdw: it takes a DIE whose abbreviation it did not look up yet. */
static struct rt_error *add_found(struct walk *w)
{
	struct rt_skim_die *found = w->dwarf->skim.found.data;
	const Dwarf_Die *tree = &w->unit->tree;

	for (size_t i = 0; i < w->dwarf->skim.found.len; i++) {
		Dwarf_Die die = { .addr = (char *)tree->addr + found[i].behind, .cu = tree->cu };

		/* one that has no code stands for what it lies in */
		found[i].value = found[i].parent ? found[found[i].parent - 1].value : 0;
		RT_TRY(add_node(w, &die, found[i].value, found[i].what == 2, &found[i].value));
	}
	return NULL;
}

struct rt_error *rt_unit_walk(struct rt_dwarf *dwarf, struct rt_unit *unit)
{
	struct walk w = { .dwarf = dwarf, .unit = unit };

	if (unit->walked)
		return NULL;
	unit->walked = true;
	RT_TRY(rt_unit_load(dwarf, unit));
	switch (dwarf_srclang(&unit->tree)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		w.c_only = true;
	}
	if (!skim(&w))
		RT_TRY(walk_children(&w, &unit->tree, 0, 0));
	else
		RT_TRY(add_found(&w));
	rt_spans_sort(&unit->spans);
	return NULL;
}

struct rt_error *rt_dwarf_walk_all(struct rt_dwarf *dwarf)
{
	if (dwarf->all_walked)
		return NULL;
	for (size_t i = 0; i < dwarf->units.len; i++) {
		if (dwarf->units.data[i].code)
			RT_TRY(rt_unit_walk(dwarf, &dwarf->units.data[i]));
	}
	dwarf->all_walked = true;
	return NULL;
}
