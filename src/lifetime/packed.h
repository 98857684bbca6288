/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lives that nothing has happened to for a while, packed: a program that has millions of objects works on few of them
 * at a time. Only what nobody could guess is kept. What was packed comes out again, as it was to the last bit, when it
 * is looked up (lt_inc_find()) or passed (lt_row_newer(), lt_row_older()): nobody else sees a packed life. One thread.
 */
#pragma once

#include <stdint.h>

#include "base/vec.h"
#include "lifetime/stored.h"

struct lt_inc;
struct lt_usual;
struct rt_lifetime;

/*
 * What must be known without unpacking it: its key, and where it stands in the row of the living. All else in `rest`,
 * in numbers of one byte for each seven bits (packed.c says which): of an object that was made, stored and got once
 * about 40 bytes.
 */
struct lt_packed {
	uint64_t object;
	uint32_t place;
	uint8_t rest[]; /* index + 1 of its domain first */
};

/*
 * What many events have in common: a thread that does something once more at the same place, at the same depth of its
 * stack. Sizes as in struct lt_event.
 */
struct lt_context {
	uint64_t sp;
	uint32_t tid, use;
	int16_t delta;
	uint8_t op, flags;
	uint32_t unused; /* 0: contexts are compared as bytes */
};

enum {
	LT_LOOSE = 1 << 14,    /* lives that are not packed, before any is: with their ledgers some 10 MiB */
	LT_CONTEXTS = 1 << 15, /* events of others say it all themselves */
};

struct lt_packing {
	uint32_t packed;  /* lives */
	uint32_t hand;    /* goes round lt->incs */
	uint64_t turn_ns; /* time of the stream when it began with the first: who did something since then stays */
	RT_VEC(struct lt_context) contexts;
	uint32_t *context_of; /* by hash: index + 1 */
	/* by domain: the first of its lives that was packed, to which others are compared */
	RT_VEC(struct lt_usual *) usual;
};

void lt_packing_deinit(struct lt_packing *packing);
/*
 * Packs some lives, those that were left alone for the longest; for when more than LT_LOOSE are not; now_ns: time of
 * the stream. Nobody may have a pointer to a life that he has not checked (lt_inc_is()), which is so between two
 * records.
 */
void lt_pack(struct rt_lifetime *lt, uint64_t now_ns);
/* the life of this number, packed until now; NULL: out of memory, which lt notes */
struct lt_inc *lt_unpack(struct rt_lifetime *lt, uint32_t ref);
/* index + 1 of its domain */
uint32_t lt_packed_domain(const struct lt_packed *packed);
