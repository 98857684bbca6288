/* SPDX-License-Identifier: GPL-2.0-only */
/* probe export: probes for a host without reftrace, as a shell script or as lines of uprobe_events or kprobe_events. */
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "cache/cache.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/file.h"
#include "cli/options.h"
#include "cli/probe_cached.h"
#include "cli/probe_command.h"
#include "cli/probe_kernel.h"
#include "cli/root.h"
#include "engine/marker_counter.h"
#include "probe/definition.h"
#include "probe/near.h"
#include "probe/remote.h"
#include "report/words.h"

enum { OPT_LINES = 0x1000, OPT_AT, OPT_UNVERIFIED, OPT_MISMATCH, OPT_PARTIAL, OPT_ALL_PLACES };

struct export_options {
	struct rt_probe_options probe; /* first: argp hands it on */
	const char *at;
	bool lines;
};

static const struct argp_option own[] = {
	{ "at", OPT_AT, "PATH", 0, "where the file lies on the host (default: where it lies here)", 1 },
	{ "quiet", 'q', NULL, 0, "no notes on stderr", 1 },
	{ "lines", OPT_LINES, NULL, 0, "print the lines alone, which check nothing", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct export_options *options = state->input;

	if (key == OPT_AT)
		options->at = arg;
	else if (key == OPT_LINES)
		options->lines = true;
	else if (key == 'q')
		options->probe.common.quiet = true;
	else if (key == 'x')
		options->probe.file = arg;
	else if (key == 'f')
		options->probe.force = true;
	else if (key == OPT_PARTIAL)
		options->probe.partial = true;
	else if (key == OPT_ALL_PLACES)
		options->probe.all_places = true;
	else if (key == OPT_UNVERIFIED)
		options->probe.allow.unverified = true;
	else if (key == OPT_MISMATCH)
		options->probe.allow.mismatch = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

const struct argp rt_probe_export_options = { own, parse };
/* The help of all commands has the same from show and add. */
static const struct argp_option guru[] = {
	{ "exec", 'x', "FILE", 0, "the program or library that the definitions are of", 1 },
	{ "force", 'f', NULL, 0, "hook returns that exceptions may pass", 1 },
	{ "partial", OPT_PARTIAL, NULL, 0, "leave out places where an argument is unknown", 1 },
	{ "all-places", OPT_ALL_PLACES, NULL, 0, "of a line: each place where code of it begins", 1 },
	{ "allow-unverified", OPT_UNVERIFIED, NULL, 0, "use cached definitions on a file without build-id", 1 },
	{ "allow-mismatch", OPT_MISMATCH, NULL, 0, "use cached definitions on a file with another build-id", 1 },
	{ 0 },
};
static const struct argp guru_argp = { guru, parse };
static const struct argp_child children[] = { { &rt_probe_export_options }, { &guru_argp },
					      { &rt_probe_kernel_argp },    { &rt_root_argp },
					      { &rt_common_argp },          { 0 } };
static const struct argp export_argp = {
	NULL, rt_parse_operands,
	"export FILE|BUILD-ID [GROUP:EVENT...]\nexport -x FILE DEFINITION...\nexport %[GROUP:]EVENT...\n"
	"export -k VMLINUX [--kallsyms=FILE] DEFINITION...\nexport --kernel DEFINITION...",
	"Prints a shell script that probes a file, or the kernel, on a host without "
	"reftrace, for | ssh HOST sh: the file's SDT markers and what the build-id "
	"cache knows of it, or definitions resolved in the file or the kernel.",
	children
};

struct job {
	const struct export_options *options;
	size_t first;           /* operand that is a name: the file may be told by it */
	struct rt_cache *cache; /* NULL: there is none */
	struct rt_image *image;
	char *path; /* on the host */
	struct rt_remote remote;
	struct rt_arena arena;
	struct rt_near near;
	size_t offered;
	bool skewed; /* said */
};

static void job_deinit(struct job *j)
{
	rt_cache_closep(&j->cache);
	rt_image_destroyp(&j->image);
	rt_remote_deinit(&j->remote);
	rt_arena_deinit(&j->arena);
	free(j->path);
}

/* "0123abcd" to bytes; 0: it is no build-id */
static size_t read_id(const char *text, uint8_t id[RT_CACHE_ID_MAX])
{
	size_t len = strlen(text);

	if (!len || len % 2 || len / 2 > RT_CACHE_ID_MAX || strspn(text, "0123456789abcdef") != len)
		return 0;
	for (size_t i = 0; i < len / 2; i++) {
		uint64_t byte;

		if (!rt_parse_u64(text + 2 * i, 2, 16, &byte))
			return 0;
		id[i] = (uint8_t)byte;
	}
	return len / 2;
}

static struct rt_error *open_cached(struct job *j, const char *name, const uint8_t *id, size_t size)
{
	_cleanup_close_ int fd = -1;

	RT_TRY(rt_cache_get(j->cache, id, size, RT_CACHE_ELF, &fd));
	RT_TRY(rt_image_open_fd(fd, name, &j->image));
	if (!rt_image_is_build(j->image, id, size))
		return rt_error_fix(rt_error_new(RT_E_BUILD_ID, "the cache's file of %s has another build-id", name),
				    "reftrace cache rm %s", name);
	return rt_cache_origin(j->cache, id, size, &j->path);
}

/* The file, or what the cache has of a build-id: the file itself need not be on this host. */
static struct rt_error *open_file(struct job *j, const char *name)
{
	uint8_t id[RT_CACHE_ID_MAX];
	size_t size = strchr(name, '/') ? 0 : read_id(name, id);
	_cleanup_close_ int fd = -1;

	if (size && j->cache && faccessat(AT_FDCWD, name, F_OK, 0))
		return rt_error_wrap(open_cached(j, name, id, size), "%s", name);
	RT_TRY(rt_fs_open_file(AT_FDCWD, name, false, &fd));
	j->path = realpath(name, NULL);
	if (!j->path)
		return rt_error_nomem();
	return rt_image_open_fd(fd, name, &j->image);
}

/* The file that the cache knows a definition of. */
static struct rt_error *open_named(struct job *j)
{
	const char *name = j->options->probe.common.operands.data[0];
	char text[2 * RT_CACHE_ID_MAX + 1];
	uint8_t id[RT_CACHE_ID_MAX];
	size_t size = 0;

	RT_TRY(rt_probe_cached_id(j->cache, name, id, &size));
	return rt_error_wrap(open_cached(j, rt_build_id_text(id, size, text), id, size), "%s", name);
}

static const char *without_mark(const char *name)
{
	return name + (*name == '%');
}

/* "%EVENT" is that of any group. */
static bool is_named(const char *name, const char *event)
{
	bool any = *name == '%' && !strchr(name, ':');

	return !fnmatch(without_mark(name), any ? strchr(event, ':') + 1 : event, 0);
}

/* "GROUP/EVENT" of a line is asked for. */
static bool is_wanted(struct job *j, const char *line)
{
	size_t count = j->options->probe.common.operands.len, len = strcspn(line, " ");
	char *event = len > 2 ? rt_arena_strndup(&j->arena, line + 2, len - 2) : NULL;
	char *slash = event ? strchr(event, '/') : NULL;

	if (!slash)
		return false;
	*slash = ':';
	j->offered++;
	if (count > j->first) {
		j->near.wanted = without_mark(j->options->probe.common.operands.data[j->first]);
		rt_near_offer(&j->near, event);
	}
	for (size_t i = j->first; i < count; i++)
		if (is_named(j->options->probe.common.operands.data[i], event))
			return true;
	return count == j->first;
}

static void say_dropped(void *arg, unsigned n, const struct rt_operand *operand, const char *why)
{
	const struct rt_sdt_marker *m = arg;

	fprintf(stderr, "reftrace: argument %u (%.*s) of sdt_%s:%s is left out: %s\n", n, (int)operand->text_len,
		operand->text, m->provider, m->name, why);
}

static struct rt_error *add_marker(struct job *j, const struct rt_symtab *symtab, const struct rt_sdt_marker *m)
{
	/* the path is the script's: it need not be one that the kernel takes */
	struct rt_marker_file file = { .image = j->image, .symtab = symtab, .path = "/file" };
	struct rt_definition_options options = { .arg = (void *)(uintptr_t)m };
	_cleanup_(rt_sink_deinit) struct rt_sink line;
	struct rt_error *err;

	for (int pass = 0; pass < 2; pass++) {
		rt_sink_init_memory(&line);
		err = rt_marker_definition(&file, m, &options, &line);
		if (!err)
			err = rt_sink_end(&line);
		if (err && err->code == RT_E_UNARMED) {
			fprintf(stderr, "reftrace: left out: %s\n", rt_clean(&j->arena, err->message));
			rt_error_free(err);
			return NULL;
		}
		RT_TRY(err);
		/* what is left out of a marker that nobody asked for is of no interest */
		if (pass)
			break;
		if (!is_wanted(j, line.buffer))
			return NULL;
		options.dropped = say_dropped;
		rt_sink_deinit(&line);
	}
	if (rt_counter_is_skewed(j->image, m) && !j->skewed) {
		j->skewed = true;
		fprintf(stderr,
			"reftrace: the kernel raises the counters of these markers in the wrong place in programs that "
			"start while they are recorded (a page of the file is mapped twice): record what runs "
			"already\n");
	}
	return rt_remote_add(&j->remote, line.buffer, NULL);
}

static struct rt_error *add_markers(struct job *j)
{
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	_cleanup_free_ struct rt_sdt_marker *markers = NULL;
	size_t count = 0;

	RT_TRY(rt_symtab_create(j->image, &symtab));
	RT_TRY(rt_sdt_read(j->image, &markers, &count));
	for (size_t i = 0; i < count; i++)
		RT_TRY(add_marker(j, symtab, &markers[i]));
	return NULL;
}

/* What users have put into the cache: markers were read from the file itself. */
static struct rt_error *add_cached(struct job *j)
{
	struct rt_error *err = NULL;
	struct rt_probes probes;

	if (!j->cache || j->image->build_id_is_hash)
		return NULL;
	RT_TRY(rt_cache_read_probes(j->cache, j->image->build_id, j->image->build_id_size, &probes));
	for (size_t i = 0; !err && i < probes.entries.len; i++) {
		const struct rt_probes_entry *e = &probes.entries.data[i];

		for (size_t k = 0; !err && !e->sdt && k < e->lines.len; k++) {
			if (!is_wanted(j, e->lines.data[k]))
				continue;
			err = rt_remote_add(&j->remote, e->lines.data[k], NULL);
			if (err && err->code == RT_E_FORMAT) {
				fprintf(stderr, "reftrace: left out: %s\n", rt_clean(&j->arena, err->message));
				rt_error_free(rt_take(err));
			}
		}
	}
	rt_probes_deinit(&probes);
	return err;
}

/* One line, for a file that it was not made for. */
static struct rt_error *add_other(struct job *j, const char *line, const char *name, const char *mark)
{
	const char *slash = strchr(line, '/'), *event;
	size_t len = strcspn(line, " ");

	if (!slash || len < 3 || slash > line + len)
		return NULL;
	event = rt_format(&j->arena, "%.*s:%.*s", (int)(slash - line - 2), line + 2, (int)(line + len - slash - 1),
			  slash + 1);
	if (!is_named(name, event))
		return NULL;
	return rt_remote_add(&j->remote, rt_format(&j->arena, "%.*s%s%s", (int)(slash - line), line, mark, slash),
			     NULL);
}

/* Names that begin with % and are not the file's: of another file, as far as that is allowed. */
static struct rt_error *add_others(struct job *j)
{
	for (size_t i = j->first; j->cache && i < j->options->probe.common.operands.len; i++) {
		const char *name = j->options->probe.common.operands.data[i];
		struct rt_cached_match match;
		struct rt_request r;
		struct rt_error *err;

		if (*name != '%')
			continue;
		err = rt_request_parse(name, &r);
		if (!err)
			err = rt_cached_match(j->cache, j->image, j->path, r.provider, r.function,
					      &j->options->probe.allow, &match);
		else
			match = (struct rt_cached_match){ RT_CACHED_SAME };
		if (!err && match.why)
			fprintf(stderr, "reftrace: warning: '%s' may hit wrong places: %s; its events are marked %s\n",
				rt_clean(&j->arena, name), rt_clean(&j->arena, match.why), rt_cached_mark(match.trust));
		for (size_t k = 0; !err && match.why && k < match.probes.entries.len; k++) {
			const struct rt_probes_entry *e = &match.probes.entries.data[k];

			for (size_t n = 0; !err && n < e->lines.len; n++)
				err = add_other(j, e->lines.data[n], name, rt_cached_mark(match.trust));
		}
		rt_cached_match_deinit(&match);
		rt_request_deinit(&r);
		/* a marker of the file need not be in the cache */
		if (err && err->code == RT_E_NOT_FOUND && j->remote.probes.len)
			rt_error_free(rt_take(err));
		RT_TRY(err);
	}
	return NULL;
}

static struct rt_error *nothing(const struct job *j)
{
	const char *file = j->options->probe.common.operands.data[0];
	struct rt_error *err;

	if (!j->offered)
		return rt_error_fix(
			rt_error_new(RT_E_NOT_FOUND, "%s has no markers, and the build-id cache no probes of it", file),
			"functions of it: reftrace probe export -x %s DEFINITION...", file);
	err = rt_error_new(RT_E_NOT_FOUND, "%s has no such probe (%zu others)", file, j->offered);
	if (j->near.count)
		return rt_error_fix(err, "did you mean %s?", j->near.names[0]);
	return rt_error_fix(err, "see: reftrace probe markers %s", file);
}

/* image: whose build-id the script asks for. path: NULL for a kernel. */
static struct rt_error *write_out(const struct export_options *options, const struct rt_remote *remote,
				  const struct rt_image *image, const char *path)
{
	char id[2 * RT_BUILD_ID_WHOLE_MAX + 1];
	struct rt_sink out;
	struct rt_error *err = NULL;

	if (!options->lines && (image->build_id_is_hash || !image->build_id_size))
		return rt_error_fix(rt_error_new(RT_E_BUILD_ID,
						 "%s has no build-id: the host's %s could not be compared with it",
						 image->name, remote->kernel ? "kernel" : "file"),
				    "link it with -Wl,--build-id; or --lines, which checks nothing");
	rt_sink_init_fd(&out, STDOUT_FILENO, "standard output");
	if (options->lines)
		err = rt_remote_lines(remote, path, &out);
	else
		rt_remote_script(remote, path, rt_build_id_text(image->build_id, image->build_id_size, id), &out);
	if (!err)
		err = rt_sink_end(&out);
	rt_sink_deinit(&out);
	return err;
}

/* Definitions, resolved here: of a kernel, or of the file of -x. */
static struct rt_error *export_resolved(struct job *j, bool kernel)
{
	struct rt_probe_plan plan;
	struct rt_error *err;

	if (kernel && j->options->at)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe: a kernel lies nowhere on its host"),
				    "leave --at out");
	j->remote.kernel = kernel;
	err = rt_probe_plan_make(&j->options->probe, NULL, &plan);
	if (!err)
		rt_probe_plan_notes(&plan, &j->options->probe.common);
	for (size_t i = 0; !err && i < plan.lines.len; i++)
		err = rt_remote_add(&j->remote, plan.lines.data[i].text,
				    kernel ? plan.lines.data[i].point->function : NULL);
	if (!err)
		err = rt_image_whole(plan.image);
	if (!err)
		err = write_out(j->options, &j->remote, plan.image, kernel ? NULL : j->options->at ?: plan.path);
	rt_probe_plan_deinit(&plan);
	return err;
}

static struct rt_error *act(struct job *j)
{
	_cleanup_free_ char *root = NULL;
	struct rt_error *err;

	if (rt_probe_of_kernel(&j->options->probe))
		return export_resolved(j, true);
	if (j->options->probe.kallsyms || j->options->probe.notes)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--kallsyms and --notes are of a kernel"),
				    "-k VMLINUX; or --kernel, the one that runs here");
	if (j->options->probe.file)
		return export_resolved(j, false);
	if (!j->options->probe.common.operands.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe: export FILE is needed"), "reftrace help probe");
	RT_TRY(rt_user_cache_root(&root));
	err = rt_cache_open(root, false, &j->cache);
	if (err && err->code == RT_E_NOMEM)
		return err;
	/* without a home there is no cache, and the file still has its markers */
	rt_error_free(err);
	j->first = *j->options->probe.common.operands.data[0] != '%';
	RT_TRY(j->first ? open_file(j, j->options->probe.common.operands.data[0]) : open_named(j));
	RT_TRY(add_markers(j));
	RT_TRY(add_cached(j));
	RT_TRY(add_others(j));
	return j->remote.probes.len ? write_out(j->options, &j->remote, j->image, j->options->at ?: j->path)
				    : nothing(j);
}

int rt_probe_export(int argc, char **argv)
{
	struct export_options options = { .at = NULL };
	struct job j = { .options = &options };
	struct rt_error *err = rt_options_parse(&export_argp, argc, argv, &options.probe.common);
	int status = RT_EXIT_OK;

	if (!err && options.probe.common.help)
		rt_options_help(&export_argp, "probe", stdout);
	else if (!err)
		err = act(&j);
	if (err)
		status = rt_failure(err);
	job_deinit(&j);
	rt_options_deinit(&options.probe.common);
	return status;
}
