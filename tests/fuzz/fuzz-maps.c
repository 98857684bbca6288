/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as /proc/PID/maps, and as a sequence of map, unmap, fork and exec records. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "maps/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lines(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = calloc(1, size + 1);
	struct rt_maps_line line;
	char *at = text, *before = text;

	if (!text)
		return;
	memcpy(text, data, size);
	while (rt_maps_parse_line(&at, &line)) {
		if (at <= before || line.start >= line.end || line.path < before || line.path > at)
			abort();
		before = at;
	}
}

static bool check(const struct rt_mapping *mapping, void *arg)
{
	uint64_t *last = arg;

	if (mapping->start < *last || mapping->start >= mapping->end)
		abort();
	*last = mapping->end;
	return true;
}

/* 8 bytes of input are one record over a small world, so that they meet. */
static void records(const uint8_t *data, size_t size)
{
	static const uint8_t kinds[] = { RT_WIRE_MAP, RT_WIRE_MAP, RT_WIRE_UNMAP, RT_WIRE_FORK, RT_WIRE_EXEC };
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;
	struct rt_mapping mapping;

	rt_error_free(rt_maps_create(&maps));
	for (size_t i = 0; maps && i + 8 <= size && i < 8 * 256; i += 8) {
		const uint8_t *d = data + i;
		struct rt_wire_map map = { 0 };
		struct rt_wire_task task = { 0 };
		struct rt_wire_head head = { .kind = kinds[d[0] % sizeof(kinds)], .pid = d[1] % 4, .time_ns = d[2] };
		uint64_t last = 0;

		if (head.kind == RT_WIRE_MAP || head.kind == RT_WIRE_UNMAP) {
			head.size = sizeof(map);
			map = (struct rt_wire_map){ .head = head, .start = d[3], .end = d[4], .module = d[5] };
			rt_error_free(rt_maps_record(maps, &map.head));
		} else {
			head.size = sizeof(task);
			task = (struct rt_wire_task){ .head = head, .other = d[3] % 4 };
			rt_error_free(rt_maps_record(maps, &task.head));
		}
		if (rt_maps_find(maps, d[6] % 4, d[7], (struct rt_vaddr){ d[3] }, &mapping) &&
		    (d[3] < mapping.start || d[3] >= mapping.end))
			abort();
		if (i % 128 == 0)
			rt_maps_each(maps, d[6] % 4, d[7], check, &last);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	lines(data, size);
	records(data, size);
	return 0;
}
