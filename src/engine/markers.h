/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SDT markers as events: found by name in the target's files and the build-id cache, and defined in tracefs, in a group
 * of our own, as long as the recording lasts. The names that -e takes:
 *
 *     sdt_PROVIDER:NAME   %sdt_PROVIDER:NAME   sdt:PROVIDER:NAME     globs in both parts
 *     sdt_PROVIDER:NAME:string=1+2                                   arguments 1 and 2 point to texts
 *     sdt_PROVIDER:NAME@FILE                                         in this file
 *
 * An event is the same at all places where the marker was compiled in, in all files that have it.
 */
#pragma once

#include "engine/event_name.h"
#include "engine/marker_files.h"

struct rt_markers;

/* tracefs: its folder, -1: none, see tracefs_errno. The target's strings must outlive *ret. Looks at nothing yet. */
RT_CHECK struct rt_error *rt_markers_create(const struct rt_marker_target *target, int tracefs, int tracefs_errno,
					    struct rt_markers **ret);

/* Does it name a marker? *ret_only: and nothing else ("%sdt_...", "sdt:...", "...@FILE"). */
bool rt_markers_is_name(const char *text, bool *ret_only);

/*
 * Appends the events of a name. *ret_modifiers: those behind it (NULL: none), valid as long as the markers.
 * RT_E_NOT_FOUND where no file has such a marker, with near names; RT_E_UNARMED where none of them can be probed;
 * RT_E_PRIVILEGE, RT_E_KERNEL for tracefs.
 */
RT_CHECK struct rt_error *rt_markers_find(struct rt_markers *markers, const char *text, struct rt_event_list *list,
					  const char **ret_modifiers);

/* Whether any marker was asked for, or any definition found (rt_markers_find(), rt_markers_find_kept()). */
bool rt_markers_wanted(const struct rt_markers *markers);

/*
 * The same for a definition that the build-id cache keeps: "[%][GROUP:]EVENT[:MODIFIERS][@FILE]", globs in both parts;
 * in the target's files, else where the cache saw the file. RT_E_BUILD_ID where it was made for another file, and the
 * target does not allow that.
 */
RT_CHECK struct rt_error *rt_markers_find_kept(struct rt_markers *markers, const char *text, struct rt_event_list *list,
					       const char **ret_modifiers);

/* A file that the target has mapped. One with a marker that was asked for, and that was not known before, is noted. */
RT_CHECK struct rt_error *rt_markers_mapped(struct rt_markers *markers, uint32_t pid, const struct rt_maps_line *line);

/* The same of every mapping of a file: the process begins to use it, and its counters may have to be put right. */
RT_CHECK struct rt_error *rt_markers_began(struct rt_markers *markers, uint32_t pid, const struct rt_maps_line *line);

/* A process of the target has forked; while the recording goes on. leave: the child is not followed. */
RT_CHECK struct rt_error *rt_markers_forked(struct rt_markers *markers, uint32_t parent, uint32_t child, bool leave);

/* Goes on with what could not be put right yet. Now and then. */
RT_CHECK struct rt_error *rt_markers_settle(struct rt_markers *markers);

/* Lowers the counters that we have raised. rt_markers_unraised() then says which never could be; NULL: none. */
void rt_markers_lower(struct rt_markers *markers);
const char *rt_markers_unraised(const struct rt_markers *markers);

/* The kernel takes one semaphore for a place, whoever asks first; EINVAL for others. */
#define RT_MARKER_CONFLICT_FIX \
	"another tracer may have a probe there with another semaphore, or with none: end it, or delete its " \
	"definition " \
	"(see " \
	"/sys/kernel/tracing/uprobe_events, and bpftool link), then record again; beside one with none: " \
	"--semaphore=write"

/*
 * RT_E_TRACED where a debugger holds a process of the target that is attached to. The kernel would take its breakpoints
 * for our own: it would see none of them any more, and the counters that it has raised would be lowered twice. To be
 * asked before the events are opened.
 */
RT_CHECK struct rt_error *rt_markers_check_debuggers(const struct rt_markers *markers);
/*
 * Looks for one that has come since, before the events are closed: what it has saved of the program holds breakpoints
 * of ours. rt_markers_debugged() then says so; else it is NULL.
 */
void rt_markers_find_debuggers(struct rt_markers *markers);
const char *rt_markers_debugged(const struct rt_markers *markers);

/* What cannot be recorded of the events, for people; NULL: nothing. */
const char *rt_markers_note(const struct rt_markers *markers);
/* What may be wrong with the events, because it was allowed; NULL: nothing. */
const char *rt_markers_warning(const struct rt_markers *markers);
/* What was missed by now, because its file was loaded later; NULL: nothing. *ret_fix: what helps. */
const char *rt_markers_missed(const struct rt_markers *markers, const char **ret_fix);

/* Takes the definitions away; their perf events are closed by then. */
void rt_markers_destroy(struct rt_markers *markers);
RT_CLEANUP(struct rt_markers *, rt_markers_destroy);
