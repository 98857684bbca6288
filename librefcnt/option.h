/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the environment asks for (refcnt(3)). Read once, before any operation; constant then. */
#ifndef RC_OPTION_H
#define RC_OPTION_H

#include <stdbool.h>
#include <stddef.h>

enum rc_stacks { RC_STACKS_AUTO, RC_STACKS_FRAME_POINTERS, RC_STACKS_UNWIND, RC_STACKS_NONE };

struct rc_option {
	char classes[256]; /* glob; "" is all */
	char output[512];  /* absolute path; "" is stderr */
	size_t memory_bytes;
	unsigned alias_pages; /* addresses that aliases are given, in pages */
	int report_signal;    /* 0: none */
	int exit_code;        /* -1: the program's own */
	bool abort_at_once;
	enum rc_stacks stacks;
};

const struct rc_option *rc_option(void);
/* Reads them; says on stderr what it does not understand. */
void rc_option_read(void);

#endif
