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

static bool read_table(struct rt_dwarf *dwarf, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *name;

		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(elf, shdr->sh_link, sym.st_name);
		if (!name || !strstr(name, ".part."))
			continue;
		if (dwarf->parts.len >= RT_PARTS_MAX || !rt_vec_push(&dwarf->parts, sym.st_value))
			return false;
	}
	return true;
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
