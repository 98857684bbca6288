/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The callers of a place from registers and a copy of the stack, of a real process: at a stop as gdb tells them, and
 * then at every single instruction (library code, lazy binding, a signal's return) as a shadow of its calls and returns
 * tells them. Rows that are made by hand, and bytes that are no stack, end with a reason.
 */
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "built.h"
#include "event/stream.h"
#include "symbol/chain.h"

enum { MAX = 64, STACK_BYTES = 1 << 16, MODULES = 16 };

static const char source[] = "#include <signal.h>\n"
			     "#include <stdlib.h>\n"
			     "#include <string.h>\n"
			     "volatile long sink;\n"
			     "static int stopped;\n"
			     "__attribute__((noinline)) static void leaf(long n)\n"
			     "{\n"
			     "	volatile char room[300];\n"
			     "	for (int i = 0; i < 300; i++)\n"
			     "		room[i] = (char)n;\n"
			     "	if (!stopped++)\n"
			     "		__asm__ volatile(\"int3\");\n"
			     "	sink += room[n % 300] + strtol(\"12\", NULL, 0);\n"
			     "}\n"
			     "static int compare(const void *a, const void *b)\n"
			     "{\n"
			     "	leaf(*(const int *)a);\n"
			     "	return *(const int *)a - *(const int *)b;\n"
			     "}\n"
			     "__attribute__((noinline)) static void middle(int n)\n"
			     "{\n"
			     "	int numbers[n];\n"
			     "	for (int i = 0; i < n; i++)\n"
			     "		numbers[i] = n - i;\n"
			     "	qsort(numbers, n, sizeof(int), compare);\n"
			     "	sink += numbers[0];\n"
			     "}\n"
			     "static void handler(int signal)\n"
			     "{\n"
			     "	middle(signal / 2);\n"
			     "}\n"
			     "int main(void)\n"
			     "{\n"
			     "	signal(SIGUSR1, handler);\n"
			     "	raise(SIGUSR1);\n"
			     "	__asm__ volatile(\"int3\");\n"
			     "	return 0;\n"
			     "}\n";

/* A stopped process, and the chain that knows its modules. */
struct rig {
	pid_t pid;
	struct rt_maps *maps;
	struct rt_chain *chain;
	struct rt_image *images[MODULES];
	uint32_t modules;
	uint64_t stack_end, below; /* bytes below the stack pointer that are kept as well */
	struct user_regs_struct regs;
	struct rt_chain_stack stack; /* as it is now */
	uint8_t bytes[STACK_BYTES];
};

static void rig_close(struct rig *rig)
{
	if (rig->pid > 0) {
		kill(rig->pid, SIGKILL);
		waitpid(rig->pid, NULL, 0);
	}
	rt_chain_destroy(rig->chain);
	rt_maps_destroy(rig->maps);
	for (uint32_t i = 0; i < rig->modules; i++)
		rt_image_destroy(rig->images[i]);
}

static void add_mapping(struct rig *rig, uint32_t module, uint64_t start, uint64_t end, uint64_t offset)
{
	const struct rt_wire_map map = { .head = { .size = sizeof(map), .kind = RT_WIRE_MAP, .pid = 1 },
					 .start = start,
					 .end = end,
					 .file_offset = offset,
					 .module = module };

	assert_ok(rt_maps_record(rig->maps, &map.head));
}

/* -> its number */
static uint32_t add_module(struct rig *rig, const char *path)
{
	_cleanup_free_ struct rt_wire_module *module = rt_record_module(rig->modules + 1, path);

	assert_true(rig->modules < MODULES);
	assert_ok(rt_image_open(path, &rig->images[rig->modules]));
	module->build_id_size = rig->images[rig->modules]->build_id_size;
	memcpy(module->build_id, rig->images[rig->modules]->build_id, RT_BUILD_ID_MAX);
	module->content_hash = rig->images[rig->modules]->build_id_is_hash;
	assert_ok(rt_chain_record(rig->chain, &module->head));
	return ++rig->modules;
}

static void rig_create(struct rig *rig)
{
	assert_ok(rt_maps_create(&rig->maps));
	assert_ok(rt_chain_create(rig->maps, NULL, &rig->chain));
}

static void read_maps(struct rig *rig)
{
	_cleanup_free_ char *text = built_output("cat /proc/%d/maps", rig->pid);
	struct rt_maps_line line;
	char *at = text;

	while (rt_maps_parse_line(&at, &line)) {
		if (!strcmp(line.path, "[stack]"))
			rig->stack_end = line.end;
		if (line.executable && line.path[0] == '/')
			add_mapping(rig, add_module(rig, line.path), line.start, line.end, line.offset);
	}
	assert_true(rig->modules >= 3 && rig->stack_end);
}

/* Waits for the stop. false: it has ended. */
static bool stopped(struct rig *rig)
{
	int status;

	assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
	if (!WIFSTOPPED(status)) {
		rig->pid = 0;
		return false;
	}
	return true;
}

/* Registers by their DWARF numbers, and the stack from its pointer on. */
static void take_state(struct rig *rig)
{
	const struct user_regs_struct *r = &rig->regs;
	struct iovec to = { rig->bytes, sizeof(rig->bytes) }, from;

	assert_int_equal(ptrace(PTRACE_GETREGS, rig->pid, NULL, &rig->regs), 0);
	rig->stack.regs =
		(struct rt_dwarf_regs){ { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9,
					  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip },
					(1u << RT_DWARF_REGS) - 1 };
	rig->stack.address = r->rsp - rig->below;
	from = (struct iovec){ (void *)(uintptr_t)rig->stack.address, rig->stack_end - rig->stack.address };
	assert_true(r->rsp < rig->stack_end && from.iov_len <= sizeof(rig->bytes));
	to.iov_len = from.iov_len;
	assert_int_equal(process_vm_readv(rig->pid, &to, 1, &from, 1, 0), from.iov_len);
	rig->stack.bytes = rt_bytes_make(rig->bytes, from.iov_len);
}

/* Runs the program up to its first int3. */
static void rig_run(struct rig *rig, const char *flags)
{
	_cleanup_free_ char *path = NULL;

	free(built_write("p.c", source));
	assert_true(built_run("gcc -Wl,--build-id -Wl,-z,lazy %s p.c -o p", flags));
	path = built_path("p");
	rig_create(rig);
	rig->pid = fork();
	if (!rig->pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		/* as gdb runs it, so that addresses are the same */
		personality(ADDR_NO_RANDOMIZE);
		execl(path, path, NULL);
		_exit(127);
	}
	assert_true(rig->pid > 0 && stopped(rig));
	/* to the signal that it sends itself, and on */
	assert_int_equal(ptrace(PTRACE_CONT, rig->pid, NULL, 0), 0);
	assert_true(stopped(rig));
	assert_int_equal(ptrace(PTRACE_CONT, rig->pid, NULL, SIGUSR1), 0);
	assert_true(stopped(rig));
	read_maps(rig);
	take_state(rig);
}

static size_t unwind(struct rig *rig, const struct rt_chain_stack *stack, uint64_t chain[MAX], enum rt_dwarf_step *end)
{
	size_t n = rt_chain_unwind(rig->chain, 1, 5, stack, chain, MAX, end);

	assert_true(n >= 1 && n <= MAX);
	return n;
}

/* gdb's frames, innermost first */
static size_t gdb_chain(uint64_t chain[MAX])
{
	_cleanup_free_ char *text = built_output("env DEBUGINFOD_URLS= gdb -nx -batch -ex 'handle SIGUSR1 nostop "
						 "noprint pass' -ex 'set backtrace past-main on' "
						 "-ex 'set backtrace past-entry on' -ex run -ex 'frame apply all -q "
						 "printf \"PC %%lx %%lx\\n\", (long)$pc, (long)$sp' ./p 2>/dev/null "
						 "| sed -n 's/^PC //p'");
	unsigned long pc, sp, before = 0;
	size_t n = 0;

	for (char *line = strtok(text, "\n"); line && n < MAX; line = strtok(NULL, "\n")) {
		assert_int_equal(sscanf(line, "%lx %lx", &pc, &sp), 2);
		/* inlined functions, and those that gdb knows to have called their last one, stand where their caller
		 * does */
		n -= sp == before;
		chain[n++] = pc;
		before = sp;
	}
	return n;
}

static void as_gdb(const char *flags)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	uint64_t got[MAX], want[MAX];
	enum rt_dwarf_step end;
	size_t n, signals = 0;

	rig_run(&rig, flags);
	n = unwind(&rig, &rig.stack, got, &end);
	assert_int_equal(end, RT_DWARF_OUTERMOST);
	assert_int_equal(gdb_chain(want), n);
	/* leaf, compare, qsort's own, middle, handler, the trampoline, raise's own, main, and who called it */
	assert_true(n >= 10);
	for (size_t i = 0; i < n; i++) {
		/* a trampoline and what it interrupted are told one further: rt_chain_unwind() says why */
		if (got[i] == want[i] + 1 && signals < 2)
			signals++;
		else
			assert_int_equal(got[i], want[i]);
	}
	assert_int_equal(signals, 2);
}

TEST(as_gdb_tells)
{
	if (!built_have("gdb"))
		skip();
	as_gdb("-O2");
	as_gdb("-O2 -fomit-frame-pointer -no-pie");
	as_gdb("-O0 -g");
}

/* The callers that calls and returns have left behind: [0, n), innermost last. */
struct shadow {
	uint64_t at[MAX];
	size_t n;
};

static void pop(struct shadow *s)
{
	assert_true(s->n > 0);
	s->n--;
}

/* One instruction on. false: the second int3. */
static bool step(struct rig *rig, struct shadow *s)
{
	uint64_t pc = rig->regs.rip, sp = rig->regs.rsp, rax = rig->regs.rax, top = 0;
	uint8_t code[2];
	struct iovec to = { code, 2 }, from = { (void *)(uintptr_t)pc, 2 };
	bool prefix;

	assert_int_equal(process_vm_readv(rig->pid, &to, 1, &from, 1, 0), 2);
	if (code[0] == 0xcc)
		return false;
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, rig->pid, NULL, 0), 0);
	assert_true(stopped(rig));
	take_state(rig);
	prefix = code[0] == 0xf2 || code[0] == 0xf3;
	memcpy(&top, rig->bytes + rig->below, sizeof(top));
	if (code[prefix] == 0xc3 || code[0] == 0xc2 ||
	    (code[0] == 0x0f && code[1] == 0x05 && rax == 15 /* sigreturn */))
		pop(s);
	else if (rig->regs.rsp == sp - 8 && top > pc && top <= pc + 8) {
		assert_true(s->n < MAX);
		s->at[s->n++] = top;
	}
	return true;
}

/* Every instruction up to the second int3. ret_cut: at how many the chain ended early. */
static size_t every_instruction(uint64_t below, size_t *ret_cut)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { .below = below };
	struct shadow shadow = { .n = 0 };
	uint64_t chain[MAX];
	enum rt_dwarf_step end;
	size_t n, steps = 0, deepest = 0;

	rig_run(&rig, "-O2");
	n = unwind(&rig, &rig.stack, chain, &end);
	while (n > 1)
		shadow.at[shadow.n++] = chain[--n];
	for (*ret_cut = 0; step(&rig, &shadow); steps++) {
		n = unwind(&rig, &rig.stack, chain, &end);
		if (n > shadow.n + 1 || (n == shadow.n + 1) != (end == RT_DWARF_OUTERMOST))
			fail_msg("step %zu, pc %llx: %zu frames, end %d; it has %zu", steps, rig.regs.rip, n, end,
				 shadow.n + 1);
		*ret_cut += end != RT_DWARF_OUTERMOST;
		assert_int_equal(chain[0], rig.regs.rip);
		for (size_t i = 1; i < n; i++)
			if (chain[i] != shadow.at[shadow.n - i])
				fail_msg("step %zu, pc %llx, frame %zu: %lx, but it is %lx", steps, rig.regs.rip, i,
					 chain[i], shadow.at[shadow.n - i]);
		deepest = n > deepest ? n : deepest;
	}
	/* through lazy binding, and out of the signal's handler into main */
	assert_true(steps > 1000 && deepest > 14);
	return steps;
}

TEST(at_every_instruction)
{
	size_t cut, steps = every_instruction(512, &cut);

	assert_int_equal(cut, 0);
	/*
	 * From the stack pointer on, as the kernel copies it: rows say where a register was saved after it was taken
	 * back from there, too, so that ends of functions may lack the caller of a caller. What is told is true.
	 */
	assert_int_equal(every_instruction(0, &cut), steps);
	print_message("%zu instructions, %zu with callers missing from a copy\n", steps, cut);
	assert_true(cut < steps / 20);
}

/* A copy that ends early: the innermost callers, and that the rest was not kept. */
TEST(copy_is_cut)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	uint64_t whole[MAX], got[MAX];
	enum rt_dwarf_step end;
	size_t n, before = 1, all;

	rig_run(&rig, "-O2");
	all = unwind(&rig, &rig.stack, whole, &end);
	assert_int_equal(end, RT_DWARF_OUTERMOST);
	for (size_t bytes = 0; bytes <= rig.stack.bytes.size; bytes++) {
		struct rt_chain_stack some = rig.stack;

		some.bytes.size = bytes;
		n = unwind(&rig, &some, got, &end);
		assert_int_equal(end, n == all ? RT_DWARF_OUTERMOST : RT_DWARF_NO_MEMORY);
		assert_true(n >= before && n <= all);
		for (size_t i = 0; i < n; i++)
			assert_true(got[i] == whole[i]);
		before = n;
		if (n == all)
			break;
	}
	assert_int_equal(before, all);
	/* as many as are wanted, and not one more */
	assert_int_equal(rt_chain_unwind(rig.chain, 1, 5, &rig.stack, got, 3, &end), 3);
	assert_int_equal(end, RT_DWARF_STEPPED);
	assert_memory_equal(got, whole, 3 * sizeof(*got));
	assert_int_equal(rt_chain_unwind(rig.chain, 1, 5, &rig.stack, got, 0, &end), 0);
}

static uint64_t dice(void)
{
	static uint64_t random = 88172645463325252u;

	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	return random;
}

/* Stacks of addresses of code, of the stack itself and of nothing, from any register: the chain ends. */
TEST(bytes_that_are_no_stack)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	unsigned ends[RT_DWARF_NO_MEMORY + 1] = { 0 };
	uint64_t code[MAX], got[MAX];
	struct rt_chain_stack stack;
	enum rt_dwarf_step end;
	size_t known, words;

	rig_run(&rig, "-O2");
	known = unwind(&rig, &rig.stack, code, &end);
	stack = rig.stack;
	words = stack.bytes.size / 8;
	for (unsigned round = 0; round < 20000; round++) {
		for (size_t i = 0; i < words; i += 1 + dice() % 4) {
			uint64_t word = dice() % 4 == 0 ? dice()
					: dice() % 2    ? code[dice() % known] + dice() % 64 - 32
							: rig.stack.address + dice() % (stack.bytes.size + 64) - 32;

			memcpy(&rig.bytes[8 * i], &word, 8);
		}
		for (unsigned i = 0; i < RT_DWARF_REGS; i++)
			if (dice() % 2)
				stack.regs.value[i] = rig.stack.address + dice() % stack.bytes.size;
		stack.regs.known = dice() % 8 ? rig.stack.regs.known : (uint32_t)dice();
		stack.regs.value[RT_DWARF_RA] = code[dice() % known];
		/* not always aligned, and up to where addresses begin anew */
		stack.address = dice() % 64 ? rig.stack.address + dice() % 16 : UINT64_MAX - dice() % 64;
		stack.regs.value[RT_DWARF_RSP] = stack.address + dice() % 256;
		(void)unwind(&rig, &stack, got, &end);
		assert_true(end <= RT_DWARF_NO_MEMORY);
		ends[end]++;
	}
	assert_true(ends[RT_DWARF_NO_ROW] && ends[RT_DWARF_NO_MEMORY]);
}

/* A row by hand. Frame 0 lies in the function of this name; the stack is words from STACK on. */
struct row {
	const char *name, *rows;
	enum rt_dwarf_step end;
	size_t frames;
};

#define STACK 0x10000ull
#define BASE 0x500000000000ull
enum { WORDS = 8 };

/* of an expression: DW_CFA_def_cfa_expression, its length, its bytes */
#define CFA(bytes) ".cfi_escape 0x0f, " bytes

/* Word n of the stack is the address of end + n, so the caller of end is nobody; but for word 4, which is STACK. */
static const struct row rows[] = {
	{ "plain", "", RT_DWARF_OUTERMOST, 2 },
	{ "deeper", ".cfi_def_cfa_offset 24", RT_DWARF_OUTERMOST, 2 },
	{ "undefined", ".cfi_undefined rip", RT_DWARF_OUTERMOST, 1 },
	/* the CFA stays, or goes back: the caller would be found for ever */
	{ "stays", ".cfi_def_cfa_offset 0\n.cfi_offset rip, 0", RT_DWARF_NO_ROW, 1 },
	{ "back", ".cfi_def_cfa_offset -16\n.cfi_offset rip, 16", RT_DWARF_NO_ROW, 1 },
	{ "beyond", ".cfi_def_cfa_offset 1024", RT_DWARF_NO_MEMORY, 1 },
	{ "unknown", ".cfi_def_cfa 40, 8", RT_DWARF_NO_ROW, 1 },
	/* rsp + 8 + (rip & 15 >= 11) * 8: the rows of a PLT; rip is its start */
	{ "plt", CFA("11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22"), RT_DWARF_OUTERMOST, 2 },
	/* the word at rsp + 32, plus 8 */
	{ "loads", CFA("5, 0x77, 32, 0x06, 0x23, 16"), RT_DWARF_OUTERMOST, 2 },
	{ "loads_nothing", CFA("5, 0x30, 0x06, 0x23, 16, 0x96"), RT_DWARF_NO_MEMORY, 1 },
	/* nothing on the stack of the expression; too much; branches; nothing at all */
	{ "empty", CFA("1, 0x22"), RT_DWARF_NO_ROW, 1 },
	{ "drops", CFA("3, 0x77, 8, 0x13"), RT_DWARF_NO_ROW, 1 },
	{ "itself", CFA("1, 0x9c"), RT_DWARF_NO_ROW, 1 },
	{ "grows",
	  CFA("36, 0x77, 8, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, "
	      "0x12, "
	      "0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, "
	      "0x12"),
	  RT_DWARF_NO_ROW, 1 },
	{ "fits", CFA("5, 0x77, 8, 0x12, 0x12, 0x13"), RT_DWARF_OUTERMOST, 2 },
	{ "branches", CFA("5, 0x77, 8, 0x2f, 0, 0"), RT_DWARF_NO_ROW, 1 },
	{ "nothing", CFA("1, 0x96"), RT_DWARF_NO_ROW, 1 },
	/* the return address is a value; is in a register; is 0 */
	{ "value", ".cfi_escape 0x16, 16, 3, 0x77, 0, 0x06", RT_DWARF_OUTERMOST, 2 },
	{ "zero", ".cfi_escape 0x16, 16, 1, 0x30", RT_DWARF_OUTERMOST, 1 },
	{ "register", ".cfi_register rip, rbx", RT_DWARF_OUTERMOST, 2 },
};

/* A library of the rows, as module 1 at BASE. */
static void rows_open(struct rig *rig)
{
	_cleanup_free_ char *text = NULL, *path = built_path("rows.so");
	size_t size;
	FILE *file = open_memstream(&text, &size);

	fprintf(file, ".text\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		fprintf(file, ".balign 64\n.globl %s\n%s:\n.cfi_startproc\n%s\n.skip 32, 0x90\n.cfi_endproc\n",
			rows[i].name, rows[i].name, rows[i].rows);
	fprintf(file, ".balign 64\n.globl end\nend:\n.cfi_startproc\n.cfi_undefined rip\n.skip 32, 0x90\n.cfi_endproc\n"
		      ".balign 64\n.globl leaves\nleaves:\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.skip 64, "
		      "0x90\n.cfi_endproc\n"
		      ".globl behind\nbehind:\n.cfi_startproc\n.cfi_undefined rip\n.skip 32, 0x90\n.cfi_endproc\n"
		      ".balign 64\n.globl bare\nbare: .skip 32, 0x90\n"
		      ".balign 64\n.globl trampoline\n.cfi_startproc\n.cfi_signal_frame\n.cfi_def_cfa_offset 0\n"
		      ".cfi_offset rip, 8\n.skip 32, 0x90\ntrampoline: .skip 32, 0x90\n.cfi_endproc\n");
	fclose(file);
	free(built_write("rows.s", text));
	assert_true(built_run("gcc -shared -nostdlib -Wl,--build-id rows.s -o rows.so"));
	rig_create(rig);
	(void)add_module(rig, path);
	for (size_t i = 0; i < rig->images[0]->segment_count; i++) {
		const struct rt_segment *s = &rig->images[0]->segments[i];

		add_mapping(rig, 1, BASE + s->start.v, BASE + s->end.v, s->offset.v);
	}
}

static uint64_t address_of(const char *name)
{
	_cleanup_free_ char *text = built_output("nm rows.so | awk '$3 == \"%s\" { print $1 }'", name);

	assert_true(*text);
	return BASE + strtoull(text, NULL, 16);
}

static struct rt_chain_stack stack_of(uint64_t pc, const uint64_t words[WORDS])
{
	struct rt_chain_stack stack = { .regs = { .known = (1u << RT_DWARF_REGS) - 1 },
					.address = STACK,
					.bytes = rt_bytes_make(words, WORDS * sizeof(*words)) };

	stack.regs.value[RT_DWARF_RA] = pc;
	stack.regs.value[RT_DWARF_RSP] = STACK;
	stack.regs.value[3] = words[0]; /* rbx */
	return stack;
}

TEST(rows_by_hand)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	uint64_t words[WORDS], got[MAX], last;
	struct rt_chain_stack stack;
	enum rt_dwarf_step end;
	size_t n;

	rows_open(&rig);
	last = address_of("end");
	for (size_t i = 0; i < WORDS; i++)
		words[i] = i == 4 ? STACK : last + 1 + i;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		stack = stack_of(address_of(rows[i].name), words);
		n = unwind(&rig, &stack, got, &end);
		if (n != rows[i].frames || end != rows[i].end)
			fail_msg("%s: %zu frames, end %d", rows[i].name, n, end);
		if (n == 2)
			assert_in_range(got[1], last + 1, last + WORDS);
	}
	/* where each found its caller */
	stack = stack_of(address_of("deeper"), words);
	(void)unwind(&rig, &stack, got, &end);
	assert_int_equal(got[1], words[2]);
	stack = stack_of(address_of("plt"), words);
	(void)unwind(&rig, &stack, got, &end);
	assert_int_equal(got[1], words[0]);
	stack = stack_of(address_of("plt") + 11, words);
	(void)unwind(&rig, &stack, got, &end);
	assert_int_equal(got[1], words[1]);
	stack = stack_of(address_of("loads"), words);
	(void)unwind(&rig, &stack, got, &end);
	assert_int_equal(got[1], words[1]);
	/* a call that is the last of its function: its rows count, not those of what stands behind */
	words[0] = address_of("behind");
	stack = stack_of(address_of("plain"), words);
	assert_int_equal(unwind(&rig, &stack, got, &end), 3);
	assert_int_equal(got[1], words[0]);
	assert_int_equal(got[2], words[2]);
	words[0] = last + 1;
	/* code that has no rows, no module, and none of the registers */
	stack = stack_of(address_of("bare"), words);
	assert_int_equal(unwind(&rig, &stack, got, &end), 1);
	assert_int_equal(end, RT_DWARF_NO_ROW);
	stack = stack_of(0x1000, words);
	assert_int_equal(unwind(&rig, &stack, got, &end), 1);
	assert_int_equal(end, RT_DWARF_NO_ROW);
	stack = stack_of(address_of("plain"), words);
	stack.regs.known = 0;
	assert_int_equal(unwind(&rig, &stack, got, &end), 1);
	assert_int_equal(end, RT_DWARF_NO_ROW);
}

/* A stack pointer of any alignment; and callers that lead to themselves. */
TEST(loops_and_odd_places)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	uint64_t words[WORDS], got[MAX], pc;
	struct rt_chain_stack stack;
	enum rt_dwarf_step end;

	rows_open(&rig);
	pc = address_of("plain");
	for (size_t i = 0; i < WORDS; i++)
		words[i] = pc + 1;
	/* one function calls itself as often as the copy lasts */
	stack = stack_of(pc, words);
	assert_int_equal(unwind(&rig, &stack, got, &end), WORDS + 1);
	assert_int_equal(end, RT_DWARF_NO_MEMORY);
	for (unsigned odd = 1; odd < 8; odd++) {
		stack = stack_of(pc, words);
		stack.address += odd;
		stack.regs.value[RT_DWARF_RSP] += odd;
		assert_int_equal(unwind(&rig, &stack, got, &end), WORDS + 1);
		assert_int_equal(end, RT_DWARF_NO_MEMORY);
	}
	/* where addresses begin anew: 0 is not further out */
	stack = stack_of(pc, words);
	stack.address = 0 - sizeof(words);
	stack.regs.value[RT_DWARF_RSP] = stack.address;
	assert_int_equal(unwind(&rig, &stack, got, &end), WORDS);
	assert_int_equal(end, RT_DWARF_NO_ROW);
	/* a signal may lead to another stack, so to the same one: no more than are wanted */
	words[1] = address_of("trampoline");
	stack = stack_of(words[1], words);
	assert_int_equal(unwind(&rig, &stack, got, &end), MAX);
	assert_int_equal(end, RT_DWARF_STEPPED);
}

TEST_MAIN();
