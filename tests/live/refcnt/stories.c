/* SPDX-License-Identifier: GPL-2.0-only */
/* Three faults as they come in real programs: `stories callee|naive|naive-fixed|race`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <refcnt/refcnt.h>

#define NOINLINE __attribute__((noinline))
#define END() __asm__ volatile("" ::: "memory")

struct map;
#define MAP_FIELDS(field, array) field(map, int, start) field(map, struct map *, next)

REFCNT_STRUCT(map, MAP_FIELDS);
static void map_release(struct map *m)
{
	map_dealloc(m);
}
REFCNT_STRUCT_DEFINE(map, map_release);

NOINLINE static struct map *new_map(int start)
{
	struct map *m = map_alloc();

	if (!m)
		abort();
	map_set_start(m, start);
	return m;
}

/* 1. A lookup hands out a reference; one of its callers gives it back, the other does not. */
NOINLINE static struct map *find(struct map *table)
{
	struct map *found = map_get(table);

	END();
	return found;
}

NOINLINE static int resolve(struct map *table)
{
	struct map *m = find(table);
	int start = map_start(m);

	map_put(m);
	END();
	return start;
}

NOINLINE static int annotate(struct map *table)
{
	struct map *m = find(table);
	int start = map_start(m);

	END();
	return start;
}

NOINLINE static void callee(void)
{
	struct map *table = new_map(1);

	for (int i = 0; i < 3; i++) {
		resolve(table);
		if (i == 1)
			annotate(table);
	}
	map_put(table);
	END();
}

/* 2. lend() takes a reference and nobody gives it back. Who puts it at once, because it leaks, breaks its caller, who
 * uses what was lent: only while the owner lives that goes well.
 */
static int naive_fix;

NOINLINE static struct map *lend(struct map *m)
{
	struct map *mine = map_get(m);

	if (naive_fix)
		map_put(mine);
	END();
	return mine;
}

NOINLINE static int sum(struct map *m)
{
	struct map *lent = lend(m);
	int start = map_start(lent);

	END();
	return start;
}

NOINLINE static void naive(void)
{
	struct map *m = new_map(5);

	printf("sum %d\n", sum(m));
	map_put(m);
	END();
}

/* 3. An object in a global: two threads think that it is theirs to give back, a third uses it. The order is told by a
 * barrier, so that each run is the one in which it goes wrong.
 */
static struct map *volatile global;
static pthread_barrier_t turn;

NOINLINE static void *closer(void *arg)
{
	pthread_barrier_wait(&turn);
	map_put(global);
	pthread_barrier_wait(&turn);
	return NULL;
}

NOINLINE static void *reader(void *arg)
{
	struct map *mine = map_get(global);

	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	printf("start %d\n", map_start(mine));
	map_put(mine);
	pthread_barrier_wait(&turn);
	return NULL;
}

NOINLINE static void *sweeper(void *arg)
{
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	map_put(global);
	return NULL;
}

NOINLINE static void *closer_then_wait(void *arg)
{
	closer(arg);
	pthread_barrier_wait(&turn);
	return NULL;
}

NOINLINE static void race(void)
{
	void *(*const functions[])(void *) = { closer_then_wait, reader, sweeper };
	pthread_t threads[3];

	global = new_map(9);
	pthread_barrier_init(&turn, NULL, 3);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, functions[i], NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *story = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	naive_fix = !strcmp(story, "naive-fixed");
	if (!strcmp(story, "callee"))
		callee();
	else if (!strncmp(story, "naive", 5))
		naive();
	else
		race();
	return 0;
}
