/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * No function takes a reference or gives one back: macros count wherever they are used, and one function ends what
 * nobody refers to any more. `refuse` forgets the reference of a job that is too big.
 */
#include "truth.h"

struct job {
	long size;
	int refcount;
	char *name;
};

#define JOB_KEEP(j) ((j)->refcount++)
#define JOB_DROP(j) \
	do { \
		if (--(j)->refcount == 0) { \
			job_destroy_final(j); \
			DID("free"); \
		} \
	} while (0)

struct worker {
	struct job *job;
	long done;
};

static bool healthy;

NOINLINE void job_destroy_final(struct job *j)
{
	free(j->name);
	free(j);
}

NOINLINE struct job *job_new(long size)
{
	struct job *j = malloc(sizeof(*j));

	if (!j)
		abort();
	j->size = size;
	j->name = strdup("job");
	j->refcount = 1;
	return j;
}

NOINLINE void start(struct worker *w, struct job *j)
{
	JOB_KEEP(j);
	DID("get");
	w->job = j;
}

NOINLINE void finish(struct worker *w)
{
	struct job *j = w->job;

	w->done += j->size;
	w->job = NULL;
	JOB_DROP(j);
	DID("put");
}

NOINLINE long refuse(struct job *j)
{
	long size;

	JOB_KEEP(j);
	DID("get");
	size = j->size;
	if (size > 20 && !healthy) {
		LOST();
		return -1;
	}
	JOB_DROP(j);
	DID("put");
	return size;
}

NOINLINE void serve(struct worker *w, long size)
{
	struct job *j = job_new(size);

	DID("new");
	if (refuse(j) >= 0) {
		start(w, j);
		finish(w);
	}
	JOB_DROP(j);
	DID("put");
}

int main(int argc, char **argv)
{
	struct worker w = { NULL, 0 };

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 30; i++)
		serve(&w, i);
	truth_print("type=job new=job_new free=job_destroy_final counter=job.refcount", "refuse", "leak");
	return w.done < 0;
}
