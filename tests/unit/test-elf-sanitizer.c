/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/sanitizer.h"
#include "workdir.h"

/* name: NULL, or what is to be found in a program that is built with these words */
static void check(struct workdir *f, const char *compiler, const char *words, const char *name)
{
	const struct rt_sanitizer *found = NULL;
	struct rt_symtab *symtab = NULL;
	struct rt_image *image = NULL;

	workdir_run(f, "echo 'int main(void) { return 0; }' > a.c; %s %s a.c -o a", compiler, words);
	assert_ok(rt_image_open(workdir_path(f, "a"), &image));
	assert_ok(rt_symtab_create(image, &symtab));
	assert_ok(rt_image_sanitizer(image, symtab, &found));
	if (name) {
		assert_non_null(found);
		assert_string_equal(found->name, name);
	} else {
		assert_null(found);
	}
	rt_symtab_destroy(symtab);
	rt_image_destroy(image);
}

TEST(programs)
{
	struct workdir f;

	workdir_make(&f);
	check(&f, "gcc", "", NULL);
	check(&f, "gcc", "-fsanitize=undefined", NULL);
	check(&f, "gcc", "-fsanitize=address", "AddressSanitizer");
	check(&f, "gcc", "-fsanitize=leak -s", "LeakSanitizer");
	check(&f, "gcc", "-fsanitize=thread", "ThreadSanitizer");
	/* linked into it, and stripped */
	check(&f, "gcc", "-fsanitize=address -static-libasan", "AddressSanitizer");
	check(&f, "clang-14", "-fsanitize=address -s", "AddressSanitizer");
	check(&f, "clang-14", "-fsanitize=memory", "MemorySanitizer");
	workdir_remove(&f);
}

TEST(libraries)
{
	assert_string_equal(rt_sanitizer_of_library("/usr/lib/gcc/x86_64-linux-gnu/12/libasan.so")->name,
			    "AddressSanitizer");
	assert_string_equal(rt_sanitizer_of_library("libclang_rt.tsan-x86_64.so")->name, "ThreadSanitizer");
	assert_null(rt_sanitizer_of_library("/usr/lib/libubsan.so.1"));
	assert_null(rt_sanitizer_of_library(""));
}

TEST_MAIN();
