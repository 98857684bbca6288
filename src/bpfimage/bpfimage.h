/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is kept of a BPF program: its bpf_prog_info with every array (JITed
 * instructions, symbols, function lengths and infos, lines, tags, xlated
 * instructions, map ids), and what perf's format has no room for: the loader,
 * times, map names, attach points. Codec only; the kernel is asked in src/bpfprog.
 */
#pragma once

#include <linux/bpf.h>

#include "base/bytes.h"
#include "base/error.h"

/* One function of a program: the main one first. */
struct rt_bpf_function {
	char *name;          /* "mix_hash", from BTF; the program's name where there is none; owned */
	char *symbol;        /* as the kernel calls it: "bpf_prog_<tag>_<name>"; owned */
	uint64_t address;    /* of the JITed code, 0 = not told */
	struct rt_bytes jit; /* its own JITed instructions */
	uint32_t insn;       /* its first xlated instruction */
	uint32_t insns;      /* how many */
	uint8_t tag[8];
};

/* A source line at an instruction; strings point into the BTF. */
struct rt_bpf_line {
	uint32_t insn;    /* xlated instruction index */
	uint64_t address; /* JITed address, 0 = not told */
	const char *file, *text;
	uint32_t line, column; /* from 1; 0 = unknown */
};

struct rt_bpf_image {
	struct bpf_prog_info info; /* pointer fields are 0; counts are those of the kept arrays */
	struct rt_bpf_function *functions;
	size_t function_count;
	struct rt_bpf_line *lines; /* by function and address */
	size_t line_count;
	struct rt_bytes jit, xlated;
	uint32_t *map_ids;
	char **map_names; /* beside map_ids, "" = unknown */
	size_t map_count;
	struct rt_bytes btf; /* empty = none, or not given yet */
	/* beyond perf's format */
	char *loader;        /* comm of the process that loaded it, NULL = unknown */
	uint32_t loader_pid; /* 0 = unknown: loaded before we looked */
	uint64_t load_ns, unload_ns;
	char **attached; /* "tracepoint sched/sched_switch", "link 12 pid 345": what the kernel told */
	size_t attached_count;
	char *lost;    /* what could not be kept, and why; NULL = all was */
	void *storage; /* owns the bytes above */
};

/*
 * Decodes the entry of perf's BPF_PROG_INFO feature (u32 info_len, u32 data_len,
 * u64 arrays, info, data), optionally followed by our own extra part. Every
 * offset and count is checked. btf may be empty. Copies what it keeps.
 */
RT_CHECK struct rt_error *rt_bpf_image_decode(struct rt_bytes bytes, struct rt_bytes btf, bool big_endian,
					      struct rt_bpf_image **ret);
void rt_bpf_image_destroy(struct rt_bpf_image *image);
RT_CLEANUP(struct rt_bpf_image *, rt_bpf_image_destroy);

/*
 * What the kernel gave, as the entry that rt_bpf_image_decode() reads. info's pointer fields are addresses of our
 * own memory (as after BPF_OBJ_GET_INFO_BY_FD), counts say how many elements lie there. info_len is cut to 232.
 * *ret is owned by the caller.
 */
RT_CHECK struct rt_error *rt_bpf_image_encode(const struct bpf_prog_info *info, uint8_t **ret, size_t *ret_size);
