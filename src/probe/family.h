/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What names alone say: "obj_get" and "obj_put" may be a pair, "obj_new" may
 * make what they count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How much a pair of words says by itself. */
enum rt_stem_weight {
	RT_STEM_STRONG, /* ref/unref: means one thing */
	RT_STEM_COMMON, /* get/put: also queues, caches, bits */
	RT_STEM_WEAK,   /* acquire/release, grab/drop: must be confirmed by code */
};

struct rt_stem {
	const char *get, *put; /* with the '_' before them, or as words of a CamelCase name */
	enum rt_stem_weight weight;
};

/* The i-th pair of words; NULL at the end. */
const struct rt_stem *rt_stem_at(size_t i);

enum { RT_FAMILY_NAME_MAX = 200 };

/*
 * If name has the get word of stem as a whole word: the name of the put
 * that belongs to it and the stem ("obj"). Both buffers hold RT_FAMILY_NAME_MAX bytes.
 */
bool rt_family_partner(const char *name, const struct rt_stem *stem, char *put, char *family);

/*
 * "_obj_ref_unlocked" may be an inner variant of "obj_ref": the plain name of a
 * get, if name is not plain itself. The buffer holds RT_FAMILY_NAME_MAX bytes.
 */
bool rt_family_plain(const char *name, const struct rt_stem *stem, char *plain);

/* "obj_new", "obj_create_from": a constructor's name of this family; init only with sure. */
bool rt_family_is_new(const char *name, const char *family, bool sure);

/* "obj_free", "obj_destroy" ... */
bool rt_family_is_free(const char *name, const char *family);
