/* SPDX-License-Identifier: GPL-2.0-only */
#include "archive/path.h"

#include <nettle/sha2.h>
#include <string.h>

bool rt_archive_path_ok(const char *path)
{
	size_t part = 0, len;

	for (len = 0;; len++) {
		unsigned char c = (unsigned char)path[len];

		if (c == '/' || !c) {
			size_t n = len - part;

			if (!n || n > 255 || (n == 1 && path[part] == '.') ||
			    (n == 2 && path[part] == '.' && path[part + 1] == '.'))
				return false;
			part = len + 1;
		} else if (c < 0x20 || c == 0x7f) {
			return false;
		}
		if (!c)
			return len <= 4096;
	}
}

void rt_archive_hash(struct rt_bytes bytes, uint8_t ret[32])
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, bytes.size, bytes.data);
	sha256_digest(&ctx, 32, ret);
}

void rt_archive_hash_text(const uint8_t hash[32], char ret[65])
{
	static const char digit[] = "0123456789abcdef";

	for (unsigned i = 0; i < 32; i++) {
		ret[2 * i] = digit[hash[i] >> 4];
		ret[2 * i + 1] = digit[hash[i] & 15];
	}
	ret[64] = 0;
}
