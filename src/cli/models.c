/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/models.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/fs.h"
#include "cli/file.h"
#include "cli/spec_choice.h"
#include "lifetime/models.h"

enum { FILE_MAX = 256 << 20 };

struct loaded {
	uint64_t objects;
	size_t files;
};

static struct rt_error *load(struct rt_lifetime *lt, const char *path, struct loaded *to)
{
	_cleanup_free_ char *text = NULL;
	uint64_t used = 0;
	size_t size;

	RT_TRY(rt_fs_read(AT_FDCWD, path, FILE_MAX, &text, &size));
	RT_TRY(rt_models_read(lt, text, size, path, &used));
	to->objects += used;
	to->files += used != 0;
	return NULL;
}

/* What the folder has for modules that are here. */
static struct rt_error *load_found(struct rt_lifetime *lt, const char *folder, struct loaded *to)
{
	char build[2 * RT_BUILD_ID_MAX + 1];

	for (size_t i = 0; rt_models_build(lt, i, build); i++) {
		_cleanup_free_ char *path = NULL;
		struct rt_error *err;

		if (asprintf(&path, "%s/%s", folder, build) < 0) {
			path = NULL;
			return rt_error_nomem();
		}
		if (access(path, F_OK))
			continue;
		err = load(lt, path, to);
		if (err && err->code == RT_E_NOMEM)
			return err;
		if (err)
			fprintf(stderr, "reftrace: %s; its models are not used\n", err->message);
		rt_error_free(err);
	}
	return NULL;
}

/* The folders of models lie beside those of presets. */
static struct rt_error *load_all_found(struct rt_lifetime *lt, struct loaded *to)
{
	_cleanup_(rt_preset_dirs_freep) char **dirs = NULL;
	struct rt_error *err = NULL;

	RT_TRY(rt_preset_dirs(&dirs));
	for (char **d = dirs; *d && !err; d++) {
		_cleanup_free_ char *folder = NULL;
		char *slash = strrchr(*d, '/');

		if (!slash)
			continue;
		if (asprintf(&folder, "%.*s/models", (int)(slash - *d), *d) < 0) {
			folder = NULL;
			return rt_error_nomem();
		}
		err = load_found(lt, folder, to);
	}
	return err;
}

struct rt_error *rt_models_load(const struct rt_options *options, struct rt_lifetime *lt)
{
	struct loaded all = { 0 };

	for (size_t i = 0; i < options->models.len; i++) {
		struct rt_error *err = load(lt, options->models.data[i], &all);

		if (err)
			return err->fix ? err : rt_error_fix(err, "save one: reftrace run --save-models FILE");
	}
	if (!options->no_models)
		RT_TRY(load_all_found(lt, &all));
	if (all.files && !options->quiet)
		fprintf(stderr, "reftrace: models of %" PRIu64 " healthy objects from %zu file%s\n", all.objects,
			all.files, all.files == 1 ? "" : "s");
	return NULL;
}

/* In a folder it is called as rt_models_load() looks for it. */
static struct rt_error *name_of(const struct rt_options *options, struct rt_lifetime *lt, char **ret)
{
	char build[2 * RT_BUILD_ID_MAX + 1];
	size_t len = strlen(options->save_models);

	if (!len || options->save_models[len - 1] != '/')
		*ret = strdup(options->save_models);
	else if (!rt_models_program(lt, build))
		return rt_error_fix(rt_error_new(RT_E_BUILD_ID, "the program has no build-id to call its models by"),
				    "name a file: --save-models FILE");
	else if (asprintf(ret, "%s%s", options->save_models, build) < 0)
		*ret = NULL;
	return *ret ? NULL : rt_error_nomem();
}

struct rt_error *rt_models_save(const struct rt_options *options, struct rt_lifetime *lt)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err, *end;
	struct rt_sink sink;

	if (!options->save_models)
		return NULL;
	RT_TRY(name_of(options, lt, &path));
	RT_TRY(rt_file_create(path, &fd));
	rt_sink_init_fd(&sink, fd, path);
	err = rt_models_write(lt, &sink);
	end = rt_sink_end(&sink);
	rt_sink_deinit(&sink);
	if (!err)
		return end;
	rt_error_free(end);
	return err;
}
