// SPDX-License-Identifier: GPL-2.0-only
/* Generic cache events: "L1-dcache-load-misses", "LLC-stores", "dTLB-loads". */
#include <string.h>

#include "engine/event_name_priv.h"

static const char *const levels[] = {
	[PERF_COUNT_HW_CACHE_L1D] = "L1-dcache", [PERF_COUNT_HW_CACHE_L1I] = "L1-icache",
	[PERF_COUNT_HW_CACHE_LL] = "LLC",        [PERF_COUNT_HW_CACHE_DTLB] = "dTLB",
	[PERF_COUNT_HW_CACHE_ITLB] = "iTLB",     [PERF_COUNT_HW_CACHE_BPU] = "branch",
	[PERF_COUNT_HW_CACHE_NODE] = "node",
};
static const struct {
	const char *name;
	uint8_t op, result;
} doings[] = {
	{ "loads", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "load-misses", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS },
	{ "stores", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "store-misses", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_MISS },
	{ "prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_MISS },
};

bool rt_event_cache(const char *name, struct rt_event_desc *desc)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		size_t len = strlen(levels[i]);

		if (strncmp(name, levels[i], len) != 0 || name[len] != '-')
			continue;
		for (size_t k = 0; k < sizeof(doings) / sizeof(doings[0]); k++) {
			if (strcmp(name + len + 1, doings[k].name) != 0)
				continue;
			desc->type = PERF_TYPE_HW_CACHE;
			desc->config = i | (uint64_t)doings[k].op << 8 | (uint64_t)doings[k].result << 16;
			return true;
		}
	}
	return false;
}
