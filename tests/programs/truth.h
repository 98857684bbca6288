/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A demo program counts for itself what a tracer has to find, and prints it at its end:
 *
 *     spec type=obj new=obj_new get=obj_get put=obj_put     how a user would describe the type
 *     count FUNCTION OP N                                   N operations were called from FUNCTION
 *     guilty FUNCTION KIND OBJECTS                          the planted fault, or `guilty none`
 *
 * DID("get") stands next to the call that it counts, and after a put, so that the put is no tail call. The table lies
 * in memory that children, exec'ed images and plugins share; whoever came first prints it, for all of them.
 */
#pragma once

#ifndef __cplusplus
#include <stdatomic.h>
#include <stdbool.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TRUTH_MAX = 128 };

struct truth_count {
	char function[40];
	char op[8];
	unsigned long n;
};

struct truth {
	char lock;
	unsigned long lost; /* objects that lack a put, as the program knows */
	struct truth_count counts[TRUTH_MAX];
};

static struct truth *truth_table;

/* Before any thread is started. */
__attribute__((constructor)) static void truth_start(void)
{
	const char *known = getenv("TRUTH_FD");
	int fd = known ? (int)strtol(known, NULL, 10) : memfd_create("truth", 0);
	char number[16];

	if (fd < 0 || (!known && ftruncate(fd, sizeof(*truth_table))))
		abort();
	truth_table = (struct truth *)mmap(NULL, sizeof(*truth_table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth_table == MAP_FAILED)
		abort();
	snprintf(number, sizeof(number), "%d", fd);
	setenv("TRUTH_FD", number, 1);
}

__attribute__((unused, noinline)) static void truth_add(const char *function, const char *op)
{
	struct truth_count *c = truth_table->counts;

	while (__atomic_test_and_set(&truth_table->lock, __ATOMIC_ACQUIRE))
		;
	while (c->function[0] && (strcmp(c->function, function) || strcmp(c->op, op))) {
		if (++c == truth_table->counts + TRUTH_MAX)
			abort();
	}
	if (!c->function[0]) {
		snprintf(c->function, sizeof(c->function), "%s", function);
		snprintf(c->op, sizeof(c->op), "%s", op);
	}
	__atomic_clear(&truth_table->lock, __ATOMIC_RELEASE);
	__atomic_fetch_add(&c->n, 1, __ATOMIC_RELAXED);
}

#define DID(op) truth_add(__func__, op)

/* One more object of which a reference was not given back. */
#define LOST() __atomic_fetch_add(&truth_table->lost, 1, __ATOMIC_RELAXED)

__attribute__((unused)) static void truth_print(const char *spec, const char *guilty, const char *kind)
{
	unsigned long lost = __atomic_load_n(&truth_table->lost, __ATOMIC_RELAXED);

	printf("spec %s\n", spec);
	for (int i = 0; i < TRUTH_MAX && truth_table->counts[i].function[0]; i++)
		printf("count %s %s %lu\n", truth_table->counts[i].function, truth_table->counts[i].op,
		       __atomic_load_n(&truth_table->counts[i].n, __ATOMIC_RELAXED));
	if (guilty && lost)
		printf("guilty %s %s %lu\n", guilty, kind, lost);
	else
		printf("guilty none\n");
	fflush(stdout);
}

/* `PROG ok`: the healthy variant. */
__attribute__((unused)) static bool truth_healthy(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], "ok");
}

#define NOINLINE __attribute__((noinline))
