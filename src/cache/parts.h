/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of cache/. */
#pragma once

#include "cache/cache.h"
#include "elf/image.h"

struct rt_cache {
	char *root;
	int fd; /* O_PATH of the root, -1 = missing: an empty cache */
};

/* A build-id of this size has a place in a cache. */
static inline bool rt_cache_takes(size_t id_size)
{
	return id_size >= RT_CACHE_ID_MIN && id_size <= RT_CACHE_ID_MAX;
}

/* ".build-id/ab/cdef..." for an id; caller frees. NULL: out of memory, or an id that no cache takes. */
char *rt_cache_link(const uint8_t *id, size_t size);
/*
 * Makes the link of an id that is longer than those of recordings, and of perf, the one by which these find it. false:
 * there is no other, nothing is changed.
 */
bool rt_cache_cut_link(char *link);
/*
 * Makes the link of such an id that of the entry which perf made for it. false: there is none, or its file does not
 * hold the whole id; link may be changed.
 */
bool rt_cache_perfs_link(const struct rt_cache *cache, const uint8_t *id, size_t id_size, char *link);
/* The link of the longer id whose entry this cut link leads to; caller frees. NULL: it is no cut one, or no memory. */
char *rt_cache_whole_link(const struct rt_cache *cache, const char *link);
/* "<path>/abcdef...", the folder of the id whose link this is; caller frees. NULL: out of memory. */
char *rt_cache_below(const char *path, const char *link);

#define RT_CACHE_KCORES "[kernel.kcore]" /* the folder of perf's and our copies of kernels' memory */
/* The folder of such copies of one kernel, below the root; caller frees. NULL: out of memory, or no such id. */
char *rt_cache_kcore_folder(const uint8_t *id, size_t size);
/* Removes a folder and all in it, links as links. false: errno */
bool rt_cache_drop_tree(int dirfd, const char *name);

/* rt_cache_origin() of a link. */
RT_CHECK struct rt_error *rt_cache_origin_of(const struct rt_cache *cache, const char *link, char **ret);

/* Further paths of the id whose folder this is; appended to *ret, which is the caller's also on failure. */
RT_CHECK struct rt_error *rt_cache_read_paths(int folder, struct rt_cache_paths *ret);
void rt_cache_paths_free(struct rt_cache_paths *paths);
/* Keeps that the id of this link was seen at path, too. The cache is locked. */
RT_CHECK struct rt_error *rt_cache_note_path(const struct rt_cache *cache, const char *link, int folder,
					     const char *path);
/* A path of the traced system names a folder of the cache: true when it does not lead out of it. */
bool rt_cache_is_plain(const char *path);
/* Opens the folder path below dirfd, made where it is missing. Links are not followed. -1: errno */
int rt_cache_make_folder(int dirfd, const char *path);
/* The same for the folder that a link is in. */
int rt_cache_above(const struct rt_cache *cache, const char *link);

/* true: the image's build-id is this one. */
bool rt_cache_is_id(const struct rt_image *image, const uint8_t *id, size_t id_size);

/* Waits until nobody else changes the cache; the lock is held until *ret, the caller's fd, is closed. */
RT_CHECK struct rt_error *rt_cache_lock(const struct rt_cache *cache, int *ret);

/* Opens path below dirfd and nowhere else; as openat(2). */
int rt_cache_openat(int dirfd, const char *path, int flags);

/* An entry that is being changed, alone: the whole cache is locked. */
struct rt_cache_entry {
	int folder, lock;
	char *link;       /* owned */
	char *below;      /* the folder, made for this change; owned; NULL: it was there */
	const char *path; /* of the traced system */
};

/* Enters the entry of an id, made where there is none, as first seen at path. */
RT_CHECK struct rt_error *rt_cache_enter(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
					 struct rt_cache_entry *ret);
/* Ends the change: links the entry, or takes away what was made where err is one. Returns err, or its own. */
RT_CHECK struct rt_error *rt_cache_leave(struct rt_cache *cache, struct rt_cache_entry *entry, struct rt_error *err);
void rt_cache_entry_deinit(struct rt_cache_entry *entry);

/* The error of errno at something below the root. */
struct rt_error *rt_cache_unwritable(const struct rt_cache *cache, const char *what);
/* Removes a folder below the root and those above it, as far as they are empty. */
void rt_cache_drop_folder(const struct rt_cache *cache, const char *below);

/* Appends all of from, from its start on, to the empty file to. false: errno. */
bool rt_cache_copy(int from, int to);
bool rt_cache_write(int fd, struct rt_bytes bytes);
