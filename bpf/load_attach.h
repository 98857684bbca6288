/* SPDX-License-Identifier: GPL-2.0-only */
/* What a program is attached to: links, perf events, sockets, BPF_PROG_ATTACH. */
#pragma once

#include "load_state.h"

#define CMD_RAW_TRACEPOINT_OPEN 17
#define CMD_LINK_CREATE 28

/* "sched", "sched_switch" of a perf event. */
static void name_event(struct rt_load_attach *a, struct file *file)
{
	struct perf_event *event = (void *)BPF_CORE_READ(file, private_data);
	struct trace_event_call *call = BPF_CORE_READ(event, tp_event);
	const char *name;
	uint64_t first = 0;

	if (!call)
		return;
	bpf_probe_read_kernel_str(a->group, sizeof(a->group), BPF_CORE_READ(call, class, system));
	/* A union of a name and a tracepoint, which begins with a pointer to its name: no text has such bytes. */
	name = BPF_CORE_READ(call, name);
	bpf_probe_read_kernel(&first, sizeof(first), name);
	if (first >> 48 == 0xffff)
		name = (void *)first;
	bpf_probe_read_kernel_str(a->name, sizeof(a->name), name);
}

static void send_attach(struct rt_load_attach *a, struct bpf_prog *prog)
{
	if (!prog)
		return;
	a->head.kind = RT_LOAD_ATTACH;
	a->head.id = BPF_CORE_READ(prog, aux, id);
	a->time_ns = bpf_ktime_get_ns();
	a->pid = bpf_get_current_pid_tgid() >> 32;
	if (!a->attach_type)
		a->attach_type = BPF_CORE_READ(prog, expected_attach_type);
	if (!a->name[0])
		bpf_probe_read_kernel_str(a->name, sizeof(a->name), BPF_CORE_READ(prog, aux, attach_func_name));
	(void)bpf_ringbuf_output(&load_ring, a, sizeof(*a), 0);
}

/* attr: user's union bpf_attr. */
static __noinline int on_link(int fd, uint32_t cmd, uint64_t attr)
{
	struct rt_load_attach a = { .how = RT_ATTACHED_LINK };
	struct file *file = file_of(fd);
	struct bpf_link *link = file ? (void *)BPF_CORE_READ(file, private_data) : NULL;
	struct bpf_prog *prog = link ? as_prog(BPF_CORE_READ(link, prog)) : NULL;
	uint64_t name = 0;

	if (!prog)
		return 0;
	a.link = BPF_CORE_READ(link, id);
	a.link_type = BPF_CORE_READ(link, type);
	if (cmd == CMD_RAW_TRACEPOINT_OPEN) {
		bpf_probe_read_user(&name, sizeof(name), (void *)attr);
		if (name)
			bpf_probe_read_user_str(a.name, sizeof(a.name), (void *)name);
	} else {
		/* struct { u32 prog_fd, target_fd, attach_type; } */
		bpf_probe_read_user(&a.attach_type, sizeof(a.attach_type), (void *)(attr + 8));
		if (a.link_type == LINK_TYPE_PERF_EVENT)
			name_event(&a, BPF_CORE_READ((struct bpf_perf_link *)link, perf_file));
	}
	send_attach(&a, prog);
	return 0;
}

/* attr: struct { u32 target_fd, attach_bpf_fd, attach_type; } */
static __noinline int on_attach(uint64_t attr)
{
	struct rt_load_attach a = { .how = RT_ATTACHED_DIRECT };
	uint32_t fd = -1;

	bpf_probe_read_user(&fd, sizeof(fd), (void *)(attr + 4));
	bpf_probe_read_user(&a.attach_type, sizeof(a.attach_type), (void *)(attr + 8));
	send_attach(&a, prog_of(fd));
	return 0;
}

static __noinline int on_perf(int event, int fd)
{
	struct rt_load_attach a = { .how = RT_ATTACHED_PERF };

	name_event(&a, file_of(event));
	send_attach(&a, prog_of(fd));
	return 0;
}

static __noinline int on_socket(uint64_t value)
{
	struct rt_load_attach a = { .how = RT_ATTACHED_SOCKET };
	uint32_t fd = -1;

	bpf_probe_read_user(&fd, sizeof(fd), (void *)value);
	send_attach(&a, prog_of(fd));
	return 0;
}
