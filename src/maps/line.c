/* SPDX-License-Identifier: GPL-2.0-only */
/* The lines of /proc/PID/maps. */
#include <string.h>

#include "base/text.h"
#include "maps/maps.h"

/* One number of *at up to the character end, which is stepped over. */
static bool number(char **at, char end, unsigned base, uint64_t *ret)
{
	char *stop = strchr(*at, end);

	if (!stop || stop == *at || !rt_parse_u64(*at, stop - *at, base, ret))
		return false;
	*at = stop + 1;
	return true;
}

static bool flag(char have, char yes, bool *ret)
{
	*ret = have == yes;
	return have == yes || have == '-';
}

static bool permissions(char **at, struct rt_maps_line *ret)
{
	const char *p = *at;

	if (strnlen(p, 5) < 5 || p[4] != ' ' || !flag(p[0], 'r', &ret->readable) || !flag(p[1], 'w', &ret->writable) ||
	    !flag(p[2], 'x', &ret->executable) || (p[3] != 'p' && p[3] != 's'))
		return false;
	ret->shared = p[3] == 's';
	*at += 5;
	return true;
}

/* The kernel writes a newline in a path as \012 and nothing else that way. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static bool parse(char *line, struct rt_maps_line *ret)
{
	static const char gone[] = " (deleted)";
	uint64_t major, minor;
	size_t len;
	char *stop;

	if (!number(&line, '-', 16, &ret->start) || !number(&line, ' ', 16, &ret->end) || !permissions(&line, ret) ||
	    !number(&line, ' ', 16, &ret->offset) || !number(&line, ':', 16, &major) || !number(&line, ' ', 16, &minor))
		return false;
	if (ret->start >= ret->end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	ret->dev_major = major;
	ret->dev_minor = minor;
	stop = line + strcspn(line, " ");
	if (!rt_parse_u64(line, stop - line, 10, &ret->inode))
		return false;
	while (*stop == ' ')
		stop++;
	len = strlen(stop);
	ret->deleted = len > sizeof(gone) - 1 && strcmp(stop + len - (sizeof(gone) - 1), gone) == 0;
	if (ret->deleted)
		stop[len - (sizeof(gone) - 1)] = '\0';
	unescape(stop);
	ret->path = stop;
	return true;
}

bool rt_maps_parse_line(char **cursor, struct rt_maps_line *ret)
{
	struct rt_maps_line line = { 0 };
	char *end;

	if (!**cursor)
		return false;
	end = *cursor + strcspn(*cursor, "\n");
	if (*end) {
		*end = '\0';
		if (!parse(*cursor, &line)) {
			*end = '\n';
			return false;
		}
		end++;
	} else if (!parse(*cursor, &line)) {
		return false;
	}
	*cursor = end;
	*ret = line;
	return true;
}
