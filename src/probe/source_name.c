/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/source_name.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "elf/demangle.h"
#include "probe/spec.h"

/* Signs of the operator whose name is before c. */
static size_t operator_length(const char *c, const char *end)
{
	static const char *const signs[] = { "->*", "<=>", "<<=", ">>=", "()", "[]", "->", "<<", ">>", "<=",
					     ">=",  "==",  "!=",  "&&",  "||", "++", "--", "+=", "-=", "*=",
					     "/=",  "%=",  "^=",  "&=",  "|=", "<",  ">",  "=",  "+",  "-",
					     "*",   "/",   "%",   "^",   "&",  "|",  "~",  "!",  "," };

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		size_t len = strlen(signs[i]);

		if ((size_t)(end - c) >= len && !memcmp(c, signs[i], len))
			return len;
	}
	return 0;
}

const char *rt_name_step(struct rt_name_scan *s, const char *c)
{
	static const char word[] = { 'o', 'p', 'e', 'r', 'a', 't', 'o', 'r' }, condition[] = { '?', 'r', 'e', 't' };
	size_t before = (size_t)(c - s->start), left = (size_t)(s->end - c);

	if (*c == '\\' && left > 1)
		return c + 2;
	if (left > sizeof(word) && !memcmp(c, word, sizeof(word)) && (!before || !rt_is_word(c[-1]))) {
		size_t len = operator_length(c + sizeof(word), s->end);

		if (len)
			return c + sizeof(word) + len;
	}
	/* "?ret<0" and "fn() -> T" have no brackets there */
	if (before >= sizeof(condition) && !memcmp(c - sizeof(condition), condition, sizeof(condition)))
		return c + 1;
	if (*c == '>' && before && c[-1] == '-')
		return c + 1;
	if (strchr("<({", *c) && *c) {
		if (!s->depth++)
			s->opened = c;
	} else if ((s->depth || s->classes) && *c == '[') {
		if (!s->depth++)
			s->opened = c;
	} else if (s->depth && *c && strchr(">)}]", *c)) {
		s->depth--;
	}
	return c + 1;
}

bool rt_source_is(const char *name)
{
	return strpbrk(name, "(<{~\\") || strstr(name, "::") || !strncmp(name, "operator", 8);
}

/* A star there belongs to a type: "char*", "*const T", "(*)(int)". */
static bool is_pointer(const struct rt_name_scan *s, const char *c)
{
	static const char *const words[] = { "const ", "mut " };

	if (!s->depth)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if ((size_t)(s->end - c - 1) > strlen(words[i]) && !memcmp(c + 1, words[i], strlen(words[i])))
			return true;
	if (c[-1] == '(' && s->end - c > 2 && c[1] == ')' && c[2] == '(')
		return true;
	return !strchr("(<, :", c[-1]);
}

void rt_source_pattern(const char *name, size_t len, char *out, bool *ret_is_glob)
{
	struct rt_name_scan s = { .start = name, .end = name + len };

	*ret_is_glob = false;
	for (const char *c = name; c < s.end;) {
		size_t class = s.depth ? 0 : rt_glob_class(c);
		const char *behind;

		if (class && class <= (size_t)(s.end - c)) {
			memcpy(out, c, class);
			out += class;
			c += class;
			*ret_is_glob = true;
			continue;
		}
		if (*c == '*' || *c == '?') {
			if (is_pointer(&s, c))
				*out++ = '\\';
			else
				*ret_is_glob = true;
			*out++ = *c++;
			continue;
		}
		behind = rt_name_step(&s, c);
		/* what a backslash stands before, and the signs of an operator, mean themselves */
		if (*c == '\\' && behind > c + 1)
			c++;
		for (; c < behind; c++) {
			if (strchr("*?[\\", *c))
				*out++ = '\\';
			*out++ = *c;
		}
	}
	*out = '\0';
}

bool rt_source_end_fits(const char *name, bool (*fits)(const char *name, const void *arg), const void *arg)
{
	struct rt_name_scan s = { .start = name, .end = name + strlen(name) };

	if (fits(name, arg))
		return true;
	for (const char *c = name; c < s.end;) {
		if (!s.depth && c[0] == ':' && c[1] == ':') {
			c += 2;
			if (fits(c, arg))
				return true;
			continue;
		}
		/* parameters are nobody's namespace */
		if (!s.depth && *c == '(' && strncmp(c, "(anonymous namespace)", 21) != 0)
			return false;
		c = rt_name_step(&s, c);
	}
	return false;
}

/*
 * Rust's "<ns::Node as Trait>::get::<u8>" without the brackets, the trait and what the instance is made for; NULL:
 * nothing of these is there.
 */
static char *without_trait(const char *name)
{
	struct rt_name_scan s = { .start = name, .end = name + strlen(name) };
	char *text = calloc((size_t)(s.end - name) + 1, 1), *out = text;
	const char *c = name, *as = NULL;

	if (text && *name == '<') {
		do {
			if (s.depth == 1 && !as && !strncmp(c, " as ", 4))
				as = c;
			c = rt_name_step(&s, c);
		} while (c < s.end && s.depth);
		if (!as)
			as = c - 1;
		out = mempcpy(out, name + 1, (size_t)(as - name - 1));
	}
	while (text && c < s.end) {
		bool instance = !strncmp(c, "::<", 3);
		const char *behind = rt_name_step(&s, instance ? c + 2 : c);

		while (instance && s.depth && behind < s.end)
			behind = rt_name_step(&s, behind);
		if (!instance)
			out = mempcpy(out, c, (size_t)(behind - c));
		c = behind;
	}
	if (text)
		*out = '\0';
	if (text && !strcmp(text, name)) {
		free(text);
		return NULL;
	}
	return text;
}

bool rt_source_fits(const char *linkage, bool parameters, bool (*fits)(const char *name, const void *arg),
		    const void *arg)
{
	_cleanup_free_ char *bare = rt_demangle_name(linkage), *whole = NULL, *plain = NULL;
	const char *from;

	if (!bare)
		return false;
	if (rt_source_end_fits(bare, fits, arg))
		return true;
	plain = strchr(bare, '<') ? without_trait(bare) : NULL;
	if (plain && rt_source_end_fits(plain, fits, arg))
		return true;
	whole = parameters ? rt_demangle(linkage) : NULL;
	/* a template's text begins with the type that it returns */
	from = whole ? strstr(whole, bare) : NULL;
	return from && rt_source_end_fits(from, fits, arg);
}

bool rt_source_may_fit(const char *name, const char *mangled)
{
	char word[64];
	const char *end = name + strcspn(name, "(<\\"), *start = end;
	size_t len;

	/* "{lambda(int)#1}", "{closure#0}", "operator int": words of whoever demangles */
	if (strchr(name, '{') || strstr(name, "operator"))
		return true;
	while (start > name && rt_is_word(start[-1]))
		start--;
	len = (size_t)(end - start);
	/* a part of a word says less, and so does what is written with signs (destructors) */
	if (!len || len >= sizeof(word) || (start > name && (start[-1] == '?' || start[-1] == '~')))
		return true;
	memcpy(word, start, len);
	word[len] = '\0';
	return strstr(mangled, word) != NULL;
}

static bool fits_pattern(const char *name, const void *arg)
{
	return rt_glob_match(arg, name);
}

/* "_Z3get..." or "_ZL3get...": in no namespace, and of no class. */
static bool is_plain(const char *name, const char *linkage)
{
	char prefix[32];
	size_t len = strlen(name);
	int n;

	linkage += strncmp(linkage, "_ZL", 3) ? 2 : 3;
	n = snprintf(prefix, sizeof(prefix), "%zu", len);
	return !strncmp(linkage, prefix, (size_t)n) && !strncmp(linkage + n, name, len) && linkage[(size_t)n + len];
}

bool rt_spec_is_glob(const char *name)
{
	_cleanup_free_ char *pattern = NULL;
	bool glob = rt_glob_is(name);

	if (!rt_source_is(name))
		return glob;
	pattern = malloc(2 * strlen(name) + 1);
	if (pattern)
		rt_source_pattern(name, strlen(name), pattern, &glob);
	return glob;
}

bool rt_spec_means(const char *spec, const char *linkage, bool plain)
{
	_cleanup_free_ char *pattern = NULL;
	bool glob;

	if (!rt_source_is(spec))
		return rt_glob_match(spec, linkage) || (plain && !strncmp(linkage, "_Z", 2) && is_plain(spec, linkage));
	if (!rt_is_mangled(linkage) || !rt_source_may_fit(spec, linkage))
		return false;
	pattern = malloc(2 * strlen(spec) + 1);
	if (!pattern)
		return false;
	rt_source_pattern(spec, strlen(spec), pattern, &glob);
	return rt_source_fits(linkage, strchr(spec, '(') != NULL, fits_pattern, pattern);
}
