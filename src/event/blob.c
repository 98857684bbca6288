/* SPDX-License-Identifier: GPL-2.0-only */
#include "event/blob.h"

#include <stdlib.h>
#include <string.h>

struct rt_error *rt_blob_emit(struct rt_event_sink *sink, enum rt_blob what, uint32_t id, struct rt_bytes bytes)
{
	_cleanup_free_ struct rt_wire_blob *part = NULL;
	size_t at = 0;

	if (bytes.size > 1u << 30)
		return rt_error_new(RT_E_LIMIT, "%zu bytes are too many for one part of a recording", bytes.size);
	part = malloc(sizeof(*part) + RT_BLOB_PART);
	if (!part)
		return rt_error_nomem();
	do {
		size_t n = bytes.size - at < RT_BLOB_PART ? bytes.size - at : RT_BLOB_PART;
		size_t padded = RT_WIRE_ALIGN(n);

		*part = (struct rt_wire_blob){
			.head = { .size = (uint16_t)(sizeof(*part) + padded), .kind = RT_WIRE_BLOB },
			.what = what,
			.id = id,
			.total = (uint32_t)bytes.size,
			.offset = (uint32_t)at,
			.bytes = (uint32_t)n,
		};
		memset(part->data, 0, padded);
		if (n)
			memcpy(part->data, bytes.data + at, n);
		RT_TRY(sink->record(sink, &part->head));
		at += n;
	} while (at < bytes.size);
	return NULL;
}

bool rt_blob_join(struct rt_blob_join *join, const struct rt_wire_blob *part, size_t limit, bool *ret_torn)
{
	bool torn = false, whole = false;

	if (part->offset == 0) {
		torn = join->have < join->size;
		join->what = part->what;
		join->id = part->id;
		join->have = 0;
		join->size = 0;
		if (part->total <= limit) {
			uint8_t *data = realloc(join->data, part->total ? part->total : 1);

			if (data) {
				join->data = data;
				join->size = part->total;
			}
		}
		torn |= join->size != part->total;
	}
	if (join->what == part->what && join->id == part->id && join->size == part->total &&
	    join->have == part->offset && part->bytes <= join->size - join->have) {
		if (part->bytes)
			memcpy(join->data + join->have, part->data, part->bytes);
		join->have += part->bytes;
		whole = join->have == join->size;
	} else if (part->offset) {
		torn = true;
		join->have = join->size = 0;
	}
	if (ret_torn)
		*ret_torn = torn;
	return whole;
}

void rt_blob_join_deinit(struct rt_blob_join *join)
{
	free(join->data);
	*join = (struct rt_blob_join){ 0 };
}
