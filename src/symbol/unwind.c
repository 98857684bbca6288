/* SPDX-License-Identifier: GPL-2.0-only */
/* The callers of a place, from its registers and a copy of its stack. */
#include <string.h>

#include "symbol/parts.h"

struct copied {
	struct rt_dwarf_memory memory;
	const struct rt_chain_stack *stack;
};

static bool read_stack(const struct rt_dwarf_memory *self, uint64_t address, uint64_t *ret)
{
	const struct rt_chain_stack *stack = ((const struct copied *)(const void *)self)->stack;
	uint64_t offset = address - stack->address;

	if (offset > stack->bytes.size || stack->bytes.size - offset < sizeof(*ret))
		return false;
	memcpy(ret, stack->bytes.data + offset, sizeof(*ret));
	return true;
}

/* Unwind information of the code at pc. */
static struct rt_dwarf *rows_of(struct rt_chain *chain, uint32_t pid, uint64_t time_ns, uint64_t pc,
				struct rt_elfaddr *ret)
{
	struct rt_chain_module *module;
	struct rt_mapping mapping;
	struct rt_foff offset;

	if (!rt_maps_find(chain->maps, pid, time_ns, (struct rt_vaddr){ pc }, &mapping))
		return NULL;
	module = rt_chain_module(chain, mapping.module);
	if (!module)
		return NULL;
	rt_chain_open(chain, module);
	offset.v = mapping.offset.v + (pc - mapping.start);
	if (!module->image || !rt_image_address(module->image, offset, true, ret))
		return NULL;
	return module->dwarf;
}

size_t rt_chain_unwind(struct rt_chain *chain, uint32_t pid, uint64_t time_ns, const struct rt_chain_stack *stack,
		       uint64_t *ret, size_t max, enum rt_dwarf_step *ret_end)
{
	struct copied copied = { .memory = { read_stack }, .stack = stack };
	struct rt_dwarf_regs regs = stack->regs;
	bool called = false, interrupted = false;
	size_t n = 0;

	*ret_end = RT_DWARF_STEPPED;
	while (n < max) {
		uint64_t pc = regs.value[RT_DWARF_RA], sp = regs.value[RT_DWARF_RSP];
		struct rt_dwarf *dwarf;
		struct rt_elfaddr at;
		bool signal = false;

		ret[n++] = pc + interrupted;
		/* a call may be the last instruction of its function */
		dwarf = rows_of(chain, pid, time_ns, pc - called, &at);
		*ret_end = dwarf ? rt_dwarf_step(dwarf, at, &copied.memory, &regs, &signal) : RT_DWARF_NO_ROW;
		/* readers look before a caller's address, for its call; a trampoline is entered at its first
		 * instruction */
		if (signal && called)
			ret[n - 1] = pc + 1;
		if (*ret_end != RT_DWARF_STEPPED)
			break;
		called = !signal;
		interrupted = signal;
		if (!regs.value[RT_DWARF_RA]) {
			*ret_end = RT_DWARF_OUTERMOST;
			break;
		}
		/* a caller lies further out; only a signal may go to another stack */
		if (!signal && regs.value[RT_DWARF_RSP] <= sp) {
			*ret_end = RT_DWARF_NO_ROW;
			break;
		}
	}
	return n;
}
