/* SPDX-License-Identifier: GPL-2.0-only */
/* perf's records of a recording, counted into a profile. */
#pragma once

#include "base/vec.h"
#include "profile/profile.h"
#include "recording/recording.h"
#include "report/profile_report.h"

struct rt_samples {
	struct rt_profile *profile;
	RT_VEC(struct rt_samples_event {
		char *name;
		bool clock; /* its period is ns */
		uint64_t samples;
	})
	events;
	uint64_t samples, lost;
};

RT_CHECK struct rt_error *rt_samples_init(struct rt_namer *namer, struct rt_samples *ret);
void rt_samples_deinit(struct rt_samples *samples);

/* Takes a record (by time). */
RT_CHECK struct rt_error *rt_samples_record(struct rt_samples *samples, const struct rt_perf_event *events,
					    const struct rt_perf_record *record);

/* The tables of the events that have samples. *ret: caller frees; what it points to lives as long as samples. */
RT_CHECK struct rt_error *rt_samples_parts(struct rt_samples *samples, struct rt_profile_part **ret, size_t *ret_count);
