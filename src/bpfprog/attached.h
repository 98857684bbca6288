/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where BPF programs are attached without a link, which no descriptor tells: control groups (BPF_PROG_QUERY of each),
 * and in every network namespace that a process or a name has: XDP, tc filters and the flow dissector.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/*
 * Calls found for each; target is valid during the call: "cgroup /sys/fs/cgroup/web, cgroup_inet_ingress", "interface
 * eth0, xdp (driver)". What may not be looked into is left out. The calling thread enters each network namespace and
 * comes back; RT_E_SYSTEM when it cannot come back: nothing that follows would speak of the right one.
 */
RT_CHECK struct rt_error *rt_bpf_attached_each(void (*found)(void *arg, uint32_t prog, const char *target), void *arg);

/* The part of it that is about the network namespace that the thread is in. label: " in network namespace x", or "". */
void rt_bpf_attached_net(const char *label, void (*found)(void *arg, uint32_t prog, const char *target), void *arg);
