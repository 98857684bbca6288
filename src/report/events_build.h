/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of the writer of .events texts. */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "report/events.h"

/* A stack as it came, and as it is written once an event has it. */
struct rt_events_stack {
	uint32_t raw;  /* the record, in texts */
	uint32_t text; /* 0 = not yet */
	uint32_t cfa;  /* list of CFAs, 0 = it has no frames */
};

struct rt_events {
	struct rt_namer *namer;
	struct rt_intern texts;
	struct rt_intern frames; /* frames whose facts are written */
	RT_VEC(struct rt_events_stack) stacks;
	struct rt_map stack_by_id;   /* (pid, wire id) -> index */
	struct rt_map machine_by_pc; /* (pc, pid and return) -> text */
	struct rt_map types;         /* wire id -> name, in texts */
	struct rt_map points;        /* wire id -> wire id of the type */
	struct rt_map programs;      /* wire id of a main module -> path, in texts */
	struct rt_map running;       /* pid -> path */
	struct rt_map generations;   /* what the reader takes for the generation of a pid */
	bool begun;                  /* a time was told */
	uint32_t pid, tid;           /* that hold for the next line */
	struct rt_arena arena;       /* of one record */
};

/* text with %XX for blanks, control characters and the bytes of special; "" without memory */
const char *rt_events_escape(struct rt_events *w, const char *text, const char *special);

RT_CHECK struct rt_error *rt_events_keep(struct rt_events *w, const struct rt_wire_stack *r);
/* The stack of e, named; facts of new frames are written before. NULL where there is none. */
RT_CHECK struct rt_error *rt_events_stack(struct rt_events *w, const struct rt_wire_event *e, struct rt_sink *sink,
					  const struct rt_events_stack **ret);
