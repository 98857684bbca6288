/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of C++ and Rust symbols as their sources have them. */
#pragma once

/* C++ (and Rust v0/legacy as far as libstdc++ knows) demangling; NULL when name is not mangled. Caller frees. */
char *rt_demangle(const char *name);
/* The same without parameters and the type that it returns: "std::sort<int*>". */
char *rt_demangle_name(const char *name);
