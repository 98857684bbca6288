/* SPDX-License-Identifier: GPL-2.0-only */
/* archive: a recording and all that its report needs, in one file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/archive.h"
#include "base/fs.h"
#include "cli/bundle.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/file.h"
#include "cli/input.h"
#include "cli/options.h"
#include "report/words.h"

enum { OPT_MAX_SIZE = 0x1000 };

static const struct argp_option own[] = {
	{ "input", 'i', "FILE", 0, "create: the recording (default " RT_DEFAULT_RECORDING ")", 1 },
	{ "output", 'o', "FILE", 0, "create: the archive (default RECORDING.tar.zst)", 1 },
	{ "directory", 'C', "DIR", 0,
	  "unpack: into DIR, which is made (default: the archive's name without its ending)", 1 },
	{ "max-size", OPT_MAX_SIZE, "SIZE", 0, "list, unpack: refuse archives that hold more (default 16G)", 1 },
	{ "symfs", RT_OPT_SYMFS, "DIR", 0, "create: look for binaries and sources below DIR", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'i':
		options->input = arg;
		return 0;
	case 'o':
		options->output = arg;
		return 0;
	case 'C':
		options->directory = arg;
		return 0;
	case OPT_MAX_SIZE:
		return rt_option_fault(options, rt_parse_size(arg, &options->max_size));
	case RT_OPT_SYMFS:
		options->symfs = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp archive_argp = { own, parse };
static const struct argp_child children[] = { { &archive_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_archive_argp = {
	NULL, rt_parse_operands, "create\nlist FILE\nunpack FILE",
	"Puts a recording and the binaries, debug files and sources that its report needs "
	"into one file, for another machine.",
	children
};

static struct rt_error *create(const struct rt_options *options)
{
	const char *input = options->input ?: RT_DEFAULT_RECORDING;
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_bundle_counts counts;
	struct rt_arena arena = { 0 };
	struct rt_error *err;
	struct rt_sink sink;

	if (asprintf(&name, "%s.tar.zst", input) < 0)
		return rt_error_nomem();
	RT_TRY(rt_file_create(options->output ?: name, &fd));
	rt_sink_init_fd(&sink, fd, options->output ?: name);
	err = rt_bundle_write(input, options->symfs, &sink, &counts);
	if (!err)
		err = rt_sink_end(&sink);
	if (!err)
		fprintf(stderr, "reftrace: wrote %s: %zu files, %s%s\n", rt_clean(&arena, options->output ?: name),
			counts.files, rt_bytes_text(&arena, sink.written),
			counts.missing ? rt_format(&arena, "; %zu are missing: reftrace archive list %s",
						   counts.missing, rt_clean(&arena, options->output ?: name))
				       : "");
	rt_sink_deinit(&sink);
	rt_arena_deinit(&arena);
	return err;
}

static struct rt_error *open_archive(const struct rt_options *options, const char *path, struct rt_bytes *ret_bytes,
				     struct rt_archive **ret)
{
	const struct rt_archive_limits limits = { .bytes = options->max_size };
	_cleanup_close_ int fd = -1;
	struct rt_error *err;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	RT_TRY(rt_fs_map(fd, path, ret_bytes));
	err = rt_archive_open(*ret_bytes, path, &limits, ret);
	return err && err->fix ? err : rt_error_fix(err, "make one: reftrace archive create -i RECORDING -o FILE");
}

static void list(const struct rt_archive *archive, int *ret)
{
	struct rt_arena arena = { 0 };
	size_t count;
	const struct rt_archive_item *items = rt_archive_items(archive, &count);

	for (size_t i = 0; i < count; i++) {
		const struct rt_archive_item *item = &items[i];

		if (item->path)
			printf("%10s  %-40.40s  %s\n", rt_bytes_text(&arena, item->bytes), item->build_id ?: "-",
			       rt_clean(&arena, item->origin));
	}
	for (size_t i = 0; i < count; i++) {
		const struct rt_archive_item *item = &items[i];

		if (item->path)
			continue;
		printf("%10s  %-40.40s  %s: %s\n", "missing", item->build_id ?: "-", rt_clean(&arena, item->origin),
		       rt_clean(&arena, item->why));
		*ret = RT_EXIT_TRUST;
	}
	rt_arena_deinit(&arena);
}

/* "x.tar.zst" -> "x"; caller frees */
static char *folder_of(const char *path)
{
	size_t len = strlen(path);
	const char *ending = len > 8 && !strcmp(path + len - 8, ".tar.zst") ? path + len - 8 : path + len;

	return *ending ? strndup(path, (size_t)(ending - path)) : NULL;
}

static struct rt_error *unpack(const struct rt_options *options, const char *path, struct rt_archive *archive)
{
	_cleanup_free_ char *folder = options->directory ? strdup(options->directory) : folder_of(path);
	_cleanup_free_ char *recording = NULL;
	struct rt_arena arena = { 0 };

	if (!folder)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "archive: where shall %s be unpacked?", path),
				    "reftrace archive unpack -C DIR %s", path);
	RT_TRY(rt_bundle_unpack(archive, folder, &recording));
	fprintf(stderr, "reftrace: unpacked into %s; look: reftrace report -i %s/%s\n", rt_clean(&arena, folder),
		rt_clean(&arena, folder), rt_clean(&arena, recording ?: ""));
	rt_arena_deinit(&arena);
	return NULL;
}

static struct rt_error *act(const struct rt_options *options, int *ret)
{
	const char *verb = options->operands.len ? options->operands.data[0] : "";
	const char *path = options->operands.len > 1 ? options->operands.data[1] : NULL;
	_cleanup_(rt_archive_closep) struct rt_archive *archive = NULL;
	struct rt_bytes bytes = { 0 };
	struct rt_error *err;

	if (!strcmp(verb, "create") && options->operands.len == 1)
		return create(options);
	if ((strcmp(verb, "list") != 0 && strcmp(verb, "unpack") != 0) || options->operands.len != 2)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "archive: create, list FILE or unpack FILE is needed"),
				    "reftrace help archive");
	err = open_archive(options, path, &bytes, &archive);
	if (!err && !strcmp(verb, "list"))
		list(archive, ret);
	else if (!err)
		err = unpack(options, path, archive);
	rt_archive_close(rt_take(archive));
	rt_fs_unmap(bytes);
	return err;
}

int cmd_archive(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_archive_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help)
		rt_options_help(&rt_archive_argp, "archive", stdout);
	else if (!err)
		err = act(&options, &status);
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options);
	return status;
}
