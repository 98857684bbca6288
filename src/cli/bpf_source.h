/* SPDX-License-Identifier: GPL-2.0-only */
/* The watch over BPF programs as a side source of a recording. */
#pragma once

#include "event/side.h"

struct rt_bpf_source;

/* all: the programs of every process, else those of the recorded ones. Starts nothing. */
RT_CHECK struct rt_error *rt_bpf_source_create(bool all, struct rt_bpf_source **ret);
struct rt_side_source *rt_bpf_source_side(struct rt_bpf_source *source);
/* Why programs will be missing: text after the start; NULL = nothing is in the way. */
const char *rt_bpf_source_note(const struct rt_bpf_source *source);
void rt_bpf_source_destroy(struct rt_bpf_source *source);
RT_CLEANUP(struct rt_bpf_source *, rt_bpf_source_destroy);
