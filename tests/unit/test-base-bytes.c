/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/bytes.h"

#include "test.h"

TEST(integers_in_both_orders)
{
	static const uint8_t raw[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct rt_cursor le = rt_cursor_make(rt_bytes_make(raw, sizeof(raw)), false);
	struct rt_cursor be = rt_cursor_make(rt_bytes_make(raw, sizeof(raw)), true);
	uint64_t v;
	uint16_t h;

	assert_true(rt_cursor_u64(&le, &v));
	assert_int_equal(v, UINT64_C(0x0807060504030201));
	assert_true(rt_cursor_u16(&be, &h));
	assert_int_equal(h, 0x0102);
}

TEST(cut_input_leaves_the_cursor)
{
	static const uint8_t raw[] = { 0x80, 0x80 };
	struct rt_cursor c = rt_cursor_make(rt_bytes_make(raw, sizeof(raw)), false);
	uint64_t v = 77;
	uint32_t w = 77;
	const char *s;

	assert_false(rt_cursor_u32(&c, &w));
	assert_false(rt_cursor_uleb(&c, &v));
	assert_false(rt_cursor_string(&c, &s));
	assert_false(rt_cursor_skip(&c, 3));
	assert_int_equal(c.pos, 0);
	assert_int_equal(v, 77);
	assert_int_equal(w, 77);
}

TEST(leb128)
{
	/* examples of DWARF 5, figures 22 and 23 */
	static const uint8_t u[] = { 0xb9, 0x64 }, s[] = { 0x80, 0x7f };
	static const uint8_t wide[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03 };
	struct rt_cursor c = rt_cursor_make(rt_bytes_make(u, 2), false);
	uint64_t v;
	int64_t i;

	assert_true(rt_cursor_uleb(&c, &v));
	assert_int_equal(v, 12857);
	c = rt_cursor_make(rt_bytes_make(s, 2), false);
	assert_true(rt_cursor_sleb(&c, &i));
	assert_int_equal(i, -128);
	c = rt_cursor_make(rt_bytes_make(wide, sizeof(wide)), false);
	assert_false(rt_cursor_uleb(&c, &v));
}

TEST(sub_range_cannot_wrap)
{
	struct rt_bytes b = rt_bytes_make("abcd", 4), part;

	assert_true(rt_bytes_sub(b, 4, 0, &part));
	assert_false(rt_bytes_sub(b, UINT64_MAX, 2, &part));
	assert_false(rt_bytes_sub(b, 2, UINT64_MAX, &part));
}

TEST_MAIN();
