/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The uprobe events that tracefs keeps: of perf probe, of ours, of anyone. Format: Documentation/trace/uprobetracer.rst
 * of Linux.
 *
 *     p:probe_a/f /opt/a:0x0000000000001170(0x3020) n=%si:s32
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/* One line; strings point into the list's text. */
struct rt_probe_event {
	bool at_return;
	const char *group, *name, *path;
	uint64_t offset, semaphore; /* of the file; semaphore 0: none */
	const char *arguments;      /* "" */
};

struct rt_probe_events {
	char *text; /* owned */
	RT_VEC(struct rt_probe_event) list;
};

/* Lines that are not understood are left out. RT_E_PRIVILEGE, RT_E_UNREADABLE. tracefs: fd of its directory. */
RT_CHECK struct rt_error *rt_probe_events_read(int tracefs, struct rt_probe_events *ret);
/* The same of a text that is taken over (freed at deinit). */
RT_CHECK struct rt_error *rt_probe_events_parse(char *text, struct rt_probe_events *ret);
void rt_probe_events_deinit(struct rt_probe_events *events);

bool rt_probe_events_has(const struct rt_probe_events *events, const char *group, const char *name);

/* Hands one line to the kernel; what it says against it is in the error. RT_E_PRIVILEGE, RT_E_UNARMED. */
RT_CHECK struct rt_error *rt_probe_events_define(int tracefs, const char *line);
/* Takes an event with all its points away. RT_E_UNWRITABLE while somebody uses it. */
RT_CHECK struct rt_error *rt_probe_events_remove(int tracefs, const char *group, const char *name);
