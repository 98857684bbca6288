/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An archive: a recording with everything that is needed to read it on another
 * machine. A zstd-compressed tar of plain files:
 *
 *     NAME                     the recording
 *     objects/<build-id>/elf   binaries; debug, probes, kallsyms beside it
 *     sources/<path>           source files
 *     MANIFEST                 what is in it, with hashes, and what is missing
 *
 * MANIFEST, one line each, fields parted by one blank, the last one to the end
 * of the line:
 *
 *     reftrace-archive 1
 *     item <sha256> <bytes> <build-id or -> <origin>
 *     path <path in the archive>                        of the item before
 *     missing <build-id or -> <origin>
 *     why <text>                                        of the missing before
 *
 * Links, devices, folders, and paths that lead elsewhere are not part of the format and end the reading.
 */
#pragma once

#include "base/bytes.h"
#include "base/sink.h"

struct rt_archive_writer;

RT_CHECK struct rt_error *rt_archive_writer_create(struct rt_sink *sink, struct rt_archive_writer **ret);
void rt_archive_writer_destroy(struct rt_archive_writer *writer);
RT_CLEANUP(struct rt_archive_writer *, rt_archive_writer_destroy);

/*
 * Adds a file under path. build_id: lower-case hex, NULL = none; origin: where it was seen. RT_E_FORMAT for a path
 * that could not be read back. The same path twice: the first one stays.
 */
RT_CHECK struct rt_error *rt_archive_add(struct rt_archive_writer *writer, const char *path, const char *build_id,
					 const char *origin, struct rt_bytes bytes);
/* Notes what should be there and is not. */
RT_CHECK struct rt_error *rt_archive_miss(struct rt_archive_writer *writer, const char *build_id, const char *origin,
					  const char *why);
/* Writes the manifest and ends the tar. The sink is not flushed to its end: rt_sink_end(). */
RT_CHECK struct rt_error *rt_archive_end(struct rt_archive_writer *writer);

/* An item or, with why, something that is missing. Strings live as long as the archive. */
struct rt_archive_item {
	const char *path;     /* in the archive; NULL: missing */
	const char *build_id; /* hex; NULL = none */
	const char *origin;
	const char *why; /* of a missing one; else NULL */
	uint64_t bytes;
	uint8_t sha256[32];
};

struct rt_archive;

struct rt_archive_limits {
	uint64_t bytes; /* of all files together, 0 = 16 GiB: a small archive may unpack to very much */
	uint64_t files; /* 0 = 100000 */
};

/*
 * Reads the whole archive once: format, paths, limits, every hash. bytes outlive it. RT_E_FORMAT when it is no
 * archive of this kind or holds what none may hold, RT_E_TRUNCATED when it ends early, RT_E_LIMIT.
 */
RT_CHECK struct rt_error *rt_archive_open(struct rt_bytes bytes, const char *name,
					  const struct rt_archive_limits *limits, struct rt_archive **ret);
void rt_archive_close(struct rt_archive *archive);
RT_CLEANUP(struct rt_archive *, rt_archive_close);

/* In the order of the archive. */
const struct rt_archive_item *rt_archive_items(const struct rt_archive *archive, size_t *ret_count);

/* Hands out the items' contents one after another, each checked against its hash. bytes are valid during the call. */
RT_CHECK struct rt_error *rt_archive_each(struct rt_archive *archive,
					  struct rt_error *(*take)(void *arg, const struct rt_archive_item *item,
								   struct rt_bytes bytes),
					  void *arg);
