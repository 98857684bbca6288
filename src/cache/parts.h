/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of cache/. */
#pragma once

#include "cache/cache.h"

struct rt_cache {
	char *root;
	int fd; /* O_PATH of the root, -1 = missing: an empty cache */
};

/* ".build-id/ab/cdef..." for an id; caller frees. NULL: out of memory. */
char *rt_cache_link(const uint8_t *id, size_t size);

/* Opens path below dirfd and nowhere else; as openat(2). */
int rt_cache_openat(int dirfd, const char *path, int flags);

/* Appends all of from, from its start on, to the empty file to. false: errno. */
bool rt_cache_copy(int from, int to);
bool rt_cache_write(int fd, struct rt_bytes bytes);
