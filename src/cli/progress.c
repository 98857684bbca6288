/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 200000000u

char *rt_progress_count(uint64_t n, char *text, unsigned size)
{
	static const char *const units[] = { "", " k", " M", " G", " T" };
	double value = (double)n;
	unsigned unit = 0;

	while (value >= 1000 && unit < 4) {
		value /= 1000;
		unit++;
	}
	snprintf(text, size, "%.*f%s", unit && value < 99.95 ? 1 : 0, value, units[unit]);
	return text;
}

void rt_progress_init(struct rt_progress *progress, bool quiet)
{
	const char *term = getenv("TERM");

	*progress = (struct rt_progress){ 0 };
	progress->on = !quiet && isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb"));
}

void rt_progress_show(struct rt_progress *progress, uint64_t events, uint64_t bytes, uint64_t lost)
{
	struct timespec t;
	uint64_t now;
	char a[16], b[16], c[16];

	if (!progress->on)
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	if (now - progress->last_ns < PERIOD_NS)
		return;
	progress->last_ns = now;
	progress->drawn = true;
	fprintf(stderr, "\rreftrace: %s events, %s%sB, %s lost\033[K", rt_progress_count(events, a, sizeof(a)),
		rt_progress_count(bytes, b, sizeof(b)), bytes < 1000 ? " " : "", rt_progress_count(lost, c, sizeof(c)));
	fflush(stderr);
}

void rt_progress_clear(struct rt_progress *progress)
{
	if (!progress->drawn)
		return;
	progress->drawn = false;
	fputs("\r\033[K", stderr);
	fflush(stderr);
}
