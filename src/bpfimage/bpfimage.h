/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is kept of a BPF program: its bpf_prog_info with every array (JITed
 * instructions, symbols, function lengths and infos, lines, tags, xlated
 * instructions, map ids), and what perf's format has no room for: the loader,
 * times, map names, attach points. Codec only; the kernel is asked in src/bpfprog.
 *
 * Two blobs per program: the entry of perf's BPF_PROG_INFO feature (decode,
 * encode), which perf itself reads, and our own extra part (extra_encode,
 * extra_decode), which a recording keeps beside it.
 *
 * linux/bpf.h names a function that base/banned.h poisons: modules that include
 * this header are compiled with rt_banned_bpf (src/bpfimage/meson.build).
 */
#pragma once

#include <linux/bpf.h>

#include "base/bytes.h"
#include "base/error.h"
#include "bpfimage/btf.h"

/* One function of a program: the main one first. */
struct rt_bpf_function {
	const char *name;    /* "mix_hash", from BTF; the program's name for the main one without; else "" */
	const char *symbol;  /* as the kernel calls it: "bpf_prog_<tag>_<name>" */
	uint64_t address;    /* of the JITed code, 0 = not told */
	uint64_t size;       /* bytes of JITed code, 0 = not told */
	struct rt_bytes jit; /* its own JITed instructions; empty = not kept */
	uint32_t insn;       /* its first xlated instruction (8 bytes each) */
	uint32_t insns;      /* how many; 0 = not told */
	uint8_t tag[8];
};

/* A source line at an instruction; strings point into the BTF, "" = unknown. */
struct rt_bpf_line {
	uint32_t insn;    /* xlated instruction index */
	uint64_t address; /* JITed address, 0 = not told */
	const char *file, *text;
	uint32_t line, column; /* from 1; 0 = unknown */
};

/* A kernel symbol that the program's code refers to. */
struct rt_bpf_symbol {
	uint64_t address;
	char *name; /* owned */
};

struct rt_bpf_image {
	/* Pointer fields are 0. Counts are what the kernel reported: what is kept is told by the members below. */
	struct bpf_prog_info info;
	bool big_endian;                   /* order of the xlated instructions */
	struct rt_bpf_function *functions; /* at least one */
	size_t function_count;
	struct rt_bpf_line *lines; /* sorted by insn */
	size_t line_count;
	struct rt_bytes jit, xlated; /* empty = not kept */
	uint32_t *map_ids;
	char **map_names; /* beside map_ids, "" = unknown; owned */
	size_t map_count;
	struct rt_bytes btf; /* as given; empty = none, or not given */
	/* beyond perf's format; strings are malloc'ed and owned by the image */
	char *loader;        /* comm of the process that loaded it, NULL = unknown */
	uint32_t loader_pid; /* 0 = unknown: loaded before we looked */
	uint64_t load_ns, unload_ns;
	char **attached; /* "tracepoint sched/sched_switch", "link 12 pid 345": what the kernel told */
	size_t attached_count;
	char *lost;                    /* what could not be kept, and why; NULL = all was */
	uint64_t call_base;            /* address of the kernel's __bpf_call_base, 0 = unknown */
	struct rt_bpf_symbol *symbols; /* sorted by address: helpers and kernel functions that it calls */
	size_t symbol_count;
	void *storage; /* owns what has no owner above */
};

/*
 * Decodes the entry of perf's BPF_PROG_INFO feature: u32 info_len, u32 data_len,
 * u64 arrays, info, data; bytes behind the entry are ignored. An info that is
 * shorter than ours is zero-filled, of a longer one the tail is ignored. Every
 * offset and count is checked. btf may be empty, and may be damaged: then names
 * and lines are missing. Copies what it keeps. RT_E_TRUNCATED, RT_E_FORMAT, RT_E_LIMIT.
 */
RT_CHECK struct rt_error *rt_bpf_image_decode(struct rt_bytes bytes, struct rt_bytes btf, bool big_endian,
					      struct rt_bpf_image **ret);
void rt_bpf_image_destroy(struct rt_bpf_image *image);
RT_CLEANUP(struct rt_bpf_image *, rt_bpf_image_destroy);

/*
 * What the kernel gave, as the entry that rt_bpf_image_decode() reads, in our
 * byte order. info's pointer fields are addresses of our own memory (as after
 * BPF_OBJ_GET_INFO_BY_FD), counts say how many elements lie there; where the
 * pointer is 0 the array is left out and its count written as 0 (perf follows
 * the counts). The info is written with 232 bytes: old readers take no more.
 * *ret is owned by the caller. RT_E_LIMIT above RT_BPF_DATA_MAX.
 */
RT_CHECK struct rt_error *rt_bpf_image_encode(const struct bpf_prog_info *info, uint8_t **ret, size_t *ret_size);

/* perf refuses more data of one program than this. */
#define RT_BPF_DATA_MAX (256u << 20)

/*
 * The fields "beyond perf's format" and the map names, as a blob of their own
 * (little-endian, self-describing; readers skip what they do not know). The
 * blob begins with the program's id and tag. *ret is owned by the caller.
 */
RT_CHECK struct rt_error *rt_bpf_extra_encode(const struct rt_bpf_image *image, uint8_t **ret, size_t *ret_size);

/* Which program the blob is about. RT_E_FORMAT when it is none. ret_tag: 8 bytes. */
RT_CHECK struct rt_error *rt_bpf_extra_about(struct rt_bytes bytes, uint32_t *ret_id, uint8_t *ret_tag);

/*
 * Adds what the blob tells to image. A blob that was cut gives what is whole,
 * and RT_E_TRUNCATED. RT_E_FORMAT when it is no such blob or about another program.
 */
RT_CHECK struct rt_error *rt_bpf_extra_decode(struct rt_bytes bytes, struct rt_bpf_image *image);

/* Setters that keep ownership and order; each copies its text. Names replace older ones; unknown map ids are added. */
RT_CHECK struct rt_error *rt_bpf_image_set_loader(struct rt_bpf_image *image, uint32_t pid, const char *comm);
RT_CHECK struct rt_error *rt_bpf_image_set_map_name(struct rt_bpf_image *image, uint32_t id, const char *name);
RT_CHECK struct rt_error *rt_bpf_image_add_attached(struct rt_bpf_image *image, const char *text);
/* Appends "; text" where something was lost before. */
RT_CHECK struct rt_error *rt_bpf_image_add_lost(struct rt_bpf_image *image, const char *text);
RT_CHECK struct rt_error *rt_bpf_image_add_symbol(struct rt_bpf_image *image, uint64_t address, const char *name);

/*
 * Addresses that the kept xlated instructions call, helpers and kernel
 * functions (image->call_base must be set; else none), each once, ascending:
 * what to look up in kallsyms for rt_bpf_image_add_symbol(). *ret is freed by the caller.
 */
RT_CHECK struct rt_error *rt_bpf_image_calls(const struct rt_bpf_image *image, uint64_t **ret, size_t *ret_count);

/* The function whose JITed code covers address; NULL: none. */
const struct rt_bpf_function *rt_bpf_function_at(const struct rt_bpf_image *image, uint64_t address);
/*
 * The function of this symbol ("bpf_prog_<tag>_<name>", with the program's tag as in the kernel or with the function's
 * as perf synthesizes it) or, where only one has it, this name; NULL: none.
 */
const struct rt_bpf_function *rt_bpf_function_find(const struct rt_bpf_image *image, const char *name);
/* The function that xlated instruction insn belongs to; NULL: not told. */
const struct rt_bpf_function *rt_bpf_function_of_insn(const struct rt_bpf_image *image, uint32_t insn);

/* The source line that is executing at an xlated instruction, or at a JITed address; NULL: not told. */
const struct rt_bpf_line *rt_bpf_line_of_insn(const struct rt_bpf_image *image, uint32_t insn);
const struct rt_bpf_line *rt_bpf_line_at(const struct rt_bpf_image *image, uint64_t address);

/* The kept kernel symbol of exactly this address; NULL: none. */
const char *rt_bpf_symbol_at(const struct rt_bpf_image *image, uint64_t address);
/* Name of map id; NULL: unknown. */
const char *rt_bpf_map_name(const struct rt_bpf_image *image, uint32_t id);
/* The parsed BTF, NULL when there is none that can be read. Lives as long as the image. */
const struct rt_btf *rt_bpf_image_btf(const struct rt_bpf_image *image);
