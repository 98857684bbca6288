/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SDT markers (sys/sdt.h): the .note.stapsdt notes of a module. Addresses are
 * corrected for prelink by .stapsdt.base where that section is there. Where it is not (linkers drop it, too), they
 * are taken as they are.
 */
#pragma once

#include "elf/image.h"

struct rt_sdt_marker {
	const char *provider, *name, *args; /* point into the image */
	struct rt_elfaddr location;
	struct rt_elfaddr semaphore; /* v = 0: none */
	const char *type;            /* of the object, where .note.refcnt tells (refcnt/mark.h); NULL */
};

/*
 * Where the file holds the marker's instruction and its semaphore (v = 0: it has none). NULL, or why it cannot be
 * probed (static text; then nothing is set).
 */
const char *rt_sdt_offsets(const struct rt_image *image, const struct rt_sdt_marker *marker,
			   struct rt_foff *ret_location, struct rt_foff *ret_semaphore);

/* All markers, in file order. *ret is one array owned by the caller (free()). Damaged notes end the list: RT_E_FORMAT
 * with what was read before in *ret. */
RT_CHECK struct rt_error *rt_sdt_read(const struct rt_image *image, struct rt_sdt_marker **ret, size_t *ret_count);
