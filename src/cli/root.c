/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static const struct argp_option own[] = {
	{ "symfs", RT_OPT_SYMFS, "DIR", 0,
	  "DIR stands for /: files, their debug files and sources are looked up below it", 2 },
	{ "target-ns", RT_OPT_TARGET_NS, "PID", 0, "the same, with the root that process PID sees (a container's)", 2 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;
	uint64_t pid;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options;
		return 0;
	case RT_OPT_SYMFS:
		options->symfs = arg;
		return 0;
	case RT_OPT_TARGET_NS:
		if (!rt_parse_u64(arg, strlen(arg), 10, &pid) || !pid || pid > INT32_MAX)
			return rt_option_fault(options,
					       rt_error_fix(rt_error_new(RT_E_USAGE, "'%s' is no process id", arg),
							    "find it with: pgrep NAME"));
		options->list.target_ns = (uint32_t)pid;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option fetch_options[] = {
	{ "debuginfod", RT_OPT_DEBUGINFOD, "URL", OPTION_ARG_OPTIONAL,
	  "fetch debug information that is not here from a debuginfod server (default: $DEBUGINFOD_URLS)", 2 },
	{ "debuginfod-timeout", RT_OPT_DEBUGINFOD_TIMEOUT, "TIME", 0,
	  "give it up when no byte comes for TIME (default 30s)", 2 },
	{ 0 },
};

static error_t parse_fetch(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case RT_OPT_DEBUGINFOD:
		options->debuginfod = true;
		options->debuginfod_urls = arg;
		return 0;
	case RT_OPT_DEBUGINFOD_TIMEOUT:
		return rt_option_fault(options, rt_parse_duration(arg, &options->debuginfod_timeout_ns));
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_debuginfod_argp = { fetch_options, parse_fetch };
static const struct argp_child root_children[] = { { &rt_debuginfod_argp }, { 0 } };
const struct argp rt_root_argp = { own, parse, NULL, NULL, root_children };

struct rt_error *rt_root_of_process(uint32_t pid, int *ret)
{
	_cleanup_close_ int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ESRCH))
		return rt_error_fix(rt_error_new(RT_E_NO_PROCESS, "no process %u", pid), "find it with: pgrep NAME");
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return rt_error_fix(rt_error_errno(RT_E_UNREADABLE, errno, "cannot enter the root of process %u", pid),
				    "it belongs to another user: try with sudo");
	if (fd < 0)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot enter the root of process %u", pid);
	*ret = rt_take_fd(&fd);
	return NULL;
}

struct rt_error *rt_root_open(const struct rt_options *options, int *ret)
{
	int fd;

	if (options->symfs && options->list.target_ns)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--symfs and --target-ns name two roots"),
				    "tell one of them");
	if (options->list.target_ns)
		return rt_root_of_process(options->list.target_ns, ret);
	if (!options->symfs) {
		*ret = AT_FDCWD;
		return NULL;
	}
	fd = open(options->symfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return rt_error_fix(rt_error_errno(RT_E_UNREADABLE, errno, "cannot enter %s", options->symfs),
				    "--symfs takes the directory that an image or a layer was unpacked into");
	*ret = fd;
	return NULL;
}

struct rt_error *rt_root_wrap(const struct rt_options *options, struct rt_error *err)
{
	if (!err)
		return NULL;
	if (options->symfs)
		err = rt_error_wrap(err, "below %s", options->symfs);
	else if (options->list.target_ns)
		err = rt_error_wrap(err, "in the mount namespace of process %u", options->list.target_ns);
	else
		return err;
	return err->fix ? err
			: rt_error_fix(err,
				       "with --symfs and --target-ns FILE is a path inside of that root, as programs "
				       "there see it");
}
