/* SPDX-License-Identifier: GPL-2.0-only */
/* How a process ended, which says what is left in it: who would have given that back, had there been time? */
#include "lifetime/answer.h"

/* NULL: nothing was heard of it */
static const struct lt_process *process_of(const struct rt_lifetime *lt, uint32_t pid)
{
	const uint64_t *at = rt_map_get(&lt->process_by_pid, rt_key_make(pid, 0));

	return at ? &lt->processes.data[*at] : NULL;
}

bool lt_ended_well(const struct rt_lifetime *lt, uint32_t pid)
{
	const struct lt_process *p = process_of(lt, pid);

	return p && p->ended && !p->execed && !(p->status & 0x7f);
}

bool lt_left_by_exec(const struct rt_lifetime *lt, uint32_t pid)
{
	const struct lt_process *p = process_of(lt, pid);

	return p && p->execed;
}

bool lt_crashed(const struct rt_lifetime *lt, uint32_t pid, bool at_once)
{
	static const uint8_t faults[] = { 7, 11, 4, 5, 6, 8 }; /* SIGBUS, SEGV, ILL, TRAP, ABRT, FPE on Linux */
	const struct lt_process *p = process_of(lt, pid);

	for (size_t i = 0; p && p->ended && !p->execed && i < (at_once ? 2 : sizeof(faults)); i++) {
		if ((p->status & 0x7f) == faults[i])
			return true;
	}
	return false;
}
