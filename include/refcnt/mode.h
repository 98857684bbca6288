/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Which mode a file is built in, -DREFCNT_MODE=REFCNT_TRACKING and so on; without it REFCNT_PLAIN.
 *
 *     REFCNT_PLAIN      no cost, no library: the counter that one would have written by hand, with marks
 *     REFCNT_SHARED     the same through librefcnt.so, so that LD_PRELOAD=librefcnt-track.so tracks it unbuilt
 *     REFCNT_TRACKING   each operation with its stack, thread and count
 *     REFCNT_TRACKER    the same, and operations without a cookie (refcnt/tracker.h) are counted
 *     REFCNT_CHECKED    each reference a handle on the heap, for AddressSanitizer and LeakSanitizer
 *     REFCNT_ALIAS      each reference an address of its own, that faults when it has been given back
 *
 * All files of a program have the same: else the linker says that
 * refcnt_modes_are_mixed__build_every_file_with_one_REFCNT_MODE is defined twice. Shared libraries are linked each for
 * themselves; where two of them differ and share an object, every mode but plain and shared says at run time that the
 * count was changed behind it.
 */
#ifndef REFCNT_MODE_H
#define REFCNT_MODE_H

#define REFCNT_PLAIN 1
#define REFCNT_SHARED 2
#define REFCNT_TRACKING 3
#define REFCNT_TRACKER 4
#define REFCNT_CHECKED 5
#define REFCNT_ALIAS 6

#ifndef REFCNT_MODE
#define REFCNT_MODE REFCNT_PLAIN
#endif

/* A section group for each mode, which holds one and the same symbol: groups of one name are merged, of two are not.
 * The assembler's own condition is for link-time optimisation, which may put several files into one.
 */
#define REFCNT_MODE_IS_(mode) \
	__asm__("	.ifndef .Lrefcnt_mode_" mode "\n" \
		"	.pushsection .rodata.refcnt_mode,\"aG\",%progbits,refcnt_mode_" mode ",comdat\n" \
		".Lrefcnt_mode_" mode ":\n" \
		"	.globl refcnt_modes_are_mixed__build_every_file_with_one_REFCNT_MODE\n" \
		"	.hidden refcnt_modes_are_mixed__build_every_file_with_one_REFCNT_MODE\n" \
		"refcnt_modes_are_mixed__build_every_file_with_one_REFCNT_MODE:\n" \
		"	.byte 0\n" \
		"	.popsection\n" \
		"	.endif\n")

#ifdef REFCNT_LIBRARY /* librefcnt itself serves all modes */
#elif REFCNT_MODE == REFCNT_PLAIN
REFCNT_MODE_IS_("plain");
#elif REFCNT_MODE == REFCNT_SHARED
REFCNT_MODE_IS_("shared");
#elif REFCNT_MODE == REFCNT_TRACKING
REFCNT_MODE_IS_("tracking");
#elif REFCNT_MODE == REFCNT_TRACKER
REFCNT_MODE_IS_("tracker");
#elif REFCNT_MODE == REFCNT_CHECKED
REFCNT_MODE_IS_("checked");
#elif REFCNT_MODE == REFCNT_ALIAS
REFCNT_MODE_IS_("alias");
#else
#error "REFCNT_MODE is one of REFCNT_PLAIN, _SHARED, _TRACKING, _TRACKER, _CHECKED, _ALIAS"
#endif

/* In C++ without casts of the old style; offsets of classes that have constructors, too. */
#ifdef __cplusplus
#define REFCNT_CAST_(type, p) static_cast<type>(p)
#define REFCNT_NOT_CONST_(p) const_cast<void *>(p)
#define REFCNT_NONE_ nullptr
#define REFCNT_SOMEWHERE_ 65536
#define REFCNT_OFFSET_(type, member) \
	static_cast<size_t>(reinterpret_cast<char *>(&reinterpret_cast<type *>(REFCNT_SOMEWHERE_)->member) - \
			    reinterpret_cast<char *>(REFCNT_SOMEWHERE_))
#else
#define REFCNT_CAST_(type, p) ((type)(p))
#define REFCNT_NOT_CONST_(p) ((void *)(uintptr_t)(p))
#define REFCNT_NONE_ ((void *)0)
#define REFCNT_OFFSET_(type, member) __builtin_offsetof(type, member)
#endif

#define REFCNT_MUST_USE __attribute__((__warn_unused_result__))
/* Inlined without optimisation as well: the caller is the first frame of a reference's stack in every build. */
#define REFCNT_INLINE static inline __attribute__((__always_inline__, __unused__))

#endif
