/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any bytes as what is read of split debug info without libdw: the index of a package, and lists that get their base.
 * The first byte says which.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/split_base.h"
#include "elf/unit_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_index(struct rt_bytes bytes)
{
	struct rt_unit_slices slices;
	uint64_t id;

	rt_unit_index_find(bytes, false, 0, &slices);
	/* whatever stands there is an id that may be in it */
	for (size_t at = 0; at + sizeof(id) <= bytes.size && at < 512; at += 4) {
		memcpy(&id, bytes.data + at, sizeof(id));
		if (rt_unit_index_find(bytes, false, id, &slices) && slices.version != 2 && slices.version != 5)
			abort();
		rt_unit_index_find(bytes, true, id, &slices);
	}
}

static void ask_lists(struct rt_bytes bytes, bool locations)
{
	char *once, *twice;
	size_t size, more;

	if (!rt_split_lists(bytes, locations, 0x401000, &once, &size))
		return;
	/* what was made is of the same form, and what was there is still there behind the table of offsets */
	if (size < bytes.size || !rt_split_lists(rt_bytes_make(once, size), locations, 0x1000, &twice, &more))
		abort();
	free(twice);
	free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_bytes bytes;
	char *ranges;

	if (!size)
		return 0;
	bytes = rt_bytes_make(data + 1, size - 1);
	switch (data[0] & 3) {
	case 0:
		ask_index(bytes);
		break;
	case 1:
		ask_lists(bytes, false);
		break;
	case 2:
		ask_lists(bytes, true);
		break;
	default:
		ranges = rt_split_ranges(bytes, 0x401000);
		free(ranges);
	}
	return 0;
}
