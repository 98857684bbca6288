/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Probes for a host that has no reftrace: a POSIX shell script that needs od and tracefs alone, made to be piped to it
 * (reftrace probe export ... | ssh host sh). It reads the build-id note of the host's file, or of its kernel, before it
 * touches anything, and probes nothing else than what it has read.
 */
#pragma once

#include "base/sink.h"
#include "base/vec.h"

/* A line of uprobe_events without the file, or one of kprobe_events. Strings owned. */
struct rt_remote_probe {
	char type;      /* 'p', 'r' */
	char *event;    /* "GROUP/EVENT" */
	char *place;    /* "0x10a9(0x3020)"; of a kernel "_text+4711" */
	char *args;     /* " arg1=%di:u64", "" */
	char *function; /* of a kernel, for what is said about it; NULL: not told */
};

struct rt_remote {
	bool kernel; /* all of a kernel; else all of a file. Told before the first is added */
	RT_VEC(struct rt_remote_probe) probes;
};

/*
 * Appends a line of uprobe_events ("p:GROUP/EVENT PATH:0x10a9(0x3020) NAME=FETCH..."), or of kprobe_events
 * ("p:GROUP/EVENT _text+4711 NAME=FETCH...") with the function that it is in (NULL: not known). The kernel adds a place
 * to an event only where the arguments are of the same names and types: others get a name of their own, EVENT_1.
 * RT_E_FORMAT for what is no such line, or nothing that a kernel would take from one.
 */
RT_CHECK struct rt_error *rt_remote_add(struct rt_remote *remote, const char *line, const char *function);
void rt_remote_deinit(struct rt_remote *remote);

/* The lines as they are, for the file at path (of a kernel: NULL). RT_E_FORMAT for a path that a line cannot hold. */
RT_CHECK struct rt_error *rt_remote_lines(const struct rt_remote *remote, const char *path, struct rt_sink *sink);

/*
 * The script. path: where the file lies on the host, if the script is not told otherwise; any text (of a kernel: NULL).
 * build_id: lower-case hex. Whatever the strings hold, they are words in the script and nothing else.
 */
void rt_remote_script(const struct rt_remote *remote, const char *path, const char *build_id, struct rt_sink *sink);
