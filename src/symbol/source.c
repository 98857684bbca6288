/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines of source files. A file is read once and kept. Names come from debug
 * info, which anybody may have written: only regular files of a sane size.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "symbol/parts.h"

#define RT_SOURCE_MAX (16u << 20)     /* bytes of one file */
#define RT_SOURCES_MAX (256ull << 20) /* bytes of all */

static bool split(struct rt_chain_source *source, size_t size)
{
	char *at = source->text, *end = at + size;

	while (at < end) {
		char *stop = memchr(at, '\n', end - at);

		if (!stop)
			stop = end;
		if (!rt_vec_push(&source->lines, at))
			return false;
		*stop = '\0';
		if (stop > at && stop[-1] == '\r')
			stop[-1] = '\0';
		at = stop + 1;
	}
	return true;
}

/* A copy that was kept with the recording, else the file where debug info says. -1: neither */
static int open_source(struct rt_chain *chain, const char *file, bool *ret_kept)
{
	_cleanup_free_ char *plain = rt_fs_plain_path(file), *kept = NULL, *path = rt_chain_path(chain, file);
	struct rt_error *err;
	int fd = -1;

	*ret_kept = false;
	if (chain->options.sources && plain && asprintf(&kept, "%s%s", chain->options.sources, plain) >= 0) {
		err = rt_fs_open_file(AT_FDCWD, kept, true, &fd);
		*ret_kept = !err;
		rt_error_free(err);
	}
	if (fd < 0 && path)
		rt_error_free(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	return fd;
}

/* Leaves source->text NULL when the file cannot be used. */
static void read_source(struct rt_chain *chain, const char *file, struct rt_chain_source *source)
{
	_cleanup_free_ char *text = NULL;
	bool kept;
	_cleanup_close_ int fd = open_source(chain, file, &kept);
	struct stat st;
	size_t have = 0;

	if (fd < 0)
		return;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > RT_SOURCE_MAX ||
	    chain->source_bytes + st.st_size > RT_SOURCES_MAX)
		return;
	text = malloc(st.st_size + 1);
	if (!text)
		return;
	while (have < (size_t)st.st_size) {
		ssize_t n = pread(fd, text + have, st.st_size - have, have);

		if (n <= 0)
			break;
		have += n;
	}
	text[have] = '\0';
	/* a kept copy is the file as it was */
	source->mtime = kept ? (struct timespec){ 0 } : st.st_mtim;
	source->text = rt_take(text);
	chain->source_bytes += have;
	if (!split(source, have))
		rt_vec_clear(&source->lines);
}

/* NULL: out of memory */
static struct rt_chain_source *get_source(struct rt_chain *chain, const char *file)
{
	uint32_t id = rt_intern_string(&chain->strings, file);
	uint64_t *slot = id ? rt_map_put(&chain->source_by_name, rt_key_make(id, 0), NULL) : NULL;
	struct rt_chain_source *source;

	if (!slot)
		return NULL;
	if (*slot)
		return &chain->sources.data[*slot - 1];
	source = rt_vec_add(&chain->sources);
	if (!source)
		return NULL;
	*slot = chain->sources.len;
	read_source(chain, file, source);
	return source;
}

static void read_mtime(struct rt_chain *chain, struct rt_chain_module *module)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (module->mtime_tried)
		return;
	module->mtime_tried = true;
	path = module->path[0] == '/' ? rt_chain_path(chain, module->path) : NULL;
	if (path && stat(path, &st) == 0) {
		module->mtime = st.st_mtim;
		module->mtime_known = true;
	}
}

static bool newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

const char *rt_chain_source_line(struct rt_chain *chain, struct rt_chain_module *module, const char *file,
				 uint32_t line, bool *ret_stale)
{
	struct rt_chain_source *source;

	if (chain->options.no_source || file[0] != '/' || !line)
		return NULL;
	source = get_source(chain, file);
	if (!source || !source->text)
		return NULL;
	if (module) {
		read_mtime(chain, module);
		if (module->mtime_known && newer(&source->mtime, &module->mtime)) {
			*ret_stale = true;
			return NULL;
		}
	}
	return line <= source->lines.len ? source->lines.data[line - 1] : NULL;
}
