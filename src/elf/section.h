/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Section headers, read one by one straight from the image's bytes. Private to
 * elf/. Nothing is cached: a header is read and checked at each call.
 */
#pragma once

#include "elf/image.h"

struct rt_section {
	const char *name; /* "" where the name table is damaged; points into the image */
	uint32_t type;    /* SHT_* */
	uint64_t flags;   /* SHF_* */
	struct rt_elfaddr addr;
	uint64_t offset, size, entsize;
	uint32_t link, info;
};

/* Number of section headers that lie inside the file. */
size_t rt_section_count(const struct rt_image *image);

/* false: no such header, or outside the file. */
bool rt_section_at(const struct rt_image *image, size_t index, struct rt_section *ret);

/* As rt_section_at(), but leaves the name "": cheaper. */
bool rt_section_bare(const struct rt_image *image, size_t index, struct rt_section *ret);

/* The first section of this name at or after *index; moves *index behind it. */
bool rt_section_find(const struct rt_image *image, const char *name, size_t *index, struct rt_section *ret);

/* The section's bytes in the file, still compressed if they are. false: NOBITS, or not wholly inside the file. */
bool rt_section_bytes(const struct rt_image *image, const struct rt_section *section, struct rt_bytes *ret);

/* A word of the file's class: 4 bytes in a 32-bit file, else 8. */
bool rt_elf_word(const struct rt_image *image, struct rt_cursor *cursor, uint64_t *ret);

/* Longer strings (file and section names) are damage: many entries of a hostile file may share an endless one. */
#define RT_ELF_STRING_MAX 4096

/* The NUL-terminated string at offset in bytes; false: no NUL inside, or too long. */
bool rt_elf_string(struct rt_bytes bytes, uint64_t offset, const char **ret);
