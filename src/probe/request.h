/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a user asks to be probed, in perf's language (perf-probe(1), PROBE SYNTAX and PROBE ARGUMENT), as far as it is
 * text: nothing is looked up here.
 *
 *     [[GROUP:]EVENT=]FUNC[@FILE][+OFFSET|%return|:LINE|;PATTERN] [ARG...]
 *     [[GROUP:]EVENT=]FILE:LINE | FILE;PATTERN | 0xADDRESS | [%]sdt_PROVIDER:NAME | %PROVIDER:NAME
 *     %GROUP:EVENT | %EVENT                a definition of the build-id cache
 *
 *     ARG: [NAME=]VARIABLE[->MEMBER|.MEMBER|[INDEX]]...[:TYPE][@user] | $params | $vars | $retval
 *          [NAME=]FETCH[:TYPE]      as in Documentation/trace/uprobetracer.rst of Linux
 *
 * A backslash takes the meaning from the character behind it; blanks inside of <>, () and {} belong to the name.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sink.h"
#include "base/vec.h"
#include "dwarf/variable.h"

enum { RT_REQUEST_DEREFS_MAX = 16, RT_REQUEST_NAME_MAX = 63, RT_REQUEST_ARGUMENT_NAME_MAX = 31 };

enum rt_request_kind {
	RT_REQUEST_FUNCTION,
	RT_REQUEST_LINE,    /* file, line */
	RT_REQUEST_SOURCE,  /* file, pattern */
	RT_REQUEST_ADDRESS, /* ELF address */
	RT_REQUEST_MARKER,  /* provider (NULL: any group of the build-id cache), function is its name */
};

enum rt_fetch_base {
	RT_FETCH_REG,         /* name: as the kernel calls it */
	RT_FETCH_STACK,       /* the stack's address */
	RT_FETCH_STACK_ENTRY, /* number */
	RT_FETCH_COMM,
	RT_FETCH_ARGUMENT, /* number from 1 */
	RT_FETCH_NUMBER,   /* number */
	RT_FETCH_TEXT,     /* name */
	RT_FETCH_ADDRESS,  /* what lies at the run-time address number */
	RT_FETCH_OFFSET,   /* what lies where offset number of the file is mapped */
	RT_FETCH_SYMBOL,   /* what lies at symbol name + number */
};

/* One of tracefs' own arguments: the base, and what is read from it on, innermost first. */
struct rt_request_fetch {
	enum rt_fetch_base base;
	const char *name;
	int64_t number;
	unsigned derefs;
	int64_t offset[RT_REQUEST_DEREFS_MAX];
	bool user[RT_REQUEST_DEREFS_MAX];
};

enum rt_argument_kind {
	RT_ARGUMENT_VARIABLE,
	RT_ARGUMENT_FETCH,
	RT_ARGUMENT_RETVAL,
	RT_ARGUMENT_PARAMS,
	RT_ARGUMENT_VARS
};

struct rt_request_argument {
	const char *text; /* as it was written */
	enum rt_argument_kind kind;
	const char *name;     /* that the user gives it; NULL: none */
	const char *variable; /* RT_ARGUMENT_VARIABLE */
	struct rt_trail *steps;
	size_t step_count;
	struct rt_request_fetch fetch; /* RT_ARGUMENT_FETCH */
	const char *type;              /* of tracefs; NULL: what the debug information says */
	bool user;
};

/* Strings and steps live in the arena. */
struct rt_request {
	struct rt_arena arena;
	const char *text; /* the whole */
	const char *group, *event;
	enum rt_request_kind kind;
	const char *function; /* is_glob: a pattern for rt_glob_match(); a marker's name always is one */
	bool is_glob;
	const char *file, *pattern, *provider;
	uint64_t offset; /* behind the function's entry, or the address */
	uint32_t line;   /* from the function's first line, or of the file */
	bool has_line;   /* of a function */
	bool cached;     /* "%...": a marker, else a definition of the build-id cache */
	bool at_return;
	RT_VEC(struct rt_request_argument) arguments;
};

/* RT_E_SPEC says at which column what is wrong. *ret is to be freed by rt_request_deinit() in any case. */
RT_CHECK struct rt_error *rt_request_parse(const char *text, struct rt_request *ret);
void rt_request_deinit(struct rt_request *request);

/*
 * The request as perf writes it into its caches (synthesize_perf_probe_command() in tools/perf/util/probe-event.c of
 * Linux 6.1), so that either tool finds what the other has kept: "[GROUP:EVENT=]FUNC[+N|:N|%return][@FILE]
 * [NAME=]VAR...". group is that of an event that was named without one. What perf would split elsewhere is escaped, a
 * blank in a name is '?'. RT_E_UNSUPPORTED, and nothing written, for what perf could not read back: it refuses the
 * whole file then.
 */
RT_CHECK struct rt_error *rt_request_write(const struct rt_request *request, const char *group, struct rt_sink *sink);

/* A type that tracefs knows: "u32", "string", "x8[4]", "b3@2/8". */
bool rt_request_is_type(const char *text, size_t len);
