/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/listing.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/root.h"
#include "elf/demangle.h"
#include "report/words.h"

static const struct argp_option own[] = {
	{ "exec", 'x', "FILE", 0, "the program or library (or name it first)", 1 },
	{ "json", RT_OPT_JSON, NULL, 0, "print JSON", 1 },
	{ "no-demangle", RT_OPT_NO_DEMANGLE, NULL, 0, "names of C++ and Rust as the linker sees them", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'x':
		options->list.file = arg;
		return 0;
	case RT_OPT_JSON:
		options->format = RT_FORMAT_JSON;
		return 0;
	case RT_OPT_NO_DEMANGLE:
		options->list.no_demangle = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_listing_options = { own, parse };

const char *rt_listing_operand(const struct rt_options *options, size_t number)
{
	size_t at = number + !options->list.file;

	return at < options->operands.len ? options->operands.data[at] : NULL;
}

static struct rt_error *open_image(const struct rt_options *options, struct rt_listing *file)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	RT_TRY(rt_root_open(options, &file->root));
	RT_TRY(rt_root_wrap(options, rt_fs_open_inside(file->root, file->path, &fd)));
	if (fstat(fd, &st) == 0)
		file->mtime = st.st_mtim;
	RT_TRY(rt_image_open_fd(fd, file->path, &file->image));
	return rt_fetch_debug(options, file->root, file->image);
}

struct rt_error *rt_listing_open(const struct rt_options *options, size_t most, struct rt_listing *ret)
{
	const char *extra = rt_listing_operand(options, most);

	*ret = (struct rt_listing){ .options = options, .root = AT_FDCWD };
	rt_sink_init_fd(&ret->out, STDOUT_FILENO, "standard output");
	rt_json_init(&ret->json, &ret->out);
	ret->path = options->list.file;
	if (!ret->path && options->operands.len)
		ret->path = options->operands.data[0];
	if (!ret->path)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe: which FILE?"), "reftrace help probe");
	if (extra)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe: '%s' is one word too many", extra),
				    "reftrace help probe");
	RT_TRY(open_image(options, ret));
	RT_TRY(rt_symtab_create(ret->image, &ret->symtab));
	return rt_dwarf_create(ret->image, &ret->dwarf);
}

void rt_listing_close(struct rt_listing *file)
{
	rt_dwarf_destroy(file->dwarf);
	rt_symtab_destroy(file->symtab);
	rt_image_destroy(file->image);
	rt_closep(&file->root);
	rt_sink_deinit(&file->out);
	rt_vec_deinit(&file->notes);
	rt_arena_deinit(&file->arena);
}

void rt_listing_note(struct rt_listing *file, const char *fix, const char *format, ...)
{
	const char *text;
	va_list args;

	va_start(args, format);
	text = rt_arena_vprintf(&file->arena, format, args);
	va_end(args);
	/* without memory there is one note less */
	if (text)
		(void)rt_vec_push(&file->notes, ((struct rt_listing_note){ text, fix }));
}

static const char *debuglink(const struct rt_listing *file)
{
	struct rt_bytes bytes;
	struct rt_cursor c;
	const char *name;

	if (!rt_image_section(file->image, ".gnu_debuglink", &bytes, NULL))
		return NULL;
	c = rt_cursor_make(bytes, file->image->big_endian);
	return rt_cursor_string(&c, &name) && *name ? name : NULL;
}

const char *rt_listing_debug_fix(struct rt_listing *file)
{
	const struct rt_image *image = file->image;
	char id[2 * RT_BUILD_ID_WHOLE_MAX + 1];
	const char *link = debuglink(file);

	if (image->build_id_size >= 2 && !image->build_id_is_hash) {
		rt_build_id_text(image->build_id, image->build_id_size, id);
		return rt_format(
			&file->arena,
			"install its debug symbols (Debian: find-dbgsym-packages %s), or put its debug file at "
			"%s/usr/lib/debug/.build-id/%.2s/%s.debug; or fetch it: --debuginfod=URL",
			file->path, file->options->symfs ?: "", id, id + 2);
	}
	if (link)
		return rt_format(&file->arena, "put its debug file %s beside it", link);
	return "build it with -g, and do not strip it";
}

void rt_listing_note_missing(struct rt_listing *file, size_t functions)
{
	if (rt_dwarf_present(file->dwarf))
		return;
	if (file->symtab->stripped)
		rt_listing_note(
			file, rt_listing_debug_fix(file),
			"%s has no symbol table and no debug information: only its %zu exported function%s known, "
			"without source lines and inlined functions",
			file->path, functions, functions == 1 ? " is" : "s are");
	else
		rt_listing_note(file, rt_listing_debug_fix(file),
				"%s has no debug information: no source lines, no inlined functions", file->path);
}

void rt_listing_json_begin(struct rt_listing *file)
{
	const struct rt_image *image = file->image;
	char id[2 * RT_BUILD_ID_WHOLE_MAX + 1];

	rt_json_begin_object(&file->json, NULL);
	rt_json_string(&file->json, "file", file->path);
	if (image->build_id_size && !image->build_id_is_hash)
		rt_json_string(&file->json, "build_id", rt_build_id_text(image->build_id, image->build_id_size, id));
}

const char *rt_split_missing(struct rt_arena *arena, const struct rt_dwarf *dwarf)
{
	const struct rt_dwarf_missing *missing;
	size_t units, count = rt_dwarf_missing(dwarf, &missing, &units);

	if (!count)
		return NULL;
	return rt_format(arena, "debug information of %zu of %zu units is in split files that cannot be used: %s: %s%s",
			 count, units, missing[0].path, missing[0].why,
			 count > 1 ? rt_format(arena, " (and %zu more)", count - 1) : "");
}

static void note_split(struct rt_listing *file)
{
	const char *missing = rt_split_missing(&file->arena, file->dwarf);

	if (missing)
		rt_listing_note(file,
				rt_format(&file->arena,
					  "bring it back there or beside the program; or keep a package: "
					  "llvm-dwp -e %s -o %s.dwp",
					  file->path, file->path),
				"%s", missing);
}

struct rt_error *rt_listing_end(struct rt_listing *file)
{
	bool json = file->options->format == RT_FORMAT_JSON;
	struct rt_error *err;

	note_split(file);
	if (json)
		rt_json_begin_array(&file->json, "notes");
	for (size_t i = 0; json && i < file->notes.len; i++) {
		rt_json_begin_object(&file->json, NULL);
		rt_json_string(&file->json, "text", file->notes.data[i].text);
		rt_json_string(&file->json, "fix", file->notes.data[i].fix);
		rt_json_end_object(&file->json);
	}
	if (json) {
		rt_json_end_array(&file->json);
		rt_json_end_object(&file->json);
	}
	err = rt_sink_end(&file->out);
	for (size_t i = 0; !json && i < file->notes.len; i++) {
		fprintf(stderr, "reftrace: %s\n", rt_clean(&file->arena, file->notes.data[i].text));
		if (file->notes.data[i].fix)
			fprintf(stderr, "      fix: %s\n", rt_clean(&file->arena, file->notes.data[i].fix));
	}
	return err;
}

const char *rt_listing_name(struct rt_listing *file, const char *symbol)
{
	_cleanup_free_ char *nice = file->options->list.no_demangle ? NULL : rt_demangle(symbol);

	return rt_clean(&file->arena, nice ?: symbol);
}

int rt_listing_run(const struct argp *argp, int argc, char **argv,
		   struct rt_error *(*run)(const struct rt_options *options, struct rt_listing *file), size_t most)
{
	struct rt_listing file = { .root = AT_FDCWD };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help) {
		rt_options_help(argp, "probe", stdout);
	} else if (!err) {
		err = rt_listing_open(&options, most, &file);
		if (!err)
			err = run(&options, &file);
		rt_listing_close(&file);
	}
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options);
	return status;
}
