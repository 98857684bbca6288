/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The SPEC language: what -P takes, what preset files hold and what `scan
 * --write` prints. One parser.
 *
 *     type=obj new=obj_new:ret get=obj_get:1 put=obj_put:1,obj_drop:*1 free=obj_free:1 start=1 counter=obj.refs
 *
 * Words are separated by blanks or newlines; `#` starts a comment; `[name]`
 * starts a type (same as type=name) in a file. Keys: type new get put free sink
 * steal swap move use hidden start counter class unverified. A function list is
 * comma-separated; each is FN or FN@DSO (FN may hold * and ?; DSO is the file's basename,
 * with or without what follows ".so", or a glob) or 0xADDRESS@DSO (an ELF address), then
 *   :N      argument N, from 1 (the default is :1; for new and hidden it is :ret)
 *   :*N     what argument N points to (T **); :**N what that points to; :*N+BYTES what lies so far behind there
 *   :ret    the result;  :*ret  what it points to
 *   :out*N  what argument N points to when the function returns
 *   ?ret!=0 ?ret==0 ?ret>0 ?ret<0 ?ret>=0   only if the result is so
 * sdt:PROVIDER:NAME[@DSO] in the place of FN is an SDT marker; the object is its argument :N or :*N.
 * sys:NAME in the place of FN is a system call that hands out or takes back descriptors or mappings, seen in the kernel
 * where it succeeds. Its places may say more:
 *   :N[M] :ret[M]  M bytes from there on (a mapping)
 *   :N-M           everything from argument N to argument M
 *   :out*N+BYTES   BYTES behind what argument N points to
 * A type is made of functions or of system calls, of one kind, and not of both.
 * :tail behind the place: FN only checks its argument and jumps to a function
 * without a name that the library itself calls as well; that one is armed in its stead.
 * preset=NAME (files and -P only): the types of that preset, too.
 * hidden=FN: a find, lookup or open that hands out a reference. A get that is
 * probed as well and happens INSIDE an activation of FN is the same reference:
 * the analysis gives it to FN's caller and counts it once.
 *
 * move=FN:ret (or :out*N): FN hands out a reference that was taken inside of it, and counts nothing: who is to blame
 * for it is the caller then, where FN did return it. Found by itself where there is debug information.
 *
 * A new inside another new's activation that names the same object is the same creation.
 *
 * Without a type= the common prefix of the functions names the type. A type
 * that was there before gets the new functions too; told values replace older ones.
 * unverified=FN,...: functions of the type that were never seen to do what is said of them; * for all. Who chooses
 * types without being told their functions leaves them out (rt_spec_verified()). `start=` is the count after new: 0, 1,
 * n, or floating. `counter=` is STRUCT.MEMBER or +OFFSET[:BYTES], or -OFFSET[:BYTES] where it lies before the object.
 */
#pragma once

#include "base/error.h"
#include "base/glob.h"
#include "base/vec.h"
#include "probe/class_path.h"
#include "wire/probe.h"

enum rt_place {
	RT_PLACE_ARG,     /* argument n */
	RT_PLACE_ARG_PTR, /* *argument n at entry: aux = the slot */
	RT_PLACE_RET,     /* result */
	RT_PLACE_RET_PTR, /* *result */
	RT_PLACE_OUT,     /* *argument n at return */
};

struct rt_spec_function {
	char *name;        /* function name or glob, or "sdt:PROVIDER:NAME"; owned */
	char *dso;         /* basename or glob of the module, NULL = any; owned */
	uint8_t op;        /* enum rt_op */
	uint8_t place;     /* enum rt_place */
	uint8_t arg;       /* for ARG, ARG_PTR, OUT: 1.. */
	uint8_t levels;    /* for ARG_PTR: stars, 1 or 2 */
	uint8_t condition; /* enum rt_condition on the result */
	uint8_t size_arg;  /* of a system call: the argument that says how many bytes; 0: none does */
	bool to;           /* size_arg is the last one that is meant */
	uint8_t behind;    /* bytes to add to the argument: ARG_PTR; OUT of a system call */
	bool hidden;       /* from hidden=: a get that a find hides */
	bool tail;         /* the function that it jumps to does the counting, for others as well */
	bool guessed;      /* found by scan, not told */
	bool unverified;   /* nobody has seen it do what is said here */
};

struct rt_spec_type {
	char *name; /* owned */
	RT_VEC(struct rt_spec_function) functions;
	int32_t start; /* RT_START_UNKNOWN when not told */
	bool floating;
	char *counter_struct, *counter_member; /* owned; NULL when not told */
	int32_t counter_offset;                /* RT_COUNTER_UNKNOWN when not told */
	uint32_t counter_size;
	char *klass; /* class=; owned; NULL: the object does not tell */
	struct rt_class_path path;
	char *origin; /* "-P", file, "presets/NAME", "scan": for messages; owned */
	bool unsure;  /* from scan: only the names speak for it */
	bool owned;   /* from scan: nothing counts its objects; more may end them than the functions that it has */
};

struct rt_spec {
	RT_VEC(struct rt_spec_type) types;
};

/*
 * Parses text (not NUL-terminated) and appends to *spec. origin is what error
 * messages call it ("-P", "presets/gobject"). RT_E_SPEC with line and column,
 * what is wrong and what is expected; *spec is then as before.
 */
RT_CHECK struct rt_error *rt_spec_parse(const char *text, size_t len, const char *origin, struct rt_spec *spec);

/*
 * -P ARG: a SPEC when it holds '=', else a file when it holds '/', else a preset
 * of that name from presets_dirs (NULL-terminated list). RT_E_NOT_FOUND names
 * the near presets.
 */
RT_CHECK struct rt_error *rt_spec_argument(const char *arg, const char *const *presets_dirs, struct rt_spec *spec);

/* Writes the spec in the form that rt_spec_parse() reads (caller frees *ret). */
RT_CHECK struct rt_error *rt_spec_write(const struct rt_spec *spec, char **ret);

void rt_spec_deinit(struct rt_spec *spec);
/* How many times the argument is followed to the object. */
static inline unsigned rt_spec_levels(const struct rt_spec_function *function)
{
	return function->place == RT_PLACE_ARG_PTR ? function->levels : 0;
}
/* The first type of this very name, which belongs to spec; NULL: there is none. */
struct rt_spec_type *rt_spec_type_named(const struct rt_spec *spec, const char *name);
/* Moves type number at of from to the end of to. The last one of from takes its place. */
RT_CHECK struct rt_error *rt_spec_move(struct rt_spec *from, size_t at, struct rt_spec *to);
/* Marks all functions as guessed: nobody told us that this program has them. */
void rt_spec_guess(struct rt_spec_type *type);
/* Takes the functions out that are unverified. false: what is left says too little of what happens to the objects. */
bool rt_spec_verified(struct rt_spec_type *type);
/* Leaves only the types of these names, which are globs; and where one fits no type, those that have classes. */
void rt_spec_keep(struct rt_spec *spec, const char *const *names, size_t count);
