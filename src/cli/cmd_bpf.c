// SPDX-License-Identifier: GPL-2.0-only
/*
 * bpf: the lives of BPF programs. Without a program, what is loaded now and who
 * holds it; with one, everything that it and its children load, until it has ended.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cli/bpf_list.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/output.h"
#include "session/spawn.h"

#define DRAIN_EVERY_MS 20
#define SETTLE_NS 1000000000ull /* how long unloads may come behind the end of the program */

enum { RT_OPT_STATS = 0x800 };

struct bpf_options {
	struct rt_options common; /* first: argp hands it on */
	bool all, stats;
};

static const struct argp_option own[] = {
	{ "all", 'a', NULL, 0, "watch the loads of all processes until Ctrl-C or --duration", 1 },
	{ "pid", 'p', "PID[,PID]", 0, "only programs that these processes hold; with -a or --duration: that they load",
	  1 },
	{ "duration", RT_OPT_DURATION, "TIME", 0, "watch for TIME: 30s, 100ms, 5m", 1 },
	{ "stats", RT_OPT_STATS, NULL, 0, "let the kernel count how often and how long programs run", 1 },
	{ "user", 'u', "USER", 0, "run the program as USER", 1 },
	{ "env", 'E', "VAR=VAL", 0, "set a variable for the program (repeatable)", 1 },
	{ "ring", 'm', "SIZE", 0, "size of the ring between kernel and reftrace: 1M, 64M (16M)", 1 },
	{ "output", 'o', "FILE", 0, "write the list to FILE", 2 },
	{ "json", RT_OPT_JSON, "FILE", OPTION_ARG_OPTIONAL, "print JSON; with =FILE: JSON there, and the text list",
	  2 },
	{ "error-exitcode", RT_OPT_ERROR_EXITCODE, "N", OPTION_ARG_OPTIONAL,
	  "exit with N (23 without =N) when programs leaked", 2 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bpf_options *options = state->input;

	switch (key) {
	case 'a':
		options->all = true;
		return 0;
	case RT_OPT_STATS:
		options->stats = true;
		return 0;
	case 'm':
		return rt_option_fault(&options->common, rt_parse_size(arg, &options->common.ring_bytes));
	case 'p':
	case RT_OPT_DURATION:
	case 'u':
	case 'E':
		return rt_target_argp.parser(key, arg, state);
	case 'o':
	case RT_OPT_JSON:
	case RT_OPT_ERROR_EXITCODE:
		return rt_output_argp.parser(key, arg, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp bpf_argp = { own, parse };
static const struct argp_child children[] = { { &bpf_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_bpf_argp = { NULL, rt_parse_program, "[list]\n[--] PROG [ARGS...]\n-a | -p PID[,PID]",
				  "Lists the BPF programs that are loaded and who holds them; or runs a program and "
				  "lists what it loaded, how long each lived, and what leaked.",
				  children };

struct run {
	const struct bpf_options *options;
	struct rt_bpf_watch *watch;
	struct rt_spawn child;
	struct rt_bpf_listing listing;
	sigset_t mask, old_mask;
	int signals; /* signalfd */
	bool child_ended, interrupted;
	int child_status;
	uint64_t deadline_ns;
};

/* ---- the watched run ---- */

static struct rt_error *watch_signals(struct run *run)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };

	sigemptyset(&run->mask);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		struct sigaction old;

		/* what is ignored stays so (nohup) */
		if (wanted[i] == SIGCHLD || (!sigaction(wanted[i], NULL, &old) && old.sa_handler != SIG_IGN))
			sigaddset(&run->mask, wanted[i]);
	}
	sigprocmask(SIG_BLOCK, &run->mask, &run->old_mask);
	run->signals = signalfd(-1, &run->mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signals < 0 ? rt_error_errno(RT_E_SYSTEM, errno, "cannot watch signals") : NULL;
}

static void take_signals(struct run *run)
{
	struct signalfd_siginfo s;

	while (read(run->signals, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGCHLD)
			continue;
		if (run->child.pid && !run->child_ended) {
			/* a signal of the terminal went to the program, too; a second one ends the wait */
			if (s.ssi_code != SI_KERNEL)
				kill(run->child.pid, (int)s.ssi_signo);
			if (run->interrupted)
				run->child_ended = true;
		}
		run->interrupted = true;
	}
	if (run->child.pid && !run->child_ended && waitpid(run->child.pid, &run->child_status, WNOHANG) > 0) {
		run->child_ended = true;
		run->listing.program_ended = true;
	}
}

static bool over(const struct run *run)
{
	if (run->deadline_ns && rt_now_ns() >= run->deadline_ns)
		return true;
	return run->child.pid ? run->child_ended : run->interrupted;
}

static struct rt_error *turn(struct run *run, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = run->signals, .events = POLLIN },
				{ .fd = rt_bpf_watch_fd(run->watch), .events = POLLIN } };

	if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot wait");
	take_signals(run);
	return rt_bpf_watch_drain(run->watch, NULL);
}

/* true when some program is still loaded though nobody seems to hold it: its unload may be under way. */
static bool unsettled(const struct rt_bpf_catalog *catalog)
{
	for (size_t i = 0; i < catalog->entries.len; i++) {
		const struct rt_bpf_entry *e = catalog->entries.data[i];

		if (!e->before && !e->gone && e->held_unseen)
			return true;
	}
	return false;
}

static struct rt_error *start_child(struct run *run)
{
	const struct rt_options *o = &run->options->common;
	struct rt_spawn_options spawn = {
		.command = o->command, .user = o->user, .as_root = true, .mask = run->old_mask
	};
	_cleanup_free_ const char **env = calloc(o->env.len + 1, sizeof(*env));

	if (!env)
		return rt_error_nomem();
	for (size_t i = 0; i < o->env.len; i++)
		env[i] = o->env.data[i];
	spawn.env = env;
	RT_TRY(rt_spawn_start(&spawn, &run->child));
	RT_TRY(rt_bpf_watch_follow(run->watch, (uint32_t)run->child.pid));
	return rt_spawn_go(&run->child);
}

static struct rt_error *watch(struct run *run)
{
	const struct rt_options *o = &run->options->common;
	struct rt_bpf_watch_options options = { .pids = o->pids.data,
						.pid_count = o->pids.len,
						.all = run->options->all && !o->command,
						.stats = run->options->stats,
						.ring_bytes = o->ring_bytes };
	struct rt_bpf_catalog *catalog;
	uint64_t settle_ns;

	RT_TRY(watch_signals(run));
	RT_TRY(rt_bpf_watch_create(&options, &run->watch));
	catalog = rt_bpf_watch_catalog(run->watch);
	run->listing.watched = true;
	run->listing.start_ns = rt_now_ns();
	if (o->duration_ns)
		run->deadline_ns = run->listing.start_ns + o->duration_ns;
	if (o->command)
		RT_TRY(start_child(run));
	while (!over(run))
		RT_TRY(turn(run, DRAIN_EVERY_MS));
	settle_ns = rt_now_ns() + SETTLE_NS;
	do {
		RT_TRY(turn(run, DRAIN_EVERY_MS));
		RT_TRY(rt_bpf_catalog_refresh(catalog));
	} while (unsettled(catalog) && rt_now_ns() < settle_ns);
	RT_TRY(rt_bpf_watch_finish(run->watch, NULL));
	run->listing.limit = rt_bpf_watch_limit(run->watch);
	run->listing.catalog = catalog;
	return NULL;
}

/* ---- the outcome ---- */

static int exit_status(const struct run *run)
{
	const struct rt_bpf_catalog *c = run->listing.catalog;
	int status = run->listing.program_status, wanted = run->options->common.error_exitcode;
	bool leaked = false, lost = c->lost_unnamed != 0;

	for (size_t i = 0; i < c->entries.len; i++) {
		const struct rt_bpf_entry *e = c->entries.data[i];

		if (!rt_bpf_listed(&run->listing, e))
			continue;
		leaked |= rt_bpf_state(e) == RT_BPF_LEAKED;
		lost |= e->lost != 0;
	}
	if (wanted && leaked)
		return wanted;
	if (lost && (!status || wanted))
		return RT_EXIT_TRUST;
	return status;
}

static struct rt_error *write_list(const struct rt_bpf_listing *listing, enum rt_format format, int fd,
				   const char *name)
{
	struct rt_error *err;
	struct rt_sink out;

	rt_sink_init_fd(&out, fd, name);
	if (format == RT_FORMAT_JSON)
		rt_bpf_list_json(listing, &out);
	else
		rt_bpf_list_text(listing, &out);
	err = rt_sink_end(&out);
	rt_sink_deinit(&out);
	return err;
}

static struct rt_error *report(struct run *run, const struct rt_output *output)
{
	const struct rt_options *o = &run->options->common;
	struct rt_bpf_listing *l = &run->listing;

	if (l->program_ended)
		l->program_status = WIFSIGNALED(run->child_status) ? 128 + WTERMSIG(run->child_status)
								   : WEXITSTATUS(run->child_status);
	l->exit_status = exit_status(run);
	if (output->json_fd >= 0)
		RT_TRY(write_list(l, RT_FORMAT_JSON, output->json_fd, o->json));
	if (output->file_fd >= 0)
		return write_list(l, o->format, output->file_fd, o->output);
	return write_list(l, o->format, output->fd, output->fd == STDOUT_FILENO ? "standard output" : "standard error");
}

static struct rt_error *bpf(const struct bpf_options *options, int *ret)
{
	struct run run = { .options = options, .child = { .go = -1, .report = -1 }, .signals = -1 };
	struct rt_output output = { .file_fd = -1, .json_fd = -1 };
	const struct rt_options *o = &options->common;
	struct rt_bpf_catalog now = { 0 };
	struct rt_error *err = rt_output_open(o, o->command ? STDERR_FILENO : STDOUT_FILENO, &output);

	run.listing.command = o->command;
	run.listing.pids = o->pids.data;
	run.listing.pid_count = o->pids.len;
	if (!err && (o->command || options->all || o->duration_ns)) {
		err = watch(&run);
	} else if (!err) {
		err = rt_bpf_catalog_refresh(&now);
		run.listing.catalog = &now;
	}
	if (!err)
		err = report(&run, &output);
	*ret = run.listing.exit_status;
	rt_spawn_deinit(&run.child);
	rt_bpf_watch_destroy(run.watch);
	rt_bpf_catalog_deinit(&now);
	if (run.signals >= 0)
		close(run.signals);
	rt_output_close(&output);
	return err;
}

/* "list" alone, unless behind "--", is the word for the list. */
static struct rt_error *check(struct bpf_options *options)
{
	struct rt_options *o = &options->common;

	if (o->command && !strcmp(o->command[0], "list") && !o->command[1] && strcmp(o->command[-1], "--") != 0)
		o->command = NULL;
	if (o->command && !**o->command)
		return rt_error_new(RT_E_USAGE, "bpf: the program's name is empty");
	if (o->command && (o->pids.len || options->all))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "bpf: both a program and -a or -p PID"),
				    "see: reftrace help bpf");
	if (options->all && o->pids.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "bpf: both -a and -p PID"), "see: reftrace help bpf");
	if (!o->command && (o->user || o->env.len))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "bpf: -u and -E are for programs that reftrace starts"),
				    "reftrace bpf -- PROG ARGS");
	if (options->stats && !o->command && !options->all && !o->duration_ns)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "bpf: --stats counts only while something is watched"),
				    "reftrace bpf --stats --duration 10s -a");
	return NULL;
}

int cmd_bpf(int argc, char **argv)
{
	struct bpf_options options = { 0 };
	struct rt_error *err = rt_options_parse(&rt_bpf_argp, argc, argv, &options.common);
	int status = RT_EXIT_OK;

	if (!err && options.common.help) {
		rt_options_help(&rt_bpf_argp, "bpf", stdout);
	} else {
		if (!err)
			err = check(&options);
		if (!err)
			err = bpf(&options, &status);
		if (err)
			status = rt_failure(err);
	}
	rt_options_deinit(&options.common);
	return status;
}
