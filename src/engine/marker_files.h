/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files that may hold SDT markers for a target: what it maps or will load, and what the build-id cache knows. Each is
 * opened once and looked at through that fd: what is armed later is what was read, whatever lies at its path by then.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "cache/cache.h"
#include "elf/sdt.h"
#include "elf/symtab.h"
#include "engine/semaphore.h"
#include "maps/maps.h"
#include "probe/cached.h"

struct rt_marker_target {
	const char *command;      /* the program that will be started; NULL: none */
	const char *library_path; /* its LD_LIBRARY_PATH, LD_PRELOAD; NULL: none */
	const char *preload;
	const uint32_t *pids;
	size_t pid_count;
	bool every_process;
	const char *cache_root; /* as rt_cache_open() */
	enum rt_semaphore_way semaphore;
	struct rt_cached_allow allow; /* on which files definitions of the cache are used */
};

/* One file with at least one marker, or with definitions in the cache. */
struct rt_marker_holder {
	char *path; /* for people; owned */
	int fd;
	struct rt_image *image;
	struct rt_image *notes;   /* the cache's copy, where the file itself has lost its notes; else NULL */
	struct rt_symtab *symtab; /* NULL without markers */
	struct rt_dwarf *dwarf;   /* of the image, or of its notes; NULL without markers */
	struct rt_sdt_marker *markers;
	size_t count;
	bool late; /* not known when the target began */
};

struct rt_marker_files {
	const struct rt_marker_target *target;
	struct rt_cache *cache; /* NULL: none */
	struct rt_cache_item *items;
	size_t item_count;
	RT_VEC(struct rt_marker_holder) list;
	struct rt_map seen; /* device, inode */
	size_t looked_at;   /* files, with or without markers */
	char *other_id;     /* a file that would be taken from the cache, but has another build-id now; owned */
	bool damaged;       /* some file's notes are */
};

/* Looks at the target's own files. Strings of target must outlive *ret. Only memory can run out. */
RT_CHECK struct rt_error *rt_marker_files_open(const struct rt_marker_target *target, struct rt_marker_files *ret);
void rt_marker_files_close(struct rt_marker_files *files);

/*
 * Adds files of which the cache knows a marker that fits (globs as fnmatch(3)): only such as lie where the cache saw
 * them and, read through the fd that is kept, have the build-id that it knows.
 */
RT_CHECK struct rt_error *rt_marker_files_cached(struct rt_marker_files *files, const char *provider, const char *name);

/* Adds the file at path. RT_E_NOT_FOUND, RT_E_NOT_ELF, RT_E_FORMAT. *ret: its index; SIZE_MAX: it is not one of the
 * list. */
RT_CHECK struct rt_error *rt_marker_files_add(struct rt_marker_files *files, const char *path, size_t *ret);

/*
 * Adds a file that a process has mapped just now. *ret as above; a file that was known, or that is gone, gives
 * SIZE_MAX. line->inode 0: not known, and when the process is gone, the file at the path is looked at.
 */
RT_CHECK struct rt_error *rt_marker_files_mapped(struct rt_marker_files *files, uint32_t pid,
						 const struct rt_maps_line *line, size_t *ret);

/* Does the marker have such a name? */
bool rt_marker_fits(const struct rt_sdt_marker *marker, const char *provider, const char *name);
