/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who keeps a BPF program loaded: descriptors of processes (of the program, of
 * a link to it, of a perf event that runs it), pins in BPF file systems, links, and attachments without one
 * (bpfprog/attached.h).
 */
#pragma once

#include "bpfprog/catalog.h"

/* Fills holders, held_unseen and attached of every entry that is loaded. Processes that we may not look into are left
 * out. */
RT_CHECK struct rt_error *rt_bpf_holders_find(struct rt_bpf_catalog *catalog);
