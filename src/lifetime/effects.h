/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each traced function did to the counter of its objects, beside what the spec says that it does. Takes the
 * stream, pure and alone: no life is reconstructed, so that a wrong spec cannot explain itself away.
 *
 * An operation is judged where the counter was read on both sides of it: before it, and before the next operation on
 * the same object (or by the census). What stands between unread is judged only together. Readings of different
 * threads, and of the census, can agree and never contradict: one may have been late, the memory somebody else's by
 * then.
 */
#pragma once

#include "event/stream.h"

enum rt_effect_verdict {
	RT_EFFECT_NEVER_RAN,
	RT_EFFECT_UNCHECKED, /* it ran, but the counter was never read on both sides */
	RT_EFFECT_VERIFIED,
	RT_EFFECT_UNCLEAR, /* most runs did what is declared, others did something else */
	RT_EFFECT_CONTRADICTED,
};

struct rt_effect {
	const char *type, *function; /* valid until destroy */
	uint8_t op;                  /* enum rt_op */
	bool hidden;
	int64_t declared; /* new: the count that it starts with; RT_START_UNKNOWN: not told. Others: by how much it
			     moves */
	uint64_t events;
	uint64_t checked, agreed; /* how many of them could be judged, and did as declared */
	int64_t usual;            /* what most of those did; as declared is counted in */
	uint64_t usual_count;
	uint64_t ended, freed; /* put: it brought the count to 0; and then free ran or the memory was used anew */
	uint64_t after_end;    /* put: it brought the count to 0, and then the object was counted on */
	enum rt_effect_verdict verdict;
};

struct rt_effects;

RT_CHECK struct rt_error *rt_effects_create(struct rt_effects **ret);
void rt_effects_destroy(struct rt_effects *effects);
RT_CLEANUP(struct rt_effects *, rt_effects_destroy);
/* Takes one record of the stream; kinds that say nothing of counters are ignored. */
RT_CHECK struct rt_error *rt_effects_record(struct rt_effects *effects, const struct rt_wire_head *record);
/* The table by type and op, one row for each function; valid until the next record or destroy. */
RT_CHECK struct rt_error *rt_effects_table(struct rt_effects *effects, const struct rt_effect **ret, size_t *ret_count);
