/* SPDX-License-Identifier: GPL-2.0-only */
/* Eight threads, few objects, many gets and puts at once: every count has to be exact; nobody leaks. */
#include "truth.h"

#include <pthread.h>

struct chan {
	atomic_int refs;
	int id;
	char data[56];
};

enum { THREADS = 8, ROUNDS = 300, CHANS = 4 };
static struct chan *chans[CHANS];

NOINLINE struct chan *chan_new(int id)
{
	struct chan *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	atomic_init(&c->refs, 1);
	c->id = id;
	return c;
}

NOINLINE struct chan *chan_get(struct chan *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

NOINLINE void chan_put(struct chan *c)
{
	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
		free(c);
}

NOINLINE static void reader(struct chan *c)
{
	chan_get(c);
	DID("get");
	chan_put(c);
	DID("put");
}

NOINLINE static void writer(struct chan *c)
{
	chan_get(c);
	DID("get");
	chan_get(c);
	DID("get");
	chan_put(c);
	DID("put");
	chan_put(c);
	DID("put");
}

static void *run(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct chan *c = chans[(me + i) % CHANS];

		if ((me + i) % 3)
			reader(c);
		else
			writer(c);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < CHANS; i++) {
		chans[i] = chan_new(i);
		DID("new");
	}
	for (long i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			return 1;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CHANS; i++) {
		chan_put(chans[i]);
		DID("put");
	}
	truth_print("type=chan new=chan_new get=chan_get put=chan_put", NULL, NULL);
	return 0;
}
