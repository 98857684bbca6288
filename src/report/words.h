/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The words of the report: what kinds, roles and certainties are called, the
 * same in every format.
 */
#pragma once

#include "base/arena.h"
#include "base/fs.h"
#include "lifetime/lifetime.h"

/* "leak", "extra-put", "use-after-put", "racy-update". Static string. */
const char *rt_finding_word(enum rt_finding_kind kind);
/* "missing-put", ... Static string. */
const char *rt_role_word(enum rt_role role);

/* At and above these the report says certain, likely, possible. */
#define RT_CERTAIN 0.95
#define RT_LIKELY 0.75
#define RT_POSSIBLE 0.5
const char *rt_confidence_word(double confidence);

/*
 * Foreign text made harmless for a terminal: control characters, bytes that
 * are no UTF-8, and direction marks become \xNN or \u{N}. Never NULL (""
 * without memory); owned by the arena. NULL gives "".
 */
const char *rt_clean(struct rt_arena *arena, const char *text);

/* Columns that clean text takes: one for each character. */
size_t rt_columns(const char *text);

/* Clean text shortened in its middle ("/usr/...leak.c") to at most max columns; text itself when it fits. */
const char *rt_shorten(struct rt_arena *arena, const char *text, size_t max);

/* Clean text cut at its end ("if (obj->re...") to at most max columns; text itself when it fits. */
const char *rt_cut(struct rt_arena *arena, const char *text, size_t max);

/* A source line made harmless: clean, tabs expanded to 4 columns, without blanks at its end. */
const char *rt_clean_code(struct rt_arena *arena, const char *text);

/* What helps where the files of a recording are gone or were changed. */
#define RT_NAMES_FIX "look below another root: --symfs DIR; or archive where they are: reftrace archive create"

/* What helps where a file is there, but has no symbols. */
#define RT_SYMBOLS_FIX "install its debug symbols (Debian: package NAME-dbgsym), or have them fetched: --debuginfod"

/* What is missing of callers out of copied stacks, one sentence each, the last one with its fix; how many. */
enum { RT_UNWOUND_NOTES = 4 };
size_t rt_unwound_notes(struct rt_arena *arena, const struct rt_unwound *stacks, const char *ret[RT_UNWOUND_NOTES]);

/* "1.9 KiB", "640 B". */
const char *rt_bytes_text(struct rt_arena *arena, uint64_t bytes);
/* "0.3 s", "1.2 ms", "4 min 10 s". */
const char *rt_duration_text(struct rt_arena *arena, uint64_t ns);
/* printf into the arena; "" without memory. */
const char *rt_format(struct rt_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "s" unless n is 1. */
const char *rt_plural(uint64_t n);
/* "struct obj", with its class "struct obj [GtkButton]"; clean. */
const char *rt_type_text(struct rt_arena *arena, const char *type, const char *klass);
/* Function name, or "module+0x12c" where there is none; clean. */
const char *rt_place_text(struct rt_arena *arena, const struct rt_frame *frame);
