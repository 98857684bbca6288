/* SPDX-License-Identifier: GPL-2.0-only */
/* How a module comes by a function of another: by the relocations that name it. */
#include <elf.h>
#include <string.h>

#include "elf/section.h"

enum { SYMBOL_BYTES = 24, BUDGET = 64 << 20 };

struct search {
	const struct rt_image *image;
	const char *name;
	size_t left; /* bytes that may still be read: tables of a hostile file overlap */
	bool read;   /* there was a table */
	enum rt_import found;
};

/* Whether the symbol has the name; *ret_value: its value, which one of another module has where its stub is its
 * address. */
static bool is_symbol(const struct search *s, struct rt_bytes symbols, struct rt_bytes strings, uint32_t index,
		      uint64_t *ret_value)
{
	struct rt_bytes entry;
	struct rt_cursor c;
	const char *name;
	uint32_t offset;

	if (!rt_bytes_sub(symbols, (uint64_t)index * SYMBOL_BYTES, SYMBOL_BYTES, &entry))
		return false;
	c = rt_cursor_make(entry, false);
	return rt_cursor_u32(&c, &offset) && rt_cursor_skip(&c, 4) && rt_cursor_u64(&c, ret_value) &&
	       rt_elf_string(strings, offset, &name) && !strcmp(name, s->name);
}

static void read_table(struct search *s, const struct rt_section *rela)
{
	struct rt_section table, names;
	struct rt_bytes bytes, symbols, strings;
	uint64_t offset, info, addend, value;
	struct rt_cursor c;

	if (!rela->link || !rt_section_bare(s->image, rela->link, &table) || table.type != SHT_DYNSYM)
		return;
	if (!rt_section_bytes(s->image, rela, &bytes) || bytes.size > s->left ||
	    !rt_section_bytes(s->image, &table, &symbols) || !rt_section_bare(s->image, table.link, &names) ||
	    !rt_section_bytes(s->image, &names, &strings)) {
		s->found = RT_IMPORT_TAKEN;
		return;
	}
	s->left -= bytes.size;
	s->read = true;
	c = rt_cursor_make(bytes, false);
	while (rt_cursor_u64(&c, &offset) && rt_cursor_u64(&c, &info) && rt_cursor_u64(&c, &addend)) {
		if (!is_symbol(s, symbols, strings, (uint32_t)(info >> 32), &value))
			continue;
		if ((uint32_t)info != R_X86_64_JUMP_SLOT || value)
			s->found = RT_IMPORT_TAKEN;
		else if (s->found == RT_IMPORT_NONE)
			s->found = RT_IMPORT_CALLED;
	}
}

enum rt_import rt_image_import(const struct rt_image *image, const char *name)
{
	struct search s = { .image = image, .name = name, .left = BUDGET };
	size_t n = rt_section_count(image);
	struct rt_section section;

	if (image->machine != EM_X86_64 || !image->is_64)
		return RT_IMPORT_TAKEN;
	for (size_t i = 0; i < n && rt_section_bare(image, i, &section); i++)
		if (section.type == SHT_RELA)
			read_table(&s, &section);
	return s.read ? s.found : RT_IMPORT_TAKEN;
}
