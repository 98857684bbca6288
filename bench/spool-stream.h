/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Streams as an engine gives them, made without one. Threads work on a shared pool of objects: a thread takes an
 * object at a call site, takes a few more while it holds it, and gives them back in reverse order; some objects die
 * and are born again at the same address, as malloc does it. Each thread has a producer, and the producers' events
 * come in order of time but for a few. Call sites and objects are chosen with a skew; each step takes its time, with a
 * jitter, and now and then a thread is off the CPU.
 */
#pragma once

#include <stddef.h>

#include "wire/event.h"

struct spool_workload {
	const char *name;
	unsigned threads; /* 1 to SPOOL_THREADS_MAX */
	unsigned objects;
	unsigned sites;   /* places that take, each with its place that gives back */
	unsigned step_ns; /* between two events of a thread */
	unsigned jitter_ns;
};

#define SPOOL_THREADS_MAX 64

/* Ends with a name of NULL; the first is the reference workload. */
extern const struct spool_workload spool_workloads[];

/* Gives this many events and the records that they need to take(). */
void spool_stream(const struct spool_workload *how, size_t events,
		  void (*take)(void *arg, const struct rt_wire_head *record), void *arg);
