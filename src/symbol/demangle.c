/* SPDX-License-Identifier: GPL-2.0-only */
/* Demangling, through the C++ runtime's own function. */
#include <ctype.h>
#include <string.h>

#include "symbol/chain.h"

#define RT_MANGLED_MAX 4096 /* longer names stay as they are: time and stack of the demangler grow with them */

#ifdef RT_HAVE_STDCXX
/* Of the C++ ABI; libstdc++ has no C header for it. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Rust's older scheme ends in "::h" and 16 hexadecimal digits. */
static void drop_rust_hash(char *name)
{
	size_t len = strlen(name);

	if (len <= 19 || strncmp(name + len - 19, "::h", 3) != 0)
		return;
	for (size_t i = len - 16; i < len; i++) {
		if (!isxdigit((unsigned char)name[i]))
			return;
	}
	name[len - 19] = '\0';
}

char *rt_demangle(const char *name)
{
	char *text;
	int status = 0;

	if (strncmp(name, "_Z", 2) != 0 || strnlen(name, RT_MANGLED_MAX) == RT_MANGLED_MAX)
		return NULL;
	text = __cxa_demangle(name, NULL, NULL, &status);
	if (text)
		drop_rust_hash(text);
	return text;
}
#else
char *rt_demangle(const char *name)
{
	return NULL;
}
#endif
