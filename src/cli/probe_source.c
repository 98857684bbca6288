/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/probe_source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "report/words.h"

enum { SOURCE_MAX = 16 << 20 };

/* -1: not below the folder of --source-dir */
static int open_below(struct rt_listing *file, const char *path)
{
	const char *dir = file->options->list.sources;
	int fd = -1;

	for (const char *part = path; dir && part && fd < 0; part = strchr(part + 1, '/')) {
		const char *whole = rt_format(&file->arena, "%s%s%s", dir, part[0] == '/' ? "" : "/", part);

		rt_error_free(rt_fs_open_file(AT_FDCWD, whole, false, &fd));
	}
	return fd;
}

static bool is_newer(int fd, const struct timespec *than)
{
	struct stat st;

	return than->tv_sec && fstat(fd, &st) == 0 &&
	       (st.st_mtim.tv_sec > than->tv_sec ||
		(st.st_mtim.tv_sec == than->tv_sec && st.st_mtim.tv_nsec > than->tv_nsec));
}

static bool split(struct rt_probe_source *source)
{
	for (char *at = source->text; *at;) {
		size_t len = strcspn(at, "\n");

		if (!rt_vec_push(&source->lines, at))
			return false;
		if (!at[len])
			break;
		at[len] = '\0';
		at += len + 1;
	}
	return true;
}

void rt_probe_source_read(struct rt_listing *file, const char *path, struct rt_probe_source *ret)
{
	_cleanup_close_ int fd = open_below(file, path);
	struct rt_error *err = NULL;

	*ret = (struct rt_probe_source){ 0 };
	if (fd < 0 && path[0] != '/')
		err = rt_error_new(RT_E_NOT_FOUND, "debug information does not tell the folder of %s", path);
	else if (fd < 0)
		err = rt_fs_open_inside(file->root, path, &fd);
	if (!err)
		err = rt_fs_read_fd(fd, path, SOURCE_MAX, &ret->text, NULL);
	if (!err && !split(ret))
		err = rt_error_nomem();
	if (err) {
		ret->why = rt_format(&file->arena, "%s", err->message);
		rt_error_free(err);
		return;
	}
	ret->newer = is_newer(fd, &file->mtime);
}

void rt_probe_source_deinit(struct rt_probe_source *source)
{
	rt_vec_deinit(&source->lines);
	free(source->text);
}

const char *rt_probe_source_line(const struct rt_probe_source *source, uint32_t line)
{
	return line && line <= source->lines.len ? source->lines.data[line - 1] : NULL;
}
