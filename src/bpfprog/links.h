/* SPDX-License-Identifier: GPL-2.0-only */
/* What a link tells about where its program is attached. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "tracepoint sched/sched_switch", "raw_tracepoint sys_exit", "xdp ifindex 2". false: the link is gone. */
bool rt_bpf_link_describe(uint32_t id, uint32_t *ret_prog, char *text, size_t size);
