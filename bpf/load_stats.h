/* SPDX-License-Identifier: GPL-2.0-only */
/* How often and how long a program ran: told before a descriptor that may be its last one is closed. */
#pragma once

#include "load_state.h"

#define CPUS_MAX 8192

/* Its elements show where each CPU's part of per-CPU memory lies; not every kernel names the table of these. */
struct {
	__uint(type, MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint64_t);
} percpu SEC(".maps");

struct sum {
	uint64_t at;      /* struct bpf_prog_stats, relative to a CPU's part of memory */
	uint64_t element; /* the same of percpu's element */
	uint64_t cnt, nsecs;
};

static long add_cpu(uint32_t cpu, void *arg)
{
	struct sum *sum = arg;
	uint32_t zero = 0;
	void *element = bpf_map_lookup_percpu_elem(&percpu, &zero, cpu);
	uint64_t base = 0, v = 0;

	if (!element)
		return 1;
	/* as a number: the verifier would not let a pointer leave its map */
	bpf_probe_read_kernel(&base, sizeof(base), &element);
	base -= sum->element;
	base += sum->at;
	bpf_probe_read_kernel(&v, sizeof(v), (void *)base + bpf_core_field_offset(struct bpf_prog_stats, cnt));
	sum->cnt += v;
	v = 0;
	bpf_probe_read_kernel(&v, sizeof(v), (void *)base + bpf_core_field_offset(struct bpf_prog_stats, nsecs));
	sum->nsecs += v;
	return 0;
}

static __noinline int put_stats(struct bpf_prog *prog)
{
	struct rt_load_stats s = { .head.kind = RT_LOAD_STATS };
	struct bpf_array *array = NULL;
	void *map = &percpu;
	struct sum sum = {};

	if (!prog)
		return 0;
	/* through memory, as in add_cpu() */
	bpf_probe_read_kernel(&array, sizeof(array), &map);
	sum.element = (uint64_t)BPF_CORE_READ(array, pptrs[0]);
	sum.at = (uint64_t)BPF_CORE_READ(prog, stats);
	bpf_loop(rt_cpus < CPUS_MAX ? rt_cpus : CPUS_MAX, add_cpu, &sum, 0);
	if (!sum.cnt)
		return 0;
	s.head.id = BPF_CORE_READ(prog, aux, id);
	s.run_cnt = sum.cnt;
	s.run_time_ns = sum.nsecs;
	(void)bpf_ringbuf_output(&load_ring, &s, sizeof(s), BPF_RB_NO_WAKEUP);
	return 0;
}

/* The program of a file: its own, or that of a link. */
static struct bpf_prog *prog_behind(struct file *file)
{
	void *p = file ? BPF_CORE_READ(file, private_data) : NULL;
	struct bpf_link *link = p;

	if (!p)
		return NULL;
	return as_prog(p) ?: as_prog(BPF_CORE_READ(link, prog));
}

static long drop_fd(uint32_t fd, void *arg)
{
	struct file **table = *(struct file ***)arg, *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	put_stats(prog_behind(file));
	return 0;
}

static __noinline int drop_all(struct task_struct *task)
{
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **table = BPF_CORE_READ(fdt, fd);
	uint32_t count = BPF_CORE_READ(fdt, max_fds);

	bpf_loop(count < FDS_MAX ? count : FDS_MAX, drop_fd, &table, 0);
	return 0;
}
