/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "probe/remote.h"

/* What was taken must be ready to be written: its lines, for a path that a line can hold; the caller frees them. */
static inline char *remote_lines(const struct rt_remote *remote)
{
	struct rt_sink sink;
	char *text;

	rt_sink_init_memory(&sink);
	if (rt_remote_lines(remote, remote->kernel ? NULL : "/a:b", &sink) || rt_sink_end(&sink))
		abort();
	text = strdup(sink.buffer ? sink.buffer : "");
	rt_sink_deinit(&sink);
	if (!text)
		abort();
	return text;
}
