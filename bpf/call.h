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

static __always_inline void read_call_object(struct hit *h, struct pt_regs *regs)
{
	const struct rt_probe *p = h->probe;
	uint64_t v = p->result == RT_PROBE_RESULT ? regs->ax : read_reg(regs, p->reg), at;

	if (p->result == RT_PROBE_OUT) {
		at = v + p->counter_offset;
		v = 0;
		if (bpf_probe_read_user(&v, sizeof(uint32_t), (void *)at))
			h->flags |= RT_EV_NO_OBJECT;
	}
	h->object = h->flags & RT_EV_NO_OBJECT ? 0 : narrow(v, p->width) + p->reg_offset;
	if (p->kind & RT_PROBE_SIZE) {
		h->aux = narrow(read_reg(regs, p->index), p->width);
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
	if (!condition_holds(h.probe, c->regs.ax)) {
		add(h.count->unmet, 1);
		return 0;
	}
	h.time_ns = h.probe->op == RT_OP_FREE ? c->begin_ns : c->end_ns;
	read_call_object(&h, &c->regs);
	if (!h.object && !(h.flags & RT_EV_NO_OBJECT)) {
		add(h.count->nulls, 1);
		return 0;
	}
	if (!capture(&h, &c->regs)) {
		count_drop(&h, h.drop);
		return 0;
	}
	send_event(&h);
	return 0;
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
	struct rt_probe_call *points;

	if (!c)
		return 0;
	nr = c->regs.orig_ax;
	points = bpf_map_lookup_elem(&call_points, &nr);
	process = bpf_map_lookup_elem(&callers, &tgid);
	if (points && process) {
		c->regs.ax = ctx->arg[1];
		c->end_ns = bpf_ktime_get_ns();
		for (i = 0; i < RT_PROBE_CALL_POINTS; i++)
			if (points->point[i])
				on_call(c, RT_COOKIE_MAKE(points->point[i], *process));
	}
	bpf_map_delete_elem(&in_calls, &pid_tgid);
	return 0;
}
