/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/family.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct rt_stem stems[] = {
	{ "_ref", "_unref", RT_STEM_STRONG },
	{ "_incref", "_decref", RT_STEM_STRONG },
	{ "_inc_ref", "_dec_ref", RT_STEM_STRONG },
	{ "_up_ref", "_free", RT_STEM_STRONG },
	{ "_retain", "_release", RT_STEM_STRONG },
	{ "_reference", "_unreference", RT_STEM_STRONG },
	{ "_reference", "_destroy", RT_STEM_STRONG },
	{ "_addref", "_release", RT_STEM_STRONG },
	{ "_add_ref", "_release", RT_STEM_STRONG },
	{ "_addref", "_delref", RT_STEM_STRONG },
	{ "_add_ref", "_remove_ref", RT_STEM_STRONG },
	{ "_add_ref", "_del_ref", RT_STEM_STRONG },
	{ "_add_ref", "_drop_ref", RT_STEM_STRONG },
	{ "_get_ref", "_put_ref", RT_STEM_STRONG },
	{ "_take_ref", "_drop_ref", RT_STEM_STRONG },
	{ "_ref_get", "_ref_put", RT_STEM_STRONG },
	{ "_get", "_put", RT_STEM_COMMON },
	{ "_hold", "_rele", RT_STEM_COMMON },
	{ "_keep", "_destroy", RT_STEM_COMMON },
	{ "_keep", "_release", RT_STEM_COMMON },
	{ "Ref", "Unref", RT_STEM_COMMON },
	{ "IncRef", "DecRef", RT_STEM_COMMON },
	{ "AddRef", "Release", RT_STEM_COMMON },
	{ "Retain", "Release", RT_STEM_COMMON },
	{ "Ref", "Release", RT_STEM_COMMON },
	{ "Reference", "Release", RT_STEM_COMMON },
	{ "Reference", "Unreference", RT_STEM_COMMON },
	{ "Reference", "Destroy", RT_STEM_COMMON },
	{ "_acquire", "_release", RT_STEM_WEAK },
	{ "_grab", "_drop", RT_STEM_WEAK },
	{ "Acquire", "Release", RT_STEM_WEAK },
};

const struct rt_stem *rt_stem_at(size_t i)
{
	return i < sizeof(stems) / sizeof(stems[0]) ? &stems[i] : NULL;
}

static bool is_camel(const char *word)
{
	return isupper((unsigned char)*word);
}

/* a word of a CamelCase name begins: behind a small letter, a digit or a '_' */
static bool begins_camel(const char *name, const char *at)
{
	return at > name && !isupper((unsigned char)at[-1]) && is_camel(at);
}

/* The last place where word stands as a whole word in name. */
static const char *find_word(const char *name, const char *word)
{
	size_t len = strlen(word);
	const char *found = NULL;

	for (const char *at = name; (at = strstr(at, word)); at++)
		if (at > name && (!is_camel(word) || begins_camel(name, at)) && (at[len] == '\0' || at[len] == '_'))
			found = at;
	return found;
}

/* head[0, len) + middle + tail into a name's buffer; false: too long. */
static bool join(char *into, const char *head, size_t len, const char *middle, const char *tail)
{
	int n = snprintf(into, RT_FAMILY_NAME_MAX, "%.*s%s%s", (int)len, head, middle, tail);

	return n > 0 && n < RT_FAMILY_NAME_MAX;
}

bool rt_family_partner(const char *name, const struct rt_stem *stem, char *put, char *family)
{
	const char *at = find_word(name, stem->get), *tail;
	size_t head, word = strlen(stem->get);

	if (!at)
		return false;
	tail = at + word;
	/* mnt_ref_fs, but not get_something and not a word in the middle that means something else */
	if (*tail && stem->weight != RT_STEM_STRONG)
		return false;
	head = (size_t)(at - name);
	if (!join(put, name, head, stem->put, tail))
		return false;
	while (head > 0 && name[head - 1] == '_')
		head--;
	if (!head)
		return false;
	return join(family, name, head, tail, "");
}

bool rt_family_plain(const char *name, const struct rt_stem *stem, char *plain)
{
	const char *at = find_word(name, stem->get), *start = name + strspn(name, "_");

	if (!at || at <= start)
		return false;
	return join(plain, start, (size_t)(at - start), stem->get, "") && strcmp(plain, name) != 0;
}

/* "Create", "CreateFrom" for "create" */
static bool follows_camel(const char *tail, const char *const *words)
{
	for (; *words; words++) {
		size_t n = strlen(*words);

		if (tolower((unsigned char)*tail) == **words && !strncmp(tail + 1, *words + 1, n - 1) &&
		    !islower((unsigned char)tail[n]))
			return true;
	}
	return false;
}

static bool follows(const char *name, const char *family, const char *const *words)
{
	size_t len = strlen(family);

	if (strncmp(name, family, len) != 0)
		return false;
	if (begins_camel(name, name + len))
		return follows_camel(name + len, words);
	if (name[len] != '_')
		return false;
	name += len + 1;
	name += *name == '_';
	for (; *words; words++) {
		size_t n = strlen(*words);

		if (strncmp(name, *words, n) == 0 && (name[n] == '\0' || name[n] == '_'))
			return true;
	}
	return false;
}

bool rt_family_is_new(const char *name, const char *family, bool sure)
{
	static const char *const words[] = { "new", "create", "alloc", "init", NULL };
	static const char *const names[] = { "new", "create", "alloc", NULL };

	return follows(name, family, sure ? words : names);
}

bool rt_family_is_free(const char *name, const char *family)
{
	static const char *const words[] = { "free", "delete", "destroy", "finalize", "release", "dispose", NULL };
	size_t len = strlen(family);

	/* exactly the word: obj_free, not obj_free_list */
	if (!follows(name, family, words))
		return false;
	name += len + 1;
	if (name[-1] != '_') {
		while (islower((unsigned char)*name))
			name++;
		return !*name;
	}
	name += *name == '_';
	return !strchr(name, '_');
}
