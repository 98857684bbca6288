/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel functions out of the text of kallsyms. */
#include "recording/kernel_names.h"

#include <string.h>

#include "test.h"

static const char text[] = "ffffffff81337bf0 t __pfx___do_sys_uretprobe\n"
			   "ffffffff81337c00 t __do_sys_uretprobe\n"
			   "ffffffff81337c00 T __ia32_sys_uretprobe\n"
			   "ffffffff81337c00 T __x64_sys_uretprobe\n"
			   "ffffffff81337c80 D no_code\n"
			   "ffffffff81337d00 T next\n";

static void names_are(const struct rt_map *addresses, const char *const *expected, size_t count)
{
	struct rt_kernel_name *names;
	size_t n;

	assert_ok(rt_kernel_names(rt_bytes_make(text, sizeof(text) - 1), addresses, &names, &n));
	assert_int_equal(n, count);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(names[i].name, expected[i]);
	rt_kernel_names_free(names, n);
}

/* perf says the last of them; a recording and the kernel that it is read on must say the same. */
static void test_aliases(void **state)
{
	static const char *const all[] = { "__pfx___do_sys_uretprobe", "__x64_sys_uretprobe", "next" };
	_cleanup_(rt_map_deinit) struct rt_map hit = { 0 };

	(void)state;
	names_are(NULL, all, 3);
	assert_non_null(rt_map_put(&hit, rt_key_make(0xffffffff81337c10, 0), NULL));
	names_are(&hit, &all[1], 1);
}

static void test_sizes(void **state)
{
	struct rt_kernel_name *names;
	size_t n;

	(void)state;
	assert_ok(rt_kernel_names(rt_bytes_make(text, sizeof(text) - 1), NULL, &names, &n));
	assert_int_equal(n, 3);
	assert_int_equal(names[0].size, 0x10);
	/* as far as the next function; data ends none */
	assert_int_equal(names[1].start, 0xffffffff81337c00);
	assert_int_equal(names[1].size, 0x100);
	rt_kernel_names_free(names, n);
}

static void test_address(void **state)
{
	const struct rt_bytes bytes = rt_bytes_make(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(rt_kernel_address(bytes, "__x64_sys_uretprobe"), 0xffffffff81337c00);
	assert_int_equal(rt_kernel_address(bytes, "__x64_sys"), 0);
	assert_int_equal(rt_kernel_address(bytes, "no_code"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
