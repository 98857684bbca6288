/* SPDX-License-Identifier: GPL-2.0-only */
#include <dlfcn.h>

#include "archive/library.h"

static struct rt_error *missing(void)
{
	return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "no archive can be read or written: %s", dlerror()),
			    "apt-get install libarchive13");
}

struct rt_error *rt_archive_library_open(struct rt_archive_library *ret)
{
	void *handle = dlopen("libarchive.so.13", RTLD_LAZY | RTLD_LOCAL);
	struct rt_archive_library la;

	if (!handle)
		return missing();
#define OPEN(name) \
	*(void **)&la.name = dlsym(handle, "archive_" #name); \
	if (!la.name) \
		return missing();
	RT_ARCHIVE_FUNCTIONS(OPEN)
#undef OPEN
	*ret = la;
	return NULL;
}
