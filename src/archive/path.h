/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of archive/. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

#define RT_ARCHIVE_MANIFEST "MANIFEST"
#define RT_ARCHIVE_VERSION "reftrace-archive 1"

/* A relative path of plain names: no empty part, no "." or "..", no control character, at most 4096 bytes. */
bool rt_archive_path_ok(const char *path);

void rt_archive_hash(struct rt_bytes bytes, uint8_t ret[32]);
/* 64 lower-case digits and a NUL. */
void rt_archive_hash_text(const uint8_t hash[32], char ret[65]);
