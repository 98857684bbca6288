/* SPDX-License-Identifier: GPL-2.0-only */
/* What belongs to a recording: found and put into an archive, or taken out of one. */
#pragma once

#include "archive/archive.h"

struct rt_bundle_counts {
	size_t files, missing;
};

/*
 * Reads the recording, looks which modules and source files its stacks and samples name, and writes them all as an
 * archive. What cannot be had is noted in it. RT_E_TRUNCATED of a damaged recording is no obstacle.
 */
RT_CHECK struct rt_error *rt_bundle_write(const char *recording, const char *symfs, struct rt_sink *sink,
					  struct rt_bundle_counts *ret);

/*
 * Unpacks into folder, which must not be there yet, or be empty: the recording, a build-id cache .debug, sources.
 * *ret_recording: the recording's name in it; caller frees; NULL when the archive holds none.
 */
RT_CHECK struct rt_error *rt_bundle_unpack(struct rt_archive *archive, const char *folder, char **ret_recording);
