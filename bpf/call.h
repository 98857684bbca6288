/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls of traced processes. All that they are asked about is known when they return; what they take back is
 * free for others before that, so such an event has the time at which the call began.
 */
#pragma once

#include "event.h"

#define CALLS_KNOWN 512 /* RT_CALL_NR_MAX of src/probe/call.h */

/* A thread that is in a call. */
struct call {
	uint64_t begin_ns, end_ns;
	uint64_t given; /* the descriptor that it is asked about, plus 1, where no register tells */
	struct pt_regs regs;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, uint64_t);
	__type(value, struct call);
} in_calls SEC(".maps");

/* By number: its points. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CALLS_KNOWN);
	__type(key, uint32_t);
	__type(value, struct rt_probe_call);
} call_points SEC(".maps");

/* tgid -> its entry in processes */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} callers SEC(".maps");

/* The first two arguments of a raw tracepoint. */
struct raw_args {
	uint64_t arg[2];
};

static __always_inline void read_call_object(struct hit *h, struct call *c)
{
	struct pt_regs *regs = &c->regs;
	const struct rt_probe *p = h->probe;
	uint64_t v = p->result == RT_PROBE_RESULT ? regs->ax : read_reg(regs, p->reg), at;

	if (p->kind & RT_PROBE_MESSAGE)
		v = c->given - p->reg_offset;
	if (p->result == RT_PROBE_OUT) {
		at = v + p->counter_offset;
		v = 0;
		if (bpf_probe_read_user(&v, sizeof(uint32_t), (void *)at))
			h->flags |= RT_EV_NO_OBJECT;
	}
	h->object = h->flags & RT_EV_NO_OBJECT ? 0 : rt_probe_narrow(v, p->width) + p->reg_offset;
	if (p->kind & RT_PROBE_SIZE) {
		h->aux = rt_probe_narrow(read_reg(regs, p->index), p->width);
		if (p->kind & RT_PROBE_TO)
			h->aux = h->aux + p->reg_offset >= h->object ? h->aux + p->reg_offset + 1 - h->object : 0;
	}
}

/* Verified once, and not for each of its points. */
__noinline int on_call(struct call *c, uint64_t cookie)
{
	struct hit h = {};

	if (!c || !hit_init(&h, cookie) || !h.wire_pid)
		return 0;
	if (h.probe->kind & RT_PROBE_MATCH && (int32_t)read_reg(&c->regs, h.probe->scale) != h.probe->counter_offset)
		return 0;
	add(h.count->hits, 1);
	if (!rt_probe_holds(h.probe, c->regs.ax)) {
		add(h.count->unmet, 1);
		return 0;
	}
	h.time_ns = h.probe->op == RT_OP_FREE ? c->begin_ns : c->end_ns;
	read_call_object(&h, c);
	if (!h.object && !(h.flags & RT_EV_NO_OBJECT)) {
		add(h.count->unmet, 1);
		return 0;
	}
	if (!capture(&h, &c->regs)) {
		count_drop(&h, h.drop);
		return 0;
	}
	send_event(&h);
	return 0;
}

/* Ours of struct msghdr and struct cmsghdr. */
#define MSG_CONTROL 32
#define MSG_BYTES_MAX 65536
#define CMSG_ALIGN 8
#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define SCM_PIDFD 4
#define MESSAGE_STEPS 320 /* a header or a descriptor each; Linux sends at most 253 descriptors */
#define MESSAGES 64

struct control {
	uint64_t at, bytes;
};
struct control_head {
	uint64_t len;
	int32_t level, type;
};

/* What could not be looked at may have been one: that is no silent gap. */
static __always_inline int message_unread(uint64_t cookie)
{
	struct hit h = {};

	if (hit_init(&h, cookie))
		add(h.count->faults, 1);
	return 0;
}

/* The descriptors that came with the message whose struct msghdr lies at `message`. */
__noinline int on_message(struct call *c, uint64_t cookie, uint64_t message)
{
	uint64_t at, end, data_end = 0, next = 0;
	struct control_head head;
	struct control control;
	uint32_t i, fd;

	if (!c || bpf_probe_read_user(&control, sizeof(control), (void *)(message + MSG_CONTROL)))
		return message_unread(cookie);
	if (control.bytes > MSG_BYTES_MAX)
		return message_unread(cookie);
	at = control.at;
	end = at + control.bytes;
	for (i = 0; i < MESSAGE_STEPS; i++) {
		if (at + sizeof(fd) <= data_end) {
			if (bpf_probe_read_user(&fd, sizeof(fd), (void *)at))
				return message_unread(cookie);
			at += sizeof(fd);
			if ((int32_t)fd < 0)
				continue;
			c->given = (uint64_t)fd + 1;
			on_call(c, cookie);
			continue;
		}
		if (data_end)
			at = next;
		data_end = 0;
		if (at + sizeof(head) > end)
			return 0;
		if (bpf_probe_read_user(&head, sizeof(head), (void *)at))
			return message_unread(cookie);
		if (head.len < sizeof(head) || head.len > end - at)
			return 0;
		next = at + ((head.len + CMSG_ALIGN - 1) & -(uint64_t)CMSG_ALIGN);
		data_end = at + head.len;
		at += sizeof(head);
		if (head.level != SOL_SOCKET || (head.type != SCM_RIGHTS && head.type != SCM_PIDFD))
			at = data_end;
	}
	return message_unread(cookie);
}

__noinline int on_messages(struct call *c, uint64_t cookie, uint32_t stride)
{
	uint64_t first;
	uint32_t i;

	if (!c || (int64_t)c->regs.ax < 0)
		return 0;
	first = c->regs.si; /* the second argument of recvmsg() and recvmmsg() */
	if (!stride)
		return on_message(c, cookie, first);
	for (i = 0; i < MESSAGES; i++) {
		if (i >= c->regs.ax)
			return 0;
		on_message(c, cookie, first + i * stride);
	}
	return c->regs.ax > MESSAGES ? message_unread(cookie) : 0;
}

static __always_inline void on_point(struct call *c, uint32_t point, uint32_t process)
{
	struct rt_probe *p = bpf_map_lookup_elem(&points, &point);

	if (p && p->kind & RT_PROBE_MESSAGE)
		on_messages(c, RT_COOKIE_MAKE(point, process), p->index);
	else
		on_call(c, RT_COOKIE_MAKE(point, process));
}

SEC("raw_tp/sys_enter")
int call_enter(struct raw_args *ctx)
{
	uint64_t pid_tgid = bpf_get_current_pid_tgid();
	uint32_t nr = ctx->arg[1], tgid = pid_tgid >> 32;
	struct rt_probe_call *points = bpf_map_lookup_elem(&call_points, &nr);
	struct call now = {};

	if (!points || !points->point[0] || ctx->arg[1] >= CALLS_KNOWN || !bpf_map_lookup_elem(&callers, &tgid))
		return 0;
	now.begin_ns = bpf_ktime_get_ns();
	if (!bpf_probe_read_kernel(&now.regs, sizeof(now.regs), (void *)ctx->arg[0]))
		bpf_map_update_elem(&in_calls, &pid_tgid, &now, BPF_ANY);
	return 0;
}

SEC("raw_tp/sys_exit")
int call_leave(struct raw_args *ctx)
{
	uint64_t pid_tgid = bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&in_calls, &pid_tgid);
	uint32_t nr, tgid = pid_tgid >> 32, *process, i;
	struct rt_probe_call *of;

	if (!c)
		return 0;
	nr = c->regs.orig_ax;
	of = bpf_map_lookup_elem(&call_points, &nr);
	process = bpf_map_lookup_elem(&callers, &tgid);
	if (of && process) {
		c->regs.ax = ctx->arg[1];
		c->end_ns = bpf_ktime_get_ns();
		for (i = 0; i < RT_PROBE_CALL_POINTS; i++)
			if (of->point[i])
				on_point(c, of->point[i], *process);
	}
	bpf_map_delete_elem(&in_calls, &pid_tgid);
	return 0;
}
