/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lines that a function takes. Debug info says only where it begins; its rows, the calls that were inlined into it
 * and what it declares tell how far it reaches, also where it has no code of its own.
 */
#include "dwarf/listing.h"
#include "dwarf/unit.h"

struct extents {
	struct rt_dwarf *dwarf;
	RT_VEC(struct rt_extent) list;
	struct rt_map index; /* (name, file) -> index + 1 */
};

static void reach(struct rt_extent *e, const char *file, uint64_t line)
{
	if (file == e->file && line > e->last && line <= UINT32_MAX)
		e->last = line;
}

/* What die declares, as far as it is no function of its own. */
static void declared(struct rt_dwarf *dwarf, Dwarf_Die *die, struct rt_extent *e, unsigned level)
{
	uintptr_t high = 0;
	Dwarf_Die child;

	if (level > RT_DWARF_DEPTH_MAX || dwarf_child(die, &child) != 0)
		return;
	do {
		uint64_t line;
		int tag = dwarf_tag(&child);

		if ((uintptr_t)child.addr <= high)
			return;
		high = (uintptr_t)child.addr;
		if (tag == DW_TAG_lexical_block)
			declared(dwarf, &child, e, level + 1);
		else if ((tag == DW_TAG_variable || tag == DW_TAG_label || tag == DW_TAG_formal_parameter) &&
			 rt_die_number(&child, DW_AT_decl_line, &line) && line > e->last)
			reach(e, rt_die_file(dwarf, &child, DW_AT_decl_file), line);
	} while (rt_die_next(&child));
}

/* NULL: out of memory. Valid until the next one. */
static struct rt_extent *extent_of(struct extents *x, struct rt_fn *fn)
{
	uint64_t *slot =
		rt_map_put(&x->index, rt_key_make((uintptr_t)(fn->linkage ?: fn->name), (uintptr_t)fn->file), NULL);
	struct rt_extent *e;

	if (!slot)
		return NULL;
	if (*slot)
		return &x->list.data[*slot - 1];
	e = rt_vec_add(&x->list);
	if (!e)
		return NULL;
	*slot = x->list.len;
	*e = (struct rt_extent){
		.name = fn->name, .linkage = fn->linkage, .file = fn->file, .first = fn->line, .last = fn->line
	};
	declared(x->dwarf, &fn->die, e, 0);
	return e;
}

/* Rows of the unit that lie in node itself, not in what was inlined into it. */
static void rows_of(struct extents *x, struct rt_unit *unit, Dwarf_Lines *lines, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		struct rt_node *node;
		Dwarf_Addr addr;
		uint64_t *slot;
		struct rt_fn *fn;
		bool end = false;
		int number;

		if (!line || dwarf_lineaddr(line, &addr) != 0 || dwarf_lineendsequence(line, &end) != 0 || end ||
		    dwarf_lineno(line, &number) != 0 || number <= 0)
			continue;
		node = rt_unit_innermost(unit, addr);
		if (!node)
			continue;
		fn = &x->dwarf->fns.data[node->fn];
		slot = fn->resolved ? rt_map_get(&x->index,
						 rt_key_make((uintptr_t)(fn->linkage ?: fn->name), (uintptr_t)fn->file))
				    : NULL;
		if (slot && (uint32_t)number > x->list.data[*slot - 1].last)
			reach(&x->list.data[*slot - 1],
			      rt_dwarf_path(x->dwarf, &unit->die, dwarf_linesrc(line, NULL, NULL)), number);
	}
}

static struct rt_error *unit_extents(struct extents *x, struct rt_unit *unit,
				     bool (*match)(const char *name, const char *linkage, void *arg), void *arg)
{
	Dwarf_Lines *lines;
	bool any = false;
	size_t count;

	for (size_t i = 0; i < unit->nodes.len; i++) {
		struct rt_node *node = &unit->nodes.data[i], *parent;
		struct rt_fn *fn = &x->dwarf->fns.data[node->fn];
		struct rt_extent *e;

		rt_fn_resolve(x->dwarf, fn);
		if (node->inlined) {
			rt_node_name(x->dwarf, unit, node);
			parent = node->parent ? &unit->nodes.data[node->parent - 1] : NULL;
			fn = parent ? &x->dwarf->fns.data[parent->fn] : NULL;
			if (fn && fn->name && fn->file && match(fn->name, fn->linkage, arg)) {
				e = extent_of(x, fn);
				if (!e)
					return rt_error_nomem();
				reach(e, node->call_file, node->call_line);
			}
			fn = &x->dwarf->fns.data[node->fn];
		}
		if (!fn->name || !fn->file || !match(fn->name, fn->linkage, arg))
			continue;
		any = true;
		e = extent_of(x, fn);
		if (!e)
			return rt_error_nomem();
		e->bodies += !node->inlined;
		e->inlined += node->inlined && !node->split;
	}
	if (any && dwarf_getsrclines(&unit->die, &lines, &count) == 0)
		rows_of(x, unit, lines, count);
	return NULL;
}

struct rt_error *rt_dwarf_extents(struct rt_dwarf *dwarf,
				  bool (*match)(const char *name, const char *linkage, void *arg), void *arg,
				  struct rt_extent **ret, size_t *ret_count)
{
	struct extents x = { .dwarf = dwarf };
	struct rt_error *err = dwarf->dw ? rt_dwarf_walk_all(dwarf) : NULL;

	for (size_t i = 0; !err && dwarf->dw && i < dwarf->units.len; i++)
		err = unit_extents(&x, &dwarf->units.data[i], match, arg);
	rt_map_deinit(&x.index);
	if (err) {
		rt_vec_deinit(&x.list);
		return err;
	}
	*ret = x.list.data;
	*ret_count = x.list.len;
	return NULL;
}
