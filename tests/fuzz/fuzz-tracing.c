/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as TRACING_DATA, and any as a sample of each event that they describe. */
#include <stdint.h>
#include <stdlib.h>

#include "perfdata/tracing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(rt_tracing_destroyp) struct rt_tracing *tracing = NULL;
	struct rt_error *err = rt_tracing_create(rt_bytes_make(data, size), &tracing);
	const struct rt_trace_event *events;
	struct rt_sink out;
	size_t count;

	if (err) {
		rt_error_free(err);
		return 0;
	}
	events = rt_tracing_events(tracing, &count);
	rt_sink_init_memory(&out);
	for (size_t i = 0; i < count && i < 50; i++) {
		if (!rt_tracing_event(tracing, events[i].id))
			abort();
		rt_trace_print(tracing, &events[i], rt_bytes_make(data, size < 200 ? size : 200), &out);
	}
	rt_sink_deinit(&out);
	return 0;
}
