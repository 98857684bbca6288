/* SPDX-License-Identifier: GPL-2.0-only */
/* The running count of a recording: one line on a terminal, drawn again and again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rt_progress {
	bool on, drawn;
	uint64_t last_ns;
};

/* On when stderr is a terminal that can go back in a line, and not quiet. */
void rt_progress_init(struct rt_progress *progress, bool quiet);
/* Draws, at most five times a second. */
void rt_progress_show(struct rt_progress *progress, uint64_t events, uint64_t bytes, uint64_t lost);
/* Takes the line away, before other words come. */
void rt_progress_clear(struct rt_progress *progress);

/* "999", "12.3 k", "1.2 M", "3.4 G". Returns text. */
char *rt_progress_count(uint64_t n, char *text, unsigned size);
