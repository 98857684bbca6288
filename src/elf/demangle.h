/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of C++ and Rust symbols as their sources have them. */
#pragma once

#include <stdbool.h>

/* Does the name begin as mangled ones do? */
bool rt_is_mangled(const char *name);

/*
 * C++ or Rust (both of its schemes; without the hashes); NULL when name is not mangled, or is too long or too deep to
 * be read. Caller frees.
 */
char *rt_demangle(const char *name);
/* The same without parameters and the type that it returns: "std::sort<int*>". */
char *rt_demangle_name(const char *name);

/* Rust alone. */
char *rt_demangle_rust(const char *name);
