/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Starting a program that is watched, not traced: it waits until everything is
 * ready, then becomes the program, with the signal mask, dispositions and
 * identity that it would have without us.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/error.h"

struct rt_spawn_options {
	const char *const *command; /* NULL-terminated argv */
	const char *user;           /* -u; NULL: see as_root */
	bool as_root;               /* keep root under sudo */
	const char *const *env;     /* -E VAR=VAL, NULL-terminated, or NULL */
	sigset_t mask;              /* the program's signal mask */
};

struct rt_spawn {
	pid_t pid;
	int go, report; /* pipes */
	const char *name;
};

/* The child exists and waits. The caller reaps it. */
RT_CHECK struct rt_error *rt_spawn_start(const struct rt_spawn_options *options, struct rt_spawn *ret);
/* Lets it become the program. RT_E_EXEC when that fails: the child is gone then, and reaped. */
RT_CHECK struct rt_error *rt_spawn_go(struct rt_spawn *spawn);
/* Closes the pipes: a child that still waits ends by that. { .go = -1, .report = -1 } is none. */
void rt_spawn_deinit(struct rt_spawn *spawn);
