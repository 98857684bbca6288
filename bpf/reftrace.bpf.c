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
 */
#include "stack.h"

#define SIGSTOP 19

/* Each load is asm: the compiler would merge them into one with a variable offset, which the verifier refuses. */
#define REG(number, offset) \
	case number: \
		asm volatile("%0 = *(u64 *)(%1 + " #offset ")" : "=r"(v) : "r"(ctx)); \
		break

static __always_inline uint64_t read_reg(struct pt_regs *ctx, uint8_t reg)
{
	uint64_t v = 0;

	/* by far the most frequent one first */
	if (reg == 5)
		return ctx->di;
	switch (reg) {
		REG(0, 80);   /* rax */
		REG(1, 96);   /* rdx */
		REG(2, 88);   /* rcx */
		REG(3, 40);   /* rbx */
		REG(4, 104);  /* rsi */
		REG(6, 32);   /* rbp */
		REG(7, 152);  /* rsp */
		REG(8, 72);   /* r8 */
		REG(9, 64);   /* r9 */
		REG(10, 56);  /* r10 */
		REG(11, 48);  /* r11 */
		REG(12, 24);  /* r12 */
		REG(13, 16);  /* r13 */
		REG(14, 8);   /* r14 */
		REG(15, 0);   /* r15 */
		REG(16, 128); /* rip */
	}
	return v;
}

/* A value that is narrower than a register or a read. */
static __always_inline uint64_t narrow(uint64_t v, int8_t width)
{
	switch (width) {
	case 1:
		return (uint8_t)v;
	case 2:
		return (uint16_t)v;
	case 4:
		return (uint32_t)v;
	case -1:
		return (int8_t)v;
	case -2:
		return (int16_t)v;
	case -4:
		return (int32_t)v;
	}
	return v;
}

/* Object and slot as the registers at entry show them. */
static __always_inline void read_object(struct hit *h, struct pt_regs *ctx)
{
	const struct rt_probe *p = h->probe;
	uint64_t v = read_reg(ctx, p->reg) + p->reg_offset, at = 0;
	uint32_t n, size;

	if (p->scale)
		v += read_reg(ctx, p->index) * p->scale;
	for (n = 0; n < RT_PROBE_DEREF_MAX; n++) {
		if (n >= p->deref)
			break;
		at = v;
		v = 0;
		/* what is narrow may end where the memory ends */
		size = n + 1 == p->deref && p->width ? (p->width < 0 ? -p->width : p->width) & 7 : sizeof(v);
		if (bpf_probe_read_user(&v, size, (void *)at)) {
			h->flags |= RT_EV_NO_OBJECT;
			v = 0;
			break;
		}
	}
	h->object = p->width ? narrow(v, p->width) : v;
	h->aux = p->kind & RT_PROBE_SLOT ? at : 0;
}

static __always_inline void read_counter(struct hit *h)
{
	const struct rt_probe *p = h->probe;
	void *at = (void *)(h->object + p->counter_offset);
	uint32_t size = p->counter_size;
	uint64_t v = 0;
	long failed;

	if (!size || !h->object)
		return;
	if (size == 4)
		failed = bpf_probe_read_user(&v, 4, at);
	else if (size == 8)
		failed = bpf_probe_read_user(&v, 8, at);
	else if (size == 2)
		failed = bpf_probe_read_user(&v, 2, at);
	else
		failed = bpf_probe_read_user(&v, 1, at);
	h->counter = v + p->counter_bias;
	h->flags |= failed ? RT_EV_COUNT_FAULT : RT_EV_COUNT_READ;
}

/* Written where it stays: nothing is copied. */
static __always_inline void send_event(struct hit *h)
{
	const struct rt_probe *p = h->probe;
	struct rt_wire_event *e;
	uint32_t seq;

	if (h->flags & (RT_EV_NO_OBJECT | RT_EV_COUNT_FAULT))
		add(h->count->faults, 1);
	e = slot_take();
	seq = next_seq(h);
	if (!e) {
		/* a gap in seq tells when */
		add(h->count->ring, 1);
		return;
	}
	e->head.time_ns = bpf_ktime_get_ns();
	e->head.pid = h->wire_pid;
	e->head.tid = h->pid_tgid;
	e->object = h->object;
	e->aux = h->aux;
	e->sp = h->sp;
	e->count = h->counter;
	e->point = RT_COOKIE_POINT(h->cookie);
	e->stack = h->stack;
	e->delta = p->delta;
	e->flags = p->flags | h->flags;
	slot_give(e, p->op, seq);
}

static __always_inline int on_entry(struct pt_regs *ctx, uint64_t cookie)
{
	struct hit h = {};

	if (!hit_init(&h, cookie) || !h.wire_pid)
		return 0;
	add(h.count->hits, 1);
	read_object(&h, ctx);
	if (!h.object && !(h.flags & RT_EV_NO_OBJECT)) {
		add(h.count->nulls, 1);
		return 0;
	}
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
	/* Left behind by longjmp() or an exception: that call does not wait for its return any more. */
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
	if (h.probe->result == RT_PROBE_AT_ENTRY)
		read_counter(&h);
	pending.object = h.object;
	pending.aux = h.aux;
	pending.count = h.counter;
	pending.stack = h.stack;
	pending.flags = h.flags;
	return !bpf_map_update_elem(&pendings, &key, &pending, BPF_ANY);
}

static __always_inline bool condition_holds(const struct rt_probe *p, uint64_t result)
{
	int64_t v = result;

	if (p->result_size == 1)
		v = (int8_t)result;
	else if (p->result_size == 2)
		v = (int16_t)result;
	else if (p->result_size == 4)
		v = (int32_t)result;
	switch (p->condition) {
	case 1:
		return v != 0;
	case 2:
		return v == 0;
	case 3:
		return v > 0;
	case 4:
		return v < 0;
	case 5:
		return v >= 0;
	}
	return true;
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
	read_counter(h);
}

static __always_inline void finish_return(struct hit *h, struct rt_pending *pending, uint64_t result)
{
	h->object = pending->object;
	h->aux = pending->aux;
	h->counter = pending->count;
	h->stack = pending->stack;
	h->flags = pending->flags;
	add(h->count->hits, 1);
	if (!condition_holds(h->probe, result)) {
		add(h->count->unmet, 1);
		return;
	}
	read_result(h, result);
	if (!h->object && !(h->flags & RT_EV_NO_OBJECT)) {
		add(h->count->nulls, 1);
		return;
	}
	if (pending->drop)
		count_drop(h, pending->drop);
	else
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
