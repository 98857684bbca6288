/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the events by marker and by cached definition share. */
#pragma once

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
	struct rt_sink note, missed, fix, warning, debugged;
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
/* The error of tracefs for what text asked for; what: a probe. */
RT_CHECK struct rt_error *rt_markers_refused(const char *text, const char *what, int errnum);
