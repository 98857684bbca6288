/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects that stay in a global table on purpose, until the process ends: nobody is guilty. */
#include "truth.h"

struct entry {
	unsigned key;
	int refs;
	char value[56];
};

enum { SLOTS = 16 };
struct entry *entry_cache[SLOTS];

NOINLINE struct entry *entry_new(unsigned key)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	e->refs = 1;
	e->key = key;
	return e;
}

NOINLINE struct entry *entry_ref(struct entry *e)
{
	e->refs++;
	return e;
}

NOINLINE void entry_unref(struct entry *e)
{
	if (--e->refs == 0)
		free(e);
}

NOINLINE void store(struct entry *e)
{
	struct entry **slot = &entry_cache[e->key % SLOTS];

	if (*slot) {
		entry_unref(*slot);
		DID("put");
	}
	*slot = entry_ref(e);
	DID("get");
}

NOINLINE struct entry *lookup(unsigned key)
{
	struct entry *e = entry_cache[key % SLOTS];

	if (!e || e->key != key)
		return NULL;
	return e;
}

int main(void)
{
	for (unsigned i = 0; i < 100; i++) {
		unsigned key = i * 7 % 40;
		struct entry *e = lookup(key);

		if (e) {
			e->value[0]++;
			continue;
		}
		e = entry_new(key);
		DID("new");
		store(e);
		entry_unref(e);
		DID("put");
	}
	truth_print("type=entry new=entry_new get=entry_ref put=entry_unref", NULL, NULL);
	return 0;
}
