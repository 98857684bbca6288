/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Marks for programs that count references themselves, so that reftrace sees
 * every operation, inlined or not, with nothing told:
 *
 *     static inline struct conn *conn_get(struct conn *c)
 *     {
 *             atomic_fetch_add(&c->refs, 1);
 *             REFCNT_MARK_GET(conn, c);
 *             return c;
 *     }
 *
 *     REFCNT_MARK_NEW(type, obj)   obj begins to live, with its first reference
 *     REFCNT_MARK_GET(type, obj)   one more reference was taken
 *     REFCNT_MARK_PUT(type, obj)   a reference was given back; before the object may be freed by it
 *     REFCNT_MARK_FREE(type, obj)  obj ends, whatever its count
 *     REFCNT_MARK_LAST(type, obj)  the put just marked gave back the last reference; for other tools: reftrace counts
 *
 * type is a bare name. A mark is one nop; obj stays in the register or memory where it is, nothing is loaded, tested
 * or called. Headers only, no library. C99 and C++98 with GNU asm, ELF.
 *
 * Each is an SDT marker (sys/sdt.h, version 3) of provider `refcnt`, named new, get, put, free or last, with obj as its
 * one argument and without semaphore: perf, bpftrace, gdb and SystemTap read it as well. The type is in a note of our
 * own, section .note.refcnt: owner "refcnt", type 1, two words (address of the marker, address of .stapsdt.base),
 * then the name with its NUL.
 */
#ifndef REFCNT_MARK_H
#define REFCNT_MARK_H

#if defined(__x86_64__) || defined(__aarch64__)
#define REFCNT_MARK_WORD ".8byte"
#define REFCNT_MARK_SIZE "8@"
#elif defined(__i386__) || defined(__arm__)
#define REFCNT_MARK_WORD ".4byte"
#define REFCNT_MARK_SIZE "4@"
#endif

/* Addresses in notes are told beside one of this, in case the file is moved later (prelink). */
#define REFCNT_MARK_BASE \
	"	.ifndef _.stapsdt.base\n" \
	"	.pushsection .stapsdt.base,\"aG\",%%progbits,.stapsdt.base,comdat\n" \
	"	.weak _.stapsdt.base\n" \
	"	.hidden _.stapsdt.base\n" \
	"_.stapsdt.base: .space 1\n" \
	"	.size _.stapsdt.base, 1\n" \
	"	.popsection\n" \
	"	.endif\n"

/* One instruction, whatever the length of its text: gcc counts lines, and would not inline small functions with marks.
 */
#if defined(__clang__) ? __clang_major__ >= 11 : defined(__GNUC__) && __GNUC__ >= 9
#define REFCNT_MARK_ASM __asm__ __inline__ __volatile__
#else
#define REFCNT_MARK_ASM __asm__ __volatile__
#endif

#ifdef __cplusplus
#define REFCNT_MARK_OBJECT(obj) reinterpret_cast<const volatile void *>(obj)
#else
#define REFCNT_MARK_OBJECT(obj) ((const volatile void *)(obj))
#endif

#if defined(__ELF__) && defined(REFCNT_MARK_WORD) && !defined(REFCNT_NO_MARKS)

/* A constant, memory or a register: wherever it is. clang would store a register to have it in memory. */
#ifdef __clang__
#define REFCNT_MARK_PLACE "nr"
#else
#define REFCNT_MARK_PLACE "nor"
#endif

#define REFCNT_MARK_(op, type, obj) \
	REFCNT_MARK_ASM("990:	nop\n" \
			"	.pushsection .note.stapsdt,\"?\",%%note\n" \
			"	.balign 4\n" \
			"	.4byte 992f-991f, 994f-993f, 3\n" \
			"991:	.asciz \"stapsdt\"\n" \
			"992:	.balign 4\n" \
			"993:	" REFCNT_MARK_WORD " 990b\n" \
			"	" REFCNT_MARK_WORD " _.stapsdt.base\n" \
			"	" REFCNT_MARK_WORD " 0\n" \
			"	.asciz \"refcnt\"\n" \
			"	.asciz \"" op "\"\n" \
			"	.asciz \"" REFCNT_MARK_SIZE "%0\"\n" \
			"994:	.balign 4\n" \
			"	.popsection\n" \
			"	.pushsection .note.refcnt,\"?\",%%note\n" \
			"	.balign 4\n" \
			"	.4byte 992f-991f, 994f-993f, 1\n" \
			"991:	.asciz \"refcnt\"\n" \
			"992:	.balign 4\n" \
			"993:	" REFCNT_MARK_WORD " 990b\n" \
			"	" REFCNT_MARK_WORD " _.stapsdt.base\n" \
			"	.asciz \"" type "\"\n" \
			"994:	.balign 4\n" \
			"	.popsection\n" REFCNT_MARK_BASE ::REFCNT_MARK_PLACE(REFCNT_MARK_OBJECT(obj)))

#define REFCNT_MARK_NEW(type, obj) REFCNT_MARK_("new", #type, obj)
#define REFCNT_MARK_GET(type, obj) REFCNT_MARK_("get", #type, obj)
#define REFCNT_MARK_PUT(type, obj) REFCNT_MARK_("put", #type, obj)
#define REFCNT_MARK_FREE(type, obj) REFCNT_MARK_("free", #type, obj)
#define REFCNT_MARK_LAST(type, obj) REFCNT_MARK_("last", #type, obj)

#else /* other machines, or not wanted (-DREFCNT_NO_MARKS): nothing is marked */

#define REFCNT_MARK_NEW(type, obj) ((void)(obj))
#define REFCNT_MARK_GET(type, obj) ((void)(obj))
#define REFCNT_MARK_PUT(type, obj) ((void)(obj))
#define REFCNT_MARK_FREE(type, obj) ((void)(obj))
#define REFCNT_MARK_LAST(type, obj) ((void)(obj))

#endif

#endif
