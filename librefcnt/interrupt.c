/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <stdlib.h>

#include "alias.h"
#include "interrupt.h"
#include "ledger.h"

static void note_unseen(void)
{
	__atomic_add_fetch(&rc_unseen, 1, __ATOMIC_RELAXED);
}

void rc_interrupt_init(struct refcnt *r)
{
	refcnt_count_init(r);
	__atomic_add_fetch(&rc_unkept, 1, __ATOMIC_RELAXED);
}

void *rc_interrupt_alloc(size_t size, size_t counter)
{
	char *p = calloc(1, size);

	if (p)
		rc_interrupt_init((struct refcnt *)(p + counter));
	return p;
}

void rc_interrupt_free(void *p)
{
	note_unseen();
	if (!rc_alias_has(p)) /* else its memory stays */
		free(p);
}

void *rc_interrupt_get(const struct refcnt *r, void *p, bool not_zero)
{
	struct rc_place at = rc_alias_place(r, p);

	note_unseen();
	if (at.alias && !rc_alias_is_live(at.alias))
		return not_zero ? NULL : p;
	if (!not_zero)
		(void)refcnt_count_more(at.counter);
	else if (!refcnt_count_more_not_zero(at.counter))
		return NULL;
	return at.object;
}

void *rc_interrupt_put(const struct refcnt *r, void *p)
{
	struct rc_place at = rc_alias_place(r, p);
	bool is_handle = at.alias && at.whole, last;

	note_unseen();
	if (is_handle ? !rc_alias_give(at.alias, 0) : at.alias && !rc_alias_is_live(at.alias))
		return NULL;
	last = refcnt_count_less(at.counter);
	if (is_handle)
		rc_alias_unmap(at.alias);
	return last ? at.object : NULL;
}
