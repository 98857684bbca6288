// SPDX-License-Identifier: GPL-2.0-only
/*
 * The BPF programs of engine K. Each attach path has its own copies, because
 * they differ in how a hit is named: uprobe_multi links carry a cookie, on the
 * tracefs path (tgid, ip) is looked up. User space loads only those it needs.
 *
 *   entry    ENTRY and INSN points: one event for each hit
 *   enter    entry of a RETURN point: remembers stack, return address and object
 *   leave    its return: one event
 *   session  enter and leave in one, for kernels with uprobe sessions
 *   stop     stops the thread, so that the tracer can look at new code
 *   unwind   stops it where it waits for returns, so that the tracer can put its return addresses right
 *   call     enter and leave of system calls (call.h)
 */
#include "call.h"

#define SIGSTOP 19

static __always_inline int on_entry(struct pt_regs *ctx, uint64_t cookie)
{
	struct hit h = {};

	if (!hit_init(&h, cookie) || !h.wire_pid)
		return 0;
	add(h.count->hits, 1);
	read_object(&h, ctx);
	if (!h.object && !(h.flags & RT_EV_NO_OBJECT)) {
		add(h.count->unmet, 1);
		return 0;
	}
	if (!is_traced(&h))
		return 0;
	if (!capture(&h, ctx)) {
		count_drop(&h, h.drop);
		return 0;
	}
	read_counter(&h);
	send_event(&h);
	return 0;
}

/*
 * Where the entry at this return slot is kept. A tail call enters a second
 * probed function with the same slot, which by then holds the kernel's
 * trampoline: it goes one level deeper.
 */
static __always_inline bool pending_key(struct rt_pending_key *key, struct rt_pending *pending)
{
	struct rt_pending *first;
	struct rt_probe_count *count;
	uint32_t i;

	if (bpf_probe_read_user(&pending->ra, sizeof(pending->ra), (void *)key->slot))
		return false;
	first = bpf_map_lookup_elem(&pendings, key);
	if (!first)
		return true;
	if (!(pending->ra & (PAGE - 1))) {
		pending->ra = first->ra;
		key->level = ++first->levels;
		return true;
	}
	/*
	 * Left behind by longjmp() or an exception: that call does not wait for its return any more. One that was
	 * lifted may have had it, unseen.
	 */
	if (first->lifted)
		return true;
	i = bpf_get_smp_processor_id() * rt_points + RT_COOKIE_POINT(first->cookie);
	count = bpf_map_lookup_elem(&counts, &i);
	if (count && first->nested <= RT_PENDING_MAX)
		add(count->entries, -1);
	return true;
}

/* One more entry in this thread; how many it is in now. */
static __always_inline uint32_t nest(uint64_t pid_tgid)
{
	uint32_t *known = bpf_map_lookup_elem(&nesting, &pid_tgid), one = 1;

	if (known)
		return ++*known;
	bpf_map_update_elem(&nesting, &pid_tgid, &one, BPF_ANY);
	return 1;
}

/* Entry of a return point. false: its return will not be counted. */
static __always_inline bool on_enter(struct pt_regs *ctx, uint64_t cookie)
{
	struct rt_pending pending = { .cookie = cookie };
	struct rt_pending_key key = {};
	struct hit h = {};

	if (!hit_init(&h, cookie) || !h.wire_pid)
		return false;
	add(h.count->entries, 1);
	key.pid_tgid = h.pid_tgid;
	key.slot = ctx->sp;
	if (!pending_key(&key, &pending))
		return false;
	pending.nested = nest(h.pid_tgid);
	/* The trampoline of this very entry is not in its slot yet; those of outer ones are put right by capture(). */
	if (!capture(&h, ctx))
		pending.drop = h.drop;
	read_object(&h, ctx);
	if (!rt_probe_counts_late(h.probe))
		read_counter(&h);
	pending.object = h.object;
	pending.aux = h.aux;
	pending.count = h.counter;
	pending.stack = h.stack;
	pending.flags = h.flags;
	return !bpf_map_update_elem(&pendings, &key, &pending, BPF_ANY);
}

/* Object of a return point whose object only shows now. */
static __always_inline void read_result(struct hit *h, uint64_t result)
{
	uint8_t from = h->probe->result;

	if (from == RT_PROBE_AT_ENTRY)
		return;
	h->flags &= ~(RT_EV_NO_OBJECT | RT_EV_COUNT_READ | RT_EV_COUNT_FAULT);
	if (from == RT_PROBE_RESULT) {
		h->object = result;
		h->aux = 0;
	} else {
		/* OUT: what was found at entry is the slot */
		h->aux = from == RT_PROBE_RESULT_PTR ? result : h->object;
		h->object = 0;
		if (h->aux && bpf_probe_read_user(&h->object, sizeof(h->object), (void *)h->aux)) {
			h->object = 0;
			h->flags |= RT_EV_NO_OBJECT;
		}
	}
	read_class(h);
}

static __always_inline void finish_return(struct hit *h, struct rt_pending *pending, uint64_t result)
{
	h->object = pending->object;
	h->aux = pending->aux;
	h->counter = pending->count;
	h->stack = pending->stack;
	h->flags = pending->flags;
	add(h->count->hits, 1);
	if (!rt_probe_holds(h->probe, result)) {
		add(h->count->unmet, 1);
		return;
	}
	read_result(h, result);
	if (!h->object && !(h->flags & RT_EV_NO_OBJECT)) {
		add(h->count->unmet, 1);
		return;
	}
	if (!is_traced(h))
		return;
	if (pending->drop) {
		count_drop(h, pending->drop);
		return;
	}
	if (rt_probe_counts_late(h->probe))
		read_counter(h);
	send_event(h);
}

static __always_inline void on_leave(struct pt_regs *ctx)
{
	struct rt_pending_key key = {};
	struct rt_pending *first, *pending, copy;
	uint32_t *nested;
	struct hit h = {};

	key.pid_tgid = bpf_get_current_pid_tgid();
	key.slot = ctx->sp - 8;
	first = pending = bpf_map_lookup_elem(&pendings, &key);
	if (!first)
		return;
	if (first->levels) {
		key.level = first->levels--;
		pending = bpf_map_lookup_elem(&pendings, &key);
		if (!pending)
			return;
	}
	copy = *pending;
	bpf_map_delete_elem(&pendings, &key);
	nested = bpf_map_lookup_elem(&nesting, &key.pid_tgid);
	if (nested)
		*nested = copy.nested - 1;
	if (!hit_init(&h, copy.cookie))
		return;
	if (!h.wire_pid) {
		add(h.count->entries, -1);
		return;
	}
	h.sp = ctx->sp;
	finish_return(&h, &copy, ctx->ax);
}

SEC("kprobe")
int entry_multi(struct pt_regs *ctx)
{
	return on_entry(ctx, bpf_get_attach_cookie(ctx));
}

SEC("kprobe")
int enter_multi(struct pt_regs *ctx)
{
	on_enter(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("kprobe")
int leave_multi(struct pt_regs *ctx)
{
	on_leave(ctx);
	return 0;
}

/* Return value at entry: 1 = do not call at the return. */
SEC("kprobe")
int session_multi(struct pt_regs *ctx)
{
	if (ctx->ip == bpf_get_func_ip(ctx))
		return !on_enter(ctx, bpf_get_attach_cookie(ctx));
	on_leave(ctx);
	return 0;
}

SEC("kprobe")
int stop_any(struct pt_regs *ctx)
{
	bpf_send_signal_thread(SIGSTOP);
	return 0;
}

/* An unwinder begins, or is over, and the kernel's trampolines may be on the stack. */
SEC("kprobe")
int unwind_any(struct pt_regs *ctx)
{
	uint64_t pid_tgid = bpf_get_current_pid_tgid();
	uint32_t *nested = bpf_map_lookup_elem(&nesting, &pid_tgid);

	if (nested && *nested)
		bpf_send_signal_thread(SIGSTOP);
	return 0;
}

static __always_inline uint64_t ip_cookie(struct pt_regs *ctx, uint32_t at_return)
{
	struct rt_ip_key key = { ctx->ip, bpf_get_current_pid_tgid() >> 32, at_return };
	uint64_t *cookie = bpf_map_lookup_elem(&ips, &key);

	return cookie ? *cookie : 0;
}

SEC("kprobe")
int entry_trace(struct pt_regs *ctx)
{
	return on_entry(ctx, ip_cookie(ctx, 0));
}

SEC("kprobe")
int enter_trace(struct pt_regs *ctx)
{
	on_enter(ctx, ip_cookie(ctx, 1));
	return 0;
}

SEC("kprobe")
int leave_trace(struct pt_regs *ctx)
{
	on_leave(ctx);
	return 0;
}

char rt_license[] SEC("license") = "GPL";
