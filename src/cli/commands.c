/* SPDX-License-Identifier: GPL-2.0-only */
#include "command.h"

#include <string.h>

static const struct rt_command table[] = {
	{ "run", cmd_run, "[--] PROG [ARGS...] | -p PID", "trace a program, report at its end (the default command)",
	  &rt_run_argp },
	{ "record", cmd_record, "[--] PROG [ARGS...] | -p PID", "trace into a recording, report later",
	  &rt_record_argp },
	{ "report", cmd_report, "[-i FILE]", "report a recording (ours or perf's) or an .events file",
	  &rt_report_argp },
	{ "script", cmd_script, "[-i FILE]", "print the records of a recording one by one", &rt_script_argp },
	{ "object", cmd_object, "[-i FILE] OBJECT", "show the whole life of one object", &rt_object_argp },
	{ "tree", cmd_tree, "[-i FILE]", "show by call path who kept the references that were never given back",
	  &rt_tree_argp },
	{ "diff", cmd_diff, "OLD NEW", "compare the findings of two recordings, also of different builds",
	  &rt_diff_argp },
	{ "annotate", cmd_annotate, "[-i FILE] [FUNCTION]", "show where in a function the samples fell",
	  &rt_annotate_argp },
	{ "export", cmd_export, "FORMAT [-i FILE] [-o FILE]", "write a recording for another viewer", &rt_export_argp },
	{ "archive", cmd_archive, "create | list FILE | unpack FILE",
	  "a recording with all it needs, for another machine", &rt_archive_argp },
	{ "scan", cmd_scan, "FILE... | -p PID", "list the get/put families that would be traced", &rt_scan_argp },
	{ "probe", cmd_probe, "show|add -x FILE DEF... | list | del GLOB... | markers|funcs|lines|vars FILE...",
	  "resolve probes, keep them in the kernel, list what can be probed", &rt_probe_argp },
	{ "cache", cmd_cache, "list | show ID | add FILE... | verify | rm ID... | gc", "look after the build-id cache",
	  &rt_cache_argp },
	{ "bpf", cmd_bpf, "[list] | [--] PROG [ARGS...] | -a", "list BPF programs, who loaded them and what leaked",
	  &rt_bpf_argp },
	{ "doctor", cmd_doctor, "", "try what works on this machine, and say what would help", &rt_doctor_argp },
	{ "help", cmd_help, "[COMMAND]", "show the commands, or the options of one", &rt_help_argp },
	{ "version", cmd_version, "", "show the version and how it was built", &rt_version_argp },
	{ NULL },
};

/* Words of later versions: a script that uses one shall get a clear answer, not a traced program of that name. */
static const char *const reserved[] = {
	"top", "check", "suppress", "html", "tui", "completion", NULL,
};

const struct rt_command *rt_commands(void)
{
	return table;
}

const struct rt_command *rt_command_find(const char *name)
{
	for (const struct rt_command *c = table; c->name; c++) {
		if (!strcmp(c->name, name))
			return c;
	}
	return NULL;
}

bool rt_command_reserved(const char *name)
{
	for (size_t i = 0; reserved[i]; i++) {
		if (!strcmp(reserved[i], name))
			return true;
	}
	return false;
}
