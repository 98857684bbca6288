/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chatter for whoever debugs reftrace. Only session, engine and cli log;
 * everything below returns errors. What is missing from a result is data in
 * the report (trust), never only a log line.
 */
#pragma once

#include <stdbool.h>

/* Turns on debug messages of these comma-separated domains ("session,engine" or "all"). */
void rt_log_enable(const char *domains);

bool rt_log_enabled(const char *domain);

/* Prints "reftrace: [domain] text" on stderr if the domain is on. Any thread. */
void rt_log_debug(const char *domain, const char *format, ...) __attribute__((format(printf, 2, 3)));
