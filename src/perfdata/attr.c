/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Field by field, since the fields have different widths. The one-bit flags are special: C puts the first of them
 * into the lowest bit on little-endian machines and into the highest bit of the first byte on big-endian ones.
 */
#include "perfdata/attr.h"

#include <stddef.h>
#include <string.h>

enum {
	ATTR_KNOWN = 128, /* PERF_ATTR_SIZE_VER7 */
	FLAGS_AT = 40,
};

_Static_assert(sizeof(struct perf_event_attr) >= ATTR_KNOWN, "perf_event_attr");
_Static_assert(offsetof(struct perf_event_attr, read_format) + 8 == FLAGS_AT, "flags of perf_event_attr");

static uint8_t mirrored(uint8_t b)
{
	uint8_t r = 0;

	for (int i = 0; i < 8; i++)
		r = (uint8_t)(r << 1 | ((b >> i) & 1));
	return r;
}

static void read_flags(const uint8_t *from, bool big_endian, struct perf_event_attr *attr)
{
	bool other = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	uint8_t flags[8];

	for (int i = 0; i < 8; i++)
		flags[i] = other ? mirrored(from[i]) : from[i];
	memcpy((uint8_t *)attr + FLAGS_AT, flags, sizeof(flags));
}

/* From ATTR_KNOWN bytes: nothing can be missing. */
static bool read_fields(struct rt_cursor *c, struct perf_event_attr *a)
{
	uint32_t clockid;
	uint64_t sig_data, config1, config2, period;
	uint32_t wakeup;
	bool ok = rt_cursor_u32(c, &a->type) && rt_cursor_u32(c, &a->size);
	uint64_t config, sample_type, read_format, branch, regs_user, regs_intr;

	ok = ok && rt_cursor_u64(c, &config) && rt_cursor_u64(c, &period) && rt_cursor_u64(c, &sample_type) &&
	     rt_cursor_u64(c, &read_format) && rt_cursor_skip(c, 8) && rt_cursor_u32(c, &wakeup) &&
	     rt_cursor_u32(c, &a->bp_type) && rt_cursor_u64(c, &config1) && rt_cursor_u64(c, &config2) &&
	     rt_cursor_u64(c, &branch) && rt_cursor_u64(c, &regs_user) && rt_cursor_u32(c, &a->sample_stack_user) &&
	     rt_cursor_u32(c, &clockid) && rt_cursor_u64(c, &regs_intr) && rt_cursor_u32(c, &a->aux_watermark) &&
	     rt_cursor_u16(c, &a->sample_max_stack) && rt_cursor_skip(c, 2) && rt_cursor_u32(c, &a->aux_sample_size) &&
	     rt_cursor_skip(c, 4) && rt_cursor_u64(c, &sig_data);
	if (!ok)
		return false;
	a->config = config;
	a->sample_period = period;
	a->sample_type = sample_type;
	a->read_format = read_format;
	a->wakeup_events = wakeup;
	a->config1 = config1;
	a->config2 = config2;
	a->branch_sample_type = branch;
	a->sample_regs_user = regs_user;
	a->clockid = (int32_t)clockid;
	a->sample_regs_intr = regs_intr;
	a->sig_data = sig_data;
	return true;
}

struct rt_error *rt_perf_attr_read(struct rt_bytes bytes, bool big_endian, struct perf_event_attr *ret)
{
	struct rt_cursor c = rt_cursor_make(bytes, big_endian);
	struct perf_event_attr attr = { 0 };
	uint8_t known[ATTR_KNOWN] = { 0 };
	uint32_t size;

	if (bytes.size < RT_PERF_ATTR_MIN || !rt_cursor_skip(&c, 4) || !rt_cursor_u32(&c, &size))
		return rt_error_new(RT_E_TRUNCATED, "an event's attributes need 64 bytes, %zu are there", bytes.size);
	size = size ? size : RT_PERF_ATTR_MIN;
	if (size < RT_PERF_ATTR_MIN || size > bytes.size)
		return rt_error_new(RT_E_TRUNCATED, "an event's attributes say %u bytes, %zu are there", size,
				    bytes.size);
	memcpy(known, bytes.data, size < ATTR_KNOWN ? size : ATTR_KNOWN);
	c = rt_cursor_make(rt_bytes_make(known, sizeof(known)), big_endian);
	if (!read_fields(&c, &attr))
		return rt_error_new(RT_E_INTERNAL, "attributes cannot be read");
	read_flags(known + FLAGS_AT, big_endian, &attr);
	attr.size = size;
	*ret = attr;
	return NULL;
}
