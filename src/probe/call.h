/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls as functions of a spec ("sys:openat"): what the kernel hands out and takes back. They are seen in the
 * kernel, whoever makes them: the C library, a program without one, or the library's own inner functions.
 */
#pragma once

#include "probe/spec.h"

#define RT_SPEC_CALL "sys:" /* what the names of system calls begin with */

/* What a call's objects are. */
enum rt_call_kind {
	RT_CALL_DESCRIPTOR, /* small numbers, 0 among them */
	RT_CALL_MAPPING,    /* ranges of addresses */
};

/* Whether what it hands out comes with messages that it was given room for. */
enum rt_call_message { RT_CALL_NO_MESSAGE, RT_CALL_ONE_MESSAGE, RT_CALL_MANY_MESSAGES };

struct rt_call {
	const char *name;
	uint16_t nr; /* of x86-64 */
	uint8_t kind;
	uint8_t message; /* enum rt_call_message */
	uint8_t match;   /* not 0: only where this argument is value */
	int32_t value;
};

enum { RT_CALL_NR_MAX = 512 }; /* more than any number of theirs */

/* The call of this name, without "sys:"; NULL: none that hands out or takes back descriptors or mappings. Static. */
const struct rt_call *rt_call_find(const char *name);

/* The call of a spec's function, NULL: it is none. */
const struct rt_call *rt_spec_call(const struct rt_spec_function *function);

/* Does the type consist of system calls? (The parser takes no mixture.) */
bool rt_spec_is_calls(const struct rt_spec_type *type);

/* All of them, from 0 on; NULL at the end. */
const struct rt_call *rt_call_at(size_t i);
