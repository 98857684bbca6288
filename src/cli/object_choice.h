/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which object: N (its number within its type), TYPE:N, 0xADDRESS (all lives there), or first:ID (the first object
 * of the finding with this id).
 */
#pragma once

#include "base/error.h"
#include "lifetime/lifetime.h"

struct rt_object_choice {
	const char *text; /* as written */
	char *type;       /* owned; NULL = any */
	const char *finding;
	uint64_t serial, address; /* one of them, 0 = not by this */
};

/* RT_E_USAGE. text outlives the choice. */
RT_CHECK struct rt_error *rt_object_parse(const char *text, struct rt_object_choice *ret);
void rt_object_deinit(struct rt_object_choice *choice);

/* true: the choice needs the findings; after a reading, rt_object_settle() looks them up. */
bool rt_object_open(const struct rt_object_choice *choice);
/* RT_E_NOT_FOUND when there is no such finding. path: of the input, for messages. */
RT_CHECK struct rt_error *rt_object_settle(struct rt_object_choice *choice, const struct rt_verdict *verdict,
					   const char *path);

/* rt_watch.wants of the choice */
bool rt_object_wants(void *choice, const char *type, uint64_t serial, uint64_t object);

/* Why nothing was found: what there is instead. RT_E_NOT_FOUND. verb: of the command. */
RT_CHECK struct rt_error *rt_object_missing(const struct rt_object_choice *choice, const struct rt_verdict *verdict,
					    const char *path);
/* A number that several types have: RT_E_USAGE. NULL: it is one object (or all lives at one address). */
RT_CHECK struct rt_error *rt_object_clear(const struct rt_object_choice *choice, const char *const *types, size_t count,
					  const char *verb, const char *path);
