/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions as sources of C++ and Rust name them, "ns::Class::get", "f(int, char*)", "<ns::Node>::drop", against the
 * names of the linker. Outer namespaces may be left out, as in debuggers. What is in brackets belongs to the name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Text that is gone through; start and end are of the word, opened is the outermost bracket that is open. */
struct rt_name_scan {
	const char *start, *end, *opened;
	unsigned depth;
	bool classes; /* "[a-z]" is a bracket outside of others, too */
};

/* Behind the character at c, or behind all that belongs together: a backslash and what follows, "operator<<". */
const char *rt_name_step(struct rt_name_scan *scan, const char *c);

/* Can the name only be one of a source: has it "::", parameters, arguments of a template, a sign, or a backslash? */
bool rt_source_is(const char *name);

/*
 * Writes the name as a pattern of rt_glob_match() into out, which has room for 2 * len + 1 bytes. A star or bracket of
 * a type ("char*", "<[T]>::len") means itself. *ret_is_glob: something in it does not.
 */
void rt_source_pattern(const char *name, size_t len, char *out, bool *ret_is_glob);

/* Does a name of a spec stand for others? */
bool rt_spec_is_glob(const char *name);

/*
 * Is the symbol of this linker's name, or its end behind a "::", what fits() takes? It is asked about the name without
 * parameters, with them where `parameters` says so, and of Rust's "<ns::Node>::get" and "<ns::Node as Trait>::get"
 * about "ns::Node::get", too.
 */
bool rt_source_fits(const char *linkage, bool parameters, bool (*fits)(const char *name, const void *arg),
		    const void *arg);
/* The same of a name as the source has it. */
bool rt_source_end_fits(const char *name, bool (*fits)(const char *name, const void *arg), const void *arg);

/* May the mangled name be one that this name or pattern means? Cheap, and never wrong when it says no. */
bool rt_source_may_fit(const char *name, const char *mangled);

/*
 * Does a name of a spec, glob or source's name, mean the function of this linker's name? What has no "::" before it is
 * a C function, or with `plain` a function of C++ outside of all namespaces, too.
 */
bool rt_spec_means(const char *spec, const char *linkage, bool plain);
