/* SPDX-License-Identifier: GPL-2.0-only */
/* Variables by name at one instruction, and the way through members and pointers from them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dwarf/location.h"
#include "dwarf/types.h"

enum { RANGES_TOLD = 3, RANGES_MAX = 4096, DIMENSIONS_MAX = 8, POINTER_BYTES = 8 };

/* Where a walk stands: the value, and its type as it was declared. */
struct stand {
	struct rt_dwarf *dwarf;
	struct rt_location at;
	Dwarf_Die type;
	bool has_type;       /* false: void */
	unsigned dimension;  /* of the array that type is: so many indexes were taken */
	Dwarf_Die bit_field; /* the member, when has_bits */
	bool has_bits;
	const char *name;
};

__attribute__((format(printf, 2, 3))) static const char *say(struct rt_dwarf *dwarf, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	const char *kept;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	kept = n < 0 ? NULL : rt_dwarf_text(dwarf, text);
	if (n < 0)
		text = NULL;
	return kept ? kept : "out of memory";
}

static struct rt_node *node_of(const struct rt_dwarf *dwarf, const struct rt_instance *instance)
{
	return &dwarf->units.data[instance->unit].nodes.data[instance->node];
}

static bool is_variable(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_formal_parameter || tag == DW_TAG_variable;
}

/* A block whose code holds addr; an abstract one has none, and is looked into, too. */
static bool block_holds(Dwarf_Die *die, uint64_t addr)
{
	return dwarf_tag(die) == DW_TAG_lexical_block &&
	       (dwarf_haspc(die, addr) == 1 ||
		(!dwarf_hasattr(die, DW_AT_ranges) && !dwarf_hasattr(die, DW_AT_low_pc)));
}

/* The variable of this name in the scope or the blocks of it that hold addr: the innermost. */
static bool find_in(Dwarf_Die *scope, uint64_t addr, const char *name, unsigned level, Dwarf_Die *ret)
{
	bool found = false;
	Dwarf_Die child;

	if (level > RT_DWARF_DEPTH_MAX || dwarf_child(scope, &child) != 0)
		return false;
	do {
		const char *own;

		if (block_holds(&child, addr) && find_in(&child, addr, name, level + 1, ret))
			return true;
		if (found || !is_variable(&child))
			continue;
		own = rt_die_string(&child, DW_AT_name);
		if (own && !strcmp(own, name)) {
			*ret = child;
			found = true;
		}
	} while (rt_die_next(&child));
	return found;
}

/* Of a unit itself, with a place. */
static bool find_global(struct rt_unit *unit, const char *name, bool external, Dwarf_Die *ret)
{
	Dwarf_Die child;

	if (dwarf_child(&unit->tree, &child) != 0)
		return false;
	do {
		const char *own;
		Dwarf_Attribute attr;

		if (dwarf_tag(&child) != DW_TAG_variable)
			continue;
		own = rt_die_string(&child, DW_AT_name);
		if (!own || strcmp(own, name) != 0 || dwarf_hasattr(&child, DW_AT_declaration))
			continue;
		if ((!dwarf_attr(&child, DW_AT_location, &attr) && !dwarf_hasattr(&child, DW_AT_const_value)) ||
		    (external && !dwarf_attr_integrate(&child, DW_AT_external, &attr)))
			continue;
		*ret = child;
		return true;
	} while (rt_die_next(&child));
	return false;
}

/* "it is known at 0x1170-0x1190 (a.c:12), ..." */
static const char *known_where(struct rt_dwarf *dwarf, Dwarf_Attribute *attr)
{
	char text[256] = "";
	Dwarf_Addr base, lo, hi;
	Dwarf_Op *ops;
	size_t nops, len = 0;
	ptrdiff_t at = 0;
	unsigned told = 0;

	for (unsigned i = 0; i < RANGES_MAX && told < RANGES_TOLD; i++) {
		struct rt_source_line line = { 0 };
		int n;

		at = dwarf_getlocations(attr, at, &base, &lo, &hi, &ops, &nops);
		if (at <= 0)
			break;
		if (lo >= hi || !nops)
			continue;
		(void)rt_dwarf_line(dwarf, (struct rt_elfaddr){ lo }, &line);
		n = snprintf(text + len, sizeof(text) - len, "%s0x%llx-0x%llx (line %u)", told ? ", " : "",
			     (unsigned long long)lo, (unsigned long long)hi, line.line);
		if (n < 0 || (size_t)n >= sizeof(text) - len)
			break;
		len += (size_t)n;
		told++;
	}
	return told ? say(dwarf, "not known here; it is known at %s", text) : "optimised away";
}

static const char *constant(Dwarf_Die *die, struct rt_location *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Sword number;
	Dwarf_Word word;
	Dwarf_Block block;

	*ret = (struct rt_location){ .base = RT_LOCATION_NUMBER, .is_value = true };
	if (!dwarf_attr_integrate(die, DW_AT_const_value, &attr))
		return "optimised away (no location)";
	switch (dwarf_whatform(&attr)) {
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
		if (dwarf_formsdata(&attr, &number) != 0)
			break;
		ret->number = (uint64_t)number;
		return NULL;
	/* compilers write what is negative as sdata, or in all bytes of its type */
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
		if (dwarf_formudata(&attr, &word) != 0)
			break;
		ret->number = word;
		return NULL;
	default:
		if (dwarf_formblock(&attr, &block) != 0 || block.length > sizeof(ret->number))
			break;
		memcpy(&ret->number, block.data, block.length);
		return NULL;
	}
	return "a constant that is no number (DW_AT_const_value)";
}

static bool is_list(Dwarf_Attribute *attr)
{
	switch (dwarf_whatform(attr)) {
	case DW_FORM_exprloc:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		return false;
	default:
		return true;
	}
}

static const char *locate(struct rt_dwarf *dwarf, const struct rt_instance *instance, uint64_t addr, Dwarf_Die *die,
			  struct rt_location *ret)
{
	struct rt_expression e = { .dwarf = dwarf, .addr = addr };
	Dwarf_Attribute attr;
	const char *why;
	Dwarf_Op *ops;
	size_t nops;

	if (!dwarf_attr(die, DW_AT_location, &attr))
		return constant(die, ret);
	if (dwarf_getlocation_addr(&attr, addr, &ops, &nops, 1) != 1 || !nops)
		return known_where(dwarf, &attr);
	e.attr = &attr;
	if (instance) {
		e.unit = &dwarf->units.data[instance->unit];
		e.node = node_of(dwarf, instance);
	}
	why = rt_location_evaluate(&e, ops, nops, ret);
	if (is_list(&attr))
		ret->in_frame = false;
	return why;
}

static const char *find_variable(struct rt_dwarf *dwarf, const struct rt_instance *instance, uint64_t addr,
				 const char *name, Dwarf_Die *ret)
{
	struct rt_node *node = instance ? node_of(dwarf, instance) : NULL;

	if (node && find_in(&node->die, addr, name, 0, ret))
		return NULL;
	/* what an instance does not say, the function may: it is there, and nowhere in the machine */
	if (node && find_in(&dwarf->fns.data[node->fn].die, addr, name, 0, ret))
		return dwarf_hasattr(ret, DW_AT_const_value) ? NULL : "optimised away (not in this instance)";
	if (instance && find_global(&dwarf->units.data[instance->unit], name, false, ret))
		return NULL;
	for (size_t i = 0; i < dwarf->units.len; i++)
		if (dwarf->units.data[i].code && find_global(&dwarf->units.data[i], name, true, ret))
			return NULL;
	return "there is no such variable";
}

/* The type without names and qualifiers for it; false: void. */
static bool bare(const struct stand *s, Dwarf_Die *ret)
{
	Dwarf_Die type = s->type;

	return s->has_type && rt_type_peel(&type, ret);
}

static bool is_reference(int tag)
{
	return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

static const char *follow(struct stand *s, Dwarf_Die *pointer)
{
	s->has_type = rt_die_type(pointer, &s->type);
	s->dimension = 0;
	if (s->at.is_value) {
		s->at.is_value = false;
		return NULL;
	}
	if (s->at.deref_count == RT_LOCATION_DEREFS_MAX)
		return "behind too many pointers";
	s->at.derefs[s->at.deref_count++] = s->at.offset;
	s->at.offset = 0;
	return NULL;
}

static void move(struct stand *s, uint64_t bytes)
{
	if (s->at.base == RT_LOCATION_REG || s->at.deref_count)
		s->at.offset = (int64_t)((uint64_t)s->at.offset + bytes);
	else
		s->at.number += bytes;
}

static const char *step_member(struct stand *s, const struct rt_trail *step)
{
	Dwarf_Die type, structure, member;
	uint64_t offset;
	const char *why;
	int tag;

	if (s->has_bits || !bare(s, &type))
		return say(s->dwarf, "%s has no members", s->name);
	tag = dwarf_tag(&type);
	if (tag == DW_TAG_pointer_type || is_reference(tag)) {
		if (step->kind == RT_TRAIL_DOT && !is_reference(tag))
			return say(s->dwarf, "%s is a pointer: write %s->%s", s->name, s->name, step->name);
		why = follow(s, &type);
		if (why)
			return why;
		if (!bare(s, &type))
			return say(s->dwarf, "%s points to nothing that is known (void *)", s->name);
	} else if (step->kind == RT_TRAIL_ARROW) {
		return say(s->dwarf, "%s is no pointer: write %s.%s", s->name, s->name, step->name);
	}
	if (!rt_type_struct(s->dwarf, &type, &structure))
		return say(s->dwarf, "%s is no struct, or one that is nowhere defined", s->name);
	if (!rt_member_find(s->dwarf, &structure, step->name, &offset, &member))
		return say(s->dwarf, "there is no member %s in it", step->name);
	if (s->at.is_value && offset)
		return "a struct in a register: only its first member can be told";
	move(s, offset);
	s->has_type = rt_die_type(&member, &s->type);
	s->has_bits = dwarf_hasattr(&member, DW_AT_bit_size);
	s->bit_field = member;
	s->dimension = 0;
	s->name = step->name;
	return NULL;
}

/* Elements of each dimension; 0: not told. */
static unsigned dimensions(Dwarf_Die *array, uint64_t counts[DIMENSIONS_MAX])
{
	unsigned n = 0;
	Dwarf_Die child;

	if (dwarf_child(array, &child) != 0)
		return 0;
	do {
		uint64_t v;

		if (dwarf_tag(&child) != DW_TAG_subrange_type || n == DIMENSIONS_MAX)
			continue;
		counts[n] = 0;
		if (rt_die_number(&child, DW_AT_count, &v))
			counts[n] = v;
		else if (rt_die_number(&child, DW_AT_upper_bound, &v))
			counts[n] = v + 1;
		n++;
	} while (rt_die_next(&child));
	return n;
}

static bool size_of(struct rt_dwarf *dwarf, Dwarf_Die *type, uint64_t *ret)
{
	Dwarf_Die structure;
	Dwarf_Word size;

	if (rt_type_struct(dwarf, type, &structure))
		type = &structure;
	if (dwarf_aggregate_size(type, &size) != 0)
		return false;
	*ret = size;
	return true;
}

static const char *step_index(struct stand *s, const struct rt_trail *step)
{
	uint64_t counts[DIMENSIONS_MAX], size;
	Dwarf_Die type, element;
	const char *why;
	unsigned n;

	if (s->has_bits || !bare(s, &type))
		return say(s->dwarf, "%s is neither array nor pointer", s->name);
	if (dwarf_tag(&type) == DW_TAG_pointer_type) {
		why = follow(s, &type);
		if (why)
			return why;
		if (!s->has_type || !size_of(s->dwarf, &s->type, &size))
			return say(s->dwarf, "the size of what %s points to is not known", s->name);
		move(s, (uint64_t)step->index * size);
		return NULL;
	}
	if (dwarf_tag(&type) != DW_TAG_array_type)
		return say(s->dwarf, "%s is neither array nor pointer", s->name);
	if (s->at.is_value)
		return "an array in a register";
	n = dimensions(&type, counts);
	if (!n || dwarf_hasattr(&type, DW_AT_byte_stride) || dwarf_hasattr(&type, DW_AT_GNU_vector) ||
	    !rt_die_type(&type, &element) || !size_of(s->dwarf, &element, &size))
		return say(s->dwarf, "the size of the elements of %s is not known", s->name);
	/* arrays of 0 and 1 at the end of a struct stand for any number */
	if (step->index < 0 || (counts[s->dimension] > 1 && (uint64_t)step->index >= counts[s->dimension]))
		return say(s->dwarf, "%s has no element %lld", s->name, (long long)step->index);
	for (unsigned i = s->dimension + 1; i < n; i++)
		size *= counts[i];
	move(s, (uint64_t)step->index * size);
	if (++s->dimension < n)
		return NULL;
	s->type = element;
	s->dimension = 0;
	return NULL;
}

static bool is_char(Dwarf_Die *type)
{
	Dwarf_Die base;
	uint64_t encoding, size;

	return rt_type_peel(type, &base) && dwarf_tag(&base) == DW_TAG_base_type &&
	       rt_die_number(&base, DW_AT_encoding, &encoding) && rt_die_number(&base, DW_AT_byte_size, &size) &&
	       size == 1 &&
	       (encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char || encoding == DW_ATE_UTF);
}

static enum rt_datum_kind base_kind(Dwarf_Die *type)
{
	uint64_t encoding = 0;

	(void)rt_die_number(type, DW_AT_encoding, &encoding);
	switch (encoding) {
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		return RT_DATUM_SIGNED;
	case DW_ATE_boolean:
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
	case DW_ATE_address:
		return RT_DATUM_UNSIGNED;
	case DW_ATE_float:
	case DW_ATE_complex_float:
	case DW_ATE_imaginary_float:
	case DW_ATE_decimal_float:
		return RT_DATUM_FLOAT;
	default:
		return RT_DATUM_OTHER;
	}
}

static enum rt_datum_kind kind_of(Dwarf_Die *type)
{
	Dwarf_Die under, base;

	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		return base_kind(type);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return RT_DATUM_POINTER;
	case DW_TAG_enumeration_type:
		if (rt_die_type(type, &under) && rt_type_peel(&under, &base))
			return base_kind(&base);
		return RT_DATUM_UNSIGNED;
	case DW_TAG_array_type:
		return RT_DATUM_ARRAY;
	default:
		return rt_type_is_aggregate(type) ? RT_DATUM_STRUCT : RT_DATUM_OTHER;
	}
}

static void describe(const struct stand *s, struct rt_datum *ret)
{
	struct rt_param spelled = { 0 };
	Dwarf_Die declared = s->type, type, target;

	ret->kind = RT_DATUM_OTHER;
	if (!bare(s, &type))
		return;
	rt_type_spell(s->dwarf, &declared, &spelled);
	ret->type = spelled.type;
	ret->kind = kind_of(&type);
	if (!size_of(s->dwarf, &type, &ret->size))
		ret->size = ret->kind == RT_DATUM_POINTER ? POINTER_BYTES : 0;
	ret->is_text = (ret->kind == RT_DATUM_POINTER || ret->kind == RT_DATUM_ARRAY) && rt_die_type(&type, &target) &&
		       is_char(&target);
}

/* Bits [shift, shift + bits) of size bytes that begin at a multiple of size. */
static const char *set_bits(struct stand *s, struct rt_datum *v)
{
	uint64_t bits, first, place, unit = v->size, within;

	if (!rt_die_number(&s->bit_field, DW_AT_bit_size, &bits) || !bits || bits > 64)
		return "a bit field whose place is not known";
	if (rt_die_number(&s->bit_field, DW_AT_data_bit_offset, &first)) {
		/* s->at is already at the byte of its first bit */
		if (!unit || unit > 8 || (unit & (unit - 1)))
			return "a bit field whose place is not known";
		within = (first / 8) % unit;
		move(s, 0 - within);
		first = first % 8 + within * 8;
	} else if (rt_die_number(&s->bit_field, DW_AT_bit_offset, &place)) {
		if (rt_die_number(&s->bit_field, DW_AT_byte_size, &unit) && (!unit || unit > 8))
			return "a bit field whose place is not known";
		/* DWARF 3: from the highest bit of the unit on */
		first = unit * 8 - place - bits;
	} else {
		first = 0;
	}
	if (bits + first > unit * 8)
		return "a bit field across two words";
	v->bits = (uint32_t)bits;
	v->shift = (uint32_t)first;
	v->size = unit;
	return NULL;
}

const char *rt_dwarf_datum(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr,
			   const char *name, const struct rt_trail *path, size_t count, struct rt_datum *ret)
{
	struct rt_datum v = { .name = name };
	struct stand s = { .dwarf = dwarf, .name = name };
	const char *why;
	Dwarf_Die die;

	if (!dwarf->dw)
		return "there is no debug information";
	why = find_variable(dwarf, instance, addr.v, name, &die);
	if (why)
		return why;
	why = locate(dwarf, instance, addr.v, &die, &s.at);
	if (why)
		return why;
	s.has_type = rt_die_type(&die, &s.type);
	v.is_param = dwarf_tag(&die) == DW_TAG_formal_parameter;
	v.variable = s.at;
	for (size_t i = 0; i < count && !why; i++)
		why = path[i].kind == RT_TRAIL_INDEX ? step_index(&s, &path[i]) : step_member(&s, &path[i]);
	if (why)
		return why;
	describe(&s, &v);
	if (s.has_bits)
		why = set_bits(&s, &v);
	if (why)
		return why;
	v.where = s.at;
	v.name = s.name;
	*ret = v;
	return NULL;
}

const char *rt_dwarf_declared(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr,
			      const char *name)
{
	struct rt_datum v = { .name = name };
	struct stand s = { .dwarf = dwarf, .name = name };
	Dwarf_Die die;

	if (!dwarf->dw || find_variable(dwarf, instance, addr.v, name, &die) || !rt_die_type(&die, &s.type))
		return NULL;
	s.has_type = true;
	describe(&s, &v);
	return v.type;
}

bool rt_dwarf_declared_structure(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr,
				 const char *name)
{
	Dwarf_Die die, type, pointer, target, structure;

	return dwarf->dw && !find_variable(dwarf, instance, addr.v, name, &die) && rt_die_type(&die, &type) &&
	       rt_type_peel(&type, &pointer) && dwarf_tag(&pointer) == DW_TAG_pointer_type &&
	       rt_die_type(&pointer, &target) && rt_type_peel(&target, &structure) && rt_type_is_aggregate(&structure);
}

static void each_name(Dwarf_Die *scope, uint64_t addr, bool variables, unsigned level,
		      void (*visit)(const char *name, void *arg), void *arg)
{
	Dwarf_Die child;

	if (level > RT_DWARF_DEPTH_MAX || dwarf_child(scope, &child) != 0)
		return;
	do {
		const char *name;

		if (variables && block_holds(&child, addr))
			each_name(&child, addr, variables, level + 1, visit, arg);
		if (!is_variable(&child) || (!variables && dwarf_tag(&child) != DW_TAG_formal_parameter))
			continue;
		name = rt_die_string(&child, DW_AT_name);
		if (name)
			visit(name, arg);
	} while (rt_die_next(&child));
}

void rt_dwarf_names(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr, bool variables,
		    void (*visit)(const char *name, void *arg), void *arg)
{
	struct rt_node *node = node_of(dwarf, instance);

	each_name(&node->die, addr.v, variables, 0, visit, arg);
}

bool rt_dwarf_returns(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_datum *ret)
{
	struct rt_datum v = { .name = "retval" };
	struct stand s = { .dwarf = dwarf };
	Dwarf_Die die = node_of(dwarf, instance)->die;

	s.has_type = rt_die_type(&die, &s.type);
	if (!s.has_type)
		return false;
	describe(&s, &v);
	*ret = v;
	return true;
}
