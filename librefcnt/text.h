/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A report while it is made: written as one piece, so that those of two threads do not mix. One thread. errno is what
 * it was when it is written.
 */
#ifndef RC_TEXT_H
#define RC_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define RC_TEXT_SIZE ((size_t)1 << 16)
#define RC_TEXT_OWN ((size_t)1 << 10)

struct rc_text {
	char *data; /* what does not fit is written before */
	size_t len, size;
	int error;
	bool alone; /* without the lock */
	char own[RC_TEXT_OWN];
};

/* Takes the lock of all reports; write gives it back. A signal handler's, that came into a report of its own thread,
 * goes without, in smaller pieces. -> is it one of those? */
bool rc_text_begin(struct rc_text *t);
void rc_text_add(struct rc_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rc_text_write(struct rc_text *t);

/* For fork(2). */
void rc_text_lock(void);
void rc_text_unlock(void);

#endif
