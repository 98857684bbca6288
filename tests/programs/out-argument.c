/* SPDX-License-Identifier: GPL-2.0-only */
/* Volumes are opened through a `struct volume **`; `copy_files` closes the one it reads from, not always the other. */
#include "truth.h"

struct volume {
	const char *name;
	unsigned users;
	int blocks[16];
};

static bool healthy;

NOINLINE struct volume *volume_alloc(const char *name)
{
	struct volume *v = calloc(1, sizeof(*v));

	if (!v)
		abort();
	v->users = 1;
	v->name = name;
	return v;
}

NOINLINE void volume_get(struct volume *v)
{
	v->users++;
}

NOINLINE void volume_put(struct volume *v)
{
	if (--v->users == 0)
		free(v);
}

NOINLINE int probe_blocks(struct volume *v, int seed)
{
	volume_get(v);
	DID("get");
	for (int i = 0; i < 16; i++)
		v->blocks[i] = seed * i % 11;
	volume_put(v);
	DID("put");
	return v->blocks[3];
}

/* the outer level of two: what it is given it passes on, and looks at what comes back */
NOINLINE int volume_make(const char *name, int flags, struct volume **ret)
{
	struct volume *v = volume_alloc(name);

	DID("new");
	if (flags < 0) {
		volume_put(v);
		return -1;
	}
	*ret = v;
	return 0;
}

NOINLINE int volume_open(const char *name, int flags, struct volume **ret)
{
	int err = volume_make(name, flags, ret);

	if (err)
		return err;
	return probe_blocks(*ret, flags) > 100;
}

NOINLINE int copy_files(int round)
{
	struct volume *from, *to;
	int sum = 0;

	if (volume_open("a", round, &from))
		return -1;
	if (volume_open("b", round + 1, &to))
		return -1;
	for (int i = 0; i < 16; i++) {
		to->blocks[i] = from->blocks[i];
		sum += to->blocks[i];
	}
	volume_put(from);
	DID("put");
	if (round % 6 != 1 || healthy) {
		volume_put(to);
		DID("put");
	} else {
		LOST();
	}
	return sum;
}

int main(int argc, char **argv)
{
	volatile int sum = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 60; i++)
		sum += copy_files(i);
	truth_print("type=volume new=volume_alloc get=volume_get put=volume_put", "copy_files", "leak");
	return 0;
}
