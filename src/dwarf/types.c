/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the name of a struct or typedef to its definition. The index over all
 * units is made at the first question; of several definitions of a name the
 * first counts.
 */
#include "dwarf/types.h"

#include <string.h>

enum { KIND_TAG, KIND_TYPEDEF };

struct walk {
	struct rt_dwarf *dwarf;
	uintptr_t high; /* DIEs up to here were seen */
};

static struct rt_error *add_type(struct rt_dwarf *dwarf, Dwarf_Die *die, unsigned kind)
{
	const char *name = dwarf_diename(die);
	uint32_t id;
	uint64_t *slot;
	bool is_new;

	if (!name ||
	    (kind == KIND_TAG && (dwarf_hasattr(die, DW_AT_declaration) || dwarf_hasattr(die, DW_AT_signature))))
		return NULL;
	id = rt_intern_string(&dwarf->strings, name);
	slot = id ? rt_map_put(&dwarf->types, rt_key_make(id, kind), &is_new) : NULL;
	if (!slot)
		return rt_error_nomem();
	if (!is_new)
		return NULL;
	if (!rt_vec_push(&dwarf->type_dies, *die))
		return rt_error_nomem();
	*slot = dwarf->type_dies.len;
	return NULL;
}

static struct rt_error *add_global(struct rt_dwarf *dwarf, Dwarf_Die *variable)
{
	Dwarf_Die type, peeled;

	if (!dwarf_hasattr(variable, DW_AT_location) || !rt_die_type(variable, &type) ||
	    !rt_type_peel(&type, &peeled) ||
	    (dwarf_tag(&peeled) != DW_TAG_pointer_type && !rt_type_is_aggregate(&peeled)))
		return NULL;
	return rt_vec_push(&dwarf->global_dies, *variable) ? NULL : rt_error_nomem();
}

static struct rt_error *walk_types(struct walk *w, Dwarf_Die *die, unsigned level)
{
	Dwarf_Die child;

	if (level > RT_DWARF_DEPTH_MAX || dwarf_child(die, &child) != 0)
		return NULL;
	do {
		int tag = dwarf_tag(&child);

		if ((uintptr_t)child.addr <= w->high)
			return NULL;
		w->high = (uintptr_t)child.addr;
		switch (tag) {
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
			RT_TRY(add_type(w->dwarf, &child, KIND_TAG));
			RT_TRY(walk_types(w, &child, level + 1));
			break;
		case DW_TAG_typedef:
			RT_TRY(add_type(w->dwarf, &child, KIND_TYPEDEF));
			break;
		case DW_TAG_variable:
			RT_TRY(add_global(w->dwarf, &child));
			break;
		case DW_TAG_namespace:
			RT_TRY(walk_types(w, &child, level + 1));
			break;
		}
	} while (rt_die_next(&child));
	return NULL;
}

struct rt_error *rt_types_read(struct rt_dwarf *dwarf)
{
	if (dwarf->types_read)
		return NULL;
	dwarf->types_read = true;
	for (size_t i = 0; i < dwarf->units.len; i++) {
		struct walk w = { .dwarf = dwarf };

		RT_TRY(rt_unit_load(dwarf, &dwarf->units.data[i]));
		RT_TRY(walk_types(&w, &dwarf->units.data[i].tree, 0));
	}
	return NULL;
}

static bool find(struct rt_dwarf *dwarf, const char *name, unsigned kind, Dwarf_Die *ret)
{
	uint32_t id = rt_intern_string(&dwarf->strings, name);
	uint64_t *slot = id ? rt_map_get(&dwarf->types, rt_key_make(id, kind)) : NULL;

	if (!slot)
		return false;
	*ret = dwarf->type_dies.data[*slot - 1];
	return true;
}

bool rt_type_is_aggregate(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* A unit that only declares the struct: its definition may be in a type unit or in another unit. */
static bool complete(struct rt_dwarf *dwarf, Dwarf_Die *type, Dwarf_Die *ret)
{
	const char *name;

	if (rt_die_ref(type, DW_AT_signature, ret))
		return true;
	if (!dwarf_hasattr(type, DW_AT_declaration)) {
		*ret = *type;
		return true;
	}
	name = dwarf_diename(type);
	return name && find(dwarf, name, KIND_TAG, ret);
}

bool rt_type_struct(struct rt_dwarf *dwarf, Dwarf_Die *type, Dwarf_Die *ret)
{
	Dwarf_Die at;

	return rt_type_peel(type, &at) && rt_type_is_aggregate(&at) && complete(dwarf, &at, ret);
}

bool rt_type_find(struct rt_dwarf *dwarf, const char *name, Dwarf_Die *ret)
{
	struct rt_error *err;
	Dwarf_Die die;

	if (!dwarf->dw)
		return false;
	err = rt_types_read(dwarf);
	if (err) {
		rt_error_free(err);
		return false;
	}
	if (strncmp(name, "struct ", 7) == 0)
		name += 7;
	if (find(dwarf, name, KIND_TAG, ret))
		return true;
	return find(dwarf, name, KIND_TYPEDEF, &die) && rt_type_struct(dwarf, &die, ret);
}

const char *rt_dwarf_tag(struct rt_dwarf *dwarf, const char *name)
{
	Dwarf_Die alias, at;
	struct rt_error *err = dwarf->dw ? rt_types_read(dwarf) : NULL;

	if (err) {
		rt_error_free(err);
		return NULL;
	}
	if (!dwarf->dw || !find(dwarf, name, KIND_TYPEDEF, &alias) || !rt_type_peel(&alias, &at) ||
	    !rt_type_is_aggregate(&at))
		return NULL;
	return rt_dwarf_text(dwarf, rt_die_string(&at, DW_AT_name));
}

uint64_t rt_dwarf_struct_size(struct rt_dwarf *dwarf, const char *structure)
{
	Dwarf_Word size;
	Dwarf_Die type;

	if (!rt_type_find(dwarf, structure, &type) || dwarf_aggregate_size(&type, &size) != 0)
		return 0;
	return size;
}
