/* SPDX-License-Identifier: GPL-2.0-only */
/* eBPF from foreign bytes, in both orders: text stays in its room, and is never empty. */
#include <stdlib.h>
#include <string.h>

#include "insn/bpf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *name_map(void *arg, uint32_t id)
{
	return id % 2 ? "a_map" : NULL;
}

static const char *name_helper(void *arg, int32_t imm)
{
	return imm % 2 ? "a_helper" : NULL;
}

static const char *name_function(void *arg, int32_t number, int64_t position)
{
	return position % 2 ? "a_function" : NULL;
}

static void check(const struct rt_bpf_insn *insn, size_t index)
{
	static const struct rt_bpf_naming naming = { NULL, name_map, name_helper, name_function };
	char text[256], cut[16];
	size_t len = rt_bpf_text(insn, index, &naming, text, sizeof(text)), some;
	int64_t target;

	if (!len || len >= sizeof(text) - 1 || len != strlen(text))
		abort();
	some = rt_bpf_text(insn, index, &naming, cut, sizeof(cut));
	if (some != strlen(cut) || strncmp(cut, text, some) != 0)
		abort();
	if (rt_bpf_target(insn, index, &target) && rt_bpf_is_kernel_call(insn))
		abort();
	rt_bpf_text(insn, index, NULL, cut, 1);
	if (*cut)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_bpf_insn insn;

	for (unsigned big = 0; big < 2; big++) {
		for (size_t i = 0; rt_bpf_decode(rt_bytes_make(data, size), big, i, &insn); i++)
			check(&insn, i);
	}
	return 0;
}
