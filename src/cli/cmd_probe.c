/* SPDX-License-Identifier: GPL-2.0-only */
/* probe: what can be probed, and the probes that are there. */
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/listing.h"
#include "cli/options.h"
#include "cli/probe_command.h"
#include "cli/probe_kernel.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} table[] = {
	{ "add", rt_probe_add },         { "del", rt_probe_del },     { "export", rt_probe_export },
	{ "funcs", rt_probe_funcs },     { "lines", rt_probe_lines }, { "list", rt_probe_list },
	{ "markers", rt_probe_markers }, { "show", rt_probe_show },   { "vars", rt_probe_vars },
};

/* perf probe has letters where we have words. */
static const struct {
	const char *letter, *name;
} letters[] = {
	{ "-a", "add" }, { "-d", "del" }, { "-l", "list" }, { "-F", "funcs" }, { "-L", "lines" }, { "-V", "vars" },
};

static const struct argp_option letter_options[] = {
	{ NULL, 'a', "DEFINITION", 0, "add, by the letter that perf has for it", 0 },
	{ NULL, 'd', "GLOB", 0, "del, by perf's letter", 0 },
	{ NULL, 'l', NULL, 0, "list, and -F, -L, -V: funcs, lines, vars", 0 },
	{ 0 },
};
static const struct argp letter_argp = { letter_options, NULL };

static const struct argp_child children[] = { { &rt_probe_add_options, 0, "show, add:", 1 },
					      { &rt_probe_list_options, 0, "list, del:", 2 },
					      { &rt_probe_markers_options, 0, "markers:", 3 },
					      { &rt_listing_options, 0, "funcs, lines, vars:", 4 },
					      { &rt_probe_lines_options, 0, "lines:", 5 },
					      { &rt_probe_vars_options, 0, "vars:", 6 },
					      { &rt_root_argp, 0, NULL, 4 },
					      { &rt_probe_export_options, 0, "export:", 7 },
					      { &rt_probe_kernel_argp, 0, "show, export:", 8 },
					      { &letter_argp, 0, NULL, 0 },
					      { &rt_common_argp },
					      { 0 } };
const struct argp rt_probe_argp = {
	NULL, rt_parse_operands,
	"show|add -x FILE DEFINITION...\nlist [GLOB...]\ndel GLOB...\nmarkers FILE...\nfuncs FILE [GLOB]\n"
	"lines FILE FUNC|SRC[:N-M]\nvars FILE FUNC[:LINE]|SRC:LINE|0xADDR\nexport FILE|BUILD-ID "
	"[GROUP:EVENT...]\nexport -k VMLINUX DEFINITION...",
	"Says what can be probed, and keeps probes in the kernel.", children
};

typedef int command(int argc, char **argv);

static command *find(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].name, name))
			return table[i].run;
	return NULL;
}

static const char *name_of_letter(const char *word)
{
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (!strcmp(letters[i].letter, word))
			return letters[i].name;
	return NULL;
}

/* The first word names the command; what is left of argv keeps its order. */
static int run(int argc, char **argv, int word)
{
	command *found = find(argv[word]);

	if (!found)
		return rt_failure(rt_error_fix(rt_error_new(RT_E_USAGE, "probe: no command '%s'", argv[word]),
					       "reftrace help probe"));
	memmove(&argv[1], &argv[0], (size_t)word * sizeof(*argv));
	return found(argc - 1, argv + 1);
}

/* A letter names it, in any place and as often as there are words for it; these are left. */
static int run_letter(int argc, char **argv, const char *name)
{
	int left = 1;

	for (int i = 1; i < argc; i++) {
		const char *other = name_of_letter(argv[i]);

		if (other && strcmp(other, name) != 0)
			return rt_failure(rt_error_new(RT_E_USAGE, "probe: %s and %s, one at a time", name, other));
		if (!other)
			argv[left++] = argv[i];
	}
	argv[left] = NULL;
	return find(name)(left, argv);
}

int cmd_probe(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err;
	int word = 0;

	for (int i = argc - 1; i > 0; i--)
		if (argv[i][0] != '-')
			word = i;
	for (int i = 1; i < argc && !(word && find(argv[word])); i++)
		if (name_of_letter(argv[i]))
			return run_letter(argc, argv, name_of_letter(argv[i]));
	if (word)
		return run(argc, argv, word);
	err = rt_options_parse(&rt_probe_argp, argc, argv, &options);
	if (!err && options.help)
		rt_options_help(&rt_probe_argp, "probe", stdout);
	else if (!err)
		err = rt_error_fix(rt_error_new(RT_E_USAGE, "probe: what shall be done?"), "reftrace help probe");
	rt_options_deinit(&options);
	return err ? rt_failure(err) : RT_EXIT_OK;
}
