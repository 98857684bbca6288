/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose object does a function return? Follows every path through its code from
 * the calls that may make the object to the returns. What is not understood is no
 * proof: indirect jumps, more than one object on a path, results of other calls.
 */
#pragma once

#include "elf/symtab.h"
#include "probe/track.h"

struct rt_flow_request {
	const struct rt_image *image;
	const struct rt_symtab *symtab; /* may be NULL: then no callee has a name */
	struct rt_decoder *decoder;
	struct rt_elfaddr start, end;           /* the function */
	struct rt_elfaddr cold_start, cold_end; /* its part elsewhere, or 0 */
	const struct rt_elfaddr *calls;         /* the calls whose results are objects */
	size_t call_count;
	int64_t counter; /* bytes from the object; counter_size 0: unknown */
	uint32_t counter_size;
};

/*
 * true: the function returns, on every path, the object that one of the calls
 * gave, or NULL; NULL with an object at hand only where that was passed to another function (which ends
 * it). And those calls make objects: they are of an allocator, or the function stores their first count.
 * Bounded work: a few thousand instructions.
 */
bool rt_flow_returns(const struct rt_flow_request *request);

/* Name of the function that a direct call or jump leads to; NULL: unknown. */
const char *rt_flow_callee(const struct rt_symtab *symtab, const struct rt_insn *insn);
