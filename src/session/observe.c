/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run of side sources alone: the target is neither traced nor stopped. A launched program is our child and is waited
 * for; running ones are looked after now and then; the whole system has no end of its own.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "session/internal.h"

#define WAIT_MS 100 /* sources wake us before when there is much */

static struct rt_error *reap_root(struct rt_session *s)
{
	int status, waiting = 0;
	pid_t pid;

	if (!s->root || s->root_ended)
		return NULL;
	pid = waitpid((pid_t)s->root, &status, WNOHANG);
	if (pid <= 0)
		return NULL;
	s->root_ended = true;
	/* only a failed exec writes into the pipe; exec itself closes it */
	if (s->exec_pipe >= 0 && ioctl(s->exec_pipe, FIONREAD, &waiting) == 0 && waiting > 0)
		return rt_session_exec_error(s);
	s->root_known = true;
	s->root_status = status;
	return NULL;
}

static bool is_gone(uint32_t pid)
{
	char state = rt_proc_state(pid);

	return !state || state == 'Z' || state == 'X';
}

/* Nobody is left whose end was to be waited for. */
static bool is_over(const struct rt_session *s)
{
	if (s->root)
		return s->root_ended;
	if (s->options.system_wide)
		return false;
	for (size_t i = 0; i < s->options.pid_count; i++) {
		if (!is_gone(s->options.pids[i]))
			return false;
	}
	return true;
}

static struct rt_error *begin(struct rt_session *s)
{
	if (s->options.command)
		return rt_session_launch(s);
	for (size_t i = 0; i < s->options.pid_count; i++) {
		if (is_gone(s->options.pids[i]))
			return rt_error_fix(rt_error_new(RT_E_NO_PROCESS, "there is no process %u", s->options.pids[i]),
					    "find it with: pgrep NAME");
	}
	return rt_sources_start(s, s->options.pids, s->options.pid_count, false);
}

static struct rt_error *loop(struct rt_session *s, int signal_fd)
{
	uint64_t looked_ns = 0;

	while (!s->finish) {
		uint64_t now;

		RT_TRY(reap_root(s));
		RT_TRY(rt_sources_drain(s));
		RT_TRY(rt_session_on_time(s));
		rt_session_on_interrupts(s);
		now = rt_now_ns();
		if (s->root ? s->root_ended : now - looked_ns > WAIT_MS * UINT64_C(1000000)) {
			looked_ns = now;
			if (is_over(s))
				return NULL;
		}
		if (!s->finish)
			RT_TRY(rt_session_sleep(s, signal_fd, (s->forward_signal ? 10 : WAIT_MS) * 1000));
	}
	return NULL;
}

struct rt_error *rt_session_observe(struct rt_session *s, int signal_fd)
{
	struct rt_error *err;

	RT_TRY(begin(s));
	if (s->options.duration_ns)
		s->deadline_ns = rt_now_ns() + s->options.duration_ns;
	err = loop(s, signal_fd);
	if (err)
		return err;
	return rt_sources_stop(s);
}
