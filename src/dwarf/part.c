/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which functions with code are only parts. GCC may split a function: its
 * beginning is inlined into the callers and the rest stays as "name.part.0".
 * The debug info of that rest looks like the whole function; only the symbol
 * tells.
 */
#include "dwarf/unit.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define RT_PARTS_MAX (1u << 20)

static const char mark[] = ".part.";

/* Where in the names the mark is: far fewer places than there are symbols. */
struct marks {
	RT_VEC(uint64_t) v;
};

static bool find_marks(const Elf_Data *names, struct marks *marks)
{
	const char *begin = names->d_buf, *at = begin, *end = begin + names->d_size;

	while ((at = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1)) != NULL)
		if (marks->v.len >= RT_PARTS_MAX || !rt_vec_push(&marks->v, (uint64_t)(at++ - begin)))
			return false;
	return true;
}

/* Is there a mark in the name that begins at offset? */
static bool is_marked(const Elf_Data *names, const struct marks *marks, uint64_t offset)
{
	size_t low = 0, high = marks->v.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (marks->v.data[mid] < offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low < marks->v.len && !memchr((const char *)names->d_buf + offset, '\0', marks->v.data[low] - offset);
}

static bool read_symbols(struct rt_dwarf *dwarf, Elf_Data *data, const Elf_Data *names, const struct marks *marks)
{
	GElf_Sym sym;

	for (int i = 0; marks->v.len && gelf_getsym(data, i, &sym); i++) {
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || !is_marked(names, marks, sym.st_name))
			continue;
		if (dwarf->parts.len >= RT_PARTS_MAX || !rt_vec_push(&dwarf->parts, sym.st_value))
			return false;
	}
	return true;
}

static bool read_table(struct rt_dwarf *dwarf, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Scn *strings = elf_getscn(elf, shdr->sh_link);
	Elf_Data *data = elf_getdata(scn, NULL), *names = strings ? elf_getdata(strings, NULL) : NULL;
	struct marks marks = { 0 };
	bool ok;

	if (!data || !names || !names->d_buf)
		return true;
	ok = find_marks(names, &marks) && read_symbols(dwarf, data, names, &marks);
	rt_vec_deinit(&marks.v);
	return ok;
}

static bool read_elf(struct rt_dwarf *dwarf, Elf *elf)
{
	Elf_Scn *scn = NULL;

	while (elf && (scn = elf_nextscn(elf, scn)) != NULL) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_SYMTAB && !(shdr.sh_flags & SHF_COMPRESSED) &&
		    !read_table(dwarf, elf, scn, &shdr))
			return false;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

bool rt_dwarf_is_part(struct rt_dwarf *dwarf, uint64_t addr)
{
	if (!dwarf->parts_read) {
		dwarf->parts_read = true;
		if (read_elf(dwarf, dwarf->image->elf) && dwarf->image->debug)
			read_elf(dwarf, dwarf->image->debug->elf);
		if (dwarf->parts.len)
			qsort(dwarf->parts.data, dwarf->parts.len, sizeof(*dwarf->parts.data), compare);
	}
	return dwarf->parts.len &&
	       bsearch(&addr, dwarf->parts.data, dwarf->parts.len, sizeof(*dwarf->parts.data), compare) != NULL;
}
