/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Proves the stacks that the engine walked by frame pointers, where it could not walk by unwind rows. Code without
 * frame pointers makes such a walk skip callers, which would name the wrong
 * function; so each frame's unwind row must say that its caller was found the
 * way the engine found it. Behind the last proven frame the stack is cut: a
 * short stack is honest, a wrong frame is not.
 *
 * Per frame three things are carried along: pc (exact), sp in that frame right
 * after its callee returned (= the callee's CFA, relative to the event's sp),
 * and whether rbp is known to be what it was in that frame.
 */
#include "session/internal.h"

#define CALL_BYTES 8 /* how far before a return address rt_call_before() looks */

/* What is known about code at a return address; packed into the value of the table. */
enum row_kind {
	ROW_NONE = 1, /* no row, or one that cannot be followed */
	ROW_RBP = 2,  /* CFA = rbp + 16 */
	ROW_RSP = 3,  /* CFA = rsp + offset */
	ROW_ROOT = 4, /* outermost frame */
};

struct verdict {
	uint8_t kind;     /* enum row_kind */
	bool call_before; /* a call ends there: it can be a return address */
	bool saved16;     /* the caller's rbp lies at CFA - 16 */
	bool same;        /* the caller's rbp still is in rbp */
	uint32_t offset;  /* of ROW_RSP */
};

static uint64_t pack(const struct verdict *v)
{
	return (uint64_t)v->offset << 32 | (uint64_t)v->call_before << 8 | (uint64_t)v->saved16 << 9 |
	       (uint64_t)v->same << 10 | v->kind;
}

static struct verdict unpack(uint64_t value)
{
	return (struct verdict){
		.kind = (uint8_t)value,
		.call_before = value & 1 << 8,
		.saved16 = value & 1 << 9,
		.same = value & 1 << 10,
		.offset = (uint32_t)(value >> 32),
	};
}

static bool follows_call(struct rt_session *s, const struct rt_module *m, uint64_t addr)
{
	struct rt_bytes before = { 0 };
	size_t n;

	/* at the start of a segment fewer bytes lie before */
	for (n = CALL_BYTES; n > 0 && before.size < n; n--)
		before = addr >= n ? rt_image_at(m->image, (struct rt_elfaddr){ addr - n }, n) : before;
	if (!before.size)
		return false;
	if (!s->unwind.decoder) {
		struct rt_error *err = rt_decoder_create(m->image->machine, &s->unwind.decoder);

		if (err) {
			rt_error_free(err);
			return false;
		}
	}
	return rt_call_before(s->unwind.decoder, before, (struct rt_elfaddr){ addr });
}

static struct verdict judge(struct rt_session *s, struct rt_module *m, uint64_t addr, bool is_return)
{
	struct verdict v = { .kind = ROW_NONE };
	const struct rt_unwind_rows *rows = NULL;
	struct rt_cfi_row row = { 0 };
	struct rt_error *err = rt_module_rows(m, &rows);

	v.call_before = !is_return || follows_call(s, m, addr);
	if (err) {
		rt_error_free(err);
		return v;
	}
	/* The row of the call itself: what follows a call that does not return belongs to another function. */
	if (!rt_rows_cfi(rows, (struct rt_elfaddr){ is_return ? addr - 1 : addr }, &row))
		return v;
	v.saved16 = row.rbp_saved && row.rbp_offset == -16;
	v.same = row.rbp_same;
	if (row.ra_undefined) {
		v.kind = ROW_ROOT;
	} else if (row.cfa_reg == RT_REG_RBP && row.cfa_offset == 16) {
		v.kind = ROW_RBP;
	} else if (row.cfa_reg == RT_REG_RSP && row.cfa_offset >= 8 && row.cfa_offset < INT32_MAX) {
		v.kind = ROW_RSP;
		v.offset = (uint32_t)row.cfa_offset;
	}
	return v;
}

static struct verdict lookup(struct rt_session *s, const struct rt_process *p, uint64_t pc, bool is_return)
{
	const struct rt_session_map *map = rt_process_map(p, is_return ? pc - 1 : pc);
	struct verdict v = { .kind = ROW_NONE };
	struct rt_module *m = map && map->executable ? rt_session_module(s, map->module) : NULL;
	uint64_t bias, *known;
	bool fresh = false;

	if (!m || !m->image || !rt_session_map_bias(s, map, &bias))
		return v;
	known = rt_map_put(&s->unwind.verdicts, rt_key_make((uint64_t)m->id << 1 | is_return, pc - bias), &fresh);
	if (!known)
		return v;
	if (fresh) {
		v = judge(s, m, pc - bias, is_return);
		/* judging may not add to the table, so `known` still points into it */
		*known = pack(&v);
	}
	return unpack(*known);
}

static void cut(struct rt_unwind_check *check, struct rt_wire_stack *stack, uint16_t nr, enum rt_stack_end end)
{
	if (nr >= stack->nr && end == RT_STACK_UNCHECKED)
		return;
	check->cut += nr < stack->nr;
	stack->nr = nr;
	stack->end = (uint16_t)end;
	stack->head.size = (uint16_t)(sizeof(*stack) + nr * sizeof(struct rt_wire_frame));
}

void rt_unwind_check(struct rt_session *s, const struct rt_process *p, struct rt_wire_stack *stack)
{
	bool rbp_valid = true;
	uint32_t sp = 0;

	/* walked by the rows themselves: there is nothing more to ask them */
	if (stack->nr && stack->frame[0].flags & RT_FRAME_ROWS)
		return;
	s->unwind.checked++;
	for (uint16_t i = 0; i < stack->nr; i++) {
		struct rt_wire_frame *f = &stack->frame[i];
		bool site = f->flags & RT_FRAME_SITE;
		struct verdict v = lookup(s, p, f->pc, !site);

		/* the innermost one is exact by itself: it was read from the known place of the return address */
		if (i > 0 && !v.call_before) {
			cut(&s->unwind, stack, i, RT_STACK_UNCHECKED);
			return;
		}
		if (v.kind == ROW_ROOT) {
			cut(&s->unwind, stack, (uint16_t)(i + 1), RT_STACK_ROOT);
			return;
		}
		if (v.kind == ROW_RSP) {
			bool exact = f->cfa == sp + v.offset;

			f->cfa = sp + v.offset;
			if (!exact) {
				cut(&s->unwind, stack, (uint16_t)(i + 1), RT_STACK_UNCHECKED);
				return;
			}
			rbp_valid = site ? rbp_valid && v.same : v.saved16;
		} else if (v.kind == ROW_RBP && rbp_valid && f->cfa > sp) {
			rbp_valid = v.saved16;
		} else {
			if (v.kind != ROW_RBP || !rbp_valid)
				f->cfa = 0;
			cut(&s->unwind, stack, (uint16_t)(i + 1), RT_STACK_UNCHECKED);
			return;
		}
		sp = f->cfa;
	}
}

void rt_unwind_check_deinit(struct rt_unwind_check *check)
{
	rt_map_deinit(&check->verdicts);
	if (check->decoder)
		rt_decoder_destroy(check->decoder);
	*check = (struct rt_unwind_check){ 0 };
}
