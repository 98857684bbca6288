/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exit() runs where main() has just left its frame, and does not write all of
 * what it lies on: a pointer of a dead frame would seem to be held by it. So its frames are unwound, by the unwind
 * rows of the C library, up to the one that called exit().
 */
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "session/internal.h"

#define FRAMES 16

/* The row of unwind information at pc, and the function that holds it: NULL without a name (a stripped C library). */
static bool find(struct rt_session *s, const struct rt_process *p, uint64_t pc, bool is_return,
		 struct rt_cfi_row *ret_row, const struct rt_symbol **ret)
{
	const struct rt_session_map *map = rt_process_map(p, pc);
	struct rt_module *m = map && map->executable ? rt_session_module(s, map->module) : NULL;
	const struct rt_symtab *symtab = NULL;
	struct rt_elfaddr addr;
	const struct rt_unwind_rows *rows;
	struct rt_error *err;
	uint64_t bias;

	if (!m || !rt_session_map_bias(s, map, &bias))
		return false;
	addr.v = pc - bias - is_return;
	err = rt_module_rows(m, &rows);
	if (!err)
		err = rt_module_symtab(m, &symtab);
	if (err || !rt_rows_cfi(rows, addr, ret_row)) {
		rt_error_free(err);
		return false;
	}
	*ret = rt_symtab_at(symtab, addr);
	return true;
}

uint64_t rt_exit_stack(struct rt_session *s, const struct rt_process *p, const struct rt_thread *t)
{
	struct user_regs_struct regs;
	uint64_t pc, sp, bp;

	if (!t->exiting || ptrace(PTRACE_GETREGS, t->tid, 0, &regs) < 0 || regs.orig_rax != SYS_exit_group)
		return 0;
	pc = regs.rip;
	sp = regs.rsp;
	bp = regs.rbp;
	for (unsigned i = 0; i < FRAMES; i++) {
		struct rt_cfi_row row;
		const struct rt_symbol *sym = NULL;
		uint64_t cfa;

		if (!find(s, p, pc, i > 0, &row, &sym) || row.ra_undefined)
			return 0;
		if (row.cfa_reg != RT_REG_RSP && row.cfa_reg != RT_REG_RBP)
			return 0;
		cfa = (row.cfa_reg == RT_REG_RBP ? bp : sp) + (uint64_t)row.cfa_offset;
		/* further up the stack, and not for ever */
		if (cfa <= sp || cfa - sp > 1 << 20)
			return 0;
		if (sym && !strcmp(sym->name, "exit"))
			return cfa;
		if (row.rbp_saved && rt_proc_read(t->tid, cfa + (uint64_t)row.rbp_offset, &bp, 8) != 8)
			return 0;
		if (!row.rbp_saved && !row.rbp_same)
			bp = 0;
		if (rt_proc_read(t->tid, cfa - 8, &pc, 8) != 8)
			return 0;
		sp = cfa;
	}
	return 0;
}
