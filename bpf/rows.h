/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call stack of a hit by unwind rows (wire/unwind.h), which user space has
 * compiled from the program's own .eh_frame: exact without frame pointers. The
 * rules of places seen before are in the scratch buffer, so that most walks look
 * nothing up. A walk ends at the outermost frame, or where it cannot be followed
 * any more, with the reason; it never guesses.
 *
 * Included by stack.h. Part by part: walk_known() is the frequent case without a
 * call in it, step_odd() one frame of any kind, find_rule() the search; walk_by_rows()
 * goes from one to the other. Each of the three is verified once, by itself.
 *
 * Most walks are the same as one before: what that one has read is compared, place by place, which does not wait for
 * one load to know the place of the next (recall()).
 */
#pragma once

#define ROW_REFILLS 15                                               /* further copies of a stack */
#define STRIDE 4                                                     /* frames */
#define MOVES (2 * rt_frames + rt_frames / STRIDE + ROW_REFILLS + 5) /* from one part to another in a walk */
#define NO_MEMO (1u << 30)
#define LOST_BP 1 /* no CFA comes of it: not a multiple of eight */

/* Why a part of the walk has stopped. */
enum { WALK_FULL, WALK_UNKNOWN, WALK_ODD, WALK_MEMORY, WALK_END };

/*
 * Of entries [lo, lo + left) of a table, by address, the last one that begins at or before `at`, or lo. Each begins
 * with its address: eight bytes (wide) or four.
 */
static __always_inline uint32_t last_before(void *table, bool wide, uint32_t bits, uint32_t lo, uint32_t left,
					    uint64_t at)
{
	uint32_t i, half, middle;
	void *entry;

	for (i = 0; i < bits; i++) {
		if (left <= 1)
			break;
		half = left / 2;
		middle = lo + half;
		entry = bpf_map_lookup_elem(table, &middle);
		if (!entry)
			break;
		if ((wide ? *(uint64_t *)entry : *(uint32_t *)entry) <= at)
			lo = middle;
		left -= half;
	}
	return lo;
}

/* The rule for the instruction at pc. */
__noinline uint32_t find_rule(uint64_t code, uint64_t pc)
{
	struct rt_probe_code *c;
	struct rt_unwind_row *r;
	uint32_t at;

	if (!rt_by_rows)
		return RT_UNWIND_NONE;
	at = last_before(&mappings, true, RT_CODE_COUNT_BITS, RT_CODE_FIRST(code), RT_CODE_COUNT(code), pc);
	c = bpf_map_lookup_elem(&mappings, &at);
	if (!c || pc < c->start || pc >= c->end || !c->row_nr || pc < c->base || pc - c->base > 0xffffffff)
		return RT_UNWIND_NONE;
	/* the first row may lie behind the place */
	pc -= c->base;
	at = last_before(&rows, false, RT_ROW_BITS, c->row, c->row_nr, pc);
	r = bpf_map_lookup_elem(&rows, &at);
	return r && r->pc <= pc ? r->rule : RT_UNWIND_NONE;
}

_Static_assert(!__builtin_offsetof(struct rt_probe_code, start) && !__builtin_offsetof(struct rt_unwind_row, pc),
	       "last_before()");

static __always_inline struct known_rule *known_rule(struct scratch *s, uint64_t at)
{
	return &s->rule[(at ^ at >> 12) & (RULES - 1)];
}

/* What a step of the walk has read: a return address at a place, by an rbp if it hangs on that. */
static __always_inline void note_step(struct scratch *s, struct walk *w, uint32_t rule, uint64_t ra, uint32_t at,
				      uint32_t bp)
{
	struct memo_step *step = &s->memo[w->memo & (MEMOS - 1)].step[w->steps++ & (MEMO_STEPS - 1)];

	step->ra = ra;
	step->at = at;
	step->bp_at = rt_unwind_kind(rule) == RT_UNWIND_BP ? w->bp_at : MEMO_NONE;
	step->bp = bp;
}

/* CFA by a rule of the frequent kinds; false: it is of another. */
static __always_inline bool frequent_cfa(uint32_t rule, uint64_t sp, uint64_t bp, uint64_t *ret)
{
	if (rt_unwind_kind(rule) == RT_UNWIND_SP)
		*ret = sp + ((uint64_t)rt_unwind_sp_offset(rule) << 3);
	else if (rt_unwind_kind(rule) == RT_UNWIND_BP)
		*ret = bp + (int64_t)rt_unwind_bp_offset(rule) * 8;
	else
		return false;
	return true;
}

/*
 * On through frames whose rules are known and of the frequent kinds. The frame that it stops at is w->pc, w->last (its
 * sp) and w->bp; w->why says what that one needs.
 */
__noinline int walk_known(struct scratch *s, struct walk *w, uint64_t sp0)
{
	uint64_t hash, pc, bp, sp, base, room, cfa, off, ra, at, need = 0, *frame;
	uint32_t n, nr, frames = rt_frames, skip, rule = 0, kind, why = WALK_FULL, generation;
	struct known_rule *k;

	if (!rt_by_rows || !s || !w)
		return 0;
	hash = w->hash;
	pc = w->pc;
	bp = w->bp;
	sp = w->last;
	nr = w->nr;
	skip = w->skip;
	generation = RT_CODE_GENERATION(w->code);
	base = s->base;
	room = (uint64_t)s->copied - 8;
	/* a few at a time: the verifier of Linux 6.1 keeps each way through them in mind */
	for (n = 0; n < STRIDE && nr < frames; n++) {
		at = pc - w->back;
		k = known_rule(s, at);
		rule = k->rule;
		why = WALK_UNKNOWN;
		if (k->pc != at || k->generation != generation)
			break;
		why = WALK_ODD;
		if (!frequent_cfa(rule, sp, bp, &cfa) || cfa - sp - 8 > SPAN || cfa & 7 || (skip && cfa != sp0))
			break;
		why = WALK_MEMORY;
		need = cfa - 8;
		off = need - base;
		if (off > room)
			break;
		ra = *(uint64_t *)(s->copy + (off & (RT_COPY_MAX - 1)));
		kind = rt_unwind_bp(rule);
		if (kind == RT_UNWIND_BP_SAVED) {
			need = cfa - ((uint64_t)rt_unwind_slot(rule) << 3);
			off = need - base;
			if (off > room)
				break;
			off = *(uint64_t *)(s->copy + (off & (RT_COPY_MAX - 1)));
		} else {
			why = WALK_ODD;
			if (kind != RT_UNWIND_BP_SAME)
				break;
			off = bp;
		}
		why = WALK_ODD;
		/* a return trampoline starts a page; hardly any real return address does */
		if (not_code(ra) || !(ra & (PAGE - 1)))
			break;
		note_step(s, w, rule, ra, cfa - 8 - base, bp - base);
		if (kind == RT_UNWIND_BP_SAVED)
			w->bp_at = need - base;
		if (!skip) {
			frame = (uint64_t *)&s->frame[nr & (RT_STACK_MAX - 1)];
			frame[0] = pc;
			frame[1] = (cfa - sp0) | (uint64_t)w->frame_flags << 32;
			hash = mix(hash, pc, cfa - sp0);
			nr++;
			w->frame_flags = 0;
		}
		skip = 0;
		w->back = 1;
		pc = ra;
		sp = cfa;
		bp = off;
		why = WALK_FULL;
	}
	w->hash = hash;
	w->pc = pc;
	w->bp = bp;
	w->last = sp;
	w->nr = nr;
	w->skip = skip;
	w->rule = rule;
	w->need = need;
	w->why = why;
	return 0;
}

static __always_inline void tell(struct scratch *s, struct walk *w, uint64_t pc, uint32_t cfa)
{
	struct rt_wire_frame *f = &s->frame[w->nr & (RT_STACK_MAX - 1)];

	f->pc = pc;
	f->cfa = cfa;
	f->flags = w->frame_flags;
	w->frame_flags = 0;
	w->hash = mix(w->hash, pc, cfa);
	w->nr++;
}

/* The frame of w->pc is the last one; cfa 0: not to be told. */
static __always_inline int walk_end(struct scratch *s, struct walk *w, uint32_t end, uint32_t cfa)
{
	w->why = WALK_END;
	w->end = end;
	if (!w->skip)
		tell(s, w, w->pc, cfa);
	return 0;
}

/* Loads 8 bytes; false: they are not in the copy, and w->why says so. */
static __always_inline bool load(struct scratch *s, struct walk *w, uint64_t at, uint64_t *ret)
{
	w->why = WALK_MEMORY;
	w->need = at;
	return copied(s, at, ret);
}

/* CFA of the frame of w->pc by w->rule. false: not in the copy, or *ret_end says why there is none. */
static __always_inline bool find_cfa(struct scratch *s, struct walk *w, uint64_t *ret, uint32_t *ret_end)
{
	uint32_t rule = w->rule;

	*ret_end = RT_STACK_NO_RULE;
	if (frequent_cfa(rule, w->last, w->bp, ret))
		return true;
	switch (rt_unwind_kind(rule)) {
	case RT_UNWIND_PLT:
		*ret = w->last + 8 + (((w->pc - w->back) & 15) >= rt_unwind_sp_offset(rule) ? 8 : 0);
		return true;
	case RT_UNWIND_BP_LOAD:
		*ret_end = 0;
		return load(s, w, w->bp + (int64_t)rt_unwind_bp_offset(rule) * 8, ret);
	case RT_UNWIND_SIGNAL:
		*ret_end = 0;
		return load(s, w, w->last + RT_UNWIND_UC_SP, ret);
	case RT_UNWIND_NONE:
		*ret_end = RT_STACK_NO_ROW;
		return false;
	}
	return false;
}

/* rbp and return address of the caller. false: not in the copy. */
static __always_inline bool find_caller(struct scratch *s, struct walk *w, uint64_t cfa, uint64_t *ret_bp,
					uint64_t *ret_ra)
{
	bool signal = rt_unwind_kind(w->rule) == RT_UNWIND_SIGNAL;
	uint64_t at;

	*ret_bp = w->bp;
	if (signal)
		at = w->last + RT_UNWIND_UC_BP;
	else if (rt_unwind_bp(w->rule) == RT_UNWIND_BP_SAVED)
		at = cfa - ((uint64_t)rt_unwind_slot(w->rule) << 3);
	else
		at = w->bp;
	if (!signal && rt_unwind_bp(w->rule) == RT_UNWIND_BP_LOST)
		*ret_bp = LOST_BP;
	else if ((signal || rt_unwind_bp(w->rule) != RT_UNWIND_BP_SAME) && !load(s, w, at, ret_bp))
		return false;
	return load(s, w, signal ? w->last + RT_UNWIND_UC_IP : cfa - 8, ret_ra);
}

/*
 * One frame of any kind. w->why: WALK_MEMORY, WALK_END with the reason in w->end, or WALK_FULL: go on. What interrupted
 * code and trampolines are called by lies one byte further on: readers look for the call before an address.
 */
__noinline int step_odd(struct scratch *s, struct walk *w, uint64_t sp0, uint64_t pid_tgid)
{
	struct rt_pending_key key = { pid_tgid, 0, 0 };
	uint64_t cfa, bp, ra, pc;
	struct rt_pending *p;
	uint32_t end, flags = 0;
	bool signal;

	if (!rt_by_rows || !s || !w)
		return 0;
	signal = rt_unwind_kind(w->rule) == RT_UNWIND_SIGNAL;
	if (rt_unwind_kind(w->rule) == RT_UNWIND_ROOT)
		return walk_end(s, w, RT_STACK_ROOT,
				w->last + 8 - sp0); /* as every CIE begins: the analysis knows it by that */
	if (!find_cfa(s, w, &cfa, &end)) {
		if (end)
			walk_end(s, w, end, 0);
		return 0;
	}
	w->steps = NO_MEMO; /* what it reads is not written down */
	if (cfa - w->last - 8 > SPAN || (cfa & 7 && !signal) || (w->skip && cfa != sp0)) {
		w->pc += signal && w->back;
		return walk_end(s, w, signal ? RT_STACK_OTHER : RT_STACK_UNCHECKED, 0);
	}
	if (!find_caller(s, w, cfa, &bp, &ra))
		return 0;
	if (rt_returns && !signal && !(ra & (PAGE - 1))) {
		key.slot = cfa - 8;
		p = bpf_map_lookup_elem(&pendings, &key);
		if (p) {
			ra = p->ra;
			flags = RT_FRAME_TRAMP;
		}
	}
	pc = w->pc + (signal && w->back);
	if (w->skip)
		w->skip = 0;
	else
		tell(s, w, pc, cfa - sp0);
	w->last = cfa;
	w->bp = bp;
	w->pc = ra + signal;
	w->back = 1;
	w->frame_flags |= flags;
	w->why = WALK_FULL;
	if (not_code(ra)) {
		w->why = WALK_END;
		w->end = ra ? RT_STACK_UNCHECKED : RT_STACK_ROOT;
	}
	return 0;
}

/*
 * The rest of the first copy where it is needed, then further ones: what is found must not depend on how much was
 * copied at first. false: w->end says why there is no more.
 */
static __always_inline bool copy_more(struct scratch *s, struct walk *w, uint32_t tid, uint32_t cpu_id)
{
	uint32_t want = rt_stack_bytes;
	struct cpu *cpu;

	w->steps = NO_MEMO; /* more than one copy */
	if (!w->refills && w->need + 16 - w->start <= want && s->base == w->start && s->copied < want) {
		want -= w->need - w->start;
	} else if (++w->refills > ROW_REFILLS) {
		w->end = RT_STACK_COPY;
		return false;
	}
	if (copy_stack(s, w->need, want, tid, cpu_id) && s->copied >= 8)
		return true;
	cpu = bpf_map_lookup_elem(&cpus, &cpu_id);
	if (cpu)
		cpu->tops[tid % TOPS] = 0;
	w->end = RT_STACK_FAULT;
	return false;
}

/* From one part of the walk to the other, up to its end. */
__noinline int walk_rows(struct scratch *s, struct walk *w, uint64_t sp0, uint64_t pid_tgid, uint32_t cpu_id)
{
	struct known_rule *k;
	uint64_t at;
	uint32_t i;

	if (!rt_by_rows || !s || !w)
		return 0;
	for (i = 0; i < MOVES; i++) {
		walk_known(s, w, sp0);
		if (w->why == WALK_ODD)
			step_odd(s, w, sp0, pid_tgid);
		if (w->why == WALK_UNKNOWN) {
			at = w->pc - w->back;
			k = known_rule(s, at);
			k->rule = find_rule(w->code, at);
			k->pc = at;
			k->generation = RT_CODE_GENERATION(w->code);
		} else if (w->why == WALK_MEMORY) {
			if (!copy_more(s, w, pid_tgid, cpu_id))
				return walk_end(s, w, w->end, 0);
		} else if (w->why == WALK_END) {
			return 0;
		} else if (w->nr >= rt_frames) {
			break;
		}
	}
	w->end = RT_STACK_DEPTH;
	return 0;
}

/* The walk of a memo, if all that it has read is the same now. */
__noinline int same_walk(struct scratch *s, uint32_t number, uint64_t sp, uint64_t bp)
{
	uint32_t i, nr, at, room;
	struct memo_step *step;
	struct memo *m;

	if (!rt_by_rows || !s)
		return 0;
	m = &s->memo[number & (MEMOS - 1)];
	nr = m->nr;
	room = s->copied - 8;
	for (i = 0; i < MEMO_STEPS; i++) {
		if (i >= nr)
			break;
		step = &m->step[i];
		at = step->at;
		if (at > room || *(uint64_t *)(s->copy + (at & (RT_COPY_MAX - 1))) != step->ra)
			return 0;
		at = step->bp_at;
		if (at == MEMO_NONE)
			continue;
		if (at == MEMO_REGISTER) {
			if (bp - sp != step->bp)
				return 0;
		} else if (at > room || *(uint64_t *)(s->copy + (at & (RT_COPY_MAX - 1))) - sp != step->bp) {
			return 0;
		}
	}
	return 1;
}

static __always_inline uint64_t memo_who(const struct hit *h)
{
	return (uint64_t)h->wire_pid << 32 | h->salt;
}

/* What else decides how a walk begins and is told. */
static __always_inline uint64_t memo_how(const struct hit *h, const struct walk *w)
{
	return (uint64_t)h->probe->cfa_delta << 32 | frame_flags(h->probe, w) << 1 | !w->flags;
}

/* Whether the walk would be one before; then h->stack is its stack. Chooses the memo to be written where not. */
static __always_inline bool recall(struct hit *h, struct pt_regs *ctx, struct scratch *s, struct walk *w)
{
	uint64_t key = (ctx->ip ^ ctx->sp << 20 ^ *(uint64_t *)s->copy) * MIX;
	struct memo *m;

	w->memo = key >> 58;
	m = &s->memo[w->memo & (MEMOS - 1)];
	if (!m->id || m->ip != ctx->ip || m->who != memo_who(h) || m->how != memo_how(h, w) ||
	    m->generation != RT_CODE_GENERATION(w->code) || !same_walk(s, w->memo, ctx->sp, ctx->bp))
		return false;
	h->stack = m->id;
	learn_span(h, m->used);
	return true;
}

static __always_inline void remember(struct hit *h, struct pt_regs *ctx, struct scratch *s, const struct walk *w)
{
	struct memo *m = &s->memo[w->memo & (MEMOS - 1)];

	if (w->steps > MEMO_STEPS)
		return;
	m->ip = ctx->ip;
	m->who = memo_who(h);
	m->how = memo_how(h, w);
	m->generation = RT_CODE_GENERATION(w->code);
	m->nr = w->steps;
	m->used = w->last - ctx->sp;
	m->id = h->stack;
}

/*
 * The whole walk from the registers of the hit on. false: nothing came of it; frame pointers have to do. true: s->nr
 * and s->end are filled in, and w->hash and w->nr.
 */
static __always_inline bool walk_by_rows(struct hit *h, struct pt_regs *ctx, struct scratch *s, struct walk *w)
{
	s->memo[w->memo & (MEMOS - 1)].id = 0;
	w->frame_flags = RT_FRAME_ROWS | frame_flags(h->probe, w);
	w->skip = !w->flags;
	w->hash = ~w->hash; /* never the same as a walk by frame pointers */
	w->pc = ctx->ip;
	w->bp = ctx->bp;
	w->last = w->start = ctx->sp;
	w->bp_at = MEMO_REGISTER;
	walk_rows(s, w, h->sp, h->pid_tgid, h->cpu_id);
	s->nr = w->nr;
	s->end = w->end;
	/* the process's code may have changed meanwhile */
	return w->nr && !w->skip && *(volatile const uint64_t *)&h->process->code == w->code;
}
