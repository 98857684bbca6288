/* SPDX-License-Identifier: GPL-2.0-only */
/* What pointers point to, as debug information has it. Private to probe/. */
#pragma once

#include "dwarf/variable.h"
#include "probe/build.h"

/* Through how many pointers a type ("const struct obj *") leads to the structure (tag or typedef); 0: it does not. */
unsigned rt_points_to(const char *type, const char *structure);

/* A pointer that is what a register holds there, and so much (where.offset) more. */
bool rt_pointee_based(const struct rt_datum *d);

/* The members of all structures of a module that are pointers to structures, by their place. */
struct rt_pointees {
	struct rt_plan_build *b;
	RT_VEC(struct rt_pointer_member) members; /* by offset */
};

RT_CHECK struct rt_error *rt_pointees_init(struct rt_pointees *p);
void rt_pointees_deinit(struct rt_pointees *p);

/*
 * What reg points to at the instruction at `at`, where it was read, on the only way there, from a pointer: a variable
 * that lies in the frame since its address is taken, what a variable (T **) points to, or a member of that.
 */
enum rt_pointee { RT_POINTEE_UNKNOWN, RT_POINTEE_OTHER /* than the structure */, RT_POINTEE_OBJECT };
enum rt_pointee rt_pointee_read(const struct rt_pointees *p, struct rt_elfaddr at, uint8_t reg, const char *structure);
