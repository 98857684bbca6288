/* SPDX-License-Identifier: GPL-2.0-only */
/* Signals while a session runs. */
#pragma once

#include "session/session.h"

/*
 * SIGINT, SIGTERM and SIGHUP end the session's run from now on (unless they
 * were ignored), SIGPIPE only makes writes fail.
 */
void rt_interrupt_watch(struct rt_session *session);
/*
 * They do what they did before. spare_once: the first one of each only says on stderr that the report is being written:
 * who watches over a program that has just ended may end it without knowing.
 */
void rt_interrupt_unwatch(bool spare_once);

/* From now on this signal asks the session that is watched for a look at what lives (rt_session_moment()). */
void rt_interrupt_watch_moment(int signal);

/* From now on SIGUSR2 is noted. */
void rt_interrupt_watch_switch(void);
/* true once for SIGUSR2 since the last call. */
bool rt_interrupt_take_switch(void);
