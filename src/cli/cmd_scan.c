/* SPDX-License-Identifier: GPL-2.0-only */
/* scan: which get/put families would be traced, module by module, and how sure that is. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/fs.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/file.h"
#include "cli/listing.h"
#include "cli/options.h"
#include "cli/root.h"
#include "cli/spec_choice.h"
#include "cli/verify.h"
#include "maps/maps.h"
#include "probe/scan.h"
#include "probe/spec_type.h"
#include "report/json_writer.h"
#include "report/words.h"

enum { MAPS_MAX = 64 << 20 };
enum { OPT_VERIFY = 0x1000 };

static const struct argp_option own[] = {
	{ "pid", 'p', "PID[,PID]", 0, "look at the modules of running processes", 1 },
	{ "type", 't', "NAME", 0, "only families of this type (repeatable)", 1 },
	{ "no-presets", RT_OPT_NO_PRESETS, NULL, 0, "use no presets, only code and names", 1 },
	{ "write", RT_OPT_WRITE, "FILE", 0, "write what was found as a preset, for -P ./FILE", 1 },
	{ "verify", OPT_VERIFY, NULL, 0,
	  "run a program (scan --verify -- PROG ARGS) and check against the counters what each function does", 1 },
	{ "pairs", 'P', "SPEC", 0,
	  "with --verify: the functions to check; without it those that are found (repeatable)", 1 },
	{ "output", 'o', "FILE", 0, "with --verify: write the table to FILE", 1 },
	{ "json", RT_OPT_JSON, NULL, 0, "print JSON", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case OPT_VERIFY:
		options->verify = true;
		return 0;
	case 'P':
		return rt_vec_push(&options->pairs, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case 'o':
		options->output = arg;
		return 0;
	case 'p':
		return rt_option_fault(options, rt_parse_pids(arg, options));
	case RT_OPT_WRITE:
		options->write = arg;
		return 0;
	case 't':
		if (!strncmp(arg, "struct ", 7))
			arg += 7;
		return rt_vec_push(&options->types, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case RT_OPT_NO_PRESETS:
		options->no_presets = true;
		return 0;
	case RT_OPT_JSON:
		options->format = RT_FORMAT_JSON;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Files to look into, or a program to run. */
static error_t parse_words(int key, char *arg, struct argp_state *state)
{
	const struct rt_options *options = state->input;

	return options->verify ? rt_parse_program(key, arg, state) : rt_parse_operands(key, arg, state);
}

static const struct argp scan_argp = { own, parse };
static const struct argp_child children[] = { { &scan_argp }, { &rt_root_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_scan_argp = {
	NULL, parse_words, "FILE...\n-p PID[,PID]\n--verify [-P SPEC] -- PROG [ARGS...]",
	"Lists the get/put families of programs and libraries; or checks what is declared of them.", children
};

struct scan {
	const struct rt_options *options;
	const char **types; /* owned, NULL-terminated, or NULL */
	int root_fd;
	struct rt_presets *presets;
	struct rt_spec all; /* of every module, for --write */
	struct rt_json json;
	struct rt_sink out;
	struct rt_arena arena;
	size_t families, modules;
};

static const char *place_suffix(struct scan *s, const struct rt_spec_function *f)
{
	switch (f->place) {
	case RT_PLACE_ARG:
		return rt_format(&s->arena, ":%u", f->arg);
	case RT_PLACE_ARG_PTR:
		return rt_format(&s->arena, ":%s%u", f->levels > 1 ? "**" : "*", f->arg);
	case RT_PLACE_RET:
		return ":ret";
	case RT_PLACE_RET_PTR:
		return ":*ret";
	case RT_PLACE_OUT:
		return rt_format(&s->arena, ":out*%u", f->arg);
	}
	return "";
}

/* How a family is confirmed beyond its names, as the planner sees it. */
static const char *confirmed(struct scan *s, const struct rt_spec_type *type, const struct rt_plan_type *planned,
			     const struct rt_dwarf *dwarf)
{
	if (rt_spec_is_preset(type))
		return type->origin;
	if (planned && planned->counter_from && !strcmp(planned->counter_from, "inferred")) {
		if (!rt_spec_has_op(planned->spec, RT_OP_PUT))
			return "by debug info: counted in the open";
		return rt_spec_has_op(planned->spec, RT_OP_GET) ? "by code: both change one counter"
								: "by code: the put counts down";
	}
	if (planned && planned->counter_from)
		return rt_format(&s->arena, "by %s: its counter is known", planned->counter_from);
	if (rt_dwarf_present(dwarf) && !rt_spec_has_op(type, RT_OP_GET))
		return "by code: one owner, what is made is ended";
	return rt_dwarf_present(dwarf) ? "by name and parameter type" : "by name only: traced only with -t";
}

static void family_text(struct scan *s, const struct rt_spec_type *type, const char *how, uint32_t points)
{
	rt_sink_printf(&s->out, "  %-16s ", rt_clean(&s->arena, type->name));
	for (size_t i = 0; i < type->functions.len; i++) {
		const struct rt_spec_function *f = &type->functions.data[i];

		rt_sink_printf(&s->out, "%s%s=%s%s", i ? " " : "", f->hidden ? "hidden" : rt_op_name(f->op),
			       rt_clean(&s->arena, f->name), place_suffix(s, f));
	}
	if (!rt_spec_has_op(type, RT_OP_PUT) && type->counter_offset != RT_COUNTER_UNKNOWN)
		rt_sink_printf(&s->out, "%scounter=%+" PRId32 ":%" PRIu32, type->functions.len ? " " : "",
			       type->counter_offset, type->counter_size);
	rt_sink_printf(&s->out, "\n                   %s; %u point%s\n", how, points, rt_plural(points));
}

static void family_json(struct scan *s, const struct rt_spec_type *type, const char *how, uint32_t points)
{
	rt_json_begin_object(&s->json, NULL);
	rt_json_string(&s->json, "type", type->name);
	rt_json_begin_array(&s->json, "functions");
	for (size_t i = 0; i < type->functions.len; i++) {
		const struct rt_spec_function *f = &type->functions.data[i];

		rt_json_begin_object(&s->json, NULL);
		rt_json_string(&s->json, "op", f->hidden ? "hidden" : rt_op_name(f->op));
		rt_json_string(&s->json, "function", f->name);
		rt_json_string(&s->json, "place", place_suffix(s, f));
		rt_json_end_object(&s->json);
	}
	rt_json_end_array(&s->json);
	rt_json_string(&s->json, "confirmed", how);
	rt_json_u64(&s->json, "points", points);
	rt_json_end_object(&s->json);
}

static void module_begin(struct scan *s, const char *name, bool stripped, size_t count)
{
	if (s->options->format == RT_FORMAT_JSON) {
		rt_json_begin_object(&s->json, NULL);
		rt_json_string(&s->json, "module", name);
		rt_json_bool(&s->json, "stripped", stripped);
		rt_json_begin_array(&s->json, "families");
	} else if (count) {
		rt_sink_printf(&s->out, "%s%s\n", rt_clean(&s->arena, name),
			       stripped ? "  (stripped: only exported functions)" : "");
	}
}

static void module_families(struct scan *s, const struct rt_plan_module *module, const struct rt_spec *spec,
			    const struct rt_plan *plan)
{
	module_begin(s, module->name, module->symtab->stripped, spec->types.len);
	for (size_t i = 0; i < spec->types.len; i++) {
		const struct rt_plan_type *planned = i < plan->types.len ? &plan->types.data[i] : NULL;
		const char *how = confirmed(s, &spec->types.data[i], planned, module->dwarf);

		if (s->options->format == RT_FORMAT_JSON)
			family_json(s, &spec->types.data[i], how, planned ? planned->points : 0);
		else
			family_text(s, &spec->types.data[i], how, planned ? planned->points : 0);
	}
	if (s->options->format == RT_FORMAT_JSON) {
		rt_json_end_array(&s->json);
		rt_json_end_object(&s->json);
	}
	s->families += spec->types.len;
}

/* Appends spec to s->all through its written form. */
static struct rt_error *keep(struct scan *s, const struct rt_spec *spec)
{
	_cleanup_free_ char *text = NULL;

	if (!s->options->write || !spec->types.len)
		return NULL;
	RT_TRY(rt_spec_write(spec, &text));
	return rt_spec_parse(text, strlen(text), "scan", &s->all);
}

static struct rt_error *scan_planned(struct scan *s, const struct rt_plan_module *module, struct rt_spec *spec)
{
	struct rt_scan_options how = { .types = s->types };
	struct rt_plan_options plan_options = { .return_points = true };
	_cleanup_(rt_plan_destroyp) struct rt_plan *plan = NULL;
	size_t first;

	if (s->presets)
		RT_TRY(rt_presets_adopt(s->presets, module, spec));
	RT_TRY(rt_scan_module(module, &how, spec));
	RT_TRY(rt_plan_create(spec, &plan_options, &plan));
	RT_TRY(rt_plan_module(plan, module, &first));
	module_families(s, module, spec, plan);
	return keep(s, spec);
}

static struct rt_error *scan_image(struct scan *s, struct rt_image *image, const char *name)
{
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	struct rt_plan_module module = { .id = 1, .name = name, .image = image };
	struct rt_spec spec = { 0 };
	const char *missing;
	struct rt_error *err;

	RT_TRY(rt_fetch_debug(s->options, s->root_fd, image));
	RT_TRY(rt_symtab_create(image, &symtab));
	RT_TRY(rt_dwarf_create(image, &dwarf));
	module.symtab = symtab;
	module.dwarf = dwarf;
	err = scan_planned(s, &module, &spec);
	missing = rt_split_missing(&s->arena, dwarf);
	if (missing)
		fprintf(stderr, "reftrace: %s: %s; functions and types in them are not seen\n",
			rt_clean(&s->arena, name), rt_clean(&s->arena, missing));
	rt_spec_deinit(&spec);
	s->modules++;
	return err;
}

/* opens `open` below root and calls it `name` */
static struct rt_error *scan_file(struct scan *s, int root, const char *open_path, const char *name)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_close_ int fd = -1;

	RT_TRY(rt_fs_open_inside(root, open_path, &fd));
	RT_TRY(rt_image_open_fd(fd, name, &image));
	return scan_image(s, image, name);
}

static struct rt_error *scan_process(struct scan *s, uint32_t pid)
{
	const char *path = rt_format(&s->arena, "/proc/%u/maps", pid);
	_cleanup_free_ char *text = NULL;
	struct rt_maps_line line;
	char *cursor;
	RT_VEC(const char *) seen = { 0 };
	struct rt_error *err = rt_fs_read(AT_FDCWD, path, MAPS_MAX, &text, NULL);

	if (rt_error_catch(&err, RT_E_NOT_FOUND))
		return rt_error_fix(rt_error_new(RT_E_NO_PROCESS, "no process %u", pid), "find it with: pgrep NAME");
	RT_TRY(err);
	cursor = text;
	while (rt_maps_parse_line(&cursor, &line)) {
		const char *open_path;
		bool known = !line.executable || line.path[0] != '/';

		for (size_t i = 0; i < seen.len && !known; i++)
			known = !strcmp(seen.data[i], line.path);
		if (known || !rt_vec_push(&seen, rt_format(&s->arena, "%s", line.path)))
			continue;
		/* the very file that is mapped, even in another mount namespace or deleted */
		open_path = rt_format(&s->arena, "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)line.start,
				      (unsigned long long)line.end);
		err = scan_file(s, AT_FDCWD, open_path, seen.data[seen.len - 1]);
		if (err)
			fprintf(stderr, "reftrace: %s; ignoring\n", rt_clean(&s->arena, err->message));
		rt_error_free(err);
	}
	rt_vec_deinit(&seen);
	return NULL;
}

static struct rt_error *write_preset(struct scan *s)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err;
	struct rt_sink sink;

	RT_TRY(rt_spec_write(&s->all, &text));
	RT_TRY(rt_file_create(s->options->write, &fd));
	rt_sink_init_fd(&sink, fd, s->options->write);
	rt_sink_puts(&sink, "# found by reftrace scan; see reftrace.spec(5)\n");
	rt_sink_printf(&sink, "%s\n", text);
	err = rt_sink_end(&sink);
	rt_sink_deinit(&sink);
	return err;
}

static struct rt_error *scan_all(struct scan *s)
{
	const struct rt_options *options = s->options;

	if (options->format == RT_FORMAT_JSON) {
		rt_json_begin_object(&s->json, NULL);
		rt_json_begin_array(&s->json, "modules");
	}
	for (size_t i = 0; i < options->operands.len; i++)
		RT_TRY(rt_root_wrap(options,
				    scan_file(s, s->root_fd, options->operands.data[i], options->operands.data[i])));
	for (size_t i = 0; i < options->pids.len; i++)
		RT_TRY(scan_process(s, options->pids.data[i]));
	if (options->format == RT_FORMAT_JSON) {
		rt_json_end_array(&s->json);
		rt_json_end_object(&s->json);
	}
	RT_TRY(rt_sink_end(&s->out));
	if (options->write)
		RT_TRY(write_preset(s));
	if (s->families)
		return NULL;
	return rt_error_fix(
		rt_error_new(RT_E_NO_PAIRS, "no get/put family was found in %zu module%s", s->modules,
			     rt_plural(s->modules)),
		"tell them: reftrace run -P 'type=NAME new=FN get=FN put=FN' -- PROG (man 5 reftrace.spec)");
}

static struct rt_error *scan(const struct rt_options *options)
{
	struct scan s = { .options = options, .root_fd = AT_FDCWD };
	_cleanup_close_ int root = -1;
	struct rt_error *err;

	if (!options->operands.len && !options->pids.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "scan: no file and no -p PID"),
				    "reftrace scan FILE, or reftrace scan -p PID");
	RT_TRY(rt_root_open(options, &root));
	s.root_fd = root;
	if (options->types.len) {
		s.types = calloc(options->types.len + 1, sizeof(*s.types));
		if (!s.types)
			return rt_error_nomem();
		memcpy(s.types, options->types.data, options->types.len * sizeof(*s.types));
	}
	rt_sink_init_fd(&s.out, STDOUT_FILENO, "standard output");
	rt_json_init(&s.json, &s.out);
	err = rt_spec_presets(options, &s.presets);
	if (!err)
		err = scan_all(&s);
	rt_sink_deinit(&s.out);
	rt_spec_deinit(&s.all);
	rt_presets_destroyp(&s.presets);
	rt_arena_deinit(&s.arena);
	free(s.types);
	return err;
}

int cmd_scan(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_scan_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help)
		rt_options_help(&rt_scan_argp, "scan", stdout);
	else if (!err && options.verify)
		err = rt_verify(&options, &status);
	else if (!err)
		err = scan(&options);
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options);
	return status;
}
