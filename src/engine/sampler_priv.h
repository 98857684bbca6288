/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the sampler share. */
#pragma once

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "base/sink.h"
#include "elf/build_id.h"
#include "engine/event_name.h"
#include "engine/markers.h"
#include "engine/sampler.h"

/* In linux/perf_event.h since 6.0 and 5.x; older headers lack some. */
enum {
	RT_SAMPLE_BASE = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
	RT_TRAILER_BYTES = 32, /* of a record that is no sample: pid tid, time, cpu, identifier */
	RT_RECORD_FINISHED_ROUND = 68,
	RT_FORMAT_LOST = 1 << 4, /* PERF_FORMAT_LOST, Linux 6.0 */
	RT_MISC_BUILD_ID = 1 << 14,
};

struct rt_sampler_fd {
	int fd;
	uint64_t id;
};

/* Who an event is opened for. */
enum rt_sampler_scope {
	RT_SCOPE_TARGET, /* the threads of the target; with -a: everything */
	RT_SCOPE_SYSTEM, /* every CPU, whoever runs: BPF programs and kernel text belong to nobody */
};

/* One event: ATTR id = index + 1. */
struct rt_sampler_event {
	const struct rt_event_desc *desc; /* NULL: side-band */
	const char *name;
	enum rt_sampler_scope scope;
	struct perf_event_attr attr;
	RT_VEC(struct rt_sampler_fd) fds;
};

/*
 * Two per CPU: side-band records have one of their own that wakes us at once. A file that was mapped is to be opened as
 * long as its process lives, and a full ring of samples shall not push them out.
 */
struct rt_sampler_ring {
	uint32_t cpu;
	bool sideband;
	int fd; /* of the event that owns the buffer; owned by the event */
	struct perf_event_mmap_page *page;
	uint8_t *data;
	size_t bytes; /* a power of two */
};

struct rt_sampler {
	struct rt_side_source source; /* first: the sampler is its own side source */
	struct rt_sampler_options options;
	struct rt_event_list names;
	int tracefs, tracefs_errno; /* fd, -1 = not to be had */
	struct rt_markers *markers; /* NULL: they are no events */
	struct rt_map mapped;       /* files whose mapping was seen: hash of the path */
	RT_VEC(struct rt_sampler_event) events;
	RT_VEC(uint32_t) cpus;
	RT_VEC(struct rt_sampler_ring) rings;
	struct rt_map by_id; /* event id -> index of the event */
	struct rt_map tasks; /* processes of the target that live: tgid -> 1; empty with -a */
	size_t sideband;     /* index of the first side-band event */
	uint64_t sideband_id;
	bool started, enabled, launched;
	uint64_t lost_told; /* by LOST records */
	char *text, *note;
	struct rt_sink formats; /* RT_BLOB_TRACING_DATA */
	struct {
		bool looked;
		uint64_t start, end;   /* of its text; 0 = not told */
		struct rt_map modules; /* (address, hash of the name) -> number of the last look that found it */
		uint64_t looks;        /* at /proc/modules */
		uint64_t module_ns;    /* when a module came or went that was not looked for yet; 0: none did */
	} kernel;
	struct rt_event_list module_names; /* tracepoints of the side-band */
	uint64_t synth_ns;                 /* time of the records that we make; 0: of what was there before all */
	uint8_t *record;                   /* room for one wire record */
	struct rt_sampler_stats stats;
};

/* ---- sampler_attr.c: attributes, opening ---- */

/* Makes s->events from s->names and checks on ourselves (or a CPU) that the kernel takes them. */
RT_CHECK struct rt_error *rt_sampler_events(struct rt_sampler *s);
/* Adds a sentence to rt_sampler_note(). */
void rt_sampler_say(struct rt_sampler *s, const char *text);
int rt_sampler_perf_open(struct perf_event_attr *attr, int pid, int cpu);
/* The error for a refused event. */
RT_CHECK struct rt_error *rt_sampler_refused(const struct rt_sampler *s, const struct rt_sampler_event *event,
					     int errnum);
/* One number in a file below /; false: none. */
bool rt_sampler_number(const struct rt_sampler *s, const char *path, int64_t *ret);

/* ---- sampler_target.c: events for threads and CPUs ---- */

RT_CHECK struct rt_error *rt_sampler_arm(struct rt_sampler *s, const struct rt_side_target *target);
/* Numbers of "0-3,5", as the kernel writes lists of CPUs. */
RT_CHECK struct rt_error *rt_sampler_cpus(struct rt_sampler *s);

/* ---- sampler_ring.c ---- */

/* Maps the buffer of fd; halves it where the limit for locked memory says no. */
RT_CHECK struct rt_error *rt_sampler_ring_map(struct rt_sampler *s, uint32_t cpu, bool sideband, int fd);
/* Hands over what lies in all rings; *ret_some: there was something. */
RT_CHECK struct rt_error *rt_sampler_rings_read(struct rt_sampler *s, struct rt_event_sink *sink, bool *ret_some);
void rt_sampler_rings_unmap(struct rt_sampler *s);
/* Emits one record, whose bytes (header.size) may lie anywhere. */
RT_CHECK struct rt_error *rt_sampler_emit(struct rt_sampler *s, struct rt_event_sink *sink, const void *bytes);

/* ---- sampler_host.c ---- */

/* Reads the formats once: a uprobe's definition may be taken away while it is recorded. */
RT_CHECK struct rt_error *rt_sampler_read_formats(struct rt_sampler *s);
RT_CHECK struct rt_error *rt_sampler_emit_formats(struct rt_sampler *s, struct rt_event_sink *sink);

/* ---- sampler_synth.c: what was there before ---- */

/* A record under construction: header, body, name, trailer. */
struct rt_synth {
	union {
		struct perf_event_header header;
		uint8_t bytes[8192];
		uint64_t align;
	};
	size_t size;
};

void rt_synth_begin(struct rt_synth *r, uint32_t type, uint16_t misc);
void rt_synth_add(struct rt_synth *r, const void *data, size_t size);
/* A NUL-terminated string, padded to 8; cut where it does not fit. */
void rt_synth_string(struct rt_synth *r, const char *text);
/* Adds the trailer and emits. */
RT_CHECK struct rt_error *rt_synth_end(struct rt_synth *r, struct rt_sampler *s, struct rt_event_sink *sink,
				       uint32_t pid, uint32_t tid);

/* COMM, FORK and MMAP2 of the processes in s->tasks, or of all with -a. */
RT_CHECK struct rt_error *rt_sampler_emit_tasks(struct rt_sampler *s, struct rt_event_sink *sink);

/* What MMAP2 holds between pgoff and the name. */
struct rt_synth_map {
	uint32_t pid, tid;
	uint64_t start, bytes, offset;
	uint32_t major, minor;
	uint64_t inode;
	uint32_t prot, flags;
	uint16_t cpumode;
	struct rt_build_id build_id;
	const char *name;
};
RT_CHECK struct rt_error *rt_sampler_emit_map(struct rt_sampler *s, struct rt_event_sink *sink,
					      const struct rt_synth_map *map);

/* ---- sampler_kernel.c, sampler_module.c, sampler_bpf.c ---- */

/* Tracepoints that tell of modules, into s->module_names; none where the kernel has no modules, or does not let us ask.
 */
RT_CHECK struct rt_error *rt_sampler_watch_modules(struct rt_sampler *s);
/* The modules of now: all, or what is new since the last look. */
RT_CHECK struct rt_error *rt_sampler_emit_modules(struct rt_sampler *s, struct rt_event_sink *sink, bool all);
/* After s->kernel.module_ns was set: what is new, as of then. */
RT_CHECK struct rt_error *rt_sampler_module_changed(struct rt_sampler *s, struct rt_event_sink *sink);

/* The kernel's own map and modules; BPF programs that are loaded already. What may not be asked is left out. */
RT_CHECK struct rt_error *rt_sampler_emit_kernel(struct rt_sampler *s, struct rt_event_sink *sink);
RT_CHECK struct rt_error *rt_sampler_emit_bpf(struct rt_sampler *s, struct rt_event_sink *sink);
