/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Presets that nobody asked for: a module that has a type's functions has the type, and what a preset says of
 * constructors, hidden gets and conditions is more than a scan finds. A name alone says nothing
 * (json_object_get() takes a reference in one library and lends in another), so that most of a type's functions must be
 * there.
 */
#pragma once

#include "probe/plan.h"

struct rt_presets;

/*
 * Takes the types out of *types that can be known by their functions; those of system calls, and those that are only
 * made and freed (any program's allocator), stay behind. The caller owns *ret. Not thread-safe, like what follows.
 */
RT_CHECK struct rt_error *rt_presets_create(struct rt_spec *types, struct rt_presets **ret);
void rt_presets_destroy(struct rt_presets *presets);
RT_CLEANUP(struct rt_presets *, rt_presets_destroy);

/*
 * Moves those types to *spec that the module has: every get and put, something that ends objects, and at least half
 * of all functions. They are marked as guessed: the others need not exist. A type goes once.
 */
RT_CHECK struct rt_error *rt_presets_adopt(struct rt_presets *presets, const struct rt_plan_module *module,
					   struct rt_spec *spec);
