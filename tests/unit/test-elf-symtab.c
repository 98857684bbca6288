/* SPDX-License-Identifier: GPL-2.0-only */
#include <fcntl.h>

#include "elf/symtab.h"
#include "workdir.h"

static const char program[] = "#include <stdio.h>\n"
			      "#include <stdlib.h>\n"
			      "#include <string.h>\n"
			      "int counter = 3;\n"
			      "static int other;\n"
			      "__attribute__((noinline)) static int twice(int x) { return 2 * x + other; }\n"
			      "__attribute__((weak)) int weak_one(void) { return 1; }\n"
			      "int exported(int x) { return twice(x) + weak_one(); }\n"
			      "static void *resolve(void) { return exported; }\n"
			      "int chosen(int) __attribute__((ifunc(\"resolve\")));\n"
			      "int main(int argc, char **argv) {\n"
			      "	void *(*volatile p)(size_t) = malloc;\n"
			      "	puts(argv[0]); free(p(argc)); return strcmp(argv[0], \"x\") + chosen(counter); }\n"
			      "asm(\".globl sizeless\\n.type sizeless,@function\\nsizeless: nop\\nnop\\nret\\n\");\n";

static struct rt_symtab *read_symbols(struct workdir *f, const char *name, bool debug)
{
	struct rt_symtab *symtab = NULL;
	struct rt_image *image = NULL;

	assert_ok(rt_image_open(workdir_path(f, name), &image));
	if (debug)
		assert_ok(rt_image_find_debug(image, AT_FDCWD));
	assert_ok(rt_symtab_create(image, &symtab));
	/* names live in the table, not in the image */
	rt_image_destroy(image);
	for (size_t i = 1; i < symtab->count; i++)
		assert_true(symtab->symbols[i - 1].addr.v <= symtab->symbols[i].addr.v);
	return symtab;
}

static const struct rt_symbol *exact(const struct rt_symtab *t, unsigned long long addr, const char *name, bool plt)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct rt_symbol *s = &t->symbols[i];

		if (s->addr.v == addr && s->plt == plt && !strcmp(s->name, name))
			return s;
	}
	return NULL;
}

/* every function and object that readelf shows in the file `oracle` is in the table, with size and kind */
static void check_against_readelf(struct workdir *f, const struct rt_symtab *t, const char *oracle, const char *how)
{
	char *lines = workdir_output(f,
				     "readelf -W %s %s | awk '$1 ~ /^[0-9]+:$/ && $7 != \"UND\" && $4 ~ "
				     "/^(FUNC|IFUNC|OBJECT)$/ { print $2, $3, $4, $5, $8 }'",
				     how, oracle);
	size_t n = 0;

	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"), n++) {
		char size_text[32], type[16], bind[16], name[512];
		const struct rt_symbol *s;
		unsigned long long addr;

		assert_int_equal(sscanf(line, "%llx %31s %15s %15s %511s", &addr, size_text, type, bind, name), 5);
		name[strcspn(name, "@")] = 0;
		s = exact(t, addr, name, false);
		if (!s)
			fail_msg("%s: no symbol for %s", oracle, line);
		/* readelf prints big sizes in hex */
		assert_int_equal(s->size, strtoull(size_text, NULL, 0));
		assert_int_equal(s->function, strcmp(type, "OBJECT") != 0);
		assert_int_equal(s->ifunc, !strcmp(type, "IFUNC"));
		assert_non_null(rt_symtab_find(t, name));
	}
	assert_true(n > 3);
	free(lines);
}

static void check_plt(struct workdir *f, const struct rt_symtab *t, const char *name)
{
	char *lines = workdir_output(f, "objdump -d %s | sed -n 's/^\\([0-9a-f]*\\) <\\(.*\\)@plt>:/\\1 \\2/p'", name);
	size_t n = 0, have = 0;

	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned long long addr;
		char function[128];

		assert_int_equal(sscanf(line, "%llx %127s", &addr, function), 2);
		/* objdump shows only the resolver of an ifunc, if that */
		if (*function == '*' || !strcmp(function, "chosen"))
			continue;
		n++;
		if (!exact(t, addr, function, true))
			fail_msg("%s: no PLT stub for %s", name, line);
	}
	for (size_t i = 0; i < t->count; i++)
		have += t->symbols[i].plt && strcmp(t->symbols[i].name, "chosen") &&
			strcmp(t->symbols[i].name, "resolve");
	assert_int_equal(n, have);
	assert_true(n >= 3);
	free(lines);
}

TEST(same_as_readelf_and_objdump)
{
	static const char *const flags[] = {
		"-fuse-ld=bfd",
		"-fuse-ld=bfd -no-pie",
		"-fuse-ld=bfd -Wl,-z,now",
		"-fuse-ld=bfd -fcf-protection=full -Wl,-z,ibtplt",
		"-fuse-ld=gold",
		"-fuse-ld=gold -no-pie",
		"-fuse-ld=lld",
		"-fuse-ld=lld -Wl,-z,now -no-pie",
		"-fuse-ld=bfd -shared -fPIC",
	};
	struct workdir f;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		struct rt_symtab *t;

		workdir_run(&f, "gcc -fno-builtin -rdynamic p.c -o p %s", flags[i]);
		t = read_symbols(&f, "p", false);
		assert_false(t->stripped);
		check_against_readelf(&f, t, "p", "-s");
		check_plt(&f, t, "p");
		assert_int_equal(rt_symtab_find(t, "weak_one")->bind, RT_BIND_WEAK);
		assert_int_equal(rt_symtab_find(t, "twice")->bind, RT_BIND_LOCAL);
		assert_false(rt_symtab_find(t, "twice")->dynamic);
		assert_int_equal(rt_symtab_find(t, "exported")->bind, RT_BIND_GLOBAL);
		assert_true(rt_symtab_find(t, "exported")->dynamic);
		assert_null(rt_symtab_find(t, "strcmp"));
		assert_null(rt_symtab_find(t, "no_such_name"));
		rt_symtab_destroy(t);
		workdir_run(&f, "strip p");
		t = read_symbols(&f, "p", false);
		assert_true(t->stripped);
		assert_null(rt_symtab_find(t, "twice"));
		check_against_readelf(&f, t, "p", "--dyn-syms");
		check_plt(&f, t, "p");
		rt_symtab_destroy(t);
	}
	workdir_remove(&f);
}

TEST(static_program_names_its_ifunc_stubs)
{
	struct workdir f;
	struct rt_symtab *t;
	size_t stubs = 0;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_run(&f, "gcc -static p.c -o p");
	t = read_symbols(&f, "p", false);
	check_against_readelf(&f, t, "p", "-s");
	for (size_t i = 0; i < t->count; i++)
		stubs += t->symbols[i].plt;
	assert_true(stubs > 3);
	rt_symtab_destroy(t);
	workdir_remove(&f);
}

/* aarch64: stubs by their adrp and ldr; the oracle is the layout that lld documents: 32 bytes, then 16 for each */
TEST(aarch64_stubs)
{
	static const char *const names[] = { "first", "second" };
	struct workdir f;
	struct rt_symtab *t;
	char *start;
	size_t n = 0;

	workdir_make(&f);
	workdir_write(&f, "a.c", "void first(void); void second(void); void caller(void) { first(); second(); }\n");
	workdir_run(&f, "clang-14 --target=aarch64-linux-gnu -O1 -fPIC -c a.c && ld.lld -shared a.o -o a");
	start = workdir_output(&f, "readelf -SW a | sed -n 's/.* \\.plt *PROGBITS *\\([0-9a-f]*\\) .*/\\1/p'");
	t = read_symbols(&f, "a", false);
	for (size_t i = 0; i < t->count; i++) {
		if (!t->symbols[i].plt)
			continue;
		assert_true(n < 2);
		assert_string_equal(t->symbols[i].name, names[n]);
		assert_int_equal(t->symbols[i].addr.v, strtoull(start, NULL, 16) + 32 + 16 * n);
		assert_int_equal(t->symbols[i].size, 16);
		n++;
	}
	assert_int_equal(n, 2);
	free(start);
	rt_symtab_destroy(t);
	workdir_remove(&f);
}

TEST(companion_and_debugdata)
{
	struct workdir f;
	struct rt_symtab *t;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_run(&f, "gcc -g p.c -o p && objcopy --only-keep-debug p p.dbg");
	workdir_run(&f, "objcopy -S --add-gnu-debuglink=p.dbg p linked");
	t = read_symbols(&f, "linked", true);
	assert_false(t->stripped);
	check_against_readelf(&f, t, "p", "-s");
	rt_symtab_destroy(t);

	/* as rpm does it: the debug file without its DWARF, packed into the stripped program */
	workdir_run(&f, "objcopy -S --remove-section .comment p.dbg mini 2>/dev/null; strip -g p.dbg -o mini");
	workdir_run(&f, "rm -f mini.xz && xz -k mini && strip p -o small && objcopy --add-section "
			".gnu_debugdata=mini.xz small");
	t = read_symbols(&f, "small", false);
	assert_false(t->stripped);
	check_against_readelf(&f, t, "p", "-s");
	rt_symtab_destroy(t);

	/* damaged or endless: as if it were not there */
	workdir_run(&f, "head -c 200 mini.xz > cut.xz && objcopy --update-section .gnu_debugdata=cut.xz small cut");
	t = read_symbols(&f, "cut", false);
	assert_true(t->stripped);
	rt_symtab_destroy(t);
	workdir_run(&f, "(cat mini; head -c 200000000 /dev/zero) | xz -0 > bomb.xz");
	workdir_run(&f, "objcopy --update-section .gnu_debugdata=bomb.xz small bomb");
	t = read_symbols(&f, "bomb", false);
	assert_true(t->stripped);
	rt_symtab_destroy(t);
	workdir_remove(&f);
}

/* the name at each address of the code, against a plain search over all symbols */
TEST(lookup_by_address)
{
	struct workdir f;
	struct rt_symtab *t;
	const struct rt_symbol *s;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_run(&f, "gcc -no-pie p.c -o p");
	t = read_symbols(&f, "p", false);
	for (size_t i = 0; i < t->count; i++) {
		const struct rt_symbol *want = &t->symbols[i];

		if (!want->function || !want->size)
			continue;
		for (uint64_t at = 0; at < want->size; at++) {
			s = rt_symtab_at(t, (struct rt_elfaddr){ want->addr.v + at });
			assert_non_null(s);
			assert_true(s->size && s->addr.v <= want->addr.v + at &&
				    want->addr.v + at < s->addr.v + s->size);
		}
	}
	s = rt_symtab_find(t, "sizeless");
	assert_non_null(s);
	assert_int_equal(s->size, 0);
	assert_ptr_equal(rt_symtab_at(t, (struct rt_elfaddr){ s->addr.v + 2 }), s);
	/* the resolver is a local symbol at another address; chosen is an ifunc at the resolver's own */
	s = rt_symtab_find(t, "resolve");
	assert_string_equal(rt_symtab_at(t, s->addr)->name, "chosen");
	assert_null(rt_symtab_at(t, (struct rt_elfaddr){ 0 }));
	assert_null(rt_symtab_at(t, (struct rt_elfaddr){ UINT64_MAX }));
	/* data is no function */
	assert_null(rt_symtab_at(t, rt_symtab_find(t, "counter")->addr));
	rt_symtab_destroy(t);
	workdir_remove(&f);
}

TEST_MAIN();
