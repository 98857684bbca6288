/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Handles that are addresses: objects live in one memory file, page-wise. Its home mapping shows all of them; each
 * reference maps the object's pages once more, at an address that nobody had before, and a put takes that away.
 * Addresses come round when all of them were used (REFCNT_ALIAS_PAGES), the oldest first.
 *
 * What has no alias (no memory file, too many mappings, an object in memory of the user's) is used by its home address:
 * counted and tracked, and said.
 */
#ifndef RC_ALIAS_H
#define RC_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "refcnt/lib.h"

enum rc_alias_state { RC_ALIAS_NONE, RC_ALIAS_LIVE, RC_ALIAS_DEAD, RC_ALIAS_INNER };

/* For each page of alias addresses. */
struct rc_alias {
	uint32_t state;
	uint32_t pages; /* of INNER: how many before it the first one is */
	uint32_t get_stack, get_tid;
	uint32_t put_stack, put_tid;
	char *home; /* the object */
	const char *cls;
};

/* The alias that p points into, whatever its state; NULL where p is no alias. Any thread, signal handlers too. */
struct rc_alias *rc_alias_of(const void *p);
void *rc_alias_start(const struct rc_alias *a);
/* -> home of a new object of zeroes; NULL: aliases cannot be had, the reason was said */
void *rc_alias_make(size_t size);
/* -> is home an object of rc_alias_make()? Then it is no more. */
bool rc_alias_free(const void *home);
bool rc_alias_is_home(const void *p);
/* -> an alias for the object, or home where there can be none more (said once) */
void *rc_alias_take(const struct refcnt_class *cls, void *home, uint32_t stack);
/* -> false: it was given back before. Else its address faults after rc_alias_unmap(). */
bool rc_alias_give(struct rc_alias *a, uint32_t stack);
void rc_alias_unmap(const struct rc_alias *a);
/* References that have no alias though their class wants them. */
unsigned long rc_alias_fallbacks(void);

void rc_alias_before_fork(void);
void rc_alias_in_parent(void);
void rc_alias_in_child(void);

#endif
