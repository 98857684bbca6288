/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What code says of the functions of a module that nobody has declared: what inferred.c collects, and inferred_code.c
 * reads off one function's instructions. Private to probe/.
 */
#pragma once

#include "probe/handing.h"
#include "probe/spec_type.h"
#include "probe/way.h"

/* Callers pass objects of several types. */
#define RT_INFER_ANYTHING UINT32_MAX

struct rt_infer_function {
	struct rt_symbol symbol;
	uint32_t given[RT_SPEC_ARG_MAX];  /* index of the type + 1: it passes the argument on to what is given one */
	uint32_t passed[RT_SPEC_ARG_MAX]; /* the same: callers pass such; or RT_INFER_ANYTHING */
	uint32_t out[RT_SPEC_ARG_MAX];    /* the same: it is stored where the argument points to */
	uint32_t returns;                 /* the same: at some end */
	uint8_t framed, elsewhere; /* bits of arguments: callers pass the address of a variable; of other memory */
	unsigned learnt;           /* the round behind that in which it was found to be given an object; 0: none */
	bool calls;                /* what hands out, or takes, an object */
	bool taken;                /* a caller takes its result for an address */
	bool members;              /* it passes on what it reads from members of its arguments */
};

/* A member of what a function is given as an argument: it was read from there, and passed on as an object. */
struct rt_infer_member {
	uint64_t function; /* its address */
	int64_t at;        /* where, as tagged: inferred_code.c */
	uint32_t type;     /* index + 1 */
};

struct rt_inference {
	const struct rt_takers *t;
	RT_VEC(struct rt_infer_function) functions;
	struct rt_map index; /* address of a function, or of its stub -> index + 1 */
	struct rt_map args;  /* (address, argument) of what is given an object -> index of the type + 1 */
	RT_VEC(struct rt_infer_member) members;
	struct rt_map known; /* addresses of what something was learnt of -> the round behind that; 0: it was told */
	uint64_t low, high;  /* all known lie in [low, high] */
	unsigned *spread;    /* by the index of a type: functions that are given one */
	bool *left_out;      /* the same: nothing is inferred about these */
	struct rt_way way;
	uint16_t zeroes; /* vector registers that are 0 */
	unsigned round, insns, clears;
	uint64_t bytes; /* of code that was looked over for calls */
	bool begun;
	bool more; /* something was learnt in this round */
};

/* Of one type more functions than this are given objects: half of the program hands such around. */
enum { RT_INFER_CURRENCY = 512 };

/* inferred.c: the function at this address, or behind this stub; NULL: it is of another module. */
struct rt_infer_function *rt_infer_at(const struct rt_inference *f, struct rt_elfaddr at);
/* What is called at this address is given an object as this argument. */
RT_CHECK struct rt_error *rt_infer_add_arg(struct rt_inference *f, uint64_t address, unsigned arg, uint32_t type);
/* Callers of this address have to be looked at once more. */
RT_CHECK struct rt_error *rt_infer_add_known(struct rt_inference *f, uint64_t address);

/* inferred_code.c: what the function's code says of it and of what it calls. Bounded work. */
RT_CHECK struct rt_error *rt_infer_look(struct rt_inference *f, struct rt_infer_function *fn);
/* Points where it stores NULL into members that hold objects, once all are known. */
RT_CHECK struct rt_error *rt_infer_clears(struct rt_inference *f, struct rt_infer_function *fn);
