/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What names say about who closes what: item_add and item_remove, x_new and
 * x_free, FcValueSave and FcValueDestroy. A prior only: counted evidence outweighs it.
 */
#include <string.h>
#include <strings.h>

#include "base/words.h"
#include "lifetime/site.h"
#include "lifetime/stem.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const pairs[][2] = {
	{ "get", "put" },
	{ "ref", "unref" },
	{ "add", "remove" },
	{ "add", "del" },
	{ "add", "delete" },
	{ "insert", "remove" },
	{ "insert", "delete" },
	{ "insert", "erase" },
	{ "insert", "evict" },
	{ "link", "unlink" },
	{ "attach", "detach" },
	{ "set", "clear" },
	{ "set", "unset" },
	{ "new", "free" },
	{ "new", "destroy" },
	{ "new", "delete" },
	{ "create", "destroy" },
	{ "create", "delete" },
	{ "create", "free" },
	{ "alloc", "free" },
	{ "init", "fini" },
	{ "init", "exit" },
	{ "init", "deinit" },
	{ "init", "cleanup" },
	{ "init", "destroy" },
	{ "open", "close" },
	{ "start", "stop" },
	{ "begin", "end" },
	{ "enter", "leave" },
	{ "push", "pop" },
	{ "register", "unregister" },
	{ "acquire", "release" },
	{ "take", "release" },
	{ "hold", "release" },
	{ "hold", "drop" },
	{ "lock", "unlock" },
	{ "connect", "disconnect" },
	{ "load", "unload" },
	{ "setup", "teardown" },
	{ "setup", "cleanup" },
	{ "enqueue", "dequeue" },
	{ "queue", "dequeue" },
	{ "store", "drop" },
	{ "cache", "evict" },
	{ "bind", "unbind" },
	{ "join", "leave" },
	{ "grab", "drop" },
	{ "install", "uninstall" },
	{ "map", "unmap" },
	{ "save", "discard" },
};

static const char *const keepers[] = { "add",  "insert",  "attach",  "link",     "register", "push",   "store",
				       "save", "cache",   "queue",   "enqueue",  "append",   "intern", "set",
				       "bind", "connect", "install", "remember", "keep",     "memo" };

/* whatever begins in one of these ways ends in any way (rt_words_end()), where the rest of the names is the same */
static const char *const openers[] = { "new",   "create", "alloc", "init",  "open",  "copy", "dup",
				       "clone", "save",   "set",   "add",   "load",  "make", "read",
				       "build", "start",  "setup", "parse", "ensure" };

enum { WORDS = 10 };

static bool opposite(struct rt_word a, struct rt_word b)
{
	for (size_t i = 0; i < COUNT(pairs); i++) {
		if (rt_word_is(a, pairs[i][0]) && rt_word_is(b, pairs[i][1]))
			return true;
	}
	return false;
}

double lt_stem_match(const char *opens, const char *closes)
{
	struct rt_word a[WORDS], b[WORDS];
	unsigned na = rt_words(opens, a, WORDS), nb = rt_words(closes, b, WORDS);
	bool found = false, begins = false;
	double shared = 0;

	for (unsigned i = 0; i < na; i++) {
		begins |= rt_word_in(a[i], openers, COUNT(openers));
		for (unsigned j = 0; j < nb; j++) {
			found |= opposite(a[i], b[j]);
			shared += rt_word_same(a[i], b[j]);
		}
	}
	if (!found && (!begins || !rt_words_end(closes) || shared < 1))
		return 0;
	if (na == 1 && nb == 1)
		return 0.6;
	return (found ? 0.4 : 0.2) + 0.6 * shared * 2 / (na + nb > 2 ? na + nb - 2 : 1);
}

bool lt_stem_keeps(const char *name)
{
	struct rt_word t[WORDS];
	unsigned n = rt_words(name, t, WORDS);

	for (unsigned i = 0; i < n; i++) {
		if (rt_word_in(t[i], keepers, COUNT(keepers)))
			return true;
	}
	return false;
}

bool lt_site_keeps(const struct rt_lifetime *lt, uint32_t site)
{
	const struct lt_site *s = lt_site(lt, site);

	for (unsigned i = 0; i < s->nr; i++) {
		if (lt_stem_keeps(lt_function_name(lt, site, i)))
			return true;
	}
	return false;
}

/* the words of name that say what it works on, not that this ends, nor how; returns how many */
static unsigned nouns(const char *name, struct rt_word *ret)
{
	static const char *const how[] = {
		"end", "all", "internal", "locked", "unlocked", "impl", "real", "do", "self"
	};
	struct rt_word t[WORDS];
	unsigned n = rt_words(name, t, WORDS), nr = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!rt_word_ends(t[i]) && !rt_word_in(t[i], how, COUNT(how)))
			ret[nr++] = t[i];
	}
	return nr;
}

bool lt_stem_within(const char *part, const char *whole)
{
	struct rt_word a[WORDS], b[WORDS];
	unsigned na = nouns(part, a), nb = nouns(whole, b), found = 0;

	for (unsigned i = 0; i < na; i++) {
		for (unsigned j = 0; j < nb; j++) {
			if (rt_word_same(a[i], b[j])) {
				found++;
				break;
			}
		}
	}
	return found == na;
}

bool lt_stem_twins(const char *a, const char *b)
{
	return strcmp(a, b) && rt_words_end(a) && rt_words_end(b) && lt_stem_within(a, b) && lt_stem_within(b, a);
}

bool lt_stem_ends(const char *name, const char *type)
{
	struct rt_word t[WORDS], rest[WORDS];
	unsigned n = rt_words(name, t, WORDS), verb = n, nr;

	while (verb > 0 && !rt_word_ends(t[verb - 1]))
		verb--;
	/* free_it() ends what it is given; of item_free_it() the item is given */
	if (verb < 2)
		return true;
	nr = nouns(t[verb - 1].s + t[verb - 1].len, rest);
	for (unsigned i = 0; i < nr; i++) {
		if (!rt_word_spelled(rest[i], type))
			return false;
	}
	return true;
}
