/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parser and the scan share about types of a spec.
 */
#pragma once

#include <ctype.h>
#include <string.h>

#include "probe/source_name.h"
#include "probe/spec.h"

/* Arguments that are passed in registers. */
#define RT_SPEC_ARG_MAX 6
#define RT_SPEC_LEVELS_MAX 2
/* Of a marker, sys/sdt.h. */
#define RT_SPEC_MARKER_ARG_MAX 12

#define RT_SPEC_MARKER "sdt:" /* what the names of markers begin with */
#define RT_SPEC_KEPT "%"      /* and those of definitions of the build-id cache */

/* Of names of types and functions of C, whatever their character set. */
static inline bool rt_spec_is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || (unsigned char)c >= 0x80;
}

static inline bool rt_spec_is_kept(const struct rt_spec_function *function)
{
	return !strncmp(function->name, RT_SPEC_KEPT, sizeof(RT_SPEC_KEPT) - 1);
}

/* A place with arguments of its own: a marker of the file, or a definition that is kept of it. */
static inline bool rt_spec_is_marker(const struct rt_spec_function *function)
{
	const size_t len = sizeof(RT_SPEC_MARKER) - 1;

	/* "sdt::get" is a function of a namespace */
	return (!strncmp(function->name, RT_SPEC_MARKER, len) && function->name[len] != ':') ||
	       rt_spec_is_kept(function);
}

/* Does its name stand for others, or for what the linker calls otherwise? */
static inline bool rt_spec_is_pattern(const struct rt_spec_function *function)
{
	return !rt_spec_is_marker(function) && (rt_glob_is(function->name) || rt_source_is(function->name));
}

/* It comes from a preset. */
static inline bool rt_spec_is_preset(const struct rt_spec_type *type)
{
	return type->origin && !strncmp(type->origin, "presets/", 8);
}

/* Did the user name it? Presets and scans name what may be there. */
static inline bool rt_spec_is_told(const struct rt_spec_type *type)
{
	return type->origin && !rt_spec_is_preset(type) && strcmp(type->origin, "scan") != 0;
}

/* Nobody told us that this program has all of its functions. */
static inline bool rt_spec_is_guessed(const struct rt_spec_type *type)
{
	for (size_t i = 0; i < type->functions.len; i++) {
		if (type->functions.data[i].guessed)
			return true;
	}
	return false;
}

/* One of its functions does this. Without a get each object has one owner, or nobody knows how it is counted. */
static inline bool rt_spec_has_op(const struct rt_spec_type *type, enum rt_op op)
{
	for (size_t i = 0; i < type->functions.len; i++) {
		if (type->functions.data[i].op == op)
			return true;
	}
	return false;
}

/* Where its counter lies was told, or found by a scan: it may be counted where no function does it. */
static inline bool rt_spec_has_counter(const struct rt_spec_type *type)
{
	return type->counter_struct || type->counter_offset != RT_COUNTER_UNKNOWN;
}

/* Nothing counts its objects: they are made and freed. */
static inline bool rt_spec_is_only_made(const struct rt_spec_type *type)
{
	return !rt_spec_has_op(type, RT_OP_GET) && !rt_spec_has_op(type, RT_OP_PUT) && !rt_spec_has_counter(type);
}

/* The functions' common prefix without what joins it ("obj" of obj_get, obj_put), else "object". NULL: out of memory.
 */
char *rt_spec_common_stem(const struct rt_spec_type *type);

/* true when type already has this function with the same op, place, file and condition. */
bool rt_spec_has_function(const struct rt_spec_type *type, const struct rt_spec_function *function);

/*
 * Moves all of from into *into, types of one name joined; on failure nothing has changed. RT_E_SPEC: joined, a type
 * would have objects of two kinds.
 */
RT_CHECK struct rt_error *rt_spec_join(struct rt_spec *into, struct rt_spec *from);

/* Names of presets that a text includes; owned. */
struct rt_spec_includes {
	RT_VEC(char *) names;
};

/* As rt_spec_parse(); what preset= names is added to *includes (also on failure). NULL: preset= is an error. */
RT_CHECK struct rt_error *rt_spec_parse_including(const char *text, size_t len, const char *origin,
						  struct rt_spec *spec, struct rt_spec_includes *includes);

void rt_spec_type_deinit(struct rt_spec_type *type);
