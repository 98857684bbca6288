/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of binaries share. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "elf/build_id.h"
#include "session/binaries.h"

/* ---- binary_file.c: finding and judging a mapped file ---- */

struct rt_mapped_file {
	uint32_t pid;        /* 0: nobody's, by path alone */
	uint64_t start, end; /* of the mapping */
	const char *path;    /* as the process sees it */
	const struct rt_build_id *id;
};

/* Opens the file for reading; -1: it cannot be had, or is another one. */
int rt_mapped_open(const struct rt_mapped_file *file);
/* Directory that stands for "/" in a process; -1: none. */
int rt_mapped_root(uint32_t pid);
/* May the file behind fd, which was seen at path, change or vanish, or hold up others while we have it open? */
bool rt_mapped_is_fleeting(int fd, const char *path);
/* Does path still lead us to the file behind fd? */
bool rt_mapped_is_at(int fd, const char *path);
/* Opens the debug file of image if one lies beside path or, with anywhere, wherever; -1: none. root: AT_FDCWD or a
 * directory that stands for "/". */
int rt_mapped_debug(int fd, const char *path, int root, bool anywhere);

/* ---- binary_hits.c: which mappings have stacks and samples in them ---- */

struct rt_hits_map {
	uint64_t start, end;
	uint32_t pid, binary;
};

#define RT_HITS_VDSO UINT32_MAX /* the binary of a mapping that no file is behind */

struct rt_hits {
	bool all;              /* everything counts as hit: asked for, or too much to be kept apart */
	bool kernel;           /* the kernel's own code was hit */
	struct rt_map pages;   /* (pid, address >> 12) -> 1 */
	struct rt_map parents; /* pid -> pid that it was forked from */
	RT_VEC(struct rt_hits_map) maps;
	uint64_t recent[4096]; /* what was noted lately: most addresses come over and over */
};

RT_CHECK struct rt_error *rt_hits_address(struct rt_hits *hits, uint32_t pid, uint64_t address);
RT_CHECK struct rt_error *rt_hits_map(struct rt_hits *hits, uint32_t pid, uint64_t start, uint64_t end,
				      uint32_t binary);
RT_CHECK struct rt_error *rt_hits_fork(struct rt_hits *hits, uint32_t parent, uint32_t child);
/* Calls hit for each mapping that was hit, with its binary (or RT_HITS_VDSO); more than once for one. */
RT_CHECK struct rt_error *rt_hits_each(struct rt_hits *hits, void (*hit)(void *arg, uint32_t binary), void *arg);
void rt_hits_deinit(struct rt_hits *hits);

/* ---- binary_perf.c: perf's records ---- */

struct rt_binaries_mapping {
	struct rt_mapped_file file;
	struct rt_build_id id;
};

/* Notes hits and forks; *ret_map: the record is a mapping of a file, and *ret says which (its path lives as long as the
 * record). sample_types: by ATTR id. */
RT_CHECK struct rt_error *rt_hits_perf(struct rt_hits *hits, const struct rt_map *sample_types,
				       const struct rt_wire_perf *record, struct rt_binaries_mapping *ret,
				       bool *ret_map);
