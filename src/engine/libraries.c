/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "elf/image.h"

#define CACHE "/etc/ld.so.cache"

enum { LIBRARIES_MAX = 1024, SCRIPTS_MAX = 4, CACHE_MAX = 64 << 20 };

struct search {
	const struct rt_libraries_options *options;
	struct rt_libraries *found;
	char *cache; /* text of CACHE; NULL: not read, or there is none */
	size_t cache_size;
	size_t fitted;    /* files that fitted so far, known ones too */
	uint16_t machine; /* of the program, and its class: x32 differs from x86-64 by nothing else */
	bool is_64;
};

void rt_libraries_deinit(struct rt_libraries *l)
{
	for (size_t i = 0; i < l->paths.len; i++)
		free(l->paths.data[i]);
	rt_vec_deinit(&l->paths);
}

/* *ret_fits: an ELF file that the program's linker takes; it may have been there before. */
static struct rt_error *take(struct search *s, const char *path, bool *ret_fits)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err;

	*ret_fits = false;
	if (!real || s->found->paths.len >= LIBRARIES_MAX)
		return NULL;
	for (size_t i = 0; i < s->found->paths.len; i++)
		if (!strcmp(s->found->paths.data[i], real)) {
			*ret_fits = true;
			s->fitted++;
			return NULL;
		}
	err = rt_fs_open_file(AT_FDCWD, real, false, &fd);
	if (!err)
		err = rt_image_open_fd(fd, real, &image);
	if (err && err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	if (!image || (s->machine && (image->machine != s->machine || image->is_64 != s->is_64)))
		return NULL;
	s->machine = image->machine;
	s->is_64 = image->is_64;
	if (!rt_vec_push(&s->found->paths, real))
		return rt_error_nomem();
	(void)rt_take(real);
	*ret_fits = true;
	s->fitted++;
	return NULL;
}

/* Of a list "/a:$ORIGIN/../lib:..." the first folder that has a file that fits; origin: of the file that says it. */
static struct rt_error *take_from_list(struct search *s, const char *list, const char *origin, const char *name)
{
	size_t origin_len = origin ? (size_t)(rt_basename(origin) - origin) : 0;

	for (const char *at = list, *end; at && *at; at = *end ? end + 1 : NULL) {
		static const char *const words[] = { "$ORIGIN", "${ORIGIN}" };
		char path[PATH_MAX];
		size_t skip = 0;
		bool fits;

		end = at + strcspn(at, ":;");
		for (size_t i = 0; i < 2 && !skip; i++)
			skip = !strncmp(at, words[i], strlen(words[i])) ? strlen(words[i]) : 0;
		if (snprintf(path, sizeof(path), "%.*s%.*s/%s", skip ? (int)origin_len : 0, origin ?: "",
			     (int)(end - at - (ptrdiff_t)skip), at + skip, name) >= (int)sizeof(path) ||
		    access(path, R_OK))
			continue;
		RT_TRY(take(s, path, &fits));
		if (fits)
			return NULL;
	}
	return NULL;
}

/* glibc's cache (sysdeps/generic/dl-cache.h): every entry of that name; which one is taken depends on the processor. */
static struct rt_error *take_from_cache(struct search *s, const char *name)
{
	static const char magic[] = "glibc-ld.so.cache1.1";
	struct rt_bytes all = rt_bytes_make(s->cache, s->cache_size);
	struct rt_cursor c = rt_cursor_make(all, false);
	uint32_t count;

	if (s->cache_size < sizeof(magic) - 1 || memcmp(s->cache, magic, sizeof(magic) - 1) != 0)
		return NULL;
	if (!rt_cursor_skip(&c, sizeof(magic) - 1) || !rt_cursor_u32(&c, &count) || !rt_cursor_skip(&c, 24))
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		struct rt_cursor text = c;
		uint32_t flags, key, value;
		const char *is;
		bool fits;

		if (!rt_cursor_u32(&c, &flags) || !rt_cursor_u32(&c, &key) || !rt_cursor_u32(&c, &value) ||
		    !rt_cursor_skip(&c, 12))
			return NULL;
		text.pos = 0;
		if (!rt_cursor_skip(&text, key) || !rt_cursor_string(&text, &is) || strcmp(is, name) != 0)
			continue;
		text.pos = 0;
		if (rt_cursor_skip(&text, value) && rt_cursor_string(&text, &is))
			RT_TRY(take(s, is, &fits));
	}
	return NULL;
}

static struct rt_error *take_library(struct search *s, const char *name, const char *origin, const char *runpath)
{
	static const char usual[] = "/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib:/lib/x86_64-linux-gnu:"
				    "/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu";
	size_t before = s->fitted;
	bool fits;

	if (strchr(name, '/')) {
		RT_TRY(take(s, name, &fits));
	} else {
		RT_TRY(take_from_list(s, runpath, origin, name));
		RT_TRY(take_from_list(s, s->options->library_path, NULL, name));
		RT_TRY(take_from_cache(s, name));
		if (s->fitted == before)
			RT_TRY(take_from_list(s, usual, NULL, name));
	}
	s->found->unsure |= runpath || s->fitted == before;
	return NULL;
}

static struct rt_error *take_needed(struct search *s, const char *path)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_free_ const char **names = NULL;
	const char *runpath;
	size_t count = 0;

	RT_TRY(rt_image_open(path, &image));
	RT_TRY(rt_image_needed(image, &names, &count));
	RT_TRY(rt_image_search_path(image, &runpath));
	for (size_t i = 0; i < count; i++)
		RT_TRY(take_library(s, names[i], path, runpath));
	return NULL;
}

static struct rt_error *take_preloaded(struct search *s)
{
	for (const char *at = s->options->preload; at && *at;) {
		size_t len = strcspn(at, " :");
		_cleanup_free_ char *name = strndup(at, len);

		if (!name)
			return rt_error_nomem();
		if (*name)
			RT_TRY(take_library(s, name, NULL, NULL));
		at += len + !!at[len];
	}
	return NULL;
}

static struct rt_error *take_opened(struct search *s)
{
	const bool unsure = s->found->unsure;

	for (size_t i = 0; i < s->options->opened_count; i++)
		RT_TRY(take_library(s, s->options->opened[i], NULL, NULL));
	s->found->unsure = unsure;
	return NULL;
}

struct rt_error *rt_libraries_of(const char *program, const struct rt_libraries_options *options,
				 struct rt_libraries *ret)
{
	struct search s = { .options = options, .found = ret };
	_cleanup_free_ char *cache = NULL;
	size_t next = ret->paths.len;
	struct rt_error *err;
	bool fits;

	RT_TRY(take(&s, program, &fits));
	if (ret->paths.len == next) {
		ret->unsure |= !fits;
		return NULL;
	}
	rt_error_free(rt_fs_read(AT_FDCWD, CACHE, CACHE_MAX, &cache, &s.cache_size));
	s.cache = cache;
	RT_TRY(take_preloaded(&s));
	RT_TRY(take_opened(&s));
	for (; next < ret->paths.len; next++) {
		err = take_needed(&s, ret->paths.data[next]);
		if (err && err->code == RT_E_NOMEM)
			return err;
		/* what cannot be read any more names no libraries */
		ret->unsure |= err != NULL;
		rt_error_free(err);
	}
	return NULL;
}

/* The file that execvp(3) takes; NULL: none, or out of memory. Caller frees. */
static char *in_path(const char *command)
{
	const char *path = getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin";

	if (strchr(command, '/'))
		return strdup(command);
	for (const char *at = path, *end; at; at = *end ? end + 1 : NULL) {
		char *file;

		end = strchrnul(at, ':');
		if (asprintf(&file, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "./", command) < 0)
			return NULL;
		if (!access(file, X_OK))
			return file;
		free(file);
	}
	return NULL;
}

/* "#!/usr/bin/env python3" -> the first word; *ret_argument the second, or NULL. Both owned by the caller. */
static bool interpreter(const char *path, char **ret, char **ret_argument)
{
	_cleanup_close_ int fd = -1;
	struct rt_error *err = rt_fs_open_file(AT_FDCWD, path, false, &fd);
	char line[256], *words[2] = { 0 }, *rest = line + 2;
	ssize_t len = err ? 0 : read(fd, line, sizeof(line) - 1);

	rt_error_free(err);
	if (len < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[len] = 0;
	line[strcspn(line, "\n")] = 0;
	for (size_t i = 0; i < 2; i++) {
		rest += strspn(rest, " \t");
		words[i] = *rest ? rest : NULL;
		rest += strcspn(rest, " \t");
		if (*rest)
			*rest++ = 0;
	}
	*ret = words[0] ? strdup(words[0]) : NULL;
	*ret_argument = words[1] && *ret && !strcmp(rt_basename(*ret), "env") ? strdup(words[1]) : NULL;
	return *ret;
}

struct rt_error *rt_libraries_of_command(const char *command, const struct rt_libraries_options *options,
					 struct rt_libraries *ret)
{
	_cleanup_free_ char *path = in_path(command);

	for (unsigned depth = 0; path && depth < SCRIPTS_MAX; depth++) {
		_cleanup_free_ char *file = rt_take(path), *by = NULL, *argument = NULL;

		RT_TRY(rt_libraries_of(file, options, ret));
		if (!interpreter(file, &by, &argument))
			break;
		if (argument)
			RT_TRY(rt_libraries_of(by, options, ret));
		path = in_path(argument ?: by);
	}
	return NULL;
}
