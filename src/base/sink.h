/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where bytes go: a file descriptor or memory. Writers of formats know nothing
 * else. The first failure sticks: later writes do nothing and rt_sink_end()
 * returns it, so that a writer may check once.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct rt_sink {
	int fd;           /* -1: into memory */
	const char *name; /* for messages; not owned */
	char *buffer;     /* owned; memory sinks: everything, NUL-terminated */
	size_t len, cap;
	uint64_t written;     /* bytes handed to the kernel or kept */
	struct rt_error *err; /* first failure, owned */
};

/* Writes to fd (not owned, not closed), which messages call name. */
void rt_sink_init_fd(struct rt_sink *sink, int fd, const char *name);

/* Keeps everything in sink->buffer / sink->len. */
void rt_sink_init_memory(struct rt_sink *sink);

void rt_sink_write(struct rt_sink *sink, const void *data, size_t size);
void rt_sink_puts(struct rt_sink *sink, const char *text);
void rt_sink_printf(struct rt_sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Hands buffered bytes to the kernel and returns the first failure so far
 * (RT_E_DISK_FULL for ENOSPC/EDQUOT/EFBIG, else RT_E_UNWRITABLE); the caller owns it.
 */
RT_CHECK struct rt_error *rt_sink_end(struct rt_sink *sink);

/* Frees what it holds; does not flush. */
void rt_sink_deinit(struct rt_sink *sink);
