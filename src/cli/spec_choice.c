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

/* Which types of a preset are moved to spec. */
typedef struct rt_error *(*take_types)(const struct rt_options *options, struct rt_spec *from, struct rt_spec *spec);

/* Those that -t names, and that are new. */
static struct rt_error *take_wanted(const struct rt_options *options, struct rt_spec *from, struct rt_spec *spec)
{
	for (size_t i = 0; i < from->types.len;) {
		struct rt_spec_type *type = &from->types.data[i];

		if (!wanted(options, type) || has_type(spec, type->name) || !rt_spec_verified(type)) {
			i++;
			continue;
		}
		rt_spec_guess(type);
		RT_TRY(rt_spec_move(from, i, spec));
	}
	return NULL;
}

/* All; where two have a type of one name, the first is meant: the user's before ours. */
static struct rt_error *take_verified(const struct rt_options *options, struct rt_spec *from, struct rt_spec *spec)
{
	(void)options;
	for (size_t i = 0; i < from->types.len;) {
		if (has_type(spec, from->types.data[i].name) || !rt_spec_verified(&from->types.data[i]))
			i++;
		else
			RT_TRY(rt_spec_move(from, i, spec));
	}
	return NULL;
}

static struct rt_error *from_preset(const struct rt_options *options, const char *name, char **dirs, take_types take,
				    struct rt_spec *spec)
{
	struct rt_spec all = { 0 };
	struct rt_error *broken = rt_spec_argument(name, (const char *const *)dirs, &all), *err = NULL;

	/* a broken preset that nobody asked for is not this run's fault */
	if (!broken)
		err = take(options, &all, spec);
	rt_error_free(broken);
	rt_spec_deinit(&all);
	return err;
}

static int is_preset(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type != DT_DIR && strcmp(entry->d_name, "meson.build") != 0;
}

static struct rt_error *from_preset_dir(const struct rt_options *options, const char *path, char **dirs,
					take_types take, struct rt_spec *spec)
{
	struct rt_error *err = NULL;
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, is_preset, alphasort);

	for (int i = 0; i < n; i++) {
		if (!err)
			err = from_preset(options, entries[i]->d_name, dirs, take, spec);
		free(entries[i]);
	}
	free(entries);
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
			RT_TRY(from_preset_dir(options, *d, dirs, take_wanted, spec));
	}
	*ret_scan = scan;
	return NULL;
}

struct rt_error *rt_spec_presets(const struct rt_options *options, struct rt_presets **ret)
{
	_cleanup_(rt_preset_dirs_freep) char **dirs = NULL;
	_cleanup_(rt_spec_deinit) struct rt_spec all = { 0 };

	*ret = NULL;
	if (options->pairs.len || options->types.len || options->no_presets)
		return NULL;
	RT_TRY(rt_preset_dirs(&dirs));
	for (char **d = dirs; *d; d++)
		RT_TRY(from_preset_dir(options, *d, dirs, take_verified, &all));
	return rt_presets_create(&all, ret);
}
