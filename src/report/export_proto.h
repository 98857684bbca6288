/* SPDX-License-Identifier: GPL-2.0-only */
/* Protocol-buffer messages, written field by field into memory (protobuf.dev, "Encoding"). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* All zeroes is an empty message. Without memory nomem is set and the message is not to be used. */
struct rt_proto {
	RT_VEC(uint8_t) bytes;
	bool nomem;
};

void rt_proto_varint(struct rt_proto *p, unsigned field, uint64_t value);
void rt_proto_fixed64(struct rt_proto *p, unsigned field, uint64_t value);
void rt_proto_bytes(struct rt_proto *p, unsigned field, const void *data, size_t size);
/* text has to be UTF-8 (rt_clean()). */
void rt_proto_string(struct rt_proto *p, unsigned field, const char *text);
/* Appends inner as a message and empties it. */
void rt_proto_message(struct rt_proto *p, unsigned field, struct rt_proto *inner);
/* One value of a packed field that is being made: append those, then rt_proto_message(). */
void rt_proto_packed(struct rt_proto *p, uint64_t value);
void rt_proto_deinit(struct rt_proto *p);
