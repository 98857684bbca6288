/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes perf.data of finished files while others are still recorded, as perf does it: in a thread that has what time
 * nobody else wants. One thread calls all of these.
 */
#pragma once

#include "recording/to_perf.h"

struct rt_converter;

RT_CHECK struct rt_error *rt_converter_create(struct rt_converter **ret);
/* Waits for the file that is being made; the others stay what they are. */
void rt_converter_destroy(struct rt_converter *converter);
RT_CLEANUP(struct rt_converter *, rt_converter_destroy);

/* The spool at path, which nobody writes any more, is to become perf.data in its place. */
RT_CHECK struct rt_error *rt_converter_add(struct rt_converter *converter, const char *path);
/* A file that has become perf.data since, each once and in their order: the caller frees it. NULL: none. */
char *rt_converter_take(struct rt_converter *converter);

struct rt_converted {
	uint64_t bytes;    /* of all files */
	uint64_t bpf_lost; /* as in rt_to_perf_result */
};

/* Waits until all are made, with full speed. The first error: that file, and those behind it, are spools still. */
RT_CHECK struct rt_error *rt_converter_end(struct rt_converter *converter, struct rt_converted *ret);
