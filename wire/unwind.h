/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Unwind rows: how one gets from a place in the code to its caller, eight bytes for each range of code. Compiled from
 * .eh_frame by user space (src/dwarf/rows.h), walked by engine K's BPF programs. Lives as long as one run; never in a
 * file.
 *
 * Walking needs pc, sp (the CFA of the frame before) and rbp. A row says where the CFA is and where the caller's rbp
 * is; the return address always lies at CFA - 8.
 */
#pragma once

#ifndef RT_WIRE_NO_STDINT
#include <stdint.h>
#endif

/* Where the CFA is. `offset` is rt_unwind_offset() of the rule. */
enum rt_unwind_kind {
	RT_UNWIND_NONE = 0,    /* no unwind information here */
	RT_UNWIND_SP = 1,      /* sp + 8 * offset, which is not negative */
	RT_UNWIND_BP = 2,      /* rbp + 8 * offset */
	RT_UNWIND_PLT = 3,     /* sp + 8, and 8 more from the offset'th of the entry's 16 bytes on */
	RT_UNWIND_BP_LOAD = 4, /* what lies at rbp + 8 * offset: functions that align their stack */
	RT_UNWIND_SIGNAL = 5,  /* a signal's trampoline: the interrupted registers lie at sp + RT_UNWIND_UC_* */
	RT_UNWIND_ROOT = 6,    /* nobody called this code */
	RT_UNWIND_OTHER = 7,   /* there is a rule, of a kind that is not followed */
};

/* Where the caller's rbp is. */
enum rt_unwind_bp {
	RT_UNWIND_BP_LOST = 0,  /* not to be told */
	RT_UNWIND_BP_SAME = 1,  /* still in rbp */
	RT_UNWIND_BP_SAVED = 2, /* at CFA - 8 * rt_unwind_slot() */
	RT_UNWIND_BP_AT_BP = 3, /* at the address in rbp */
};

/* A rule: kind in bits 0..3, enum rt_unwind_bp in 4..5, slot of rbp in 6..15, offset in 16..31. */
#define RT_UNWIND_SLOT_MAX 1023
#define RT_UNWIND_SP_MAX 65535
#define RT_UNWIND_BP_MAX 32767
#define RT_UNWIND_RULE(kind, bp, slot, offset) \
	((uint32_t)(kind) | (uint32_t)(bp) << 4 | (uint32_t)(slot) << 6 | (uint32_t)(uint16_t)(offset) << 16)
#define rt_unwind_kind(rule) ((rule)&15)
#define rt_unwind_bp(rule) ((rule) >> 4 & 3)
#define rt_unwind_slot(rule) ((rule) >> 6 & 1023)
#define rt_unwind_sp_offset(rule) ((rule) >> 16)
#define rt_unwind_bp_offset(rule) ((int32_t)(rule) >> 16)

/* Of struct ucontext in the kernel's signal frame, x86-64: uc_mcontext.gregs[REG_RBP, REG_RSP, REG_RIP]. */
enum { RT_UNWIND_UC_BP = 120, RT_UNWIND_UC_SP = 160, RT_UNWIND_UC_IP = 168 };

#define RT_ROW_BITS 22 /* of an index into all rows of a run */

/* Holds from pc on up to the pc of the next row. */
struct rt_unwind_row {
	uint32_t pc; /* address minus the base of the module's table */
	uint32_t rule;
};

_Static_assert(sizeof(struct rt_unwind_row) == 8, "row");
_Static_assert(__builtin_offsetof(struct rt_unwind_row, rule) == 4, "row.rule");
