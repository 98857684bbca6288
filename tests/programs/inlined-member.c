/* SPDX-License-Identifier: GPL-2.0-only */
/* A get that is inlined where its object is in a register, is a member of what is there, and is loaded; each is said.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct ref {
	int count;
};
struct node {
	long pad[3];
	struct ref ref;
	struct ref *other;
};

static volatile int step;

static inline __attribute__((always_inline)) void ref_get(struct ref *r)
{
	step = 1;
	r->count++;
}

__attribute__((noinline)) static void direct(struct ref *r)
{
	ref_get(r);
	step = 2;
}

__attribute__((noinline)) static void member(struct node *n)
{
	ref_get(&n->ref);
	step = 3;
}

__attribute__((noinline)) static void loaded(struct node *n)
{
	ref_get(n->other);
	step = 4;
}

static void say(const struct ref *r)
{
	printf("get %llx\n", (unsigned long long)(uintptr_t)r);
}

int main(void)
{
	for (int i = 0; i < 4; i++) {
		struct node *n = calloc(1, sizeof(*n));

		n->other = calloc(1, sizeof(*n->other));
		say(&n->ref);
		direct(&n->ref);
		say(&n->ref);
		member(n);
		say(n->other);
		loaded(n);
	}
	return 0;
}
