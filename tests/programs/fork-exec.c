/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parent forks three children and each works on objects of its own; the last one then becomes this program anew by
 * exec and works again. `child_work` leaks in every one of them; what the parent holds at the fork is no leak.
 */
#include "truth.h"

#include <sys/wait.h>

struct task {
	int refs;
	int number;
	char name[56];
};

static bool healthy;

NOINLINE struct task *task_new(int number)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->refs = 1;
	t->number = number;
	return t;
}

NOINLINE struct task *task_get(struct task *t)
{
	t->refs++;
	return t;
}

NOINLINE void task_put(struct task *t)
{
	if (--t->refs == 0)
		free(t);
}

NOINLINE static void child_work(struct task *t)
{
	task_get(t);
	DID("get");
	if (t->number % 4 == 1 && !healthy) {
		LOST();
		return;
	}
	t->name[0] = 't';
	task_put(t);
	DID("put");
}

NOINLINE static void run_tasks(int count)
{
	for (int i = 0; i < count; i++) {
		struct task *t = task_new(i);

		DID("new");
		child_work(t);
		task_put(t);
		DID("put");
	}
}

int main(int argc, char **argv)
{
	struct task *mine;
	int failed = 0;

	healthy = truth_healthy(argc, argv);
	if (argc > 2) { /* the exec'ed image */
		run_tasks(20);
		return 0;
	}
	mine = task_new(0);
	DID("new");
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		int status;

		if (pid < 0)
			return 1;
		if (pid == 0) {
			run_tasks(12);
			/* the child's copy of what the parent holds */
			task_put(mine);
			DID("put");
			if (i == 2)
				execl("/proc/self/exe", argv[0], healthy ? "ok" : "bug", "again", NULL);
			_exit(i == 2);
		}
		if (waitpid(pid, &status, 0) < 0 || status)
			failed = 1;
	}
	task_put(mine);
	DID("put");
	truth_print("type=task new=task_new get=task_get put=task_put", "child_work", "leak");
	return failed;
}
