/* SPDX-License-Identifier: GPL-2.0-only */
/* Code that the data of a module points to. */
#include "elf/pointed.h"
#include "elf/symtab.h"
#include "workdir.h"

static const char program[] =
	"#define API __attribute__((noinline, noclone))\n"
	"API static int own(int x) { return x + 1; }\n"
	"API int exported(int x) { return x + 2; }\n"
	"API static int called(int x) { return x + 3; }\n"
	"API static int passed(int x) { return x + 4; }\n"
	"API static int apply(int (*f)(int), int x) { return f(x); }\n"
	"struct ops { const char *name; int (*first)(int), (*second)(int); };\n"
	"extern const struct ops table;\n"
	"const struct ops table = { \"ops\", own, exported };\n"
	"int main(int c, char **v) { (void)v; return called(c) + apply(passed, c) + table.first(c) + "
	"table.second(c) == 0; }\n";

static bool points_to(const struct rt_image *image, const struct rt_pointed *pointed, const char *function)
{
	struct rt_symtab *symtab = NULL;
	const struct rt_symbol *symbol;
	bool has;

	assert_ok(rt_symtab_create(image, &symtab));
	symbol = rt_symtab_find(symtab, function);
	assert_non_null(symbol);
	has = rt_pointed_has(pointed, symbol->addr);
	assert_false(rt_pointed_has(pointed, (struct rt_elfaddr){ symbol->addr.v + 1 }));
	rt_symtab_destroy(symtab);
	return has;
}

TEST(tables_of_operations)
{
	static const char *const builds[] = { "-fPIE -pie",    "-no-pie",
					      "-static",       "-fPIC -shared",
					      "-fuse-ld=gold", "-fuse-ld=lld -Wl,--pack-dyn-relocs=relr -fPIE -pie" };
	struct workdir w;

	workdir_make(&w);
	workdir_write(&w, "p.c", program);
	for (size_t i = 0; i < sizeof(builds) / sizeof(*builds); i++) {
		struct rt_pointed pointed = { 0 };
		struct rt_image *image = NULL;

		workdir_run(&w, "gcc -g -O1 %s p.c -o p", builds[i]);
		assert_ok(rt_image_open(workdir_path(&w, "p"), &image));
		assert_ok(rt_pointed_read(image, &pointed));
		if (!points_to(image, &pointed, "own") || !points_to(image, &pointed, "exported"))
			fail_msg("%s: not all of the table", builds[i]);
		if (points_to(image, &pointed, "called") || points_to(image, &pointed, "passed"))
			fail_msg("%s: what only code leads to", builds[i]);
		for (size_t k = 1; k < pointed.addresses.len; k++)
			assert_true(pointed.addresses.data[k - 1] < pointed.addresses.data[k]);
		rt_pointed_deinit(&pointed);
		rt_image_destroy(image);
	}
	workdir_remove(&w);
}

TEST_MAIN();
