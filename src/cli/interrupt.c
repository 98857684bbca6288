/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/interrupt.h"

#include <errno.h>
#include <signal.h>

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
enum { SIGNALS = sizeof(signals) / sizeof(*signals) };

/* A handler has no argument of its own: the one session of the process. */
static struct rt_session *volatile watched;

static void on_signal(int signal)
{
	struct rt_session *session = watched;
	int saved = errno;

	if (session && signal != SIGPIPE)
		rt_session_interrupt(session, signal);
	errno = saved;
}

void rt_interrupt_watch(struct rt_session *session)
{
	watched = session;
	for (size_t i = 0; i < SIGNALS; i++) {
		struct sigaction old, action = { .sa_handler = session ? on_signal : SIG_DFL, .sa_flags = SA_RESTART };

		/* A signal that is ignored stays so (nohup). Handlers, unlike SIG_IGN, do not reach the traced program.
		 */
		if (sigaction(signals[i], NULL, &old) || old.sa_handler == SIG_IGN)
			continue;
		sigemptyset(&action.sa_mask);
		sigaction(signals[i], &action, NULL);
	}
}
