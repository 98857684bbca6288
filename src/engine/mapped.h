/* SPDX-License-Identifier: GPL-2.0-only */
/* Running processes, as /proc shows them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "maps/maps.h"

/*
 * The file that a line of /proc/PID/maps maps; where that may not be opened, what lies at its path now, if it is the
 * same file. -1: neither, or no regular file. Caller closes.
 */
int rt_mapped_file(uint32_t pid, const struct rt_maps_line *line);

/* Numbers that a folder's entries are named after; *ret is the caller's. false: it could not be read to its end. */
bool rt_numbers_in(const char *path, uint32_t **ret, size_t *ret_count);
