/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call stack of a hit: one bulk read of stack memory, then a walk along
 * the frame pointers inside the copy. One read of 4 KiB costs little more than
 * one of 8 bytes, so this is several times cheaper than bpf_get_stack(), which
 * besides loses the caller of a function that has not pushed its frame yet.
 */
#pragma once

#include "state.h"

#define PAGE 4096
#define REFILLS 3       /* further reads for stacks that span more than one copy */
#define SPAN_ROOM 256   /* copied beyond what is thought to be needed */
#define SPAN (1u << 20) /* a frame pointer farther away than this is not one */
#define USER_BITS 47    /* of an address in user space */
#define MIX 0x9e3779b97f4a7c15ull

/*
 * Reads at most `want` bytes of stack from `from` on into the copy. The
 * memory above a thread's first frame may not be there: then up to the last page
 * boundary before it, which is remembered, because a failing read is slow.
 */
__noinline int copy_stack(struct scratch *s, uint64_t from, uint32_t want, uint32_t tid, uint32_t cpu_id)
{
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &cpu_id);
	uint64_t *known, top;
	uint32_t size;

	if (!s || !cpu)
		return 0;
	known = &cpu->tops[tid % TOPS];
	top = *known;
	s->base = from;
	size = want;
	if (top >> 36 == tid) {
		top = (top << 12) & ((1ull << USER_BITS) - 1);
		if (top > from && top - from < want)
			size = top - from;
	}
	size &= 2 * RT_COPY_MAX - 1;
	if (size <= RT_COPY_MAX && !bpf_probe_read_user(s->copy, size, (void *)from)) {
		s->copied = size;
		return 1;
	}
	size = PAGE - (from & (PAGE - 1));
	if (want > PAGE && want > size + PAGE &&
	    !bpf_probe_read_user(s->copy, (size + PAGE) & (2 * PAGE - 1), (void *)from)) {
		size += PAGE;
	} else if (size >= want || bpf_probe_read_user(s->copy, size & (2 * PAGE - 1), (void *)from)) {
		s->copied = 0;
		return 0;
	}
	s->copied = size;
	*known = (uint64_t)tid << 36 | (from + size) >> 12;
	return 1;
}

/* How much of the stack the walk will need: the function's own frame, and the rest as those before it. */
static __always_inline uint32_t guess_span(const struct hit *h)
{
	uint32_t span = h->cpu->span, own = h->probe->cfa_delta > 0 ? h->probe->cfa_delta : 0;

	if (span < own)
		span = own;
	span += SPAN_ROOM;
	return span < rt_stack_bytes ? span & ~7u : rt_stack_bytes;
}

/* Grows at once, because a second read costs more than copying too much; shrinks slowly. */
static __always_inline void learn_span(struct hit *h, uint64_t used)
{
	uint32_t span = h->cpu->span;

	if (used >= rt_stack_bytes)
		span = rt_stack_bytes;
	else if (used >= span)
		span = used;
	else
		span -= (span - used) / 16;
	h->cpu->span = span;
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

/* Cheap for each frame; spread over all bits at the end. */
static __always_inline uint64_t mix(uint64_t hash, uint64_t pc, uint32_t cfa)
{
	return hash * MIX + (pc ^ (uint64_t)cfa << 32);
}

static __always_inline uint64_t spread(uint64_t hash, uint32_t nr)
{
	hash = (hash ^ hash >> 32) * MIX + nr;
	return hash ^ hash >> 29;
}

/* A walk on its way. */
struct walk {
	uint64_t salt, hash, pc, bp, last; /* last: no frame lies below */
	uint32_t nr, flags;
	/* by rows (rows.h); here last is sp in the frame that pc lies in */
	uint64_t code, start, need; /* start: of the first copy */
	uint32_t why, rule, refills;
	uint32_t back;        /* pc - back is where the code is: 1 behind a call */
	uint32_t skip;        /* the frame of pc is that of the probed function: not told */
	uint32_t frame_flags; /* of the next frame that is told */
	uint32_t end;         /* enum rt_stack_end */
	uint32_t memo;        /* which memo is written on the way */
	uint32_t steps;       /* in it; more than MEMO_STEPS: it is of no use */
	uint32_t bp_at;       /* where rbp was loaded from: as in struct memo_step */
};

/* Not 0: no address of user code. */
static __always_inline uint64_t not_code(uint64_t pc)
{
	return (pc - PAGE) >> USER_BITS;
}

/*
 * Follows the frame pointers inside the copy: w->pc lies in the frame that
 * w->bp belongs to. Ends at the first frame that is not in the copy, which then
 * is w->pc and w->bp. No calls in here: they would cost the loop its registers.
 * A global function is verified once, by itself, and not for each path to it:
 * inlined, the loop would take the programs beyond the verifier's patience.
 */
__noinline int walk_copy(struct scratch *s, struct walk *w, uint64_t sp)
{
	uint64_t hash, pc, bp, last, base, room, off, *frame, *at;
	uint32_t nr, frames = rt_frames, cfa;

	if (!s || !w)
		return 0;
	hash = w->hash;
	pc = w->pc;
	bp = w->bp;
	last = w->last;
	nr = w->nr;
	base = s->base;
	room = s->copied - 16;
	sp -= 16;
	frame = (uint64_t *)&s->frame[nr & (RT_STACK_MAX - 1)];
	while (nr < frames) {
		off = bp - base;
		if (off > room || bp < last)
			break;
		at = (uint64_t *)(s->copy + (off & (RT_COPY_MAX - 1)));
		cfa = bp - sp;
		frame[0] = pc;
		frame[1] = cfa; /* and no flags */
		hash = mix(hash, pc, cfa);
		frame += 2;
		nr++;
		last = bp + 16;
		bp = at[0];
		pc = at[1];
		if (not_code(pc) | (bp & 7))
			break;
	}
	w->hash = hash;
	w->pc = pc;
	w->bp = bp;
	w->last = last;
	w->nr = nr;
	return 0;
}

/* Puts right return addresses that the kernel has replaced by its return trampoline. */
__noinline int repair(struct scratch *s, struct walk *w, uint64_t sp, uint64_t pid_tgid)
{
	struct rt_pending_key key = { pid_tgid, 0, 0 };
	struct rt_wire_frame *f;
	struct rt_pending *p;
	uint32_t i, below = 0;
	uint64_t hash;

	if (!s || !w)
		return 0;
	hash = w->salt;

	for (i = 0; i < RT_STACK_MAX; i++) {
		if (i >= w->nr)
			break;
		f = &s->frame[i & (RT_STACK_MAX - 1)];
		key.slot = sp + below - 8;
		below = f->cfa;
		/* The trampoline starts a page; hardly any real return address does. */
		if (!(f->pc & (PAGE - 1)) && !f->flags) {
			p = bpf_map_lookup_elem(&pendings, &key);
			if (p) {
				f->pc = p->ra;
				f->flags = RT_FRAME_TRAMP;
			}
		}
		hash = mix(hash, f->pc, f->cfa);
	}
	w->hash = hash;
	return 0;
}

/* Behind a call the program counter is that call's return address: it is named as one. */
static __always_inline uint32_t frame_flags(const struct rt_probe *p, const struct walk *w)
{
	return p->flags & RT_EV_AT_RETURN ? 0 : w->flags;
}

/*
 * Frames from w->pc on; fills in s->nr and s->end and returns the hash. How much was copied at first must not show in
 * the result: the rest of a first copy of full size is read where it is needed, and only then refills begin.
 */
static __always_inline uint64_t walk(struct hit *h, struct scratch *s, struct walk *w)
{
	uint32_t round, refills = 0, want, end = RT_STACK_DEPTH, first = w->nr & 1;
	uint64_t start = s->base;
	bool closed = false;

	for (round = 0; round <= REFILLS + 1; round++) {
		walk_copy(s, w, h->sp);
		closed = not_code(w->pc);
		if (closed || w->nr >= rt_frames)
			break;
		end = w->bp ? RT_STACK_NO_FP : RT_STACK_ROOT;
		if (w->bp < w->last || w->bp - w->last > SPAN || w->bp & 7)
			break;
		want = rt_stack_bytes;
		if (!round && w->bp + 16 - start <= want && s->copied < want)
			want -= w->bp - start;
		else
			refills++;
		end = RT_STACK_COPY;
		if (refills > REFILLS)
			break;
		end = RT_STACK_FAULT;
		if (!copy_stack(s, w->bp, want, h->pid_tgid, h->cpu_id) || s->copied < 16) {
			h->cpu->tops[(uint32_t)h->pid_tgid % TOPS] = 0;
			break;
		}
		end = RT_STACK_DEPTH;
	}
	if (closed) {
		end = w->bp ? RT_STACK_NO_FP : RT_STACK_ROOT;
	} else if (w->nr < rt_frames) {
		/* the last one: its own frame is not known */
		s->frame[w->nr & (RT_STACK_MAX - 1)] = (struct rt_wire_frame){ w->pc, 0, 0 };
		w->hash = mix(w->hash, w->pc, 0);
		w->nr++;
	}
	s->frame[first].flags = frame_flags(h->probe, w);
	if (rt_returns)
		repair(s, w, h->sp, h->pid_tgid);
	s->nr = w->nr;
	s->end = end;
	return spread(w->hash, w->nr);
}

#include "rows.h"

/* Sends the stack in s if it is new; its id in h->stack. false: the ring is full. */
static __always_inline bool send_stack(struct hit *h, struct scratch *s, uint64_t hash)
{
	struct recent *recent = &s->recent[hash & (RECENT - 1)];
	uint32_t *known, id, size;

	if (recent->hash == hash && recent->id) {
		h->stack = recent->id;
		return true;
	}
	recent->hash = hash;
	recent->id = 0;
	known = bpf_map_lookup_elem(&stacks, &hash);
	if (known) {
		h->stack = recent->id = *known;
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
	if (bpf_ringbuf_output(&stack_ring, &s->head, size, BPF_RB_NO_WAKEUP))
		return false;
	/* Only now may others name it: their events come behind it in the ring. */
	if (bpf_map_update_elem(&stacks, &hash, &id, BPF_ANY))
		add(h->count->resent, 1);
	h->stack = recent->id = id;
	return true;
}

/* Where the walk begins. false: nothing is known but that something was hit. */
static __always_inline bool walk_init(struct hit *h, struct pt_regs *ctx, struct scratch *s, struct walk *w)
{
	const struct rt_probe *p = h->probe;
	uint64_t sp = ctx->sp, cfa = sp + p->cfa_delta;
	bool fine;

	w->bp = ctx->bp;
	fine = copy_stack(s, sp, guess_span(h), h->pid_tgid, h->cpu_id) && s->copied >= 16;
	if (p->kind & RT_PROBE_SITE) {
		h->sp = sp;
		w->pc = ctx->ip;
		w->flags = RT_FRAME_SITE;
	} else {
		h->sp = cfa;
		fine = fine && copied(s, cfa - 8, &w->pc);
	}
	w->last = h->sp;
	/* The probed function has set up its own frame already: go on with its caller's. */
	if (!w->flags && fine && w->bp + 16 == cfa)
		copied(s, w->bp, &w->bp);
	return fine;
}

/*
 * An instance inlined into a function whose CFA is known: its frame is written
 * here, because the frame pointer may belong to the caller.
 */
static __always_inline void walk_site(struct hit *h, struct scratch *s, struct walk *w)
{
	const struct rt_probe *p = h->probe;
	uint64_t cfa = h->sp + p->cfa_delta, pc;

	if (!w->flags || p->cfa_delta <= 0 || !copied(s, cfa - 8, &pc))
		return;
	s->frame[0] = (struct rt_wire_frame){ w->pc, p->cfa_delta, frame_flags(p, w) };
	w->hash = mix(w->hash, w->pc, p->cfa_delta);
	w->nr = 1;
	w->flags = 0;
	w->pc = pc;
	if (w->bp + 16 == cfa)
		copied(s, w->bp, &w->bp);
}

/* Stack of a hit at ctx; sets h->sp and h->stack. false: the event cannot be sent, h->drop says why. */
static __always_inline bool capture(struct hit *h, struct pt_regs *ctx)
{
	struct scratch *s = scratch_take(h->cpu_id);
	uint64_t hash = (uint64_t)h->wire_pid << 32 | h->salt;
	struct walk w = { .salt = hash, .hash = hash };
	bool fine;

	if (!s) {
		h->drop = DROP_BUSY;
		return false;
	}
	fine = walk_init(h, ctx, s, &w);
	w.code = *(volatile const uint64_t *)&h->process->code;
	if (rt_by_rows && fine && w.code) {
		if (recall(h, ctx, s, &w)) {
			scratch_put(s);
			return true;
		}
		if (walk_by_rows(h, ctx, s, &w)) {
			hash = spread(w.hash, w.nr);
			learn_span(h, w.last - ctx->sp);
			fine = send_stack(h, s, hash);
			if (fine)
				remember(h, ctx, s, &w);
			goto sent;
		}
		w = (struct walk){ .salt = hash, .hash = hash };
		fine = walk_init(h, ctx, s, &w);
	}
	if (fine)
		walk_site(h, s, &w);
	if (fine || w.flags) {
		hash = walk(h, s, &w);
		learn_span(h, w.last - ctx->sp);
	} else {
		s->nr = 0;
		s->end = RT_STACK_FAULT;
	}
	fine = send_stack(h, s, hash);
sent:
	scratch_put(s);
	if (!fine)
		h->drop = DROP_RING;
	return fine;
}
