/* SPDX-License-Identifier: GPL-2.0-only */
/* probe list: the uprobe events that tracefs keeps, whoever made them. probe del: takes them away. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/probe_command.h"
#include "cli/probe_kept.h"
#include "dwarf/dwarf.h"
#include "elf/symtab.h"
#include "engine/probe_events.h"
#include "engine/tracefs.h"
#include "probe/spec.h"
#include "report/json_writer.h"
#include "report/words.h"

enum { OPT_CACHE = 0x1000 };

static const struct argp_option own[] = {
	{ "json", RT_OPT_JSON, NULL, 0, "list: print JSON", 1 },
	{ "cache", OPT_CACHE, NULL, 0, "the definitions of the build-id cache instead", 1 },
	{ "dry-run", 'n', NULL, 0, "del: say what would go, remove nothing", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_probe_list_options *options = state->input;

	(void)arg;
	switch (key) {
	case RT_OPT_JSON:
		options->common.format = RT_FORMAT_JSON;
		return 0;
	case OPT_CACHE:
		options->cache = true;
		return 0;
	case 'n':
		options->dry_run = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_probe_list_options = { own, parse };
static const struct argp_child children[] = { { &rt_probe_list_options }, { &rt_common_argp }, { 0 } };
static const struct argp list_argp = {
	NULL, rt_parse_operands, "list [--cache] [GLOB...]\ndel [--cache] GLOB...",
	"Lists and removes the uprobe events that tracefs keeps, or the definitions of the build-id cache. GLOB: "
	"[GROUP:]EVENT with * and ?.",
	children
};

/* A file that events are in. */
struct file {
	const char *path;
	struct rt_image *image; /* NULL: it cannot be read */
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
};

struct listing {
	const struct rt_probe_list_options *options;
	struct rt_probe_events events;
	struct rt_sink out;
	struct rt_json json;
	struct rt_arena arena;
	RT_VEC(struct file) files;
	int tracefs;
};

/* "GROUP:EVENT", "GROUP/EVENT" or "EVENT" */
static bool fits(struct listing *l, const char *glob, const struct rt_probe_event *e)
{
	if (!strpbrk(glob, ":/"))
		return rt_glob_match(glob, e->name);
	return rt_glob_match(glob, rt_format(&l->arena, "%s:%s", e->group, e->name)) ||
	       rt_glob_match(glob, rt_format(&l->arena, "%s/%s", e->group, e->name));
}

static bool wanted(struct listing *l, const struct rt_probe_event *e)
{
	for (size_t i = 0; i < l->options->common.operands.len; i++)
		if (fits(l, l->options->common.operands.data[i], e))
			return true;
	return !l->options->common.operands.len;
}

/* What cannot be read is NULL: the event is listed all the same. */
static struct file *file_of(struct listing *l, const char *path)
{
	_cleanup_close_ int fd = -1;
	struct rt_error *err;
	struct file *f;

	for (size_t i = 0; i < l->files.len; i++)
		if (!strcmp(l->files.data[i].path, path))
			return &l->files.data[i];
	f = rt_vec_add(&l->files);
	if (!f)
		return NULL;
	f->path = path;
	err = rt_fs_open_file(AT_FDCWD, path, false, &fd);
	if (!err)
		err = rt_image_open_fd(fd, path, &f->image);
	if (!err)
		err = rt_image_find_debug(f->image, AT_FDCWD);
	if (!err)
		err = rt_symtab_create(f->image, &f->symtab);
	if (!err)
		err = rt_dwarf_create(f->image, &f->dwarf);
	rt_error_free(err);
	return f;
}

struct named {
	const char *function;
	uint64_t within; /* bytes behind its beginning */
	struct rt_source_line line;
	struct rt_elfaddr address;
	bool has_line, has_address;
};

static struct named name_place(struct listing *l, const struct rt_probe_event *e)
{
	struct file *f = file_of(l, e->path);
	struct named n = { .function = NULL };
	const struct rt_symbol *symbol;
	struct rt_scope scope;

	if (!f || !f->image || !rt_image_address(f->image, (struct rt_foff){ e->offset }, true, &n.address))
		return n;
	n.has_address = true;
	symbol = f->symtab ? rt_symtab_at(f->symtab, n.address) : NULL;
	if (symbol) {
		n.function = symbol->name;
		n.within = n.address.v - symbol->addr.v;
	}
	if (f->dwarf) {
		n.has_line = rt_dwarf_line(f->dwarf, n.address, &n.line);
		/* of an inlined instance the function that it is of */
		if (rt_dwarf_scopes(f->dwarf, n.address, &scope, 1) && scope.inlined && scope.function) {
			n.function = scope.function;
			n.within = n.address.v - scope.entry.v;
		}
	}
	return n;
}

static void list_text(struct listing *l, const struct rt_probe_event *e)
{
	struct named n = name_place(l, e);
	const char *name = rt_format(&l->arena, "%s:%s", rt_clean(&l->arena, e->group), rt_clean(&l->arena, e->name));
	const char *place = rt_format(&l->arena, "0x%" PRIx64, e->offset);

	if (n.function)
		place = n.within ? rt_format(&l->arena, "%s+%" PRIu64, rt_clean(&l->arena, n.function), n.within)
				 : rt_clean(&l->arena, n.function);
	if (e->at_return)
		place = rt_format(&l->arena, "%s%%return", place);
	if (n.has_line)
		place = rt_format(&l->arena, "%s (%s:%u)", place, rt_clean(&l->arena, rt_basename(n.line.file)),
				  n.line.line);
	rt_sink_printf(&l->out, "%-32s %s in %s%s%s\n", name, place, rt_clean(&l->arena, e->path),
		       *e->arguments ? "  " : "", rt_clean(&l->arena, e->arguments));
}

static void list_json(struct listing *l, const struct rt_probe_event *e)
{
	struct named n = name_place(l, e);

	rt_json_begin_object(&l->json, NULL);
	rt_json_string(&l->json, "group", e->group);
	rt_json_string(&l->json, "event", e->name);
	rt_json_string(&l->json, "kind", e->at_return ? "return" : "entry");
	rt_json_string(&l->json, "path", e->path);
	rt_json_hex(&l->json, "offset", e->offset);
	if (e->semaphore)
		rt_json_hex(&l->json, "semaphore", e->semaphore);
	if (n.has_address)
		rt_json_hex(&l->json, "address", n.address.v);
	if (n.function)
		rt_json_string(&l->json, "function", n.function);
	if (n.has_line) {
		rt_json_string(&l->json, "file", n.line.file);
		rt_json_u64(&l->json, "line", n.line.line);
	}
	rt_json_string(&l->json, "arguments", e->arguments);
	rt_json_end_object(&l->json);
}

static struct rt_error *list(struct listing *l)
{
	bool is_json = l->options->common.format == RT_FORMAT_JSON;

	if (is_json) {
		rt_json_begin_object(&l->json, NULL);
		rt_json_begin_array(&l->json, "events");
	}
	for (size_t i = 0; i < l->events.list.len; i++)
		if (wanted(l, &l->events.list.data[i]))
			(is_json ? list_json : list_text)(l, &l->events.list.data[i]);
	if (is_json) {
		rt_json_end_array(&l->json);
		rt_json_end_object(&l->json);
	}
	return NULL;
}

/* One event may have several lines: it goes as a whole. */
static bool is_first(const struct rt_probe_events *events, size_t i)
{
	const struct rt_probe_event *e = &events->list.data[i];

	for (size_t k = 0; k < i; k++)
		if (!strcmp(events->list.data[k].group, e->group) && !strcmp(events->list.data[k].name, e->name))
			return false;
	return true;
}

static struct rt_error *del(struct listing *l)
{
	struct rt_error *err = NULL;
	size_t count = 0;

	if (!l->options->common.operands.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe del: which?"),
				    "reftrace probe del 'GROUP:*'; list them: reftrace probe list");
	for (size_t i = 0; i < l->events.list.len; i++) {
		const struct rt_probe_event *e = &l->events.list.data[i];
		struct rt_error *one = NULL;

		if (!wanted(l, e) || !is_first(&l->events, i))
			continue;
		count++;
		if (!l->options->dry_run)
			one = rt_probe_events_remove(l->tracefs, e->group, e->name);
		if (!one)
			rt_sink_printf(&l->out, "%s %s:%s\n", l->options->dry_run ? "would remove" : "removed",
				       rt_clean(&l->arena, e->group), rt_clean(&l->arena, e->name));
		/* the others go all the same */
		if (one && err)
			rt_error_free(one);
		else if (one)
			err = one;
	}
	if (!count)
		return rt_error_fix(
			rt_error_new(RT_E_NOT_FOUND, "no uprobe event fits '%s'", l->options->common.operands.data[0]),
			"list them: reftrace probe list");
	return err;
}

static struct rt_error *work(const struct rt_probe_list_options *options, struct rt_error *(*act)(struct listing *l))
{
	struct listing l = { .options = options, .tracefs = -1 };
	struct rt_error *err = rt_tracefs_open(AT_FDCWD, false, &l.tracefs), *ended;

	if (!err)
		err = rt_probe_events_read(l.tracefs, &l.events);
	rt_sink_init_fd(&l.out, STDOUT_FILENO, "standard output");
	rt_json_init(&l.json, &l.out);
	if (!err)
		err = act(&l);
	ended = rt_sink_end(&l.out);
	rt_sink_deinit(&l.out);
	for (size_t i = 0; i < l.files.len; i++) {
		rt_dwarf_destroy(l.files.data[i].dwarf);
		rt_symtab_destroy(l.files.data[i].symtab);
		rt_image_destroy(l.files.data[i].image);
	}
	rt_vec_deinit(&l.files);
	rt_probe_events_deinit(&l.events);
	rt_arena_deinit(&l.arena);
	if (l.tracefs >= 0)
		close(l.tracefs);
	if (err) {
		rt_error_free(ended);
		return err;
	}
	return ended;
}

static int run(int argc, char **argv, struct rt_error *(*act)(struct listing *l),
	       struct rt_error *(*of_cache)(const struct rt_probe_list_options *options))
{
	struct rt_probe_list_options options = { .dry_run = false };
	struct rt_error *err = rt_options_parse(&list_argp, argc, argv, &options.common);
	int status = RT_EXIT_OK;

	if (!err && options.common.help)
		rt_options_help(&list_argp, "probe", stdout);
	else if (!err)
		err = options.cache ? of_cache(&options) : work(&options, act);
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options.common);
	return status;
}

int rt_probe_list(int argc, char **argv)
{
	return run(argc, argv, list, rt_probe_kept_list);
}

int rt_probe_del(int argc, char **argv)
{
	return run(argc, argv, del, rt_probe_kept_del);
}
