/* SPDX-License-Identifier: GPL-2.0-only */
/* The first bytes of a perf.data: what it is, and where its parts lie. Inside perfdata only. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/format.h"

enum { RT_PERF_SECTION_BYTES = 16 };

struct rt_perf_section {
	uint64_t offset, size;
};

struct rt_perf_head {
	uint64_t attr_size; /* of one entry: attributes and the section of its ids */
	struct rt_perf_section attrs, data;
	uint64_t features[RT_PERF_FEAT_BITS / 64];
};

/* Whether it is a perf.data at all, and of which kind. name is for messages. */
RT_CHECK struct rt_error *rt_perf_magic_read(struct rt_bytes bytes, const char *name, bool *ret_big_endian,
					     bool *ret_pipe);

RT_CHECK struct rt_error *rt_perf_head_read(struct rt_bytes bytes, bool big_endian, struct rt_perf_head *ret);

bool rt_perf_section_read(struct rt_bytes bytes, uint64_t offset, bool big_endian, struct rt_perf_section *ret);

/* The size of the data was never filled in: data size 0, and no table of features stands where it would. */
bool rt_perf_head_unfinished(const struct rt_perf_head *head, struct rt_bytes bytes, bool big_endian);
