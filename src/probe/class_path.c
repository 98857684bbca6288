/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/class_path.h"

#include <string.h>

#include "base/text.h"

enum { FAR = 1 << 20, NAME_MAX_LEN = 512 };

/* "+8", "-8": *ret_end is what is behind it */
static bool parse_step(const char *at, const char *end, int32_t *ret, const char **ret_end)
{
	const char *digits = at + 1, *stop = digits;
	uint64_t n;

	while (stop < end && *stop >= '0' && *stop <= '9')
		stop++;
	if (at >= end || (*at != '+' && *at != '-') || !rt_parse_u64(digits, (size_t)(stop - digits), 10, &n) ||
	    n > FAR)
		return false;
	*ret = *at == '-' ? -(int32_t)n : (int32_t)n;
	*ret_end = stop;
	return true;
}

bool rt_class_path_parse(const char *text, size_t len, struct rt_class_path *ret, size_t *ret_at)
{
	const char *at = text, *end = text + len;
	struct rt_class_path path = { .steps = 0 };

	if (len == 6 && !memcmp(text, "vtable", 6)) {
		*ret = (struct rt_class_path){ .step = { 0, -8, 8 }, .steps = 3, .mangled = true };
		return true;
	}
	for (;;) {
		*ret_at = (size_t)(at - text);
		if (path.steps == RT_CLASS_STEPS || !parse_step(at, end, &path.step[path.steps], &at) ||
		    (!path.steps && path.step[0] < 0))
			return false;
		path.steps++;
		if (at == end)
			break;
		*ret_at = (size_t)(at - text);
		if (*at == ':' && end - at > 1 && end - at <= NAME_MAX_LEN && path.steps > 1) {
			path.lookup = (uint16_t)(at + 1 - text);
			path.lookup_len = (uint16_t)(end - at - 1);
			break;
		}
		if (*at++ != '>')
			return false;
	}
	if (len > NAME_MAX_LEN)
		return false;
	*ret = path;
	return true;
}
