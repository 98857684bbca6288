/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Burns CPU at the end of call chains that frame pointers do not tell: built without them. Ways: plain, through the C
 * library (qsort), a frame of variable size, a signal handler, recursion, a thread. `unwind MS` runs each for MS.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;
static long limit_ms;

NOINLINE void burn(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (int i = 0; i < 20000; i++)
			sink += (unsigned long)i * i;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < limit_ms);
	sink++;
}

NOINLINE static int compare(const void *a, const void *b)
{
	if (*(const int *)a == 3) {
		burn();
		sink++;
	}
	return *(const int *)a - *(const int *)b;
}

NOINLINE static void by_library(void)
{
	int numbers[] = { 3, 1 };

	qsort(numbers, 2, sizeof(*numbers), compare);
	sink++;
}

NOINLINE static void by_variable_frame(int n)
{
	char *p = alloca((size_t)n * 16);

	memset(p, n, (size_t)n * 16);
	burn();
	sink += (unsigned char)p[n];
}

NOINLINE static void handler(int signal)
{
	burn();
	sink += (unsigned long)signal;
}

NOINLINE static void by_signal(void)
{
	raise(SIGUSR2);
	sink++;
}

NOINLINE static int by_recursion(int depth)
{
	if (!depth) {
		burn();
		return 1;
	}
	return by_recursion(depth - 1) + (int)sink;
}

static void *by_thread(void *arg)
{
	burn();
	sink++;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	limit_ms = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
	signal(SIGUSR2, handler);
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	by_library();
	by_variable_frame(argc * 40);
	by_signal();
	sink += (unsigned long)by_recursion(20);
	if (!pthread_create(&thread, NULL, by_thread, NULL))
		pthread_join(thread, NULL);
	return 0;
}
