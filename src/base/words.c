/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/words.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define SIGNS "_:.~"

enum { WORDS = 16 };

/* how long the word is that name begins with */
static size_t length(const char *name)
{
	size_t i = 0;

	while (name[i] && !strchr(SIGNS, name[i])) {
		bool capital = i && isupper((unsigned char)name[i]);

		if (capital &&
		    (!isupper((unsigned char)name[i - 1]) || (name[i + 1] && islower((unsigned char)name[i + 1]))))
			break;
		i++;
	}
	return i;
}

unsigned rt_words(const char *name, struct rt_word *ret, unsigned max)
{
	unsigned n = 0;

	while (*name && n < max) {
		size_t len = length(name);

		if (len)
			ret[n++] = (struct rt_word){ name, len };
		name += len;
		name += *name && strchr(SIGNS, *name);
	}
	return n;
}

bool rt_word_is(struct rt_word word, const char *text)
{
	return strlen(text) == word.len && !strncasecmp(word.s, text, word.len);
}

bool rt_word_in(struct rt_word word, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (rt_word_is(word, texts[i]))
			return true;
	}
	return false;
}

bool rt_word_same(struct rt_word a, struct rt_word b)
{
	return a.len == b.len && !strncasecmp(a.s, b.s, a.len);
}

bool rt_word_spelled(struct rt_word word, const char *text)
{
	for (; *text; text++) {
		if (!strncasecmp(text, word.s, word.len))
			return true;
	}
	return false;
}

bool rt_words_same_end(const char *a, const char *b)
{
	struct rt_word words[2][WORDS];
	unsigned na = rt_words(a, words[0], WORDS), nb = rt_words(b, words[1], WORDS);

	return na && nb && rt_word_same(words[0][na - 1], words[1][nb - 1]);
}

bool rt_words_have(const char *name, const char *const *texts, size_t nr)
{
	struct rt_word words[WORDS];
	unsigned n = rt_words(name, words, WORDS);

	for (unsigned i = 0; i < n; i++) {
		if (rt_word_in(words[i], texts, nr))
			return true;
	}
	return false;
}

static const char *const destroyers[] = { "free",     "destroy",  "delete",   "del",     "release", "dispose",
					  "finalize", "fini",     "unref",    "deref",   "decref",  "cleanup",
					  "clear",    "deinit",   "drop",     "discard", "purge",   "uninit",
					  "erase",    "teardown", "destruct", "dtor" };
static const char *const enders[] = { "finish", "put",        "close",    "remove", "reset",     "exit", "done",
				      "stop",   "term",       "unlink",   "detach", "unset",     "pop",  "dequeue",
				      "evict",  "disconnect", "shutdown", "kill",   "unregister" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool rt_words_destroy(const char *name)
{
	return rt_words_have(name, destroyers, COUNT(destroyers));
}

bool rt_words_end(const char *name)
{
	return rt_words_destroy(name) || rt_words_have(name, enders, COUNT(enders));
}

bool rt_word_ends(struct rt_word word)
{
	return rt_word_in(word, destroyers, COUNT(destroyers)) || rt_word_in(word, enders, COUNT(enders));
}

bool rt_words_free(const char *name)
{
	return strcasestr(name, "free") || strcasestr(name, "dealloc");
}
