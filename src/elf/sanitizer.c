/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/sanitizer.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"

/* UndefinedBehaviorSanitizer's has no memory of its own, and is no matter. */
static const struct rt_sanitizer sanitizers[] = {
	{ "AddressSanitizer", "__asan_init", "libasan.so", "libclang_rt.asan", true },
	{ "HWAddressSanitizer", "__hwasan_init", "libhwasan.so", "libclang_rt.hwasan", true },
	{ "LeakSanitizer", "__lsan_init", "liblsan.so", NULL, true },
	{ "ThreadSanitizer", "__tsan_init", "libtsan.so", "libclang_rt.tsan", false },
	{ "MemorySanitizer", "__msan_init", NULL, NULL, false },
};
enum { SANITIZERS = sizeof(sanitizers) / sizeof(sanitizers[0]) };

static bool begins_with(const char *text, const char *start)
{
	return start && strncmp(text, start, strlen(start)) == 0;
}

const struct rt_sanitizer *rt_sanitizer_of_library(const char *path)
{
	const char *name = rt_basename(path);

	for (size_t i = 0; i < SANITIZERS; i++)
		if (begins_with(name, sanitizers[i].library) || begins_with(name, sanitizers[i].clang_library))
			return &sanitizers[i];
	return NULL;
}

struct rt_error *rt_image_sanitizer(const struct rt_image *image, const struct rt_symtab *symtab,
				    const struct rt_sanitizer **ret)
{
	_cleanup_free_ const char **needed = NULL;
	const struct rt_sanitizer *found = NULL;
	size_t count = 0;

	for (size_t i = 0; i < SANITIZERS && !found; i++)
		if (rt_symtab_find(symtab, sanitizers[i].start))
			found = &sanitizers[i];
	if (!found)
		RT_TRY(rt_image_needed(image, &needed, &count));
	for (size_t i = 0; i < count && !found; i++)
		found = rt_sanitizer_of_library(needed[i]);
	*ret = found;
	return NULL;
}
