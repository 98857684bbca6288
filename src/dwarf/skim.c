/* SPDX-License-Identifier: GPL-2.0-only */
#include "dwarf/skim.h"

#include <dwarf.h>
#include <string.h>

enum {
	ABBREVS_MAX = 1 << 20,    /* abbreviations of one table */
	FORMS_MAX = 1 << 22,      /* attributes of all of them */
	DEPTH_MAX = 128,          /* nesting of DIEs that is followed */
	DECLARED_MAX = 64,        /* declarations of a name in one unit */
	VARIABLE = UINT16_MAX,    /* a size */
	LONG_SIZE = VARIABLE - 16 /* that is not added up any more */
};

struct rt_skim_abbrev {
	uint16_t tag;
	uint16_t size;    /* of the attributes in bytes, or VARIABLE */
	uint16_t sibling; /* where DW_AT_sibling is, as DW_FORM_ref4; VARIABLE: nowhere, or not always there */
	bool children, declaration, ignored;
	int interest;          /* of rt_skim_tree() */
	uint32_t forms, count; /* index of skim->forms; attributes */
};

void rt_skim_deinit(struct rt_skim *skim)
{
	rt_vec_deinit(&skim->abbrevs);
	rt_vec_deinit(&skim->forms);
	rt_vec_deinit(&skim->found);
}

bool rt_skim_open(struct rt_bytes info, struct rt_bytes abbrev, uint64_t at, uint64_t die, struct rt_skim_unit *ret)
{
	struct rt_cursor c = rt_cursor_make(info, false);
	uint64_t length;
	uint32_t word;
	uint16_t version;
	bool wide;

	if (!rt_cursor_skip(&c, at) || !rt_cursor_u32(&c, &word))
		return false;
	length = word;
	wide = word == UINT32_MAX;
	if (wide && !rt_cursor_u64(&c, &length))
		return false;
	if (length > rt_cursor_left(&c))
		return false;
	length += c.pos - at;
	if (!rt_cursor_u16(&c, &version) || version < 2 || version > 5)
		return false;
	/* version 5 has the kind and the size of addresses before the offset */
	if (version >= 5 && (!rt_cursor_skip(&c, 1) || !rt_cursor_u8(&c, &ret->address_size)))
		return false;
	if (wide && !rt_cursor_u64(&c, &ret->abbrev_offset))
		return false;
	if (!wide) {
		if (!rt_cursor_u32(&c, &word))
			return false;
		ret->abbrev_offset = word;
	}
	if (version < 5 && !rt_cursor_u8(&c, &ret->address_size))
		return false;
	ret->version = (uint8_t)version;
	ret->offset_size = wide ? 8 : 4;
	ret->abbrev = abbrev;
	if (length > UINT32_MAX || die < at || die - at > length)
		return false;
	ret->first = (uint32_t)(die - at);
	return rt_bytes_sub(info, at, length, &ret->bytes);
}

static bool is_name(uint64_t attribute)
{
	return attribute == DW_AT_name || attribute == DW_AT_linkage_name || attribute == DW_AT_MIPS_linkage_name;
}

static bool is_origin(uint64_t attribute)
{
	return attribute == DW_AT_abstract_origin || attribute == DW_AT_specification;
}

/* Whether what the attribute tells is in the unit's own bytes, or in a section of strings by its offset. */
static bool is_own_form(uint64_t form)
{
	switch (form) {
	case DW_FORM_string:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return true;
	default:
		return false;
	}
}

/* What is never a function, nor told of one. */
static bool is_ignored(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_array_type:
	case DW_TAG_base_type:
	case DW_TAG_call_site:
	case DW_TAG_call_site_parameter:
	case DW_TAG_class_type:
	case DW_TAG_compile_unit:
	case DW_TAG_enumeration_type:
	case DW_TAG_enumerator:
	case DW_TAG_formal_parameter:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_call_site_parameter:
	case DW_TAG_label:
	case DW_TAG_lexical_block:
	case DW_TAG_member:
	case DW_TAG_namespace:
	case DW_TAG_structure_type:
	case DW_TAG_typedef:
	case DW_TAG_union_type:
	case DW_TAG_variable:
		return true;
	default:
		return false;
	}
}

/* *ret_attribute and *ret_form 0: the end of the list */
static bool next_attribute(struct rt_cursor *c, uint64_t *ret_attribute, uint64_t *ret_form)
{
	int64_t constant;

	return rt_cursor_uleb(c, ret_attribute) && rt_cursor_uleb(c, ret_form) &&
	       (*ret_form != DW_FORM_implicit_const || rt_cursor_sleb(c, &constant));
}

bool rt_skim_is_own(struct rt_bytes abbrev, uint64_t offset)
{
	struct rt_cursor c = rt_cursor_make(abbrev, false);

	if (!rt_cursor_skip(&c, offset))
		return false;
	for (unsigned i = 0; i < ABBREVS_MAX; i++) {
		uint64_t code, tag, attribute, form;

		if (!rt_cursor_uleb(&c, &code))
			return false;
		if (!code)
			return true;
		if (!rt_cursor_uleb(&c, &tag) || !rt_cursor_skip(&c, 1))
			return false;
		do {
			if (!next_attribute(&c, &attribute, &form))
				return false;
			if ((is_name(attribute) || is_origin(attribute)) && !is_own_form(form))
				return false;
		} while (attribute || form);
	}
	return false;
}

/* Bytes of a form; VARIABLE: that depends on what is there */
static unsigned form_size(const struct rt_skim_unit *unit, unsigned form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return unit->address_size;
	case DW_FORM_ref_addr:
		return unit->version == 2 ? unit->address_size : unit->offset_size;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return unit->offset_size;
	default:
		return VARIABLE;
	}
}

/* false: a form that is not known, or cut */
static bool skip_form(struct rt_cursor *c, const struct rt_skim_unit *unit, unsigned form)
{
	unsigned size = form_size(unit, form);
	const char *text;
	uint64_t number;
	uint32_t word;
	uint16_t half;
	uint8_t byte;

	if (size != VARIABLE)
		return rt_cursor_skip(c, size);
	switch (form) {
	case DW_FORM_string:
		return rt_cursor_string(c, &text);
	case DW_FORM_block1:
		return rt_cursor_u8(c, &byte) && rt_cursor_skip(c, byte);
	case DW_FORM_block2:
		return rt_cursor_u16(c, &half) && rt_cursor_skip(c, half);
	case DW_FORM_block4:
		return rt_cursor_u32(c, &word) && rt_cursor_skip(c, word);
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return rt_cursor_uleb(c, &number) && rt_cursor_skip(c, number);
	case DW_FORM_sdata: {
		int64_t ignored;

		return rt_cursor_sleb(c, &ignored);
	}
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return rt_cursor_uleb(c, &number);
	default:
		return false;
	}
}

static bool add_attribute(struct rt_skim *skim, const struct rt_skim_unit *unit, struct rt_skim_abbrev *abbrev,
			  uint64_t attribute, uint64_t form)
{
	unsigned size;

	if (attribute > UINT16_MAX || form > UINT16_MAX || skim->forms.len + 2 > FORMS_MAX ||
	    !rt_vec_push(&skim->forms, (uint16_t)attribute) || !rt_vec_push(&skim->forms, (uint16_t)form))
		return false;
	abbrev->count++;
	if (is_origin(attribute) && form != DW_FORM_ref4)
		skim->has_other_refs = true;
	/* what is not always true is no declaration here: the unit is read for nothing */
	if (attribute == DW_AT_declaration && form == DW_FORM_flag_present)
		abbrev->declaration = true;
	if (attribute == DW_AT_sibling && form == DW_FORM_ref4)
		abbrev->sibling = abbrev->size;
	size = form_size(unit, (unsigned)form);
	abbrev->size = size == VARIABLE || abbrev->size >= LONG_SIZE ? VARIABLE : (uint16_t)(abbrev->size + size);
	return true;
}

/* false: damaged, or its numbers are not 1, 2, 3 and so on as compilers have them */
static bool read_abbrevs(struct rt_skim *skim, const struct rt_skim_unit *unit)
{
	struct rt_cursor c = rt_cursor_make(unit->abbrev, false);

	rt_vec_clear(&skim->abbrevs);
	rt_vec_clear(&skim->forms);
	skim->has_other_refs = false;
	if (!rt_cursor_skip(&c, unit->abbrev_offset))
		return false;
	while (skim->abbrevs.len < ABBREVS_MAX) {
		struct rt_skim_abbrev abbrev = { .sibling = VARIABLE, .forms = (uint32_t)skim->forms.len };
		uint64_t code, tag, attribute, form;
		uint8_t children;

		if (!rt_cursor_uleb(&c, &code))
			return false;
		if (!code)
			return true;
		if (code != skim->abbrevs.len + 1 || !rt_cursor_uleb(&c, &tag) || tag > UINT16_MAX ||
		    !rt_cursor_u8(&c, &children))
			return false;
		abbrev.tag = (uint16_t)tag;
		abbrev.ignored = is_ignored(tag);
		abbrev.children = children;
		for (;;) {
			if (!next_attribute(&c, &attribute, &form))
				return false;
			if (!attribute && !form)
				break;
			if (!add_attribute(skim, unit, &abbrev, attribute, form))
				return false;
		}
		if (!rt_vec_push(&skim->abbrevs, abbrev))
			return false;
	}
	return false;
}

/* Where to go on when nothing of interest is among the DIE's children; UINT32_MAX: not known */
static uint32_t sibling_of(const struct rt_cursor *at_attributes, const struct rt_skim_unit *unit,
			   const struct rt_skim_abbrev *abbrev)
{
	struct rt_cursor c = *at_attributes;
	uint32_t at;

	if (!abbrev->children || abbrev->sibling == VARIABLE || !rt_cursor_skip(&c, abbrev->sibling) ||
	    !rt_cursor_u32(&c, &at) || at <= at_attributes->pos || at > unit->bytes.size)
		return UINT32_MAX;
	return at;
}

struct hop {
	struct rt_skim *skim;
	const struct rt_skim_unit *unit;
	const struct rt_places *places;
	struct rt_places *declared;
	struct rt_cursor c;
	size_t next; /* index of the first place that is not behind the cursor yet */
};

static uint32_t next_place(const struct hop *h)
{
	return h->next < h->places->v.len ? h->places->v.data[h->next] : UINT32_MAX;
}

static void pass(struct hop *h)
{
	while (next_place(h) < h->c.pos)
		h->next++;
}

enum found { NOTHING, FUNCTION, DAMAGED };

/* The DIE at start, whose attributes the cursor stands at: one of the places may be in them. */
static enum found look(struct hop *h, const struct rt_skim_abbrev *abbrev, uint32_t start)
{
	const uint16_t *forms = h->skim->forms.data + abbrev->forms;
	bool named = false, is_instance = false;

	for (uint32_t i = 0; i < abbrev->count; i++) {
		unsigned attribute = forms[2 * i], form = forms[2 * i + 1];

		pass(h);
		if (next_place(h) == h->c.pos) {
			named |= is_name(attribute);
			is_instance |= is_origin(attribute);
		}
		if (!skip_form(&h->c, h->unit, form))
			return DAMAGED;
	}
	pass(h);
	if (abbrev->ignored || !(named || is_instance))
		return NOTHING;
	if (is_instance || !abbrev->declaration)
		return FUNCTION;
	return h->declared->v.len < DECLARED_MAX && rt_vec_push(&h->declared->v, start) ? NOTHING : DAMAGED;
}

/* One DIE further, or more. */
static enum found step(struct hop *h)
{
	uint32_t start = (uint32_t)h->c.pos, sibling;
	const struct rt_skim_abbrev *abbrev;
	enum found found = NOTHING;
	size_t attributes;
	uint64_t code;

	if (!rt_cursor_uleb(&h->c, &code))
		return DAMAGED;
	/* the end of somebody's children */
	if (!code)
		return NOTHING;
	if (code > h->skim->abbrevs.len)
		return DAMAGED;
	abbrev = &h->skim->abbrevs.data[code - 1];
	attributes = h->c.pos;
	sibling = sibling_of(&h->c, h->unit, abbrev);
	if (sibling != UINT32_MAX && next_place(h) >= sibling) {
		h->c.pos = sibling;
		return NOTHING;
	}
	if (abbrev->size != VARIABLE && next_place(h) >= attributes + abbrev->size)
		found = rt_cursor_skip(&h->c, abbrev->size) ? NOTHING : DAMAGED;
	else
		found = look(h, abbrev, start);
	if (found == NOTHING && sibling != UINT32_MAX && next_place(h) >= sibling)
		h->c.pos = sibling;
	return found;
}

bool rt_skim_has_function(struct rt_skim *skim, const struct rt_skim_unit *unit, const struct rt_places *places,
			  struct rt_places *declared)
{
	struct hop h = { .skim = skim, .unit = unit, .places = places, .declared = declared };

	if (unit->bytes.size > UINT32_MAX || !read_abbrevs(skim, unit))
		return true;
	h.c = rt_cursor_make(unit->bytes, false);
	if (!rt_cursor_skip(&h.c, unit->first))
		return true;
	for (pass(&h); next_place(&h) != UINT32_MAX && rt_cursor_left(&h.c); pass(&h))
		if (step(&h) != NOTHING)
			return true;
	return false;
}

/* One unit's tree. */
struct tree {
	struct rt_skim *skim;
	const struct rt_skim_unit *unit;
	struct rt_cursor c;
	unsigned depth;
	/* of each DIE around the cursor: where it ends as it says (UINT32_MAX: it does not), and what it is in the list
	 */
	uint32_t ends[DEPTH_MAX + 1], parents[DEPTH_MAX + 1];
};

/* *ret NULL: the end of somebody's children */
static bool next_abbrev(struct tree *t, const struct rt_skim_abbrev **ret)
{
	uint64_t code;

	if (!rt_cursor_uleb(&t->c, &code) || code > t->skim->abbrevs.len)
		return false;
	*ret = code ? &t->skim->abbrevs.data[code - 1] : NULL;
	return true;
}

static bool skip_attributes(struct tree *t, const struct rt_skim_abbrev *abbrev)
{
	const uint16_t *forms;

	if (abbrev->size != VARIABLE)
		return rt_cursor_skip(&t->c, abbrev->size);
	forms = t->skim->forms.data + abbrev->forms;
	for (uint32_t i = 0; i < abbrev->count; i++)
		if (!skip_form(&t->c, t->unit, forms[2 * i + 1]))
			return false;
	return true;
}

/* The rest of a DIE, with its children. A sibling that leads elsewhere than they end is damage that nobody sees. */
static bool skip_die(struct tree *t, const struct rt_skim_abbrev *abbrev)
{
	for (size_t depth = 0;;) {
		uint32_t sibling = sibling_of(&t->c, t->unit, abbrev);

		if (sibling != UINT32_MAX) {
			t->c.pos = sibling;
		} else {
			if ((abbrev->children && abbrev->sibling != VARIABLE) || !skip_attributes(t, abbrev))
				return false;
			depth += abbrev->children;
		}
		while (depth) {
			if (!next_abbrev(t, &abbrev))
				return false;
			if (abbrev)
				break;
			depth--;
		}
		if (!depth)
			return true;
	}
}

static bool enter(struct tree *t, const struct rt_skim_abbrev *abbrev, uint32_t start)
{
	uint32_t sibling = sibling_of(&t->c, t->unit, abbrev), parent = t->parents[t->depth];

	if (abbrev->interest > 0) {
		struct rt_skim_die die = { .behind = start - t->unit->first,
					   .parent = parent,
					   .what = abbrev->interest };

		if (!rt_vec_push(&t->skim->found, die))
			return false;
		parent = (uint32_t)t->skim->found.len;
	}
	if (!skip_attributes(t, abbrev))
		return false;
	if (!abbrev->children)
		return true;
	if (t->depth == DEPTH_MAX || (abbrev->sibling != VARIABLE && sibling == UINT32_MAX))
		return false;
	t->depth++;
	t->ends[t->depth] = sibling;
	t->parents[t->depth] = parent;
	return true;
}

static bool leave(struct tree *t)
{
	uint32_t end = t->ends[t->depth--];

	return end == UINT32_MAX || end == t->c.pos;
}

bool rt_skim_tree(struct rt_skim *skim, const struct rt_skim_unit *unit, int (*interest)(unsigned tag, bool c_only),
		  bool c_only)
{
	struct tree t = { .skim = skim, .unit = unit, .c = rt_cursor_make(unit->bytes, false) };
	const struct rt_skim_abbrev *abbrev;

	rt_vec_clear(&skim->found);
	if (!read_abbrevs(skim, unit) || !rt_cursor_skip(&t.c, unit->first))
		return false;
	for (size_t i = 0; i < skim->abbrevs.len; i++)
		skim->abbrevs.data[i].interest = interest(skim->abbrevs.data[i].tag, c_only);
	if (!next_abbrev(&t, &abbrev) || !abbrev || !skip_attributes(&t, abbrev))
		return false;
	if (!abbrev->children)
		return true;
	while (rt_cursor_left(&t.c)) {
		uint32_t start = (uint32_t)t.c.pos;

		if (!next_abbrev(&t, &abbrev))
			return false;
		if (!abbrev && !t.depth)
			return true;
		if (abbrev ? (abbrev->interest < 0 ? !skip_die(&t, abbrev) : !enter(&t, abbrev, start)) : !leave(&t))
			return false;
	}
	return t.depth == 0;
}
