/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of samples for a person or a program. Pure: tables in, bytes to a sink out. */
#pragma once

#include "base/sink.h"
#include "profile/profile.h"

/* One event's table and what to say about it. */
struct rt_profile_part {
	const char *event; /* "cpu-clock" */
	const char *unit;  /* of period: "ns", "events" */
	const struct rt_profile_table *table;
};

struct rt_profile_text_options {
	unsigned width;     /* columns, 0 = 80 */
	bool color;         /* escape codes allowed */
	double min_percent; /* rows and callers below are counted together; 0 = 0.5 */
	bool no_callers;    /* rows only */
};

/* What holds for the whole recording. */
struct rt_profile_head {
	const char *const *command; /* NULL-terminated, NULL = unknown */
	uint64_t lost;              /* records that the kernel dropped */
	const char *damage;         /* the recording is cut: why; NULL = whole */
	const char *const *unnamed; /* files whose names could not be read, one sentence each */
	size_t unnamed_count;
	struct rt_unwound stacks; /* callers out of copied stacks */
};

/* The file that was read, but has no symbols where the most samples without a function lie. */
struct rt_profile_stripped {
	const char *module; /* its path, of the parts; NULL: there is none */
	uint64_t samples;
};
/* Files that unnamed (as in the head) has a sentence about could not be read, and are left out. */
struct rt_profile_stripped rt_profile_stripped(const struct rt_profile_part *parts, size_t count,
					       const char *const *unnamed, size_t unnamed_count);

RT_CHECK struct rt_error *rt_profile_text(const struct rt_profile_head *head, const struct rt_profile_part *parts,
					  size_t count, const struct rt_profile_text_options *options,
					  struct rt_sink *sink);

/* JSON, schema "reftrace-profile-1" (docs/profile.schema.json): every row, all callers. */
RT_CHECK struct rt_error *rt_profile_json(const struct rt_profile_head *head, const struct rt_profile_part *parts,
					  size_t count, struct rt_sink *sink);
