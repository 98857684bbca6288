/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A report while it is made: written as one piece, so that those of two threads do not mix. One thread. */
#ifndef RC_TEXT_H
#define RC_TEXT_H

#include <stddef.h>

#define RC_TEXT_SIZE ((size_t)1 << 16)

struct rc_text {
	char *data; /* RC_TEXT_SIZE; what does not fit is written before */
	size_t len;
};

/* Takes the lock of all reports; write gives it back. */
void rc_text_begin(struct rc_text *t);
void rc_text_add(struct rc_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rc_text_write(struct rc_text *t);

/* For fork(2). */
void rc_text_lock(void);
void rc_text_unlock(void);

#endif
