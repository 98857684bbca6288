/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call stack of a hit: one bulk read of stack memory, then a walk along
 * the frame pointers inside the copy. One read of 2 KiB costs about as much as
 * one of 8 bytes, so this is several times cheaper than bpf_get_stack(), which
 * besides loses the caller of a function that has not pushed its frame yet.
 */
#pragma once

#include "state.h"

#define PAGE 4096
#define REFILLS 3             /* further reads for stacks that span more than one copy */
#define SPAN (1u << 20)       /* a frame pointer farther away than this is not one */
#define USER_END (1ull << 47) /* first address that user space cannot have */
#define MIX 0x9e3779b97f4a7c15ull

/*
 * Reads at most rt_stack_bytes of stack from `from` on into the copy. The
 * memory above a thread's first frame may not be there: then up to the last page
 * boundary before it, which is remembered, because a failing read is slow.
 */
static __always_inline bool copy_stack(struct hit *h, struct scratch *s, uint64_t from)
{
	uint32_t want = rt_stack_bytes, tid = h->pid_tgid, size;
	uint64_t *known = &h->cpu->tops[tid % TOPS], top = *known;

	s->base = from;
	size = want;
	if (top >> 36 == tid) {
		top = (top << 12) & (USER_END - 1);
		if (top > from && top - from < want)
			size = top - from;
	}
	size &= 2 * RT_COPY_MAX - 1;
	if (size <= RT_COPY_MAX && !bpf_probe_read_user(s->copy, size, (void *)from)) {
		s->copied = size;
		return true;
	}
	size = PAGE - (from & (PAGE - 1));
	if (want > PAGE && want > size + PAGE &&
	    !bpf_probe_read_user(s->copy, (size + PAGE) & (2 * PAGE - 1), (void *)from)) {
		size += PAGE;
	} else if (size >= want || bpf_probe_read_user(s->copy, size & (2 * PAGE - 1), (void *)from)) {
		s->copied = 0;
		return false;
	}
	s->copied = size;
	*known = (uint64_t)tid << 36 | (from + size) >> 12;
	return true;
}

/* The 8 bytes at user address `at`, if the copy holds them. */
static __always_inline bool copied(struct scratch *s, uint64_t at, uint64_t *ret)
{
	uint64_t off = at - s->base;

	if (off + 8 > s->copied || off > RT_COPY_MAX)
		return false;
	*ret = *(uint64_t *)(s->copy + (off & (RT_COPY_MAX - 1)));
	return true;
}

/* What the return slot at `slot` held before the kernel put its return trampoline there. */
static __always_inline uint64_t real_return(struct hit *h, uint64_t slot, uint64_t pc, uint32_t *flags)
{
	struct rt_pending_key key = { h->pid_tgid, slot, 0 };
	struct rt_pending *p;

	*flags = 0;
	/* The trampoline starts a page; hardly any real return address does. */
	if (pc & (PAGE - 1))
		return pc;
	p = bpf_map_lookup_elem(&pendings, &key);
	if (!p)
		return pc;
	*flags = RT_FRAME_TRAMP;
	return p->ra;
}

static __always_inline uint64_t mix(uint64_t hash, uint64_t pc, uint32_t cfa)
{
	hash = (hash ^ pc ^ (uint64_t)cfa << 32) * MIX;
	return hash ^ hash >> 29;
}

/* Frames from pc on; bp belongs to the frame that pc lies in. Returns the hash. */
static __always_inline uint64_t walk(struct hit *h, struct scratch *s, uint64_t hash, uint64_t pc, uint32_t flags,
				     uint64_t bp, uint32_t nr)
{
	uint32_t refills = 0, cfa, end = RT_STACK_DEPTH;
	uint64_t last = h->sp, off;

	for (; nr < RT_STACK_MAX; nr++) {
		if (nr >= rt_frames)
			break;
		cfa = 0;
		off = bp - s->base;
		if (bp < last || bp - last > SPAN || bp & 7) {
			end = bp ? RT_STACK_NO_FP : RT_STACK_ROOT;
		} else if (off + 16 > s->copied && (refills++ >= REFILLS || !copy_stack(h, s, bp) || s->copied < 16)) {
			end = refills > REFILLS ? RT_STACK_COPY : RT_STACK_FAULT;
			h->cpu->tops[(uint32_t)h->pid_tgid % TOPS] = 0;
		} else {
			cfa = bp + 16 - h->sp;
		}
		s->frame[nr & (RT_STACK_MAX - 1)] = (struct rt_wire_frame){ pc, cfa, flags };
		hash = mix(hash, pc, cfa);
		if (end != RT_STACK_DEPTH) {
			nr++;
			break;
		}
		off = (bp - s->base) & (RT_COPY_MAX - 1);
		pc = real_return(h, bp + 8, *(uint64_t *)(s->copy + off + 8), &flags);
		last = bp + 16;
		bp = *(uint64_t *)(s->copy + off);
		if (pc - PAGE >= USER_END - PAGE) {
			end = bp ? RT_STACK_NO_FP : RT_STACK_ROOT;
			nr++;
			break;
		}
	}
	s->nr = nr;
	s->end = end;
	return hash ^ (uint64_t)nr << 56;
}

/* Sends the stack in s if it is new; its id in h->stack. false: the ring is full. */
static __always_inline bool send_stack(struct hit *h, struct scratch *s, uint64_t hash)
{
	uint32_t *known, id, size;

	known = bpf_map_lookup_elem(&stacks, &hash);
	if (known) {
		h->stack = *known;
		return true;
	}
	id = add(rt_next_stack, 1);
	size = sizeof(s->head) + 8 + (s->nr & (2 * RT_STACK_MAX - 1)) * sizeof(struct rt_wire_frame);
	s->head.size = size;
	s->head.kind = RT_WIRE_STACK;
	s->head.op = 0;
	s->head.seq = next_seq(h);
	s->head.time_ns = bpf_ktime_get_ns();
	s->head.pid = h->wire_pid;
	s->head.tid = h->pid_tgid;
	s->id = id;
	if (size > sizeof(s->head) + 8 + sizeof(s->frame))
		return false;
	if (bpf_ringbuf_output(&ring, &s->head, size, BPF_RB_NO_WAKEUP))
		return false;
	/* Only now may others name it: their events come behind it in the ring. */
	if (bpf_map_update_elem(&stacks, &hash, &id, BPF_ANY))
		add(h->count->resent, 1);
	h->stack = id;
	return true;
}

/* Stack of a hit at ctx; sets h->sp and h->stack. false: the event cannot be sent, h->drop says why. */
static __always_inline bool capture(struct hit *h, struct pt_regs *ctx)
{
	const struct rt_probe *p = h->probe;
	uint64_t hash, pc, bp = ctx->bp, sp = ctx->sp, cfa = sp + p->cfa_delta;
	uint32_t flags = 0, nr = 0;
	struct scratch *s = scratch_take(h->cpu_id);
	bool site = p->kind & RT_PROBE_SITE, fine;

	if (!s) {
		h->drop = DROP_BUSY;
		return false;
	}
	h->sp = site ? sp : cfa;
	hash = ((uint64_t)h->wire_pid << 32 | h->salt) * MIX;
	fine = copy_stack(h, s, sp);
	if (site) {
		pc = ctx->ip;
		flags = RT_FRAME_SITE;
	}
	if (p->cfa_delta > 0) {
		if (site) {
			s->frame[0] = (struct rt_wire_frame){ pc, p->cfa_delta, flags };
			hash = mix(hash, pc, p->cfa_delta);
			nr = 1;
		}
		fine = fine && copied(s, cfa - 8, &pc);
		/* The probed function has set up its own frame already: go on with its caller's. */
		if (fine && bp + 16 == cfa)
			copied(s, bp, &bp);
		if (fine)
			pc = real_return(h, cfa - 8, pc, &flags);
	}
	if (fine || (site && !nr)) {
		hash = walk(h, s, hash, pc, flags, bp, nr);
	} else {
		s->nr = nr;
		s->end = RT_STACK_FAULT;
	}
	fine = send_stack(h, s, hash);
	scratch_put(s);
	if (!fine)
		h->drop = DROP_RING;
	return fine;
}
