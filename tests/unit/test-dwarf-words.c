/* SPDX-License-Identifier: GPL-2.0-only */
/* Words and a text in bytes: a search place by place is the oracle. */
#include "dwarf/words.h"
#include "test.h"

static uint64_t number(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *state >> 33;
}

static bool is_there(const struct rt_words *words, const uint8_t *at, size_t left)
{
	if (words->text && left >= words->size && !memcmp(at, words->text, words->size))
		return true;
	for (size_t i = 0; left >= 4 && i < words->list.len; i++)
		if (!memcmp(at, &words->list.data[i], 4))
			return true;
	return false;
}

static size_t check(struct rt_words *words, const uint8_t *bytes, size_t size)
{
	/* a copy of its own, so that a sanitizer sees what is read behind it */
	uint8_t *copy = malloc(size ?: 1);
	struct rt_places places = { 0 };
	size_t found = 0;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	rt_words_ready(words);
	assert_true(rt_words_find(words, rt_bytes_make(copy, size), &places));
	for (size_t i = 0; i < size; i++)
		if (is_there(words, copy + i, size - i)) {
			assert_true(found < places.v.len);
			assert_int_equal(places.v.data[found++], i);
		}
	assert_int_equal(places.v.len, found);
	rt_vec_deinit(&places.v);
	free(copy);
	return found;
}

/* At each place of each size around the steps, and with zeroes in either half. */
TEST(each_place)
{
	static const uint32_t list[] = { 0x00012345, 0x01000000, 0x00670000, 0x12340000, 0xffffffff };
	uint8_t bytes[300];

	for (size_t w = 0; w < sizeof(list) / sizeof(*list); w++) {
		struct rt_words words = { 0 };

		assert_true(rt_words_add(&words, list[w]));
		for (size_t size = 0; size <= sizeof(bytes); size += size < 140 ? 1 : 13)
			for (size_t at = 0; at + 4 <= size; at++) {
				memset(bytes, 0xa5, sizeof(bytes));
				memcpy(bytes + at, &list[w], 4);
				assert_int_equal(check(&words, bytes, size), 1);
			}
		rt_words_deinit(&words);
	}
}

/* Few values, so that there are many hits and many near ones; as many words as are compared at once, and more. */
TEST(random_bytes)
{
	uint64_t seed = 7;
	size_t found = 0;

	for (unsigned round = 0; round < 4000; round++) {
		struct rt_words words = { .text = round % 3 ? NULL : "\1\2\1", .size = round % 2 ? 4 : 3 };
		uint8_t bytes[700];

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(number(&seed) % 3);
		for (size_t i = number(&seed) % (RT_WORDS_FEW + 3); i; i--)
			assert_true(rt_words_add(&words, number(&seed) % 3 << 24 | number(&seed) % 3 << 16 |
								 number(&seed) % 3 << 8 | number(&seed) % 3));
		found += check(&words, bytes, number(&seed) % sizeof(bytes));
		rt_words_deinit(&words);
	}
	assert_true(found > 1000);
}

TEST(cleared)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct rt_words words = { 0 };

	assert_false(rt_words_add(&words, UINT64_C(1) << 32));
	assert_true(rt_words_add(&words, 0x04030201));
	assert_int_equal(check(&words, bytes, sizeof(bytes)), 1);
	rt_words_clear(&words);
	assert_int_equal(check(&words, bytes, sizeof(bytes)), 0);
	assert_true(rt_words_add(&words, 0x08070605));
	assert_int_equal(check(&words, bytes, sizeof(bytes)), 1);
	rt_words_deinit(&words);
}

TEST_MAIN();
