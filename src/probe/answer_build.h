/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of answer*.c. */
#pragma once

#include "probe/answer.h"
#include "probe/body.h"

struct rt_answer_build {
	const struct rt_request *request;
	const struct rt_answer_module *module;
	struct rt_answer *answer;
	struct rt_dwarf *debug; /* the module's, if there is more in it than unwind tables; else NULL */
	struct rt_body body;    /* of the function looked at last */
};

/* A place where a point is wanted. */
struct rt_answer_place {
	const struct rt_instance *instance; /* NULL: no debug information about it */
	const char *function;               /* its name; NULL: unknown */
	const char *key;
	struct rt_elfaddr address;
	bool exactly;   /* this instruction or none */
	bool is_entry;  /* of the function or instance */
	uint32_t named; /* line number for the event's name; 0: none */
};

/* One argument at one place. */
struct rt_answer_query {
	struct rt_answer_build *build;
	const struct rt_answer_place *place;
	struct rt_elfaddr address;      /* where it would be read: place->address, or a little behind */
	bool stores;                    /* something other than the frame was written between the two */
	struct rt_elfaddr prologue_end; /* of the function, as far as lines tell; v = 0: unknown */
	bool below;                     /* address is before it, and the place an entry */
	bool early;                     /* told back: something will be in the frame a little later */
};

/* Finds the instruction and the arguments for a place, and adds the point. */
RT_CHECK struct rt_error *rt_answer_add(struct rt_answer_build *b, const struct rt_answer_place *place);

/* All arguments of the request, as of query. RT_E_NOT_FOUND, RT_E_UNSUPPORTED name the one and the reason. */
RT_CHECK struct rt_error *rt_answer_arguments(struct rt_answer_query *query, struct rt_answer_point *ret);

/* Points of FUNC:LINE, FUNC;PATTERN, FILE:LINE and FILE;PATTERN; instances: of FUNC. */
RT_CHECK struct rt_error *rt_answer_lines(struct rt_answer_build *b, const struct rt_instance *instances, size_t count);

/* The code around addr is then in b->body. */
RT_CHECK struct rt_error *rt_answer_body(struct rt_answer_build *b, struct rt_elfaddr addr);

/* A note for the user. Without memory it is lost. */
void rt_answer_note(struct rt_answer_build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* printf into the answer's arena; "" without memory. */
const char *rt_answer_text(struct rt_answer_build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "f at 0x1170 (a.c:12)" */
const char *rt_answer_where(struct rt_answer_build *b, const struct rt_answer_place *place);
