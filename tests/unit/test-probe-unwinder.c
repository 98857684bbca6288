/* SPDX-License-Identifier: GPL-2.0-only */
#include "insn/insn.h"
#include "probe/unwinder.h"
#include "workdir.h"

static void find(struct workdir *f, const char *name, uint8_t room, struct rt_unwinders *ret, struct rt_image **image,
		 struct rt_symtab **symtab)
{
	assert_ok(rt_image_open(workdir_path(f, name), image));
	assert_ok(rt_symtab_create(*image, symtab));
	assert_ok(rt_unwinders_find(*image, *symtab, room, ret));
}

/* How many of a kind. */
static size_t count(const struct rt_unwinders *u, int kind)
{
	size_t n = 0;

	for (size_t i = 0; i < u->list.len; i++)
		n += u->list.data[i].kind == (unsigned)kind;
	return n;
}

static bool begins_function(const struct rt_symtab *symtab, struct rt_elfaddr at)
{
	const struct rt_symbol *s = rt_symtab_at(symtab, at);

	return s && s->addr.v == at.v;
}

/* An unwinder is over behind the instruction before a return, or where an exception is caught. */
static void check_ends(const struct rt_image *image, const struct rt_symtab *symtab, const struct rt_unwinders *u)
{
	struct rt_decoder *decoder = NULL;

	assert_ok(rt_decoder_create(RT_MACHINE_X86_64, &decoder));
	for (size_t i = 0; i < u->list.len; i++) {
		struct rt_elfaddr at = u->list.data[i].address;
		struct rt_bytes code = rt_image_at(image, at, 32);
		struct rt_insn insn;

		if (u->list.data[i].kind != RT_UNWINDER_OVER || begins_function(symtab, at)) {
			assert_true(begins_function(symtab, at));
			continue;
		}
		assert_true(rt_decode(decoder, code, at, &insn));
		code = rt_bytes_make(code.data + insn.length, code.size - insn.length);
		assert_true(rt_decode(decoder, code, at, &insn));
		assert_true(insn.ret);
	}
	rt_decoder_destroy(decoder);
}

static void check(struct workdir *f, const char *name, size_t begins, size_t forced, size_t over)
{
	for (uint8_t room = 0; room <= 5; room += 5) {
		struct rt_unwinders u = { 0 };
		struct rt_symtab *symtab = NULL;
		struct rt_image *image = NULL;

		find(f, name, room, &u, &image, &symtab);
		assert_int_equal(count(&u, RT_UNWINDER_BEGINS), begins);
		assert_int_equal(count(&u, RT_UNWINDER_FORCED), forced);
		assert_int_equal(count(&u, RT_UNWINDER_OVER), over);
		for (size_t i = 0; i < u.list.len; i++)
			assert_false(u.list.data[i].no_room);
		check_ends(image, symtab, &u);
		rt_vec_deinit(&u.list);
		rt_symtab_destroy(symtab);
		rt_image_destroy(image);
	}
}

TEST(libraries)
{
	struct workdir f;

	workdir_make(&f);
	workdir_run(&f, "ln -s $(gcc -print-file-name=libgcc_s.so.1) gcc.so; ln -s $(g++ "
			"-print-file-name=libstdc++.so.6) c++.so");
	check(&f, "gcc.so", 4, 1, 1);
	check(&f, "c++.so", 0, 0, 1);
	workdir_remove(&f);
}

TEST(static_program)
{
	struct workdir f;

	workdir_make(&f);
	workdir_run(&f, "echo 'int main() { try { throw 1; } catch (int) { } }' > a.cc; g++ -static a.cc -o a;"
			"echo 'int main(void) { return 0; }' > b.c; gcc b.c -o b");
	check(&f, "a", 4, 1, 2);
	check(&f, "b", 0, 0, 0);
	workdir_remove(&f);
}

TEST_MAIN();
