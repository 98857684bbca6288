/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What names say about who closes what: item_add and item_remove, x_new and
 * x_free. A prior only: counted evidence outweighs it.
 */
#include <string.h>

#include "lifetime/state.h"

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

struct token {
	const char *s;
	size_t len;
};

/* parts of a name between underscores and other signs */
static unsigned tokens(const char *name, struct token ret[8])
{
	unsigned n = 0;

	while (*name && n < 8) {
		size_t len = strcspn(name, "_:.~");

		if (len)
			ret[n++] = (struct token){ name, len };
		name += len;
		name += *name != 0;
	}
	return n;
}

static bool token_is(struct token t, const char *word)
{
	return strlen(word) == t.len && !memcmp(t.s, word, t.len);
}

static bool same(struct token a, struct token b)
{
	return a.len == b.len && !memcmp(a.s, b.s, a.len);
}

static bool opposite(struct token a, struct token b)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (token_is(a, pairs[i][0]) && token_is(b, pairs[i][1]))
			return true;
	}
	return false;
}

double lt_stem_match(const char *opens, const char *closes)
{
	struct token a[8], b[8];
	unsigned na = tokens(opens, a), nb = tokens(closes, b);
	bool found = false;
	double shared = 0;

	for (unsigned i = 0; i < na; i++) {
		for (unsigned j = 0; j < nb; j++) {
			found |= opposite(a[i], b[j]);
			shared += same(a[i], b[j]);
		}
	}
	if (!found)
		return 0;
	if (na == 1 && nb == 1)
		return 0.6;
	return 0.4 + 0.6 * shared * 2 / (na + nb > 2 ? na + nb - 2 : 1);
}

bool lt_stem_keeps(const char *name)
{
	struct token t[8];
	unsigned n = tokens(name, t);

	for (unsigned i = 0; i < n; i++) {
		for (size_t k = 0; k < sizeof(keepers) / sizeof(keepers[0]); k++) {
			if (token_is(t[i], keepers[k]))
				return true;
		}
	}
	return false;
}
