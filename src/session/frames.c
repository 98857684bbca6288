/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a thread that stands is, by the unwind rows of what it runs through: two questions of the census, and what a
 * process ended in.
 *
 * exit() runs where main() has just left its frame, and does not write all of
 * what it lies on: a pointer of a dead frame would seem to be held by it. So its frames are unwound up to the one that
 * called exit().
 *
 * Whoever stands inside a get or put has told its event, and not counted yet, or has: what the counter says then is no
 * operation that was not seen.
 */
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "session/internal.h"

enum {
	FRAMES = 16,        /* that a question of the census goes through */
	STANDS = 128,       /* that are told of a thread whose process ends */
	COUNTS_WITHIN = 64, /* bytes: an inlined get or put counts that near */
};

/* One frame, and what is needed for the next one. */
struct frame {
	uint64_t pc, sp, bp;
	uint64_t cfa; /* where it ends, once that was found */
	unsigned depth;
	struct rt_module *module; /* that holds pc; NULL: nobody's code */
	struct rt_elfaddr addr;   /* of the instruction that it is at */
	const struct rt_symbol *symbol;
};

static struct frame frame_of(const struct user_regs_struct *regs)
{
	return (struct frame){ .pc = regs->rip, .sp = regs->rsp, .bp = regs->rbp };
}

/* The module and the function of the frame: NULL without a name (a stripped C library). */
static void name(struct rt_session *s, const struct rt_process *p, struct frame *f)
{
	const struct rt_session_map *map = rt_process_map(p, f->pc);
	struct rt_module *m = map && map->executable ? rt_session_module(s, map->module) : NULL;
	const struct rt_symtab *symtab = NULL;
	struct rt_error *err;
	uint64_t bias;

	f->module = NULL;
	f->symbol = NULL;
	if (!m || !rt_session_map_bias(s, map, &bias))
		return;
	f->module = m;
	f->addr.v = f->pc - bias - (f->depth > 0);
	err = rt_module_symtab(m, &symtab);
	f->symbol = err ? NULL : rt_symtab_at(symtab, f->addr);
	rt_error_free(err);
}

/* Where the frame ends, from which its caller's begins. false: not to be told. */
static bool find_end(struct frame *f, struct rt_cfi_row *row)
{
	const struct rt_unwind_rows *rows;
	struct rt_error *err;

	if (!f->module)
		return false;
	err = rt_module_rows(f->module, &rows);
	if (err || !rt_rows_cfi(rows, f->addr, row) || row->ra_undefined) {
		rt_error_free(err);
		return false;
	}
	if (row->cfa_reg != RT_REG_RSP && row->cfa_reg != RT_REG_RBP)
		return false;
	f->cfa = (row->cfa_reg == RT_REG_RBP ? f->bp : f->sp) + (uint64_t)row->cfa_offset;
	/* further up the stack, and not for ever */
	return f->cfa > f->sp && f->cfa - f->sp <= 1 << 20;
}

/* From a frame whose end was found to the one that called it. */
static bool go_up(const struct rt_thread *t, struct frame *f, const struct rt_cfi_row *row)
{
	if (row->rbp_saved && rt_proc_read(t->tid, f->cfa + (uint64_t)row->rbp_offset, &f->bp, 8) != 8)
		return false;
	if (!row->rbp_saved && !row->rbp_same)
		f->bp = 0;
	if (rt_proc_read(t->tid, f->cfa - 8, &f->pc, 8) != 8)
		return false;
	f->sp = f->cfa;
	return ++f->depth < STANDS;
}

uint64_t rt_exit_stack(struct rt_session *s, const struct rt_process *p, const struct rt_thread *t)
{
	struct user_regs_struct regs;
	struct rt_cfi_row row;
	struct frame f;

	if (!t->exiting || ptrace(PTRACE_GETREGS, t->tid, 0, &regs) < 0 || regs.orig_rax != SYS_exit_group)
		return 0;
	f = frame_of(&regs);
	do {
		name(s, p, &f);
		if (!find_end(&f, &row))
			return 0;
		if (f.symbol && !strcmp(f.symbol->name, "exit"))
			return f.cfa;
	} while (go_up(t, &f, &row) && f.depth < FRAMES);
	return 0;
}

/* Does the frame lie in the function of a point, behind the place that tells of the operation? */
static bool is_inside(const struct rt_session *s, const struct frame *f)
{
	for (uint32_t i = 0; f->module && i < f->module->point_nr; i++) {
		const struct rt_point *point = &s->points.data[f->module->point + i];
		bool near = !f->depth && f->addr.v - point->address.v < COUNTS_WITHIN;

		/* told when it is over */
		if (!point->delta || (point->flags & RT_EV_AT_RETURN))
			continue;
		if (near || (!(point->flags & RT_EV_INLINE) && f->symbol && f->symbol->addr.v == point->function.v))
			return true;
	}
	return false;
}

bool rt_stands_inside(struct rt_session *s, const struct rt_process *p, const struct rt_thread *t)
{
	struct user_regs_struct regs;
	struct rt_cfi_row row;
	struct frame f;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &regs) < 0)
		return false;
	if (s->ops->is_in && s->ops->is_in(s->engine, p->tgid, regs.rip))
		return true;
	f = frame_of(&regs);
	do {
		name(s, p, &f);
		if (is_inside(s, &f))
			return true;
	} while (find_end(&f, &row) && go_up(t, &f, &row) && f.depth < FRAMES);
	return false;
}

/* Is the frame the outermost one, by its row? */
static bool is_root(const struct frame *f)
{
	const struct rt_unwind_rows *rows;
	struct rt_cfi_row row = { 0 };
	struct rt_error *err = f->module ? rt_module_rows(f->module, &rows) : NULL;
	bool root = f->module && !err && rt_rows_cfi(rows, f->addr, &row) && row.ra_undefined;

	rt_error_free(err);
	return root;
}

/* The whole stack of a thread in a stop, as far as rows tell. */
static void walk(struct rt_session *s, const struct rt_process *p, const struct rt_thread *t, struct frame f,
		 struct rt_wire_stack *stack)
{
	const uint64_t sp = f.sp;
	struct rt_cfi_row row;
	bool ends, more;

	stack->end = RT_STACK_NO_ROW;
	do {
		struct rt_wire_frame *to = &stack->frame[stack->nr++];

		name(s, p, &f);
		*to = (struct rt_wire_frame){ .pc = f.pc, .flags = f.depth ? 0 : RT_FRAME_SITE | RT_FRAME_ROWS };
		ends = !find_end(&f, &row) || f.cfa - sp > UINT32_MAX;
		if (ends && is_root(&f))
			stack->end = RT_STACK_ROOT;
		to->cfa = ends ? 0 : (uint32_t)(f.cfa - sp);
		more = !ends && go_up(t, &f, &row);
		if (!ends && !more)
			stack->end = f.depth < STANDS ? RT_STACK_FAULT : RT_STACK_DEPTH;
	} while (more && f.pc);
	if (more)
		stack->end = RT_STACK_ROOT;
}

struct rt_error *rt_session_stands(struct rt_session *s, const struct rt_thread *t, int code)
{
	enum { OWN_IDS = 3u << 30 }; /* engines number their stacks from below */
	const struct rt_process *p = t->process;
	union {
		struct rt_wire_stack stack;
		uint8_t bytes[sizeof(struct rt_wire_stack) + STANDS * sizeof(struct rt_wire_frame)];
	} u = { .stack = { .head.kind = RT_WIRE_STACK, .id = OWN_IDS | t->tid } };
	struct rt_wire_stand stand = { .head = { .size = sizeof(stand), .kind = RT_WIRE_STAND }, .stack = u.stack.id };
	struct user_regs_struct regs;

	if (p->left || !p->loaded || ptrace(PTRACE_GETREGS, t->tid, 0, &regs) < 0)
		return NULL;
	walk(s, p, t, frame_of(&regs), &u.stack);
	u.stack.head.size = (uint16_t)(sizeof(u.stack) + u.stack.nr * sizeof(struct rt_wire_frame));
	stand.sp = regs.rsp;
	stand.signal = code & 0x7f && (code & 0x7f) == t->signal ? (uint32_t)t->signal : 0;
	RT_TRY(rt_emit(s, &u.stack.head, rt_process_wire(p), t->tid));
	return rt_emit(s, &stand.head, rt_process_wire(p), t->tid);
}
