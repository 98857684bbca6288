/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands from a fifo while a recording runs, as perf record --control: lines "enable", "disable", "snapshot",
 * "stop", "ping"; each is answered with "ack" when it is done.
 */
#pragma once

#include "event/side.h"

struct rt_control;

/* What the commands do; NULL: not possible here, said and not answered. */
struct rt_control_hooks {
	struct rt_error *(*enable)(void *arg, bool on);
	struct rt_error *(*snapshot)(void *arg);
	struct rt_error *(*stop)(void *arg);
	void *arg;
};

/* spec: "fifo:CTL[,ACK]" or "fd:CTL[,ACK]". RT_E_USAGE, RT_E_NOT_FOUND. */
RT_CHECK struct rt_error *rt_control_open(const char *spec, const struct rt_control_hooks *hooks,
					  struct rt_control **ret);
/* Owned by the control. */
struct rt_side_source *rt_control_source(struct rt_control *control);
void rt_control_close(struct rt_control *control);
RT_CLEANUP(struct rt_control *, rt_control_close);
