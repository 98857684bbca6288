/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Markers with the count: provider refcnt_count, names get and put, arguments object and count before the operation,
 * and a semaphore, so that the count is handed over only while somebody looks. -DREFCNT_SHOW_COUNTS; without it
 * nothing.
 */
#ifndef REFCNT_GUARDED_H
#define REFCNT_GUARDED_H

#include "count.h"
#include "mark.h"

#if defined(REFCNT_SHOW_COUNTS) && defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))

#ifdef __cplusplus
extern "C" {
#endif
extern volatile unsigned short refcnt_count_semaphore __attribute__((__visibility__("hidden")));
#ifdef __cplusplus
}
#define REFCNT_SHOWN_COUNTS \
	extern "C" { \
	volatile unsigned short refcnt_count_semaphore \
		__attribute__((__section__(".probes"), __visibility__("hidden"), __used__)) = 0; \
	} \
	struct refcnt
#else
#define REFCNT_SHOWN_COUNTS \
	volatile unsigned short refcnt_count_semaphore \
		__attribute__((__section__(".probes"), __visibility__("hidden"), __used__)) = 0
#endif

#define REFCNT_COUNT_MARK_(op, p, count) \
	do { \
		if (__builtin_expect(refcnt_count_semaphore, 0)) \
			REFCNT_MARK_ASM("990:	nop\n" \
					"	.pushsection .note.stapsdt,\"?\",%%note\n" \
					"	.balign 4\n" \
					"	.4byte 992f-991f, 994f-993f, 3\n" \
					"991:	.asciz \"stapsdt\"\n" \
					"992:	.balign 4\n" \
					"993:	.8byte 990b\n" \
					"	.8byte _.stapsdt.base\n" \
					"	.8byte refcnt_count_semaphore\n" \
					"	.asciz \"refcnt_count\"\n" \
					"	.asciz \"" op "\"\n" \
					"	.asciz \"8@%0 4@%1\"\n" \
					"994:	.balign 4\n" \
					"	.popsection\n" REFCNT_MARK_BASE ::"r"(REFCNT_MARK_OBJECT(p)), \
					"r"(count)); \
	} while (0)
#define REFCNT_SHOW_COUNT_(name, op, p, r) REFCNT_COUNT_MARK_(#op, p, refcnt_count_read(r))
#else
#define REFCNT_SHOWN_COUNTS struct refcnt
#define REFCNT_SHOW_COUNT_(name, op, p, r) ((void)0)
#endif

#endif
