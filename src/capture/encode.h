/* SPDX-License-Identifier: GPL-2.0-only */
/* Records into the payload of a chunk. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "wire/event.h"

struct rt_spool_encoder;

RT_CHECK struct rt_error *rt_spool_encoder_create(struct rt_spool_encoder **ret);
void rt_spool_encoder_destroy(struct rt_spool_encoder *encoder);
RT_CLEANUP(struct rt_spool_encoder *, rt_spool_encoder_destroy);

/* Takes a valid record. false: the chunk is full, nothing was taken. An empty chunk takes any record. */
bool rt_spool_encoder_add(struct rt_spool_encoder *encoder, const struct rt_wire_head *record);

/* The payload of all records since the last call; valid until the next one. */
RT_CHECK struct rt_error *rt_spool_encoder_finish(struct rt_spool_encoder *encoder, struct rt_bytes *ret);
