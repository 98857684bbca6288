/* SPDX-License-Identifier: GPL-2.0-only */
/* A unit's DIEs by its bytes: libdw, which goes from one to the next by itself, is the oracle. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include "base/vec.h"
#include "built.h"
#include "dwarf/skim.h"

static const char c_source[] =
	"struct s { int a; struct { int b; } in; int (*get)(int); };\n"
	"enum e { ONE, TWO };\n"
	"typedef int list[4][2];\n"
	"static inline int twice(struct s *s, int n) { { int k = n; for (int i = 0; i < n; i++) { int m = i; k += m; "
	"}\n"
	"  return s->a * k; } }\n"
	"__attribute__((noinline)) int work(struct s *s, int n) { return twice(s, n) + twice(s, n + 1); }\n"
	"int main(int argc, char **argv) { struct s s = { argc }; list l = { { 1 } }; (void)argv;\n"
	"  return work(&s, 3) + l[argc & 3][0] + (int)TWO; }\n";
static const char cxx_source[] =
	"namespace n { template <class T> struct box { T v; struct inner { int w; int get() { return w; } } i;\n"
	"  T get() const { return v; } virtual ~box() {} }; }\n"
	"static int use(int k) { n::box<int> b; b.v = k; b.i.w = k; auto f = [&](int x) { return b.get() + x; };\n"
	"  struct local { int go(int n) { return n * 2; } } l;\n"
	"  try { return f(k) + b.i.get() + l.go(k); } catch (int) { return 1; } }\n"
	"int main(int argc, char **) { return use(argc); }\n";

struct list {
	RT_VEC(struct rt_skim_die) v;
};

/* As tree.c asks: functions, instances, and what they lie in; or all that there is. */
static int interest(unsigned tag, bool c_only)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return 1;
	case DW_TAG_inlined_subroutine:
		return 2;
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
		return 0;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return c_only ? -1 : 0;
	default:
		return -1;
	}
}

static int all_of_it(unsigned tag, bool c_only)
{
	return 1 + (int)tag;
}

typedef int interest_fn(unsigned tag, bool c_only);

static void oracle(const Dwarf_Die *unit, Dwarf_Die *die, uint32_t parent, interest_fn *fn, bool c_only,
		   struct list *ret)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return;
	do {
		int what = fn((unsigned)dwarf_tag(&child), c_only);
		uint32_t in = parent;

		if (what > 0) {
			struct rt_skim_die one = { .behind = (uint32_t)((char *)child.addr - (char *)unit->addr),
						   .parent = parent,
						   .what = what };

			assert_true(rt_vec_push(&ret->v, one));
			in = (uint32_t)ret->v.len;
		}
		if (what >= 0)
			oracle(unit, &child, in, fn, c_only, ret);
	} while (dwarf_siblingof(&child, &child) == 0);
}

static void compare(struct rt_skim *skim, const struct rt_skim_unit *bytes, Dwarf_Die *unit, interest_fn *fn,
		    bool c_only)
{
	struct list wanted = { 0 };

	oracle(unit, unit, 0, fn, c_only, &wanted);
	assert_true(rt_skim_tree(skim, bytes, fn, c_only));
	assert_int_equal(skim->found.len, wanted.v.len);
	for (size_t i = 0; i < wanted.v.len; i++) {
		assert_int_equal(skim->found.data[i].behind, wanted.v.data[i].behind);
		assert_int_equal(skim->found.data[i].parent, wanted.v.data[i].parent);
		assert_int_equal(skim->found.data[i].what, wanted.v.data[i].what);
	}
	rt_vec_deinit(&wanted.v);
}

struct file {
	int fd;
	Elf *elf;
	Dwarf *dw;
	struct rt_bytes info, abbrev;
};

static void file_open(const char *path, struct file *f)
{
	Elf_Scn *scn = NULL;
	size_t names;

	*f = (struct file){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	assert_true(f->fd >= 0);
	elf_version(EV_CURRENT);
	f->elf = elf_begin(f->fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	f->dw = dwarf_begin_elf(f->elf, DWARF_C_READ, NULL);
	assert_non_null(f->dw);
	assert_int_equal(elf_getshdrstrndx(f->elf, &names), 0);
	while ((scn = elf_nextscn(f->elf, scn))) {
		GElf_Shdr shdr;
		const char *name = elf_strptr(f->elf, names, gelf_getshdr(scn, &shdr)->sh_name);
		Elf_Data *data = elf_getdata(scn, NULL);

		if (!strcmp(name, ".debug_info"))
			f->info = rt_bytes_make(data->d_buf, data->d_size);
		if (!strcmp(name, ".debug_abbrev"))
			f->abbrev = rt_bytes_make(data->d_buf, data->d_size);
	}
}

static void file_close(struct file *f)
{
	dwarf_end(f->dw);
	elf_end(f->elf);
	close(f->fd);
}

/* -> DIEs that were found */
static size_t check(const char *path)
{
	struct rt_skim skim = { 0 };
	Dwarf_CU *cu = NULL;
	size_t count = 0;
	struct file f;
	Dwarf_Die die;
	uint8_t kind;

	file_open(path, &f);
	while (dwarf_get_units(f.dw, cu, &cu, NULL, &kind, &die, NULL) == 0) {
		uint64_t at = dwarf_dieoffset(&die) - dwarf_cuoffset(&die);
		struct rt_skim_unit unit;

		/* those of .debug_types are in a section of their own */
		if (dwarf_tag(&die) == DW_TAG_type_unit || kind == DW_UT_skeleton)
			continue;
		assert_true(rt_skim_open(f.info, f.abbrev, at, dwarf_dieoffset(&die), &unit));
		compare(&skim, &unit, &die, interest, true);
		compare(&skim, &unit, &die, interest, false);
		count += skim.found.len;
		compare(&skim, &unit, &die, all_of_it, false);
	}
	rt_skim_deinit(&skim);
	file_close(&f);
	return count;
}

static void check_built(const char *command, const char *source)
{
	char *path = built_path("built");

	free(built_write(strstr(command, "++") ? "s.cc" : "s.c", source));
	assert_true(built_run("%s %s -o built", command, strstr(command, "++") ? "s.cc" : "s.c"));
	assert_true(check(path) >= 2);
	free(path);
}

TEST(compilers)
{
	static const char *const flags[] = { "-O2 -gdwarf-5", "-O2 -gdwarf-4", "-O0 -gdwarf-3",
					     "-O2 -gdwarf-2 -gstrict-dwarf", "-O2 -gdwarf-5 -gdwarf64" };
	static const char *const compilers[][2] = { { "gcc", "g++" }, { "clang", "clang++" } };

	for (size_t c = 0; c < 2; c++) {
		if (!built_have(compilers[c][1]))
			continue;
		for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
			char command[256];

			/* clang has a 64-bit form, but the linker's start files do not go with it */
			if (c && strstr(flags[i], "dwarf64"))
				continue;
			snprintf(command, sizeof(command), "%s %s", compilers[c][0], flags[i]);
			check_built(command, c_source);
			snprintf(command, sizeof(command), "%s %s", compilers[c][1], flags[i]);
			check_built(command, cxx_source);
		}
	}
}

/* Many units, of whatever this test is linked with. */
TEST(itself)
{
	assert_true(check("/proc/self/exe") >= 100);
}

/* Two units by hand: the first DIE of each has children, the first child says where its sibling is. */
static const uint8_t hand_abbrev[] = { 1, DW_TAG_compile_unit, 1, 0, 0,
				       /* DW_AT_sibling, DW_FORM_ref4 */
				       2, DW_TAG_structure_type, 1, DW_AT_sibling, DW_FORM_ref4, 0, 0, 3, DW_TAG_member,
				       0, DW_AT_name, DW_FORM_string, 0, 0, 4, DW_TAG_subprogram, 0, DW_AT_name,
				       DW_FORM_string, 0, 0,
				       /* numbers that are left out */
				       9, DW_TAG_member, 0, 0, 0, 0 };
enum { SIBLING = 13, MEMBER = 17, STRUCT_ENDS = 20, FUNCTION = 21, HAND_SIZE = 25 };

static struct rt_skim_unit hand(uint8_t *bytes, uint8_t sibling, size_t abbrev_size)
{
	static const uint8_t whole[HAND_SIZE] = { /* length, version, abbreviations, size of addresses */
						  HAND_SIZE - 4, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1,
						  /* struct with its sibling, a member "m", its end */
						  2, 0, 0, 0, 0, 3, 'm', 0, 0,
						  /* a function "f", the unit's end */
						  4, 'f', 0, 0
	};
	struct rt_skim_unit unit;

	memcpy(bytes, whole, HAND_SIZE);
	bytes[SIBLING] = sibling;
	assert_true(
		rt_skim_open(rt_bytes_make(bytes, HAND_SIZE), rt_bytes_make(hand_abbrev, abbrev_size), 0, 11, &unit));
	return unit;
}

TEST(by_hand)
{
	/* a sibling that leads backwards, into itself, behind the unit, or elsewhere than the children end */
	static const uint8_t wrong[] = { 0, 12, SIBLING, HAND_SIZE + 1, MEMBER, STRUCT_ENDS, FUNCTION + 3 };
	uint8_t bytes[HAND_SIZE], table[sizeof(hand_abbrev)];
	struct rt_skim_unit unit = hand(bytes, FUNCTION, sizeof(hand_abbrev));
	struct rt_skim skim = { 0 };

	assert_false(rt_skim_tree(&skim, &unit, interest, true));
	/* without the abbreviation that is out of order */
	memcpy(table, hand_abbrev, sizeof(table));
	table[sizeof(table) - 6] = 0;
	unit.abbrev = rt_bytes_make(table, sizeof(table));
	/* past the struct by its sibling, and through it */
	for (int c_only = 0; c_only < 2; c_only++) {
		assert_true(rt_skim_tree(&skim, &unit, interest, c_only));
		assert_int_equal(skim.found.len, 1);
		assert_int_equal(skim.found.data[0].behind, FUNCTION - 11);
	}
	for (size_t i = 0; i < sizeof(wrong); i++) {
		bytes[SIBLING] = wrong[i];
		assert_false(rt_skim_tree(&skim, &unit, interest, false));
	}
	/* cut anywhere: no fault, and half a function is none */
	bytes[SIBLING] = FUNCTION;
	for (size_t size = 11; size < HAND_SIZE; size++) {
		unit.bytes.size = size;
		if (rt_skim_tree(&skim, &unit, interest, false))
			assert_true(skim.found.len == (size > FUNCTION));
	}
	rt_skim_deinit(&skim);
}

TEST_MAIN();
