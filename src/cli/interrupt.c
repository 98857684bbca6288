/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/interrupt.h"

#include <errno.h>
#include <signal.h>

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
enum { SIGNALS = sizeof(signals) / sizeof(*signals) };

/* A handler has no argument of its own: the one session of the process. */
static struct rt_session *volatile watched;
static volatile sig_atomic_t switch_asked;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	struct rt_session *session = watched;
	int saved = errno;

	if (session && signal != SIGPIPE)
		rt_session_interrupt(session, signal, info->si_code == SI_KERNEL);
	errno = saved;
}

void rt_interrupt_watch(struct rt_session *session)
{
	watched = session;
	for (size_t i = 0; i < SIGNALS; i++) {
		struct sigaction old, action = { .sa_handler = SIG_DFL, .sa_flags = SA_RESTART };

		/* A signal that is ignored stays so (nohup). Handlers, unlike SIG_IGN, do not reach the traced program.
		 */
		if (sigaction(signals[i], NULL, &old) || old.sa_handler == SIG_IGN)
			continue;
		if (session) {
			action.sa_sigaction = on_signal;
			action.sa_flags |= SA_SIGINFO;
		}
		sigemptyset(&action.sa_mask);
		sigaction(signals[i], &action, NULL);
	}
}

static void on_moment(int signal)
{
	struct rt_session *session = watched;

	if (session)
		rt_session_moment(session);
}

void rt_interrupt_watch_moment(int signal)
{
	struct sigaction action = { .sa_handler = on_moment, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(signal, &action, NULL);
}

static void on_switch(int signal)
{
	switch_asked = 1;
}

void rt_interrupt_watch_switch(void)
{
	struct sigaction action = { .sa_handler = on_switch, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR2, &action, NULL);
}

bool rt_interrupt_take_switch(void)
{
	bool asked = switch_asked;

	switch_asked = 0;
	return asked;
}
