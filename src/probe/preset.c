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
#include "probe/spec_type.h"

enum { SPEC_FILE_MAX = 4 << 20, INCLUDES_MAX = 64 };

static void names_deinit(struct rt_spec_includes *names)
{
	for (size_t i = 0; i < names->names.len; i++)
		free(names->names.data[i]);
	rt_vec_deinit(&names->names);
}

/* What is being read, and which presets it includes. */
struct reading {
	const char *const *dirs;
	struct rt_spec spec;
	struct rt_spec_includes includes;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A name that can be a preset: no path, no hidden or build file. */
static bool is_preset_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strcmp(name, "meson.build") != 0;
}

static struct rt_error *list_dir(const char *path, struct rt_spec_includes *names)
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
		if (!name || !rt_vec_push(&names->names, name)) {
			free(name);
			err = rt_error_nomem();
		}
	}
	closedir(dir);
	return err;
}

/* "a, b, c", each once */
static void write_names(struct rt_sink *text, const struct rt_spec_includes *names)
{
	const char *last = NULL;

	for (size_t i = 0; i < names->names.len; i++) {
		if (last && strcmp(last, names->names.data[i]) == 0)
			continue;
		rt_sink_printf(text, "%s%s", last ? ", " : "", names->names.data[i]);
		last = names->names.data[i];
	}
}

static struct rt_error *no_preset(const char *name, const struct rt_spec_includes *names)
{
	struct rt_error *err = rt_error_new(RT_E_NOT_FOUND, "no preset '%s'", name), *write_err;
	struct rt_near near = { .wanted = name };
	struct rt_sink text;

	rt_sink_init_memory(&text);
	for (size_t i = 0; i < names->names.len; i++)
		rt_near_offer(&near, names->names.data[i]);
	if (near.count) {
		rt_sink_puts(&text, "did you mean: ");
		for (size_t i = 0; i < near.count; i++)
			rt_sink_printf(&text, "%s%s", i ? ", " : "", near.names[i]);
		rt_sink_puts(&text, "?\n");
	}
	if (names->names.len) {
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

static struct rt_error *read_file(const char *path, const char *origin, struct reading *r)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	RT_TRY(rt_fs_read(AT_FDCWD, path, SPEC_FILE_MAX, &text, &size));
	return rt_spec_parse_including(text, size, origin, &r->spec, &r->includes);
}

static struct rt_error *read_preset(const char *name, struct reading *r)
{
	_cleanup_(names_deinit) struct rt_spec_includes names = { 0 };

	for (size_t i = 0; r->dirs && r->dirs[i] && is_preset_name(name); i++) {
		_cleanup_free_ char *path = NULL, *origin = NULL;
		struct rt_error *err;

		if (asprintf(&path, "%s/%s", r->dirs[i], name) < 0) {
			path = NULL;
			return rt_error_nomem();
		}
		if (asprintf(&origin, "presets/%s", name) < 0) {
			origin = NULL;
			return rt_error_nomem();
		}
		err = read_file(path, origin, r);
		if (!rt_error_catch(&err, RT_E_NOT_FOUND))
			return err;
	}
	for (size_t i = 0; r->dirs && r->dirs[i]; i++)
		RT_TRY(list_dir(r->dirs[i], &names));
	if (names.names.len)
		qsort(names.names.data, names.names.len, sizeof(char *), compare_names);
	return no_preset(name, &names);
}

static bool had_before(const struct rt_spec_includes *includes, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (strcmp(includes->names.data[i], includes->names.data[index]) == 0)
			return true;
	return false;
}

static struct rt_error *read_argument(const char *arg, struct reading *r)
{
	if (strchr(arg, '='))
		RT_TRY(rt_spec_parse_including(arg, strlen(arg), "-P", &r->spec, &r->includes));
	else if (strchr(arg, '/'))
		RT_TRY(read_file(arg, arg, r));
	else
		RT_TRY(read_preset(arg, r));
	/* each one adds its own to the list; presets that include each other are read once */
	for (size_t i = 0; i < r->includes.names.len; i++) {
		if (had_before(&r->includes, i))
			continue;
		if (i >= INCLUDES_MAX)
			return rt_error_new(RT_E_SPEC, "%s includes more than %d presets", arg, INCLUDES_MAX);
		RT_TRY(read_preset(r->includes.names.data[i], r));
	}
	return NULL;
}

struct rt_error *rt_spec_argument(const char *arg, const char *const *presets_dirs, struct rt_spec *spec)
{
	struct reading r = { .dirs = presets_dirs };
	struct rt_error *err = read_argument(arg, &r);

	if (!err)
		err = rt_spec_join(spec, &r.spec);
	rt_spec_deinit(&r.spec);
	names_deinit(&r.includes);
	return err;
}
