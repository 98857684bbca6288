/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A signal comes while references are taken and given back, and its handler lets a child end before it returns: what
 * the child did last is told though its parent is in the middle of something. Prints "operations N", those of all.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { CHILDREN = 40, OPERATIONS = 100 };

struct obj {
	int refs;
};

static struct obj shared = { 1 };
static int go[CHILDREN][2];
static pid_t child[CHILDREN];
static volatile sig_atomic_t ended;

NOINLINE void obj_get(struct obj *o)
{
	*(volatile int *)&o->refs += 1;
}

NOINLINE void obj_put(struct obj *o)
{
	*(volatile int *)&o->refs -= 1;
}

static void on_alarm(int signal)
{
	int n = ended;

	(void)signal;
	if (n == CHILDREN || write(go[n][1], "", 1) != 1)
		return;
	waitpid(child[n], NULL, 0);
	ended = n + 1;
}

static void be_child(int n)
{
	char byte;

	if (read(go[n][0], &byte, 1) != 1)
		_exit(1);
	for (int i = 0; i < OPERATIONS / 2; i++) {
		obj_get(&shared);
		obj_put(&shared);
	}
	_exit(0);
}

int main(void)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	unsigned long rounds = 0;

	for (int i = 0; i < CHILDREN; i++) {
		if (pipe(go[i]))
			return 1;
		child[i] = fork();
		if (!child[i])
			be_child(i);
	}
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; ended < CHILDREN; rounds++) {
		obj_get(&shared);
		obj_put(&shared);
	}
	printf("operations %lu\n", 2 * rounds + CHILDREN * OPERATIONS);
	return 0;
}
