/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One object is taken and given back at the end of 64 ways of calls, in random order: stacks that are equal at their
 * inner ends differ farther out, with frames of other sizes and, on the right, frames that hang on rbp. Prints how
 * often each way was gone: "way lrrlrl N".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

enum { FORKS = 6, GONE = 20000 };

struct obj {
	int refs;
};

static struct obj *shared;
static volatile unsigned sum;

NOINLINE void obj_get(struct obj *o)
{
	__atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
}

NOINLINE void obj_put(struct obj *o)
{
	__atomic_fetch_sub(&o->refs, 1, __ATOMIC_RELAXED);
}

NOINLINE static void bottom(void)
{
	obj_get(shared);
	sum++;
	obj_put(shared);
	sum++;
}

static void go(unsigned level, unsigned way);

NOINLINE void left(unsigned level, unsigned way)
{
	volatile char room[24];

	room[0] = (char)level;
	go(level + 1, way);
	sum += (unsigned)room[0];
}

NOINLINE void right(unsigned level, unsigned way)
{
	volatile char *room = __builtin_alloca(16 + (way >> level & 3) * 32);

	room[0] = (char)level;
	go(level + 1, way);
	sum += (unsigned)room[0];
}

NOINLINE static void go(unsigned level, unsigned way)
{
	if (level == FORKS)
		bottom();
	else if (way >> level & 1)
		right(level, way);
	else
		left(level, way);
	sum++;
}

int main(void)
{
	static unsigned gone[1 << FORKS];
	uint64_t random = 88172645463325252u;

	shared = calloc(1, sizeof(*shared));
	if (!shared)
		return 1;
	shared->refs = 1;
	for (unsigned i = 0; i < GONE; i++) {
		unsigned way;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		way = (unsigned)(random >> 20) % (1 << FORKS);
		/* some of them far more often */
		way = random >> 40 & 1 ? way : way & 5;
		gone[way]++;
		go(0, way);
	}
	for (unsigned way = 0; way < 1 << FORKS; way++) {
		printf("way ");
		for (unsigned level = 0; level < FORKS; level++)
			putchar(way >> level & 1 ? 'r' : 'l');
		printf(" %u\n", gone[way]);
	}
	return shared->refs - 1;
}
