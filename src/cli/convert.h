/* SPDX-License-Identifier: GPL-2.0-only */
/* From the crash-safe spool of a run to the perf.data that stays. */
#pragma once

#include "recording/to_perf.h"

/*
 * Writes the recording of the spool at path as perf.data in its place: into a new file beside it, which then takes the
 * name. Until that the spool is there; when it fails, it stays (RT_E_DISK_FULL and others say so). kallsyms: see
 * rt_to_perf_options. result->damage is the caller's to free.
 */
RT_CHECK struct rt_error *rt_convert_in_place(const char *path, struct rt_to_perf_result *result, uint64_t *ret_bytes);
/* The same into a stream (a pipe) or another file; the spool stays. */
RT_CHECK struct rt_error *rt_convert_to(const char *path, int fd, const char *name, bool pipe,
					struct rt_to_perf_result *result, uint64_t *ret_bytes);
