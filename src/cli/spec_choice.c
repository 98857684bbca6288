/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/spec_choice.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>

static char *installed_dir(void)
{
	char exe[PATH_MAX], *dir = NULL;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (n <= 0)
		return strdup(RT_PRESETS_DIR);
	exe[n] = 0;
	slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	return asprintf(&dir, "%s/../share/reftrace/presets", exe) < 0 ? NULL : dir;
}

static char *user_dir(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n;

	if (config && *config)
		n = asprintf(&dir, "%s/reftrace/presets", config);
	else
		n = asprintf(&dir, "%s/.config/reftrace/presets", home && *home ? home : "/nonexistent");
	return n < 0 ? NULL : dir;
}

struct rt_error *rt_preset_dirs(char ***ret)
{
	enum { DIRS = 4 };
	_cleanup_(rt_preset_dirs_freep) char **dirs = calloc(DIRS + 1, sizeof(*dirs));

	if (!dirs)
		return rt_error_nomem();
	dirs[0] = user_dir();
	dirs[1] = dirs[0] ? installed_dir() : NULL;
	dirs[2] = dirs[1] ? strdup(RT_PRESETS_DIR) : NULL;
	dirs[3] = dirs[2] ? strdup(RT_SOURCE_PRESETS) : NULL;
	if (!dirs[3])
		return rt_error_nomem();
	*ret = rt_take(dirs);
	return NULL;
}

void rt_preset_dirs_free(char **dirs)
{
	for (char **d = dirs; *d; d++)
		free(*d);
	free(dirs);
}

/* A pattern may mean classes, which only the program knows. */
static bool wanted(const struct rt_options *options, const struct rt_spec_type *type)
{
	for (size_t i = 0; i < options->types.len; i++) {
		if (rt_glob_match(options->types.data[i], type->name) ||
		    (type->klass && rt_glob_is(options->types.data[i])))
			return true;
	}
	return false;
}

static bool has_type(const struct rt_spec *spec, const char *type)
{
	for (size_t i = 0; i < spec->types.len; i++) {
		if (rt_glob_match(type, spec->types.data[i].name))
			return true;
	}
	return false;
}

/* Moves the types of from that -t names, and that are new, to spec. */
static struct rt_error *adopt(const struct rt_options *options, struct rt_spec *from, struct rt_spec *spec)
{
	for (size_t i = 0; i < from->types.len; i++) {
		struct rt_spec_type *type = &from->types.data[i];

		if (!wanted(options, type) || has_type(spec, type->name) || !rt_spec_verified(type))
			continue;
		/* nobody told us that this program has them */
		for (size_t n = 0; n < type->functions.len; n++)
			type->functions.data[n].guessed = true;
		if (!rt_vec_push(&spec->types, *type))
			return rt_error_nomem();
		/* the last one takes the gap, so that deinit frees what was not moved */
		*type = from->types.data[--from->types.len];
		i--;
	}
	return NULL;
}

static struct rt_error *from_preset(const struct rt_options *options, const char *path, char **dirs,
				    struct rt_spec *spec)
{
	struct rt_spec all = { 0 };
	struct rt_error *broken = rt_spec_argument(path, (const char *const *)dirs, &all), *err = NULL;

	/* a broken preset that nobody asked for is not this run's fault */
	if (!broken)
		err = adopt(options, &all, spec);
	rt_error_free(broken);
	rt_spec_deinit(&all);
	return err;
}

static struct rt_error *from_preset_dir(const struct rt_options *options, const char *path, char **dirs,
					struct rt_spec *spec)
{
	struct rt_error *err = NULL;
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return NULL;
	while (!err && (entry = readdir(dir))) {
		_cleanup_free_ char *file = NULL;

		if (entry->d_name[0] == '.' || entry->d_type == DT_DIR || !strcmp(entry->d_name, "meson.build"))
			continue;
		if (asprintf(&file, "%s/%s", path, entry->d_name) < 0) {
			file = NULL;
			err = rt_error_nomem();
		} else {
			err = from_preset(options, file, dirs, spec);
		}
	}
	closedir(dir);
	return err;
}

struct rt_error *rt_spec_choose(const struct rt_options *options, struct rt_spec *spec, bool *ret_scan)
{
	_cleanup_(rt_preset_dirs_freep) char **dirs = NULL;
	bool scan = !options->pairs.len;

	RT_TRY(rt_preset_dirs(&dirs));
	for (size_t i = 0; i < options->pairs.len; i++)
		RT_TRY(rt_spec_argument(options->pairs.data[i], (const char *const *)dirs, spec));
	/* what -P told about other types is neither armed nor missed */
	if (options->types.len)
		rt_spec_keep(spec, options->types.data, options->types.len);
	/* a name with -t that -P did not tell is searched for, too */
	for (size_t i = 0; i < options->types.len && options->pairs.len; i++)
		scan |= !has_type(spec, options->types.data[i]);
	if (!options->pairs.len && options->types.len && !options->no_presets) {
		for (char **d = dirs; *d; d++)
			RT_TRY(from_preset_dir(options, *d, dirs, spec));
	}
	*ret_scan = scan;
	return NULL;
}
