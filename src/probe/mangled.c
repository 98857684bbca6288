/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/mangled.h"

#include <ctype.h>
#include <string.h>

/* <decimal length><identifier> */
static const char *identifier(const char *s, const char **ret, size_t *ret_len)
{
	size_t len = 0;

	if (*s < '1' || *s > '9')
		return NULL;
	while (isdigit((unsigned char)*s) && len < 1000)
		len = len * 10 + (size_t)(*s++ - '0');
	if (strnlen(s, len) < len)
		return NULL;
	*ret = s;
	*ret_len = len;
	return s + len;
}

bool rt_mangled_method(const char *name, struct rt_mangled *ret)
{
	struct rt_mangled m = { .klass = NULL };
	const char *s;

	if (strncmp(name, "_ZN", 3) != 0)
		return false;
	/* K: const methods */
	s = name + 3 + (name[3] == 'K');
	while (*s != 'E') {
		const char *start = s;

		m.klass = m.method;
		m.klass_len = m.method_len;
		m.prefix = (size_t)(start - name);
		s = identifier(s, &m.method, &m.method_len);
		if (!s)
			return false;
	}
	if (!m.klass)
		return false;
	m.plain = strcmp(s + 1, "v") == 0;
	*ret = m;
	return true;
}

static bool is_word(const struct rt_mangled *m, const char *word)
{
	return strlen(word) == m->method_len && memcmp(m->method, word, m->method_len) == 0;
}

static const char *const pairs[][2] = {
	{ "ref", "unref" },
	{ "ref", "deref" },
	{ "Ref", "Unref" },
	{ "retain", "release" },
	{ "Retain", "Release" },
	{ "AddRef", "Release" },
	{ "addRef", "release" },
	{ "addref", "release" },
	{ "add_ref", "release" },
	{ "incRef", "decRef" },
	{ "IncRef", "DecRef" },
	{ "incref", "decref" },
	{ "addRef", "removeRef" },
	{ "acquire", "release" },
	{ "Acquire", "Release" },
	{ "grab", "drop" },
	{ "get", "put" },
	{ "hold", "release" },
	{ "reference", "unreference" },
};

const char *rt_mangled_put(const struct rt_mangled *get, size_t i)
{
	for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
		if (is_word(get, pairs[k][0]) && !i--)
			return pairs[k][1];
	return NULL;
}

bool rt_mangled_is_new(const struct rt_mangled *method)
{
	static const char *const words[] = { "create", "Create", "make", "Make", "newInstance", "alloc" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is_word(method, words[i]))
			return true;
	return false;
}
