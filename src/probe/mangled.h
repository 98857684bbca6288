/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mangled names of C++ methods, as far as families need them: the class and
 * the method. Names with templates or operators are left alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* "_ZN5scene4Node3refEv": prefix "_ZN5scene4Node" (bytes), klass "Node", method "ref", nothing behind: no arguments. */
struct rt_mangled {
	const char *klass, *method; /* into the name, not terminated */
	size_t prefix, klass_len, method_len;
	bool plain; /* takes no arguments (but this) */
};

bool rt_mangled_method(const char *name, struct rt_mangled *ret);

/*
 * The method takes a reference ("ref", "AddRef"): the i-th name of a method of the same class that gives it back;
 * NULL at the end, or when it does not.
 */
const char *rt_mangled_put(const struct rt_mangled *get, size_t i);

/* "create", "make": a static method that makes objects of its class. */
bool rt_mangled_is_new(const struct rt_mangled *method);
