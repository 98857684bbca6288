/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of which life the pointer is that was stored in a slot last. Programs have about one slot for each object, so this is
 * as large as what is known of the objects: 16 bytes a slot, in several tables. Each of them grows for itself, and
 * by little, so that hardly any room is unused and a copy of all is never needed. All zeroes: empty. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LT_STORED_PARTS = 16 };

/* Whose address it is: an address names one object of a process and a type. */
struct lt_domain {
	uint32_t pid, type; /* index of the type */
};

struct lt_stored_in {
	uint64_t slot;   /* 0 = empty */
	uint32_t domain; /* index + 1: of the life, and so of its process, which the slot is in */
	uint32_t serial; /* of the life, as far as 32 bits go */
};

/* Open addressing, linear probing; a run goes on at the front. */
struct lt_stored_part {
	struct lt_stored_in *slots;
	uint32_t nr, room;
};

struct rt_lifetime;

struct lt_stored {
	struct lt_stored_part parts[LT_STORED_PARTS];
	uint32_t nr; /* slots in all */
};

void lt_stored_deinit(struct lt_stored *stored);
/*
 * What is known of the slot (not 0) of the process; NULL: nothing. Valid until the next put or remove. lt tells what
 * domains there are.
 */
struct lt_stored_in *lt_stored_get(const struct lt_stored *stored, const struct rt_lifetime *lt, uint64_t slot,
				   uint32_t pid);
/* A slot that is not there yet; false: out of memory, nothing changed. */
bool lt_stored_add(struct lt_stored *stored, const struct rt_lifetime *lt, struct lt_stored_in in);
/* in is what lt_stored_get() gave */
void lt_stored_remove(struct lt_stored *stored, const struct rt_lifetime *lt, struct lt_stored_in *in);
