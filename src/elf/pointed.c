/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/pointed.h"

#include <elf.h>
#include <stdlib.h>

#include "elf/section.h"

struct reading {
	const struct rt_image *image;
	struct rt_pointed *to;
	size_t left; /* bytes that may still be read */
};

static struct rt_error *add(struct reading *r, uint64_t address)
{
	if (!address || !rt_image_is_code(r->image, (struct rt_elfaddr){ address }))
		return NULL;
	return rt_vec_push(&r->to->addresses, address) ? NULL : rt_error_nomem();
}

static bool take_bytes(struct reading *r, const struct rt_section *s, struct rt_bytes *ret)
{
	if (!rt_section_bytes(r->image, s, ret) || ret->size > r->left)
		return false;
	r->left -= ret->size;
	return true;
}

/* the value of a symbol of the module's own; false: it is another's */
static bool symbol_value(struct rt_bytes symbols, uint32_t index, uint64_t *ret)
{
	enum { ENTRY = 24, SECTION = 6 };
	struct rt_bytes entry;
	struct rt_cursor c;
	uint16_t section;

	if (!rt_bytes_sub(symbols, (uint64_t)index * ENTRY, ENTRY, &entry))
		return false;
	c = rt_cursor_make(entry, false);
	return rt_cursor_skip(&c, SECTION) && rt_cursor_u16(&c, &section) && rt_cursor_u64(&c, ret) &&
	       section != SHN_UNDEF;
}

static struct rt_error *read_relocations(struct reading *r, const struct rt_section *rela)
{
	bool x86 = r->image->machine == EM_X86_64;
	uint32_t relative = x86 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE, whole = x86 ? R_X86_64_64 : R_AARCH64_ABS64;
	struct rt_bytes bytes, symbols = { 0 };
	struct rt_section table;
	uint64_t offset, info, addend, value;
	struct rt_cursor c;

	if (!take_bytes(r, rela, &bytes))
		return NULL;
	if (rela->link && rt_section_bare(r->image, rela->link, &table))
		(void)rt_section_bytes(r->image, &table, &symbols);
	c = rt_cursor_make(bytes, false);
	while (rt_cursor_u64(&c, &offset) && rt_cursor_u64(&c, &info) && rt_cursor_u64(&c, &addend)) {
		if ((uint32_t)info == relative)
			RT_TRY(add(r, addend));
		else if ((uint32_t)info == whole && symbol_value(symbols, (uint32_t)(info >> 32), &value))
			RT_TRY(add(r, value + addend));
	}
	return NULL;
}

static struct rt_error *read_words(struct reading *r, const struct rt_section *data)
{
	struct rt_bytes bytes;
	struct rt_cursor c;
	uint64_t word;

	if (data->addr.v % sizeof(word) || !take_bytes(r, data, &bytes))
		return NULL;
	c = rt_cursor_make(bytes, false);
	while (rt_cursor_u64(&c, &word))
		RT_TRY(add(r, word));
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void sort_once(struct rt_pointed *p)
{
	size_t n = 0;

	if (p->addresses.len)
		qsort(p->addresses.data, p->addresses.len, sizeof(uint64_t), compare);
	for (size_t i = 0; i < p->addresses.len; i++) {
		if (!n || p->addresses.data[n - 1] != p->addresses.data[i])
			p->addresses.data[n++] = p->addresses.data[i];
	}
	p->addresses.len = n;
}

struct rt_error *rt_pointed_read(const struct rt_image *image, struct rt_pointed *ret)
{
	struct reading r = { .image = image, .to = ret, .left = image->bytes.size };
	size_t n = rt_section_count(image);
	struct rt_section s;

	if (!image->is_64 || image->big_endian || (image->machine != EM_X86_64 && image->machine != EM_AARCH64))
		return NULL;
	for (size_t i = 0; i < n && rt_section_bare(image, i, &s); i++) {
		if (!(s.flags & SHF_ALLOC) || (s.flags & SHF_EXECINSTR))
			continue;
		if (s.type == SHT_RELA)
			RT_TRY(read_relocations(&r, &s));
		else if (s.type == SHT_PROGBITS)
			RT_TRY(read_words(&r, &s));
	}
	sort_once(ret);
	return NULL;
}

bool rt_pointed_has(const struct rt_pointed *pointed, struct rt_elfaddr at)
{
	return pointed->addresses.len &&
	       bsearch(&at.v, pointed->addresses.data, pointed->addresses.len, sizeof(uint64_t), compare);
}

void rt_pointed_deinit(struct rt_pointed *pointed)
{
	rt_vec_deinit(&pointed->addresses);
}
