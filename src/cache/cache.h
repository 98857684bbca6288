/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The build-id cache that perf uses, too:
 *
 *     R/<path>/<hex>/elf, debug, probes
 *     R/.build-id/<hh>/<rest> -> ../..<path>/<hex>
 *     R/.build-id/<hh>/<first 19 bytes of rest> -> the same, of a build-id of more than 20 bytes
 *     R/[kernel.kallsyms]/<hex>/kallsyms
 *     R/[vdso]/<hex>/vdso
 *     R/<path>/<hex>/paths                  ours: further paths of the same id, one a line
 *     R/limit                               ours: how many bytes there may be (rt_cache_set_limit())
 *     R/[kernel.kcore]/<hex>/<time>/kcore, kallsyms, modules     no link leads there
 *
 * <hex> is the build-id, lower case, of 2 to 64 bytes (<hh> is its first byte, and <rest> has a name; perf lists only
 * 16 to 20, and cuts longer ones to 20, as recordings do: these are found by the second link). A file is copied (or
 * cloned), never hard-linked: what lies under an id never changes. It appears by rename, whole or not at all. Every
 * name is looked up below the root, whatever links lie there.
 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/vec.h"
#include "cache/probes.h"
#include "elf/build_id.h"

struct rt_cache;

/*
 * root NULL: $PERF_BUILDID_DIR, else $HOME/.debug. create: make the root where it is missing; else a
 * missing root is an empty cache. RT_E_NOT_FOUND when there is no root to be named (no HOME).
 */
RT_CHECK struct rt_error *rt_cache_open(const char *root, bool create, struct rt_cache **ret);
void rt_cache_close(struct rt_cache *cache);
RT_CLEANUP(struct rt_cache *, rt_cache_close);

/* Where it is, for messages. */
const char *rt_cache_root(const struct rt_cache *cache);

enum rt_cache_part {
	RT_CACHE_ELF,
	RT_CACHE_DEBUG,
	RT_CACHE_PROBES,
	RT_CACHE_KALLSYMS,
	RT_CACHE_VDSO,
	RT_CACHE_FILES, /* those before are files */
	RT_CACHE_KCORE = RT_CACHE_FILES,
	RT_CACHE_PARTS,
};
/* "elf", ...; static string. */
const char *rt_cache_part_name(enum rt_cache_part part);

/* Smallest and largest build-id, bytes. */
#define RT_CACHE_ID_MIN 2
#define RT_CACHE_ID_MAX RT_BUILD_ID_WHOLE_MAX

/*
 * Opens a file that the cache has under this id, for reading. RT_E_NOT_FOUND when it has none. What is in it is
 * not checked: a reader compares the build-id (an older tool may have linked a file that was changed later).
 */
RT_CHECK struct rt_error *rt_cache_get(const struct rt_cache *cache, const uint8_t *id, size_t id_size,
				       enum rt_cache_part part, int *ret_fd);

/*
 * Keeps bytes as the part of this id, first seen as path ("/usr/bin/x", or "[kernel.kallsyms]"; "." and ".." in it are
 * refused with RT_E_FORMAT). What is there already stays: success, *ret_new (may be NULL) false.
 */
RT_CHECK struct rt_error *rt_cache_put(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
				       enum rt_cache_part part, struct rt_bytes bytes, bool *ret_new);

/*
 * The same from an open file, whatever its position: by reflink or copy_file_range(2) where possible. For ELF and DEBUG
 * the copy must hold the id (a debug file without one may have been matched by its CRC), else nothing is kept and the
 * error is RT_E_BUILD_ID: a file that is written to meanwhile never lands under the id that it had. Of ELF, what is
 * there already is replaced when it does not hold the id (older tools link files that are changed later), and by a file
 * that tells more: a stripped one by one with symbols, that by one with debug information.
 */
RT_CHECK struct rt_error *rt_cache_put_fd(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
					  enum rt_cache_part part, int fd, bool *ret_new);

/* The same, in the place of what is there in any case. */
RT_CHECK struct rt_error *rt_cache_replace_fd(struct rt_cache *cache, const uint8_t *id, size_t id_size,
					      const char *path, enum rt_cache_part part, int fd);

/*
 * Keeps a copy of the kernel's code: of the kcore at path ("/proc/kcore"; its name must be kcore), with the kallsyms
 * and modules beside it, under the build-id in ../sys/kernel/notes. Seen at "[kernel.kcore]". What is there already of
 * the same kernel at the same place with the same modules stays: success, *ret_new false. Only who may read all of that
 * can.
 */
RT_CHECK struct rt_error *rt_cache_put_kcore(struct rt_cache *cache, const char *path, bool *ret_new);

/* true: the cache has the ELF file of this id, and it holds the id. */
bool rt_cache_holds(const struct rt_cache *cache, const uint8_t *id, size_t id_size);

/*
 * Sets a copy of an open file aside: nameless, in the cache's file system, gone with its fd. For what may change or
 * end before it is known whether it shall be kept.
 */
RT_CHECK struct rt_error *rt_cache_stash(struct rt_cache *cache, int fd, int *ret_fd);

/* The path under which an id was kept first; caller frees. RT_E_NOT_FOUND. */
RT_CHECK struct rt_error *rt_cache_origin(const struct rt_cache *cache, const uint8_t *id, size_t id_size, char **ret);

/*
 * Changes the probes of an id, as first seen at path: what is there is read, handed to change() and written in its
 * place, whole or not at all, while no other reftrace changes the cache. An error of change() leaves everything as it
 * was.
 */
RT_CHECK struct rt_error *rt_cache_change_probes(struct rt_cache *cache, const uint8_t *id, size_t id_size,
						 const char *path,
						 struct rt_error *(*change)(struct rt_probes *probes, void *arg),
						 void *arg);

/* The probes of an id; none where the cache has none. The caller ends *ret with rt_probes_deinit(). */
RT_CHECK struct rt_error *rt_cache_read_probes(const struct rt_cache *cache, const uint8_t *id, size_t id_size,
					       struct rt_probes *ret);

struct rt_cache_paths {
	char **data;
	size_t len, cap;
};

/* One id of the cache. */
struct rt_cache_item {
	uint8_t id[RT_CACHE_ID_MAX];
	size_t id_size;
	char *path;                   /* under which it was kept first; NULL: its link leads nowhere; owned */
	struct rt_cache_paths others; /* under which it was seen, too; owned */
	uint64_t bytes;               /* of all its files */
	int64_t used_s; /* when its files were last read or written, seconds since 1970; as exact as relatime(mount(8))
			 */
	bool has[RT_CACHE_PARTS]; /* by enum rt_cache_part */
};

/* All ids, in no order; an array of *ret_count, ended with rt_cache_items_free(). */
RT_CHECK struct rt_error *rt_cache_list(const struct rt_cache *cache, struct rt_cache_item **ret, size_t *ret_count);
void rt_cache_items_free(struct rt_cache_item *items, size_t count);

/* Why an item cannot be used: static text. NULL: link, file and build-id agree. */
const char *rt_cache_check(const struct rt_cache *cache, const struct rt_cache_item *item);

/* Was the item seen at this path, first or later? */
bool rt_cache_item_is_at(const struct rt_cache_item *item, const char *path);

/*
 * Takes away that an id with several paths was seen at this one; its files stay, found by the others. RT_E_NOT_FOUND
 * when it was not seen there, or nowhere else.
 */
RT_CHECK struct rt_error *rt_cache_remove_path(struct rt_cache *cache, const uint8_t *id, size_t id_size,
					       const char *path);

/* Takes an id with all its files away, and folders that are empty then. RT_E_NOT_FOUND when it is not there. */
RT_CHECK struct rt_error *rt_cache_remove(struct rt_cache *cache, const uint8_t *id, size_t id_size);
/* Takes away what rt_cache_put_kcore() has kept of an id, and nothing else. RT_E_NOT_FOUND. */
RT_CHECK struct rt_error *rt_cache_remove_kcore(struct rt_cache *cache, const uint8_t *id, size_t id_size);

/*
 * Removes ids, the least recently used first, until the files of the others have at most max bytes together; gone is
 * told of each. *ret_left: how many bytes there are then, also where it ends in an error of rt_cache_remove().
 */
RT_CHECK struct rt_error *rt_cache_trim(struct rt_cache *cache, uint64_t max,
					void (*gone)(const struct rt_cache_item *item, void *arg), void *arg,
					uint64_t *ret_left);

/* How many bytes there may be, for whoever has put something in, to trim the cache to. 0: any number. */
uint64_t rt_cache_limit(const struct rt_cache *cache);
/* Sets that; 0 lifts it. RT_E_UNWRITABLE. */
RT_CHECK struct rt_error *rt_cache_set_limit(struct rt_cache *cache, uint64_t max);
