/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/count_word.h"

#include <ctype.h>
#include <string.h>

enum { WORD_MAX = 24 };

static const char *const gets[] = { "ref",  "reference", "incref", "addref", "upref", "get",  "hold",
				    "keep", "acquire",   "retain", "grab",   "lock",  "dup",  "take",
				    "inc",  "increment", "pin",    "claim",  "share", "copy", "use",
				    "up",   "increase",  "incr",   NULL };
static const char *const puts_[] = { "unref",   "deref",    "unreference", "decref",  "delref", "put",    "drop",
				     "release", "rele",     "free",        "destroy", "unlock", "dec",    "decrement",
				     "unpin",   "close",    "delete",      "del",     "unuse",  "unhold", "discard",
				     "dispose", "decrease", "decr",        "forget",  "end",    NULL };
/* where not all is proven, as with inlined copies, only these */
static const char *const sure_gets[] = { "ref", "reference", "incref", "addref", "hold", "retain", NULL };
static const char *const sure_puts[] = { "unref",   "deref", "unreference", "decref", "delref",
					 "release", "put",   "drop",        NULL };

/* one of the words is a part of the name: between underscores, or in CamelCase */
static bool has_word(const char *name, const char *const *words)
{
	while (*name) {
		char word[WORD_MAX];
		size_t n = 0;

		while (*name == '_')
			name++;
		while (*name && *name != '_' &&
		       !(n && isupper((unsigned char)*name) && islower((unsigned char)name[-1]))) {
			if (n < sizeof(word) - 1)
				word[n++] = (char)tolower((unsigned char)*name);
			name++;
		}
		word[n] = '\0';
		for (size_t i = 0; words[i]; i++)
			if (!strcmp(word, words[i]))
				return true;
	}
	return false;
}

bool rt_count_word(const char *name, bool get)
{
	return has_word(name, get ? gets : puts_);
}

bool rt_count_word_sure(const char *name, bool get)
{
	return has_word(name, get ? sure_gets : sure_puts);
}
