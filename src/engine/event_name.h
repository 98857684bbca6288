/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of perf events, as perf's -e takes them:
 *
 *     cycles  cpu-clock  page-faults ...   what the kernel counts by itself
 *     L1-dcache-load-misses  LLC-loads ... caches
 *     rHEX                                 a raw hardware event
 *     PMU/EVENT/  PMU/TERM=N,TERM/         an event of a PMU: cpu/event=0x3c,umask=0x1/
 *     SYS:NAME                             a tracepoint, or a uprobe that is defined in tracefs; globs
 *     sdt_PROVIDER:NAME                    an SDT marker (engine/markers.h); globs
 *     %GROUP:EVENT                         a definition of the build-id cache; without % where tracefs has no such
 * event u:PATH:SYMBOL  u:PATH:0xOFFSET       a uprobe (ur: at its return); offsets are file offsets
 *
 * Terms of a PMU are also config, config1, config2, period, freq and name. Modifiers stand behind a colon (or the
 * second slash): u (user code), k (kernel code), h (hypervisor), G, H (of guests, of the host), p (precise, up to ppp),
 * P (as precise as can be), D (always on the counter).
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
	char *folder;     /* where it lies below events/, if not there: a marker's, defined by us for a while */
	char *path;       /* of a uprobe */
	uint64_t offset;  /* file offset of a uprobe */
	uint64_t config1, config2;
	uint64_t period, frequency; /* of this event alone; 0 = as all */
	bool pmu;                   /* written as PMU/.../ */
	/* what is left out, as perf has it: without modifiers guests */
	bool exclude_user, exclude_kernel, exclude_hv, exclude_host, exclude_guest;
	bool pinned;
	uint8_t precise;
};

struct rt_markers;

/* Where names are looked up. */
struct rt_event_places {
	int tracefs;                /* fd of its folder, -1 = there is none or it may not be read */
	int tracefs_errno;          /* why */
	int pmus;                   /* fd of /sys/bus/event_source/devices, -1 = none */
	struct rt_markers *markers; /* NULL: markers are no events */
};

struct rt_event_list {
	struct rt_event_desc *data;
	size_t len, cap;
};

#define RT_EVENTS_MAX 1024

/*
 * Appends the events of a comma-separated list. RT_E_USAGE for what cannot be understood, with near names;
 * RT_E_NOT_FOUND for a uprobe's file or function; RT_E_UNSUPPORTED for a PMU that is not there; RT_E_PRIVILEGE for
 * tracepoints that may not be looked up.
 */
RT_CHECK struct rt_error *rt_event_names_parse(const char *text, const struct rt_event_places *places,
					       struct rt_event_list *list);
/* The event that is sampled when none was named. */
RT_CHECK struct rt_error *rt_event_names_default(bool cycles, struct rt_event_list *list);
void rt_event_list_deinit(struct rt_event_list *list);
