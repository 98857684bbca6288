/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SHA-1: names a file that carries no build-id by its content. It is a name,
 * no protection: `sha1sum FILE` gives the same.
 */
#pragma once

#include "base/bytes.h"

#define RT_SHA1_SIZE 20

void rt_sha1(struct rt_bytes bytes, uint8_t digest[RT_SHA1_SIZE]);
