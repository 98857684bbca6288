/* SPDX-License-Identifier: GPL-2.0-only */
/* Which files a module has loaded while it runs (dlopen(3)): libselinux asks for libsepol by a name in its code. */
#pragma once

#include "base/vec.h"
#include "elf/image.h"
#include "elf/symtab.h"

struct rt_opens {
	bool all;                   /* the module opens no other files than these, as its code tells */
	RT_VEC(const char *) names; /* as they are given to dlopen(); strings of the image, each may be there twice */
};

/*
 * For x86-64; of others it is known only that they never ask. The module that has dlopen() itself opens what others ask
 * it for: that tells nothing of it. Only memory can run out.
 */
RT_CHECK struct rt_error *rt_opens_find(const struct rt_image *image, const struct rt_symtab *symtab,
					struct rt_opens *ret);
void rt_opens_deinit(struct rt_opens *opens);
