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

TEST_MAIN();
