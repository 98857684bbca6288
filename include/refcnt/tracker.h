/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Cookies: a put says which get it gives back. The holder keeps a struct refcnt_tracker beside its pointer, and names a
 * directory, one for each owner of references, whose content can be asked for at any time. In plain and shared mode
 * they compile to the bare get and put.
 *
 *     static struct refcnt_dir cache = REFCNT_DIR("cache");
 *
 *     slot->conn = conn_get_tracked(c, &cache, &slot->tracker);
 *     conn_put_tracked(slot->conn, &slot->tracker);
 *
 * A cookie belongs to one reference, is zeroed at first, and is not used by two threads at a time.
 */
#ifndef REFCNT_TRACKER_H
#define REFCNT_TRACKER_H

#include <stdint.h>

#include "mode.h"

#ifdef __cplusplus
extern "C" {
#endif

struct refcnt_tracker {
	uint64_t id; /* stays after the put, so that a second put is recognised */
};

struct refcnt_dir {
	const char *name; /* text and directory stay to the end of the program */
};

#define REFCNT_DIR(name_) \
	{ \
		name_ \
	}

#if REFCNT_MODE == REFCNT_PLAIN && !defined(REFCNT_LIBRARY)
REFCNT_INLINE long refcnt_tracker_report(const struct refcnt_dir *dir)
{
	(void)dir;
	return -1;
}
#else
/* What is held by this owner now, where reports go; any time, any thread. -> references */
long refcnt_tracker_report(const struct refcnt_dir *dir);
#endif

#ifdef __cplusplus
}
#endif

#endif
