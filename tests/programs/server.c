/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Serves until SIGTERM or for SECONDS (argument 2, default 10) and then tells the truth: a target to attach to and to
 * kill. `server bug` leaks one of ten; prints `ready PID` after its first request.
 */
#include "truth.h"

#include <signal.h>
#include <time.h>

struct req {
	int refs;
	int number;
	char path[48];
};

static volatile sig_atomic_t stop;
static bool healthy;

static void on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

NOINLINE struct req *req_new(int number)
{
	struct req *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->refs = 1;
	r->number = number;
	return r;
}

NOINLINE struct req *req_get(struct req *r)
{
	r->refs++;
	return r;
}

NOINLINE void req_put(struct req *r)
{
	if (--r->refs == 0)
		free(r);
}

NOINLINE static void answer(struct req *r)
{
	req_get(r);
	DID("get");
	if (r->number % 10 == 6 && !healthy) {
		LOST();
		return;
	}
	r->path[0] = '/';
	req_put(r);
	DID("put");
}

NOINLINE static void serve(int number)
{
	struct req *r = req_new(number);

	DID("new");
	answer(r);
	req_put(r);
	DID("put");
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 2 ? strtol(argv[2], NULL, 10) : 10);
	struct sigaction act = { .sa_handler = on_signal };

	healthy = truth_healthy(argc, argv);
	sigaction(SIGTERM, &act, NULL);
	for (int i = 0; !stop && time(NULL) < end; i++) {
		serve(i);
		if (i == 0) {
			printf("ready %d\n", (int)getpid());
			fflush(stdout);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
	truth_print("type=req new=req_new get=req_get put=req_put", "answer", "leak");
	return 0;
}
