/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of perf events, as perf's -e takes them:
 *
 *     cycles  cpu-clock  page-faults ...   what the kernel counts by itself
 *     rHEX                                 a raw hardware event
 *     SYS:NAME                             a tracepoint, or a uprobe that is defined in tracefs; globs
 *     u:PATH:SYMBOL  u:PATH:0xOFFSET       a uprobe (ur: at its return); offsets are file offsets
 *
 * with modifiers behind a colon: u (user code), k (kernel code), p (precise, up to ppp).
 */
#pragma once

#include <stdint.h>

#include <linux/perf_event.h>

#include "base/error.h"
#include "base/vec.h"

enum rt_event_kind {
	RT_EVENT_CPU,        /* hardware, software, raw: sampled */
	RT_EVENT_TRACEPOINT, /* every hit, with its raw fields */
	RT_EVENT_UPROBE,     /* every hit */
};

/* What perf_event_open(2) needs of a name. Strings are owned. */
struct rt_event_desc {
	char *name; /* as written, globs resolved: "sched:sched_switch", "cycles:u" */
	enum rt_event_kind kind;
	uint32_t type;
	uint64_t config;
	char *group;      /* of a tracepoint: its folder in tracefs ... */
	char *tracepoint; /* ... and its own name */
	char *path;       /* of a uprobe */
	uint64_t offset;  /* file offset of a uprobe */
	bool user_only, kernel_only;
	uint8_t precise;
};

struct rt_event_list {
	struct rt_event_desc *data;
	size_t len, cap;
};

#define RT_EVENTS_MAX 1024

/*
 * Appends the events of a comma-separated list. tracefs: fd of the tracefs folder, -1 = there is none or it may
 * not be read (errnum says why). RT_E_USAGE for what cannot be understood, with near names; RT_E_NOT_FOUND for a
 * uprobe's file or function; RT_E_PRIVILEGE for tracepoints that may not be looked up.
 */
RT_CHECK struct rt_error *rt_event_names_parse(const char *text, int tracefs, int errnum, struct rt_event_list *list);
/* The event that is sampled when none was named. */
RT_CHECK struct rt_error *rt_event_names_default(bool cycles, struct rt_event_list *list);
void rt_event_list_deinit(struct rt_event_list *list);
