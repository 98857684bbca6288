/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: call frame programs of x86-64, run over all that a caller's registers may be told by. */
#pragma once

#include "base/bytes.h"
#include "wire/unwind.h"

#define RT_FRAME_REMEMBERED_MAX 64 /* states that a program may remember at once */

/* DWARF's numbers, x86-64. What is told of others (vector registers) is passed over. */
enum { RT_FRAME_BP = 6, RT_FRAME_SP = 7, RT_FRAME_RA = 16, RT_FRAME_REGS = 17 };

/* Where the caller's value of a register is. */
enum rt_frame_place {
	RT_FRAME_UNSAID,     /* the program has not told */
	RT_FRAME_SAME,       /* in its register */
	RT_FRAME_UNDEFINED,  /* gone */
	RT_FRAME_AT_CFA,     /* in memory at CFA + offset */
	RT_FRAME_VAL_CFA,    /* CFA + offset itself */
	RT_FRAME_REGISTER,   /* in the register of the number `offset` */
	RT_FRAME_EXPRESSION, /* in memory at what the expression comes to */
	RT_FRAME_VALUE,      /* what the expression comes to */
};

struct rt_frame_value {
	uint32_t place; /* enum rt_frame_place */
	uint32_t size;  /* of code */
	union {
		int64_t offset;
		const uint8_t *code; /* the expression; lies in the program */
	};
};

enum rt_frame_cfa { RT_CFA_UNSAID, RT_CFA_REGISTER, RT_CFA_EXPRESSION };

/* What is known at one place of a function. */
struct rt_frame_state {
	enum rt_frame_cfa cfa;
	uint64_t reg;   /* of RT_CFA_REGISTER */
	int64_t offset; /* of the CFA from it */
	struct rt_bytes expression;
	struct rt_frame_value value[RT_FRAME_REGS];
};

/* What all functions of one CIE share. */
struct rt_frame_cie {
	uint64_t code_align; /* not 0 */
	int64_t data_align;
	uint64_t ra;             /* number of the column that return addresses are told in */
	uint8_t encoding;        /* of the addresses in its FDEs */
	uint8_t lsda_encoding;   /* of their landing pads; RT_PE_OMIT: they have none */
	bool augmented;          /* its FDEs have augmentation data */
	bool signal;             /* they are signals' trampolines */
	struct rt_bytes program; /* its own */
};

/* How to unwind by this state. */
uint32_t rt_frame_rule(const struct rt_frame_state *state, bool signal);

/* Takes the state that holds in [start, end); false: stop. */
typedef bool rt_frame_emit(void *arg, uint64_t start, uint64_t end, const struct rt_frame_state *state);

/*
 * Runs a program from *state on, for code in [start, end); emit may be NULL (the program of a CIE, which has no code).
 * here: address of the program's first byte. initial: what DW_CFA_restore goes back to.
 * false: the program is damaged, or holds what is not known.
 */
struct rt_frame_run {
	const struct rt_frame_cie *cie;
	const struct rt_frame_state *initial;
	uint64_t here, start, end;
	rt_frame_emit *emit;
	void *arg;
};
bool rt_frame_program(const struct rt_frame_run *run, struct rt_bytes program, struct rt_frame_state *state);
/* The state that the functions of a CIE begin with: its own program. */
bool rt_frame_initial(const struct rt_frame_cie *cie, struct rt_frame_state *ret);
