/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Definitions that a build-id cache keeps (cache/probes.h): found by the names of their events, and read again for a
 * file that may lie elsewhere by now. What the lines say of a path is where the file was once, and is not used.
 */
#pragma once

#include "cache/cache.h"
#include "elf/image.h"
#include "probe/request.h"

/* One line: "p:GROUP/EVENT PATH:0xOFFSET(0xSEMAPHORE) ARGS". */
struct rt_cached_line {
	bool at_return;
	char group[RT_REQUEST_NAME_MAX + 1], event[RT_REQUEST_NAME_MAX + 1];
	struct rt_foff offset;
	struct rt_foff semaphore; /* v = 0: none */
	const char *arguments;    /* each with a blank before it, or ""; points into the line */
};

/* false: it is no such line, or nothing that a kernel should be given. */
bool rt_cached_read(const char *line, struct rt_cached_line *ret);

/*
 * Is the entry, by the names of its events, meant by group (NULL: any) and event? Globs. A marker's group fits with and
 * without "sdt_".
 */
bool rt_cached_fits(const struct rt_probes_entry *entry, const char *group, const char *event);

/*
 * Keeps the lines that a request stands for, in the place of what it or its event's name stood for until now, as perf
 * does. group: of an event that was named without one. Errors of rt_request_write() and rt_probes_set(); then nothing
 * has changed.
 */
RT_CHECK struct rt_error *rt_cached_set(struct rt_probes *probes, const struct rt_request *request, const char *group,
					const char *const *lines, size_t count);

/* The entry of the same words, perf's or ours; NULL: none. Only memory can run out. */
RT_CHECK struct rt_error *rt_cached_find(const struct rt_probes *probes, const struct rt_request *request,
					 const char *group, const struct rt_probes_entry **ret);

/* How sure it is that a definition was made for the file that it is used on. */
enum rt_cached_trust {
	RT_CACHED_SAME,       /* the same build-id, or the same content */
	RT_CACHED_UNVERIFIED, /* the file has no build-id: nobody can tell */
	RT_CACHED_MISMATCH,   /* it is another file */
};

/* What is let through that is not RT_CACHED_SAME. */
struct rt_cached_allow {
	bool unverified, mismatch;
};

/* "", "_unverified", "_mismatch": stands behind the group of an event, wherever it is read. Static text. */
const char *rt_cached_mark(enum rt_cached_trust trust);

/* What the mark of "GROUP:EVENT" means: a sentence about the event, static text; NULL: it has none. */
const char *rt_cached_marked(const char *event);

struct rt_cached_match {
	enum rt_cached_trust trust;
	struct rt_probes probes; /* of the id that was taken: those that fit, and others */
	char *why;               /* a sentence for people, unless trust is RT_CACHED_SAME; NULL */
};

/*
 * Finds definitions (rt_cached_fits()) for a file: those that were made for its build-id, or its very content; else,
 * where that is allowed, those of another file: of the one that the cache saw at path, or the only one that has such.
 * RT_E_NOT_FOUND; RT_E_BUILD_ID where they are not let through, the fix names the option. *ret is to be freed by
 * rt_cached_match_deinit() in any case.
 */
RT_CHECK struct rt_error *rt_cached_match(const struct rt_cache *cache, const struct rt_image *image, const char *path,
					  const char *group, const char *event, const struct rt_cached_allow *allow,
					  struct rt_cached_match *ret);
void rt_cached_match_deinit(struct rt_cached_match *match);
