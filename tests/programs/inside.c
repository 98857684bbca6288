/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands inside a get or put that has not counted yet: serves healthy requests until a line of input comes, then goes
 * into one more of the operation that argument 1 names and waits in it for the end of its input. Prints `ready` and
 * `inside`. Argument 2, if given: takes one reference that nobody told of before, so that the counter is off for good.
 */
#include "truth.h"

#include <poll.h>

struct job {
	int refs;
	int number;
	char text[40];
};

static bool wait_in_it;

/* What an operation may do before it counts: take a lock, say. */
NOINLINE static void before_counting(void)
{
	char c;

	if (!wait_in_it)
		return;
	printf("inside\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
}

NOINLINE struct job *job_new(int number)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		abort();
	j->refs = 1;
	j->number = number;
	return j;
}

NOINLINE struct job *job_get(struct job *j)
{
	before_counting();
	j->refs++;
	return j;
}

NOINLINE void job_put(struct job *j)
{
	before_counting();
	if (--j->refs == 0)
		free(j);
}

NOINLINE static void serve(int number)
{
	struct job *j = job_new(number);

	job_get(j);
	job_put(j);
	job_put(j);
}

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	struct job *last;
	char c;

	for (int i = 0; !poll(&in, 1, 1); i++) {
		serve(i);
		if (i == 0) {
			printf("ready %d\n", (int)getpid());
			fflush(stdout);
		}
	}
	if (read(0, &c, 1) != 1)
		return 1;
	last = job_new(-1);
	job_get(last);
	if (argc > 2)
		last->refs |= 1; /* 3, where 2 was: that is no counting by the look of it */
	wait_in_it = true;
	if (argc > 1 && !strcmp(argv[1], "get"))
		job_get(last);
	else
		job_put(last);
	wait_in_it = false;
	job_put(last);
	return 0;
}
