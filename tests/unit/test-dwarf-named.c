/* SPDX-License-Identifier: GPL-2.0-only */
/* Asked for one name, only some units are read: what is found must be what is found when all of them are. */
#include "built.h"
#include "dwarf/variable.h"

/* Declared where others define it, in a block and in a class; one name for a function, a variable, a member and a type.
 */
static const char one[] = "struct twice { int twice; int (*get)(int); };\n"
			  "extern int shared(int n);\n"
			  "static inline int twice(int n) { return n * 2; }\n"
			  "static inline int nested(int n) { return n & 1 ? twice(n) : shared(n); }\n"
			  "__attribute__((noinline)) int first(int n)\n"
			  "{ extern int later(int); struct twice t = { n }; return nested(t.twice) + later(n); }\n"
			  "__attribute__((noinline)) int later(int n) { return n ^ 5; }\n"
			  "int other(int n);\n"
			  "int main(int argc, char **argv) { (void)argv; return first(argc) + other(argc); }\n";
static const char two[] = "extern int later(int), first(int);\n"
			  "volatile int sink;\n"
			  "enum { nested = 3 };\n"
			  "static inline int twice(int n) { sink = n; return n * 2; }\n"
			  "__attribute__((noinline)) int shared(int n) { return twice(n) + nested; }\n"
			  "static __attribute__((noinline)) int f(int n) { return n ? f(n - 1) * 3 : later(n); }\n"
			  "int other(int n) { int first = f(n); return first + twice(first) + shared(n); }\n";
static const char cxx[] =
	"namespace a { struct T { int v; T(int n); int get() const { return v; } static int made; };\n"
	"struct U : T { U(int n); virtual ~U(); int twice(int n); }; }\n"
	"int a::T::made;\n"
	"a::T::T(int n) : v(n) { made++; }\n"
	"a::U::U(int n) : T(n + 1) { }\n"
	"a::U::~U() { made--; }\n"
	"int a::U::twice(int n) { return get() * n; }\n"
	"template <class V> static V larger(V a, V b) { return a < b ? b : a; }\n"
	"namespace { int hidden(int n) { return larger(n, 7) + larger(1L, (long)n); } }\n"
	"int main(int argc, char **)\n"
	"{ a::U u(argc); auto f = [&](int n) { return u.twice(n); }; return f(3) + hidden(argc); }\n";

struct list {
	struct rt_instance *data;
	size_t count;
};

static bool any(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	return true;
}

static bool is(const struct rt_instance *fn, const char *name)
{
	return !strcmp(fn->function, name) || (fn->linkage && !strcmp(fn->linkage, name));
}

static bool named(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	return is(fn, arg);
}

/* Those of this name among all. */
static size_t take(const struct list *all, const char *name, struct rt_instance *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < all->count; i++)
		if (is(&all->data[i], name))
			ret[count++] = all->data[i];
	return count;
}

static void check_name(const struct rt_image *image, const struct list *all, const char *name)
{
	_cleanup_free_ struct rt_instance *wanted = calloc(all->count + 1, sizeof(*wanted)), *found = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	size_t count, wanted_count = take(all, name, wanted);

	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_ok(rt_dwarf_instances(dwarf, name, named, (void *)(uintptr_t)name, &found, &count));
	if (count != wanted_count)
		print_message("%s: %zu of %zu\n", name, count, wanted_count);
	assert_int_equal(count, wanted_count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(found[i].entry.v, wanted[i].entry.v);
		assert_int_equal(found[i].inlined, wanted[i].inlined);
	}
}

/* Each name that a function has; *ret: how many were asked for. */
static void check_file(const char *path, size_t least)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	struct list all = { 0 };

	assert_ok(rt_image_open(path, &image));
	/* its .dwo files may be opened */
	image->root_fd = AT_FDCWD;
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_ok(rt_dwarf_instances(dwarf, NULL, any, NULL, &all.data, &all.count));
	assert_true(all.count >= least);
	for (size_t i = 0; i < all.count && i < 400; i++) {
		check_name(image, &all, all.data[i].function);
		if (all.data[i].linkage)
			check_name(image, &all, all.data[i].linkage);
	}
	check_name(image, &all, "sink");
	check_name(image, &all, "there_is_no_such_function");
	free(all.data);
}

static void check_c(const char *compiler)
{
	char *path = built_path("c");

	assert_true(built_run("%s one.c two.c -o c", compiler));
	check_file(path, 5);
	free(path);
}

static void check_cxx(const char *compiler)
{
	char *path = built_path("cxx");

	assert_true(built_run("%s cxx.cc -o cxx", compiler));
	check_file(path, 5);
	free(path);
}

static void write_sources(void)
{
	free(built_write("one.c", one));
	free(built_write("two.c", two));
	free(built_write("cxx.cc", cxx));
}

TEST(gcc)
{
	write_sources();
	check_c("gcc -O2 -gdwarf-5");
	check_c("gcc -O2 -gdwarf-4 -fdebug-types-section");
	check_c("gcc -O0 -gdwarf-3");
	check_c("gcc -O2 -gdwarf-5 -gdwarf64");
	check_c("gcc -O2 -gdwarf-5 -flto");
	check_c("gcc -O2 -gdwarf-5 -gz");
	check_c("gcc -O2 -gdwarf-5 -gsplit-dwarf");
	check_cxx("g++ -O2 -gdwarf-5");
	check_cxx("g++ -O2 -gdwarf-4 -fdebug-types-section");
	check_cxx("g++ -O0 -gdwarf-5 -fdebug-types-section");
}

TEST(clang)
{
	if (!built_have("clang"))
		skip();
	write_sources();
	check_c("clang -O2 -gdwarf-5");
	check_c("clang -O2 -gdwarf-4");
	check_c("clang -O2 -gdwarf-5 -flto");
	check_cxx("clang++ -O2 -gdwarf-5");
}

/* Many units, read by several threads: this test, which holds what it tests. */
TEST(itself)
{
	check_file("/proc/self/exe", 100);
}

/* Bytes of debug information that say anything: an answer, whichever. */
TEST(damaged)
{
	static const char *const names[] = { "twice", "nested", "later", "f", "none" };
	static const char *const sections[] = { ".debug_info", ".debug_abbrev", ".debug_str" };
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t random = 1;
	char *path;

	write_sources();
	path = built_path("c");
	assert_true(built_run("gcc -O2 -gdwarf-5 one.c two.c -o c"));
	assert_ok(rt_image_open(path, &image));
	bytes = malloc(image->bytes.size);
	assert_non_null(bytes);
	for (unsigned round = 0; round < 1500; round++) {
		const char *name = names[round % (sizeof(names) / sizeof(*names))];
		_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
		_cleanup_(rt_image_destroyp) struct rt_image *copy = NULL;
		struct rt_instance *found = NULL;
		struct rt_bytes section;
		size_t count;

		memcpy(bytes, image->bytes.data, image->bytes.size);
		assert_true(rt_image_section(image, sections[round % 3], &section, NULL));
		for (unsigned i = 0; i < 1 + round % 4; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			bytes[(size_t)(section.data - image->bytes.data) + (random >> 33) % section.size] =
				(uint8_t)(random >> 20);
		}
		assert_ok(rt_image_from_bytes(rt_bytes_make(bytes, image->bytes.size), "damaged", &copy));
		assert_ok(rt_dwarf_create(copy, &dwarf));
		assert_ok(rt_dwarf_instances(dwarf, name, named, (void *)(uintptr_t)name, &found, &count));
		free(found);
	}
	free(path);
}

TEST_MAIN();
