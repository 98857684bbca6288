/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names that compilers make out of a function's name: "obj_put.isra.0",
 * "obj_put.part.0", "obj_put.cold", "obj_put.lto_priv.3".
 */
#pragma once

#include <stddef.h>

enum rt_clone {
	RT_CLONE_FULL, /* the function itself, whole, with its own parameters */
	RT_CLONE_ARGS, /* whole, but parameters may be missing or changed (isra, constprop) */
	RT_CLONE_PART, /* a piece of it (part, cold) */
};

/* Length of the source name in symbol, and what the symbol is of it. */
size_t rt_clone_base(const char *symbol, enum rt_clone *ret);
