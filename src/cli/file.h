/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that reftrace writes: under sudo they belong to the user who called it. */
#pragma once

#include "base/error.h"
#include "base/sink.h"

/*
 * Creates or empties path for writing; *ret is an O_CLOEXEC fd that the caller closes. RT_E_UNWRITABLE, also for a
 * plain file that another reftrace, or this one, has from here and has not closed yet.
 */
RT_CHECK struct rt_error *rt_file_create(const char *path, int *ret);

/*
 * A new file that is to take the place of path when it is complete, by rt_file_replace(): without a name where the file
 * system has such files, so that nothing is left of it when we are killed; else *ret_name is it (caller frees).
 */
RT_CHECK struct rt_error *rt_file_create_unnamed(const char *path, int *ret, char **ret_name);
/*
 * Puts it there in one step. It keeps its name, or has none, when that fails. One without a name is given one just
 * before: who is killed then leaves it, whole, beside path, which is as it was.
 */
RT_CHECK struct rt_error *rt_file_replace(int fd, const char *name, const char *path);

/* true, and the ids of the user behind sudo, when we run as root for one. */
bool rt_invoking_user(uid_t *ret_uid, gid_t *ret_gid);

/*
 * The build-id cache of the user behind sudo: a report of that user looks there. *ret NULL: nobody is behind us, or
 * PERF_BUILDID_DIR names one: as rt_cache_open() says. Caller frees.
 */
RT_CHECK struct rt_error *rt_user_cache_root(char **ret);
