/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Stacks of callers, each kept once under a number.
 *
 * A walk by frame pointers costs some nanoseconds and is wrong where code has none. So a list of return addresses that
 * comes out of such a walk for the first time is held against the unwind tables (backtrace(3)): if these say the same,
 * the list is believed from then on, else each such stack is unwound by the tables. What a list looks like depends on
 * code alone, not on data.
 */
#ifndef RC_STACK_H
#define RC_STACK_H

#include <stdbool.h>
#include <stdint.h>

#define RC_FRAMES 16

enum rc_stack_kind {
	RC_STACK_WALKED,
	RC_STACK_DENIED, /* what a walk sees of stacks that have to be unwound */
	RC_STACK_UNWOUND,
	RC_STACK_AT_FAULT /* the first is the instruction itself, no return address */
};

struct rc_stack {
	uint64_t hash;  /* of the key */
	uint64_t outer; /* of all frames but the first: who called the function that called us */
	uint8_t n;
	uint8_t n_key; /* so many frames are what is looked for */
	uint8_t kind;
	bool cut; /* there may be more frames */
	void *frames[RC_FRAMES];
};

/* -> false: nothing can be kept */
bool rc_stack_init(void);
/* Finds the modes of unwinding out of the way of the first operation. Any thread. ra, frame: the return address of the
 * library's function and its frame pointer. -> number, 0 when it cannot be kept */
uint32_t rc_stack_capture(void *ra, void *frame);
/* What a signal handler was entered at. */
uint32_t rc_stack_capture_at(void *pc);
/* NULL for 0. */
const struct rc_stack *rc_stack_of(uint32_t number);
/* Begin of the function around a code address, by the unwind tables of the module; 0 when they do not say. */
uintptr_t rc_function_start(uintptr_t pc);
/* Is it code of libc, which starts and ends programs and threads? */
bool rc_function_in_libc(uintptr_t pc);

void rc_stack_lock(void);
void rc_stack_unlock(void);

#define RC_CAPTURE() rc_stack_capture(__builtin_return_address(0), __builtin_frame_address(0))

#endif
