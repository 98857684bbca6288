/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/text_namer.h"

static const struct text_build *build_of(const struct rt_namer *self)
{
	return ((const struct text_namer *)(const void *)self)->build;
}

static size_t text_name(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool is_return,
			struct rt_frame *ret, size_t max)
{
	return max ? text_frames(build_of(self), pc, ret, max) : 0;
}

static uint8_t text_hands(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc)
{
	return text_frame_hands(build_of(self), pc);
}

static uint64_t text_callback(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool *ret_given)
{
	return text_frame_later(build_of(self), pc, ret_given);
}

static uint64_t text_leaves(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t callee)
{
	return text_frame_leaves(build_of(self), callee);
}

static const char *text_source_line(struct rt_namer *self, uint32_t module_id, const char *file, uint32_t line_nr,
				    bool *ret_stale)
{
	if (ret_stale)
		*ret_stale = false;
	return NULL;
}

void text_namer_init(struct text_namer *n, const struct text_build *build)
{
	n->namer = (struct rt_namer){ text_name, text_source_line, text_hands, text_callback, text_leaves };
	n->build = build;
}
