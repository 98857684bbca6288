/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

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

/* Nothing to stop any more: what is there is said. Who asks once more means it: the signal is as it was by then. */
static void on_late(int signal)
{
	static const char said[] =
		"reftrace: the program is over, and its report is being written; once more ends that\n";
	int saved = errno;

	if (write(STDERR_FILENO, said, sizeof(said) - 1) < 0)
		errno = 0; /* nobody listens */
	errno = saved;
}

/* A signal that is ignored stays so (nohup). */
static void set(int signal, struct sigaction *action)
{
	struct sigaction old;

	if (sigaction(signal, NULL, &old) || old.sa_handler == SIG_IGN)
		return;
	action->sa_flags |= SA_RESTART;
	sigemptyset(&action->sa_mask);
	sigaction(signal, action, NULL);
}

void rt_interrupt_watch(struct rt_session *session)
{
	watched = session;
	/* handlers, unlike SIG_IGN, do not reach the traced program */
	for (size_t i = 0; i < SIGNALS; i++)
		set(signals[i], &(struct sigaction){ .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO });
}

void rt_interrupt_unwatch(bool spare_once)
{
	watched = NULL;
	for (size_t i = 0; i < SIGNALS; i++) {
		struct sigaction action = { .sa_handler = SIG_DFL };

		if (spare_once && signals[i] != SIGPIPE)
			action = (struct sigaction){ .sa_handler = on_late, .sa_flags = (int)SA_RESETHAND };
		set(signals[i], &action);
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
