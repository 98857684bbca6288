/* SPDX-License-Identifier: GPL-2.0-only */
/* The lives of BPF programs, as text and as JSON. */
#pragma once

#include "base/sink.h"
#include "bpfprog/bpfprog.h"

/* What a listing is about. */
struct rt_bpf_listing {
	const struct rt_bpf_catalog *catalog;
	const char *const *command; /* NULL: no program was started */
	const uint32_t *pids;       /* only what these hold or loaded; NULL: all */
	size_t pid_count;
	bool watched;      /* programs were watched being loaded; else: what is loaded now */
	uint64_t start_ns; /* of the watch, CLOCK_MONOTONIC */
	const char *limit; /* of the watch, or NULL */
	int program_status, exit_status;
	bool program_ended;
};

enum rt_bpf_state {
	RT_BPF_UNLOADED,
	RT_BPF_IN_USE, /* its loader lives and holds it */
	RT_BPF_LEAKED, /* still loaded though its loader is gone, or does not hold it */
	RT_BPF_LOADED, /* there before us */
};
enum rt_bpf_state rt_bpf_state(const struct rt_bpf_entry *entry);

/* Does the listing show this program? */
bool rt_bpf_listed(const struct rt_bpf_listing *listing, const struct rt_bpf_entry *entry);
void rt_bpf_list_text(const struct rt_bpf_listing *listing, struct rt_sink *out);
void rt_bpf_list_json(const struct rt_bpf_listing *listing, struct rt_sink *out);
