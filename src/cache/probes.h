/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The probes file of a cache entry, as perf writes it (tools/perf/util/probe-file.c of Linux 6.1): text, one header
 * line for each entry and the lines of uprobe_events that it stands for behind it.
 *
 *     %sdt_prov:name=name                         from an SDT marker
 *     p:sdt_prov/name /path:0x10a9(0x3020) arg1=%bx:s32
 *     #group:event=function arg                   what a user asked perf probe for
 *     p:group/event /path:0x1210 arg=%di:u64
 *
 * perf refuses the whole file for a line before the first header, and some versions crash on a blank one: such lines
 * are left out when it is written again, everything else stays as it is.
 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/sink.h"
#include "base/vec.h"

/* perf reads lines of at most so many bytes, without the newline. */
#define RT_PROBES_LINE_MAX 4092

struct rt_probes_entry {
	bool sdt;
	char *spec;           /* without '%' or '#'; owned */
	RT_VEC(char *) lines; /* owned; in the order of strcmp(), each once */
};

struct rt_probes {
	RT_VEC(struct rt_probes_entry) entries;
	size_t dropped; /* lines of the text that are no part of an entry, or are too long for perf */
};

/* *ret: what the text holds; any text is understood as far as it goes. Out of memory is the only error. */
RT_CHECK struct rt_error *rt_probes_parse(struct rt_bytes text, struct rt_probes *ret);
void rt_probes_deinit(struct rt_probes *probes);

/* NULL: there is none. Valid until the next change. */
const struct rt_probes_entry *rt_probes_find(const struct rt_probes *probes, bool sdt, const char *spec);

/*
 * Puts an entry behind the others, in the place of all of the same name. Lines are copied. RT_E_LIMIT for a text that
 * perf could not read back: too long, or with a newline in it; then nothing has changed.
 */
RT_CHECK struct rt_error *rt_probes_set(struct rt_probes *probes, bool sdt, const char *spec, const char *const *lines,
					size_t count);

/* Takes all of that name away. false: there was none. */
bool rt_probes_remove(struct rt_probes *probes, bool sdt, const char *spec);

void rt_probes_write(const struct rt_probes *probes, struct rt_sink *sink);
