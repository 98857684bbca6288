/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two TRACING_DATA as one: the kernel's, with the formats of its tracepoints, and
 * ours. Everything of the first stays; the systems of the second follow its own.
 */
#include <string.h>

#include "perfdata/tracing_write.h"

enum { SYSTEMS_MAX = 1 << 12, FORMATS_MAX = 1 << 16 };

/* Where the list of systems begins and ends. */
struct parts {
	size_t count_at; /* offset of the u32 number of systems */
	uint32_t count;
	struct rt_bytes systems;
};

static struct rt_error *cut(const struct rt_cursor *c)
{
	return rt_error_new(RT_E_FORMAT, "the formats of the tracepoints end at byte %zu, within a part", c->pos);
}

/* A u64 size and as many bytes. */
static bool skip_sized(struct rt_cursor *c)
{
	uint64_t size;

	return rt_cursor_u64(c, &size) && rt_cursor_skip(c, size);
}

static bool skip_named(struct rt_cursor *c)
{
	const char *name;

	return rt_cursor_string(c, &name) && skip_sized(c);
}

static bool skip_sizeds(struct rt_cursor *c)
{
	uint32_t n;

	if (!rt_cursor_u32(c, &n) || n > FORMATS_MAX)
		return false;
	while (n--) {
		if (!skip_sized(c))
			return false;
	}
	return true;
}

static struct rt_error *find(struct rt_bytes bytes, struct parts *ret)
{
	static const uint8_t magic[] = { 23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	struct rt_cursor c = rt_cursor_make(bytes, false);
	struct rt_bytes head;
	const char *version, *name;
	size_t start;

	if (!rt_cursor_bytes(&c, sizeof(magic), &head) || memcmp(head.data, magic, sizeof(magic)) != 0 ||
	    !rt_cursor_string(&c, &version))
		return rt_error_new(RT_E_FORMAT, "the formats of the tracepoints do not begin as such");
	/* byte order, size of long, page size */
	if (!rt_cursor_skip(&c, 2 + 4) || !skip_named(&c) || !skip_named(&c) || !skip_sizeds(&c))
		return cut(&c);
	ret->count_at = c.pos;
	if (!rt_cursor_u32(&c, &ret->count) || ret->count > SYSTEMS_MAX)
		return cut(&c);
	start = c.pos;
	for (uint32_t i = 0; i < ret->count; i++) {
		if (!rt_cursor_string(&c, &name) || !skip_sizeds(&c))
			return cut(&c);
	}
	ret->systems = rt_bytes_make(bytes.data + start, c.pos - start);
	return NULL;
}

struct rt_error *rt_perf_tracing_data_merge(struct rt_bytes first, struct rt_bytes second, struct rt_sink *sink)
{
	struct parts a = { 0 }, b = { 0 };
	size_t behind;
	uint32_t count;

	RT_TRY(find(first, &a));
	RT_TRY(find(second, &b));
	count = a.count + b.count;
	behind = a.count_at + sizeof(count) + a.systems.size;
	rt_sink_write(sink, first.data, a.count_at);
	rt_sink_write(sink, &count, sizeof(count));
	rt_sink_write(sink, a.systems.data, a.systems.size);
	rt_sink_write(sink, b.systems.data, b.systems.size);
	rt_sink_write(sink, first.data + behind, first.size - behind);
	return NULL;
}
