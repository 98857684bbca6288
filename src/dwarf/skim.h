/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A unit's DIEs by their bytes, for what is asked of many units: where in them something lies. Little-endian only. Any
 * number of threads may ask at a time, each with its own struct rt_skim.
 */
#pragma once

#include "base/bytes.h"
#include "base/vec.h"

/* Positions in a unit, counted from the beginning of its header; rising. */
struct rt_places {
	RT_VEC(uint32_t) v;
};

struct rt_skim_abbrev;

/* Abbreviations of the unit that was looked at last. All zeroes is empty. */
struct rt_skim {
	RT_VEC(struct rt_skim_abbrev) abbrevs;
	RT_VEC(uint16_t) forms; /* attribute and form by turns, of all of them */
	bool has_other_refs;    /* DIEs may name others than by DW_FORM_ref4 */
};

void rt_skim_deinit(struct rt_skim *skim);

/* Whether all names that the table's DIEs have are told in the unit itself, or by offsets into sections of strings. */
bool rt_skim_is_own(struct rt_bytes abbrev, uint64_t offset);

struct rt_skim_unit {
	struct rt_bytes bytes; /* with the header */
	struct rt_bytes abbrev;
	uint64_t abbrev_offset;
	uint32_t first; /* where its first DIE is */
	uint8_t version, offset_size, address_size;
};

/*
 * Whether a DIE that may be a function's is told its name, or what it is an instance of, at one of the places. One that
 * is only declared does not count, but goes into *declared. true: there is one, or the unit cannot be judged.
 */
bool rt_skim_has_function(struct rt_skim *skim, const struct rt_skim_unit *unit, const struct rt_places *places,
			  struct rt_places *declared);
