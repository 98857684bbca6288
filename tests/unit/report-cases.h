/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verdicts written by hand, for the tests of both renderers. The first is the
 * one of examples/leak.c with 100 requests.
 */
#pragma once

#include "report/report.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AT(fn, where) \
	{ \
		.function = (fn), .file = "leak.c", .line = (where), .module = "/tmp/leak", .module_id = 1, \
		.address = 0x1100 + (where), .build_id_size = 4, .build_id = { \
			0xde, \
			0xad, \
			0xbe, \
			0xef \
		} \
	}

static const char *const case_command[] = { "./leak", "100", NULL };
static const struct rt_run_info case_run = { .command = case_command,
					     .pid = 5426,
					     .engine = "uprobe",
					     .program_ended = true,
					     .pairs = "pairs: new obj_new, get obj_get, put obj_put -> struct obj "
						      "(found by name; change: -P)" };

static struct rt_history case_leak_history[] = {
	{ 1000000, 7, RT_OP_NEW, 1, 1, AT("main", 60), "obj_new", false },
	{ 1000010, 7, RT_OP_GET, 1, 2, AT("handle_request", 49), "obj_get", false },
	{ 1000020, 7, RT_OP_GET, 1, 3, AT("parse_header", 39), "obj_get", false },
	{ 1000030, 7, RT_OP_PUT, -1, 2, AT("handle_request", 52), "obj_put", false },
	{ 1000040, 7, RT_OP_PUT, -1, 1, AT("main", 63), "obj_put", false },
};
static struct rt_balance case_leak_balance[] = {
	{ AT("parse_header", 39), { 39, 43 }, 0, 100, 80, 20, true },
	{ AT("main", 60), { 60, 63 }, 100, 0, 100, 0, false },
	{ AT("handle_request", 49), { 49, 52 }, 0, 100, 100, 0, false },
};
static struct rt_frame case_stack[] = { AT("parse_header", 39), AT("handle_request", 50), AT("main", 62) };
static struct rt_trace_stack case_stacks[] = { { "taken", case_stack, COUNT(case_stack) } };
static const char *case_evidence[] = { "80 of 100 gets of parse_header are closed in the same call" };
static struct rt_place_name case_other[] = { { AT("handle_request", 52), 0.02 } };
static uint32_t case_pids[] = { 5426 };
static struct rt_finding case_leak[] = { {
	.id = "3f2a91c0",
	.kind = RT_LEAK,
	.type = "obj",
	.objects = 20,
	.of = 100,
	.references = 20,
	.bytes = 1920,
	.confidence = 0.97,
	.role = RT_ROLE_MISSING_PUT,
	.guilty = AT("parse_header", 39),
	.taken_by = AT("parse_header", 39),
	.taken_count = 100,
	.taken_closed = 80,
	.alternatives = case_other,
	.alternative_count = 1,
	.evidence = case_evidence,
	.evidence_count = 1,
	.first_object = 5,
	.first_address = 0x55550000,
	.first_time_ns = 1200000,
	.history = case_leak_history,
	.history_count = COUNT(case_leak_history),
	.balance = case_leak_balance,
	.balance_count = COUNT(case_leak_balance),
	.stacks = case_stacks,
	.stack_count = 1,
	.pids = case_pids,
	.pid_count = 1,
} };
static struct rt_type_count case_types[] = { { "obj", 100, 200, 280, 80, 0, 20, 100, 20 } };
static struct rt_point_count case_points[] = {
	{ 1, "obj", "obj_new", RT_OP_NEW, 100, 100, 0 },
	{ 2, "obj", "obj_get", RT_OP_GET, 200, 200, 0 },
	{ 3, "obj", "obj_put", RT_OP_PUT, 280, UINT64_MAX, 0 },
};
static struct rt_site_count case_sites[] = {
	{ AT("parse_header", 39), "obj", "obj_get", RT_OP_GET, 100 },
	{ AT("parse_header", 43), "obj", "obj_put", RT_OP_PUT, 80 },
};
static struct rt_process_end case_processes[] = { { 5426, "/tmp/leak", 0, true } };

static inline struct rt_verdict leak_verdict(void)
{
	return (struct rt_verdict){
		.findings = case_leak,
		.finding_count = 1,
		.types = case_types,
		.type_count = 1,
		.points = case_points,
		.point_count = COUNT(case_points),
		.sites = case_sites,
		.site_count = COUNT(case_sites),
		.processes = case_processes,
		.process_count = 1,
		.trust = { .complete = true, .events = 580, .points = 3, .points_hit = 3, .unwind = "frame pointers" },
		.start_ns = 0,
		.end_ns = 300000000,
	};
}

static inline struct rt_verdict clean_verdict(void)
{
	struct rt_verdict v = leak_verdict();

	v.finding_count = 0;
	case_types[0].live = 0;
	return v;
}

static struct rt_history case_put_history[] = {
	{ 10, 7, RT_OP_NEW, 1, 1, AT("main", 10), "obj_new", false },
	{ 20, 8, RT_OP_GET, 1, 2, AT("worker", 7), "obj_get", false },
	{ 30, 8, RT_OP_PUT, -1, 1, AT("worker", 9), "obj_put", false },
	{ 40, 8, RT_OP_PUT, -1, 0, AT("on_error", 8), "obj_put", false },
	{ 41, 8, RT_OP_FREE, 0, 0, AT("on_error", 8), "free", false },
	{ 50, 7, RT_OP_PUT, -1, INT64_MIN, AT("shutdown_all", 9), "obj_put", true },
};
static const char *case_put_evidence[] = { "on_error never took a reference on #1 (0 gets, 1 put on this path)" };
static struct rt_frame case_put_stack[] = { AT("on_error", 8), AT("worker", 9) };
static struct rt_trace_stack case_put_stacks[] = {
	{ "extra put", case_put_stack, 2 },
	{ "use", case_put_stack + 1, 1 },
};
static struct rt_finding case_put[] = { {
	.id = "91b7c2d4",
	.kind = RT_EXTRA_PUT,
	.type = "obj",
	.objects = 1,
	.of = 1,
	.references = 1,
	.confidence = 0.82,
	.role = RT_ROLE_EXTRA_PUT,
	.guilty = AT("on_error", 8),
	.evidence = case_put_evidence,
	.evidence_count = 1,
	.first_object = 1,
	.first_address = 0x55550000,
	.first_time_ns = 10,
	.history = case_put_history,
	.history_count = COUNT(case_put_history),
	.stacks = case_put_stacks,
	.stack_count = 2,
	.pids = case_pids,
	.pid_count = 1,
} };

static inline struct rt_verdict put_verdict(void)
{
	struct rt_verdict v = leak_verdict();

	v.findings = case_put;
	return v;
}
