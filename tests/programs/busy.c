/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spends its time in one function, called by another, and says how often it asked for its parent.
 *
 *     busy SECONDS [CALLS [CHILDREN]]      SECONDS of busy_loop() in each process, CALLS of getppid() in the first
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

__attribute__((noinline)) void busy_loop(double seconds)
{
	double end = now() + seconds;

	do {
		for (unsigned i = 0; i < 2000000; i++)
			sink += i;
	} while (now() < end);
}

__attribute__((noinline)) void busy_caller(double seconds)
{
	busy_loop(seconds);
	sink++;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int calls = argc > 2 ? atoi(argv[2]) : 0, children = argc > 3 ? atoi(argv[3]) : 0;

	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i < calls; i++)
		syscall(SYS_getppid);
	for (int i = 0; i < children; i++) {
		if (!fork()) {
			busy_caller(seconds);
			_exit(0);
		}
	}
	busy_caller(seconds);
	while (wait(NULL) > 0)
		;
	printf("calls %d\n", calls);
	return 3;
}
