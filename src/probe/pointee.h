/* SPDX-License-Identifier: GPL-2.0-only */
/* What pointers point to, as debug information has it. Private to probe/. */
#pragma once

#include "dwarf/variable.h"
#include "probe/build.h"
#include "probe/writers.h"

/* How many pointers the declaration of a type has, 0 for NULL. */
unsigned rt_pointee_stars(const char *type);

/* Through how many pointers a type ("const struct obj *") leads to the structure (tag or typedef); 0: it does not. */
unsigned rt_points_to(const char *type, const char *structure);

/* Both name one structure, by tag or typedef: "const struct obj *", "obj", "obj_t". */
bool rt_same_struct(const char *a, const char *b);

/* A pointer that is what a register holds there, and so much (where.offset) more. */
bool rt_pointee_based(const struct rt_datum *d);

/* What a value leads to: through so many pointers to what the text names. */
struct rt_typed {
	const char *type; /* "obj", or as a variable is declared: "const struct obj *"; NULL: not known */
	unsigned pointers;
};

/* The members of all structures of a module that are pointers to structures, or to such pointers, by their place. */
struct rt_pointees {
	struct rt_plan_build *b;
	RT_VEC(struct rt_pointer_member) members; /* by offset */
	struct rt_writers writers;                /* of the function that was asked about last */
};

RT_CHECK struct rt_error *rt_pointees_init(struct rt_pointees *p);
void rt_pointees_deinit(struct rt_pointees *p);

/* What the member at this offset of the structure that type names is a pointer to; false: there is none. */
bool rt_pointee_member(const struct rt_pointees *p, const char *type, int64_t offset, struct rt_typed *ret);

/*
 * What reg leads to at the instruction at `at`, by the code that leads there: it was read from a variable in the frame,
 * from a member or an element of what another register leads to, from where registers are kept in the frame, was
 * copied, or is what a function returned. Of a variable that has a register of its own there, debug information says
 * more.
 */
enum rt_pointee { RT_POINTEE_UNKNOWN, RT_POINTEE_OTHER /* than the structure */, RT_POINTEE_OBJECT };
enum rt_pointee rt_pointee_read(struct rt_pointees *p, struct rt_elfaddr at, uint8_t reg, const char *structure);
