/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A cache of words with a counter written by hand; one path forgets a reference. refcnt-tutorial(7). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
	int users;
	char text[32];
};

static struct word *cached;

static struct word *word_new(const char *text)
{
	struct word *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->users = 1;
	snprintf(w->text, sizeof(w->text), "%s", text);
	return w;
}

static struct word *word_ref(struct word *w)
{
	w->users++;
	return w;
}

static void word_unref(struct word *w)
{
	if (--w->users == 0)
		free(w);
}

static int measure(struct word *w)
{
	struct word *mine = word_ref(w);
	int length = (int)strlen(mine->text);

	if (length > 4)
		return -1; /* forgets mine */
	word_unref(mine);
	return length;
}

int main(void)
{
	static const char *const texts[] = { "a", "longer", "word", "longest" };

	cached = word_new("kept");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct word *w = word_new(texts[i]);

		printf("%d\n", measure(w));
		word_unref(w);
	}
	printf("%d\n", measure(cached));
	word_unref(cached);
	return 0;
}
