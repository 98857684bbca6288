/* SPDX-License-Identifier: GPL-2.0-only */
#include "perfdata/record.h"

const char *rt_perf_type_name(uint32_t type)
{
	static const char *const kernel[] = {
		NULL,
		"MMAP",
		"LOST",
		"COMM",
		"EXIT",
		"THROTTLE",
		"UNTHROTTLE",
		"FORK",
		"READ",
		"SAMPLE",
		"MMAP2",
		"AUX",
		"ITRACE_START",
		"LOST_SAMPLES",
		"SWITCH",
		"SWITCH_CPU_WIDE",
		"NAMESPACES",
		"KSYMBOL",
		"BPF_EVENT",
		"CGROUP",
		"TEXT_POKE",
		"AUX_OUTPUT_HW_ID",
		"CALLCHAIN_DEFERRED",
	};
	static const char *const user[] = {
		"HEADER_ATTR",
		"HEADER_EVENT_TYPE",
		"HEADER_TRACING_DATA",
		"HEADER_BUILD_ID",
		"FINISHED_ROUND",
		"ID_INDEX",
		"AUXTRACE_INFO",
		"AUXTRACE",
		"AUXTRACE_ERROR",
		"THREAD_MAP",
		"CPU_MAP",
		"STAT_CONFIG",
		"STAT",
		"STAT_ROUND",
		"EVENT_UPDATE",
		"TIME_CONV",
		"HEADER_FEATURE",
		"COMPRESSED",
		"FINISHED_INIT",
		"COMPRESSED2",
		"BPF_METADATA",
	};
	const char *name = NULL;

	if (type < sizeof(kernel) / sizeof(kernel[0]))
		name = kernel[type];
	else if (type >= RT_PERF_USER_FIRST && type - RT_PERF_USER_FIRST < sizeof(user) / sizeof(user[0]))
		name = user[type - RT_PERF_USER_FIRST];
	return name ? name : "?";
}
