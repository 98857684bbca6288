/* SPDX-License-Identifier: GPL-2.0-only */
/* Four workers share jobs; a worker that finds a job cancelled forgets its reference. */
#include "truth.h"

#include <pthread.h>

struct job {
	atomic_int refs;
	int number;
	bool cancelled;
	char text[48];
};

enum { WORKERS = 4, JOBS = 50 };
static struct job *jobs[JOBS];
static bool healthy;

NOINLINE struct job *job_new(int number)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		abort();
	atomic_init(&j->refs, 1);
	j->number = number;
	j->cancelled = number % 10 == 7;
	return j;
}

NOINLINE struct job *job_acquire(struct job *j)
{
	atomic_fetch_add(&j->refs, 1);
	return j;
}

NOINLINE void job_release(struct job *j)
{
	if (atomic_fetch_sub(&j->refs, 1) == 1)
		free(j);
}

NOINLINE static void run_job(struct job *j, long worker)
{
	job_acquire(j);
	DID("get");
	if (j->cancelled && worker == 2 && !healthy) {
		LOST();
		return;
	}
	job_release(j);
	DID("put");
}

static void *worker(void *arg)
{
	for (int i = 0; i < JOBS; i++)
		run_job(jobs[i], (long)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[WORKERS];

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < JOBS; i++) {
		jobs[i] = job_new(i);
		DID("new");
	}
	for (long i = 0; i < WORKERS; i++) {
		if (pthread_create(&threads[i], NULL, worker, (void *)i))
			return 1;
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < JOBS; i++) {
		job_release(jobs[i]);
		DID("put");
		jobs[i] = NULL;
	}
	truth_print("type=job new=job_new get=job_acquire put=job_release", "run_job", "leak");
	return 0;
}
