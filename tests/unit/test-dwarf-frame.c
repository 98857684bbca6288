/* SPDX-License-Identifier: GPL-2.0-only */
/* Unwind rows and FDEs, compared with readelf row by row; damaged debug info. */
#include <gelf.h>

#include "built.h"
#include "dwarf/dwarf.h"

static const char source[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <alloca.h>\n"
	"struct obj { int refs; char name[40]; };\n"
	"static inline void obj_get(struct obj *o) { o->refs++; }\n"
	"__attribute__((noinline)) long many(long a, long b, long c, long d, long e, long f, long g, long h)\n"
	"{ long x[8]; for (int i = 0; i < 8; i++) x[i] = a * b + c * i + d - e * f + g * h; printf(\"%ld\\n\", x[a & "
	"7]);\n"
	"  return x[b & 7] + x[c & 7] * many(x[1], b, c, d, e, f, g, h - 1); }\n"
	"__attribute__((noinline)) int dynamic(int n, struct obj *o)\n"
	"{ char *p = alloca(n); p[0] = n; snprintf(p, n, \"%s\", o->name); obj_get(o); return puts(p); }\n"
	"int main(int argc, char **argv)\n"
	"{ struct obj o = { 1, \"x\" }; return argc > 3 ? (int)many(1, 2, 3, 4, 5, 6, argc, 8) : dynamic(99, &o) < 0; "
	"}\n";

struct table {
	int rbp, ra; /* columns, -1 where there is none */
	bool fde;
	unsigned rows, refused;
};

static void check_row(struct rt_dwarf *dwarf, const struct table *t, char *line, struct table *counts)
{
	char *column[24], *save = NULL, cfa[32];
	const char *rbp;
	struct rt_cfi_row row;
	uint64_t addr;
	int n = 0;

	for (char *p = strtok_r(line, " ", &save); p && n < 24; p = strtok_r(NULL, " ", &save))
		column[n++] = p;
	addr = strtoull(column[0], NULL, 16);
	if (!rt_dwarf_cfi(dwarf, (struct rt_elfaddr){ addr }, &row)) {
		/* expressions, and registers that are no frame */
		if (strncmp(column[1], "rsp", 3) == 0 || strncmp(column[1], "rbp", 3) == 0)
			fail_msg("%s: refused, readelf has %s", column[0], column[1]);
		counts->refused++;
		return;
	}
	assert_int_equal(row.ra_undefined, strcmp(column[t->ra], "u") == 0);
	counts->rows++;
	if (row.ra_undefined)
		return;
	snprintf(cfa, sizeof(cfa), "%s%+ld", row.cfa_reg == 6 ? "rbp" : "rsp", (long)row.cfa_offset);
	assert_string_equal(cfa, column[1]);
	rbp = t->rbp >= 0 && t->rbp < n ? column[t->rbp] : "u";
	if (strcmp(rbp, "u") == 0) {
		assert_true(row.rbp_same && !row.rbp_saved);
	} else {
		assert_true(row.rbp_saved && !row.rbp_same);
		assert_int_equal(row.rbp_offset, strtoll(rbp + 1, NULL, 10));
	}
}

static void check_line(struct rt_dwarf *dwarf, struct table *t, char *line)
{
	char *save = NULL, *pc = strstr(line, " pc=");
	struct rt_elfaddr start, end;
	uint64_t lo, hi;
	bool lsda;

	if (pc && strstr(line, " FDE ")) {
		t->fde = true;
		assert_int_equal(sscanf(pc, " pc=%lx..%lx", &lo, &hi), 2);
		assert_true(rt_dwarf_fde(dwarf, (struct rt_elfaddr){ lo }, &start, &end, &lsda));
		assert_true(start.v == lo && end.v == hi && !lsda);
		assert_true(rt_dwarf_fde(dwarf, (struct rt_elfaddr){ hi - 1 }, &start, &end, &lsda));
		assert_int_equal(start.v, lo);
	} else if (strstr(line, " CIE ")) {
		t->fde = false;
	} else if (strncmp(line, "   LOC", 6) == 0) {
		int n = 0;

		t->rbp = t->ra = -1;
		for (char *p = strtok_r(line, " ", &save); p; p = strtok_r(NULL, " ", &save), n++) {
			if (strcmp(p, "rbp") == 0)
				t->rbp = n;
			else if (strcmp(p, "ra") == 0)
				t->ra = n;
		}
	} else if (t->fde && strspn(line, "0123456789abcdef") == 16) {
		struct table columns = *t;

		check_row(dwarf, &columns, line, t);
	}
}

static void check_frames(const char *compile)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog"), *text = NULL;
	struct rt_elfaddr start, end;
	struct table t = { 0 };
	char *save = NULL;
	bool lsda;

	free(built_write("prog.c", source));
	assert_true(built_run("%s prog.c -o prog", compile));
	text = built_output("readelf --debug-dump=frames-interp prog");
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		check_line(dwarf, &t, line);
	assert_true(t.rows > 15);
	assert_false(rt_dwarf_fde(dwarf, (struct rt_elfaddr){ 0 }, &start, &end, &lsda));
	assert_false(rt_dwarf_fde(dwarf, (struct rt_elfaddr){ UINT64_MAX }, &start, &end, &lsda));
}

TEST(rows_of_gcc)
{
	check_frames("gcc -O2");
	check_frames("gcc -O0 -g");
	check_frames("gcc -O2 -fno-omit-frame-pointer -s");
}

TEST(rows_of_clang)
{
	if (!built_have("clang"))
		skip();
	check_frames("clang -O2");
	check_frames("clang -O0 -g");
}

TEST(rows_of_debug_frame)
{
	check_frames("gcc -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables");
	check_frames("gcc -O2 -g -gz -fno-asynchronous-unwind-tables -fno-unwind-tables");
}

TEST(landing_pads)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog"), *symbols = NULL;
	unsigned long catches = 0, plain = 0;
	struct rt_elfaddr start, end;
	bool lsda;

	free(built_write("c.cc",
			 "#include <cstdio>\n"
			 "extern \"C\" __attribute__((noinline)) int plain(int x) { return printf(\"%d\", x) + 1; }\n"
			 "extern \"C\" __attribute__((noinline)) int catches(int x)\n"
			 "{ try { if (x > 3) throw x; return plain(x); } catch (int y) { return y; } }\n"
			 "int main(int argc, char **) { return catches(argc); }\n"));
	assert_true(built_run("g++ -O1 c.cc -o prog"));
	symbols = built_output("nm prog | sed -n 's/ T catches$/ c/p; s/ T plain$/ p/p'");
	for (char *save = NULL, *line = strtok_r(symbols, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		*(strchr(line, 'c') && line[strlen(line) - 1] == 'c' ? &catches : &plain) = strtoul(line, NULL, 16);
	assert_true(catches && plain);
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_true(rt_dwarf_fde(dwarf, (struct rt_elfaddr){ catches }, &start, &end, &lsda));
	assert_true(lsda);
	assert_int_equal(start.v, catches);
	assert_true(rt_dwarf_fde(dwarf, (struct rt_elfaddr){ plain }, &start, &end, &lsda));
	assert_false(lsda);
}

static bool any(const struct rt_signature *sig, void *arg)
{
	return true;
}

static void ask_everything(const uint8_t *data, size_t size)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_error_ struct rt_error *err = rt_image_from_bytes(rt_bytes_make(data, size), "damaged", &image);
	_cleanup_free_ struct rt_inlined *list = NULL;
	size_t count;

	if (err)
		return;
	err = rt_dwarf_create(image, &dwarf);
	if (err)
		return;
	for (size_t i = 0; i < image->segment_count; i++) {
		for (uint64_t a = image->segments[i].start.v, k = 0; k < 2000; k += 9) {
			struct rt_scope scopes[8];
			struct rt_cfi_row row;

			rt_dwarf_scopes(dwarf, (struct rt_elfaddr){ a + k }, scopes, 8);
			rt_dwarf_cfi(dwarf, (struct rt_elfaddr){ a + k }, &row);
		}
	}
	rt_error_free(rt_dwarf_functions(dwarf, any, NULL));
	rt_error_free(rt_dwarf_inlined(dwarf, "obj_get", 1, &list, &count));
	rt_dwarf_counter(dwarf, "obj", &(struct rt_member){ 0 });
}

struct part {
	size_t offset, size;
};

static size_t debug_parts(const uint8_t *data, size_t size, struct part *ret, size_t max)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	Elf_Scn *scn = NULL;
	size_t names, n = 0;

	assert_ok(rt_image_from_bytes(rt_bytes_make(data, size), "whole", &image));
	assert_int_equal(elf_getshdrstrndx(image->elf, &names), 0);
	while ((scn = elf_nextscn(image->elf, scn)) != NULL && n < max) {
		GElf_Shdr shdr;
		const char *name;

		assert_non_null(gelf_getshdr(scn, &shdr));
		name = elf_strptr(image->elf, names, shdr.sh_name);
		if (strncmp(name, ".debug_", 7) == 0 || strncmp(name, ".eh_frame", 9) == 0)
			ret[n++] = (struct part){ shdr.sh_offset, shdr.sh_size };
	}
	return n;
}

static void damage(const char *compile)
{
	_cleanup_free_ char *path = built_path("prog");
	_cleanup_free_ uint8_t *whole = malloc(1 << 20), *bad = malloc(1 << 20);
	_cleanup_fclose_ FILE *f = NULL;
	struct part parts[32];
	uint32_t seed = 7;
	size_t size, n;

	free(built_write("prog.c", source));
	assert_true(built_run("%s prog.c -o prog", compile));
	f = fopen(path, "r");
	assert_non_null(f);
	size = fread(whole, 1, 1 << 20, f);
	n = debug_parts(whole, size, parts, 32);
	assert_true(n >= 6);
	/* a hang ends the test */
	alarm(60);
	for (int round = 0; round < 300; round++) {
		memcpy(bad, whole, size);
		for (int k = 0; k < 1 + round % 6; k++) {
			const struct part *p;

			seed = seed * 1664525 + 1013904223;
			p = &parts[(seed >> 10) % n];
			bad[p->offset + (seed >> 4) % p->size] ^= 1u << (seed >> 29);
		}
		ask_everything(bad, size);
	}
	alarm(0);
}

TEST(damaged_debug_info)
{
	damage("gcc -O2 -g -gdwarf-5");
	damage("gcc -O2 -g -gdwarf-4 -gz");
	if (built_have("clang"))
		damage("clang -O2 -g -gdwarf-5");
}

TEST_MAIN();
