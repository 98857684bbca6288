/* SPDX-License-Identifier: GPL-2.0-only */
/* Opening a module's debug information, and the index from addresses to units. */
#include "dwarf/unit.h"

#include <elf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rt_spans_add(struct rt_spans *spans, uint64_t lo, uint64_t hi, uint32_t value)
{
	return rt_vec_push(&spans->v, ((struct rt_span){ .lo = lo, .hi = hi, .value = value }));
}

static int compare_spans(const void *a, const void *b)
{
	const struct rt_span *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	if (x->hi != y->hi)
		return x->hi > y->hi ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

void rt_spans_sort(struct rt_spans *spans)
{
	uint64_t reach = 0;

	if (spans->v.len)
		qsort(spans->v.data, spans->v.len, sizeof(*spans->v.data), compare_spans);
	for (size_t i = 0; i < spans->v.len; i++) {
		if (spans->v.data[i].hi > reach)
			reach = spans->v.data[i].hi;
		spans->v.data[i].reach = reach;
	}
}

bool rt_spans_next(const struct rt_spans *spans, uint64_t addr, size_t *pos, uint32_t *ret)
{
	size_t i = *pos;

	if (i == SIZE_MAX) {
		size_t lo = 0, hi = spans->v.len;

		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;

			if (spans->v.data[mid].lo <= addr)
				lo = mid + 1;
			else
				hi = mid;
		}
		i = lo;
	}
	while (i > 0 && spans->v.data[i - 1].reach > addr) {
		i--;
		if (spans->v.data[i].hi > addr) {
			*pos = i;
			*ret = spans->v.data[i].value;
			return true;
		}
	}
	*pos = 0;
	return false;
}

const char *rt_dwarf_text(struct rt_dwarf *dwarf, const char *text)
{
	uint32_t id = text ? rt_intern_string(&dwarf->strings, text) : 0;

	return id ? rt_intern_text(&dwarf->strings, id) : NULL;
}

const char *rt_dwarf_path(struct rt_dwarf *dwarf, Dwarf_Die *die, const char *path)
{
	_cleanup_free_ char *joined = NULL;
	const char *dir;
	Dwarf_Die unit;

	if (!path || path[0] == '/' ||
	    (!rt_unit_of_split(dwarf, die->cu, &unit) && !dwarf_diecu(die, &unit, NULL, NULL)))
		return rt_dwarf_text(dwarf, path);
	dir = rt_die_string(&unit, DW_AT_comp_dir);
	if (!dir || dir[0] != '/' || asprintf(&joined, "%s/%s", dir, path) < 0)
		return rt_dwarf_text(dwarf, path);
	return rt_dwarf_text(dwarf, joined);
}

bool rt_dwarf_in_code(const struct rt_dwarf *dwarf, uint64_t addr)
{
	for (size_t i = 0; i < dwarf->code.len; i++) {
		if (addr >= dwarf->code.data[i].lo && addr < dwarf->code.data[i].hi)
			return true;
	}
	return !dwarf->code.len;
}

/* By size in memory: a debug file opened for itself has its code only in name. */
static struct rt_error *read_code(struct rt_dwarf *dwarf)
{
	size_t count;

	if (!dwarf->image->elf || elf_getphdrnum(dwarf->image->elf, &count) != 0)
		return NULL;
	for (size_t i = 0; i < count && dwarf->code.len < RT_DWARF_SEGMENTS_MAX; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(dwarf->image->elf, i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		if (ph.p_memsz && ph.p_vaddr + ph.p_memsz > ph.p_vaddr &&
		    !rt_vec_push(&dwarf->code, ((struct rt_span){ .lo = ph.p_vaddr, .hi = ph.p_vaddr + ph.p_memsz })))
			return rt_error_nomem();
	}
	return NULL;
}

/* Linkers leave functions that they dropped at address 0 or so: only ranges in code count. */
static bool add_ranges(struct rt_dwarf *dwarf, Dwarf_Die *die, struct rt_spans *spans, uint32_t value, bool *ret_any)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	for (unsigned i = 0; i < RT_DWARF_RANGES_MAX; i++) {
		at = dwarf_ranges(die, at, &base, &lo, &hi);
		if (at <= 0)
			break;
		if (lo >= hi || !rt_dwarf_in_code(dwarf, lo))
			continue;
		if (dwarf->span_count++ >= RT_DWARF_SPANS_MAX)
			break;
		*ret_any = true;
		if (!rt_spans_add(spans, lo, hi, value))
			return false;
	}
	return true;
}

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

	if (!add_ranges(dwarf, die, &unit->spans, index, &any))
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
static int interest(const struct walk *w, int tag)
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
		return w->c_only ? -1 : 0;
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
		int what = interest(w, dwarf_tag(&child));
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
	RT_TRY(walk_children(&w, &unit->tree, 0, 0));
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

static struct rt_error *read_units(struct rt_dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	uint8_t kind;
	Dwarf_Die die;

	/* libdw itself would open whatever path the file tells for the rest of a skeleton */
	while (dwarf_get_units(dwarf->dw, cu, &cu, NULL, &kind, &die, NULL) == 0) {
		struct rt_unit *unit;

		if (dwarf_tag(&die) == DW_TAG_invalid)
			continue;
		unit = rt_vec_add(&dwarf->units);
		if (!unit)
			return rt_error_nomem();
		unit->die = unit->tree = die;
		unit->code = dwarf_tag(&die) != DW_TAG_type_unit && dwarf_tag(&die) != DW_TAG_partial_unit;
		unit->skeleton = kind == DW_UT_skeleton;
	}
	for (size_t i = 0; i < dwarf->units.len; i++) {
		struct rt_unit *unit = &dwarf->units.data[i];
		bool any = false;

		if (!unit->code)
			continue;
		if (!add_ranges(dwarf, &unit->die, &dwarf->spans, i, &any))
			return rt_error_nomem();
		if (any)
			continue;
		/* Some producers give ranges only at the functions. */
		RT_TRY(rt_unit_walk(dwarf, unit));
		for (size_t k = 0; k < unit->spans.v.len; k++) {
			const struct rt_span *s = &unit->spans.v.data[k];

			if (!unit->nodes.data[s->value].parent && !rt_spans_add(&dwarf->spans, s->lo, s->hi, i))
				return rt_error_nomem();
		}
	}
	rt_spans_sort(&dwarf->spans);
	return NULL;
}

static bool has_units(const struct rt_dwarf_source *source)
{
	Dwarf_CU *cu;

	return source->dw && dwarf_get_units(source->dw, NULL, &cu, NULL, NULL, NULL, NULL) == 0;
}

struct rt_error *rt_dwarf_create(const struct rt_image *image, struct rt_dwarf **ret)
{
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf)
		return rt_error_nomem();
	dwarf->image = image;
	RT_TRY(read_code(dwarf));
	RT_TRY(rt_source_begin(image, &dwarf->own));
	/* .debug_frame may be there without any other debug info */
	if (dwarf->own.dw)
		dwarf->frame = dwarf_getcfi(dwarf->own.dw);
	if (image->elf)
		dwarf->eh = dwarf_getcfi_elf(image->elf);
	if (has_units(&dwarf->own)) {
		dwarf->dw = dwarf->own.dw;
	} else if (image->debug) {
		RT_TRY(rt_source_begin(image->debug, &dwarf->companion));
		if (has_units(&dwarf->companion))
			dwarf->dw = dwarf->companion.dw;
		if (!dwarf->frame && dwarf->companion.dw)
			dwarf->frame = dwarf_getcfi(dwarf->companion.dw);
	}
	if (dwarf->dw)
		RT_TRY(read_units(dwarf));
	*ret = rt_take(dwarf);
	return NULL;
}

void rt_dwarf_destroy(struct rt_dwarf *dwarf)
{
	if (!dwarf)
		return;
	if (dwarf->eh)
		dwarf_cfi_end(dwarf->eh);
	rt_source_end(&dwarf->own);
	rt_source_end(&dwarf->companion);
	for (size_t i = 0; i < dwarf->units.len; i++) {
		rt_source_end(&dwarf->units.data[i].split);
		rt_vec_deinit(&dwarf->units.data[i].nodes);
		rt_vec_deinit(&dwarf->units.data[i].spans.v);
	}
	rt_vec_deinit(&dwarf->units);
	rt_vec_deinit(&dwarf->spans.v);
	rt_vec_deinit(&dwarf->code);
	rt_vec_deinit(&dwarf->fns);
	rt_vec_deinit(&dwarf->type_dies);
	rt_vec_deinit(&dwarf->fdes);
	rt_vec_deinit(&dwarf->parts);
	rt_vec_deinit(&dwarf->missing);
	rt_source_end(&dwarf->package_source);
	rt_image_destroy(dwarf->package);
	rt_map_deinit(&dwarf->skeleton_by_cu);
	rt_map_deinit(&dwarf->fn_by_die);
	rt_map_deinit(&dwarf->types);
	rt_intern_deinit(&dwarf->strings);
	free(dwarf);
}

bool rt_dwarf_present(const struct rt_dwarf *dwarf)
{
	return dwarf->dw != NULL;
}
