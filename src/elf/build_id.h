/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Build-ids by a few small reads, without mapping a file: for files that somebody may cut or rewrite meanwhile, and
 * where there are many.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/event.h"

struct rt_build_id {
	uint8_t id[RT_BUILD_ID_MAX];
	uint8_t size; /* 0 = none */
};

/* The build-id note of an ELF file of this machine's byte order. false: none, or no such file. */
bool rt_build_id_of_file(int fd, struct rt_build_id *ret);
/* Among raw notes (/sys/kernel/notes). */
bool rt_build_id_of_notes(const char *path, struct rt_build_id *ret);
