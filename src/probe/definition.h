/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A marker as a line of tracefs uprobe_events, as perf writes it into its caches
 * (Documentation/trace/uprobetracer.rst of Linux):
 *
 *     p:sdt_python/gc__done /usr/bin/python3.11:0x2873b(0x683270) arg1=%r12:s64
 */
#pragma once

#include "base/sink.h"
#include "elf/sdt.h"
#include "elf/symtab.h"

/*
 * Writes the line, without newline, for the file as seen at path. Arguments that cannot be said there (an index, a
 * register that is not read) are left out and counted in *ret_dropped; the others keep their numbers. RT_E_UNARMED
 * when the marker or its semaphore is not in the file; nothing is written then.
 */
RT_CHECK struct rt_error *rt_marker_definition(const struct rt_image *image, const struct rt_symtab *symtab,
					       const struct rt_sdt_marker *marker, const char *path,
					       struct rt_sink *sink, unsigned *ret_dropped);
