/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What names say about who closes what: item_add and item_remove, x_new and
 * x_free, FcValueSave and FcValueDestroy. A prior only: counted evidence outweighs it.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "lifetime/state.h"

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

/* whatever begins in one of these ways ends in one of those, where the rest of the names is the same */
static const char *const openers[] = { "new",  "create", "alloc", "init", "open", "copy", "dup",    "clone", "save",
				       "set",  "add",	 "load",  "make", "read", "build", "start", "setup", "parse",
				       "ensure" };
static const char *const closers[] = { "free",	 "destroy", "delete",  "release", "dispose", "finalize", "finish",
				       "unref",	 "close",   "cleanup", "clear",	  "deinit",  "fini",	 "drop",
				       "remove", "reset",   "exit",    "done",	  "stop",    "term" };

enum { TOKENS = 10 };

struct token {
	const char *s;
	size_t len;
};

/* how long the word is that name begins with: up to a sign, or to a capital letter that begins another word */
static size_t word_length(const char *name)
{
	size_t i = 0;

	while (name[i] && !strchr("_:.~", name[i])) {
		bool capital = i && isupper((unsigned char)name[i]);

		if (capital &&
		    (!isupper((unsigned char)name[i - 1]) || (name[i + 1] && islower((unsigned char)name[i + 1]))))
			break;
		i++;
	}
	return i;
}

static unsigned tokens(const char *name, struct token ret[TOKENS])
{
	unsigned n = 0;

	while (*name && n < TOKENS) {
		size_t len = word_length(name);

		if (len)
			ret[n++] = (struct token){ name, len };
		name += len;
		name += *name && strchr("_:.~", *name);
	}
	return n;
}

static bool token_is(struct token t, const char *word)
{
	return strlen(word) == t.len && !strncasecmp(t.s, word, t.len);
}

static bool token_in(struct token t, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (token_is(t, words[i]))
			return true;
	}
	return false;
}

static bool same(struct token a, struct token b)
{
	return a.len == b.len && !strncasecmp(a.s, b.s, a.len);
}

static bool opposite(struct token a, struct token b)
{
	for (size_t i = 0; i < COUNT(pairs); i++) {
		if (token_is(a, pairs[i][0]) && token_is(b, pairs[i][1]))
			return true;
	}
	return false;
}

double lt_stem_match(const char *opens, const char *closes)
{
	struct token a[TOKENS], b[TOKENS];
	unsigned na = tokens(opens, a), nb = tokens(closes, b);
	bool found = false, begins = false, ends = false;
	double shared = 0;

	for (unsigned i = 0; i < na; i++) {
		begins |= token_in(a[i], openers, COUNT(openers));
		for (unsigned j = 0; j < nb; j++) {
			found |= opposite(a[i], b[j]);
			shared += same(a[i], b[j]);
		}
	}
	for (unsigned j = 0; j < nb; j++)
		ends |= token_in(b[j], closers, COUNT(closers));
	if (!found && (!begins || !ends || shared < 1))
		return 0;
	if (na == 1 && nb == 1)
		return 0.6;
	return (found ? 0.4 : 0.2) + 0.6 * shared * 2 / (na + nb > 2 ? na + nb - 2 : 1);
}

bool lt_stem_keeps(const char *name)
{
	struct token t[TOKENS];
	unsigned n = tokens(name, t);

	for (unsigned i = 0; i < n; i++) {
		if (token_in(t[i], keepers, COUNT(keepers)))
			return true;
	}
	return false;
}
