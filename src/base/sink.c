/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_BYTES = 64 * 1024 };

void rt_sink_init_fd(struct rt_sink *sink, int fd, const char *name)
{
	*sink = (struct rt_sink){ .fd = fd, .name = name };
}

void rt_sink_init_memory(struct rt_sink *sink)
{
	*sink = (struct rt_sink){ .fd = -1, .name = "memory" };
}

static void fail(struct rt_sink *sink, int errnum)
{
	bool full = errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG;

	if (!sink->err)
		sink->err =
			rt_error_errno(full ? RT_E_DISK_FULL : RT_E_UNWRITABLE, errnum, "cannot write %s", sink->name);
}

static void flush(struct rt_sink *sink)
{
	size_t done = 0;

	while (done < sink->len && !sink->err) {
		ssize_t n = write(sink->fd, sink->buffer + done, sink->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail(sink, errno);
		else
			done += (size_t)n;
	}
	sink->written += done;
	sink->len = 0;
}

void rt_sink_write(struct rt_sink *sink, const void *data, size_t size)
{
	if (sink->err || !size)
		return;
	if (size > SIZE_MAX - sink->len - 1) {
		sink->err = rt_error_nomem();
		return;
	}
	if (sink->len + size + 1 > sink->cap) {
		size_t cap = sink->cap ? sink->cap : 4096;
		char *bigger;

		while (cap < sink->len + size + 1)
			cap = cap > SIZE_MAX / 2 ? sink->len + size + 1 : cap * 2;
		bigger = realloc(sink->buffer, cap);
		if (!bigger) {
			sink->err = rt_error_nomem();
			return;
		}
		sink->buffer = bigger;
		sink->cap = cap;
	}
	memcpy(sink->buffer + sink->len, data, size);
	sink->len += size;
	sink->buffer[sink->len] = 0;
	if (sink->fd < 0)
		sink->written += size;
	else if (sink->len >= FLUSH_BYTES)
		flush(sink);
}

void rt_sink_puts(struct rt_sink *sink, const char *text)
{
	rt_sink_write(sink, text, strlen(text));
}

void rt_sink_printf(struct rt_sink *sink, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	char some[256]; /* most texts are short: they need no memory */
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(some, sizeof(some), format, args);
	va_end(args);
	if (n >= 0 && n < (int)sizeof(some)) {
		rt_sink_write(sink, some, (size_t)n);
		return;
	}
	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		if (!sink->err)
			sink->err = rt_error_nomem();
		return;
	}
	rt_sink_write(sink, text, (size_t)n);
}

struct rt_error *rt_sink_end(struct rt_sink *sink)
{
	struct rt_error *err;

	if (sink->fd >= 0)
		flush(sink);
	err = sink->err;
	sink->err = NULL;
	return err;
}

void rt_sink_deinit(struct rt_sink *sink)
{
	free(sink->buffer);
	rt_error_free(sink->err);
	*sink = (struct rt_sink){ .fd = -1 };
}
