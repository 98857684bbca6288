/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The closing model of one type, or of one class of it, made for one verdict: how often a reference
 * taken at site g was closed at site p; and the matching of what one object has left.
 */
#pragma once

#include "lifetime/state.h"

/* One cell of a site g. */
struct lt_cell {
	uint32_t site; /* p */
	uint32_t n;    /* index */
	uint32_t next; /* index + 1 of the next cell of g, 0 = none */
};

/* To close a reference of g by p. */
struct lt_cost {
	double prior; /* what names say: 0..1 */
	/* by whether it is known which run of a function did either: */
	double share[2];     /* -log of the smoothed share of p in the closings of g */
	uint64_t counted[2]; /* the model's when share was computed, 0 = it was not */
};

/* What pairs of sites cost, as far as that is known: asked for often, and slow. */
struct lt_costs {
	struct rt_map index; /* (g, p) -> of */
	RT_VEC(struct lt_cost) of;
	double far[LT_UNITS]; /* by how many marks the two are apart */
	struct rt_map makers; /* sites where constructors are called */
};

struct lt_model {
	const struct rt_lifetime *lt;
	const struct lt_type *type;
	uint32_t klass; /* index + 1; 0: of those that are of none */
	const struct lt_learnt *learnt;
	struct rt_map index; /* (g, p) -> cell; (g, 0) -> all closings of g; (0, p) -> all by p; (g, LEFT) */
	RT_VEC(double) n;
	uint64_t counted;       /* how often closings were counted, in this and the models before it */
	double gets_own;        /* share of what gets took that the very run which took it closed; 0 = not known */
	struct lt_costs *costs; /* owned */
	/* the same cells by g, once they are all there */
	RT_VEC(struct lt_cell) cells;
	struct rt_map first; /* g -> index + 1 in cells */
};

/* A matching: partner of each mark, -1 = none. */
struct lt_match {
	int8_t mate[LT_UNITS];
	double cost;
};

/* For the objects of type that are of this class; learns from the shapes of learnt, which outlives it. false: out of
 * memory. */
bool lt_model_init(struct lt_model *m, const struct rt_lifetime *lt, uint32_t type, uint32_t klass,
		   const struct lt_learnt *learnt);
void lt_model_deinit(struct lt_model *m);
/* Learns what becomes of references that gets take, in all that was counted so far. */
void lt_model_learn_gets(struct lt_model *m);
/* All cells are made: from here on they are found by site, too, until others are. false: out of memory. */
bool lt_model_settle(struct lt_model *m);
/* the next cell of g (settled); *pos is 0 at first. NULL: there are no more */
const struct lt_cell *lt_model_next(const struct lt_model *m, uint32_t g, uint32_t *pos);
double lt_model_pair(const struct lt_model *m, uint32_t g, uint32_t p);
/* how often of these the very run that took the reference closed it */
double lt_model_certain(const struct lt_model *m, uint32_t g, uint32_t p);
double lt_model_closed(const struct lt_model *m, uint32_t g);  /* closings of references taken at g */
double lt_model_crossed(const struct lt_model *m, uint32_t g); /* of these, how many in another thread */
double lt_model_closes(const struct lt_model *m, uint32_t p);  /* closings done by p */
/* share of those closings that lie in a function on the path of g: 0..1 */
double lt_model_own(const struct lt_model *m, uint32_t g);
/* the put site that closes g most often, and its share; 0 = none */
uint32_t lt_model_usual(const struct lt_model *m, uint32_t g, double *ret_share);
/*
 * usual.c: pairs references with the puts that usually end such ones, as long as there are too many to be matched;
 * true: it did
 */
bool lt_pair_usual(const struct lt_model *m, struct lt_units *units);
/* counts that n references of g were left open, for later matchings; or n closings g -> p */
void lt_model_left(struct lt_model *m, uint32_t g, double n);
double lt_model_left_open(const struct lt_model *m, uint32_t g);
/* counts that an object with an open reference of g is lost (nobody points to it), or held; and tells how many are */
void lt_model_fate(struct lt_model *m, uint32_t g, bool lost);
double lt_model_fates(const struct lt_model *m, uint32_t g, bool lost);
/* an object that g left open was freed by a function that is not known; how many were */
void lt_model_gone(struct lt_model *m, uint32_t g);
double lt_model_ends_unseen(const struct lt_model *m, uint32_t g);
void lt_model_learn(struct lt_model *m, uint32_t g, uint32_t p, double n);
/* the same, of closings beyond doubt: by the slot, or by the run of the function that took the reference */
void lt_model_learn_certain(struct lt_model *m, uint32_t g, uint32_t p, double n);
/* What an extra put may be known by. */
enum {
	LT_HINT_POST = 1,    /* it came after the last put */
	LT_HINT_TWICE = 2,   /* the run of the function that did it gave back more than it had taken */
	LT_HINT_IN_ROW = 4,  /* twice in a row, in one line */
	LT_HINT_TOO_MANY = 8 /* of a life that has more puts than references: one of them is extra */
};

/*
 * The cheapest matching of marks. forbid >= 0: this mark must have a partner. hints (LT_HINT_*, of each mark; else
 * NULL): closers may stay alone cheaply.
 */
void lt_model_match(const struct lt_model *m, const struct lt_mark *marks, unsigned n, int forbid, const uint8_t *hints,
		    struct lt_match *ret);
