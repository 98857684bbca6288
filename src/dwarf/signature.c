/* SPDX-License-Identifier: GPL-2.0-only */
/* Spelling of types, and the functions of a module as they were declared. */
#include "dwarf/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RT_PARAMS_MAX 256

/* "struct " and the like; NULL for types that have no tag. */
static const char *tag_word(int tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
		return "struct ";
	case DW_TAG_class_type:
		return "class ";
	case DW_TAG_union_type:
		return "union ";
	case DW_TAG_enumeration_type:
		return "enum ";
	default:
		return NULL;
	}
}

struct spelling {
	const char *word, *name; /* of the innermost type */
	bool aggregate;          /* struct, class or union */
	char marks[16];          /* "*" and "&" behind it, outermost last */
	unsigned pointers;
	bool array; /* of all that */
};

/* Follows type down to something with a name. */
static void spell(Dwarf_Die *type, struct spelling *s)
{
	const char *alias = NULL;
	Dwarf_Die at = *type, next;

	for (unsigned i = 0; i < RT_DWARF_HOPS_MAX; i++) {
		int tag = dwarf_tag(&at);

		switch (tag) {
		case DW_TAG_pointer_type:
		case DW_TAG_reference_type:
		case DW_TAG_rvalue_reference_type:
			if (s->pointers < sizeof(s->marks) - 1)
				s->marks[s->pointers++] = tag == DW_TAG_pointer_type ? '*' : '&';
			alias = NULL;
			break;
		case DW_TAG_typedef:
			alias = rt_die_string(&at, DW_AT_name);
			break;
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			break;
		case DW_TAG_array_type:
			if (!s->pointers)
				s->array = true;
			break;
		default:
			/* a nameless stand-in for a type in a unit of its own */
			if (tag_word(tag) && rt_die_ref(&at, DW_AT_signature, &next)) {
				at = next;
				continue;
			}
			s->word = tag_word(tag);
			s->aggregate = s->word && tag != DW_TAG_enumeration_type;
			s->name = rt_die_string(&at, DW_AT_name);
			if (tag == DW_TAG_subroutine_type)
				s->name = "()";
			if (!s->name) {
				s->name = alias;
				s->word = NULL;
			}
			return;
		}
		if (!rt_die_type(&at, &next)) {
			s->name = "void";
			return;
		}
		at = next;
	}
}

void rt_type_spell(struct rt_dwarf *dwarf, Dwarf_Die *type, struct rt_param *ret)
{
	_cleanup_free_ char *text = NULL;
	struct spelling s = { 0 };
	char marks[sizeof(s.marks) + 1] = "";

	ret->type = ret->pointee = NULL;
	ret->pointers = 0;
	if (!type)
		return;
	spell(type, &s);
	/* read from the outside in, written from the inside out */
	for (unsigned i = 0; i < s.pointers; i++)
		marks[i] = s.marks[s.pointers - 1 - i];
	if (!s.pointers && s.name && strcmp(s.name, "void") == 0)
		return;
	if (asprintf(&text, "%s%s%s%s%s", s.word ?: "", s.name ?: "?", s.pointers ? " " : "", marks,
		     s.array ? "[]" : "") < 0)
		return;
	ret->type = rt_dwarf_text(dwarf, text);
	ret->pointers = s.pointers;
	if (s.pointers && s.aggregate && s.name)
		ret->pointee = rt_dwarf_text(dwarf, s.name);
}

void rt_fn_resolve(struct rt_dwarf *dwarf, struct rt_fn *fn)
{
	Dwarf_Attribute attr;
	bool external = false;
	int line = 0;

	if (fn->resolved)
		return;
	fn->resolved = true;
	fn->name = rt_dwarf_text(dwarf, rt_die_string(&fn->die, DW_AT_name));
	fn->linkage = rt_die_linkage(dwarf, &fn->die);
	fn->file = rt_die_file(dwarf, &fn->die, DW_AT_decl_file);
	if (dwarf_decl_line(&fn->die, &line) == 0 && line > 0)
		fn->line = line;
	if (dwarf_attr_integrate(&fn->die, DW_AT_external, &attr) && dwarf_formflag(&attr, &external) == 0)
		fn->external = external;
	/* C++ constructors carry the linkage name at the concrete function only. */
	if (!fn->linkage && fn->body)
		fn->linkage = rt_die_linkage(dwarf, &dwarf->units.data[fn->body_unit].nodes.data[fn->body - 1].die);
}

struct params {
	RT_VEC(struct rt_param) list;
};

static bool read_params(struct rt_dwarf *dwarf, Dwarf_Die *die, struct params *ret)
{
	Dwarf_Die child, type;

	rt_vec_clear(&ret->list);
	if (dwarf_child(die, &child) != 0)
		return true;
	do {
		struct rt_param *p;

		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		if (ret->list.len >= RT_PARAMS_MAX)
			break;
		p = rt_vec_add(&ret->list);
		if (!p)
			return false;
		rt_type_spell(dwarf, rt_die_type(&child, &type) ? &type : NULL, p);
		p->name = rt_dwarf_text(dwarf, rt_die_string(&child, DW_AT_name));
	} while (rt_die_next(&child));
	return true;
}

static bool fill(struct rt_dwarf *dwarf, struct rt_fn *fn, struct params *params, struct rt_signature *ret)
{
	Dwarf_Die type;

	*ret = (struct rt_signature){ .function = fn->name,
				      .linkage = fn->linkage,
				      .external = fn->external,
				      .has_body = fn->body != 0,
				      .has_inlined = fn->has_inlined,
				      .addr = { fn->addr },
				      .file = fn->file,
				      .line = fn->line };
	rt_type_spell(dwarf, rt_die_type(&fn->die, &type) ? &type : NULL, &ret->returns);
	if (!read_params(dwarf, &fn->die, params))
		return false;
	ret->params = params->list.data;
	ret->param_count = params->list.len;
	return true;
}

/* The same inline function is in every unit that includes its header: index of the first one. */
static struct rt_error *merge(struct rt_dwarf *dwarf, struct rt_map *seen)
{
	for (size_t i = 0; i < dwarf->fns.len; i++) {
		struct rt_fn *fn = &dwarf->fns.data[i], *first;
		const char *name;
		uint64_t *slot;
		bool is_new;

		rt_fn_resolve(dwarf, fn);
		name = fn->linkage ? fn->linkage : fn->name;
		if (!name)
			continue;
		/* interned: equal text, equal pointer */
		slot = rt_map_put(seen, rt_key_make((uintptr_t)name, (uintptr_t)fn->file), &is_new);
		if (!slot)
			return rt_error_nomem();
		if (is_new)
			*slot = i;
		first = &dwarf->fns.data[*slot];
		first->has_inlined |= fn->has_inlined;
		if (!first->body && fn->body) {
			first->body = fn->body;
			first->body_unit = fn->body_unit;
			first->addr = fn->addr;
		}
	}
	return NULL;
}

struct rt_error *rt_dwarf_functions(struct rt_dwarf *dwarf, bool (*visit)(const struct rt_signature *sig, void *arg),
				    void *arg)
{
	_cleanup_(rt_map_deinit) struct rt_map seen = { 0 };
	struct params params = { 0 };
	struct rt_error *err = NULL;
	struct rt_signature sig;

	if (!dwarf->dw)
		return NULL;
	RT_TRY(rt_dwarf_walk_all(dwarf));
	RT_TRY(merge(dwarf, &seen));
	for (size_t i = 0; i < dwarf->fns.len; i++) {
		struct rt_fn *fn = &dwarf->fns.data[i];
		const char *name = fn->linkage ? fn->linkage : fn->name;
		uint64_t *slot = rt_map_get(&seen, rt_key_make((uintptr_t)name, (uintptr_t)fn->file));

		if (!fn->name || !slot || *slot != i)
			continue;
		if (!fill(dwarf, fn, &params, &sig)) {
			err = rt_error_nomem();
			break;
		}
		if (!visit(&sig, arg))
			break;
	}
	rt_vec_deinit(&params.list);
	return err;
}

struct declared {
	struct rt_dwarf *dwarf;
	bool (*wanted)(const char *name, void *arg);
	bool (*visit)(const struct rt_signature *sig, void *arg);
	void *arg;
	struct params params;
	bool stopped;
};

/* the declarations at the top of a unit: those of C */
static struct rt_error *see_declared(struct declared *d, Dwarf_Die *unit)
{
	uintptr_t high = 0; /* DIEs up to here were seen */
	Dwarf_Die child;

	if (dwarf_child(unit, &child) != 0)
		return NULL;
	do {
		struct rt_fn fn = { .die = child };
		struct rt_signature sig;
		const char *name;

		if ((uintptr_t)child.addr <= high)
			return NULL;
		high = (uintptr_t)child.addr;
		if (dwarf_tag(&child) != DW_TAG_subprogram || !dwarf_hasattr(&child, DW_AT_declaration))
			continue;
		name = rt_die_string(&child, DW_AT_name);
		if (!name || !d->wanted(name, d->arg))
			continue;
		rt_fn_resolve(d->dwarf, &fn);
		if (!fn.name || !fill(d->dwarf, &fn, &d->params, &sig))
			return rt_error_nomem();
		d->stopped = !d->visit(&sig, d->arg);
	} while (!d->stopped && rt_die_next(&child));
	return NULL;
}

struct rt_error *rt_dwarf_imports(struct rt_dwarf *dwarf, bool (*wanted)(const char *name, void *arg),
				  bool (*visit)(const struct rt_signature *sig, void *arg), void *arg)
{
	struct declared d = { .dwarf = dwarf, .wanted = wanted, .visit = visit, .arg = arg };
	struct rt_error *err = NULL;

	for (size_t i = 0; dwarf->dw && i < dwarf->units.len && !err && !d.stopped; i++) {
		err = rt_unit_load(dwarf, &dwarf->units.data[i]);
		if (!err)
			err = see_declared(&d, &dwarf->units.data[i].tree);
	}
	rt_vec_deinit(&d.params.list);
	return err;
}
