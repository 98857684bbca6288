/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: call frame programs, run over what unwinding needs (pc, sp, rbp) and nothing else. */
#pragma once

#include "base/bytes.h"
#include "wire/unwind.h"

#define RT_FRAME_REMEMBERED_MAX 64 /* states that a program may remember at once */

/* Where a value is. */
enum rt_frame_place {
	RT_FRAME_UNSAID,    /* the program has not told */
	RT_FRAME_SAME,      /* in its register */
	RT_FRAME_UNDEFINED, /* gone */
	RT_FRAME_AT_CFA,    /* in memory at CFA + offset */
	RT_FRAME_AT_BP,     /* in memory at the address in rbp */
	RT_FRAME_CONTEXT,   /* in memory at sp + offset, in a signal's frame */
	RT_FRAME_VAL_CFA,   /* CFA + offset itself */
	RT_FRAME_OTHER,     /* somewhere that is not followed */
};

struct rt_frame_value {
	enum rt_frame_place place;
	int64_t offset;
};

enum rt_frame_cfa { RT_CFA_UNSAID, RT_CFA_REGISTER, RT_CFA_PLT, RT_CFA_BP_LOAD, RT_CFA_SP_LOAD, RT_CFA_OTHER };

/* What is known at one place of a function. */
struct rt_frame_state {
	enum rt_frame_cfa cfa;
	uint64_t reg;   /* of RT_CFA_REGISTER */
	int64_t offset; /* of the CFA from its register; of PLT: from which byte of an entry on */
	struct rt_frame_value bp, sp, ra;
};

/* What all functions of one CIE share. */
struct rt_frame_cie {
	uint64_t code_align; /* not 0 */
	int64_t data_align;
	uint8_t encoding;              /* of the addresses in its FDEs */
	bool augmented;                /* its FDEs have augmentation data */
	bool signal;                   /* they are signals' trampolines */
	struct rt_frame_state initial; /* after its own program */
};

/* How to unwind by this state. */
uint32_t rt_frame_rule(const struct rt_frame_state *state, bool signal);

/* Takes the state that holds in [start, end); false: stop. */
typedef bool rt_frame_emit(void *arg, uint64_t start, uint64_t end, const struct rt_frame_state *state);

/*
 * Runs a program from *state on, for code in [start, end); emit may be NULL (the program of a CIE, which has no code).
 * here: address of the program's first byte. false: the program is damaged, or holds what is not known.
 */
struct rt_frame_run {
	const struct rt_frame_cie *cie; /* initial: what DW_CFA_restore goes back to */
	uint64_t here, start, end;
	rt_frame_emit *emit;
	void *arg;
};
bool rt_frame_program(const struct rt_frame_run *run, struct rt_bytes program, struct rt_frame_state *state);
