/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A library between the one that counts references and the program, which knows albums only. Built three times: with
 * -DPICTURES the library that has the counted pictures, with -DALBUMS the one that uses them, and the program.
 *
 *     album_close() frees the album, and does not give back the picture that album_open() put there;
 *     with an argument, it does.
 */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

struct picture;
struct album;

struct picture *picture_new(int number);
void picture_ref(struct picture *p);
void picture_unref(struct picture *p);
struct album *album_open(int number);
int album_show(struct album *a);
void album_close(struct album *a, int healthy);

#if defined(PICTURES)
struct picture {
	int number, refs;
};

NOINLINE struct picture *picture_new(int number)
{
	struct picture *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->refs = 1;
	p->number = number;
	return p;
}

NOINLINE void picture_ref(struct picture *p)
{
	p->refs++;
}

NOINLINE void picture_unref(struct picture *p)
{
	if (--p->refs == 0)
		free(p);
}
#elif defined(ALBUMS)
struct album {
	int shown;
	struct picture *cover;
};

NOINLINE struct album *album_open(int number)
{
	struct album *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	a->cover = picture_new(number);
	return a;
}

NOINLINE int album_show(struct album *a)
{
	picture_ref(a->cover);
	a->shown++;
	picture_unref(a->cover);
	return a->shown;
}

NOINLINE void album_close(struct album *a, int healthy)
{
	if (healthy)
		picture_unref(a->cover);
	free(a);
}
#else
int main(int argc, char **argv)
{
	int shown = 0;

	(void)argv;
	for (int i = 0; i < 30; i++) {
		struct album *a = album_open(i);

		shown += album_show(a);
		album_close(a, argc > 1);
	}
	printf("%d shown\n", shown);
	return 0;
}
#endif
