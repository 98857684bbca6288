/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mapping history: which module lay at an address of a process at a time. Fed
 * by MAP, UNMAP, FORK, EXEC and EXIT records; pure. A process is a pid with its exec
 * generation (RT_PID_MAKE), so an exec starts an empty one; a forked child
 * starts with its parent's mappings.
 */
#pragma once

#include "base/address.h"
#include "base/error.h"
#include "wire/event.h"

struct rt_maps;

RT_CHECK struct rt_error *rt_maps_create(struct rt_maps **ret);
void rt_maps_destroy(struct rt_maps *maps);
RT_CLEANUP(struct rt_maps *, rt_maps_destroy);

/* Takes one record; kinds that do not matter here are ignored. Out-of-order times are accepted. */
RT_CHECK struct rt_error *rt_maps_record(struct rt_maps *maps, const struct rt_wire_head *record);

struct rt_mapping {
	uint64_t start, end; /* [start, end) */
	struct rt_foff offset;
	uint32_t module;
};

/*
 * The mapping of pid that held addr at time_ns; where it was unmapped or
 * replaced later, the one of that time. false: none.
 */
bool rt_maps_find(const struct rt_maps *maps, uint32_t pid, uint64_t time_ns, struct rt_vaddr addr,
		  struct rt_mapping *ret);

/* Calls visit for every mapping of pid that is there at time_ns, by address; stops when it returns false. */
void rt_maps_each(const struct rt_maps *maps, uint32_t pid, uint64_t time_ns,
		  bool (*visit)(const struct rt_mapping *mapping, void *arg), void *arg);

/* One line of /proc/PID/maps. */
struct rt_maps_line {
	uint64_t start, end, offset, inode;
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable, shared;
	bool deleted;
	const char *path; /* into the text, NUL-terminated by the parser; "" for anonymous */
};
/*
 * Parses the next line of *cursor (a writable NUL-terminated text), moves
 * *cursor behind it. false at the end of the text or at a line that is not of the form.
 */
bool rt_maps_parse_line(char **cursor, struct rt_maps_line *ret);
