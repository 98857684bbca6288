/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The same for every mode, with its fields told once, and without the fault. refcnt-tutorial(7). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <refcnt/refcnt.h>

#define WORD_FIELDS(field, array) field(word, int, hits) array(word, char, text, 32)

REFCNT_STRUCT(word, WORD_FIELDS);
static void word_release(struct word *w)
{
	word_dealloc(w);
}
REFCNT_STRUCT_DEFINE(word, word_release);

static struct word *cached;

static struct word *word_new(const char *text)
{
	struct word *w = word_alloc();

	if (!w)
		abort();
	snprintf(word_text(w), 32, "%s", text);
	return w;
}

static void forget_cached(void)
{
	word_put_at(&cached);
}
REFCNT_TEARDOWN(forget_cached);

static int measure(struct word *w)
{
	REFCNT_SCOPED(word) struct word *mine = word_get(w);
	int length = (int)strlen(word_text(mine));

	word_set_hits(mine, word_hits(mine) + 1);
	if (length > 4)
		return -1;
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
