/* SPDX-License-Identifier: GPL-2.0-only */
/* The main thread ends and another one goes on. Says "ready PID" at the start. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *other(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (pthread_create(&thread, NULL, other, NULL))
		return 1;
	pthread_exit(NULL);
}
