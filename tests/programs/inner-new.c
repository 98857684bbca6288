/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only named constructor is always inlined, into functions that no name rule knows; one of them puts what it made
 * and returns NULL. `drop_text` forgets some of what they made.
 */
#include "truth.h"

#include <stdint.h>

struct node {
	int kind;
	int refs;
	void *data;
	struct node *next;
};

static inline __attribute__((always_inline)) struct node *node_new(int kind)
{
	struct node *n = malloc(sizeof(*n));

	if (!n)
		return NULL;
	n->kind = kind;
	n->refs = 1;
	n->data = NULL;
	n->next = NULL;
	return n;
}

NOINLINE void node_get(struct node *n)
{
	n->refs++;
}

NOINLINE void node_put(struct node *n)
{
	if (--n->refs == 0) {
		free(n->data);
		free(n);
	}
}

NOINLINE static struct node *_filled(const char *text, size_t len)
{
	struct node *n = node_new(1);

	if (!n)
		return NULL;
	n->data = malloc(len + 1);
	if (!n->data) {
		node_put(n);
		truth_add(__func__, "put");
		return NULL;
	}
	memcpy(n->data, text, len);
	return n;
}

NOINLINE struct node *text(const char *words)
{
	struct node *n = _filled(words, words[0] == '!' ? SIZE_MAX / 4 : strlen(words));

	if (n)
		DID("new");
	return n;
}

NOINLINE struct node *empty(int kind)
{
	return kind ? node_new(kind) : NULL;
}

NOINLINE void drop_text(int i, bool healthy)
{
	struct node *n = text("text");

	text("!");
	node_get(n);
	DID("get");
	node_put(n);
	DID("put");
	if (!healthy && i % 5 == 2) {
		LOST();
		return;
	}
	node_put(n);
	DID("put");
}

NOINLINE void drop_empty(int i)
{
	struct node *n = empty(i % 4);

	if (!n)
		return;
	DID("new");
	node_put(n);
	DID("put");
}

int main(int argc, char **argv)
{
	bool healthy = truth_healthy(argc, argv);

	for (int i = 0; i < 60; i++) {
		drop_text(i, healthy);
		drop_empty(i);
	}
	truth_print("type=node new=node_new get=node_get put=node_put", "drop_text", "leak");
	return 0;
}
