// SPDX-License-Identifier: GPL-2.0-only
#include "base/capability.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/text.h"

#define STATUS_MAX (1 << 16)
#define LINE "\nCapEff:\t" /* proc(5) */

bool rt_capable(enum rt_capability capability)
{
	_cleanup_free_ char *text = NULL;
	uint64_t effective = ~0ull;
	const char *at;

	rt_error_free(rt_fs_read(AT_FDCWD, "/proc/self/status", STATUS_MAX, &text, NULL));
	at = text ? strstr(text, LINE) : NULL;
	if (at) {
		at += strlen(LINE);
		(void)rt_parse_u64(at, strcspn(at, "\n"), 16, &effective);
	}
	return effective >> capability & 1;
}
