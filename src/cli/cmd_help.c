/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "probe/near.h"

static const struct argp_child children[] = { { &rt_common_argp }, { 0 } };
const struct argp rt_help_argp = { NULL, rt_parse_operands, "[COMMAND]",
				   "Shows the commands of reftrace, or the options of one.", children };

static void overview(void)
{
	puts("usage: reftrace [run] [--] PROG [ARGS...]  |  reftrace COMMAND ...\n"
	     "Names the function that forgot a put, or put too often, in unmodified programs.\n"
	     "\n"
	     "Commands:");
	for (const struct rt_command *c = rt_commands(); c->name; c++)
		printf("  %-9s %s\n", c->name, c->summary);
	puts("\n"
	     "Options of a command: reftrace help COMMAND. Manual: man reftrace.\n"
	     "First steps: reftrace doctor; reftrace ./prog; reftrace -t obj ./prog");
}

int cmd_help(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_help_argp, argc, argv, &options);
	const char *topic = !err && options.operands.len ? options.operands.data[0] : NULL;
	const struct rt_command *command = topic ? rt_command_find(topic) : NULL;
	struct rt_near near = { .wanted = topic };

	rt_options_deinit(&options);
	if (err)
		return rt_failure(err);
	if (command) {
		rt_options_help(command->argp, command->name, stdout);
		return RT_EXIT_OK;
	}
	if (!topic) {
		overview();
		return RT_EXIT_OK;
	}
	for (const struct rt_command *c = rt_commands(); c->name; c++)
		rt_near_offer(&near, c->name);
	err = rt_error_new(RT_E_USAGE,
			   rt_command_reserved(topic) ? "command '%s' is not in this build yet" : "no command '%s'",
			   topic);
	if (near.count)
		return rt_failure(rt_error_fix(err, "did you mean: reftrace help %s?", near.names[0]));
	return rt_failure(rt_error_fix(err, "all commands: reftrace help"));
}
