/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Self-registering tests over cmocka:
 *
 *     TEST(cut_input) { assert_false(...); }
 *     TEST_MAIN()
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

#define TEST(name_) \
	static void test_##name_(void **state); \
	__attribute__((used, section("rt_tests"), aligned(8))) static const struct CMUnitTest rt_test_##name_ = { \
		.name = #name_, .test_func = test_##name_ \
	}; \
	static void test_##name_(void **state __attribute__((unused)))

extern const struct CMUnitTest __start_rt_tests[], __stop_rt_tests[];

#define TEST_MAIN() \
	__attribute__((no_sanitize("address"))) int main(void) \
	{ \
		return _cmocka_run_group_tests("tests", __start_rt_tests, \
					       (size_t)(__stop_rt_tests - __start_rt_tests), NULL, NULL); \
	} \
	int main(void)

/* Fails the test with the error's own words. */
#define assert_ok(expr) \
	do { \
		struct rt_error *assert_err_ = (expr); \
		if (assert_err_) { \
			print_error("%s: %s\n", rt_code_text(assert_err_->code), assert_err_->message); \
			rt_error_free(assert_err_); \
			fail(); \
		} \
	} while (0)

#define assert_code(expr, want) \
	do { \
		struct rt_error *assert_err_ = (expr); \
		assert_non_null(assert_err_); \
		assert_string_equal(rt_code_text(assert_err_->code), rt_code_text(want)); \
		rt_error_free(assert_err_); \
	} while (0)
