/* SPDX-License-Identifier: GPL-2.0-only */
/* The truth: the marks as they are, and each also says on stderr what it marks. */
#include_next <refcnt/mark.h>
#include <stdio.h>

#define SHOWN_(op, type, obj) \
	do { \
		const void *shown_ = (obj); \
		REFCNT_MARK_(op, type, shown_); \
		dprintf(2, "mark " type " " op " %p\n", shown_); \
	} while (0)

#undef REFCNT_MARK_NEW
#undef REFCNT_MARK_GET
#undef REFCNT_MARK_PUT
#undef REFCNT_MARK_FREE
#define REFCNT_MARK_NEW(type, obj) SHOWN_("new", #type, obj)
#define REFCNT_MARK_GET(type, obj) SHOWN_("get", #type, obj)
#define REFCNT_MARK_PUT(type, obj) SHOWN_("put", #type, obj)
#define REFCNT_MARK_FREE(type, obj) SHOWN_("free", #type, obj)
