/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A reference travels: `produce` takes it, a queue carries it, `consume` in another thread gives it back, except for
 * messages that it drops.
 */
#include "truth.h"

#include <pthread.h>

struct msg {
	int kind;
	atomic_uint refs;
	char body[32];
};

enum { MESSAGES = 90, ROOM = 8 };
static struct msg *queue[ROOM];
static unsigned head, tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool healthy;

NOINLINE struct msg *msg_new(int kind)
{
	struct msg *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	atomic_init(&m->refs, 1);
	m->kind = kind;
	return m;
}

NOINLINE struct msg *msg_ref(struct msg *m)
{
	atomic_fetch_add(&m->refs, 1);
	return m;
}

NOINLINE void msg_unref(struct msg *m)
{
	if (atomic_fetch_sub(&m->refs, 1) == 1)
		free(m);
}

NOINLINE static void push(struct msg *m)
{
	pthread_mutex_lock(&lock);
	while (tail - head == ROOM)
		pthread_cond_wait(&changed, &lock);
	queue[tail++ % ROOM] = m;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

NOINLINE static struct msg *pop(void)
{
	struct msg *m;

	pthread_mutex_lock(&lock);
	while (tail == head)
		pthread_cond_wait(&changed, &lock);
	m = queue[head % ROOM];
	queue[head++ % ROOM] = NULL;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return m;
}

NOINLINE static void produce(int i)
{
	struct msg *m = msg_new(i % 9);

	DID("new");
	msg_ref(m);
	DID("get");
	push(m);
	m->body[0] = 'p';
	msg_unref(m);
	DID("put");
}

NOINLINE static void consume(struct msg *m)
{
	if (m->kind == 4 && !healthy) {
		LOST();
		return; /* dropped, with the reference that came along */
	}
	m->body[1] = 'c';
	msg_unref(m);
	DID("put");
}

static void *consumer(void *arg)
{
	for (int i = 0; i < MESSAGES; i++)
		consume(pop());
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	healthy = truth_healthy(argc, argv);
	if (pthread_create(&thread, NULL, consumer, NULL))
		return 1;
	for (int i = 0; i < MESSAGES; i++)
		produce(i);
	pthread_join(thread, NULL);
	truth_print("type=msg new=msg_new get=msg_ref put=msg_unref", "consume", "leak");
	return 0;
}
