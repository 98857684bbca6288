/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps hold of every executable file that a recorded process maps, at the
 * time when it is mapped, so that a report has the file that ran and not the one that lies
 * at its path later: it may have been deleted, built anew, or seen by the process alone.
 *
 * A file is opened through the mapping (/proc/PID/map_files, or exe); without
 * the privilege for that by its path below /proc/PID/root, and taken only when
 * it holds the build-id of the mapping. What a package has installed is held by an open file: it
 * is replaced by rename, never written to. Anything else (young files, files of ordinary
 * users, deleted ones, other file systems) is set aside as a copy at once, so that we neither see later changes
 * nor keep a file system busy.
 *
 * At the end those that were hit go into the build-id cache that perf uses, too. Nothing of this ends a recording.
 * One thread.
 */
#pragma once

#include <sys/types.h>

#include "cache/cache.h"
#include "elf/image.h"
#include "event/stream.h"

struct rt_binaries;

struct rt_binaries_options {
	const char *root; /* of the cache; NULL: see rt_cache_open() */
	bool all;         /* keep every mapped file, hit or not */
	bool as_user;     /* we are root: the cache and what is put into it belong to uid and gid */
	uid_t uid;
	gid_t gid;
};

/* Opens the cache (makes its root where it is missing). Errors of rt_cache_open(). root need not outlive the call. */
RT_CHECK struct rt_error *rt_binaries_create(const struct rt_binaries_options *options, struct rt_binaries **ret);

/* Takes every record of the stream: mappings, stacks, samples. Only memory makes it fail. */
RT_CHECK struct rt_error *rt_binaries_record(struct rt_binaries *binaries, const struct rt_wire_head *record);

/* The file behind module of the stream; fd is the caller's. Before the MAP records that name the module. */
RT_CHECK struct rt_error *rt_binaries_module(struct rt_binaries *binaries, uint32_t module,
					     const struct rt_image *image, int fd);

struct rt_binaries_result {
	size_t kept;              /* files that are new in the cache */
	size_t known;             /* that it had */
	size_t missing;           /* that were hit and cannot be kept */
	bool kernel, vdso;        /* samples hit the kernel, or the code that it gives to each process */
	struct rt_error *failure; /* why the first of these cannot; owned by the caller */
};

/* Puts what was hit until now into the cache. May be called again. */
RT_CHECK struct rt_error *rt_binaries_put(struct rt_binaries *binaries, struct rt_binaries_result *ret);

void rt_binaries_destroy(struct rt_binaries *binaries);
RT_CLEANUP(struct rt_binaries *, rt_binaries_destroy);
