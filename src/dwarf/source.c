/* SPDX-License-Identifier: GPL-2.0-only */
/* The debug sections of a file, for libdw and by name. */
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/unit.h"

/* libelf decompresses a section by writing into the section headers. */
static bool has_compressed(Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		GElf_Shdr shdr;
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if ((shdr.sh_flags & SHF_COMPRESSED) || (name && strncmp(name, ".zdebug", 7) == 0))
			return true;
	}
	return false;
}

void rt_source_end(struct rt_dwarf_source *source)
{
	if (source->dw)
		dwarf_end(source->dw);
	if (source->elf)
		elf_end(source->elf);
	free(source->copy);
	*source = (struct rt_dwarf_source){ 0 };
}

struct rt_error *rt_source_open(const struct rt_image *image, struct rt_dwarf_source *source)
{
	if (!image->elf || !has_compressed(image->elf))
		return NULL;
	source->copy = malloc(image->bytes.size);
	if (!source->copy)
		return rt_error_nomem();
	memcpy(source->copy, image->bytes.data, image->bytes.size);
	source->elf = elf_memory(source->copy, image->bytes.size);
	return NULL;
}

/* source->dw stays NULL when there is no debug info. */
struct rt_error *rt_source_begin(const struct rt_image *image, struct rt_dwarf_source *source)
{
	Elf *elf;

	RT_TRY(rt_source_open(image, source));
	elf = source->copy ? source->elf : image->elf;
	source->dw = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	return NULL;
}

bool rt_source_section(const struct rt_image *image, const struct rt_dwarf_source *source, const char *name,
		       struct rt_bytes *ret)
{
	Elf *elf = source->copy ? source->elf : image->elf;
	Elf_Scn *scn = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		const char *have;
		Elf_Data *data;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		have = elf_strptr(elf, names, shdr.sh_name);
		if (!have || strcmp(have, name) != 0)
			continue;
		if ((shdr.sh_flags & SHF_COMPRESSED) && (!source->copy || elf_compress(scn, 0, 0) < 0))
			return false;
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf)
			return false;
		*ret = rt_bytes_make(data->d_buf, data->d_size);
		return true;
	}
	return false;
}
