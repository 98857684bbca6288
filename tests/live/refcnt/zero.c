/* SPDX-License-Identifier: GPL-2.0-only */
/* The same work by librefcnt (-DOURS) and by a counter that somebody has written with C11's atomics; -DNOPS: that has a
 * nop where librefcnt has a mark.
 */
#include <stdbool.h>
#include <stdint.h>

struct node;
void node_destroy(struct node *n);
void use(struct node *n);

#ifdef OURS
#include <refcnt/refcnt.h>

struct node {
	long value;
	struct refcnt refs;
};
REFCNT_DEFINE(node, struct node, refs, node_destroy);
#else
#include <stdatomic.h>
#include <stddef.h>

#define MAX 0x7fffffffu
#define SATURATED 0xc0000000u
#define unlikely(x) __builtin_expect(!!(x), 0)
#ifndef NOPS
#define NOP(p) ((void)0)
#elif defined(__clang__)
#define NOP(p) __asm__ __inline__ volatile("nop" ::"nr"((const volatile void *)(p)))
#else
#define NOP(p) __asm__ __inline__ volatile("nop" ::"nor"((const volatile void *)(p)))
#endif

struct node {
	long value;
	_Atomic uint32_t refs;
};

static inline __attribute__((always_inline)) struct node *node_get(struct node *n)
{
	NOP(n);
	uint32_t old = atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);

	if (unlikely(old - 1 >= MAX - 1))
		atomic_store_explicit(&n->refs, SATURATED, memory_order_relaxed);
	return n;
}

static inline __attribute__((always_inline)) struct node *node_get_not_zero(struct node *n)
{
	uint32_t old = atomic_load_explicit(&n->refs, memory_order_relaxed), next;

	do {
		if (old == 0)
			return NULL;
		next = old >= MAX ? SATURATED : old + 1;
	} while (!atomic_compare_exchange_weak_explicit(&n->refs, &old, next, memory_order_acquire,
							memory_order_relaxed));
	NOP(n);
	return n;
}

static inline __attribute__((always_inline)) bool node_put(struct node *n)
{
	NOP(n);
	uint32_t old = atomic_fetch_sub_explicit(&n->refs, 1, memory_order_release);

	if (old == 1) {
		atomic_thread_fence(memory_order_acquire);
		NOP(n);
		node_destroy(n);
		return true;
	}
	if (unlikely(old - 1 >= MAX))
		atomic_store_explicit(&n->refs, SATURATED, memory_order_relaxed);
	return false;
}
#endif

struct node *only_get(struct node *n);
struct node *only_get(struct node *n)
{
	return node_get(n);
}

bool only_put(struct node *n);
bool only_put(struct node *n)
{
	return node_put(n);
}

struct node *only_get_not_zero(struct node *n);
struct node *only_get_not_zero(struct node *n)
{
	return node_get_not_zero(n);
}

void pair(struct node *n);
void pair(struct node *n)
{
	struct node *mine = node_get(n);

	use(mine);
	node_put(mine);
}

long walk(struct node **nodes, long count);
long walk(struct node **nodes, long count)
{
	long sum = 0;

	for (long i = 0; i < count; i++) {
		struct node *n = node_get_not_zero(nodes[i]);

		if (!n)
			continue;
		sum += n->value;
		if (node_put(n))
			sum++;
	}
	return sum;
}

static struct node *held(struct node *n)
{
	return n ? node_get(n) : n;
}

/* small enough to be inlined, as long as a mark counts for the one instruction that it is */
void four(struct node *n, struct node **to);
void four(struct node *n, struct node **to)
{
	to[0] = held(n);
	to[1] = held(n);
	to[2] = held(n);
	to[4] = held(n);
}
