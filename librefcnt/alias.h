/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Handles that are addresses: objects live in shared memory, page-wise. Its home mapping shows all of them; each
 * reference maps the object's pages once more, at an address that nobody had before, and a put takes that away.
 * Addresses come round when all of them were used (REFCNT_ALIAS_PAGES), the oldest first.
 *
 * What has no alias (no memory, too many mappings, an object in memory of the user's) is used by its home address:
 * counted and tracked, and said. No file descriptor is kept: programs close what they do not know.
 */
#ifndef RC_ALIAS_H
#define RC_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "refcnt/lib.h"

/* LEAVING: given back, its address is not taken away yet. INNER: a further page of the one before. LOST: not to be used
 * again. */
enum rc_alias_state { RC_ALIAS_NONE, RC_ALIAS_LIVE, RC_ALIAS_LEAVING, RC_ALIAS_DEAD, RC_ALIAS_INNER, RC_ALIAS_LOST };

/* For each page of alias addresses. */
struct rc_alias {
	uint32_t state;
	uint32_t pages; /* of INNER: how many before it the first one is */
	uint32_t get_stack, get_tid;
	uint32_t put_stack, put_tid;
	uint32_t home_page; /* where the object begins */
	uint32_t counter;   /* of the one that is counted by it: its offset in the object */
	const char *cls;
};

/* What the program's pointers to an object and its counter are by the home of all. */
struct rc_place {
	struct rc_alias *alias; /* that they point into, LIVE, LEAVING or DEAD; NULL: none */
	char *object;
	struct refcnt *counter;
	bool whole; /* the object is one of rc_alias_make(), whose references have aliases; else it may lie inside of
		       one */
};

struct rc_place rc_alias_place(const struct refcnt *r, const void *p);
/* The alias that p points into, whatever its state; NULL where p is no alias. Any thread, signal handlers too. */
struct rc_alias *rc_alias_of(const void *p);
bool rc_alias_is_live(const struct rc_alias *a);
/* -> home of a new object of zeroes, counted at this offset; NULL: aliases cannot be had, the reason was said */
char *rc_alias_make(size_t size, size_t counter);
/* home: of rc_alias_make(). It is no more. */
void rc_alias_free(const char *home);
/* Is it memory that rc_alias_make() gives out, or an alias of it? */
bool rc_alias_has(const void *p);
/* -> an alias for the object, or home where there can be none more (said once) */
char *rc_alias_take(const struct refcnt_class *cls, char *home, uint32_t stack);
/* -> false: it was given back before. Else its address faults after rc_alias_unmap(). Both wait for nobody. */
bool rc_alias_give(struct rc_alias *a, uint32_t stack);
void rc_alias_unmap(struct rc_alias *a);
/* References that are not checked though their class wants it. */
unsigned long rc_alias_fallbacks(void);

void rc_alias_before_fork(void);
void rc_alias_in_parent(void);
void rc_alias_in_child(void);
/* In a child that could not be prepared for: it must not touch its parent's objects, and faults. */
void rc_alias_cut_off(void);

#endif
