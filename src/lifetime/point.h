/* SPDX-License-Identifier: GPL-2.0-only */
/* A point as the analysis knows it, and what its events tell: an operation, or where pointers go. */
#pragma once

#include "lifetime/lifetime.h"

struct lt_point {
	uint32_t id, type; /* index of the type */
	uint32_t name;
	uint32_t module;   /* of the wire */
	uint64_t function; /* ELF address */
	uint64_t events;   /* as of the last verdict */
	uint64_t hits, dropped, passed;
	uint64_t faults, unread; /* what could not be read: as its engine tells, and events that say so themselves */
	uint64_t elsewhere;    /* its hits that objects of other types had: points that are made from it count these */
	uint64_t outside;      /* of its events, those that no use counts: they are not in the sample */
	uint64_t found, stale; /* pointers that it overwrites: to objects that live; to what was one, or long put */
	uint64_t strange;      /* and to what never was an object */
	int64_t cleared;       /* and to what the function's caller had just put; less those that it had put itself */
	uint8_t op;
	uint8_t aux;
	uint16_t flags;
	uint32_t of;   /* index + 1 of the point that this one was made from (maybe.c); 0: it was told */
	uint32_t made; /* index + 1 of the last one that was made from this one, or, in one of these, of the one before
			*/
	uint32_t final,
		sources; /* final.c: source id of the function, as it was known of so many sources; 0: not yet */
	uint32_t ender;  /* name of who ends the part of the freed block, inlined there or called before; 0: nobody */
	bool unarmed;
	bool strays; /* it stored a pointer to what nobody had been given by then */
};

/* the point tells what its function hands out when it returns */
static inline bool lt_point_hands(const struct lt_point *p)
{
	return p->op == RT_OP_MOVE && (p->flags & RT_EV_AT_RETURN);
}

/* the point tells of the pointer that a store overwrites */
static inline bool lt_point_overwrites(const struct lt_point *p)
{
	return p->op == RT_OP_MOVE && (p->flags & RT_EV_HIDDEN) && !(p->flags & RT_EV_AT_RETURN) && p->aux &&
	       p->aux != RT_AUX_STORED;
}

/* the point looks through whatever block is freed, and is the free() of the C library itself */
static inline bool lt_point_looks(const struct lt_point *p)
{
	return lt_point_overwrites(p) && p->aux == RT_AUX_BLOCK && !(p->flags & RT_EV_INLINE);
}

/* the point tells that a pointer to the object is stored in the slot */
static inline bool lt_point_stores(const struct lt_point *p)
{
	return p->op == RT_OP_MOVE && (p->flags & RT_EV_HIDDEN) && p->aux == RT_AUX_STORED;
}

/* what it overwrites is mostly what others have left in memory that is used again: no pointer that stands for anything
 */
static inline bool lt_point_stale(const struct lt_point *p)
{
	enum { FEW = 3, MANY = 64, TIMES = 32 };

	/* a block that is freed has pointers to anything */
	if (p->aux != RT_AUX_BLOCK && p->strange >= MANY && p->strange >= TIMES * p->found)
		return true;
	return p->stale >= FEW && p->stale >= p->found;
}

/* the point tells that a function is given the object, which it may keep */
static inline bool lt_point_given(const struct lt_point *p)
{
	return p->op == RT_OP_MOVE && (p->flags & RT_EV_HIDDEN) && !(p->flags & (RT_EV_AT_RETURN | RT_EV_MAYBE)) &&
	       !p->aux;
}

/* the point tells that the object is given to a function that by its name ends something */
static inline bool lt_point_ends(const struct lt_point *p)
{
	return p->op == RT_OP_MOVE && (p->flags & RT_EV_HIDDEN) && (p->flags & RT_EV_MAYBE) && !p->aux;
}

/* events that could not be read and did not arrive either */
static inline uint64_t lt_point_faults(const struct lt_point *p)
{
	return p->faults > p->unread ? p->faults - p->unread : 0;
}

/* all of its events that did not arrive, as far as it was told of them */
static inline uint64_t lt_point_lost(const struct lt_point *p)
{
	return p->dropped + lt_point_faults(p);
}

/* it counts nothing: it tells where pointers go */
static inline bool lt_point_silent(const struct lt_point *p)
{
	return p->op == RT_OP_MOVE && (p->flags & (RT_EV_HIDDEN | RT_EV_AT_RETURN));
}
