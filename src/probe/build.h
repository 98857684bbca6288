/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The planning of one module, shared by the parts of the planner. Private to probe/.
 */
#pragma once

#include "base/arena.h"
#include "probe/plan.h"
#include "probe/site.h"
#include "probe/survey.h"
#include "probe/table.h"

/* A function of the spec that was found in the module. */
struct rt_target {
	uint32_t type;                  /* index of plan->types */
	uint32_t function;              /* index of the type's functions in the spec */
	const char *name;               /* source name; lives as long as the module's tables, or the spec */
	const struct rt_symbol *symbol; /* NULL: only an address is known */
	struct rt_elfaddr addr;
	struct rt_spec_function
		as;    /* the spec's function, or one of the operations it consists of; strings not owned */
	bool optional; /* nobody asked for it: where it cannot be probed, nothing is said; function is behind the last
			*/
	bool maybe;    /* it may be given what is no object of the type */
};

/* A function whose result is needed and whose return must not be hooked: its calls are looked for. */
struct rt_late {
	struct rt_target target;
	const char *why; /* static text */
	bool imported;   /* it lives in another module: symbol is its PLT stub */
};

struct rt_plan_build {
	struct rt_plan *plan;
	const struct rt_plan_module *module;
	struct rt_survey survey;
	struct rt_decoder *decoder;
	struct rt_insn
		*decoded; /* RT_DECODED by address: what rt_plan_decode() gave last; NULL: it does not remember */
	RT_VEC(struct rt_target) targets;
	RT_VEC(struct rt_late) late;
	struct rt_map taken;  /* (address, op or op and register) -> type id: what already is a point */
	struct rt_map jumped; /* jump by a register -> 1 + its place in tables, 0: it is not known where it leads */
	RT_VEC(struct rt_table) tables;
	struct rt_arena arena;
};

/* true: the result says where the object is, or whether it counts. */
static inline bool rt_needs_return(const struct rt_spec_function *f)
{
	return f->place >= RT_PLACE_RET || f->condition != RT_IF_ALWAYS;
}

/* true: the object is in the result, and no condition but that there is one. */
static inline bool rt_result_is_object(const struct rt_spec_function *f)
{
	return (f->place == RT_PLACE_RET || f->place == RT_PLACE_RET_PTR) &&
	       (f->condition == RT_IF_ALWAYS || f->condition == RT_IF_NONZERO);
}

enum { RT_DECODED = 1 << 15 };
/*
 * The module's instruction at an address. false: there is none that is known. Code is walked again and again, from the
 * beginning of its function: functions of up to 64 KiB are decoded once.
 */
bool rt_plan_decode(const struct rt_plan_build *b, struct rt_elfaddr at, struct rt_insn *ret);

/* Where a call or jump to target leads: behind a stub, the function of this module that it stands for, if it has one.
 */
struct rt_elfaddr rt_plan_callee(const struct rt_plan_build *b, struct rt_elfaddr target);

/* How an operation changes the count. */
int16_t rt_op_delta(uint8_t op, int32_t start);

/* Notes that a function cannot be probed here. */
RT_CHECK struct rt_error *rt_plan_refuse(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *name,
					 enum rt_code code, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/*
 * Notes that such places of the type, an index of plan->types or behind the last for those of any, are too many to be
 * probed, if they are more than most. For what no count needs: what counts is refused.
 */
RT_CHECK struct rt_error *rt_plan_limit(struct rt_plan_build *b, uint32_t type, const char *what, unsigned have,
					unsigned most);

/* resolve.c: fills b->targets. */
RT_CHECK struct rt_error *rt_plan_resolve(struct rt_plan_build *b);
/* made.c: what the object's place of a declared function points to; NULL: not known */
const char *rt_plan_structure(struct rt_plan_build *b, const struct rt_spec_function *f);
/* Where a constructor or find that returns a status leaves its object, by its declaration; else target stays as it is.
 */
void rt_plan_made_place(struct rt_plan_build *b, struct rt_target *target);
/* The result tells whether a function has left an object elsewhere; and when it has. */
bool rt_made_is_status(const struct rt_param *result);
enum rt_condition rt_made_condition(const struct rt_param *result);
/* counter.c: finds the counters and sizes of types that have targets here. */
RT_CHECK struct rt_error *rt_plan_counters(struct rt_plan_build *b);
/* point.c: points for b->targets. */
RT_CHECK struct rt_error *rt_plan_points(struct rt_plan_build *b);
/* One more point of point.c; its result may end up in b->late. */
RT_CHECK struct rt_error *rt_plan_point(struct rt_plan_build *b, const struct rt_target *target);
/*
 * inner.c: where the constructor is inlined (list) into functions that hand out
 * the object as their own result, these get points. *ret_unseen: instances whose object stays unseen.
 */
RT_CHECK struct rt_error *rt_plan_first_count(struct rt_plan_build *b, uint32_t type, uint32_t function,
					      const struct rt_inlined *instance, const char *name, bool *ret_seen);
RT_CHECK struct rt_error *rt_plan_inner(struct rt_plan_build *b, uint32_t type, uint32_t function,
					const struct rt_inlined *list, size_t count, size_t *ret_unseen);
/* handing.c: points at the returns of functions that hand references up. After all others. */
RT_CHECK struct rt_error *rt_plan_handing(struct rt_plan_build *b);
/*
 * An operation inlined at this address cannot be seen: where the function around it returns such objects, it gets a
 * point as a find.
 */
RT_CHECK struct rt_error *rt_plan_inner_find(struct rt_plan_build *b, uint32_t type, uint32_t function,
					     struct rt_elfaddr at);
/* opencoded.c: points where code of the program counts by itself. After those of functions, and of what is inlined. */
RT_CHECK struct rt_error *rt_plan_open_coded(struct rt_plan_build *b);
/* callers.c: points behind the calls of b->late. */
RT_CHECK struct rt_error *rt_plan_callers(struct rt_plan_build *b);
/*
 * room.c: whether the engine can write over what it needs to at addr, or from p->before bytes before it on: nothing
 * leads to what stands behind the first byte. Where it cannot and a breakpoint will do, p->breakpoint. True where it
 * writes over nothing.
 */
bool rt_plan_has_room(struct rt_plan_build *b, struct rt_elfaddr addr, struct rt_point *p);
/* CFA = sp + n at addr; 0 where the frame is not sp-based. */
int32_t rt_plan_cfa_delta(struct rt_plan_build *b, struct rt_elfaddr addr);
/* marker.c: the innermost source function around an instruction, else its symbol; NULL. Lives as long as module. */
const char *rt_plan_function_around(const struct rt_plan_module *module, struct rt_elfaddr at);
/* Points for SDT markers. */
RT_CHECK struct rt_error *rt_plan_markers(struct rt_plan_build *b);
/* inline.c: points for inlined instances. */
RT_CHECK struct rt_error *rt_plan_inlined(struct rt_plan_build *b);

/* The function's DSO says this module. */
bool rt_plan_dso_fits(const char *dso, const char *path);

/*
 * Is this (instruction, operation, object) of an RT_POINT_INSN not a point yet? Several instances may start at one
 * instruction for different objects: where they are tells them apart.
 */
RT_CHECK struct rt_error *rt_plan_take_place(struct rt_plan_build *b, uint32_t type, const struct rt_point *point,
					     bool *ret_mine);

/* Appends *point (name is copied) with the next id. */
RT_CHECK struct rt_error *rt_plan_add(struct rt_plan_build *b, uint32_t type, uint32_t function,
				      const struct rt_point *point, const char *name);
/* Sets the point's counter from its type: read at the armed instruction, after track. */
void rt_plan_set_counter(const struct rt_plan_type *type, const struct rt_track *track, struct rt_point *point);
