/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every look at /proc, /sys and the file system starts from a directory fd, so
 * that a test can hand in a tree of its own, and so that a path that a user
 * could swap is opened once and then only used through its fd.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/error.h"

/*
 * Whole contents of path below dirfd (AT_FDCWD: as given), at most max bytes
 * (RT_E_LIMIT when longer), NUL-terminated for convenience. *ret is owned by
 * the caller; ret_size may be NULL. RT_E_NOT_FOUND for ENOENT/ESRCH, else RT_E_UNREADABLE.
 */
RT_CHECK struct rt_error *rt_fs_read(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size);

/* The same from where an open file stands; name is for messages. For files that others may cut meanwhile. */
RT_CHECK struct rt_error *rt_fs_read_fd(int fd, const char *name, size_t max, char **ret, size_t *ret_size);

/*
 * Opens an existing regular file for reading, without following a symbolic link
 * in its last part when nofollow is set. Refuses other kinds of file. *ret is
 * an O_CLOEXEC fd that the caller closes.
 */
RT_CHECK struct rt_error *rt_fs_open_file(int dirfd, const char *path, bool nofollow, int *ret);

/*
 * As openat2(2), resolve: RESOLVE_BENEATH, ... The kernel gives up (EAGAIN) on a ".." while somebody renames or mounts
 * anything anywhere, since it cannot tell then that the path stays inside: that is tried again.
 */
int rt_fs_openat2(int dirfd, const char *path, int flags, uint64_t resolve);

/*
 * The same as a process sees it that has the directory root as its "/": relative paths begin there, and neither ".."
 * nor a symbolic link leads out of it. root AT_FDCWD: as rt_fs_open_file() does.
 */
RT_CHECK struct rt_error *rt_fs_open_inside(int root, const char *path, int *ret);

/*
 * Read-only mapping of a whole file, which shows what others write to it; rt_fs_unmap() ends it. Empty files give size
 * 0. Others may also cut it meanwhile, and reading what is gone is SIGBUS: see rt_fs_survive_cuts(). Any thread.
 */
RT_CHECK struct rt_error *rt_fs_map(int fd, const char *name, struct rt_bytes *ret);
void rt_fs_unmap(struct rt_bytes bytes);

/*
 * From now on what is gone from a mapped file reads as zeroes, in any thread that does not block SIGBUS; any other
 * SIGBUS ends the process as before. Handlers do not go with exec.
 */
void rt_fs_survive_cuts(void);
/* RT_E_TRUNCATED: zeroes were read instead of what the file had. Zeroes in bytes that are not of rt_fs_map() are fine.
 */
RT_CHECK struct rt_error *rt_fs_whole(struct rt_bytes bytes);
/* The same of all files that were ever mapped; the first one is named. */
RT_CHECK struct rt_error *rt_fs_all_whole(void);

/* An absolute path without its ".", ".." and empty parts, by its letters alone (links are not looked at). Caller frees;
 * NULL: out of memory. */
char *rt_fs_plain_path(const char *path);

/* The last part of a path: "/usr/bin/x" -> "x"; path itself where it ends with a slash. Points into path. */
const char *rt_basename(const char *path);

/*
 * From now on this thread's files are made and looked up with the rights of this user alone, and belong to it; its
 * other rights stay. Back with geteuid() and getegid(). For root who works in another user's folders, whose links may
 * lead anywhere.
 */
void rt_fs_act_as(uid_t uid, gid_t gid);
