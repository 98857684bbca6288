/* SPDX-License-Identifier: GPL-2.0-only */
/* Demangling: C++ by its runtime's own function, Rust by demangle_rust.c. */
#include "elf/demangle.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

#define RT_MANGLED_MAX 4096 /* longer names stay as they are: time and stack of the demangler grow with them */

#ifdef RT_HAVE_STDCXX
/* Of the C++ ABI; libstdc++ has no C header for it. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);
#endif

bool rt_is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2);
}

char *rt_demangle(const char *name)
{
	char *text = NULL;

	if (!rt_is_mangled(name) || strnlen(name, RT_MANGLED_MAX) == RT_MANGLED_MAX)
		return NULL;
	text = rt_demangle_rust(name);
#ifdef RT_HAVE_STDCXX
	if (!text && name[1] == 'Z')
		text = __cxa_demangle(name, NULL, NULL, &(int){ 0 });
#endif
	return text;
}

/* Of a whole name: "work(long) const" leaves a qualifier behind when its list is gone. */
static void drop_qualifiers(char *name)
{
	static const char *const words[] = { " const", " volatile", " &", " &&" };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i]);

		if (len > n && !strcmp(name + len - n, words[i])) {
			name[len -= n] = '\0';
			i = (size_t)-1;
		}
	}
}

/*
 * What comes before the types in a mangled name is a mangled name itself, of something that is no function: so the
 * shortest beginning that can be read, and that nothing belonging to it follows, is the name.
 */
char *rt_demangle_name(const char *name)
{
	_cleanup_free_ char *whole = rt_demangle(name), *part = NULL;
	size_t len = strlen(name);
	bool nested;

	/* vtables, thunks and the like are no functions with parameters */
	if (!whole || name[1] == 'R' || name[2] == 'T' || name[2] == 'G' || name[2] == 'R')
		return rt_take(whole);
	part = strdup(name);
	nested = name[2] == 'N';
	for (size_t n = name[2] == 'S' ? 5 : 3; part && n < len; n++) {
		char *text;

		/* arguments of a template, a tag, a number of a local name: the name goes on */
		if (strchr("IB_", name[n]) || (nested && name[n - 1] != 'E'))
			continue;
		part[n] = '\0';
		text = rt_demangle(part);
		part[n] = name[n];
		if (!text)
			continue;
		drop_qualifiers(text);
		return text;
	}
	return rt_take(whole);
}
