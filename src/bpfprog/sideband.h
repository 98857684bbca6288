/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's own word on loads and unloads: PERF_RECORD_BPF_EVENT of a dummy
 * event on each CPU. Its records carry no images, only ids and times.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

struct rt_bpf_event {
	bool load; /* else unload */
	uint32_t id;
	uint8_t tag[8];
	uint32_t pid; /* who did it; for unloads often a kernel thread */
	uint64_t time_ns;
};

struct rt_bpf_sideband_cpu {
	int fd;
	void *page; /* mapped */
};

struct rt_bpf_sideband {
	RT_VEC(struct rt_bpf_sideband_cpu) cpus;
	uint64_t lost; /* records that did not fit */
	uint8_t record[4096];
};

RT_CHECK struct rt_error *rt_bpf_sideband_open(struct rt_bpf_sideband *ret);
/* Hands on what has come; order holds within a CPU only. */
void rt_bpf_sideband_drain(struct rt_bpf_sideband *band, void (*event)(void *arg, const struct rt_bpf_event *event),
			   void *arg);
void rt_bpf_sideband_close(struct rt_bpf_sideband *band);
