/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps and settings of the watcher of loads, and the way from a descriptor to
 * its program. The programs may be preempted: nothing per CPU is taken for granted.
 */
#pragma once

#include "load_types.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#include "wire/bpfload.h"

#define FDS_MAX 65536
#define PROG_TYPE_SYSCALL 31
#define LINK_TYPE_PERF_EVENT 7
#define MAP_TYPE_ARRAY 2
#define MAP_TYPE_PERCPU_ARRAY 6
#define MAP_TYPE_ARENA 33

/* Set before loading. */
const volatile uint32_t rt_all = 0;   /* follow every process, not only those of the map */
const volatile uint32_t rt_own = 0;   /* our own pid: left alone */
const volatile uint32_t rt_cpus = 0;  /* possible CPUs, where run times are asked for; else 0 */
const volatile uint64_t rt_since = 0; /* CLOCK_BOOTTIME: programs that were loaded before are none of ours */

struct rt_load_counts rt_counts = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} load_ring SEC(".maps");

/* Followed processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, uint32_t);
	__type(value, uint8_t);
} followed SEC(".maps");

/* Programs of which something found no room in the ring. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, uint32_t);
	__type(value, struct rt_load_lost);
} losses SEC(".maps");

/* BTF ids that were sent: many programs share one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, uint32_t);
	__type(value, uint8_t);
} btfs SEC(".maps");

/* Program id -> its load_time: copied. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, uint32_t);
	__type(value, uint64_t);
} copied SEC(".maps");

static __always_inline bool is_followed(uint32_t tgid)
{
	if (tgid == rt_own)
		return false;
	return rt_all || bpf_map_lookup_elem(&followed, &tgid);
}

static struct file *file_of(int fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **table, *file = NULL;

	if (fd < 0 || (uint32_t)fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	table = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	return file;
}

/* p, if it is a program: its own part points back. */
static struct bpf_prog *as_prog(void *p)
{
	struct bpf_prog *prog = p;

	return prog && BPF_CORE_READ(prog, aux, prog) == prog ? prog : NULL;
}

static struct bpf_prog *prog_of(int fd)
{
	struct file *file = file_of(fd);

	return file ? as_prog(BPF_CORE_READ(file, private_data)) : NULL;
}
