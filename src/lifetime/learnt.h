/* SPDX-License-Identifier: GPL-2.0-only */
/* What dead healthy objects teach (shape.c), of a type and of each of its classes (class.c). */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

/* A dead object with what was closed for sure taken out. */
struct lt_shape {
	uint64_t count;
	uint32_t id; /* in learnt.shape_ids: struct lt_mark[] */
};

/* One reference taken (opens) or given back, in the order of time. */
struct lt_mark {
	uint32_t site;
	uint8_t opens, how, thread,
		act; /* how: LT_MARK_*; thread, act: in the order of first sight; act 0 = not proven */
};

enum {
	LT_MARK_NEW = 1,
	LT_MARK_TWICE = 2, /* in a row, by one run of a function */
	LT_MARK_LOST = 4   /* the slot that it was taken for was emptied without a put */
};

/* What healthy dead objects did at one site. */
struct lt_stat {
	uint32_t site;
	uint64_t opened, closed, objects;
	uint64_t replaced;  /* references that were open when the memory of their object was another one's already */
	uint64_t newest_ns; /* when the last reference that got closed was taken */
	uint64_t last_inc;  /* for counting objects once */
	uint32_t mate;      /* the put site that closed a reference of this one last */
	uint32_t pair;      /* and index + 1 in learnt.pairs of the two, 0 = there is none */
};

/* Where the numbers of a site are: index in stats + 1, 0 = not known. */
struct lt_stat_known {
	uint32_t site, stat;
};

enum { LT_STATS_KNOWN = 256 };

/* What dead healthy objects of one kind had in common: what a closing model is made from. */
struct lt_learnt {
	struct rt_map exact;    /* (get site, put site) -> index of pairs */
	RT_VEC(uint64_t) pairs; /* closed in one activation, dead objects */
	struct rt_map stat_of;  /* site -> index of stats */
	RT_VEC(struct lt_stat) stats;
	struct lt_stat_known stats_known[LT_STATS_KNOWN];
	uint64_t healthy; /* dead objects that the model was learnt from */
	struct rt_intern shape_ids;
	RT_VEC(struct lt_shape) shapes;
	uint64_t other_shapes;
};

/* A finer kind of object, by what the object itself tells; the same in all processes. */
struct lt_class {
	uint32_t type; /* index */
	const char *name;
	uint64_t objects; /* incarnations */
	struct lt_learnt learnt;
};

#define LT_TIMES_MAX (UINT64_C(1) << 48) /* more than this is not told to other runs */
/* shape.c: what is known of a site; NULL: nothing */
const struct lt_stat *lt_learnt_stat(const struct lt_learnt *learnt, uint32_t site);
/* what other objects did, too; false: out of memory */
bool lt_learnt_site(struct lt_learnt *learnt, uint32_t site, uint64_t opened, uint64_t closed, uint64_t objects);
bool lt_learnt_pair(struct lt_learnt *learnt, uint32_t opens, uint32_t closes, uint64_t times);
void lt_learnt_shape(struct lt_learnt *learnt, const struct lt_mark *marks, unsigned n, uint64_t times);
/* all that from has, too */
bool lt_learnt_add(struct lt_learnt *learnt, const struct lt_learnt *from);
void lt_learnt_deinit(struct lt_learnt *learnt);
