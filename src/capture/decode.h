/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The payload of a chunk back into records, from bytes of any hand. Events come in blocks that stay in the nearest
 * cache.
 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "wire/event.h"

struct rt_spool_decoder;

RT_CHECK struct rt_error *rt_spool_decoder_create(struct rt_spool_decoder **ret);
void rt_spool_decoder_destroy(struct rt_spool_decoder *decoder);
RT_CLEANUP(struct rt_spool_decoder *, rt_spool_decoder_destroy);

/* Takes a payload (kept until the next call) of so many records. *ret_fault: what is wrong with it, or NULL. */
RT_CHECK struct rt_error *rt_spool_decoder_begin(struct rt_spool_decoder *decoder, struct rt_bytes payload,
						 uint32_t records, const char **ret_fault);

/*
 * The next records: *ret is an array of so many events, valid until the next call, or one valid record of another
 * kind. 0: the end, or what *ret_fault says.
 */
size_t rt_spool_decoder_next(struct rt_spool_decoder *decoder, const struct rt_wire_head **ret, const char **ret_fault);
