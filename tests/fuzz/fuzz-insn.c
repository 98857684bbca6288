/* SPDX-License-Identifier: GPL-2.0-only */
/* A decoder (x86-64, or what MACHINE says) on foreign bytes: lengths stay inside, and what is told fits together. */
#include <stdint.h>
#include <stdlib.h>

#include "elf/image.h"
#include "insn/insn.h"

#ifndef MACHINE
#define MACHINE RT_MACHINE_X86_64
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct rt_insn *insn, size_t left)
{
	if (!insn->length || insn->length > 15 || insn->length > left || insn->cost > RT_COST_NEVER)
		abort();
	if (insn->has_target && !insn->call && !insn->jump)
		abort();
	if ((insn->reads | insn->writes) >> RT_REG_NR)
		abort();
	if (insn->lock && insn->cost != RT_COST_NEVER)
		abort();
	if (insn->has_mem && insn->mem.base != RT_REG_NONE && insn->mem.base >= RT_REG_NR)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_decoder *decoder = NULL;
	struct rt_error *err = rt_decoder_create(MACHINE, &decoder);
	size_t at = 0;

	if (err) {
		rt_error_free(err);
		return 0;
	}
	while (at < size && at < 4096) {
		struct rt_elfaddr addr = { 0x401000 + at };
		struct rt_insn insn;

		(void)rt_call_before(decoder, rt_bytes_make(data, at), addr);
		if (!rt_decode(decoder, rt_bytes_make(data + at, size - at), addr, &insn)) {
			at++;
			continue;
		}
		check(&insn, size - at);
		at += insn.length;
	}
	rt_decoder_destroy(decoder);
	return 0;
}
