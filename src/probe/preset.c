/* SPDX-License-Identifier: GPL-2.0-only */
/* -P ARGUMENT: a spec, a file of specs, or a preset by name. */
#include "probe/spec.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "base/sink.h"
#include "base/vec.h"
#include "probe/near.h"

enum { SPEC_FILE_MAX = 4 << 20 };

struct names {
	RT_VEC(char *) list;
};

static void names_deinit(struct names *names)
{
	for (size_t i = 0; i < names->list.len; i++)
		free(names->list.data[i]);
	rt_vec_deinit(&names->list);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A name that can be a preset: no path, no hidden or build file. */
static bool is_preset_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strcmp(name, "meson.build") != 0;
}

static struct rt_error *list_dir(const char *path, struct names *names)
{
	DIR *dir = opendir(path);
	struct rt_error *err = NULL;
	struct dirent *entry;

	/* a directory that is not there holds no presets */
	if (!dir)
		return NULL;
	while (!err && (entry = readdir(dir))) {
		char *name;

		if (!is_preset_name(entry->d_name) || entry->d_type == DT_DIR)
			continue;
		name = strdup(entry->d_name);
		if (!name || !rt_vec_push(&names->list, name)) {
			free(name);
			err = rt_error_nomem();
		}
	}
	closedir(dir);
	return err;
}

/* "a, b, c", each once */
static void write_names(struct rt_sink *text, const struct names *names)
{
	const char *last = NULL;

	for (size_t i = 0; i < names->list.len; i++) {
		if (last && strcmp(last, names->list.data[i]) == 0)
			continue;
		rt_sink_printf(text, "%s%s", last ? ", " : "", names->list.data[i]);
		last = names->list.data[i];
	}
}

static struct rt_error *no_preset(const char *name, const struct names *names)
{
	struct rt_error *err = rt_error_new(RT_E_NOT_FOUND, "no preset '%s'", name), *write_err;
	struct rt_near near = { .wanted = name };
	struct rt_sink text;

	rt_sink_init_memory(&text);
	for (size_t i = 0; i < names->list.len; i++)
		rt_near_offer(&near, names->list.data[i]);
	if (near.count) {
		rt_sink_puts(&text, "did you mean: ");
		for (size_t i = 0; i < near.count; i++)
			rt_sink_printf(&text, "%s%s", i ? ", " : "", near.names[i]);
		rt_sink_puts(&text, "?\n");
	}
	if (names->list.len) {
		rt_sink_puts(&text, "presets: ");
		write_names(&text, names);
		rt_sink_puts(&text, "\n");
	}
	rt_sink_printf(&text, "a file is named with its folder (./%s), a spec holds '=' (get=FN:1 put=FN:1)", name);
	write_err = rt_sink_end(&text);
	if (!write_err)
		err = rt_error_fix(err, "%s", text.buffer);
	rt_error_free(write_err);
	rt_sink_deinit(&text);
	return err;
}

static struct rt_error *read_file(const char *path, const char *origin, struct rt_spec *spec)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	RT_TRY(rt_fs_read(AT_FDCWD, path, SPEC_FILE_MAX, &text, &size));
	return rt_spec_parse(text, size, origin, spec);
}

static struct rt_error *read_preset(const char *name, const char *const *dirs, struct rt_spec *spec)
{
	_cleanup_(names_deinit) struct names names = { 0 };

	for (size_t i = 0; dirs && dirs[i] && is_preset_name(name); i++) {
		_cleanup_free_ char *path = NULL, *origin = NULL;
		struct rt_error *err;

		if (asprintf(&path, "%s/%s", dirs[i], name) < 0) {
			path = NULL;
			return rt_error_nomem();
		}
		if (asprintf(&origin, "presets/%s", name) < 0) {
			origin = NULL;
			return rt_error_nomem();
		}
		err = read_file(path, origin, spec);
		if (!rt_error_catch(&err, RT_E_NOT_FOUND))
			return err;
	}
	for (size_t i = 0; dirs && dirs[i]; i++)
		RT_TRY(list_dir(dirs[i], &names));
	if (names.list.len)
		qsort(names.list.data, names.list.len, sizeof(char *), compare_names);
	return no_preset(name, &names);
}

struct rt_error *rt_spec_argument(const char *arg, const char *const *presets_dirs, struct rt_spec *spec)
{
	if (strchr(arg, '='))
		return rt_spec_parse(arg, strlen(arg), "-P", spec);
	if (strchr(arg, '/'))
		return read_file(arg, arg, spec);
	return read_preset(arg, presets_dirs, spec);
}
