/* SPDX-License-Identifier: GPL-2.0-only */
/* A library that hot.c loads while it runs. */
#include <time.h>

static volatile unsigned long sum;

static __attribute__((noinline)) void plugin_leaf(void)
{
	for (unsigned long i = 0; i < 300000; i++)
		sum += i;
}

void plugin_burn(double ms)
{
	struct timespec t;

	do {
		plugin_leaf();
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while ((double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6 < ms);
}
