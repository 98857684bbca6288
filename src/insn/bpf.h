/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * eBPF instructions as text, in the style of the kernel's verifier log and of
 * `bpftool prog dump xlated`. Source of the encoding: the kernel's
 * Documentation/bpf/standardization/instruction-set.rst and kernel/bpf/disasm.c;
 * known are the instructions and helpers of Linux 6.18.
 *
 * Positions count instructions of 8 bytes from the program's start; the load of
 * a 64-bit constant takes two of them.
 */
#pragma once

#include "base/bytes.h"

enum { RT_BPF_INSN_BYTES = 8 };

struct rt_bpf_insn {
	uint8_t code, dst, src;
	bool wide; /* takes two places: imm_high is valid */
	int16_t off;
	int32_t imm, imm_high;
};

/* The instruction at position index of code. false: not 8 bytes there. */
bool rt_bpf_decode(struct rt_bytes code, bool big_endian, size_t index, struct rt_bpf_insn *ret);

/*
 * Where the instruction at index jumps to, or which place it calls within the
 * program: a position, which may lie outside of it. false: it does neither.
 */
bool rt_bpf_target(const struct rt_bpf_insn *insn, size_t index, int64_t *ret);
/* A call of another function of the program; a call of the kernel (helper or kernel function). */
bool rt_bpf_is_subcall(const struct rt_bpf_insn *insn);
bool rt_bpf_is_kernel_call(const struct rt_bpf_insn *insn);

/* What only the owner of the program knows. Each may be NULL and may answer NULL; answers are used at once. */
struct rt_bpf_naming {
	void *arg;
	const char *(*map)(void *arg, uint32_t id);
	/* imm of a call: a helper's number, or in a loaded program its distance from __bpf_call_base */
	const char *(*helper)(void *arg, int32_t imm);
	/* of a call within the program: the called function's number (in a loaded program), and its position */
	const char *(*function)(void *arg, int32_t number, int64_t position);
};

/*
 * Writes the instruction at index as text ("r1 = *(u64 *)(r6 + 8)"), cut to size
 * - 1 bytes and NUL-terminated. Returns the length of what stands there.
 * naming may be NULL. Unknown instructions are "unknown (0x..)".
 */
size_t rt_bpf_text(const struct rt_bpf_insn *insn, size_t index, const struct rt_bpf_naming *naming, char *text,
		   size_t size);

/* "bpf_map_lookup_elem" for 1; NULL for numbers that are no helper. Static string. */
const char *rt_bpf_helper_name(uint32_t number);
