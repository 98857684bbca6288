/* SPDX-License-Identifier: GPL-2.0-only */
/* doctor: what works here, why the rest does not, and what would help. */
#include <string.h>
#include <sys/utsname.h>

#include "cli/command.h"
#include "cli/doctor_checks.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/json_writer.h"
#include "report/words.h"

static const struct argp_option own[] = {
	{ "json", RT_OPT_JSON, NULL, 0, "print JSON", 1 },
	{ "color", RT_OPT_COLOR, "WHEN", 0, "auto, always or never", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	if (key == RT_OPT_JSON)
		options->format = RT_FORMAT_JSON;
	else if (key == RT_OPT_COLOR)
		options->color = !strcmp(arg, "always")  ? RT_COLOR_ALWAYS
				 : !strcmp(arg, "never") ? RT_COLOR_NEVER
							 : RT_COLOR_AUTO;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp doctor_argp = { own, parse };
static const struct argp_child children[] = { { &doctor_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_doctor_argp = { NULL, rt_parse_operands, "",
				     "Tries what reftrace needs, on itself and a child of its own. Exit status 0 when "
				     "programs can be traced here, else 125.",
				     children };

static void print_text(const struct rt_options *options, struct rt_arena *arena, struct rt_sink *out,
		       const struct rt_check *checks, size_t count, bool works)
{
	bool color = rt_output_color(options->color, STDOUT_FILENO);
	struct utsname host = { 0 };

	if (!uname(&host))
		rt_sink_printf(out, "reftrace %s on %s %s %s, uid %u\n\n", RT_VERSION, host.sysname, host.release,
			       host.machine, (unsigned)geteuid());
	for (size_t i = 0; i < count; i++) {
		const struct rt_check *c = &checks[i];

		rt_sink_printf(out, "%s%-3s%s  %-38s  %s\n",
			       !color     ? ""
			       : c->works ? "\033[32m"
					  : "\033[1;31m",
			       c->works ? "ok" : "no", color ? "\033[0m" : "", c->what, rt_clean(arena, c->why));
		for (const char *p = c->fix; p && *p; p += strcspn(p, "\n"), p += *p == '\n')
			rt_sink_printf(out, "       fix: %s\n",
				       rt_clean(arena, rt_arena_strndup(arena, p, strcspn(p, "\n"))));
	}
	rt_sink_puts(out,
		     works ? "\nprograms can be traced here: reftrace run -- PROG ARGS\n" : "\nno engine works here\n");
}

static void print_json(struct rt_sink *out, const struct rt_check *checks, size_t count, bool works)
{
	struct rt_json json;

	rt_json_init(&json, out);
	rt_json_begin_object(&json, NULL);
	rt_json_bool(&json, "works", works);
	rt_json_begin_array(&json, "checks");
	for (size_t i = 0; i < count; i++) {
		rt_json_begin_object(&json, NULL);
		rt_json_string(&json, "name", checks[i].name);
		rt_json_string(&json, "what", checks[i].what);
		rt_json_bool(&json, "works", checks[i].works);
		rt_json_string(&json, "why", checks[i].why);
		rt_json_string(&json, "fix", checks[i].fix);
		rt_json_end_object(&json);
	}
	rt_json_end_array(&json);
	rt_json_end_object(&json);
}

static struct rt_error *doctor(const struct rt_options *options, int *ret)
{
	struct rt_arena arena = { 0 };
	struct rt_check *checks;
	struct rt_error *err;
	struct rt_sink out;
	size_t count;
	bool works, engine = false;

	rt_doctor_checks(&arena, &checks, &count);
	works = count != 0;
	for (size_t i = 0; i < count; i++) {
		works &= checks[i].works || !checks[i].needed;
		engine |= checks[i].works && checks[i].engine;
	}
	works &= engine;
	rt_sink_init_fd(&out, STDOUT_FILENO, "standard output");
	if (options->format == RT_FORMAT_JSON)
		print_json(&out, checks, count, works);
	else
		print_text(options, &arena, &out, checks, count, works);
	err = rt_sink_end(&out);
	rt_sink_deinit(&out);
	rt_arena_deinit(&arena);
	*ret = works ? RT_EXIT_OK : RT_EXIT_FAILED;
	return err;
}

int cmd_doctor(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_doctor_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help)
		rt_options_help(&rt_doctor_argp, "doctor", stdout);
	else if (!err && options.operands.len)
		err = rt_error_fix(
			rt_error_new(RT_E_USAGE, "doctor: takes no arguments, not '%s'", options.operands.data[0]),
			"see: reftrace help doctor");
	else if (!err)
		err = doctor(&options, &status);
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options);
	return status;
}
