/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/mapped.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vec.h"

int rt_mapped_file(uint32_t pid, const struct rt_maps_line *line)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)line->start,
		 (unsigned long long)line->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	if (fd >= 0) {
		close(fd);
		return -1;
	}
	if (line->deleted || snprintf(path, sizeof(path), "/proc/%u/root%s", pid, line->path) >= (int)sizeof(path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != line->inode || major(st.st_dev) != line->dev_major ||
	    minor(st.st_dev) != line->dev_minor) {
		close(fd);
		return -1;
	}
	return fd;
}

bool rt_numbers_in(const char *path, uint32_t **ret, size_t *ret_count)
{
	RT_VEC(uint32_t) list = { 0 };
	DIR *dir = opendir(path);
	bool ok = dir != NULL;

	for (struct dirent *e; ok && (e = readdir(dir));) {
		uint64_t number;

		if (rt_parse_u64(e->d_name, strlen(e->d_name), 10, &number) && number <= INT32_MAX)
			ok = rt_vec_push(&list, (uint32_t)number);
	}
	if (dir)
		closedir(dir);
	*ret = list.data;
	*ret_count = list.len;
	return ok;
}
