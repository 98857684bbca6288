/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A marker in words: its name, and the line of tracefs uprobe_events that probes it, as perf writes it into its caches
 * (Documentation/trace/uprobetracer.rst of Linux):
 *
 *     p:sdt_python/gc__done /usr/bin/python3.11:0x2873b(0x683270) arg1=%r12:s64
 */
#pragma once

#include "base/sink.h"
#include "cache/probes.h"
#include "elf/sdt.h"
#include "elf/symtab.h"
#include "probe/operand.h"

#define RT_MARKER_NAME_MAX 256

/* "sdt:PROVIDER:NAME", as SPECs name it, into text. false: it was cut, and is no name that could be found again. */
bool rt_marker_name(const struct rt_sdt_marker *marker, char text[RT_MARKER_NAME_MAX]);

/* What Linux calls a register of x86-64 by its DWARF number ("ax"); NULL: none that has a number. Static string. */
const char *rt_kernel_register(uint8_t reg);

/* A file with markers. */
struct rt_marker_file {
	const struct rt_image *image;
	const struct rt_symtab *symtab; /* NULL: operands that name a symbol are left out */
	const char *path;               /* as the kernel shall find it: no blanks */
};

struct rt_definition_options {
	const char *event; /* "GROUP/EVENT"; NULL: "sdt_PROVIDER/NAME" */
	bool no_semaphore; /* the kernel is not to raise it */
	uint32_t strings;  /* bit n - 1: argument n points to a text */
	/* NULL, or told of each argument that tracefs has no words for; why is static text */
	void (*dropped)(void *arg, unsigned n, const struct rt_operand *operand, const char *why);
	void *arg;
};

/*
 * Writes the line, without newline. Arguments that cannot be said there (an index, a register that is not read) are
 * left out; the others keep their numbers. RT_E_UNARMED, and nothing written, when the marker or its semaphore is not
 * in the file, or its name or the path is nothing that the kernel takes. options: NULL for none.
 */
RT_CHECK struct rt_error *rt_marker_definition(const struct rt_marker_file *file, const struct rt_sdt_marker *marker,
					       const struct rt_definition_options *options, struct rt_sink *sink);

/*
 * Puts all markers of a file into a probes file: one entry for each name, with a line for each place. What cannot be
 * probed is left out. *ret_dropped: arguments that were left out.
 */
RT_CHECK struct rt_error *rt_marker_entries(const struct rt_marker_file *file, const struct rt_sdt_marker *markers,
					    size_t count, struct rt_probes *probes, size_t *ret_dropped);
