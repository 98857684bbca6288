/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scan of one module, shared by its parts. Private to probe/.
 */
#pragma once

#include "base/map.h"
#include "probe/build.h"
#include "probe/effect.h"
#include "probe/family.h"
#include "probe/kin.h"
#include "probe/making.h"
#include "probe/scan.h"
#include "probe/spec_type.h"
#include "probe/survey.h"

/* A function by name: its code, its declaration, or both. */
struct rt_scan_named {
	const char *name;
	const struct rt_symbol *symbol;            /* NULL: no code of its own */
	const struct rt_survey_function *declared; /* NULL: no debug info */
};

struct rt_scan_family {
	const struct rt_stem *stem;
	char stem_name[RT_FAMILY_NAME_MAX];
	struct rt_scan_named get, put;
	const char *structure;    /* tag or typedef, NULL: unknown */
	uint8_t put_levels;       /* 1: T *, 2: T ** */
	uint8_t get_arg, put_arg; /* from 1; 0: the first */
	bool by_type, by_code;
	bool get_counts;    /* the get adds 1 to one field, whatever the put does */
	bool named_counter; /* declarations do not lead to the structure, its name does */
	int32_t counter;    /* by_code, named_counter: where */
	uint32_t counter_size;
	size_t method; /* of a class: bytes of the mangled prefix; 0: no method */
};

/* A family that was taken: a second one of the same name must count the same field. */
struct rt_scan_taken {
	uint32_t name; /* id in survey.names */
	bool by_code;
	int32_t counter;
	const struct rt_symbol *get;
};

struct rt_scan {
	const struct rt_plan_module *module;
	const struct rt_scan_options *options;
	const struct rt_spec *known; /* what the caller has already */
	struct rt_spec found;
	struct rt_survey survey;
	struct rt_decoder *decoder;
	struct rt_insn *decoded; /* as in struct rt_plan_build */
	RT_VEC(struct rt_scan_taken) taken;
	struct rt_kin kin; /* read when it is asked for */
	bool kin_read;
	struct rt_map marked; /* id in survey.names: functions that hold marks of their own */
};

/* The function of this name; false: it neither has code nor is it inlined anywhere, or it is marked. */
bool rt_scan_lookup(struct rt_scan *s, const char *name, struct rt_scan_named *ret);
/* -t asks for the type of this name, or for all. */
bool rt_scan_asked(const struct rt_scan *s, const char *type);
/* The same for a family: by its stem or its structure. */
bool rt_scan_wanted(const struct rt_scan *s, const struct rt_scan_family *f);
/* Does the code of from jump to or call the code at target? */
bool rt_scan_calls(struct rt_scan *s, const struct rt_symbol *from, struct rt_elfaddr target);
/* scan_variant.c: gets and puts of the family that have no partner of their own. */
RT_CHECK struct rt_error *rt_scan_variants(struct rt_scan *s, const struct rt_scan_family *f,
					   struct rt_spec_type *type);
/* scan_kin.c: its gets and puts by other names, for what begins with such an object. */
RT_CHECK struct rt_error *rt_scan_kin(struct rt_scan *s, const struct rt_scan_family *f, struct rt_spec_type *type);
/* The family is such names only, of one that this scan finds by itself. */
RT_CHECK struct rt_error *rt_scan_is_kin(struct rt_scan *s, const struct rt_scan_family *f, bool *ret);
/* The type of a preset to whose get and put the family's (those of them that it has) are mere jumps; NULL: there is
 * none. */
const struct rt_spec_type *rt_scan_jumps_to(struct rt_scan *s, const struct rt_scan_family *f);
/* spec counts the function already: a second type would count it twice. */
bool rt_scan_is_known(const struct rt_spec *spec, const char *name);
bool rt_scan_is_public(const struct rt_scan_named *n);
RT_CHECK struct rt_error *rt_scan_add_function(struct rt_spec_type *type, const char *name, enum rt_op op,
					       enum rt_place place, uint8_t arg);
/* Takes the family with what belongs to it; get.name, put.name: NULL where no function does that. */
RT_CHECK struct rt_error *rt_scan_add_family(struct rt_scan *s, const struct rt_scan_family *f);

/* scan_mark.c: types whose operations the program marks itself. */
RT_CHECK struct rt_error *rt_scan_marks(struct rt_scan *s);
/* scan_make.c: constructors by what they do, and what swaps objects in a slot. */
RT_CHECK struct rt_error *rt_scan_makers(struct rt_scan *s, const struct rt_scan_family *f, struct rt_spec_type *type);
/* The only T ** of one that returns a status and is given no T; 0: none, or it is not in a register. */
unsigned rt_scan_leaves(struct rt_scan *s, const char *structure, const struct rt_survey_function *d);
/* Adds such a one, which leaves what it makes where argument arg says. */
RT_CHECK struct rt_error *rt_scan_add_leaver(struct rt_spec_type *type, const struct rt_survey_function *d,
					     uint8_t arg);
/* Is there a constructor that such a scan finds? */
bool rt_scan_is_made(struct rt_scan *s, const struct rt_scan_family *f);
/*
 * scan_open.c: in which directions (RT_SCAN_COUNTS_...) the types of spec are counted where no function of the spec
 * does it. Types are called by their structure and know where their counter lies. ret_counted: one for each.
 */
enum { RT_SCAN_COUNTS_UP = 1, RT_SCAN_COUNTS_DOWN = 2 };
RT_CHECK struct rt_error *rt_scan_counted_open(struct rt_scan *s, const struct rt_spec *spec, uint8_t *ret_counted);
/* Whether code of a function that is inlined everywhere moves the counter by delta. */
bool rt_scan_counts_inlined(struct rt_scan *s, const char *function, unsigned arg, const struct rt_member *counter,
			    int16_t delta);
/* Whether code of the function adds 1 to what may be the counter of an object, by where that lies in one. */
bool rt_scan_counts_up(struct rt_scan *s, const struct rt_symbol *function, const struct rt_making *m);
/* scan_put.c: families that have a put, but no get. */
RT_CHECK struct rt_error *rt_scan_puts(struct rt_scan *s);
/* scan_field.c: families by what their functions do to a member that counts references. */
RT_CHECK struct rt_error *rt_scan_fields(struct rt_scan *s);
/* scan_holder.c: allocators of their own, whose references belong to holders. */
RT_CHECK struct rt_error *rt_scan_holders(struct rt_scan *s);
/* scan_owned.c: types that nothing counts: what makes their objects, what ends them. */
RT_CHECK struct rt_error *rt_scan_owned(struct rt_scan *s);
/* scan_cxx.c: classes whose methods count. */
RT_CHECK struct rt_error *rt_scan_classes(struct rt_scan *s);
