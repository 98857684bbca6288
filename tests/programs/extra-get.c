/* SPDX-License-Identifier: GPL-2.0-only */
/* `thumbnail` takes a second reference for a retry and gives back one. */
#include "truth.h"

struct image {
	int width, height;
	int refs;
	char pixels[80];
};

static bool healthy;

NOINLINE struct image *image_load(int n)
{
	struct image *i = calloc(1, sizeof(*i));

	if (!i)
		abort();
	i->refs = 1;
	i->width = n;
	i->height = n / 2;
	return i;
}

NOINLINE struct image *image_get(struct image *i)
{
	i->refs++;
	return i;
}

NOINLINE void image_put(struct image *i)
{
	if (--i->refs == 0)
		free(i);
}

NOINLINE int thumbnail(struct image *i)
{
	image_get(i);
	DID("get");
	if (i->width % 6 == 2 && !healthy) {
		image_get(i);
		DID("get");
		LOST();
	}
	i->pixels[0]++;
	image_put(i);
	DID("put");
	return i->width;
}

NOINLINE void show(struct image *i)
{
	image_get(i);
	DID("get");
	i->pixels[1] = (char)thumbnail(i);
	image_put(i);
	DID("put");
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int n = 0; n < 72; n++) {
		struct image *i = image_load(n);

		DID("new");
		show(i);
		image_put(i);
		DID("put");
	}
	truth_print("type=image new=image_load get=image_get put=image_put", "thumbnail", "leak");
	return 0;
}
