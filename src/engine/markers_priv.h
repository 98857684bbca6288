/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the events by marker and by cached definition share. */
#pragma once

#include <sys/stat.h>

#include "base/sink.h"
#include "engine/event_name_priv.h"
#include "engine/markers.h"
#include "engine/tracefs.h"
#include "engine/tracefs_own.h"
#include "insn/insn.h"

/* What -e asked for; strings owned. */
struct rt_wanted_marker {
	char *provider, *name; /* globs; NULL: it is no marker, and only its modifiers are kept here */
	char *file;            /* NULL: any */
	char *modifiers;       /* NULL: none */
	uint32_t strings;
	bool told; /* which are texts; else it is found out */
};

/* An event in our group of tracefs: "mNUMBER". */
struct rt_defined_event {
	unsigned number;
	char *group, *name; /* "sdt_PROVIDER", or that of the cache, with its mark; owned */
};

/* A counter that the kernel raises in the wrong place, in every process that maps the file from now on. */
struct rt_skewed_counter {
	size_t file, marker; /* indexes */
	dev_t dev;
	ino_t ino;
};

/* One of them that waits to be put right. */
struct rt_pending_counter {
	uint32_t pid;
	size_t skewed; /* index */
	uint64_t bias;
	unsigned tries;
};

/* A counter that we raise in every process that maps the file. */
struct rt_written_counter {
	dev_t dev;
	ino_t ino;
	struct rt_foff code, offset; /* of the marker and of the counter, in the file */
	uint64_t distance;           /* from the marker to the counter, in memory */
};

struct rt_markers {
	struct rt_marker_target target;
	struct rt_marker_files files;
	bool looked;
	int tracefs, tracefs_errno;
	char group[RT_TRACEFS_GROUP_MAX];
	RT_VEC(struct rt_wanted_marker) wanted;
	RT_VEC(struct rt_defined_event) defined;
	RT_VEC(struct rt_skewed_counter) skewed;
	RT_VEC(struct rt_pending_counter) pending;
	RT_VEC(struct rt_written_counter) written;
	struct rt_semaphores *semaphores; /* NULL: none is raised by us */
	struct rt_sink note, missed, fix, warning, debugged, unraised;
	size_t notes, late;
	struct rt_decoder *decoder;
};

/* Looks at the target's files, once. */
RT_CHECK struct rt_error *rt_markers_prepare(struct rt_markers *markers);
/* Would the kernel's breakpoint be hit, and do no harm? NULL, or why not. Static text. */
const char *rt_markers_unarmable(struct rt_markers *markers, const struct rt_image *image, struct rt_elfaddr address);
/* Notes an event of our group, as told to the kernel: its number is the next one. Strings are copied. */
RT_CHECK struct rt_error *rt_markers_defined(struct rt_markers *markers, const char *group, const char *name);
unsigned rt_markers_next_number(const struct rt_markers *markers);
/* Appends the events of markers->defined from first on. */
RT_CHECK struct rt_error *rt_markers_add_events(const struct rt_markers *markers, size_t first,
						struct rt_event_list *list);
/* Is the kernel to raise semaphores? */
static inline bool rt_markers_by_kernel(const struct rt_markers *m)
{
	return m->target.semaphore == RT_SEMAPHORE_AUTO || m->target.semaphore == RT_SEMAPHORE_KERNEL;
}
/* marker_written.c: notes a counter that we are to raise; nothing where we are not. fd: the file. */
RT_CHECK struct rt_error *rt_markers_note_written(struct rt_markers *m, int fd, const struct rt_image *image,
						  struct rt_foff code, struct rt_foff offset);
/* The process maps the file's code, or a part of it, by this line. */
RT_CHECK struct rt_error *rt_markers_raise(struct rt_markers *m, uint32_t pid, const struct rt_maps_line *line,
					   const struct stat *file);

/* The error of tracefs for what text asked for; what: a probe. */
RT_CHECK struct rt_error *rt_markers_refused(const struct rt_markers *m, const char *text, const char *what,
					     int errnum);
