/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a stretch of code does to one object: which registers hold its address,
 * and which of its fields were changed by how much. A small abstract run over
 * decoded instructions; whatever it does not understand becomes unknown.
 */
#pragma once

#include "insn/insn.h"

enum rt_value_kind {
	RT_VALUE_UNKNOWN,
	RT_VALUE_OBJECT, /* address of the object + n */
	RT_VALUE_CONST,  /* n */
	RT_VALUE_FIELD,  /* what the object held at n (size bytes) + delta */
	RT_VALUE_FRAME,  /* CFA + n */
};

struct rt_value {
	uint8_t kind; /* enum rt_value_kind */
	uint8_t size;
	int64_t n, delta;
};

/* A store into the object. */
struct rt_change {
	int64_t offset;
	uint8_t size;
	bool known; /* the field grew by delta; else it was overwritten */
	int64_t delta;
};

enum { RT_TRACK_SLOTS = 16, RT_TRACK_CHANGES = 8, RT_TRACK_REGS = 16 };

struct rt_track {
	struct rt_value regs[RT_TRACK_REGS];
	struct {
		int64_t at; /* CFA + at holds value */
		struct rt_value value;
	} slots[RT_TRACK_SLOTS];
	unsigned slot_count;
	struct rt_change changes[RT_TRACK_CHANGES];
	unsigned change_count;
	bool elsewhere; /* memory was written that is neither the object nor the frame */
	bool too_many;  /* changes did not fit: nothing is known about fields any more */
};

/* At a function's entry (CFA = sp + 8), with the object in reg; RT_REG_NONE: no object. */
void rt_track_init(struct rt_track *track, uint8_t reg);

void rt_track_step(struct rt_track *track, const struct rt_insn *insn);

/* It is known that reg holds the object's address here; or, in_memory, that what lies at reg + offset does. */
void rt_track_learn(struct rt_track *track, uint8_t reg, bool in_memory, int64_t offset);

/* A register that holds the object's address: prefer, if it still does, else another; RT_REG_NONE. */
uint8_t rt_track_object(const struct rt_track *track, uint8_t prefer);

/* CFA = sp + *ret; false: unknown. */
bool rt_track_cfa(const struct rt_track *track, int32_t *ret);

/*
 * What to add to the field at offset as it is now, to get what it was at the
 * start. false: it was overwritten, or changed by more than a few.
 */
bool rt_track_bias(const struct rt_track *track, int64_t offset, uint32_t size, int8_t *ret);
