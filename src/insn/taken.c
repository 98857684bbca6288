/* SPDX-License-Identifier: GPL-2.0-only */
#include "insn/taken.h"

enum { ADDRESS_BYTES = 8 };

static bool takes_address(const struct rt_insn *insn)
{
	bool whole = insn->width == ADDRESS_BYTES;

	if (insn->has_mem && insn->mem.base == RT_REG_RAX)
		return true;
	if (insn->is_test_or_cmp)
		return whole && (insn->dst_reg == RT_REG_RAX || insn->src_reg == RT_REG_RAX);
	return insn->is_mov && whole && insn->src_reg == RT_REG_RAX;
}

bool rt_result_is_taken(const struct rt_image *image, struct rt_decoder *decoder, struct rt_elfaddr after)
{
	enum { WAYS = 16, INSNS = 64 };
	struct rt_elfaddr ways[WAYS] = { after };
	unsigned begun = 1;

	for (unsigned way = 0, n = 0; way < begun; way++) {
		struct rt_elfaddr at = ways[way];

		while (n++ < INSNS) {
			struct rt_insn insn;

			if (!rt_decode(decoder, rt_image_at(image, at, 16), at, &insn) || !insn.length)
				break;
			if (takes_address(&insn) || insn.ret)
				return true;
			/* made into something else, or left to the next function; a push makes room */
			if (insn.call || (insn.reads & 1u << RT_REG_RAX && !insn.push) ||
			    insn.writes & 1u << RT_REG_RAX)
				break;
			at.v += insn.length;
			if (!insn.jump)
				continue;
			if (insn.has_target && begun < WAYS)
				ways[begun++] = insn.target;
			if (!insn.conditional)
				break;
		}
	}
	return false;
}
