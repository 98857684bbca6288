/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The call stack of a hit by unwind rows (wire/unwind.h): the rules of bpf/rows.h, with plain loads. What it reads is
 * written down for memo.h. A walk ends at the outermost frame, or where it cannot be followed any more, with the
 * reason; it never guesses.
 */
#pragma once

#include "hit.h"

#define SPAN (1u << 20) /* a CFA farther away than this is on another stack */
#define USER_BITS 47    /* of an address in user space */
#define IN_REGISTER 0
#define LOST_BP 1 /* no CFA comes of it: not a multiple of eight */

struct walk {
	uint64_t hash, pc, bp, sp, sp0, code;
	uint64_t bp_at; /* where bp was saved; IN_REGISTER */
	uint32_t nr, end, frame_flags, back, rule;
	uint32_t read;             /* words that are written down in the memo */
	uint32_t chain, chain_end; /* of these, as in the memo */
	bool hangs;                /* a frame hung on the rbp of the hit */
	bool skip;                 /* the frame of pc is that of the probed function: not told */
	bool plain;                /* all that was read is written down in the memo */
	struct rt_agent_memo *memo;
	uint32_t limit; /* of nr */
	struct rt_wire_frame *frame;
};

static inline uint64_t mix(uint64_t hash, uint64_t pc, uint32_t cfa)
{
	return hash * MIX + (pc ^ (uint64_t)cfa << 32);
}

static inline uint64_t spread(uint64_t hash, uint32_t nr)
{
	hash = (hash ^ hash >> 32) * MIX + nr;
	return hash ^ hash >> 29;
}

/* Not 0: no address of user code. */
static inline uint64_t not_code(uint64_t pc)
{
	return (pc - PAGE) >> USER_BITS;
}

static inline bool is_thunk(uint64_t pc, uint32_t *ret)
{
	uint64_t offset = pc - (uint64_t)(uintptr_t)rt_agent_thunks;

	*ret = (uint32_t)offset / THUNK_BYTES;
	return offset < RT_AGENT_RETURNS * THUNK_BYTES;
}

static uint32_t find_rule(const struct rt_agent_shared *pool, uint64_t code, uint64_t pc)
{
	const struct rt_probe_code *c = &pool->mapping[RT_CODE_FIRST(code)];
	uint32_t left = RT_CODE_COUNT(code);
	const struct rt_unwind_row *r;

	/* the last mapping that starts at or before pc */
	for (; left > 1;) {
		uint32_t half = left / 2;

		if (c[half].start <= pc)
			c += half;
		left -= half;
	}
	if (!RT_CODE_COUNT(code) || pc < c->start || pc >= c->end || !c->row_nr || pc < c->base ||
	    pc - c->base > 0xffffffff)
		return RT_UNWIND_NONE;
	/* and its last row; the first may lie behind the place */
	pc -= c->base;
	r = &pool->row[c->row];
	for (left = c->row_nr; left > 1;) {
		uint32_t half = left / 2;

		if (r[half].pc <= pc)
			r += half;
		left -= half;
	}
	return r->pc <= pc ? r->rule : RT_UNWIND_NONE;
}

static uint32_t rule_at(struct hit *h, const struct walk *w, uint64_t at)
{
	struct rt_agent_rule *known = &h->thread->rule[(at ^ at >> 12) & (RT_AGENT_RULES - 1)];
	uint32_t rule;

	if (known->pc == at && known->generation == RT_CODE_GENERATION(w->code))
		return known->rule;
	rule = find_rule(h->pool, w->code, at);
	if (h->nested)
		return rule; /* the hook below may be reading what would be changed */
	/* a signal's handler may come between: what it reads then is no rule of any generation */
	known->generation = 0;
	asm volatile("" : : : "memory");
	known->pc = at;
	known->rule = rule;
	asm volatile("" : : : "memory");
	known->generation = RT_CODE_GENERATION(w->code);
	return rule;
}

static void tell(struct walk *w, uint64_t pc, uint32_t cfa)
{
	w->frame[w->nr++] = (struct rt_wire_frame){ pc, cfa, w->frame_flags };
	w->hash = mix(w->hash, pc, cfa);
	w->frame_flags = 0;
}

/*
 * The frame of w->pc is the last one; cfa 0: not to be told. Only two ends are the same wherever the same return
 * addresses are: all others come of something else that was read, and is not written down.
 */
static bool walk_end(struct walk *w, uint32_t end, uint32_t cfa)
{
	w->end = end;
	w->plain &= end == RT_STACK_ROOT || end == RT_STACK_NO_ROW;
	if (!w->skip)
		tell(w, w->pc, cfa);
	return false;
}

/* CFA of the frame that w->pc lies in. false: *ret_end says why there is none. */
static bool find_cfa(const struct walk *w, uint64_t *ret, uint32_t *ret_end)
{
	uint32_t rule = w->rule;

	*ret_end = RT_STACK_NO_RULE;
	switch (rt_unwind_kind(rule)) {
	case RT_UNWIND_SP:
		*ret = w->sp + ((uint64_t)rt_unwind_sp_offset(rule) << 3);
		return true;
	case RT_UNWIND_BP:
		*ret = w->bp + (uint64_t)((int64_t)rt_unwind_bp_offset(rule) * 8);
		return true;
	case RT_UNWIND_PLT:
		*ret = w->sp + 8 + (((w->pc - w->back) & 15) >= rt_unwind_sp_offset(rule) ? 8 : 0);
		return true;
	case RT_UNWIND_BP_LOAD:
		*ret_end = RT_STACK_FAULT;
		return load_u64(w->bp + (uint64_t)((int64_t)rt_unwind_bp_offset(rule) * 8), ret);
	case RT_UNWIND_SIGNAL:
		*ret_end = RT_STACK_FAULT;
		return load_u64(w->sp + RT_UNWIND_UC_SP, ret);
	case RT_UNWIND_NONE:
		*ret_end = RT_STACK_NO_ROW;
	}
	return false;
}

/* Writes down a word that was read. What is too far away from `start`, or no address, does not fit. */
static inline void note(struct walk *w, uint64_t start, uint64_t at, uint64_t value)
{
	uint64_t place = (at - start) >> 3 | (at - start) << 61;

	w->plain = w->plain && w->read <= RT_AGENT_MEMO_READ - RT_AGENT_MEMO_STRIDE && place <= UINT16_MAX &&
		   !(value >> 48);
	if (!w->plain)
		return;
	w->memo->at[w->read] = (uint16_t)place;
	w->memo->value[w->read++] = value;
}

/*
 * The frame, whose return address was written down last, hangs on an rbp that was saved. By the usual prologue the two
 * lie beside the return addresses of this frame and of the one that saved it.
 */
static void note_hung(struct walk *w, uint64_t start, uint64_t cfa)
{
	uint32_t last = w->read - 1;

	if (last && w->bp_at == start + w->memo->at[last - 1] * 8 - 8 && w->bp == cfa - 16 &&
	    (w->chain == w->chain_end || w->chain_end == last - 1)) {
		if (w->chain == w->chain_end)
			w->chain = last - 1;
		w->chain_end = last;
		return;
	}
	note(w, start, w->bp_at, w->bp);
}

/* What a step has read: a return address at a place, by an rbp if it hangs on that. */
static void note_step(struct walk *w, uint64_t start, uint64_t ra, uint64_t cfa, bool frequent)
{
	bool hangs = rt_unwind_kind(w->rule) == RT_UNWIND_BP;

	w->plain = w->plain && frequent;
	note(w, start, cfa - 8, ra);
	if (hangs && w->bp_at == IN_REGISTER)
		w->hangs = true;
	else if (hangs && w->plain)
		note_hung(w, start, cfa);
}

/* One frame on. false: the walk has ended. */
static bool step(struct hit *h, struct walk *w, uint64_t start)
{
	uint32_t kind, bp_kind, end, flags = 0, thunk;
	uint64_t cfa, bp = w->bp, bp_from = 0, ra, pc;
	bool signal, frequent;

	w->rule = rule_at(h, w, w->pc - w->back);
	kind = rt_unwind_kind(w->rule);
	bp_kind = rt_unwind_bp(w->rule);
	signal = kind == RT_UNWIND_SIGNAL;
	if (kind == RT_UNWIND_ROOT)
		return walk_end(w, RT_STACK_ROOT, (uint32_t)(w->sp + 8 - w->sp0)); /* as every CIE begins */
	if (!find_cfa(w, &cfa, &end))
		return walk_end(w, end, 0);
	if (cfa - w->sp - 8 > SPAN || (cfa & 7 && !signal) || (w->skip && cfa != w->sp0)) {
		w->pc += signal && w->back;
		return walk_end(w, signal ? RT_STACK_OTHER : RT_STACK_UNCHECKED, 0);
	}
	frequent = (kind == RT_UNWIND_SP || kind == RT_UNWIND_BP) &&
		   (bp_kind == RT_UNWIND_BP_SAVED || bp_kind == RT_UNWIND_BP_SAME);
	if (signal)
		bp_from = w->sp + RT_UNWIND_UC_BP;
	else if (bp_kind == RT_UNWIND_BP_SAVED)
		bp_from = cfa - ((uint64_t)rt_unwind_slot(w->rule) << 3);
	else if (bp_kind == RT_UNWIND_BP_AT_BP)
		bp_from = w->bp;
	else if (bp_kind == RT_UNWIND_BP_LOST)
		bp = LOST_BP;
	if ((bp_from && !load_u64(bp_from, &bp)) || !load_u64(signal ? w->sp + RT_UNWIND_UC_IP : cfa - 8, &ra))
		return walk_end(w, RT_STACK_FAULT, 0);
	note_step(w, start, ra, cfa, frequent);
	if (frequent && bp_kind == RT_UNWIND_BP_SAVED)
		w->bp_at = bp_from;
	if (is_thunk(ra, &thunk)) {
		ra = h->pool->return_address[thunk];
		flags = RT_FRAME_TRAMP;
	}
	pc = w->pc + (signal && w->back);
	if (w->skip)
		w->skip = false;
	else
		tell(w, pc, (uint32_t)(cfa - w->sp0));
	w->sp = cfa;
	w->bp = bp;
	w->pc = ra + signal; /* readers look for the call before an address */
	w->back = 1;
	w->frame_flags |= flags;
	if (not_code(ra)) {
		w->end = ra ? RT_STACK_UNCHECKED : RT_STACK_ROOT;
		return false;
	}
	w->end = RT_STACK_DEPTH;
	return w->nr < w->limit;
}

static inline uint32_t site_flags(const struct rt_probe *p)
{
	return (p->kind & RT_PROBE_SITE) && !(p->flags & RT_EV_AT_RETURN) ? RT_FRAME_SITE : 0;
}

/* few: room for RT_AGENT_FRAMES; a signal's handler that came into another hook has no other. */
static void walk_init(struct hit *h, struct walk *w, struct rt_wire_frame *few)
{
	uint64_t sp = h->regs->reg[RSP];

	w->hash = ~(uint64_t)h->process->wire_pid;
	w->pc = h->ip;
	w->bp = h->regs->reg[RBP];
	w->sp = sp;
	w->sp0 = h->sp;
	w->frame = few;
	w->limit = h->pool->frames;
	if (__builtin_expect(w->limit > RT_AGENT_FRAMES, 0)) {
		w->frame = h->nested ? few : h->thread->frame;
		w->limit = h->nested ? RT_AGENT_FRAMES : w->limit;
	}
	w->nr = w->read = w->chain = w->chain_end = 0;
	w->hangs = false;
	w->end = RT_STACK_DEPTH;
	w->back = 0;
	w->bp_at = IN_REGISTER;
	w->skip = !(h->probe->kind & RT_PROBE_SITE);
	w->frame_flags = RT_FRAME_ROWS | site_flags(h->probe);
	w->plain = w->memo; /* none: nothing can be remembered */
}

/* Without rows: who has called, which the entry of a function shows, or the place itself. */
static void walk_first(struct hit *h, struct walk *w)
{
	if (w->skip && !load_u64(h->sp - 8, &w->pc)) {
		w->end = RT_STACK_FAULT;
		return;
	}
	w->skip = false;
	walk_end(w, RT_STACK_NO_ROW, 0);
}
