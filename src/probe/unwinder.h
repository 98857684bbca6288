/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a module unwinds stacks: by exceptions, at the end of a thread, for backtrace(). An engine that replaces return
 * addresses has to put them right before that, and can replace those of the frames that live on again behind it.
 */
#pragma once

#include "base/vec.h"
#include "elf/symtab.h"

struct rt_unwinder {
	enum {
		RT_UNWINDER_BEGINS,
		RT_UNWINDER_FORCED, /* begins, and the thread will end by it: no frame lives on */
		RT_UNWINDER_OVER,   /* all frames above this one live on, those below are gone */
	} kind;
	struct rt_elfaddr address;
	struct rt_foff offset;
	uint8_t before; /* bytes before it from which on an engine with `room` may write over the code */
	bool no_room;   /* it may not; only a breakpoint has a place there */
};

struct rt_unwinders {
	RT_VEC(struct rt_unwinder) list;
};

/*
 * Appends those of libgcc, of LLVM's and nongnu libunwind, and of the C++ runtime. room: bytes that the engine writes
 * over (struct rt_plan_options). Ends that cannot be told are left out.
 */
RT_CHECK struct rt_error *rt_unwinders_find(const struct rt_image *image, const struct rt_symtab *symtab, uint8_t room,
					    struct rt_unwinders *ret);
