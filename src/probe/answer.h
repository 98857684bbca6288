/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The answer to a request (probe/request.h): the instructions of a file that are to be armed, and each argument in the
 * words of tracefs' uprobe_events (Documentation/trace/uprobetracer.rst of Linux), or kprobe_events (kprobetrace.rst).
 * Exact or refused: an argument that cannot be said there is an error that names it and the reason.
 */
#pragma once

#include "base/fs.h"
#include "base/sink.h"
#include "elf/symtab.h"
#include "insn/insn.h"
#include "probe/kernel.h"
#include "probe/request.h"

struct rt_answer_module {
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_dwarf *dwarf; /* never NULL; without debug information only symbols, addresses and markers resolve */
	struct rt_decoder *decoder;
	/*
	 * NULL: a program or library. Else the file is a kernel; without debug information image need hold neither code
	 * nor symbols, and dwarf may be NULL.
	 */
	const struct rt_kernel *kernel;
	const char *path; /* of the file, as the kernel shall open it */
	/* Text of a source file, for patterns; NULL: it cannot be read. Stays the caller's. */
	const char *(*source)(void *arg, const char *path);
	void *source_arg;
	bool partial;        /* leave out places where an argument cannot be told (with a note), rather than fail */
	bool all_places;     /* of a line, rather than the first of each instance */
	bool returns_anyway; /* hook returns that exceptions may pass by */
};

struct rt_answer_point {
	struct rt_elfaddr address;
	struct rt_foff offset;    /* of a kernel: from _text */
	struct rt_foff semaphore; /* v = 0: none */
	bool at_return;
	const char *function; /* that the point is in, or NULL */
	const char *file;     /* of its source line, or NULL */
	uint32_t line;
	const char *group;     /* of a marker; else NULL */
	const char *event;     /* a name for its event; those of one key and signature can share one */
	const char *key;       /* function, or marker */
	const char *signature; /* names and types of the arguments */
	const char *arguments; /* each with a blank before it; "" */
};

struct rt_answer {
	struct rt_arena arena;
	RT_VEC(struct rt_answer_point) points;
	RT_VEC(const char *) notes; /* what the user should know, a sentence each */
};

/*
 * Resolves request. RT_E_NO_FUNCTION, RT_E_NOT_FOUND (line, pattern, variable, marker), RT_E_UNSUPPORTED (what cannot
 * be said or armed), RT_E_STRIPPED, RT_E_ARCH. At least one point on success. *ret is to be freed by rt_answer_deinit()
 * in any case; its strings live in its arena or in the module.
 */
RT_CHECK struct rt_error *rt_answer_request(const struct rt_request *request, const struct rt_answer_module *module,
					    struct rt_answer *ret);
void rt_answer_deinit(struct rt_answer *answer);

/* "p:GROUP/EVENT PATH:0xOFFSET ARGS", without newline; path NULL: of a kernel, "p:GROUP/EVENT _text+OFFSET ARGS". */
void rt_answer_write(const struct rt_answer_point *point, const char *group, const char *event, const char *path,
		     struct rt_sink *sink);
