/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/section.h"

#include <elf.h>
#include <string.h>

struct table {
	uint64_t offset, entry_size;
	uint64_t count;
	uint32_t names; /* index of the section with the names */
};

bool rt_elf_word(const struct rt_image *image, struct rt_cursor *cursor, uint64_t *ret)
{
	uint32_t v;

	if (image->is_64)
		return rt_cursor_u64(cursor, ret);
	if (!rt_cursor_u32(cursor, &v))
		return false;
	*ret = v;
	return true;
}

bool rt_elf_string(struct rt_bytes bytes, uint64_t offset, const char **ret)
{
	size_t left;

	if (offset >= bytes.size)
		return false;
	left = bytes.size - offset;
	if (!memchr(bytes.data + offset, 0, left < RT_ELF_STRING_MAX ? left : RT_ELF_STRING_MAX))
		return false;
	*ret = (const char *)bytes.data + offset;
	return true;
}

static bool read_header(const struct rt_image *image, const struct table *table, uint64_t index, struct rt_section *ret,
			uint32_t *ret_name)
{
	struct rt_bytes bytes;
	struct rt_cursor c;
	uint64_t unused;

	if (index >= table->count)
		return false;
	/* no overflow: index < count, and count * entry_size fits into the file */
	if (!rt_bytes_sub(image->bytes, table->offset + index * table->entry_size, table->entry_size, &bytes))
		return false;
	c = rt_cursor_make(bytes, image->big_endian);
	return rt_cursor_u32(&c, ret_name) && rt_cursor_u32(&c, &ret->type) && rt_elf_word(image, &c, &ret->flags) &&
	       rt_elf_word(image, &c, &ret->addr.v) && rt_elf_word(image, &c, &ret->offset) &&
	       rt_elf_word(image, &c, &ret->size) && rt_cursor_u32(&c, &ret->link) && rt_cursor_u32(&c, &ret->info) &&
	       rt_elf_word(image, &c, &unused) && rt_elf_word(image, &c, &ret->entsize);
}

/* Where the section headers are, with the two counts that overflow into section 0. */
static bool read_table(const struct rt_image *image, struct table *ret)
{
	struct rt_cursor c = rt_cursor_make(image->bytes, image->big_endian);
	uint16_t entry_size, count, names;
	struct rt_section first = { 0 };
	struct table t = { 0 };
	uint32_t unused;
	size_t at_shoff = image->is_64 ? 40 : 32, at_shentsize = image->is_64 ? 58 : 46;

	if (!rt_cursor_skip(&c, at_shoff) || !rt_elf_word(image, &c, &t.offset))
		return false;
	c.pos = 0;
	if (!rt_cursor_skip(&c, at_shentsize) || !rt_cursor_u16(&c, &entry_size) || !rt_cursor_u16(&c, &count) ||
	    !rt_cursor_u16(&c, &names))
		return false;
	if (!t.offset || t.offset >= image->bytes.size || entry_size < (image->is_64 ? 64 : 40))
		return false;
	t.entry_size = entry_size;
	t.count = 1;
	t.names = names;
	if ((!count || names == SHN_XINDEX) && read_header(image, &t, 0, &first, &unused)) {
		if (names == SHN_XINDEX)
			t.names = first.link;
	}
	t.count = count ? count : first.size;
	if (t.count > (image->bytes.size - t.offset) / entry_size)
		t.count = (image->bytes.size - t.offset) / entry_size;
	*ret = t;
	return true;
}

size_t rt_section_count(const struct rt_image *image)
{
	struct table table;

	return read_table(image, &table) ? table.count : 0;
}

static bool read_section(const struct rt_image *image, const struct table *table, struct rt_bytes names, size_t index,
			 struct rt_section *ret)
{
	struct rt_section s = { 0 };
	uint32_t name;

	if (!read_header(image, table, index, &s, &name))
		return false;
	if (!rt_elf_string(names, name, &s.name))
		s.name = "";
	*ret = s;
	return true;
}

static struct rt_bytes read_names(const struct rt_image *image, const struct table *table)
{
	struct rt_section s;
	struct rt_bytes names;
	uint32_t unused;

	if (!read_header(image, table, table->names, &s, &unused) || !rt_section_bytes(image, &s, &names))
		return rt_bytes_make(NULL, 0);
	return names;
}

bool rt_section_at(const struct rt_image *image, size_t index, struct rt_section *ret)
{
	struct table table;

	return read_table(image, &table) && read_section(image, &table, read_names(image, &table), index, ret);
}

bool rt_section_bare(const struct rt_image *image, size_t index, struct rt_section *ret)
{
	struct rt_section s = { .name = "" };
	struct table table;
	uint32_t unused;

	if (!read_table(image, &table) || !read_header(image, &table, index, &s, &unused))
		return false;
	*ret = s;
	return true;
}

bool rt_section_find(const struct rt_image *image, const char *name, size_t *index, struct rt_section *ret)
{
	struct rt_bytes names;
	struct rt_section s;
	struct table table;

	if (!read_table(image, &table))
		return false;
	names = read_names(image, &table);
	for (size_t i = *index; i < table.count; i++) {
		uint32_t offset;
		size_t len = strlen(name) + 1;

		if (!read_header(image, &table, i, &s, &offset))
			return false;
		/* only as many bytes are looked at as the wanted name has: names of a hostile file may be endless */
		if (offset >= names.size || names.size - offset < len || memcmp(names.data + offset, name, len) != 0)
			continue;
		s.name = (const char *)names.data + offset;
		*index = i + 1;
		*ret = s;
		return true;
	}
	return false;
}

bool rt_section_bytes(const struct rt_image *image, const struct rt_section *section, struct rt_bytes *ret)
{
	if (section->type == SHT_NOBITS || section->type == SHT_NULL)
		return false;
	return rt_bytes_sub(image->bytes, section->offset, section->size, ret);
}
