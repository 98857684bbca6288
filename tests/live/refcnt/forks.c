/* SPDX-License-Identifier: GPL-2.0-only */
/* Forks while another thread is busy; each child works on what it inherited, and on something new. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <refcnt/refcnt.h>

#define CHILDREN 50

struct conn {
	struct refcnt refs;
	int number;
};
REFCNT_DECLARE(conn, struct conn);
static void conn_release(struct conn *c)
{
	conn_dealloc(c);
}
REFCNT_DEFINE(conn, struct conn, refs, conn_release);

static int stop;

static struct conn *make(int number)
{
	struct conn *c = conn_alloc();

	if (!c)
		abort();
	c->number = number;
	return c;
}

static void *work(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct conn *c = make(1), *d = conn_get(c);

		conn_put(c);
		conn_put(d);
	}
	return NULL;
}

static void child(struct conn *inherited)
{
	struct conn *c = conn_get(inherited), *mine = make(2);

	c->number = 4;
	conn_put(c);
	conn_put(mine);
	conn_put(inherited);
	exit(inherited ? 3 : 1);
}

int main(void)
{
	struct conn *c = make(3);
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();
		int status;

		if (!pid)
			child(c);
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3 || c->number != 3)
			abort();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	conn_put(c);
	printf("all children ended\n");
	return 0;
}
