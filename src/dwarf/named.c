/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which units may have a function of a given name, without reading their trees.
 *
 * A DIE tells its name either as an offset into a section of strings or as the text itself, and both are bytes of its
 * unit. So a unit where neither is found, at whatever place, has no such DIE. The bytes may be there by chance: then
 * the unit is walked for nothing. A unit whose names are told in any other way, or by DIEs of other units, is not
 * judged.
 */
#include <gelf.h>
#include <string.h>

#include "dwarf/unit.h"

#define RT_ABBREVS_MAX (1u << 20)      /* abbreviations of one table */
#define RT_NAME_OFFSETS_MAX (1u << 16) /* strings that end in the name */
#define RT_NAME_FEW 8                  /* offsets that are compared one by one */

typedef uint32_t lanes __attribute__((vector_size(16)));

struct name_search {
	struct rt_bytes info, abbrev;
	const char *name;
	size_t size;                /* of name, with its end */
	RT_VEC(uint32_t) offsets;   /* of the name in sections of strings */
	uint64_t fits[1 << 10];     /* a bit for each hash of an offset */
	struct rt_map open_abbrevs; /* offset of a table -> 1: its names are all in its own unit, 2: not */
};

static uint32_t word_at(const unsigned char *data)
{
	uint32_t word;

	memcpy(&word, data, sizeof(word));
	return word;
}

static uint32_t hash(uint32_t word)
{
	return (word ^ word >> 16) & 0xffff;
}

/* Linkers let a string be the end of another: each place counts. false: too many, or no memory. */
static bool find_offsets(struct name_search *s, struct rt_bytes strings)
{
	const unsigned char *begin = strings.data, *at = begin, *end = begin + strings.size;

	while ((at = memmem(at, (size_t)(end - at), s->name, s->size)) != NULL) {
		uint64_t offset = (uint64_t)(at++ - begin);

		if (offset > UINT32_MAX || s->offsets.len >= RT_NAME_OFFSETS_MAX ||
		    !rt_vec_push(&s->offsets, (uint32_t)offset))
			return false;
		s->fits[hash((uint32_t)offset) / 64] |= UINT64_C(1) << hash((uint32_t)offset) % 64;
	}
	return true;
}

/* The first 4 bytes of the text are one more word to look for; a shorter text is left to find_short(). */
static bool is_hit(const struct name_search *s, const unsigned char *at, size_t left)
{
	uint32_t word;

	if (left < sizeof(word))
		return false;
	word = word_at(at);
	if (left >= s->size && !memcmp(at, s->name, s->size))
		return true;
	if (!(s->fits[hash(word) / 64] >> hash(word) % 64 & 1))
		return false;
	for (size_t i = 0; i < s->offsets.len; i++)
		if (s->offsets.data[i] == word)
			return true;
	return false;
}

static bool find_one_by_one(const struct name_search *s, const unsigned char *at, const unsigned char *end)
{
	for (; at < end; at++)
		if (is_hit(s, at, (size_t)(end - at)))
			return true;
	return false;
}

/* 16 places in one go: most of the time of a search in a large file is spent here. */
static bool find_few(const struct name_search *s, const unsigned char *at, const unsigned char *end)
{
	lanes wanted[RT_NAME_FEW + 1];
	size_t count = s->offsets.len;

	for (size_t i = 0; i < count; i++)
		wanted[i] = (lanes){ 0 } + s->offsets.data[i];
	if (s->size >= sizeof(uint32_t))
		wanted[count++] = (lanes){ 0 } + word_at((const unsigned char *)s->name);
	for (; end - at >= 19; at += 16) {
		lanes any = { 0 };
		uint64_t halves[2];

		for (unsigned shift = 0; shift < 4; shift++) {
			lanes have;

			memcpy(&have, at + shift, sizeof(have));
			for (size_t i = 0; i < count; i++)
				any |= (lanes)(have == wanted[i]);
		}
		memcpy(halves, &any, sizeof(halves));
		if (halves[0] | halves[1])
			for (unsigned i = 0; i < 16; i++)
				if (is_hit(s, at + i, (size_t)(end - at - i)))
					return true;
	}
	return find_one_by_one(s, at, end);
}

static bool holds_name(const struct name_search *s, struct rt_bytes unit)
{
	const unsigned char *at = unit.data, *end = at + unit.size;

	if (s->size < sizeof(uint32_t) && memmem(at, unit.size, s->name, s->size))
		return true;
	return s->offsets.len <= RT_NAME_FEW ? find_few(s, at, end) : find_one_by_one(s, at, end);
}

static bool is_naming(uint64_t attribute)
{
	switch (attribute) {
	case DW_AT_name:
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
	case DW_AT_abstract_origin:
	case DW_AT_specification:
		return true;
	default:
		return false;
	}
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

/* false: a name may be elsewhere, or the table is damaged */
static bool read_abbrevs(struct rt_bytes abbrev, uint64_t offset)
{
	struct rt_cursor c = rt_cursor_make(abbrev, false);

	if (!rt_cursor_skip(&c, offset))
		return false;
	for (unsigned i = 0; i < RT_ABBREVS_MAX; i++) {
		uint64_t code, tag, attribute, form;
		int64_t constant;

		if (!rt_cursor_uleb(&c, &code))
			return false;
		if (!code)
			return true;
		if (!rt_cursor_uleb(&c, &tag) || !rt_cursor_skip(&c, 1))
			return false;
		do {
			if (!rt_cursor_uleb(&c, &attribute) || !rt_cursor_uleb(&c, &form))
				return false;
			if (form == DW_FORM_implicit_const && !rt_cursor_sleb(&c, &constant))
				return false;
			if (is_naming(attribute) && !is_own_form(form))
				return false;
		} while (attribute || form);
	}
	return false;
}

/* Where the unit's header and the rest of it are, and where its abbreviations. */
static bool read_header(const struct name_search *s, uint64_t at, struct rt_bytes *ret, uint64_t *ret_abbrev)
{
	struct rt_cursor c = rt_cursor_make(s->info, false);
	uint64_t length, abbrev, start = at;
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
	length += c.pos - start;
	/* version 5 has the kind and the size of addresses before the offset */
	if (!rt_cursor_u16(&c, &version) || (version >= 5 && !rt_cursor_skip(&c, 2)))
		return false;
	if (wide && !rt_cursor_u64(&c, &abbrev))
		return false;
	if (!wide) {
		if (!rt_cursor_u32(&c, &word))
			return false;
		abbrev = word;
	}
	*ret_abbrev = abbrev;
	return rt_bytes_sub(s->info, start, length, ret);
}

static bool may_hold(struct name_search *s, struct rt_unit *unit, uint64_t at)
{
	struct rt_bytes bytes;
	uint64_t abbrev, *slot;

	if (unit->skeleton || !read_header(s, at, &bytes, &abbrev))
		return true;
	slot = rt_map_put(&s->open_abbrevs, rt_key_make(abbrev, 0), NULL);
	if (!slot)
		return true;
	if (!*slot)
		*slot = read_abbrevs(s->abbrev, abbrev) ? 1 : 2;
	return *slot == 2 || holds_name(s, bytes);
}

/* false: units of this file cannot be judged */
static bool prepare(struct rt_dwarf *dwarf, struct name_search *s)
{
	const bool own = dwarf->dw == dwarf->own.dw;
	const struct rt_image *image = own ? dwarf->image : dwarf->image->debug;
	const struct rt_dwarf_source *source = own ? &dwarf->own : &dwarf->companion;
	struct rt_bytes strings;
	GElf_Ehdr head;

	/* what an object file's bytes say is only so with its relocations */
	if (!image->elf || !gelf_getehdr(image->elf, &head) || head.e_type == ET_REL ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	if (!rt_source_section(image, source, ".debug_info", &s->info) ||
	    !rt_source_section(image, source, ".debug_abbrev", &s->abbrev))
		return false;
	if (rt_source_section(image, source, ".debug_str", &strings) && !find_offsets(s, strings))
		return false;
	return !rt_source_section(image, source, ".debug_line_str", &strings) || find_offsets(s, strings);
}

/* A unit that libdw cannot place is walked: its header is where its DIE is, less what lies between. */
static struct rt_error *walk(struct rt_dwarf *dwarf, struct name_search *s)
{
	for (size_t i = 0; i < dwarf->units.len; i++) {
		struct rt_unit *unit = &dwarf->units.data[i];
		Dwarf_Off die = dwarf_dieoffset(&unit->die);

		if (unit->code && !unit->walked && may_hold(s, unit, die - dwarf_cuoffset(&unit->die)))
			RT_TRY(rt_unit_walk(dwarf, unit));
	}
	return NULL;
}

struct rt_error *rt_dwarf_walk_named(struct rt_dwarf *dwarf, const char *name)
{
	struct name_search s = { .name = name, .size = strlen(name) + 1 };
	struct rt_error *err;

	if (dwarf->all_walked)
		return NULL;
	err = prepare(dwarf, &s) ? walk(dwarf, &s) : rt_dwarf_walk_all(dwarf);
	rt_vec_deinit(&s.offsets);
	rt_map_deinit(&s.open_abbrevs);
	return err;
}
