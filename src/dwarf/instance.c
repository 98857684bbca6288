/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions with code and their inlined instances, by name and by address; and the rows of line tables. */
#include <string.h>

#include "dwarf/location.h"

#define RT_QUALIFIED_MAX 1024 /* bytes of a name with its namespaces */

static void fill(struct rt_dwarf *dwarf, struct rt_unit *unit, const struct rt_node *node, struct rt_instance *ret)
{
	struct rt_fn *fn = &dwarf->fns.data[node->fn];
	const struct rt_node *outer = node;

	rt_fn_resolve(dwarf, fn);
	*ret = (struct rt_instance){ .unit = (size_t)(unit - dwarf->units.data),
				     .node = (uint32_t)(node - unit->nodes.data),
				     .fn = node->fn,
				     .function = fn->name,
				     .linkage = fn->linkage,
				     .file = fn->file,
				     .line = fn->line,
				     .inlined = node->inlined,
				     .entry = { node->entry } };
	if (node->inlined && node->parent) {
		struct rt_fn *caller = &dwarf->fns.data[unit->nodes.data[node->parent - 1].fn];

		rt_fn_resolve(dwarf, caller);
		ret->caller = caller->name;
	}
	while (outer->inlined && outer->parent)
		outer = &unit->nodes.data[outer->parent - 1];
	ret->around.v = outer->entry;
}

struct rt_error *rt_dwarf_instances(struct rt_dwarf *dwarf, const char *name,
				    bool (*wants)(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg),
				    void *arg, struct rt_instance **ret, size_t *ret_count)
{
	RT_VEC(struct rt_instance) list = { 0 };
	/* of each function: 0 not asked yet, 1 wanted, 2 not */
	_cleanup_free_ uint8_t *asked = NULL;

	if (dwarf->dw)
		RT_TRY(name ? rt_dwarf_walk_named(dwarf, name) : rt_dwarf_walk_all(dwarf));
	asked = calloc(dwarf->fns.len + 1, 1);
	if (!asked)
		return rt_error_nomem();
	for (size_t u = 0; u < dwarf->units.len; u++) {
		struct rt_unit *unit = &dwarf->units.data[u];

		for (size_t i = 0; i < unit->nodes.len; i++) {
			struct rt_node *node = &unit->nodes.data[i];
			struct rt_instance one;

			if (asked[node->fn] == 2)
				continue;
			fill(dwarf, unit, node, &one);
			if (!asked[node->fn])
				asked[node->fn] = one.function && wants(dwarf, &one, arg) ? 1 : 2;
			if (asked[node->fn] == 2)
				continue;
			/* a part of a function that was split off is no entry to it */
			rt_node_name(dwarf, unit, node);
			if (node->split || (!node->inlined && rt_dwarf_is_part(dwarf, node->entry)))
				continue;
			if (!rt_vec_push(&list, one)) {
				rt_vec_deinit(&list);
				return rt_error_nomem();
			}
		}
	}
	*ret = list.data;
	*ret_count = list.len;
	return NULL;
}

const char *rt_dwarf_qualified(struct rt_dwarf *dwarf, const struct rt_instance *fn)
{
	char text[RT_QUALIFIED_MAX];
	size_t at = sizeof(text) - 1;
	Dwarf_Die die = dwarf->fns.data[fn->fn].die, next, *scopes = NULL;
	int count;

	text[at] = '\0';
	/* a method defined outside of its class is declared in it */
	for (unsigned i = 0; i < RT_DWARF_HOPS_MAX && rt_die_ref(&die, DW_AT_specification, &next); i++)
		die = next;
	count = dwarf_getscopes_die(&die, &scopes);
	for (int i = 0; i < count; i++) {
		int tag = dwarf_tag(&scopes[i]);
		const char *name = i ? dwarf_diename(&scopes[i]) : fn->function;
		size_t len;

		if (!name && tag == DW_TAG_namespace)
			name = "(anonymous namespace)";
		len = name ? strlen(name) : 0;
		if (i && tag != DW_TAG_namespace && tag != DW_TAG_structure_type && tag != DW_TAG_class_type &&
		    tag != DW_TAG_union_type && tag != DW_TAG_enumeration_type)
			continue;
		if (!len)
			continue;
		if (len + 2 > at)
			break;
		if (i) {
			at -= 2;
			memcpy(text + at, "::", 2);
		}
		at -= len;
		memcpy(text + at, name, len);
	}
	free(scopes);
	return count > 0 ? rt_dwarf_text(dwarf, text + at) : fn->function;
}

static struct rt_node *node_of(const struct rt_dwarf *dwarf, const struct rt_instance *instance)
{
	return &dwarf->units.data[instance->unit].nodes.data[instance->node];
}

/* The innermost node around addr that is no split-off part; NULL: none. */
static struct rt_node *node_at(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_unit **ret_unit)
{
	size_t pos = SIZE_MAX;
	uint32_t index;

	while (dwarf->dw && rt_spans_next(&dwarf->spans, addr.v, &pos, &index)) {
		struct rt_unit *unit = &dwarf->units.data[index];
		struct rt_error *err = rt_unit_walk(dwarf, unit);
		struct rt_node *node = err ? NULL : rt_unit_innermost(unit, addr.v);

		rt_error_free(err);
		if (!node)
			continue;
		rt_node_name(dwarf, unit, node);
		while (node->split) {
			node = &unit->nodes.data[node->parent - 1];
			rt_node_name(dwarf, unit, node);
		}
		*ret_unit = unit;
		return node;
	}
	return NULL;
}

bool rt_dwarf_instance_at(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_instance *ret)
{
	struct rt_unit *unit;
	struct rt_node *node = node_at(dwarf, addr, &unit);

	if (node)
		fill(dwarf, unit, node, ret);
	return node;
}

static bool holds(const struct rt_unit *unit, uint32_t node, struct rt_elfaddr addr)
{
	size_t pos = SIZE_MAX;
	uint32_t index;

	while (rt_spans_next(&unit->spans, addr.v, &pos, &index))
		if (index == node)
			return true;
	return false;
}

bool rt_dwarf_instance_of_row(struct rt_dwarf *dwarf, const struct rt_row *row, struct rt_instance *ret)
{
	struct rt_unit *unit;
	struct rt_node *node = node_at(dwarf, row->addr, &unit);

	if (!node)
		return false;
	/* interned: equal text, equal pointer */
	while (node->inlined && node->parent && node->call_line == row->line && node->call_file == row->file &&
	       holds(unit, node->parent - 1, row->addr)) {
		node = &unit->nodes.data[node->parent - 1];
		rt_node_name(dwarf, unit, node);
	}
	fill(dwarf, unit, node, ret);
	return true;
}

bool rt_dwarf_instance_holds(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr)
{
	return holds(&dwarf->units.data[instance->unit], instance->node, addr);
}

bool rt_dwarf_instance_outer(struct rt_dwarf *dwarf, const struct rt_instance *inlined, struct rt_instance *ret)
{
	const struct rt_node *node = node_of(dwarf, inlined);
	struct rt_unit *unit = &dwarf->units.data[inlined->unit];

	if (!node->inlined || !node->parent)
		return false;
	rt_node_name(dwarf, unit, &unit->nodes.data[node->parent - 1]);
	fill(dwarf, unit, &unit->nodes.data[node->parent - 1], ret);
	return true;
}

bool rt_dwarf_instance_within(struct rt_dwarf *dwarf, const struct rt_instance *a, const struct rt_instance *b)
{
	const struct rt_node *node = node_of(dwarf, a);

	if (a->unit != b->unit)
		return false;
	while (node->parent) {
		if (node->parent - 1 == b->node)
			return true;
		node = &dwarf->units.data[a->unit].nodes.data[node->parent - 1];
	}
	return false;
}

struct rows {
	struct rt_dwarf *dwarf;
	bool (*wants)(const char *file, void *arg);
	bool (*visit)(const struct rt_row *row, void *arg);
	void *arg;
	const char *source, *file; /* of the row before: as libdw has it, and as we do */
	bool wanted;
};

static bool unit_rows(struct rows *r, struct rt_unit *unit)
{
	Dwarf_Lines *lines;
	size_t count;

	if (dwarf_getsrclines(&unit->die, &lines, &count) != 0)
		return true;
	r->source = NULL;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *source = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
		struct rt_row row = { .line = 0 };
		Dwarf_Addr addr;
		bool end = true;
		int number;

		if (!source || dwarf_lineendsequence(line, &end) != 0 || end || dwarf_lineaddr(line, &addr) != 0 ||
		    dwarf_lineno(line, &number) != 0 || number <= 0 || !rt_dwarf_in_code(r->dwarf, addr))
			continue;
		if (source != r->source) {
			r->source = source;
			r->file = rt_dwarf_path(r->dwarf, &unit->die, source);
			r->wanted = r->file && r->wants(r->file, r->arg);
		}
		if (!r->wanted)
			continue;
		row.addr.v = addr;
		row.file = r->file;
		row.line = (uint32_t)number;
		(void)dwarf_linebeginstatement(line, &row.is_stmt);
		(void)dwarf_lineprologueend(line, &row.prologue_end);
		if (!r->visit(&row, r->arg))
			return false;
	}
	return true;
}

struct rt_error *rt_dwarf_rows(struct rt_dwarf *dwarf, size_t unit, bool (*wants)(const char *file, void *arg),
			       bool (*visit)(const struct rt_row *row, void *arg), void *arg)
{
	struct rows r = { .dwarf = dwarf, .wants = wants, .visit = visit, .arg = arg };

	for (size_t i = 0; i < dwarf->units.len; i++)
		if ((unit == SIZE_MAX || unit == i) && dwarf->units.data[i].code &&
		    !unit_rows(&r, &dwarf->units.data[i]))
			break;
	return NULL;
}

struct prologue {
	struct rt_elfaddr entry, end;
	uint64_t second, marked;
};

static bool any_file(const char *file, void *arg)
{
	(void)file;
	(void)arg;
	return true;
}

static bool visit_prologue(const struct rt_row *row, void *arg)
{
	struct prologue *p = arg;

	if (row->addr.v <= p->entry.v || row->addr.v >= p->end.v)
		return true;
	if (row->prologue_end && row->addr.v < p->marked)
		p->marked = row->addr.v;
	if (row->addr.v < p->second)
		p->second = row->addr.v;
	return true;
}

struct rt_elfaddr rt_dwarf_prologue_end(struct rt_dwarf *dwarf, size_t unit, struct rt_elfaddr entry,
					struct rt_elfaddr end)
{
	struct prologue p = { .entry = entry, .end = end, .second = UINT64_MAX, .marked = UINT64_MAX };
	uint64_t found;

	rt_error_free(rt_dwarf_rows(dwarf, unit, any_file, visit_prologue, &p));
	found = p.marked != UINT64_MAX ? p.marked : p.second;
	return (struct rt_elfaddr){ found == UINT64_MAX ? 0 : found };
}
