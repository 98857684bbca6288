/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of bpfimage/ share. Private to bpfimage/. */
#pragma once

#include "base/arena.h"
#include "bpfimage/bpfimage.h"

/* The arrays of a bpf_prog_info, in the order in which perf stores them: bit numbers of "arrays". */
enum rt_bpf_part {
	RT_BPF_JITED_INSNS,
	RT_BPF_XLATED_INSNS,
	RT_BPF_MAP_IDS,
	RT_BPF_JITED_KSYMS,
	RT_BPF_JITED_FUNC_LENS,
	RT_BPF_FUNC_INFO,
	RT_BPF_LINE_INFO,
	RT_BPF_JITED_LINE_INFO,
	RT_BPF_PROG_TAGS,
	RT_BPF_PARTS
};

/* Size of the info in perf.data: all readers know this one. */
#define RT_BPF_INFO_BYTES 232

/* More than the kernel allows (256 functions, 64 maps): bounds for hostile input. */
enum { RT_BPF_FUNCTIONS_MAX = 4096, RT_BPF_MAPS_MAX = 4096, RT_BPF_NAMES_MAX = 8192, RT_BPF_SYMBOL_BYTES = 512 };

/* Where a part is described within struct bpf_prog_info. */
uint64_t rt_bpf_part_pointer(const struct bpf_prog_info *info, enum rt_bpf_part part);
void rt_bpf_part_set_pointer(struct bpf_prog_info *info, enum rt_bpf_part part, uint64_t value);
uint32_t rt_bpf_part_count(const struct bpf_prog_info *info, enum rt_bpf_part part);
void rt_bpf_part_set_count(struct bpf_prog_info *info, enum rt_bpf_part part, uint32_t value);
/* Bytes of one element. */
uint32_t rt_bpf_part_element(const struct bpf_prog_info *info, enum rt_bpf_part part);
/* Bytes that an element has at least. */
uint32_t rt_bpf_part_least(enum rt_bpf_part part);
/* "line_info". Static string. */
const char *rt_bpf_part_name(enum rt_bpf_part part);

/* An info from foreign bytes: shorter ones are zero-filled. */
void rt_bpf_info_read(struct rt_bytes bytes, bool big_endian, struct bpf_prog_info *ret);

/* What an image owns. */
struct rt_bpf_storage {
	struct rt_arena arena;
	struct rt_btf *btf; /* NULL: none that can be read */
};

/* Arrays of one program; bytes are element * count long, or empty. */
struct rt_bpf_array {
	struct rt_bytes bytes;
	uint32_t count, element;
};

/* Fills image->functions and image->lines from info, jit, xlated, the arrays and the BTF. */
RT_CHECK struct rt_error *rt_bpf_functions_make(struct rt_bpf_image *image, const struct rt_bpf_array *parts);
RT_CHECK struct rt_error *rt_bpf_lines_make(struct rt_bpf_image *image, const struct rt_bpf_array *parts);

/* A cursor at element number index of array; false when it has no such. */
bool rt_bpf_array_at(const struct rt_bpf_array *array, uint32_t index, bool big_endian, struct rt_cursor *ret);

/* One xlated instruction, as far as bpfimage/ looks at it. */
struct rt_bpf_call {
	uint8_t code, source;
	int16_t offset;
	int32_t imm;
};
bool rt_bpf_call_read(const struct rt_bpf_image *image, size_t index, struct rt_bpf_call *ret);
