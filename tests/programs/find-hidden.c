/* SPDX-License-Identifier: GPL-2.0-only */
/* `dev_find` hands out a reference inside itself; `is_up` asks and forgets. The table owns one reference of each. */
#include "truth.h"

struct dev {
	int index;
	int refs;
	bool up;
	char name[16];
};

enum { DEVS = 30 };
static struct dev *table[DEVS];
static bool healthy;

NOINLINE struct dev *dev_create(int index)
{
	struct dev *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	d->refs = 1;
	d->index = index;
	d->up = index % 3 == 0;
	return d;
}

NOINLINE void dev_put(struct dev *d)
{
	if (--d->refs == 0)
		free(d);
}

NOINLINE struct dev *dev_find(int index)
{
	struct dev *d = index < DEVS ? table[index] : NULL;

	if (d)
		d->refs++;
	return d;
}

NOINLINE bool is_up(int index)
{
	struct dev *d = dev_find(index);
	bool up;

	DID("get");
	up = d->up;
	if (!up && index % 5 == 1 && !healthy) {
		LOST();
		return false;
	}
	dev_put(d);
	DID("put");
	return up;
}

NOINLINE void set_up(int index)
{
	struct dev *d = dev_find(index);

	DID("get");
	d->up = true;
	dev_put(d);
	DID("put");
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < DEVS; i++) {
		table[i] = dev_create(i);
		DID("new");
	}
	for (int i = 0; i < DEVS; i++) {
		if (!is_up(i))
			set_up(i);
	}
	for (int i = 0; i < DEVS; i++) {
		struct dev *d = table[i];

		table[i] = NULL;
		dev_put(d);
		DID("put");
	}
	truth_print("type=dev new=dev_create hidden=dev_find:ret put=dev_put", "is_up", "leak");
	return 0;
}
