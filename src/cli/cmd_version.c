/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/options.h"

static const struct argp_option own[] = {
	{ "build-options", RT_OPT_BUILD_OPTIONS, NULL, 0, "say what was built in" },
	{ 0 },
};
static const struct argp_child children[] = { { &rt_common_argp }, { 0 } };
const struct argp rt_version_argp = { own, rt_parse_operands, "", "Shows the version of reftrace.", children };

int cmd_version(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_version_argp, argc, argv, &options);
	bool all = !err && options.build_options, help = !err && options.help;

	rt_options_deinit(&options);
	if (err)
		return rt_failure(err);
	if (help) {
		rt_options_help(&rt_version_argp, argv[0], stdout);
		return RT_EXIT_OK;
	}
	printf("reftrace %s\n", RT_VERSION);
	if (all)
		printf("engine uprobe: %s\npresets: %s\n", RT_HAVE_BPF ? "yes" : "no (built without BPF)",
		       RT_PRESETS_DIR);
	return RT_EXIT_OK;
}
