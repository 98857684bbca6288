/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers and names as the formats have them: limits, and what stands around them. */
#include "base/text.h"

#include <string.h>

#include "test.h"

TEST(numbers)
{
	static const struct {
		const char *text;
		unsigned base;
		bool fine;
		uint64_t value;
	} table[] = {
		{ "0", 10, true, 0 },
		{ "007", 10, true, 7 },
		{ "18446744073709551615", 10, true, UINT64_MAX },
		{ "18446744073709551616", 10, false, 0 },
		{ "ffffFFFFffffFFFF", 16, true, UINT64_MAX },
		{ "10000000000000000", 16, false, 0 },
		{ "", 10, false, 0 },
		{ "a", 10, false, 0 },
		{ "g", 16, false, 0 },
		{ "-1", 10, false, 0 },
		{ " 1", 10, false, 0 },
		{ "1 ", 10, false, 0 },
		{ "0x1", 16, false, 0 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		uint64_t value = 42;

		assert_int_equal(rt_parse_u64(table[i].text, strlen(table[i].text), table[i].base, &value),
				 table[i].fine);
		assert_int_equal(value, table[i].fine ? table[i].value : 42);
	}
}

TEST(identifiers)
{
	assert_int_equal(rt_identifier_length("a"), 1);
	assert_int_equal(rt_identifier_length("_Z9 x"), 3);
	assert_int_equal(rt_identifier_length("aZ0_/b"), 4);
	assert_int_equal(rt_identifier_length(""), 0);
	assert_int_equal(rt_identifier_length("9a"), 0);
	assert_int_equal(rt_identifier_length("\xe4"), 0);
	assert_int_equal(rt_identifier_length("a\xe4"), 1);
	/* the neighbours of each range */
	for (const char *c = "/:@[`{^-."; *c; c++)
		assert_false(rt_is_word(*c));
}

TEST_MAIN();
