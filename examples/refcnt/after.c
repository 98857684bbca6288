/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The same with librefcnt. refcnt-tutorial(7). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <refcnt/refcnt.h>

struct word {
	struct refcnt users;
	char text[32];
};

REFCNT_DECLARE(word, struct word);
static void word_release(struct word *w)
{
	word_dealloc(w);
}
REFCNT_DEFINE(word, struct word, users, word_release);

static struct word *cached;

static struct word *word_new(const char *text)
{
	struct word *w = word_alloc();

	if (!w)
		abort();
	snprintf(w->text, sizeof(w->text), "%s", text);
	return w;
}

static void forget_cached(void)
{
	word_put_at(&cached);
}
REFCNT_TEARDOWN(forget_cached);

static int measure(struct word *w)
{
	struct word *mine = word_get(w);
	int length = (int)strlen(mine->text);

	if (length > 4)
		return -1; /* forgets mine */
	word_put(mine);
	return length;
}

int main(void)
{
	static const char *const texts[] = { "a", "longer", "word", "longest" };

	cached = word_new("kept");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct word *w = word_new(texts[i]);

		printf("%d\n", measure(w));
		word_put(w);
	}
	printf("%d\n", measure(cached));
	return 0;
}
