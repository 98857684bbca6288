/* SPDX-License-Identifier: GPL-2.0-only */
/* Healthy: 8 threads take, use, replace and give back what lies in shared slots; `stress OPERATIONS`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <refcnt/refcnt.h>

#define THREADS 8
#define SLOTS 32

#define CONN_FIELDS(field, array) field(conn, unsigned, number) field(conn, unsigned, twice)

REFCNT_STRUCT(conn, CONN_FIELDS);

static unsigned made, released;

static void conn_release(struct conn *c)
{
	if (conn_twice(c) != 2 * conn_number(c))
		abort();
	__atomic_add_fetch(&released, 1, __ATOMIC_RELAXED);
	conn_dealloc(c);
}
REFCNT_STRUCT_DEFINE(conn, conn_release);

static struct {
	pthread_mutex_t lock;
	struct conn *conn;
} slots[SLOTS];
static struct refcnt_dir dir = REFCNT_DIR("workers");
static long operations;

static struct conn *make(unsigned number)
{
	struct conn *c = conn_alloc();

	if (!c)
		abort();
	__atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
	conn_set_number(c, number);
	conn_set_twice(c, 2 * number);
	return c;
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)(unsigned long)arg * 2654435761u + 1;

	for (long done = 0; done < operations / THREADS; done += 2) {
		struct refcnt_tracker cookie = { 0 };
		struct conn *c, *old;
		unsigned slot;

		seed = seed * 1664525 + 1013904223;
		slot = (seed >> 16) % SLOTS;
		pthread_mutex_lock(&slots[slot].lock);
		c = seed & 0x100 ? conn_get_tracked(slots[slot].conn, &dir, &cookie) : conn_get(slots[slot].conn);
		pthread_mutex_unlock(&slots[slot].lock);
		if (conn_twice(c) != 2 * conn_number(c))
			abort();
		if (seed >> 28 == 0) {
			old = make(seed);
			pthread_mutex_lock(&slots[slot].lock);
			conn_swap(&old, &slots[slot].conn);
			pthread_mutex_unlock(&slots[slot].lock);
			conn_put(old);
			done += 2;
		}
		if (cookie.id)
			conn_put_tracked(c, &cookie);
		else
			conn_put(c);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	operations = argc > 1 ? atol(argv[1]) : 1000;
	for (unsigned i = 0; i < SLOTS; i++) {
		pthread_mutex_init(&slots[i].lock, NULL);
		slots[i].conn = make(i);
	}
	for (unsigned long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < SLOTS; i++)
		conn_put(slots[i].conn);
	if (made != released)
		abort();
	printf("healthy\n");
	return 0;
}
