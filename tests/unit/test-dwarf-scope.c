/* SPDX-License-Identifier: GPL-2.0-only */
/* Scopes and lines of every instruction of small programs, compared with addr2line and llvm-symbolizer. */
#include "built.h"
#include "dwarf/dwarf.h"

static const char source[] = "#include <stdlib.h>\n"
			     "#include <stdio.h>\n"
			     "struct obj { void *data; int refs; char name[16]; };\n"
			     "static inline struct obj *obj_get(struct obj *o)\n"
			     "{\n"
			     "	if (o)\n"
			     "		__atomic_fetch_add(&o->refs, 1, 5);\n"
			     "	return o;\n"
			     "}\n"
			     "static void obj_put(struct obj *o)\n"
			     "{\n"
			     "	if (!o)\n"
			     "		return;\n"
			     "	if (__atomic_fetch_sub(&o->refs, 1, 5) == 1) {\n"
			     "		printf(\"gone %s\\n\", o->name);\n"
			     "		for (int i = 0; i < 10; i++)\n"
			     "			printf(\"%d\\n\", o->name[i]);\n"
			     "		free(o);\n"
			     "	}\n"
			     "}\n"
			     "static inline int deep(struct obj *o, int n)\n"
			     "{\n"
			     "	struct obj *p = obj_get(o);\n"
			     "	n += p->name[n & 15];\n"
			     "	obj_put(p);\n"
			     "	return n;\n"
			     "}\n"
			     "static inline int deeper(struct obj *o, int n)\n"
			     "{\n"
			     "	n = deep(o, n) * 3;\n"
			     "	return n + 1;\n"
			     "}\n"
			     "__attribute__((noinline, cold)) void die(const char *w)\n"
			     "{\n"
			     "	fprintf(stderr, \"%s\\n\", w);\n"
			     "	abort();\n"
			     "}\n"
			     "__attribute__((noinline)) int first(struct obj *o, int n)\n"
			     "{\n"
			     "	if (n < 0)\n"
			     "		die(o->name);\n"
			     "	return deeper(o, n) + 1;\n"
			     "}\n"
			     "__attribute__((noinline)) int second(struct obj *o, int n)\n"
			     "{\n"
			     "	if (n > 77) {\n"
			     "		printf(\"%d\\n\", n);\n"
			     "		die(\"x\");\n"
			     "	}\n"
			     "	obj_put(obj_get(o));\n"
			     "	return deeper(o, n) + deep(o, 2);\n"
			     "}\n"
			     "int main(int argc, char **argv)\n"
			     "{\n"
			     "	struct obj *o = calloc(1, sizeof(*o));\n"
			     "	o->refs = 5;\n"
			     "	int r = first(o, argc) + second(o, argc);\n"
			     "	obj_put(o);\n"
			     "	return r & 1;\n"
			     "}\n";

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

struct answer {
	char text[600];
	bool known; /* the oracle knows the line of each frame */
};

/* "f@file:line|g@file:line": clone suffixes off; a part of a function inside that function is one frame. */
static void append(struct answer *a, const char *function, const char *place, bool oracle)
{
	char entry[200], name[64], *last = strrchr(a->text, '|');
	unsigned line = 0;
	const char *colon = strrchr(place, ':');

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(function, "."), function);
	if (colon)
		sscanf(colon + 1, "%u", &line);
	last = last ? last + 1 : a->text;
	/* the lines where obj_get and obj_put, which gcc splits, begin */
	if (oracle && (line == 4 || line == 10) && strncmp(last, name, strlen(name)) == 0 && last[strlen(name)] == '@')
		return;
	snprintf(entry, sizeof(entry), "%s%s@%.*s:%u", a->text[0] ? "|" : "", name,
		 colon ? (int)(colon - base_name(place)) : 0, base_name(place), line);
	strncat(a->text, entry, sizeof(a->text) - strlen(a->text) - 1);
	if (!line || strstr(place, "??") || strstr(function, "??"))
		a->known = false;
}

/* Reads what `addr2line -a -i -f` printed for count addresses. */
static void parse_oracle(char *text, struct answer *ret, size_t count)
{
	size_t at = SIZE_MAX;
	char *save = NULL, *function = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "0x", 2) == 0) {
			at++;
			assert_true(at < count);
			ret[at].known = true;
			function = NULL;
		} else if (!function) {
			function = line;
		} else {
			char *blank = strchr(line, ' ');

			if (blank)
				*blank = '\0';
			append(&ret[at], function, line, true);
			function = NULL;
		}
	}
	assert_int_equal(at + 1, count);
}

static size_t own_answer(struct rt_dwarf *dwarf, uint64_t addr, struct answer *ret)
{
	struct rt_scope scopes[16];
	size_t n = rt_dwarf_scopes(dwarf, (struct rt_elfaddr){ addr }, scopes, 16);

	for (size_t i = 0; i < n; i++) {
		char place[300];

		snprintf(place, sizeof(place), "%s:%u", scopes[i].file ? scopes[i].file : "??", scopes[i].line);
		append(ret, scopes[i].function, place, false);
		assert_int_equal(scopes[i].inlined, i + 1 < n);
		assert_true(scopes[i].entry.v != 0);
	}
	return n;
}

static void compare(const char *compiler, int level, int version)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog"), *list = NULL, *gnu = NULL, *llvm = NULL;
	_cleanup_free_ struct answer *a = NULL, *b = NULL;
	size_t count = 0, same = 0, inlined = 0;
	char *save = NULL;

	free(built_write("prog.c", source));
	assert_true(built_run("%s -O%d -g -gdwarf-%d prog.c -o prog", compiler, level, version));
	list = built_output("objdump -d -j .text prog | sed -n 's/^ *\\([0-9a-f]*\\):.*/\\1/p' | tee addrs");
	for (char *p = list; *p; p++)
		count += *p == '\n';
	assert_true(count > 100);
	a = calloc(count, sizeof(*a));
	b = calloc(count, sizeof(*b));
	gnu = built_output("addr2line -a -i -f -e prog < addrs");
	parse_oracle(gnu, a, count);
	if (built_have("llvm-addr2line")) {
		llvm = built_output("llvm-addr2line -a -i -f -e prog < addrs");
		parse_oracle(llvm, b, count);
	}
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_true(rt_dwarf_present(dwarf));
	count = 0;
	for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save), count++) {
		struct answer own = { .known = true };
		uint64_t addr = strtoull(line, NULL, 16);
		size_t n = own_answer(dwarf, addr, &own);

		/* the two do not agree about everything (binutils 2.40 and clang's range lists) */
		if (n && own.known && strcmp(own.text, a[count].text) != 0 && strcmp(own.text, b[count].text) != 0)
			fail_msg("%s -O%d -gdwarf-%d %s: %s, addr2line %s, llvm %s", compiler, level, version, line,
				 own.text, a[count].text, b[count].text);
		if (!n && a[count].known && b[count].known && strcmp(a[count].text, b[count].text) == 0)
			fail_msg("%s -O%d -gdwarf-%d %s: nothing, addr2line %s", compiler, level, version, line,
				 a[count].text);
		same += n && own.known;
		inlined += n > 1;
	}
	assert_true(same > 70);
	assert_true(level == 0 || inlined > 20);
}

static void compare_all(const char *compiler)
{
	if (!built_have(compiler))
		skip();
	for (int level = 0; level <= 2; level++) {
		compare(compiler, level, 4);
		compare(compiler, level, 5);
	}
}

TEST(gcc_against_addr2line)
{
	compare_all("gcc");
}

TEST(clang_against_addr2line)
{
	compare_all("clang");
}

/* foo.cold, foo.part.0 and foo.isra.0 are parts of foo: the debug info's name is told. */
TEST(clones_have_the_source_name)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog"), *symbols = NULL;
	unsigned clones = 0;
	char *save = NULL;

	free(built_write("prog.c", source));
	assert_true(built_run("gcc -O2 -g prog.c -o prog"));
	symbols = built_output("nm prog | sed -n 's/^\\([0-9a-f]*\\) [tT] \\(.*\\..*\\)/\\1 \\2/p'");
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	for (char *line = strtok_r(symbols, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct rt_scope scopes[8];
		char name[64];
		uint64_t addr;
		size_t n;

		assert_int_equal(sscanf(line, "%lx %63[^.]", &addr, name), 2);
		if (strstr(line, "completed") || strstr(line, "dtors") || strstr(line, "frame_dummy"))
			continue;
		n = rt_dwarf_scopes(dwarf, (struct rt_elfaddr){ addr }, scopes, 8);
		assert_true(n > 0);
		assert_string_equal(scopes[n - 1].function, name);
		assert_false(scopes[n - 1].inlined);
		clones++;
	}
	assert_true(clones > 0);
}

TEST(no_debug_info_is_no_error)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("bare");
	_cleanup_free_ struct rt_inlined *list = NULL;
	struct rt_source_line line;
	struct rt_member member;
	struct rt_scope scope;
	struct rt_cfi_row row;
	size_t count = 1;

	free(built_write("prog.c", source));
	assert_true(built_run("gcc -O2 -s prog.c -o bare"));
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_false(rt_dwarf_present(dwarf));
	assert_int_equal(rt_dwarf_scopes(dwarf, image->entry, &scope, 1), 0);
	assert_false(rt_dwarf_line(dwarf, image->entry, &line));
	assert_false(rt_dwarf_counter(dwarf, "obj", &member));
	assert_int_equal(rt_dwarf_struct_size(dwarf, "obj"), 0);
	assert_ok(rt_dwarf_inlined(dwarf, "obj_get", 1, &list, &count));
	assert_int_equal(count, 0);
	/* frames are described in stripped files too */
	assert_true(rt_dwarf_cfi(dwarf, image->entry, &row));
	assert_true(row.ra_undefined);
}

TEST(strings_are_interned)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog");
	struct rt_scope scopes[16], other[16];
	size_t deepest = 0;

	free(built_write("prog.c", source));
	assert_true(built_run("gcc -O2 -g prog.c -o prog"));
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	for (size_t i = 0; i < image->segment_count; i++) {
		for (uint64_t a = image->segments[i].start.v; a < image->segments[i].end.v; a++) {
			size_t n = rt_dwarf_scopes(dwarf, (struct rt_elfaddr){ a }, scopes, 16);

			if (n <= deepest)
				continue;
			deepest = n;
			assert_int_equal(rt_dwarf_scopes(dwarf, (struct rt_elfaddr){ a }, other, 16), n);
			assert_ptr_equal(scopes[0].function, other[0].function);
			assert_ptr_equal(scopes[0].file, scopes[n - 1].file);
			/* fewer places than frames: the innermost ones */
			assert_int_equal(rt_dwarf_scopes(dwarf, (struct rt_elfaddr){ a }, other, 1), 1);
			assert_ptr_equal(scopes[0].function, other[0].function);
		}
	}
	assert_true(deepest >= 4);
}

/* what begins with another struct is that as well; by a pointer, at an offset, or only declared it is not */
static const char heads[] =
	"struct root { int refs; };\n"
	"typedef struct { struct root root; int n; } node;\n"
	"struct leaf { const node node; int more; };\n"
	"struct far { int n; struct root root; };\n"
	"struct by { struct root *root; };\n"
	"struct hidden;\n"
	"#define F(type, name) __attribute__((noinline)) type name(void *p) { return (type)p; }\n"
	"F(struct leaf *, leaf) F(node *, name) F(struct root *, root) F(struct far *, far)\n"
	"F(struct by *, by) F(struct hidden *, hidden) F(struct leaf **, twice) F(void *, anything)\n"
	"int main(void) { return !leaf(name(root(far(by(hidden(twice(anything(0)))))))); }\n";

TEST(what_a_function_returns_begins_with)
{
	static const struct {
		const char *name, *returns;
	} functions[] = {
		{ "leaf", "struct leaf *|struct node *|struct root *" },
		{ "name", "node *|struct root *" },
		{ "root", "struct root *" },
		{ "far", "struct far *" },
		{ "by", "struct by *" },
		{ "hidden", "struct hidden *" },
		{ "twice", "struct leaf **" },
		{ "anything", "void *" },
	};

	free(built_write("heads.c", heads));
	for (int version = 4; version <= 5; version++) {
		_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
		_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
		_cleanup_free_ char *path = built_path("heads");

		assert_true(built_run("gcc -O1 -g -gdwarf-%d heads.c -o heads", version));
		assert_ok(rt_image_open(path, &image));
		assert_ok(rt_dwarf_create(image, &dwarf));
		for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
			_cleanup_free_ char *at =
				built_output("nm heads | awk '$3 == \"%s\" { print $1 }'", functions[i].name);
			struct rt_scope scope;

			assert_int_equal(
				rt_dwarf_scopes(dwarf, (struct rt_elfaddr){ strtoull(at, NULL, 16) }, &scope, 1), 1);
			assert_string_equal(scope.returns, functions[i].returns);
		}
	}
}

TEST_MAIN();
