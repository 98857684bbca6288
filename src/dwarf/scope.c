/* SPDX-License-Identifier: GPL-2.0-only */
/* Which functions contain an address, inlined ones first. */
#include <stdio.h>

#include "dwarf/types.h"
#include "dwarf/unit.h"

/* A struct of numbers and texts alone (GError): nothing that a function knows can be in it. */
static bool holds_nothing(struct rt_dwarf *dwarf, Dwarf_Die *type)
{
	Dwarf_Die structure, child, member;

	if (!rt_type_struct(dwarf, type, &structure) || dwarf_child(&structure, &child) != 0)
		return false;
	do {
		if (!rt_is_member(&child))
			continue;
		if (!rt_die_type(&child, &member) || !rt_type_peel(&member, &member))
			return false;
		if (dwarf_tag(&member) == DW_TAG_pointer_type &&
		    (!rt_die_type(&member, &member) || !rt_type_peel(&member, &member)))
			return false;
		if (dwarf_tag(&member) != DW_TAG_base_type && dwarf_tag(&member) != DW_TAG_enumeration_type)
			return false;
	} while (rt_die_next(&child));
	return true;
}

/*
 * The pointers that a function leaves where its T ** arguments say, behind those that it returns: of an inlined one
 * nobody sees it return, so that both come to its caller alike.
 */
static const char *with_outputs(struct rt_dwarf *dwarf, Dwarf_Die *function, const char *returns)
{
	Dwarf_Die child, type, pointer, pointee;

	if (dwarf_child(function, &child) != 0)
		return returns;
	do {
		struct rt_param output = { 0 };
		_cleanup_free_ char *all = NULL;
		const char *text;

		if (dwarf_tag(&child) != DW_TAG_formal_parameter || !rt_die_type(&child, &type) ||
		    !rt_type_peel(&type, &type) || dwarf_tag(&type) != DW_TAG_pointer_type ||
		    !rt_die_type(&type, &type))
			continue;
		rt_type_spell(dwarf, &type, &output);
		if (output.pointers != 1 || !output.pointee ||
		    (rt_type_peel(&type, &pointer) && rt_die_type(&pointer, &pointee) &&
		     holds_nothing(dwarf, &pointee)))
			continue;
		text = rt_type_spell_heads(dwarf, &type, &output);
		if (text && asprintf(&all, "%s%s%s", returns ? returns : "", returns ? "|" : "", text) >= 0)
			returns = rt_dwarf_text(dwarf, all);
	} while (rt_die_next(&child));
	return returns;
}

void rt_node_name(struct rt_dwarf *dwarf, struct rt_unit *unit, struct rt_node *node)
{
	struct rt_param returns = { 0 };
	uint64_t line = 0;
	Dwarf_Die type;

	if (node->named)
		return;
	node->named = true;
	node->function = rt_dwarf_text(dwarf, rt_die_string(&node->die, DW_AT_name));
	node->linkage = rt_die_linkage(dwarf, &node->die);
	if (rt_die_type(&node->die, &type)) {
		rt_type_spell(dwarf, &type, &returns);
		node->returns = rt_type_spell_heads(dwarf, &type, &returns);
	}
	if (node->inlined && !returns.pointers)
		node->returns = with_outputs(dwarf, &dwarf->fns.data[node->fn].die, node->returns);
	if (node->inlined) {
		node->call_file = rt_die_file(dwarf, &node->die, DW_AT_call_file);
		if (rt_die_number(&node->die, DW_AT_call_line, &line) && line <= UINT32_MAX)
			node->call_line = line;
	}
	if (node->inlined && node->parent && unit->nodes.data[node->parent - 1].fn == node->fn) {
		struct rt_fn *fn = &dwarf->fns.data[node->fn];

		rt_fn_resolve(dwarf, fn);
		node->split = fn->line && node->call_line == fn->line;
	}
}

struct rt_node *rt_unit_innermost(struct rt_unit *unit, uint64_t addr)
{
	struct rt_node *best = NULL;
	size_t pos = SIZE_MAX;
	uint32_t index;

	while (rt_spans_next(&unit->spans, addr, &pos, &index)) {
		struct rt_node *node = &unit->nodes.data[index];

		/* Of two at the same depth the later one in the tree has the narrower range. */
		if (!best || node->depth > best->depth || (node->depth == best->depth && node > best))
			best = node;
	}
	return best;
}

static size_t unit_scopes(struct rt_dwarf *dwarf, struct rt_unit *unit, struct rt_elfaddr addr, struct rt_scope *ret,
			  size_t max)
{
	struct rt_node *node = rt_unit_innermost(unit, addr.v);
	struct rt_source_line at = { 0 };
	const char *file = NULL;
	uint32_t line = 0;
	size_t n = 0;

	if (!node)
		return 0;
	if (rt_dwarf_line(dwarf, addr, &at)) {
		file = at.file;
		line = at.line;
	}
	while (n < max) {
		rt_node_name(dwarf, unit, node);
		if (node->split) {
			node = &unit->nodes.data[node->parent - 1];
			continue;
		}
		ret[n++] = (struct rt_scope){ .function = node->function,
					      .linkage = node->linkage,
					      .returns = node->returns,
					      .file = file,
					      .line = line,
					      .inlined = node->inlined,
					      .entry = { node->entry } };
		file = node->call_file;
		line = node->call_line;
		/* A function nested in another is no inlined part of it. */
		if (!node->inlined || !node->parent)
			break;
		node = &unit->nodes.data[node->parent - 1];
	}
	return n;
}

size_t rt_dwarf_scopes(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_scope *ret, size_t max)
{
	size_t pos = SIZE_MAX;
	uint32_t index;

	while (dwarf->dw && max && rt_spans_next(&dwarf->spans, addr.v, &pos, &index)) {
		struct rt_unit *unit = &dwarf->units.data[index];
		struct rt_error *err = rt_unit_walk(dwarf, unit);
		size_t n;

		if (err) {
			rt_error_free(err);
			return 0;
		}
		n = unit_scopes(dwarf, unit, addr, ret, max);
		if (n)
			return n;
	}
	return 0;
}
