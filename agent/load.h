/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Loads of the program's memory, and stores to its stack. One that faults costs the program nothing: the tracer sees
 * the signal first, finds the instruction in the table of fixups, and lets the thread go on there (agent_fault() in
 * src/engine/agent.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/agent.h"

#define RT_LOAD(type, instruction, out) \
	static inline bool load_##type(uint64_t at, uint64_t *ret) \
	{ \
		uint64_t v, bad = 0; \
\
		asm volatile("1:	" instruction " (%2), " out "\n" \
			     "2:\n" \
			     ".pushsection .text.fixup, \"ax\"\n" \
			     "3:	mov $1, %k1\n" \
			     "	xor %k0, %k0\n" \
			     "	jmp 2b\n" \
			     ".popsection\n" \
			     ".pushsection .fixups, \"a\"\n" \
			     "	.long 1b - ., 3b - .\n" \
			     ".popsection\n" \
			     : "=&r"(v), "+r"(bad) \
			     : "r"(at)); \
		*ret = v; \
		return !bad; \
	}

RT_LOAD(u64, "movq", "%0")
RT_LOAD(u32, "movl", "%k0")
RT_LOAD(u16, "movzwl", "%k0")
RT_LOAD(u8, "movzbl", "%k0")

/* The word at base[place]; 0 and *bad, which is never taken back, where it faults. */
static inline uint64_t load_at(uint64_t base, uint64_t place, uint64_t *bad)
{
	uint64_t v;

	asm volatile("1:	movq (%2,%3,8), %0\n"
		     "2:\n"
		     ".pushsection .text.fixup, \"ax\"\n"
		     "3:	mov $1, %k1\n"
		     "	xor %k0, %k0\n"
		     "	jmp 2b\n"
		     ".popsection\n"
		     ".pushsection .fixups, \"a\"\n"
		     "	.long 1b - ., 3b - .\n"
		     ".popsection\n"
		     : "=&r"(v), "+r"(*bad)
		     : "r"(base), "r"(place));
	return v;
}

/* Nothing is stored where it faults. */
static inline void store_u64(uint64_t at, uint64_t v)
{
	asm volatile("1:	movq %0, (%1)\n"
		     "2:\n"
		     ".pushsection .text.fixup, \"ax\"\n"
		     "3:	jmp 2b\n"
		     ".popsection\n"
		     ".pushsection .fixups, \"a\"\n"
		     "	.long 1b - ., 3b - .\n"
		     ".popsection\n"
		     :
		     : "r"(v), "r"(at)
		     : "memory");
}

/* Goes to the label `other` where the word at base[place] is not v, or cannot be read. */
#define EXPECT_AT(base, place, v, other) \
	asm goto("1:	cmpq %2, (%0,%1,8)\n" \
		 "	jne %l[" #other "]\n" \
		 ".pushsection .fixups, \"a\"\n" \
		 "	.long 1b - ., %l[" #other "] - .\n" \
		 ".popsection\n" \
		 : \
		 : "r"((uint64_t)(base)), "r"((uint64_t)(place)), "r"((uint64_t)(v)) \
		 : "cc" \
		 : other)

/* size 1, 2, 4 or 8 */
static inline bool load_size(uint64_t at, uint32_t size, uint64_t *ret)
{
	if (size == 8)
		return load_u64(at, ret);
	if (size == 4)
		return load_u32(at, ret);
	return size == 2 ? load_u16(at, ret) : load_u8(at, ret);
}
