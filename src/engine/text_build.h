/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Builds wire records for engine text: what text.c has understood of a line
 * becomes records here. Names of types, points, frames and stacks get ids at
 * first sight, so that a file needs no declarations.
 */
#pragma once

#include "base/intern.h"
#include "engine/text.h"

/* One machine frame: the functions at one pc, innermost first, parts[] in text_build.frames. */
struct text_pc {
	uint32_t first, count;
	uint8_t hands; /* RT_HANDS_* of the function that has the frame */
	bool given;
	uint64_t later; /* text_fact.later of its frames, and given */
	uint64_t leaves;
};

/* What a line says of a frame beside its text. */
struct text_fact {
	const char *module, *linkage; /* NULL = not told */
	uint32_t module_id;
	uint64_t entry, callee; /* 0 = not told; callee: pc of the function that the call goes to */
	uint64_t later;         /* and of the one that is called later with what the call returned; text_frame_pc() */
	uint64_t leaves;        /* and the place that the function leaves by */
	bool given;             /* or with what it was given */
	uint8_t hands;          /* RT_HANDS_* */
};

struct text_type {
	uint32_t name;   /* in names */
	int32_t counter; /* offset, or RT_COUNTER_UNKNOWN */
};

struct text_point {
	uint32_t type, function; /* type id; function name in names */
	uint8_t op;
	uint16_t flags;
	uint64_t events;
};

struct text_build {
	RT_VEC(uint64_t) words;   /* the records, in order: each a multiple of 8 bytes */
	struct rt_intern names;   /* any text that is kept */
	struct rt_intern stacks;  /* pid and stack as written -> wire stack id */
	struct rt_intern groups;  /* machine frame as written -> index into pcs */
	struct rt_intern modules; /* paths that frames and processes name; id + MODULE_ID of the wire */
	struct rt_map fact_of;    /* frame as written, in names -> index into facts */
	struct rt_map declared;   /* number of a point line -> id */
	RT_VEC(struct text_fact) facts;
	RT_VEC(struct text_pc) pcs;
	RT_VEC(struct rt_frame) frames;
	RT_VEC(struct text_type) types;
	RT_VEC(struct text_point) points;
	struct rt_map functions; /* name -> entry address */
	struct rt_map point_ids; /* (type and op and flags, function) -> id */
	struct rt_map seqs;      /* producer -> counter */
	uint32_t module;         /* name of the module; 0 = the record is still to be made */
	const char *module_path;
};

/* What one event line says. */
struct text_event {
	uint64_t time_ns, object, aux, sp;
	uint32_t pid, tid, count, cpu, seq;
	int32_t delta;
	uint16_t flags;
	enum rt_op op;
	bool has_sp, has_slot, has_class, has_delta, has_seq;
	uint32_t point;                       /* declared one; 0 = by via */
	const char *type, *stack, *via, *cfa; /* not NUL-terminated; stack, via and cfa may be NULL */
	size_t type_len, stack_len, via_len, cfa_len;
};

/* Each false: out of memory, or (stack) RT_STACK_MAX frames are not enough. */
bool text_emit(struct text_build *b, const void *record, size_t size);
/* Id of the type, made with its record when new. attributes NULL: as it is. */
uint32_t text_type(struct text_build *b, const char *name, size_t len, const struct rt_wire_type *attributes,
		   const char *structure);
uint32_t text_point(struct text_build *b, uint32_t type, enum rt_op op, uint16_t flags, uint32_t aux, int32_t delta,
		    const char *function, size_t len);
/* A point by number: entry is where its function starts, 0 = by its name. second as in rt_record_point(). */
uint32_t text_declare(struct text_build *b, uint64_t number, const struct rt_wire_point *like, const char *function,
		      size_t len, const char *second);
uint32_t text_declared(const struct text_build *b, const char *s, size_t len); /* ":3" -> id; 0 = no such */
/* pc of the frame that is written s; 0: out of memory */
uint64_t text_frame_pc(struct text_build *b, const char *s, size_t len);
/* What else is known of a frame that is written s. */
bool text_frame_fact(struct text_build *b, const char *s, size_t len, const struct text_fact *fact);
uint32_t text_module_id(struct text_build *b, const char *path);
/* A piece of a line with %XX put back; NULL: out of memory. Lives as long as b. */
const char *text_unescape(struct text_build *b, const char *s, size_t len);
/* The process runs this program. */
bool text_program(struct text_build *b, const char *path, uint32_t pid, uint64_t time_ns);
bool text_event(struct text_build *b, const struct text_event *e);
/* What pc is called, innermost first; max > 0. */
size_t text_frames(const struct text_build *b, uint64_t pc, struct rt_frame *ret, size_t max);
/* Lists of words between commas, added to *ret: RT_EV_*, RT_HANDS_*. Where the word begins that is none; NULL: all are.
 */
const char *text_flags(const char *s, size_t len, uint16_t *ret);
const char *text_hands_list(const char *s, size_t len, uint8_t *ret);
/* Where the function leaves that pc is the first frame of; 0: not told. */
uint64_t text_frame_leaves(const struct text_build *b, uint64_t pc);
/* RT_HANDS_* of the machine frame at pc */
uint8_t text_frame_hands(const struct text_build *b, uint64_t pc);
/* text_fact.later of it, and given */
uint64_t text_frame_later(const struct text_build *b, uint64_t pc, bool *ret_given);
/* The thread of e stands in e's stack when its process ends, by this signal or none. */
bool text_stand(struct text_build *b, const struct text_event *e, uint32_t signal);
/* Next number of producer, skipping `skip` of them. */
uint32_t text_seq(struct text_build *b, uint32_t producer, uint32_t skip);
void text_build_deinit(struct text_build *b);
