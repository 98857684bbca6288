/* SPDX-License-Identifier: GPL-2.0-only */
/* The file behind a mapping: where it can be reached, and whether it will last. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/fs.h"
#include "session/binaries_priv.h"

/* A younger file may be one that its maker writes to again. */
#define YOUNG_SECONDS 86400

/* path below root, whose links stay below it, too. Nothing but a regular file is opened for reading. -1: none */
static int open_below(int root, const char *path)
{
	const uint64_t resolve = RESOLVE_NO_MAGICLINKS | (root == AT_FDCWD ? 0 : RESOLVE_IN_ROOT);
	_cleanup_close_ int place = -1;
	char self[64];
	struct stat st;

	place = rt_fs_openat2(root, path, O_PATH | O_CLOEXEC, resolve);
	if (place < 0 || fstat(place, &st) || !S_ISREG(st.st_mode))
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	return open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* A link of /proc that leads to a file itself, deleted or not. */
static int open_link(const char *path)
{
	_cleanup_close_ int place = open(path, O_PATH | O_CLOEXEC);
	char self[64];
	struct stat st;

	if (place < 0 || fstat(place, &st) || !S_ISREG(st.st_mode))
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	return open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

int rt_mapped_root(uint32_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int open_candidate(const struct rt_mapped_file *file, unsigned n)
{
	_cleanup_close_ int root = -1;
	char path[96];

	if (n < 3 && !file->pid)
		return -1;
	switch (n) {
	case 0: /* needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE */
		snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, file->pid, file->start,
			 file->end);
		return open_link(path);
	case 1:
		snprintf(path, sizeof(path), "/proc/%u/exe", file->pid);
		return open_link(path);
	case 2:
		root = rt_mapped_root(file->pid);
		return root < 0 ? -1 : open_below(root, file->path);
	default: /* the process is gone; most live in the same tree as we */
		return open_below(AT_FDCWD, file->path);
	}
}

int rt_mapped_open(const struct rt_mapped_file *file)
{
	for (unsigned n = 0; n < 4; n++) {
		_cleanup_close_ int fd = open_candidate(file, n);
		struct rt_build_id id;

		if (fd >= 0 && rt_build_id_of_file(fd, &id) &&
		    rt_build_id_fits(id.id, id.size, file->id->id, file->id->size))
			return rt_take_fd(&fd);
	}
	return -1;
}

bool rt_mapped_is_at(int fd, const char *path)
{
	struct stat have, there;

	return !fstat(fd, &have) && !stat(path, &there) && have.st_ino == there.st_ino && have.st_dev == there.st_dev;
}

/* Is the file system one that the system itself stands on? Others may be unmounted, if we let them. */
static bool is_system_device(dev_t dev)
{
	static const char *const places[] = { "/", "/usr" };
	struct stat st;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!stat(places[i], &st) && st.st_dev == dev)
			return true;
	}
	return false;
}

bool rt_mapped_is_fleeting(int fd, const char *path)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs) || !st.st_nlink || st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH))
		return true;
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC || !is_system_device(st.st_dev))
		return true;
	if (!strncmp(path, "/tmp/", 5) || !strncmp(path, "/var/tmp/", 9) || time(NULL) - st.st_mtime < YOUNG_SECONDS)
		return true;
	return !rt_mapped_is_at(fd, path);
}

/* Does the file debug lie in the folder of path, or in .debug there? */
static bool is_beside(const char *path, const char *debug)
{
	const char *slash = strrchr(path, '/'), *other = strrchr(debug, '/');
	size_t folder, has;

	if (!slash || !other)
		return false;
	folder = (size_t)(slash - path);
	has = (size_t)(other - debug);
	if (strncmp(path, debug, folder) != 0)
		return false;
	return has == folder || (has == folder + 7 && !strncmp(debug + folder, "/.debug", 7));
}

int rt_mapped_debug(int fd, const char *path, int root, bool anywhere)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_free_ char *real = root == AT_FDCWD ? realpath(path, NULL) : NULL;
	struct rt_error *err = rt_image_open_fd(fd, path, &image);

	if (!err)
		err = rt_image_find_debug(image, root);
	if (err) {
		rt_error_free(err);
		return -1;
	}
	if (!image->debug || !(anywhere || is_beside(real ?: path, image->debug->name)))
		return -1;
	return open_below(root, image->debug->name);
}
