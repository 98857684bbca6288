/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The run: start or attach, then wait for ptrace stops and drain the engine
 * until nobody is left, then disarm and let go.
 */
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/log.h"
#include "insn/insn.h"
#include "session/internal.h"

#define POLL_MIN_US 2000  /* while events come: a ring must not fill up */
#define POLL_MAX_US 20000 /* while nothing comes */
#define POLL_ASKS_US 1000 /* while a process may ask, that waits */
#define POLL_HASTE_US 60  /* while one will ask soon */
#define BUSY 1000         /* records in one round: what comes in the meantime may be too much */
#define TICK_NS 100000000u
#define FORWARD_NS 150000000u /* how long the terminal's own signal may take to reach the program */

static void remember_limits(struct rt_session *s)
{
	static const int resources[] = { RLIMIT_NOFILE, RLIMIT_MEMLOCK };

	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
		s->old_limits[i].resource = resources[i];
		s->old_limits[i].known = getrlimit(resources[i], &s->old_limits[i].limit) == 0;
	}
}

/* No place can be planned without: said before the program runs, and not as functions that are nowhere. */
static struct rt_error *check_decoder(void)
{
	struct rt_decoder *decoder = NULL;

	RT_TRY(rt_decoder_create(RT_MACHINE_X86_64, &decoder));
	rt_decoder_destroy(decoder);
	return NULL;
}

struct rt_error *rt_session_create(const struct rt_session_options *options, const struct rt_session_hooks *hooks,
				   struct rt_session **ret)
{
	_cleanup_(rt_session_destroyp) struct rt_session *s = calloc(1, sizeof(*s));

	if (!s)
		return rt_error_nomem();
	s->options = *options;
	s->hooks = *hooks;
	/* what every engine here can do, and what none should */
	s->options.plan.return_points = true;
	s->options.plan.avoid_nop5 = true;
	s->options.plan.counts_only = options->engine.counting;
	s->ops = options->ops ? options->ops : &rt_engine_uprobe;
	s->options.plan.room = s->ops->room;
	s->options.plan.breakpoints = s->ops->breakpoints;
	s->exec_pipe = -1;
	s->wake_fd = -1;
	rt_stream_init(s);
	sigprocmask(SIG_SETMASK, NULL, &s->old_mask);
	remember_limits(s);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make an eventfd");
	if (options->observe_only) {
		*ret = rt_take(s);
		return NULL;
	}
	RT_TRY(check_decoder());
	RT_TRY(s->ops->probe(&s->options.engine));
	/* before the engine: the guardian is to hold nothing of it */
	RT_TRY(rt_guardian_start(&s->guardian));
	RT_TRY(s->ops->open(&s->options.engine, &s->engine));
	*ret = rt_take(s);
	return NULL;
}

void rt_session_interrupt(struct rt_session *s, int signal, bool terminal)
{
	uint64_t one = 1;
	int errnum = errno;

	s->interrupt_signal = signal;
	s->interrupt_terminal = terminal;
	s->interrupts++;
	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		errno = 0; /* full: it is awake already */
	errno = errnum;
}

void rt_session_end(struct rt_session *s)
{
	s->finish = true;
}

/* A program of ours that runs: it is the one to decide. */
static bool root_runs(const struct rt_session *s)
{
	if (s->options.pid_count || s->root_ended)
		return false;
	return s->options.observe_only ? s->root != 0 : s->root_let_go || rt_session_process(s, s->root) != NULL;
}

/* First: the program decides what the signal means. Second: stop now. */
void rt_session_on_interrupts(struct rt_session *s)
{
	uint64_t now = rt_now_ns();
	int n = s->interrupts;

	if (n != s->interrupts_seen) {
		bool first = !s->interrupts_seen && n == 1;

		s->interrupts_seen = n;
		if (!first || !root_runs(s)) {
			s->finish = true;
			return;
		}
		/* without ptrace nobody tells that the terminal's signal reached it */
		if (s->options.observe_only && s->interrupt_terminal)
			return;
		s->forward_signal = s->interrupt_signal;
		s->forward_ns = now;
	}
	if (!s->forward_signal)
		return;
	/* a terminal signals the whole group: the program has it, or will have it in a moment */
	if (s->tty_signal == s->forward_signal && s->tty_ns + 2 * FORWARD_NS > s->forward_ns) {
		s->forward_signal = 0;
	} else if (now - s->forward_ns > FORWARD_NS) {
		if (!s->root_ended)
			kill((pid_t)s->root, s->forward_signal);
		s->forward_signal = 0;
	}
}

struct rt_error *rt_session_on_time(struct rt_session *s)
{
	uint64_t now = rt_now_ns();

	/* armed, and from here on a launched program's own time */
	if (s->options.duration_ns && !s->deadline_ns && (s->options.pid_count || s->root_running))
		s->deadline_ns = now + s->options.duration_ns;
	if (s->deadline_ns && now >= s->deadline_ns)
		s->finish = true;
	if (now - s->tick_ns < TICK_NS)
		return NULL;
	s->tick_ns = now;
	if (!s->options.observe_only)
		RT_TRY(rt_tracee_overdue(s));
	RT_TRY(rt_governor_look(s));
	return s->hooks.tick ? s->hooks.tick(s->hooks.arg) : NULL;
}

/* The launched program could not be started: said by the child, before it ended. */
static struct rt_error *check_started(struct rt_session *s)
{
	if (s->options.pid_count || s->root_started || !s->root_ended)
		return NULL;
	return rt_session_exec_error(s);
}

struct rt_error *rt_session_sleep(struct rt_session *s, int signal_fd, uint32_t wait_us)
{
	struct timespec wait = { .tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000 };
	struct pollfd fds[RT_SESSION_POLL_MAX] = { { .fd = signal_fd, .events = POLLIN },
						   { .fd = s->wake_fd, .events = POLLIN } };
	struct signalfd_siginfo info[8];
	uint64_t count;

	if (ppoll(fds, rt_sources_poll(s, fds, 2, RT_SESSION_POLL_MAX), &wait, NULL) <= 0)
		return NULL;
	if (fds[0].revents && read(signal_fd, info, sizeof(info)) < 0 && errno != EAGAIN)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot read signals");
	if (fds[1].revents && read(s->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot read an eventfd");
	return NULL;
}

/*
 * Ahead of others, as far as this user may: programs wait while their rings are full (engine agent), or lose events
 * (engine uprobe). As many of their threads as there are processors would else leave the reader its fair share, a small
 * one. Launched programs were forked before. Returns the niceness to go back to.
 */
static int hurry(void)
{
	enum { AHEAD = 10 };
	int old = getpriority(PRIO_PROCESS, 0);

	(void)setpriority(PRIO_PROCESS, 0, old - AHEAD);
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* POLL_HASTE_US is less than its default */
	return old;
}

/* As before: the program of a next run inherits both. */
static void slow_down(int nice)
{
	(void)setpriority(PRIO_PROCESS, 0, nice);
	(void)prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0);
}

/* Until the processes are looked at again that may wait for it, in microseconds. */
static uint32_t wait_for_asking(const struct rt_session *s, uint64_t records)
{
	if (records > BUSY)
		return 0;
	return s->haste_ns && rt_now_ns() < s->haste_ns ? POLL_HASTE_US : POLL_ASKS_US;
}

static struct rt_error *loop(struct rt_session *s, int signal_fd)
{
	uint64_t seen = 0;
	uint32_t wait_us = POLL_MIN_US;

	while (!s->finish) {
		RT_TRY(rt_tracee_reap(s));
		RT_TRY(check_started(s));
		if (!s->threads.len && !s->processes.len && (!s->root_let_go || s->root_ended))
			return NULL;
		RT_TRY(rt_session_drain(s));
		RT_TRY(rt_sources_drain(s));
		RT_TRY(rt_session_on_time(s));
		rt_session_on_interrupts(s);
		RT_TRY(rt_session_on_moment(s));
		if (s->ops->asks)
			RT_TRY(rt_process_each(s, rt_tracee_look));
		if (s->ops->asks)
			wait_us = wait_for_asking(s, s->engine_records - seen);
		else if (s->engine_records != seen || s->forward_signal)
			wait_us = POLL_MIN_US;
		else if (wait_us < POLL_MAX_US)
			wait_us += wait_us / 2;
		seen = s->engine_records;
		RT_TRY(rt_session_sleep(s, signal_fd, wait_us));
	}
	return NULL;
}

/* A program that has not run yet when a fault of the command line shows: it never shall. */
static void kill_unstarted(struct rt_session *s)
{
	struct rt_process *p = rt_session_process(s, s->root);

	if (s->options.pid_count || s->root_running || !p)
		return;
	kill((pid_t)s->root, SIGKILL);
	rt_process_remove_all(s);
	for (;;) {
		int status;
		pid_t pid = waitpid((pid_t)s->root, &status, __WALL);

		/* it may stop once more, at its exit event */
		if (pid > 0 && WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, 0, 0);
		else if (pid > 0 || errno != EINTR)
			break;
	}
	s->root_ended = true;
}

static struct rt_error *last_look(struct rt_session *s, struct rt_process *p)
{
	if (p->left)
		return NULL;
	/* whoever asks a launched program's tracer twice to stop does not want to wait */
	if (!p->census_done && (s->options.pid_count || s->interrupts_seen < 2))
		RT_TRY(rt_session_census(s, p));
	return rt_emit_task(s, RT_WIRE_MARK, rt_process_wire(p), p->tgid, 0, RT_MARK_DETACH);
}

/* Disarms, detaches and stops the engine, or the other way round; good_end: the owner's sink still takes records. */
static struct rt_error *finish(struct rt_session *s, bool good_end)
{
	struct rt_error *err = NULL, *stop_err;

	if (s->threads.len) {
		err = rt_session_stop_all(s);
		if (!err && good_end)
			err = rt_session_drain(s);
		if (!err && good_end)
			err = rt_process_each(s, last_look);
	}
	if (!err && good_end)
		err = rt_session_note_unseen(s);
	if (!err && good_end)
		err = rt_governor_end(s);
	if (s->ops->disarm) {
		s->ops->disarm(s->engine);
		rt_session_detach_all(s);
	}
	stop_err = s->ops->stop(s->engine, &s->engine_sink);
	if (!err && !stop_err && good_end)
		stop_err = rt_sources_stop(s);
	rt_session_detach_all(s);
	if (err) {
		rt_error_free(stop_err);
		return err;
	}
	return stop_err;
}

static struct rt_error *run(struct rt_session *s)
{
	_cleanup_close_ int signal_fd = -1;
	struct rt_error *err, *end_err;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	signal_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make a signalfd");
	s->tick_ns = rt_now_ns();
	s->moment_ns = s->tick_ns + s->options.interval_ns;
	if (s->options.observe_only)
		return rt_session_observe(s, signal_fd);
	RT_TRY(rt_governor_begin(s));
	err = s->options.pid_count ? rt_session_attach(s) : rt_session_launch(s);
	if (!err && s->options.pid_count)
		err = rt_sources_start(s, s->options.pids, s->options.pid_count, false);
	if (!err) {
		int nice = hurry();

		err = loop(s, signal_fd);
		slow_down(nice);
	}
	if (err)
		kill_unstarted(s);
	end_err = finish(s, !err);
	if (err) {
		rt_error_free(end_err);
		return err;
	}
	RT_TRY(end_err);
	return rt_session_check_nothing(s);
}

struct rt_error *rt_session_run(struct rt_session *s)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct rt_error *err;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	/* ignored, it would let children vanish without a status */
	sigaction(SIGCHLD, &dfl, &s->old_chld);
	sigprocmask(SIG_BLOCK, &chld, &s->old_mask);
	err = run(s);
	sigaction(SIGCHLD, &s->old_chld, NULL);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
	return err;
}

bool rt_session_interrupted(const struct rt_session *s)
{
	return s->interrupts;
}

bool rt_session_status(const struct rt_session *s, int *ret)
{
	if (!s->root_known)
		return false;
	*ret = s->root_status;
	return true;
}

uint32_t rt_session_pid(const struct rt_session *s)
{
	return s->root;
}

void rt_session_destroy(struct rt_session *s)
{
	if (s->engine)
		s->ops->close(s->engine);
	rt_process_remove_all(s);
	rt_unwind_check_deinit(&s->unwind);
	rt_batches_deinit(s);
	rt_modules_deinit(s);
	rt_map_deinit(&s->threads);
	rt_map_deinit(&s->processes);
	rt_map_deinit(&s->generations);
	rt_map_deinit(&s->class_words);
	rt_guardian_stop(&s->guardian);
	if (s->exec_pipe >= 0)
		close(s->exec_pipe);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	free(s->pairs);
	free(s->unsure);
	free(s);
}
