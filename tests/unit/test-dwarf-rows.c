/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows of whole images, and rt_dwarf_step(), compared with libdw place by place: all go from the same registers and
 * memory to the caller, and must come to the same one. Memory is a function of the address, so that every wrong address
 * shows.
 */
#include "built.h"
#include "dwarf/dwarf.h"
#include "dwarf/rows.h"
#include "libdw-step.h"

enum { RBP = 6 };

static uint64_t memory_at(uint64_t address)
{
	return (address * 0x9e3779b97f4a7c15u ^ address >> 29) & 0x7ffffffffff8u;
}

static bool read_memory(const struct rt_dwarf_memory *self, uint64_t address, uint64_t *ret)
{
	*ret = memory_at(address);
	return true;
}

struct caller {
	uint64_t cfa, pc, bp;
	bool bp_known;
};

/* The caller by a rule. false: the rule leads to none. */
static bool walk(uint32_t rule, uint64_t pc, uint64_t sp, uint64_t bp, struct caller *ret)
{
	switch (rt_unwind_kind(rule)) {
	case RT_UNWIND_SP:
		ret->cfa = sp + 8ull * rt_unwind_sp_offset(rule);
		break;
	case RT_UNWIND_BP:
		ret->cfa = bp + 8ll * rt_unwind_bp_offset(rule);
		break;
	case RT_UNWIND_PLT:
		ret->cfa = sp + 8 + ((pc & 15) >= rt_unwind_sp_offset(rule) ? 8 : 0);
		break;
	case RT_UNWIND_BP_LOAD:
		ret->cfa = memory_at(bp + 8ll * rt_unwind_bp_offset(rule));
		break;
	case RT_UNWIND_SIGNAL:
		*ret = (struct caller){ memory_at(sp + RT_UNWIND_UC_SP), memory_at(sp + RT_UNWIND_UC_IP),
					memory_at(sp + RT_UNWIND_UC_BP), true };
		return true;
	default:
		return false;
	}
	ret->pc = memory_at(ret->cfa - 8);
	ret->bp_known = rt_unwind_bp(rule) != RT_UNWIND_BP_LOST;
	ret->bp = rt_unwind_bp(rule) == RT_UNWIND_BP_SAVED   ? memory_at(ret->cfa - 8 * rt_unwind_slot(rule))
		  : rt_unwind_bp(rule) == RT_UNWIND_BP_AT_BP ? memory_at(bp)
							     : bp;
	return true;
}

struct tally {
	uint64_t entry;
	size_t entries, places, followed, roots, none, other, lost, signals, plt, loads;
};

/* Both ways, all registers. */
static enum rt_dwarf_step check_step(struct rt_dwarf *dwarf, struct libdw *libdw, uint64_t pc,
				     struct rt_dwarf_regs *regs, bool *ret_signal)
{
	struct rt_dwarf_memory memory = { read_memory };
	struct rt_dwarf_regs ours = *regs;
	bool signal = false;
	enum rt_dwarf_step have = rt_dwarf_step(dwarf, (struct rt_elfaddr){ pc }, &memory, &ours, &signal);
	enum rt_dwarf_step want = libdw_step(libdw, (struct rt_elfaddr){ pc }, &memory, regs, ret_signal);

	if (have != want || (want != RT_DWARF_NO_ROW && signal != *ret_signal) || ours.known != regs->known)
		fail_msg("%lx: step %d, signal %d, known %x; libdw %d, %d, %x", (long)pc, have, signal, ours.known,
			 want, *ret_signal, regs->known);
	for (unsigned i = 0; want == RT_DWARF_STEPPED && i < RT_DWARF_REGS; i++) {
		if (ours.known & 1u << i && ours.value[i] != regs->value[i])
			fail_msg("%lx: register %u is %lx; libdw %lx", (long)pc, i, (long)ours.value[i],
				 (long)regs->value[i]);
	}
	return have;
}

static void check_place(struct rt_dwarf *dwarf, struct libdw *libdw, const struct rt_unwind_rows *rows, uint64_t pc,
			struct tally *t)
{
	uint64_t sp = 0x7ffe12345678u & ~7ull, bp = sp + 0x458;
	uint32_t rule = rt_unwind_rule(rows, (struct rt_elfaddr){ pc });
	struct rt_dwarf_regs regs = { .known = (1u << RT_DWARF_REGS) - 1 };
	struct caller caller;
	enum rt_dwarf_step step;
	bool signal = false;

	for (unsigned i = 0; i < RT_DWARF_REGS; i++)
		regs.value[i] = 0x1111000u * i;
	regs.value[RBP] = bp;
	regs.value[RT_DWARF_RSP] = sp;
	regs.value[RT_DWARF_RA] = pc;
	t->places++;
	step = check_step(dwarf, libdw, pc, &regs, &signal);
	if (rt_unwind_kind(rule) == RT_UNWIND_OTHER) {
		t->other++;
		return;
	}
	if (!walk(rule, pc, sp, bp, &caller)) {
		bool root = rt_unwind_kind(rule) == RT_UNWIND_ROOT;

		/* of the entry libdw may know nothing */
		if (root && step == RT_DWARF_NO_ROW && pc - t->entry < RT_UNWIND_ENTRY_BYTES) {
			t->entries++;
			return;
		}
		if (step != (root ? RT_DWARF_OUTERMOST : RT_DWARF_NO_ROW))
			fail_msg("%lx: rule %x, libdw says %d", (long)pc, rule, step);
		t->roots += root;
		t->none += !root;
		return;
	}
	if (step != RT_DWARF_STEPPED || regs.value[RT_DWARF_RSP] != caller.cfa || regs.value[RT_DWARF_RA] != caller.pc)
		fail_msg("%lx: rule %x: CFA %lx, caller %lx; libdw %d, %lx, %lx", (long)pc, rule, (long)caller.cfa,
			 (long)caller.pc, step, (long)regs.value[RT_DWARF_RSP], (long)regs.value[RT_DWARF_RA]);
	if (caller.bp_known && (!(regs.known & 1u << RBP) || regs.value[RBP] != caller.bp))
		fail_msg("%lx: rule %x: rbp %lx; libdw %lx", (long)pc, rule, (long)caller.bp, (long)regs.value[RBP]);
	assert_int_equal(signal, rt_unwind_kind(rule) == RT_UNWIND_SIGNAL);
	t->followed++;
	t->lost += !caller.bp_known;
	t->signals += signal;
	t->plt += rt_unwind_kind(rule) == RT_UNWIND_PLT;
	t->loads += rt_unwind_kind(rule) == RT_UNWIND_BP_LOAD;
}

static void check_order(const struct rt_unwind_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		uint32_t before = i ? rows->row[i - 1].rule : RT_UNWIND_NONE;

		assert_true(!i || rows->row[i].pc > rows->row[i - 1].pc);
		assert_int_not_equal(rows->row[i].rule, before);
	}
}

/* Every place where a row begins, the last byte before it, and as many at random. */
static struct tally check_image(const char *path, uint64_t *ret_base)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_(rt_unwind_rows_destroyp) struct rt_unwind_rows *rows = NULL;
	struct tally t = { 0 };
	struct libdw libdw;
	uint64_t seed = 1;

	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_ok(rt_unwind_rows_create(image, &rows));
	assert_false(rows->limited);
	libdw_open(&libdw, image);
	t.entry = image->entry.v;
	check_order(rows);
	for (size_t i = 0; i < rows->count; i++) {
		uint64_t pc = rows->base.v + rows->row[i].pc, span = rows->row[rows->count - 1].pc;

		check_place(dwarf, &libdw, rows, pc, &t);
		check_place(dwarf, &libdw, rows, pc - 1, &t);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		check_place(dwarf, &libdw, rows, rows->base.v + (seed >> 20) % span, &t);
	}
	libdw_close(&libdw);
	if (ret_base)
		*ret_base = rows->base.v;
	return t;
}

static void check_program(const char *path, size_t at_least)
{
	struct tally t;

	if (access(path, R_OK) != 0) {
		print_message("%s is not here\n", path);
		return;
	}
	t = check_image(path, NULL);
	print_message("%s: %zu places, %zu followed, %zu outermost, %zu without, %zu not followed, %zu lose rbp\n",
		      path, t.places, t.followed, t.roots, t.none, t.other, t.lost);
	assert_true(t.followed >= at_least);
	/* what is not followed is hand-written assembly: the dynamic linker's by rbx, libcrypto's by loads */
	assert_true(t.other * 30 <= t.places);
	assert_true(t.lost * 1000 <= t.places * 2);
}

TEST(real_programs)
{
	check_program("/proc/self/exe", 100);
	check_program("/lib/x86_64-linux-gnu/libc.so.6", 50000);
	check_program("/usr/bin/python3.11", 50000);
	check_program("/lib/x86_64-linux-gnu/libglib-2.0.so.0", 10000);
	check_program("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", 1000);
	check_program("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 10000);
}

static const char c_source[] =
	"#include <stdio.h>\n"
	"#include <alloca.h>\n"
	"#include <signal.h>\n"
	"typedef double v4 __attribute__((vector_size(32)));\n"
	"__attribute__((noinline)) int dynamic(int n) { char *p = alloca(n); p[0] = n; return puts(p); }\n"
	"__attribute__((noinline)) int aligned(int n)\n"
	"{ volatile v4 v[3] = { { n } }; char *p = alloca(n); p[0] = (int)v[1][2]; return puts(p) + (int)v[0][0]; }\n"
	"__attribute__((noinline)) int large(int n) { char b[100000]; b[n] = 0; puts(b); return b[n + 1]; }\n"
	"__attribute__((noinline)) int huge(int n) { char b[900000]; b[n] = 0; puts(b); return b[n + 1]; }\n"
	"int main(int argc, char **argv) { return dynamic(argc) + aligned(argc) + large(argc) + huge(argc); }\n";

static void check_built(const char *compile)
{
	_cleanup_free_ char *path = built_path("prog");
	struct tally t;

	free(built_write("prog.c", c_source));
	assert_true(built_run("%s prog.c -o prog", compile));
	t = check_image(path, NULL);
	assert_true(t.followed > 20 && t.roots);
	/* a frame of 900 kB is beyond what a rule holds, and r10 is not followed where a function begins to align its
	 * stack */
	assert_true(t.other * 5 <= t.places);
}

TEST(compilers)
{
	check_built("gcc -O2 -fomit-frame-pointer");
	check_built("gcc -O0 -fno-omit-frame-pointer");
	check_built("gcc -O2 -mavx");
	check_built("gcc -O2 -static");
	if (!built_have("clang"))
		return;
	check_built("clang -O2 -mavx -fomit-frame-pointer");
	check_built("clang -O1 -fno-omit-frame-pointer");
}

/* Each function ends with nops, so that the place behind its last row is inside. */
static const char asm_source[] =
	".text\n.globl _start\n"
	"_start: .cfi_startproc\n .cfi_undefined rip\n nop\n nop\n .cfi_endproc\n"
	/* what is not code of any function */
	" .skip 16, 0x90\n"
	".globl plain\nplain: .cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset rbp, -16\n"
	" mov %rsp, %rbp\n .cfi_def_cfa_register rbp\n nop\n .cfi_remember_state\n pop %rbp\n .cfi_def_cfa rsp, 8\n"
	" .cfi_restore rbp\n ret\n .cfi_restore_state\n nop\n .cfi_endproc\n"
	/* far: advance_loc2 and advance_loc4 */
	"far: .cfi_startproc\n sub $24, %rsp\n .cfi_def_cfa_offset 32\n .skip 700, 0x90\n .cfi_def_cfa_offset 40\n"
	" .skip 70000, 0x90\n .cfi_def_cfa_offset 48\n nop\n .cfi_endproc\n"
	/* DW_CFA_GNU_args_size 16; val_offset rsp, 0; def_cfa_sf rsp, 3 * -8 would be negative: not followed */
	"odd: .cfi_startproc\n nop\n .cfi_escape 0x2e, 16\n .cfi_def_cfa_offset 24\n nop\n .cfi_val_offset rsp, 0\n "
	"nop\n"
	" .cfi_same_value rbp\n nop\n .cfi_undefined rbp\n nop\n .cfi_register rbp, rax\n nop\n"
	" .cfi_offset rbp, -48\n nop\n .cfi_offset rbx, -8192\n nop\n .cfi_endproc\n"
	/* rsp + 8 + ((rip & 15) >= 10) * 8 */
	".balign 16\nplt: .cfi_startproc\n .cfi_def_cfa_offset 16\n nop\n"
	" .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22\n .skip 47, 0x90\n "
	".cfi_endproc\n"
	/* CFA = *(rbp - 8), rbp at *rbp */
	"load: .cfi_startproc\n nop\n .cfi_escape 0x0f, 3, 0x76, 0x78, 6\n .cfi_escape 0x10, 6, 2, 0x76, 0\n nop\n "
	"nop\n"
	" .cfi_endproc\n"
	/* as __restore_rt */
	"trampoline: .cfi_startproc\n .cfi_signal_frame\n .cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6\n"
	" .cfi_escape 0x10, 7, 3, 0x77, 0xa0, 1\n .cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0\n"
	" .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1\n nop\n nop\n .cfi_endproc\n"
	/* another CFA expression, an odd offset, another register, an unknown place of the return address */
	"refused: .cfi_startproc\n .cfi_escape 0x0f, 5, 0x77, 8, 6, 0x23, 8\n nop\n .cfi_def_cfa rsp, 12\n nop\n"
	" .cfi_def_cfa r10, 0\n nop\n .cfi_def_cfa rsp, 8\n nop\n .cfi_register rip, rcx\n nop\n .cfi_offset rip, "
	"-16\n nop\n"
	" .cfi_endproc\n";

static uint64_t symbol(const char *name)
{
	_cleanup_free_ char *text = built_output("nm prog | sed -n 's/ [tT] %s$//p'", name);

	assert_true(text[0]);
	return strtoull(text, NULL, 16);
}

static uint32_t rule_at(const struct rt_unwind_rows *rows, const char *name, uint64_t offset)
{
	return rt_unwind_rule(rows, (struct rt_elfaddr){ symbol(name) + offset });
}

TEST(written_by_hand)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_unwind_rows_destroyp) struct rt_unwind_rows *rows = NULL;
	_cleanup_free_ char *path = built_path("prog");
	struct tally t;

	free(built_write("prog.s", asm_source));
	assert_true(built_run("gcc -nostdlib -static prog.s -o prog"));
	t = check_image(path, NULL);
	assert_true(t.roots && t.none && t.other && t.signals && t.plt && t.loads);
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_unwind_rows_create(image, &rows));
	assert_int_equal(rule_at(rows, "_start", 1), RT_UNWIND_ROOT);
	assert_int_equal(rule_at(rows, "_start", 2), RT_UNWIND_NONE);
	assert_int_equal(rule_at(rows, "plain", 0), RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_SAME, 0, 1));
	assert_int_equal(rule_at(rows, "plain", 1), RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_SAVED, 2, 2));
	assert_int_equal(rule_at(rows, "plain", 4), RT_UNWIND_RULE(RT_UNWIND_BP, RT_UNWIND_BP_SAVED, 2, 2));
	assert_int_equal(rule_at(rows, "plain", 6), RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_SAME, 0, 1));
	assert_int_equal(rule_at(rows, "plain", 7), RT_UNWIND_RULE(RT_UNWIND_BP, RT_UNWIND_BP_SAVED, 2, 2));
	assert_int_equal(rule_at(rows, "far", 4 + 699), RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_SAME, 0, 4));
	assert_int_equal(rule_at(rows, "far", 4 + 700), RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_SAME, 0, 5));
	assert_int_equal(rule_at(rows, "far", 4 + 70700), RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_SAME, 0, 6));
	assert_int_equal(rule_at(rows, "odd", 4), RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_LOST, 0, 3));
	assert_int_equal(rule_at(rows, "odd", 6), RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_SAVED, 6, 3));
	assert_int_equal(rule_at(rows, "plt", 1), RT_UNWIND_RULE(RT_UNWIND_PLT, RT_UNWIND_BP_SAME, 0, 10));
	assert_int_equal(rule_at(rows, "load", 1), RT_UNWIND_RULE(RT_UNWIND_BP_LOAD, RT_UNWIND_BP_AT_BP, 0, -1));
	assert_int_equal(rule_at(rows, "trampoline", 0), RT_UNWIND_SIGNAL);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(rule_at(rows, "refused", i),
				 i == 3 ? RT_UNWIND_RULE(RT_UNWIND_SP, RT_UNWIND_BP_SAME, 0, 1) : RT_UNWIND_OTHER);
}

TEST(code_at_the_entry)
{
	_cleanup_free_ char *path = built_path("prog");
	struct tally t;

	free(built_write("prog.s", ".text\n.globl _start\nbefore: .skip 64, 0x90\n_start: .skip 200, 0x90\n"
				   "f: .cfi_startproc\n ret\n .cfi_endproc\n"));
	assert_true(built_run("gcc -nostdlib -static prog.s -o prog"));
	t = check_image(path, NULL);
	assert_true(t.entries && t.none);
	/* the dynamic linker's has none either */
	t = check_image("/lib64/ld-linux-x86-64.so.2", NULL);
	assert_true(t.entries);
}

TEST(debug_frame)
{
	_cleanup_free_ char *path = built_path("prog");
	struct tally t;

	/* the program's own code only has .debug_frame, the C library's start files have .eh_frame */
	free(built_write("prog.c", c_source));
	assert_true(built_run("gcc -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables prog.c -o prog"));
	t = check_image(path, NULL);
	assert_true(t.followed > 20);
}

TEST(nothing_to_tell)
{
	_cleanup_(rt_unwind_rows_destroyp) struct rt_unwind_rows *rows = NULL;
	struct rt_unwind_sections none = { .start = { 0x1000 }, .end = { 0x2000 } };

	assert_ok(rt_unwind_rows_compile(&none, &rows));
	assert_int_equal(rows->count, 0);
	assert_int_equal(rt_unwind_rule(rows, (struct rt_elfaddr){ 0x1800 }), RT_UNWIND_NONE);
	assert_int_equal(rt_unwind_rule(rows, (struct rt_elfaddr){ 0 }), RT_UNWIND_NONE);
}

TEST_MAIN();
