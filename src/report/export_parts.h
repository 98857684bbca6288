/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of the exporters: what was collected, as the writers of the formats see it. */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "report/export.h"

/* A source-level function at one line (or, without lines, one address). */
struct rt_ex_frame {
	uint32_t name, file, module; /* in strings; name 0 = unknown */
	uint32_t line;
	uint64_t address, entry; /* ELF addresses; kernel and BPF code: run-time addresses */
	uint64_t build;          /* in strings: build-id in hex; 0 = none */
	bool inlined, kernel;
};

/* A call path: its innermost frame, and the path of the caller. Parents have smaller numbers. */
struct rt_ex_node {
	uint32_t parent, frame; /* parent 0 = outermost */
};

/* One way of counting: a type of objects, or a perf event. */
struct rt_ex_class {
	uint32_t name;     /* in strings */
	bool lives, clock; /* clock: periods are ns */
	uint64_t samples;
};

enum { RT_EX_OPEN, RT_EX_GETS, RT_EX_PUTS, RT_EX_SAMPLES = 0, RT_EX_PERIOD, RT_EX_VALUES = 3 };

struct rt_ex_count {
	uint32_t class, who, node; /* index; who: command of samples, in strings, 0 = lives */
	int64_t value[RT_EX_VALUES];
};

struct rt_ex_sample {
	uint64_t time_ns, period;
	uint32_t pid, tid, comm, cpu;
	uint32_t node, class;
};

struct rt_ex_step {
	uint64_t time_ns;
	uint64_t first;            /* number of the first reference that it opens; they follow each other */
	uint32_t tid, node, point; /* point: index */
	uint16_t opens, closes;
	uint8_t op;
	bool after_end;
};

/* A reference that step closed; step: index in the life. */
struct rt_ex_closed {
	uint64_t reference;
	uint32_t step;
};

struct rt_ex_reference {
	uint64_t number, slot;
	uint32_t node, tid, act;
};

struct rt_ex_life {
	uint64_t object, serial, birth_ns, end_ns;
	uint32_t pid, class;
	bool ended, died;
	uint64_t left_out; /* steps */
	RT_VEC(struct rt_ex_step) steps;
	RT_VEC(struct rt_ex_closed) closed;
	RT_VEC(struct rt_ex_reference) open;
};

struct rt_ex_point {
	uint32_t name, class; /* class: index */
};

struct rt_export {
	struct rt_life_observer observer; /* first: what the lifetime calls is cast to the whole */
	struct rt_namer *namer;
	struct rt_lifetime *lifetime;
	struct rt_sink *sink;
	struct rt_export_options options;
	const char *const *command;
	enum rt_export_format format;
	bool by_life, by_sample; /* the format shows them one by one */
	bool nomem;              /* of the observer, which cannot fail */
	uint32_t only_event;     /* class + 1 of folded */

	struct rt_intern strings;
	struct rt_intern frame_ids;
	RT_VEC(struct rt_ex_frame) frames; /* by number - 1 */
	RT_VEC(struct rt_ex_node) nodes;   /* by number - 1 */
	struct rt_map node_by_key;
	RT_VEC(uint32_t) node_of_place;
	RT_VEC(uint32_t) place_frames; /* innermost first */
	struct rt_map place_by_ip;

	RT_VEC(struct rt_ex_class) classes;
	struct rt_map class_of_type, class_of_event, point_by_id;
	RT_VEC(struct rt_ex_point) points;
	RT_VEC(struct rt_ex_count) counts;
	struct rt_map count_by_key;

	struct rt_map life_by_serial; /* (class, serial) -> index of lives + 1, of those not ended */
	RT_VEC(struct rt_ex_life *) lives;
	size_t ended_lives; /* kept */
	uint64_t next_reference;

	struct rt_map comm_by_tid, epoch_by_pid;
	RT_VEC(struct rt_ex_sample) samples;
	uint64_t first_ns, last_ns;
	struct rt_export_result result;
};

/* export_stack.c: 0 = no stack, or too many of them; *ok false: out of memory */
uint32_t rt_ex_place(struct rt_export *e, uint32_t place, bool *ok);
uint32_t rt_ex_chain(struct rt_export *e, uint32_t pid, uint64_t time_ns, uint64_t ip, const uint64_t *chain,
		     size_t count, bool *ok);
static inline const struct rt_ex_node *rt_ex_node(const struct rt_export *e, uint32_t node)
{
	return &e->nodes.data[node - 1];
}
static inline const struct rt_ex_frame *rt_ex_frame(const struct rt_export *e, uint32_t frame)
{
	return &e->frames.data[frame - 1];
}
/* What a viewer shows for the function: its name, or module or address in brackets. */
const char *rt_ex_function(const struct rt_export *e, struct rt_arena *arena, const struct rt_ex_frame *frame);
/* The innermost function is the same. */
bool rt_ex_same_site(const struct rt_export *e, uint32_t a, uint32_t b);
/* Functions between two call paths. */
unsigned rt_ex_distance(const struct rt_export *e, uint32_t a, uint32_t b);

/* export.c: the counters of (class, who, node), made when new; NULL: out of memory */
struct rt_ex_count *rt_ex_count(struct rt_export *e, uint32_t class, uint32_t who, uint32_t node);
static inline const char *rt_ex_text(const struct rt_export *e, uint32_t string)
{
	return rt_intern_text(&e->strings, string);
}
/* "reftrace", or the command */
const char *rt_ex_title(const struct rt_export *e, struct rt_arena *arena);

/* export_life.c */
void rt_ex_observe(struct rt_export *e);
RT_CHECK struct rt_error *rt_ex_lives_end(struct rt_export *e);
void rt_ex_lives_free(struct rt_export *e);

/* The writers. */
RT_CHECK struct rt_error *rt_ex_folded(struct rt_export *e);
RT_CHECK struct rt_error *rt_ex_perfetto(struct rt_export *e);
RT_CHECK struct rt_error *rt_ex_speedscope(struct rt_export *e);
RT_CHECK struct rt_error *rt_ex_firefox(struct rt_export *e);
RT_CHECK struct rt_error *rt_ex_pprof(struct rt_export *e);
RT_CHECK struct rt_error *rt_ex_refcount(struct rt_export *e);
