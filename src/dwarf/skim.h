/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A unit's DIEs by their bytes, for what is asked of many units: where in them something lies. Little-endian only. Any
 * number of threads may ask at a time, each with its own struct rt_skim.
 */
#pragma once

#include "base/bytes.h"
#include "base/vec.h"
#include "dwarf/words.h"

struct rt_skim_abbrev;

/* A DIE that rt_skim_tree() was asked for. */
struct rt_skim_die {
	uint32_t behind; /* bytes from the unit's first DIE */
	uint32_t parent; /* index + 1 of the innermost one of the list that it lies in; 0: none */
	uint32_t value;  /* the caller's */
	int what;
};

/* What is known of the unit that was looked at last. All zeroes is empty. */
struct rt_skim {
	RT_VEC(struct rt_skim_abbrev) abbrevs;
	RT_VEC(uint16_t) forms; /* attribute and form by turns, of all of them */
	bool has_other_refs;    /* DIEs may name others than by DW_FORM_ref4 */
	RT_VEC(struct rt_skim_die) found;
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

/* The unit whose header is at `at` of info, and its first DIE at `die`. false: damaged */
bool rt_skim_open(struct rt_bytes info, struct rt_bytes abbrev, uint64_t at, uint64_t die, struct rt_skim_unit *ret);

/*
 * Sets skim->found to the DIEs of the tags for which interest() is above 0, in the order of the unit, so that each
 * stands behind what it lies in. Below 0: nothing in such a DIE is looked at. false: the unit is damaged, or unusual
 */
bool rt_skim_tree(struct rt_skim *skim, const struct rt_skim_unit *unit, int (*interest)(unsigned tag, bool c_only),
		  bool c_only);

/*
 * Whether a DIE that may be a function's is told its name, or what it is an instance of, at one of the places (from the
 * unit's header on). One that is only declared does not count, but goes into *declared. true: there is one, or the unit
 * cannot be judged.
 */
bool rt_skim_has_function(struct rt_skim *skim, const struct rt_skim_unit *unit, const struct rt_places *places,
			  struct rt_places *declared);
