/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session over an engine that arms nothing and writes down what it was asked
 * for. The stop at the dynamic linker's hook is real: a few instructions in the
 * target's copy of the linker send the same signal that engine K sends.
 */
#pragma once

#include <sys/types.h>

#include "session/session.h"

enum { RIG_RECORDS = 20000, RIG_CALLS = 20000 };

enum rig_call_kind { RIG_EXTEND, RIG_STOP_AT, RIG_FORGET, RIG_STOP, RIG_CLOSE };

struct rig_call {
	enum rig_call_kind kind;
	uint32_t pid, wire_pid;
	size_t points;
	char file[64]; /* basename of what was armed */
	size_t at;     /* number of records before the call */
};

struct rig {
	struct rt_event_sink sink;
	struct rt_session_options options;
	struct rt_session_hooks hooks;
	struct rt_spec spec;
	struct rt_session *session;
	char dir[64];
	struct rt_wire_head *records[RIG_RECORDS]; /* owned copies */
	size_t record_count;
	struct rig_call calls[RIG_CALLS];
	size_t call_count;
	/* called inside extend(); may be NULL */
	void (*on_extend)(struct rig *rig, const struct rt_arm *arm);
	/* called on every tick; may be NULL */
	void (*on_tick)(struct rig *rig);
	/* live objects for the census; may be NULL */
	void (*on_live)(struct rig *rig, uint32_t pid, bool (*visit)(const struct rt_live *live, void *arg), void *arg);
	int ticks;
	const char *refuse; /* extend() fails with this */
	bool no_stop;       /* stop_at is ignored */
	/* one event (and its stack) to be handed out at the next drain */
	struct rt_wire_event queued;
	struct rt_wire_stack *queued_stack;
};

/* A rig with a temporary directory; spec NULL: scan. */
void rig_init(struct rig *rig, const char *spec);
void rig_deinit(struct rig *rig);
/* Compiles source to dir/name; flags as for gcc. */
void rig_build(struct rig *rig, const char *name, const char *source, const char *flags);
/* dir/name; valid until the next call but seven. */
const char *rig_path(const struct rig *rig, const char *name);
/* Runs a session over the command (launch) or rig->options.pids. */
struct rt_error *rig_run(struct rig *rig, const char *const *command);
/* Destroys the session of rig_run(), if there is one. */
void rig_end_session(struct rig *rig);
/* Whole text of dir/name; "" when it is not there. Static buffer. */
const char *rig_file(const struct rig *rig, const char *name);

/* nth record (from 0) of the kind and wire pid (0 = any), NULL when there are fewer. */
const void *rig_record(const struct rig *rig, enum rt_wire_kind kind, uint32_t pid, size_t nth);
size_t rig_count(const struct rig *rig, enum rt_wire_kind kind, uint32_t pid);
/* Index of a record in rig->records. */
size_t rig_index(const struct rig *rig, const void *record);
/* First call of the kind about this pid and file (NULL = any), or NULL. */
const struct rig_call *rig_call(const struct rig *rig, enum rig_call_kind kind, uint32_t pid, const char *file);
