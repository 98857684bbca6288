/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Instructions of x86-64 in another place: what they do there is what they did where they were. For an engine that
 * puts a jump over them.
 */
#pragma once

#include "insn/insn.h"

enum {
	RT_MOVE_JUMP = 5, /* bytes of a jump that reaches 2 GiB */
	RT_MOVE_MAX = 48, /* bytes that one moved instruction may take */
};

/* Whether the instruction whose bytes code begins with can be moved. A call only as the last one: it returns behind
 * its old place. */
bool rt_insn_moves(struct rt_bytes code, const struct rt_insn *insn);

/*
 * Writes to out, of RT_MOVE_MAX bytes, what does at address `to` what the instruction of code does at `from`, both
 * in the running process; insn is of the same bytes. *ret: how many bytes. false: it cannot be moved, or what it refers
 * to is farther than 2 GiB from there.
 */
bool rt_insn_move(struct rt_bytes code, const struct rt_insn *insn, uint64_t from, uint64_t to, uint8_t *out,
		  size_t *ret);
/* jmp to an address anywhere: 14 bytes. Returns how many. */
size_t rt_insn_jump(uint64_t target, uint8_t *out);
