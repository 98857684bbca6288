/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Build-ids by a few small reads, without mapping a file: for files that somebody may cut or rewrite meanwhile, and
 * where there are many.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/event.h"

#define RT_BUILD_ID_WHOLE_MAX 64 /* bytes of the longest build-id that is one; records hold RT_BUILD_ID_MAX of them */

struct rt_build_id {
	uint8_t id[RT_BUILD_ID_WHOLE_MAX];
	uint8_t size; /* 0 = none */
};

/* The build-id note of an ELF file of this machine's byte order. false: none, or no such file. */
bool rt_build_id_of_file(int fd, struct rt_build_id *ret);
/* Is the recorded build-id that of a file? Of one that is longer than records hold, the recorded one is the beginning.
 */
bool rt_build_id_fits(const uint8_t *file, size_t file_size, const uint8_t *recorded, size_t recorded_size);
/* Among raw notes (/sys/kernel/notes). */
bool rt_build_id_of_notes(const char *path, struct rt_build_id *ret);
