/* SPDX-License-Identifier: GPL-2.0-only */
/* Callers from a copied stack (record --call-graph dwarf, of ours or of perf). */
#include <string.h>

#include "recording/parts.h"

/* perf's numbers of x86-64 registers (asm/perf_regs.h) -> DWARF's; -1: flags and segments. */
static const int8_t dwarf_of[] = {
	0, 3, 2, 1, 4, 5, 6, 7, 16, -1, -1, -1, -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15
};

enum { ABI_64 = 2 };

static bool is_x86_64(const struct rt_recording *r)
{
	const struct rt_perf_header *h = rt_perf_reader_header(r->perf);

	return !h->big_endian && (!h->arch || !strcmp(h->arch, "x86_64"));
}

static bool registers(const struct rt_perf_event *event, const struct rt_perf_sample *s, struct rt_dwarf_regs *ret)
{
	const uint32_t need = 1u << RT_DWARF_RA | 1u << RT_DWARF_RSP;
	uint64_t mask = event->attr.sample_regs_user;
	unsigned at = 0;

	*ret = (struct rt_dwarf_regs){ .known = 0 };
	for (unsigned bit = 0; bit < 64 && at < s->user_reg_count; bit++) {
		if (!(mask >> bit & 1))
			continue;
		if (bit < sizeof(dwarf_of) && dwarf_of[bit] >= 0) {
			ret->value[dwarf_of[bit]] = s->user_regs[at];
			ret->known |= 1u << dwarf_of[bit];
		}
		at++;
	}
	return (ret->known & need) == need;
}

static void count(struct rt_unwound *u, enum rt_dwarf_step end)
{
	u->samples++;
	switch (end) {
	case RT_DWARF_OUTERMOST:
		u->whole++;
		break;
	case RT_DWARF_NO_MEMORY:
		u->short_copy++;
		break;
	case RT_DWARF_NO_ROW:
		u->no_rows++;
		break;
	default:
		u->too_deep++;
	}
}

void rt_recording_unwind(struct rt_recording *r, const struct rt_perf_event *event, struct rt_perf_record *sample,
			 uint64_t chain[RT_USER_CHAIN_MAX])
{
	const uint64_t fields = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	struct rt_perf_sample *s = &sample->sample;
	struct rt_chain_stack stack;
	enum rt_dwarf_step end;
	size_t n = 0;

	if ((event->attr.sample_type & fields) != fields || !s->user_abi)
		return;
	if (!is_x86_64(r) || s->user_abi != ABI_64 || !registers(event, s, &stack.regs)) {
		r->unwound.samples++;
		r->unwound.foreign++;
		return;
	}
	if (!r->chain)
		return;
	stack.address = stack.regs.value[RT_DWARF_RSP];
	stack.bytes = rt_bytes_make(s->user_stack.data,
				    s->user_stack_size < s->user_stack.size ? s->user_stack_size : s->user_stack.size);
	/* the kernel's part stays, what it found of user code by frame pointers is told better now */
	while (n < s->chain_count && n < RT_USER_CHAIN_MAX - RT_USER_FRAMES_MAX - 1 &&
	       s->chain[n] != (uint64_t)PERF_CONTEXT_USER) {
		chain[n] = s->chain[n];
		n++;
	}
	chain[n++] = (uint64_t)PERF_CONTEXT_USER;
	n += rt_chain_unwind(r->chain, RT_SIDE_PID(sample->id.pid), sample->id.time_ns, &stack, &chain[n],
			     RT_USER_FRAMES_MAX, &end);
	s->chain = chain;
	s->chain_count = n;
	s->unwound = true;
	count(&r->unwound, end);
}

struct rt_unwound rt_recording_unwound(const struct rt_recording *r)
{
	return r->unwound;
}
