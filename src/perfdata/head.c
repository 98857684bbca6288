/* SPDX-License-Identifier: GPL-2.0-only */
#include "perfdata/head.h"

#include <string.h>

#include "perfdata/attr.h"

enum {
	OLD_HEADER_BYTES = 72, /* before there were features */
	FEAT_DIR_FORMAT = 24,
};

static bool starts_with(struct rt_bytes b, const char *text)
{
	return b.size >= strlen(text) && !memcmp(b.data, text, strlen(text));
}

static const char *looks_like(struct rt_bytes b)
{
	if (!b.size)
		return "it is empty";
	if (starts_with(b, "PERFFILE") || starts_with(b, "ELIFFREP"))
		return "it is of perf's first format, from before 2010";
	if (b.size < 8 && (!memcmp(b.data, "PERFILE2", b.size) || !memcmp(b.data, "2ELIFREP", b.size)))
		return "it is cut within the first 8 bytes";
	if (starts_with(b, "RTSPOOL"))
		return "it looks like a recording of reftrace itself";
	if (starts_with(b, "\177ELF"))
		return "it looks like an ELF file";
	if (starts_with(b, "\x1f\x8b"))
		return "it looks like gzip-compressed data";
	if (starts_with(b, "\x28\xb5\x2f\xfd"))
		return "it looks like zstd-compressed data";
	if (starts_with(b, "{") || starts_with(b, "#"))
		return "it looks like text";
	return "it is in an unknown format";
}

struct rt_error *rt_perf_magic_read(struct rt_bytes bytes, const char *name, bool *ret_big_endian, bool *ret_pipe)
{
	bool big_endian = starts_with(bytes, "2ELIFREP");
	struct rt_cursor c;
	uint64_t magic, size;

	/* the number is written as "PERFILE2" by little-endian machines */
	if (!big_endian && !starts_with(bytes, "PERFILE2"))
		return rt_error_new(RT_E_FORMAT, "%s is no perf.data: %s", name, looks_like(bytes));
	c = rt_cursor_make(bytes, big_endian);
	if (!rt_cursor_u64(&c, &magic) || !rt_cursor_u64(&c, &size))
		return rt_error_new(RT_E_TRUNCATED, "%s ends inside its header (byte %zu); nothing can be read", name,
				    bytes.size);
	if (size != RT_PERF_PIPE_HEADER_BYTES && size != OLD_HEADER_BYTES && size < RT_PERF_HEADER_BYTES)
		return rt_error_new(RT_E_FORMAT, "%s has a header of %llu bytes, which no perf writes", name,
				    (unsigned long long)size);
	*ret_big_endian = big_endian;
	*ret_pipe = size == RT_PERF_PIPE_HEADER_BYTES;
	return NULL;
}

bool rt_perf_section_read(struct rt_bytes bytes, uint64_t offset, bool big_endian, struct rt_perf_section *ret)
{
	struct rt_cursor c = rt_cursor_make(bytes, big_endian);

	return rt_cursor_skip(&c, offset) && rt_cursor_u64(&c, &ret->offset) && rt_cursor_u64(&c, &ret->size);
}

static bool has_feature(const uint64_t *features, unsigned feature)
{
	return features[feature / 64] >> feature % 64 & 1;
}

/* The bits are an array of C longs: a 32-bit big-endian recorder has the halves of each word the other way round. */
static void mend_features(uint64_t *features)
{
	uint64_t halves[RT_PERF_FEAT_BITS / 64];

	for (size_t i = 0; i < RT_PERF_FEAT_BITS / 64; i++)
		halves[i] = features[i] << 32 | features[i] >> 32;
	if (!has_feature(features, RT_PERF_FEAT_HOSTNAME) && has_feature(halves, RT_PERF_FEAT_HOSTNAME))
		memcpy(features, halves, sizeof(halves));
}

struct rt_error *rt_perf_head_read(struct rt_bytes bytes, bool big_endian, struct rt_perf_head *ret)
{
	struct rt_cursor c = rt_cursor_make(bytes, big_endian);
	struct rt_perf_head head = { 0 };
	uint64_t size = 0;
	bool ok = rt_cursor_skip(&c, 8) && rt_cursor_u64(&c, &size) && rt_cursor_u64(&c, &head.attr_size) &&
		  rt_cursor_u64(&c, &head.attrs.offset) && rt_cursor_u64(&c, &head.attrs.size) &&
		  rt_cursor_u64(&c, &head.data.offset) && rt_cursor_u64(&c, &head.data.size) && rt_cursor_skip(&c, 16);

	for (size_t i = 0; ok && size >= RT_PERF_HEADER_BYTES && i < RT_PERF_FEAT_BITS / 64; i++)
		ok = rt_cursor_u64(&c, &head.features[i]);
	if (!ok || size > bytes.size)
		return rt_error_new(RT_E_TRUNCATED, "it ends inside its header (byte %zu); nothing can be read",
				    bytes.size);
	if (big_endian)
		mend_features(head.features);
	if (has_feature(head.features, FEAT_DIR_FORMAT))
		return rt_error_new(RT_E_UNSUPPORTED, "it is the head of a perf.data folder (perf record --threads), "
						      "which reftrace does not read");
	if (head.attr_size < RT_PERF_ATTR_MIN + RT_PERF_SECTION_BYTES || head.attr_size > UINT16_MAX)
		return rt_error_new(RT_E_FORMAT, "it says that an event has %llu bytes",
				    (unsigned long long)head.attr_size);
	if (head.data.size > UINT64_MAX - head.data.offset || head.attrs.size > UINT64_MAX - head.attrs.offset)
		return rt_error_new(RT_E_FORMAT, "its sections have impossible sizes");
	*ret = head;
	return NULL;
}

bool rt_perf_head_unfinished(const struct rt_perf_head *head, struct rt_bytes bytes, bool big_endian)
{
	uint64_t at = head->data.offset, table_end = at;

	if (head->data.size || at == bytes.size)
		return false;
	for (unsigned i = 0; i < RT_PERF_FEAT_BITS; i++)
		table_end += has_feature(head->features, i) ? RT_PERF_SECTION_BYTES : 0;
	for (; at < table_end; at += RT_PERF_SECTION_BYTES) {
		struct rt_perf_section section;
		struct rt_bytes ignored;

		if (!rt_perf_section_read(bytes, at, big_endian, &section) ||
		    !rt_bytes_sub(bytes, section.offset, section.size, &ignored) ||
		    (section.size && section.offset < table_end))
			return true;
	}
	return table_end == head->data.offset;
}
