/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the functions that REFCNT_DEFINE makes call in librefcnt. Not for users; kept stable as the ABI of
 * librefcnt.so.1.
 *
 * r is the counter and p the object, as the caller's pointer has it: neither is read where p is a handle that has been
 * given back.
 */
#ifndef REFCNT_LIB_H
#define REFCNT_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "count.h"

#ifdef __cplusplus
extern "C" {
#endif

struct refcnt_dir;
struct refcnt_tracker;

struct refcnt_class {
	const char *name;
	size_t size;
	uint32_t mode;    /* REFCNT_SHARED and up */
	uint32_t state;   /* the library's, 0 at first */
	const char *kept; /* the library's copy of the name, once state is set */
};

/* Zeroed memory with the first reference: the class's size and so many bytes more. -> the caller's pointer, NULL
 * without memory */
void *refcnt_lib_alloc(struct refcnt_class *cls, size_t offset, size_t extra);
/* The same on memory of the caller's. -> p */
void *refcnt_lib_init(struct refcnt_class *cls, struct refcnt *r, void *p);
/* Gives back what alloc gave, in the release function; p as that got it. Reports what is held still. */
void refcnt_lib_dealloc(struct refcnt_class *cls, struct refcnt *r, void *p);
/* -> the pointer of the new reference */
void *refcnt_lib_get(struct refcnt_class *cls, struct refcnt *r, void *p, struct refcnt_dir *dir,
		     struct refcnt_tracker *cookie);
/* -> the same; NULL when the count is 0 */
void *refcnt_lib_get_not_zero(struct refcnt_class *cls, struct refcnt *r, void *p);
/* -> the object to release when it was the last, else NULL */
void *refcnt_lib_put(struct refcnt_class *cls, struct refcnt *r, void *p, struct refcnt_tracker *cookie);
/* For handles of mode checked, which the caller makes: first says that the object is new. */
void refcnt_lib_handle_get(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle, bool first);
bool refcnt_lib_handle_get_not_zero(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle);
bool refcnt_lib_handle_put(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle);
/* In a constructor of the program: its leak report at exit must come before LeakSanitizer's, which ends the process. */
void refcnt_lib_checked(void);
/* The object's one address that all holders have in common. */
const void *refcnt_lib_home(const void *p);

#ifdef __cplusplus
}
#endif

#endif
