/* SPDX-License-Identifier: GPL-2.0-only */
/* Signatures, members and counters, over gcc and clang, DWARF 4 and 5; sizes and offsets as the compiler has them. */
#include "built.h"
#include "dwarf/dwarf.h"

static const char source_a[] =
	"#include <stddef.h>\n"
	"#include <stdio.h>\n"
	"struct far;\n"
	"enum how { A, B };\n"
	"typedef struct { int counter; } atomic_t;\n"
	"typedef struct { atomic_t refs; } refcount_t;\n"
	"struct kref { refcount_t refcount; };\n"
	"struct obj { void *data; char name[5]; refcount_t refcnt; unsigned flags : 3; };\n"
	"typedef struct { long pad; volatile unsigned ref_count; } anon_t;\n"
	"struct embeds { const char *count_name; struct kref kref; int count; };\n"
	"struct derived { char pad[12]; struct obj base; _Bool referenced; };\n"
	"struct plain { int a; double refs; void *ref; unsigned ref_bits : 4; };\n"
	"struct many { int usage_counter; int count; _Atomic long nr_refs_cnt; _Atomic int m_refCount; };\n"
	"struct hidden { int a; union { struct { short x; short refcnt; }; int both; }; };\n"
	"typedef struct obj obj_alias;\n"
	"typedef obj_alias *obj_ptr;\n"
	"static inline struct obj *obj_get(obj_ptr o) { o->refcnt.refs.counter++; return o; }\n"
	"__attribute__((noinline)) const obj_alias *look(const char *key, obj_alias *const *slot, anon_t *a, int n)\n"
	"{ return n && key && a ? *slot : NULL; }\n"
	"struct far *far_get(struct far *f);\n"
	"struct embeds e; struct derived d; struct plain p; struct many m; struct hidden h;\n"
	"__attribute__((noinline)) void eat(void (*done)(int), void **list, enum how how) { done(how); *list = 0; "
	"}\n"
	"static struct obj *volatile kept; obj_ptr kept_too; __thread struct obj *mine; long *number; obj_ptr "
	"*several;\n"
	"struct table { long k; struct { void (*gfree)(void *); } in; void (*free_all)(void *, void *); void "
	"(*freed)(int, void *); void (*free_at)(double, void *); void (*done)(void *); } the_table;\n"
	"void (*free_it)(struct obj *, void *); static struct table tables[2]; void *a_table;\n"
	"static void nothing(int x) {}\n"
	"int main(void) {\n"
	"	static struct obj o; obj_ptr q = &o, w = &o; static anon_t t;\n"
	"	eat(nothing, (void **)&w, B); kept = mine = &o; a_table = &tables[1];\n"
	"	printf(\"%zu %zu %zu %zu %zu %zu\\n\", sizeof(struct obj), offsetof(struct obj, refcnt),\n"
	"	       offsetof(struct embeds, kref), offsetof(struct derived, base.refcnt),\n"
	"	       offsetof(struct many, m_refCount), offsetof(struct hidden, refcnt));\n"
	"	return !obj_get(&o) + !look(\"x\", &q, &t, 1) + !far_get(0) + p.a + e.count + d.referenced + m.count + "
	"h.a;\n"
	"}\n";

static const char source_b[] = "struct far { char pad[40]; unsigned char rc; };\n"
			       "struct far the_far;\n"
			       "struct far *far_get(struct far *f) { the_far.rc++; return f ? f : &the_far; }\n";

static char log_text[8192];

static bool keep(const struct rt_signature *sig, void *arg)
{
	char line[500];
	int n = snprintf(line, sizeof(line), "%s %s(", sig->returns.type ? sig->returns.type : "void", sig->function);

	for (size_t i = 0; i < sig->param_count; i++)
		n += snprintf(line + n, sizeof(line) - n, "%s%s %s%s%s", i ? ", " : "", sig->params[i].type,
			      sig->params[i].name, sig->params[i].pointee ? "/" : "",
			      sig->params[i].pointee ? sig->params[i].pointee : "");
	snprintf(line + n, sizeof(line) - n, ")%s%s%s\n", sig->external ? " external" : "",
		 sig->has_body ? " body" : "", sig->has_inlined ? " inlined" : "");
	strncat(log_text, line, sizeof(log_text) - strlen(log_text) - 1);
	if (sig->has_body)
		assert_true(sig->addr.v != 0);
	assert_true(sig->line > 0 && sig->file && sig->file[0] == '/');
	return true;
}

static void expect_counter(struct rt_dwarf *dwarf, const char *structure, uint64_t offset, uint32_t size)
{
	struct rt_member m = { 0 };

	if (!rt_dwarf_counter(dwarf, structure, &m))
		fail_msg("%s: no counter", structure);
	if (m.offset != offset || m.size != size)
		fail_msg("%s: counter at %lu, %u bytes", structure, (unsigned long)m.offset, m.size);
}

static void check_members(struct rt_dwarf *dwarf)
{
	_cleanup_free_ char *printed = built_output("./prog");
	unsigned long obj, refcnt, kref, derived, many, hidden;
	struct rt_member m;

	assert_int_equal(sscanf(printed, "%lu %lu %lu %lu %lu %lu", &obj, &refcnt, &kref, &derived, &many, &hidden), 6);
	assert_int_equal(rt_dwarf_struct_size(dwarf, "obj"), obj);
	assert_int_equal(rt_dwarf_struct_size(dwarf, "obj_alias"), obj);
	assert_int_equal(rt_dwarf_struct_size(dwarf, "none_such"), 0);
	expect_counter(dwarf, "obj", refcnt, 4);
	expect_counter(dwarf, "obj_alias", refcnt, 4);
	expect_counter(dwarf, "anon_t", 8, 4);
	expect_counter(dwarf, "embeds", kref, 4);
	expect_counter(dwarf, "derived", derived, 4);
	expect_counter(dwarf, "many", many, 4);
	expect_counter(dwarf, "hidden", hidden, 2);
	/* only declared where it is used: the definition is in another unit */
	expect_counter(dwarf, "far", 40, 1);
	assert_false(rt_dwarf_counter(dwarf, "plain", &m));
	assert_false(rt_dwarf_counter(dwarf, "none_such", &m));
	assert_true(rt_dwarf_member(dwarf, "obj", "refcnt.refs.counter", &m));
	assert_int_equal(m.offset, refcnt);
	assert_string_equal(m.type, "int");
	assert_true(rt_dwarf_member(dwarf, "obj", "name", &m));
	assert_int_equal(m.size, 5);
	assert_string_equal(m.type, "char[]");
	assert_true(rt_dwarf_member(dwarf, "hidden", "refcnt", &m));
	assert_int_equal(m.offset, hidden);
	assert_true(rt_dwarf_member(dwarf, "embeds", "kref", &m));
	assert_string_equal(m.type, "struct kref");
	assert_false(rt_dwarf_member(dwarf, "obj", "refcnt.none", &m));
	assert_false(rt_dwarf_member(dwarf, "obj", "data.x", &m));
	assert_false(rt_dwarf_member(dwarf, "obj", "", &m));
}

static void expect(const char *line)
{
	if (!strstr(log_text, line))
		fail_msg("no \"%s\" in\n%s", line, log_text);
}

static bool keep_global(struct rt_elfaddr addr, const char *pointee, void *arg)
{
	char line[80];

	snprintf(line, sizeof(line), "%016lx %s\n", (unsigned long)addr.v, pointee);
	strncat(log_text, line, sizeof(log_text) - strlen(log_text) - 1);
	return true;
}

/* variables that point to structs, by their addresses */
static void check_globals(struct rt_dwarf *dwarf)
{
	static const char *const names[][2] = { { "kept", "obj" }, { "kept_too", "obj" } };

	log_text[0] = '\0';
	assert_ok(rt_dwarf_pointer_globals(dwarf, keep_global, NULL));
	for (size_t i = 0; i < 2; i++) {
		_cleanup_free_ char *address = built_output("nm prog | awk '$3 == \"%s\" {print $1}'", names[i][0]);
		char line[80];

		snprintf(line, sizeof(line), "%.16s %s\n", address, names[i][1]);
		expect(line);
	}
	/* no variable of a function, none of a thread, nor what points to anything else */
	assert_int_equal(strlen(log_text), 2 * strlen("0123456789abcdef obj\n"));
}

static bool is_called_free(const char *name, void *arg)
{
	return strstr(name, "free") && arg == &log_text;
}

static bool keep_pointer(const struct rt_function_pointer *p, void *arg)
{
	char line[80];

	assert_ptr_equal(arg, &log_text);
	snprintf(line, sizeof(line), "%s %016lx %u\n", p->structure ? p->structure : "-", (unsigned long)p->place,
		 p->argument);
	strncat(log_text, line, sizeof(log_text) - strlen(log_text) - 1);
	return true;
}

/* pointers to functions that take one mere pointer, in whole registers */
static void check_function_pointers(struct rt_dwarf *dwarf)
{
	_cleanup_free_ char *table = built_output("nm prog | awk '$3 == \"the_table\" {print $1}'");
	_cleanup_free_ char *variable = built_output("nm prog | awk '$3 == \"free_it\" {print $1}'");
	const unsigned long at = strtoul(table, NULL, 16);
	char line[80];

	log_text[0] = '\0';
	assert_ok(rt_dwarf_function_pointers(dwarf, is_called_free, keep_pointer, &log_text));
	expect("table 0000000000000008 1\n");
	expect("table 0000000000000018 2\n");
	snprintf(line, sizeof(line), "- %016lx 1\n", at + 8);
	expect(line);
	snprintf(line, sizeof(line), "- %016lx 2\n", at + 24);
	expect(line);
	snprintf(line, sizeof(line), "- %.16s 2\n", variable);
	expect(line);
	/* of an array nothing is told, nor of those that take two, or a fraction before it */
	assert_int_equal(strlen(log_text),
			 2 * strlen("table 0123456789abcdef 1\n") + 3 * strlen("- 0123456789abcdef 1\n"));
}

static void check(const char *compiler, int level, int version)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog");

	free(built_write("a.c", source_a));
	free(built_write("b.c", source_b));
	assert_true(built_run("%s -O%d -g -gdwarf-%d a.c b.c -o prog", compiler, level, version));
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	log_text[0] = '\0';
	assert_ok(rt_dwarf_functions(dwarf, keep, NULL));
	expect("int main() external body\n");
	expect("struct obj * look(char * key, struct obj ** slot/obj, anon_t * a/anon_t, int n) external body\n");
	expect("struct far * far_get(struct far * f/far) external body\n");
	expect("struct obj * obj_get(struct obj * o/obj)");
	expect(level ? "obj_get(struct obj * o/obj) inlined\n" : "obj_get(struct obj * o/obj) body\n");
	expect("void eat(() * done, void ** list, enum how how)");
	check_members(dwarf);
	check_globals(dwarf);
	check_function_pointers(dwarf);
}

TEST(gcc)
{
	check("gcc", 0, 5);
	check("gcc", 2, 4);
	check("gcc", 2, 5);
}

TEST(clang)
{
	if (!built_have("clang"))
		skip();
	check("clang", 0, 5);
	check("clang", 2, 4);
	check("clang", 2, 5);
}

TEST(type_units_and_compression)
{
	check("gcc -fdebug-types-section", 2, 4);
	check("gcc -fdebug-types-section", 2, 5);
	check("gcc -gz", 2, 5);
}

TEST(split_debug_file)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("bare");
	struct rt_elfaddr start, end;
	bool lsda;

	free(built_write("a.c", source_a));
	free(built_write("b.c", source_b));
	assert_true(built_run("gcc -O2 -g a.c b.c -o prog && mkdir -p .debug && "
			      "objcopy --only-keep-debug prog .debug/bare.debug && "
			      "objcopy -S --add-gnu-debuglink=.debug/bare.debug prog bare"));
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_image_find_debug(image, AT_FDCWD));
	assert_non_null(image->debug);
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_true(rt_dwarf_present(dwarf));
	check_members(dwarf);
	assert_true(rt_dwarf_fde(dwarf, image->entry, &start, &end, &lsda));
}

static bool stop(const struct rt_signature *sig, void *arg)
{
	return --*(int *)arg > 0;
}

TEST(visit_stops)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog");
	int left = 2;

	free(built_write("a.c", source_a));
	free(built_write("b.c", source_b));
	assert_true(built_run("gcc -O2 -g a.c b.c -o prog"));
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_ok(rt_dwarf_functions(dwarf, stop, &left));
	assert_int_equal(left, 0);
}

static bool keep_cxx(const struct rt_signature *sig, void *arg)
{
	char line[300];

	snprintf(line, sizeof(line), "%s %s %s\n", sig->function, sig->linkage ? sig->linkage : "-",
		 sig->param_count && sig->params[0].type ? sig->params[0].type : "-");
	strncat(log_text, line, sizeof(log_text) - strlen(log_text) - 1);
	return true;
}

TEST(cxx)
{
	static const char *const compilers[] = { "g++", "clang++" };
	struct rt_member m;

	free(built_write("c.cc",
			 "#include <atomic>\n"
			 "namespace ns { struct Base { long pad; std::atomic<int> m_refs; static int count; };\n"
			 "class Obj : public Base { public: Obj(); ~Obj(); void ref(const Obj &other); int x; }; }\n"
			 "int ns::Base::count;\n"
			 "ns::Obj::Obj() : x(1) { m_refs = 1; }\n"
			 "ns::Obj::~Obj() { m_refs = 0; }\n"
			 "void ns::Obj::ref(const Obj &other) { m_refs++; x += other.x; }\n"
			 "int main() { ns::Obj o; o.ref(o); return o.x - 2; }\n"));
	for (size_t i = 0; i < 2; i++) {
		_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
		_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
		_cleanup_free_ char *path = built_path("prog");

		if (!built_have(compilers[i]))
			continue;
		assert_true(built_run("%s -O1 -g c.cc -o prog", compilers[i]));
		assert_ok(rt_image_open(path, &image));
		assert_ok(rt_dwarf_create(image, &dwarf));
		log_text[0] = '\0';
		assert_ok(rt_dwarf_functions(dwarf, keep_cxx, NULL));
		expect("ref _ZN2ns3Obj3refERKS0_ class Obj *\n");
		expect("~Obj _ZN2ns3ObjD");
		assert_true(rt_dwarf_member(dwarf, "Obj", "m_refs", &m));
		assert_int_equal(m.offset, 8);
		assert_true(rt_dwarf_counter(dwarf, "Obj", &m));
		assert_int_equal(m.offset, 8);
		assert_int_equal(m.size, 4);
	}
}

TEST_MAIN();
