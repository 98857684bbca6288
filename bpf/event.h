/* SPDX-License-Identifier: GPL-2.0-only */
/* From a hit's registers to an event: the object, its counter, and the slot of the ring. */
#pragma once

#include "stack.h"
#include "tally.h"

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

/* What cannot be read tells of no class. */
static __always_inline void read_class(struct hit *h)
{
	uint32_t at = h->probe->class_at;

	if (at && h->object && bpf_probe_read_user(&h->aux, sizeof(h->aux), (void *)(h->object + at - 1)))
		h->aux = 0;
}

/* Object and slot as the registers at entry show them. */
static __always_inline void read_object(struct hit *h, struct pt_regs *ctx)
{
	const struct rt_probe *p = h->probe;
	uint64_t v = read_reg(ctx, p->reg) + p->reg_offset, at = 0;
	uint32_t n, size;

	if (p->scale)
		v += read_reg(ctx, p->index) * p->scale;
	if (p->stored) {
		h->object = read_reg(ctx, p->stored - 1);
		h->aux = v;
		return;
	}
	for (n = 0; n < RT_PROBE_DEREF_MAX; n++) {
		/* a pointer on the way that is NULL leads to no object: put(&p) where p is NULL does nothing */
		if (n >= p->deref || (n && !v))
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
	h->object = p->width ? rt_probe_narrow(v, p->width) : v;
	h->aux = p->kind & RT_PROBE_SLOT ? at : 0;
	read_class(h);
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

/* false: its object is not in the sample. */
static __always_inline bool is_traced(struct hit *h)
{
	uint64_t key;
	struct rt_sample_set *set;
	enum rt_sample_answer answer;
	uint32_t i, hash;

	if (!rt_sample_sets || !(h->probe->kind & RT_PROBE_SAMPLED) || h->flags & RT_EV_NO_OBJECT)
		return true;
	key = rt_sample_key(h->salt, h->probe->type, h->object);
	i = key & (rt_sample_sets - 1);
	set = bpf_map_lookup_elem(&samples, &i);
	if (!set)
		return true;
	answer = rt_sample(set, key, h->probe, h->object, *(volatile uint32_t *)&rt_sample_rate, &hash);
	if (answer == RT_SAMPLE_PASS) {
		add(h->count->passed, 1);
		return false;
	}
	if (answer == RT_SAMPLE_TELL_OUTSIDE)
		h->flags |= RT_EV_OUTSIDE;
	if (rt_sample_ranks)
		h->flags |= rt_sample_rank(hash);
	return true;
}

/* Written where it stays: nothing is copied. */
static __always_inline void send_event(struct hit *h)
{
	const struct rt_probe *p = h->probe;
	struct rt_wire_event *e;
	uint32_t seq;

	if (h->flags & (RT_EV_NO_OBJECT | RT_EV_COUNT_FAULT))
		add(h->count->faults, 1);
	if (*(volatile uint32_t *)&rt_counting) {
		if (h->flags & RT_EV_NO_OBJECT)
			add(h->count->passed, 1);
		else
			tally(h);
		return;
	}
	e = slot_take();
	seq = next_seq(h);
	if (!e) {
		/* a gap in seq tells when */
		add(h->count->ring, 1);
		return;
	}
	e->head.time_ns = h->time_ns ?: bpf_ktime_get_ns();
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
