// SPDX-License-Identifier: GPL-2.0-only
#include "bpfprog/mounts.h"

#include <fcntl.h>
#include <string.h>

#include "base/fs.h"

/* A path of /proc/mounts: \040 stands for a blank. In place. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *p = path; *p; p++) {
		uint64_t v = 0;

		if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' && p[3] >= '0' &&
		    p[3] <= '7') {
			v = (uint64_t)(p[1] - '0') * 64 + (uint64_t)(p[2] - '0') * 8 + (uint64_t)(p[3] - '0');
			*to++ = (char)v;
			p += 3;
		} else {
			*to++ = *p;
		}
	}
	*to = 0;
}

void rt_bpf_mounts_each(const char *wanted, void (*visit)(void *arg, const char *path), void *arg)
{
	_cleanup_free_ char *text = NULL;
	size_t len = strlen(wanted);
	char *next;

	rt_error_free(rt_fs_read(AT_FDCWD, "/proc/self/mounts", 16 << 20, &text, NULL));
	/* lines "device path type options 0 0" */
	for (char *line = text; line && *line; line = next) {
		char *path, *type;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		path = strchr(line, ' ');
		type = path ? strchr(path + 1, ' ') : NULL;
		if (!type || strncmp(type + 1, wanted, len) != 0 || type[1 + len] != ' ')
			continue;
		*type = 0;
		unescape(++path);
		visit(arg, path);
	}
}
