/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Burns a fixed amount of CPU time in a function with two callers, in one of several surroundings.
 *
 *     hot MS                  MS milliseconds of CPU time
 *     hot MS threads          the same in each of two threads more
 *     hot MS exec             a child that forks before it burns, and one that becomes another image of this program
 *     hot MS dlopen FILE      the function plugin_burn() of a library
 *     hot MS exit             of a child that was started by exec: says nothing
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) void hot_leaf(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		sum += i;
}

static __attribute__((noinline)) void hot_inner(unsigned long rounds)
{
	hot_leaf(rounds);
	sum++;
}

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

__attribute__((noinline)) void hot_outer(double ms)
{
	char *block = malloc(1 << 16);

	while (used() < ms) {
		hot_inner(300000);
		memset(block, (int)sum, 1 << 16);
	}
	free(block);
}

static void *in_thread(void *arg)
{
	hot_outer(*(double *)arg);
	return NULL;
}

static void threads(double ms)
{
	pthread_t id[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&id[i], NULL, in_thread, &ms);
	hot_outer(ms);
	for (int i = 0; i < 2; i++)
		pthread_join(id[i], NULL);
}

static void children(char **argv, double ms)
{
	if (!fork()) {
		hot_outer(ms);
		_exit(0);
	}
	if (!fork()) {
		execl(argv[0], argv[0], argv[1], "exit", (char *)NULL);
		_exit(1);
	}
	hot_outer(ms);
	while (wait(NULL) > 0)
		;
}

static int plugin(const char *path, double ms)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*burn)(double ms) = library ? (void (*)(double))dlsym(library, "plugin_burn") : NULL;

	if (!burn) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	burn(ms);
	return 0;
}

int main(int argc, char **argv)
{
	double ms = argc > 1 ? atof(argv[1]) : 100;
	const char *how = argc > 2 ? argv[2] : "";

	if (!strcmp(how, "threads"))
		threads(ms);
	else if (!strcmp(how, "exec"))
		children(argv, ms);
	else if (!strcmp(how, "dlopen"))
		return plugin(argv[3], ms);
	else
		hot_outer(ms);
	return 0;
}
