/* SPDX-License-Identifier: GPL-2.0-only */
/* All of elf/ on foreign bytes: image, symbols (with PLT and .gnu_debugdata), SDT notes, needed libraries. */
#include <stdint.h>
#include <stdlib.h>

#include "elf/sdt.h"
#include "elf/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_symbols(const struct rt_image *image)
{
	struct rt_symtab *symtab = NULL;
	struct rt_error *err = rt_symtab_create(image, &symtab);

	for (size_t i = 0; !err && i < symtab->count && i < 100; i++) {
		if (!symtab->symbols[i].plt && !rt_symtab_find(symtab, symtab->symbols[i].name))
			abort();
		(void)rt_symtab_at(symtab, symtab->symbols[i].addr);
	}
	rt_error_free(err);
	rt_symtab_destroy(symtab);
}

static void ask_addresses(const struct rt_image *image)
{
	for (size_t i = 0; i < image->segment_count && i < 100; i++) {
		struct rt_elfaddr last = { image->segments[i].end.v - 1 }, back;
		struct rt_foff offset;

		if (image->segments[i].end.v <= image->segments[i].start.v)
			continue;
		/* what has an offset lies in the file */
		if (!rt_image_offset(image, last, &offset) || offset.v >= image->bytes.size)
			abort();
		(void)rt_image_address(image, offset, true, &back);
		(void)rt_image_at(image, last, 64);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_sdt_marker *markers = NULL;
	struct rt_image *image = NULL;
	const char **names = NULL;
	struct rt_error *err = rt_image_from_bytes(rt_bytes_make(data, size), "fuzz", &image);
	size_t n;

	if (err) {
		rt_error_free(err);
		return 0;
	}
	ask_addresses(image);
	ask_symbols(image);
	rt_error_free(rt_sdt_read(image, &markers, &n));
	rt_error_free(rt_image_needed(image, &names, &n));
	(void)rt_image_has_name(image, "dlopen");
	(void)rt_image_import(image, "dlopen");
	free(markers);
	free(names);
	rt_image_destroy(image);
	return 0;
}
