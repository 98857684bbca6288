/* SPDX-License-Identifier: GPL-2.0-only */
/* The variables that are in scope at an address, and how each can be had there. */
#include "dwarf/where.h"

#include <stdio.h>
#include <string.h>

#define RT_VARIABLES_MAX 4096
#define RT_VARIABLE_RANGES_MAX 1024

struct found {
	Dwarf_Die die, abstract;
	bool has_abstract, missing; /* missing: only the abstract function has it */
	uint16_t depth;
	bool external;
};

struct search {
	struct rt_dwarf *dwarf;
	struct rt_unit *unit;
	struct rt_node *node;
	uint64_t addr, prologue;
	RT_VEC(struct found) list;
	RT_VEC(struct rt_range) ranges;
	size_t hidden;
};

/* Whether one of the ranges of a block holds addr. -1: it has none */
static int holds(const struct search *s, Dwarf_Die *die)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	int result = -1;

	for (unsigned i = 0; i < RT_DWARF_RANGES_MAX; i++) {
		at = dwarf_ranges(die, at, &base, &lo, &hi);
		if (at <= 0)
			break;
		if (s->addr >= lo && s->addr < hi)
			return 1;
		result = 0;
	}
	return result;
}

static bool is_variable(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) && rt_die_string(die, DW_AT_name);
}

static size_t count_variables(Dwarf_Die *die, unsigned level)
{
	Dwarf_Die child;
	size_t n = 0;

	if (level > RT_DWARF_DEPTH_MAX || dwarf_child(die, &child) != 0)
		return 0;
	do {
		n += is_variable(&child);
		if (dwarf_tag(&child) == DW_TAG_lexical_block)
			n += count_variables(&child, level + 1);
	} while (rt_die_next(&child));
	return n;
}

static struct rt_error *collect(struct search *s, Dwarf_Die *die, unsigned depth, bool external)
{
	Dwarf_Die child;

	if (depth > RT_DWARF_DEPTH_MAX || dwarf_child(die, &child) != 0)
		return NULL;
	do {
		int tag = dwarf_tag(&child), in;

		if (is_variable(&child) && s->list.len < RT_VARIABLES_MAX) {
			struct found f = { .die = child, .depth = depth, .external = external };

			f.has_abstract = rt_die_ref(&child, DW_AT_abstract_origin, &f.abstract);
			if (!rt_vec_push(&s->list, f))
				return rt_error_nomem();
		}
		if (external && tag == DW_TAG_namespace)
			RT_TRY(collect(s, &child, depth + 1, true));
		if (external || tag != DW_TAG_lexical_block)
			continue;
		in = holds(s, &child);
		if (in > 0)
			RT_TRY(collect(s, &child, depth + 1, false));
		else if (in < 0)
			s->hidden += count_variables(&child, 0);
	} while (rt_die_next(&child));
	return NULL;
}

/* The variable of this origin in a block that is not around addr: a compiler may put those of the function into one. */
static bool in_blocks(Dwarf_Die *die, const Dwarf_Die *abstract, unsigned level, Dwarf_Die *ret)
{
	Dwarf_Die child, origin;

	if (level > RT_DWARF_DEPTH_MAX || dwarf_child(die, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_lexical_block && in_blocks(&child, abstract, level + 1, ret))
			return true;
		if (rt_die_ref(&child, DW_AT_abstract_origin, &origin) && origin.addr == abstract->addr) {
			*ret = child;
			return true;
		}
	} while (rt_die_next(&child));
	return false;
}

/* What the function has in the source and this instance has not here. */
static struct rt_error *collect_missing(struct search *s)
{
	Dwarf_Die child, *abstract = &s->dwarf->fns.data[s->node->fn].die;
	size_t concrete = s->list.len;
	struct found f;

	if (abstract->addr == s->node->die.addr || dwarf_child(abstract, &child) != 0)
		return NULL;
	do {
		bool known = !is_variable(&child);

		for (size_t i = 0; i < concrete && !known; i++)
			known = s->list.data[i].has_abstract && s->list.data[i].abstract.addr == child.addr;
		if (known || s->list.len >= RT_VARIABLES_MAX)
			continue;
		f = (struct found){ .die = child, .missing = true };
		f.missing = !in_blocks(&s->node->die, &child, 0, &f.die);
		if (!rt_vec_push(&s->list, f))
			return rt_error_nomem();
	} while (rt_die_next(&child));
	return NULL;
}

static void find_prologue(struct search *s)
{
	struct rt_node *node = s->node;
	size_t pos = SIZE_MAX;
	uint64_t end;
	uint32_t index;

	if (node->inlined)
		return;
	while (rt_spans_next(&s->unit->spans, node->entry, &pos, &index)) {
		if (&s->unit->nodes.data[index] != node || s->unit->spans.v.data[pos].lo != node->entry)
			continue;
		end = rt_dwarf_prologue_end(s->dwarf, (size_t)(s->unit - s->dwarf->units.data),
					    (struct rt_elfaddr){ node->entry },
					    (struct rt_elfaddr){ s->unit->spans.v.data[pos].hi })
			      .v;
		if (s->addr >= node->entry && s->addr < end)
			s->prologue = end;
		return;
	}
}

static const char *constant(struct search *s, Dwarf_Attribute *attr)
{
	Dwarf_Block block;
	Dwarf_Sword value;
	char text[64];

	if (dwarf_formsdata(attr, &value) == 0)
		snprintf(text, sizeof(text), "constant %lld", (long long)value);
	else if (dwarf_formblock(attr, &block) == 0)
		snprintf(text, sizeof(text), "constant of %llu bytes", (unsigned long long)block.length);
	else
		return "constant";
	return rt_dwarf_text(s->dwarf, text);
}

/* Where a location list knows it. */
static struct rt_error *read_ranges(struct search *s, Dwarf_Attribute *attr)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	Dwarf_Op *ops;
	size_t count;

	for (unsigned i = 0; i < RT_VARIABLE_RANGES_MAX; i++) {
		struct rt_range *last = s->ranges.len ? &s->ranges.data[s->ranges.len - 1] : NULL;

		at = dwarf_getlocations(attr, at, &base, &lo, &hi, &ops, &count);
		if (at <= 0)
			break;
		if (!count || lo >= hi)
			continue;
		if (last && last->end.v == lo)
			last->end.v = hi;
		else if (!rt_vec_push(&s->ranges, ((struct rt_range){ { lo }, { hi } })))
			return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *locate(struct search *s, Dwarf_Attribute *attr, struct rt_variable *v)
{
	const struct rt_expression q = {
		.dwarf = s->dwarf, .unit = s->unit, .node = v->external ? NULL : s->node, .addr = s->addr, .attr = attr
	};
	struct rt_where_text answer;
	Dwarf_Op *ops;
	size_t count;
	int n = dwarf_getlocation_addr(attr, s->addr, &ops, &count, 1);
	bool whole = dwarf_whatform(attr) == DW_FORM_exprloc || dwarf_whatform(attr) == DW_FORM_block1;

	if (n < 0) {
		v->where = RT_WHERE_UNKNOWN;
		v->text = "its location is damaged";
		return NULL;
	}
	if (n == 0) {
		RT_TRY(read_ranges(s, attr));
		v->where = s->ranges.len ? RT_WHERE_ELSEWHERE : RT_WHERE_GONE;
		v->ranges = s->ranges.data;
		v->range_count = s->ranges.len;
		return NULL;
	}
	rt_where_tell(&q, ops, count, &answer);
	v->where = answer.where;
	if (answer.where != RT_WHERE_GONE)
		v->text = rt_dwarf_text(s->dwarf, answer.text);
	/* one place for the whole function is on the stack only once it was put there */
	if (whole && answer.frame && s->prologue)
		v->where = RT_WHERE_PROLOGUE;
	if (v->where == RT_WHERE_PROLOGUE && answer.where == RT_WHERE_UNKNOWN)
		v->text = "in its frame";
	return NULL;
}

static struct rt_error *describe(struct search *s, struct found *f, struct rt_variable *v)
{
	struct rt_param type = { 0 };
	Dwarf_Attribute attr;
	uint64_t line = 0;
	Dwarf_Die die;

	*v = (struct rt_variable){ .name = rt_dwarf_text(s->dwarf, rt_die_string(&f->die, DW_AT_name)),
				   .parameter = dwarf_tag(&f->die) == DW_TAG_formal_parameter,
				   .external = f->external,
				   .depth = f->depth,
				   .where = RT_WHERE_GONE };
	if (rt_die_type(&f->die, &die)) {
		rt_type_spell(s->dwarf, &die, &type);
		v->type = type.type;
	}
	v->file = rt_die_file(s->dwarf, &f->die, DW_AT_decl_file);
	if (rt_die_number(&f->die, DW_AT_decl_line, &line) && line <= UINT32_MAX)
		v->line = line;
	rt_vec_clear(&s->ranges);
	if (dwarf_attr_integrate(&f->die, DW_AT_const_value, &attr)) {
		v->where = RT_WHERE_CONSTANT;
		v->text = constant(s, &attr);
	} else if (!f->missing && dwarf_attr_integrate(&f->die, DW_AT_location, &attr)) {
		return locate(s, &attr, v);
	} else if (dwarf_hasattr_integrate(&f->die, DW_AT_declaration)) {
		v->where = RT_WHERE_DECLARED;
	}
	return NULL;
}

static bool is_shadowed(struct search *s, size_t index, const char *name)
{
	const struct found *f = &s->list.data[index];

	for (size_t i = 0; i < s->list.len; i++) {
		struct found *other = &s->list.data[i];
		const char *its = other->depth > f->depth || (f->external && !other->external)
					  ? rt_die_string(&other->die, DW_AT_name)
					  : NULL;

		if (its && !other->external && !strcmp(its, name))
			return true;
	}
	return false;
}

static struct rt_error *tell(struct search *s, bool (*visit)(const struct rt_variable *v, void *arg), void *arg)
{
	for (size_t i = 0; i < s->list.len; i++) {
		struct rt_variable v;

		RT_TRY(describe(s, &s->list.data[i], &v));
		if (!v.name)
			return rt_error_nomem();
		v.shadowed = is_shadowed(s, i, v.name);
		if (!visit(&v, arg))
			break;
	}
	return NULL;
}

struct rt_error *rt_dwarf_variables(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr,
				    bool externs, bool (*visit)(const struct rt_variable *v, void *arg), void *arg,
				    size_t *ret_hidden, struct rt_elfaddr *ret_prologue)
{
	struct search s = { .dwarf = dwarf, .addr = addr.v };
	struct rt_error *err;

	s.unit = &dwarf->units.data[instance->unit];
	s.node = &s.unit->nodes.data[instance->node];
	find_prologue(&s);
	err = collect(&s, &s.node->die, 0, false);
	if (!err)
		err = collect_missing(&s);
	if (!err && externs)
		err = collect(&s, &s.unit->tree, 0, true);
	if (!err)
		err = tell(&s, visit, arg);
	rt_vec_deinit(&s.list);
	rt_vec_deinit(&s.ranges);
	*ret_hidden = s.hidden;
	ret_prologue->v = s.prologue;
	return err;
}

bool rt_dwarf_instance_call(struct rt_dwarf *dwarf, const struct rt_instance *instance, const char **ret_file,
			    uint32_t *ret_line)
{
	struct rt_unit *unit = &dwarf->units.data[instance->unit];
	struct rt_node *node = &unit->nodes.data[instance->node];

	if (!node->inlined)
		return false;
	rt_node_name(dwarf, unit, node);
	*ret_file = node->call_file;
	*ret_line = node->call_line;
	return node->call_file && node->call_line;
}
