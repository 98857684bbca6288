/* SPDX-License-Identifier: GPL-2.0-only */
/* Perf's side-band as our own records: modules, mappings, processes. */
#pragma once

#include "base/map.h"
#include "event/stream.h"
#include "perfdata/record.h"

/* Modules made here have numbers from this on: the session counts from 1. */
#define RT_SIDE_MODULE 0x40000000u

/* All zeroes is an empty one. */
struct rt_translate {
	struct rt_map module_by_name;   /* hash of build-id and path -> module id */
	struct rt_map build_id_by_path; /* hash of path -> index of build_ids + 1 */
	RT_VEC(struct rt_translate_id {
		uint8_t id[RT_BUILD_ID_MAX];
		uint8_t size;
	})
	build_ids;
	uint32_t modules;
};

/* The build-id of a file where the mapping record itself has none (BUILD_ID section). */
RT_CHECK struct rt_error *rt_translate_build_id(struct rt_translate *t, const char *path, const uint8_t *id,
						uint8_t size);
/* A module that the stream knows already: mappings of the same file use its number. */
RT_CHECK struct rt_error *rt_translate_module(struct rt_translate *t, const struct rt_wire_module *module);

/* Gives out the wire records that record means, if any. */
RT_CHECK struct rt_error *rt_translate_record(struct rt_translate *t, const struct rt_perf_record *record,
					      struct rt_error *(*out)(void *arg, const struct rt_wire_head *record),
					      void *arg);
void rt_translate_deinit(struct rt_translate *t);
