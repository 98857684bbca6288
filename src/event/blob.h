/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Large things in the stream: a record says its size in 16 bits, so what is
 * larger travels in parts that follow each other.
 */
#pragma once

#include "base/bytes.h"
#include "event/stream.h"

/* Hands bytes (at most 1 GiB) to sink as BLOB records. */
RT_CHECK struct rt_error *rt_blob_emit(struct rt_event_sink *sink, enum rt_blob what, uint32_t id,
				       struct rt_bytes bytes);

/* Puts the parts of one blob at a time together. */
struct rt_blob_join {
	enum rt_blob what;
	uint32_t id;
	uint8_t *data; /* owned */
	size_t size, have;
};

/*
 * Takes a BLOB record. true when it completes a blob: join->what, id, data and size hold it until the next
 * call. A part that does not continue its blob drops what came before: *ret_torn (may be NULL) is set then.
 * A blob larger than limit bytes is dropped, too.
 */
bool rt_blob_join(struct rt_blob_join *join, const struct rt_wire_blob *part, size_t limit, bool *ret_torn);
void rt_blob_join_deinit(struct rt_blob_join *join);
