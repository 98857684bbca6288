/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The plan: a growing list of probe points, resolved from a spec for each
 * module as it becomes known. A plan is made for modules, not for processes:
 * each build-id is planned once, however many processes map it.
 */
#pragma once

#include "dwarf/dwarf.h"
#include "elf/symtab.h"
#include "insn/insn.h"
#include "probe/cached.h"
#include "probe/spec.h"

enum rt_point_kind {
	RT_POINT_ENTRY,  /* armed at, or in the straight line behind, a function's entry */
	RT_POINT_RETURN, /* the function's return (uprobe session or uretprobe): armed where sp still points to the
			    return address (cfa_delta 8), which need not be the very first instruction */
	RT_POINT_INSN,   /* an instruction inside a function: an inlined instance, or behind a call (RT_EV_AT_RETURN) */
	RT_POINT_CALL,   /* a system call: address is its number, and it is in no module */
};

/* One probe point: where to arm, and what a hit means. Plain data; the engine copies it. */
struct rt_point {
	uint32_t id;     /* 1.., unique in the plan; the wire's point id */
	uint32_t module; /* struct rt_wire_module.id */
	uint32_t type;   /* struct rt_wire_type.id */
	uint8_t kind;    /* enum rt_point_kind */
	uint8_t op;      /* enum rt_op */
	int16_t delta;
	uint16_t flags; /* RT_EV_HIDDEN, RT_EV_INLINE, RT_EV_AT_RETURN */
	uint8_t cost;   /* enum rt_probe_cost of the armed instruction */
	bool guessed;
	bool frees;     /* with a slot: the block that it lies in is freed right here */
	bool first;     /* the object is the first argument */
	bool filled;    /* the object was stored just before into the slot that it is read from */
	uint8_t look;   /* enum rt_probe_look: it is no object that is given here, but a block of the C library
			   that is freed, or given another size */
	uint8_t stored; /* enum rt_reg + 1 of the register that is stored right here, where the object would
			   be, and holds it; 0: nothing is */
	int32_t start;  /* references that its type's new gives, as the session knows it */
	bool sampled;   /* its operations are told only where the object is in the sample */
	bool owned;     /* it makes what has one owner: who frees such an object is told, too */
	struct rt_elfaddr address;  /* of the armed instruction */
	struct rt_foff offset;      /* its file offset: what uprobes take */
	struct rt_elfaddr function; /* entry of the function or instance */
	uint8_t before;             /* where the engine asked for room: it begins that many bytes before address */
	bool breakpoint;            /* there is no room; set only with rt_plan_options.breakpoints */
	int32_t cfa_delta;          /* CFA = sp + cfa_delta at the armed instruction (8 at a function's first one) */
	/* the object: reg + index * scale + reg_offset, then deref times loaded */
	uint8_t reg; /* enum rt_reg; RT_REG_NONE: 0 */
	uint8_t deref;
	uint8_t index, scale; /* scale != 0: the register index times scale is added, too */
	int8_t width;         /* 1, 2, 4: bytes of the value itself, negative: signed; 0: 8 */
	int64_t reg_offset;
	/* of a system call, with what struct rt_spec_function says of them */
	uint8_t size_reg; /* enum rt_reg; RT_REG_NONE: no argument says how many bytes */
	bool size_to;
	uint8_t message; /* enum rt_call_message */
	uint8_t behind;
	uint8_t match_reg; /* enum rt_reg; RT_REG_NONE: any; else only where it holds match */
	int32_t match;
	struct rt_foff semaphore;  /* of an SDT marker: counter in the file, raised while it is armed; v = 0: none */
	struct rt_elfaddr counter; /* the same in memory */
	/* at return instead: place is RT_PLACE_RET*, RT_PLACE_OUT */
	uint8_t place;          /* enum rt_place */
	uint8_t condition;      /* enum rt_condition on the result; != ALWAYS makes it a return point */
	uint8_t result_size;    /* bytes of the result that the condition looks at (bool: 1); 0 = unknown, taken as 4 */
	int32_t counter_offset; /* or RT_COUNTER_UNKNOWN */
	uint8_t counter_size;
	uint32_t class_at; /* the word that tells the object's class is so many bytes less 1 behind it; 0: none does */
	int8_t counter_bias; /* what to add to the counter read at address to get it BEFORE the operation: the armed
				instruction may lie behind the one that counts. 0 where the result names the object:
				there the count is the one AFTER the operation */
	char *name;          /* function; owned by the plan */
	char *alias;         /* what debug information calls it, where that is another name; NULL; owned by the plan */
	char *ender; /* with frees: who ends the part that the slot is in, inlined or called before; NULL; likewise */
};

/* A function of the spec that could not become a point, and why. */
struct rt_refused {
	char *function, *why; /* owned by the plan */
	uint32_t type, module;
	uint8_t code; /* enum rt_code: NO_FUNCTION, STRIPPED, UNARMED ... */
};

/* What became of a function of the spec, over all modules so far. */
enum { RT_SEEN_POINT = 1 << 0, RT_SEEN_REFUSED = 1 << 1, RT_SEEN_INNER = 1 << 2 /* by what inlined ones call */ };

struct rt_plan_type {
	uint32_t id; /* 1.. = index in plan->types + 1 */
	const struct rt_spec_type *spec;
	int32_t start;
	bool floating;
	int32_t counter_offset; /* told, from DWARF, or inferred from code; RT_COUNTER_UNKNOWN */
	uint32_t counter_size;
	const char *counter_from; /* "told", "debug info", "inferred", NULL: static text */
	uint32_t object_size;
	char *structure; /* what declarations call the struct, where that is another name; NULL; owned by the plan */
	uint32_t points; /* how many so far */
	bool present;    /* some of them tell what a function of its own does, not just where a pointer goes */
	uint8_t *seen;   /* per function of spec: RT_SEEN_*; owned by the plan */
};

struct rt_plan_options {
	bool first_insn;              /* no site choice: arm the first instruction (measurements, tests) */
	bool no_inline;               /* no inlined instances */
	bool avoid_nop5;              /* 5-byte nops are unsafe on this kernel */
	bool return_points;           /* the engine can do RT_POINT_RETURN */
	bool counts_only;             /* no points that count nothing: nobody looks where pointers go */
	uint8_t room;                 /* bytes that the engine writes over at a point; 0: a breakpoint */
	bool breakpoints;             /* with room: where there is none, it can place a breakpoint */
	bool force_returns;           /* also for functions that C++ exceptions may leave */
	const struct rt_cache *cache; /* where %GROUP:EVENT is looked for; outlives the plan; NULL: nowhere */
	struct rt_cached_allow allow; /* for the files that they are told with: %GROUP:EVENT@FILE */
};

struct rt_plan {
	const struct rt_spec *spec; /* must outlive the plan and not change */
	struct rt_plan_options options;
	RT_VEC(struct rt_plan_type) types;
	RT_VEC(struct rt_point) points; /* points.data[id - 1] */
	RT_VEC(struct rt_refused) refused;
	RT_VEC(char *) doubts; /* sentences about what was allowed and may be wrong; owned */
	RT_VEC(char *)
	limits; /* sentences about what is so much that it is not looked at; counts do not need it; owned */
};

/* What the planner may look at of one module. */
struct rt_plan_module {
	uint32_t id;
	const char *name; /* path as seen */
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
};

/* A plan over the types of spec, without points yet. */
RT_CHECK struct rt_error *rt_plan_create(const struct rt_spec *spec, const struct rt_plan_options *options,
					 struct rt_plan **ret);
void rt_plan_destroy(struct rt_plan *plan);
RT_CLEANUP(struct rt_plan *, rt_plan_destroy);

/*
 * Adds the points of one module: resolves every function of the spec in it
 * (symbols, globs, PLT stubs excluded, aliases once, inlined instances with debug
 * info), chooses sites, finds counters; results whose return must not be hooked are seen
 * behind the calls (RT_POINT_INSN with RT_EV_AT_RETURN). New points are
 * points.data[*ret_first .. points.len). A function that is nowhere in this
 * module is no error; see rt_plan_missing().
 */
RT_CHECK struct rt_error *rt_plan_module(struct rt_plan *plan, const struct rt_plan_module *module, size_t *ret_first);

/*
 * Adds the points at which the C library is given back blocks, if the module is that library and the engine can look
 * through blocks: the objects that these point to go by the type of that index in the plan, though they may be of any.
 * As rt_plan_module(); nothing is refused.
 */
RT_CHECK struct rt_error *rt_plan_freed(struct rt_plan *plan, uint32_t type, const struct rt_plan_module *module,
					size_t *ret_first);

/* Adds the points of the system calls, which are those of every process: once. As rt_plan_module(). */
RT_CHECK struct rt_error *rt_plan_calls(struct rt_plan *plan, size_t *ret_first);

/*
 * After the modules are known: functions that the user named and that no
 * module has, as one RT_E_NO_FUNCTION error with "did you mean" (names from
 * modules), or RT_E_STRIPPED when the module has no symbols, or RT_E_UNARMED when
 * it is there and cannot be probed. NULL when every told type (not from presets or scan) has
 * at least one point for each of get, put, new-or-get and put-or-free that it names. A
 * function that comes with a later dlopen() is missing before it.
 */
RT_CHECK struct rt_error *rt_plan_missing(const struct rt_plan *plan, const struct rt_plan_module *modules,
					  size_t count);

/*
 * "did you mean: obj_get (leak.c:19)?" for a name that no module has, from the
 * names of modules; "" where none is near. The caller frees *ret.
 */
RT_CHECK struct rt_error *rt_plan_near(const struct rt_plan_module *modules, size_t count, const char *name,
				       char **ret);

/* "emulated" ...: static text. */
const char *rt_probe_cost_name(enum rt_probe_cost cost);
