/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a program brings the runtime of a sanitizer: these lay out its memory, and look after it at its end. */
#pragma once

#include "elf/symtab.h"

struct rt_sanitizer {
	const char *name;                    /* "AddressSanitizer" */
	const char *start;                   /* the function that its runtime begins with */
	const char *library, *clang_library; /* what the runtime's file is called, as a library; NULL: it is none */
	bool leaks;                          /* it looks for leaks at the end, as a tracer of all threads */
};

/* That of a program with these symbols: linked into it, or among the libraries that it asks for. NULL: none. */
RT_CHECK struct rt_error *rt_image_sanitizer(const struct rt_image *image, const struct rt_symtab *symtab,
					     const struct rt_sanitizer **ret);

/* That whose runtime is the library of this path or name. NULL: none. Static. */
const struct rt_sanitizer *rt_sanitizer_of_library(const char *path);
