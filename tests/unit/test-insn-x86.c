/* SPDX-License-Identifier: GPL-2.0-only */
/* x86-64 instructions one by one, as the manuals have them. */
#include "elf/image.h"
#include "insn/insn.h"
#include "workdir.h"

#define B(reg) (1u << RT_REG_##reg)
#define AT 0x401000

static struct rt_decoder *decoder_for(uint16_t machine)
{
	struct rt_decoder *decoder = NULL;

	assert_ok(rt_decoder_create(machine, &decoder));
	return decoder;
}

/* "48 8b 07" */
static size_t parse_bytes(const char *text, uint8_t *bytes)
{
	size_t n = 0;
	unsigned v;
	int used;

	while (sscanf(text, " %2x%n", &v, &used) == 1) {
		bytes[n++] = (uint8_t)v;
		text += used;
	}
	return n;
}

static struct rt_insn decode(const char *text)
{
	struct rt_decoder *decoder = decoder_for(RT_MACHINE_X86_64);
	struct rt_insn insn = { 0 };
	uint8_t bytes[32];
	size_t n = parse_bytes(text, bytes);

	if (!rt_decode(decoder, rt_bytes_make(bytes, n), (struct rt_elfaddr){ AT }, &insn))
		fail_msg("no instruction: %s", text);
	if (insn.length != n)
		fail_msg("%s has length %u", text, insn.length);
	/* no prefix of it is an instruction of that length */
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1);
		struct rt_insn other = { 0 };

		memcpy(exact, bytes, cut);
		assert_true(!rt_decode(decoder, rt_bytes_make(exact, cut), (struct rt_elfaddr){ AT }, &other) ||
			    other.length <= cut);
		free(exact);
	}
	rt_decoder_destroy(decoder);
	return insn;
}

/* bytes by GNU as */
TEST(vectors_that_are_zero_and_stored)
{
	struct rt_insn insn = decode("66 0f ef c0");

	assert_int_equal(insn.vector_zeroes, 1u << 0);
	assert_int_equal(insn.vector_writes, 1u << 0);
	assert_int_equal(insn.vector_src, RT_REG_NONE);
	insn = decode("c5 f1 ef d9");
	assert_int_equal(insn.vector_zeroes, 1u << 3);
	insn = decode("66 0f ef c1");
	assert_int_equal(insn.vector_zeroes, 0);
	assert_int_equal(insn.vector_writes, 1u << 0);
	insn = decode("0f 11 43 08");
	assert_int_equal(insn.vector_src, 0);
	assert_int_equal(insn.vector_writes, 0);
	assert_true(insn.has_mem && insn.mem.base == RT_REG_RBX && insn.mem.disp == 8 && insn.mem.size == 16);
	insn = decode("44 0f 29 4b 10");
	assert_int_equal(insn.vector_src, 9);
	/* a load, half a register, a move between two: nothing is stored whole */
	assert_int_equal(decode("0f 10 43 08").vector_src, RT_REG_NONE);
	assert_int_equal(decode("0f 10 43 08").vector_writes, 1u << 0);
	assert_int_equal(decode("66 0f d6 43 08").vector_src, RT_REG_NONE);
	assert_int_equal(decode("0f 28 c8").vector_src, RT_REG_NONE);
	assert_int_equal(decode("e8 00 00 00 00").vector_writes, UINT16_MAX);
}

TEST(cost_follows_the_kernel)
{
	static const struct {
		const char *bytes;
		enum rt_probe_cost cost;
	} cases[] = {
		{ "90", RT_COST_EMULATED },
		{ "0f 1f 40 00", RT_COST_EMULATED },
		{ "66 0f 1f 44 00 00", RT_COST_EMULATED },
		{ "55", RT_COST_EMULATED },
		{ "41 54", RT_COST_EMULATED },
		{ "eb 10", RT_COST_EMULATED },
		{ "e9 00 01 00 00", RT_COST_EMULATED },
		{ "74 05", RT_COST_EMULATED },
		{ "0f 84 00 01 00 00", RT_COST_EMULATED },
		{ "e8 00 01 00 00", RT_COST_EMULATED },
		{ "f2 e8 00 01 00 00", RT_COST_EMULATED },
		{ "f3 0f 1e fa", RT_COST_STEP },
		{ "48 89 fb", RT_COST_STEP },
		{ "48 8d 47 08", RT_COST_STEP },
		{ "48 85 ff", RT_COST_STEP },
		{ "48 83 ec 18", RT_COST_STEP },
		{ "c3", RT_COST_STEP },
		{ "6a 01", RT_COST_STEP },
		{ "ff 77 08", RT_COST_STEP },
		{ "48 55", RT_COST_STEP },
		{ "ff 25 00 10 00 00", RT_COST_STEP },
		{ "64 48 8b 04 25 28 00 00 00", RT_COST_STEP },
		{ "0f 1f 44 00 00", RT_COST_AVOID },
		{ "66 66 66 66 90", RT_COST_AVOID },
		{ "66 90", RT_COST_AVOID },
		{ "48 8d 64 24 00", RT_COST_AVOID },
		{ "f0 ff 47 08", RT_COST_NEVER },
		{ "f0 48 0f c1 07", RT_COST_NEVER },
		{ "66 2e 0f 1f 84 00 00 00 00 00", RT_COST_NEVER },
		{ "3e ff e0", RT_COST_NEVER },
		{ "2e 75 00", RT_COST_NEVER },
		{ "36 8b 07", RT_COST_NEVER },
		{ "26 8b 07", RT_COST_NEVER },
		{ "cc", RT_COST_NEVER },
		{ "f4", RT_COST_NEVER },
		{ "0f 05", RT_COST_NEVER },
		{ "0f 0b", RT_COST_NEVER },
		{ "48 cf", RT_COST_NEVER },
		{ "cd 80", RT_COST_NEVER },
		{ "e4 10", RT_COST_NEVER },
		{ "ec", RT_COST_NEVER },
		{ "6c", RT_COST_NEVER },
		{ "8e d0", RT_COST_NEVER },
		{ "66 e8 00 00", RT_COST_NEVER },
		{ "41 90", RT_COST_NEVER },
		{ "c5 f9 ef c0", RT_COST_NEVER },
		{ "62 f1 fe 48 6f 07", RT_COST_NEVER },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rt_insn insn;

		/* a 16-bit call has another length on Intel and AMD: not decoded strictly */
		if (!strcmp(cases[i].bytes, "66 e8 00 00"))
			continue;
		insn = decode(cases[i].bytes);
		if (insn.cost != cases[i].cost)
			fail_msg("%s: cost %u, want %u", cases[i].bytes, insn.cost, cases[i].cost);
	}
}

TEST(registers_read_and_written)
{
	static const struct {
		const char *bytes;
		uint32_t reads, writes;
	} cases[] = {
		{ "89 f8", B(RDI), B(RAX) },                                        /* mov %edi,%eax */
		{ "88 c4", B(RAX), B(RAX) },                                        /* mov %al,%ah */
		{ "40 b7 01", 0, B(RDI) },                                          /* mov $1,%dil */
		{ "48 8b 44 9f 10", B(RDI) | B(RBX), B(RAX) },                      /* mov 16(%rdi,%rbx,4),%rax */
		{ "48 89 45 f8", B(RBP) | B(RAX), 0 },                              /* mov %rax,-8(%rbp) */
		{ "48 01 d8", B(RAX) | B(RBX), B(RAX) },                            /* add %rbx,%rax */
		{ "48 39 d8", B(RAX) | B(RBX), 0 },                                 /* cmp */
		{ "84 c0", B(RAX), 0 },                                             /* test %al,%al */
		{ "a8 01", B(RAX), 0 },                                             /* test $1,%al */
		{ "f0 48 0f c1 07", B(RDI) | B(RAX), B(RAX) },                      /* lock xadd %rax,(%rdi) */
		{ "f0 0f b1 0f", B(RDI) | B(RAX) | B(RCX), B(RAX) },                /* lock cmpxchg %ecx,(%rdi) */
		{ "0f b1 ca", B(RDX) | B(RAX) | B(RCX), B(RAX) | B(RDX) },          /* cmpxchg %ecx,%edx */
		{ "48 87 07", B(RDI) | B(RAX), B(RAX) },                            /* xchg %rax,(%rdi) */
		{ "48 f7 e1", B(RAX) | B(RCX), B(RAX) | B(RDX) },                   /* mul %rcx */
		{ "48 f7 f9", B(RAX) | B(RDX) | B(RCX), B(RAX) | B(RDX) },          /* idiv %rcx */
		{ "48 0f af c1", B(RAX) | B(RCX), B(RAX) },                         /* imul %rcx,%rax */
		{ "48 99", B(RAX), B(RDX) },                                        /* cqto */
		{ "f3 48 a5", B(RDI) | B(RSI) | B(RCX), B(RDI) | B(RSI) | B(RCX) }, /* rep movsq */
		{ "f3 48 ab", B(RDI) | B(RAX) | B(RCX), B(RDI) | B(RCX) },          /* rep stosq */
		{ "0f a2", B(RAX) | B(RCX), B(RAX) | B(RBX) | B(RCX) | B(RDX) },    /* cpuid */
		{ "0f 31", 0, B(RAX) | B(RDX) },                                    /* rdtsc */
		{ "0f 94 c1", 0, B(RCX) },                                          /* sete %cl */
		{ "41 54", B(RSP) | B(R12), B(RSP) },                               /* push %r12 */
		{ "41 5c", B(RSP), B(RSP) | B(R12) },                               /* pop %r12 */
		{ "c9", B(RBP) | B(RSP), B(RBP) | B(RSP) },                         /* leave */
		{ "d3 e0", B(RAX) | B(RCX), B(RAX) },                               /* shl %cl,%eax */
		{ "48 0f c7 0f", B(RDI) | B(RAX) | B(RBX) | B(RCX) | B(RDX), B(RAX) | B(RDX) }, /* cmpxchg16b */
		{ "0f 1f 44 00 00", 0, 0 },
		{ "f3 0f 1e fa", 0, 0 },
		{ "0f 05", B(RAX) | B(RDI) | B(RSI) | B(RDX) | B(R10) | B(R8) | B(R9), B(RAX) | B(RCX) | B(R11) },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rt_insn insn = decode(cases[i].bytes);

		if (insn.reads != cases[i].reads || insn.writes != cases[i].writes)
			fail_msg("%s: reads %#x writes %#x, want %#x %#x", cases[i].bytes, insn.reads, insn.writes,
				 cases[i].reads, cases[i].writes);
	}
}

TEST(calls_and_branches)
{
	struct rt_insn insn = decode("e8 fb 0f 00 00");
	uint32_t clobbered = B(RAX) | B(RCX) | B(RDX) | B(RSI) | B(RDI) | B(R8) | B(R9) | B(R10) | B(R11);

	assert_true(insn.call && insn.has_target && !insn.indirect && !insn.jump && !insn.ret);
	assert_int_equal(insn.target.v, AT + 0x1000);
	assert_int_equal(insn.writes, clobbered);
	assert_true(insn.sp_known && !insn.sp_delta);
	insn = decode("ff 53 18");
	assert_true(insn.call && insn.indirect && !insn.has_target && insn.has_mem);
	assert_int_equal(insn.mem.base, RT_REG_RBX);
	assert_int_equal(insn.mem.disp, 0x18);
	assert_true(insn.mem.reads && !insn.mem.writes);
	assert_true(insn.reads & B(RBX));
	insn = decode("75 fe");
	assert_true(insn.jump && insn.conditional && insn.has_target);
	assert_int_equal(insn.target.v, AT);
	insn = decode("e9 fb ff ff ff");
	assert_true(insn.jump && !insn.conditional);
	assert_int_equal(insn.target.v, AT);
	insn = decode("3e ff e0");
	assert_true(insn.jump && insn.indirect && !insn.conditional);
	insn = decode("e3 10");
	assert_true(insn.jump && insn.conditional);
	insn = decode("c2 08 00");
	assert_true(insn.ret && !insn.jump && insn.sp_known);
	assert_int_equal(insn.sp_delta, 16);
	assert_true(decode("f3 0f 1e fa").endbr);
	assert_true(decode("f3 c3").ret);
}

TEST(counter_operations)
{
	struct rt_insn insn = decode("f0 ff 47 08");

	assert_true(insn.is_add && insn.lock && insn.has_imm && insn.has_mem);
	assert_int_equal(insn.imm, 1);
	assert_int_equal(insn.mem.base, RT_REG_RDI);
	assert_int_equal(insn.mem.index, RT_REG_NONE);
	assert_int_equal(insn.mem.disp, 8);
	assert_int_equal(insn.mem.size, 4);
	assert_true(insn.mem.reads && insn.mem.writes);
	insn = decode("f0 48 ff 0b");
	assert_true(insn.is_sub && insn.lock && !insn.is_add);
	assert_int_equal(insn.imm, 1);
	assert_int_equal(insn.mem.size, 8);
	insn = decode("f0 83 6f 08 01");
	assert_true(insn.is_sub && insn.lock);
	/* the sign stays, whatever the width */
	assert_int_equal(decode("83 c0 ff").imm, -1);
	assert_int_equal(decode("48 83 47 08 ff").imm, -1);
	assert_int_equal(decode("80 07 ff").imm, -1);
	assert_int_equal(decode("81 07 ff ff ff ff").imm, -1);
	assert_int_equal(decode("66 83 07 ff").imm, -1);
	assert_true(decode("83 c0 ff").is_add);
	insn = decode("f0 0f c1 47 10");
	assert_true(insn.is_xadd && insn.lock);
	assert_int_equal(insn.src_reg, RT_REG_RAX);
	assert_int_equal(insn.dst_reg, RT_REG_NONE);
	assert_int_equal(insn.width, 4);
	assert_true(insn.mem.reads && insn.mem.writes);
	insn = decode("f0 0f b1 0f");
	assert_true(insn.is_cmpxchg && insn.lock && insn.mem.writes && insn.mem.reads);
	assert_int_equal(insn.src_reg, RT_REG_RCX);
	assert_true(decode("48 85 ff").is_test_or_cmp);
	assert_true(decode("83 7f 08 00").is_test_or_cmp);
	assert_false(decode("83 7f 08 00").mem.writes);
}

TEST(moves_and_memory)
{
	struct rt_insn insn = decode("48 89 fb");

	assert_true(insn.is_mov);
	assert_int_equal(insn.dst_reg, RT_REG_RBX);
	assert_int_equal(insn.src_reg, RT_REG_RDI);
	assert_int_equal(insn.width, 8);
	assert_int_equal(decode("89 fb").width, 4);
	insn = decode("48 8d 05 f9 0f 00 00");
	assert_true(insn.is_lea && insn.has_mem && !insn.mem.reads && !insn.mem.writes);
	assert_int_equal(insn.mem.base, RT_REG_RIP);
	assert_int_equal(insn.mem.disp, AT + 0x1000);
	insn = decode("83 05 f9 0f 00 00 01");
	assert_true(insn.is_add && insn.mem.writes);
	assert_int_equal(insn.mem.disp, AT + 0x1000);
	insn = decode("48 8b 84 cd 00 ff ff ff");
	assert_int_equal(insn.mem.base, RT_REG_RBP);
	assert_int_equal(insn.mem.index, RT_REG_RCX);
	assert_int_equal(insn.mem.scale, 8);
	assert_int_equal(insn.mem.disp, -0x100);
	insn = decode("48 89 07");
	assert_true(insn.is_mov && insn.mem.writes && !insn.mem.reads);
	insn = decode("64 48 8b 04 25 28 00 00 00");
	assert_true(insn.mem.segment);
	insn = decode("48 c7 07 ff ff ff ff");
	assert_true(insn.is_mov && insn.has_imm && insn.imm == -1 && insn.mem.size == 8);
}

TEST(stack_pointer)
{
	static const struct {
		const char *bytes;
		bool known;
		int delta;
	} cases[] = {
		{ "55", true, -8 },
		{ "5d", true, 8 },
		{ "6a ff", true, -8 },
		{ "ff 77 08", true, -8 },
		{ "48 83 ec 18", true, -24 },
		{ "48 81 ec 00 01 00 00", true, -256 },
		{ "48 83 c4 18", true, 24 },
		{ "48 83 ec 80", true, 128 },
		{ "48 8d 64 24 f8", true, -8 },
		{ "9c", true, -8 },
		{ "9d", true, 8 },
		{ "c9", false, 0 },
		{ "48 89 ec", false, 0 },
		{ "48 83 e4 f0", false, 0 },
		{ "5c", false, 0 },
		{ "48 29 c4", false, 0 },
		{ "48 89 fb", true, 0 },
		{ "c3", true, 8 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rt_insn insn = decode(cases[i].bytes);

		if (insn.sp_known != cases[i].known || (insn.sp_known && insn.sp_delta != cases[i].delta))
			fail_msg("%s: known %d delta %d", cases[i].bytes, insn.sp_known, insn.sp_delta);
	}
}

TEST(call_before)
{
	static const struct {
		const char *bytes;
		bool call;
	} cases[] = {
		{ "e8 00 01 00 00", true },
		{ "90 e8 00 01 00 00", true },
		{ "ff d0", true },
		{ "41 ff d3", true },
		{ "ff 13", true },
		{ "ff 53 08", true },
		{ "ff 93 00 01 00 00", true },
		{ "ff 14 24", true },
		{ "ff 54 24 08", true },
		{ "ff 94 c3 00 01 00 00", true },
		{ "41 ff 94 c4 00 01 00 00", true },
		{ "ff 14 c5 00 00 40 00", true },
		{ "ff 15 00 10 00 00", true },
		{ "67 e8 00 01 00 00", true },
		{ "3e ff d0", true },
		{ "f2 ff 15 00 10 00 00", true },
		{ "48 89 fb 90", false },
		{ "e8 00 01 00 00 90", false },
		{ "ff e0", false },
		{ "ff 30", false },
		{ "e9 00 01 00 00", false },
		{ "c3", false },
		{ "", false },
		{ "d0", false },
	};
	struct rt_decoder *decoder = decoder_for(RT_MACHINE_X86_64);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t bytes[32];
		size_t n = parse_bytes(cases[i].bytes, bytes);

		if (rt_call_before(decoder, rt_bytes_make(bytes, n), (struct rt_elfaddr){ AT }) != cases[i].call)
			fail_msg("%s is %sa call", cases[i].bytes, cases[i].call ? "" : "not ");
	}
	rt_decoder_destroy(decoder);
}

/* objdump's lengths over real code, and its calls are what rt_call_before() finds */
TEST(lengths_as_objdump_has_them)
{
	struct rt_decoder *decoder = decoder_for(RT_MACHINE_X86_64);
	struct rt_image *image = NULL;
	struct workdir f;
	size_t n = 0;
	char *lines;

	workdir_make(&f);
	assert_ok(rt_image_open("/proc/self/exe", &image));
	lines = workdir_output(&f,
			       "objdump -d -w --insn-width=16 -j .text /proc/%d/exe | sed -n 's/^ *\\([0-9a-f]*\\):\\t"
			       "\\(\\([0-9a-f][0-9a-f] \\)*\\) *\\t\\(.*\\)/\\1 \\2\\t\\4/p' | grep -v '(bad)'",
			       getpid());
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"), n++) {
		char *text = strchr(line, '\t') + 1, *bytes = strchr(line, ' ');
		struct rt_elfaddr addr = { strtoull(line, NULL, 16) }, next;
		struct rt_insn insn = { 0 };
		uint8_t want[32];
		size_t length;

		*strchr(line, '\t') = 0;
		length = parse_bytes(bytes, want);
		if (!rt_decode(decoder, rt_image_at(image, addr, 16), addr, &insn) || insn.length != length)
			fail_msg("%s %s: length %u", line, text, insn.length);
		assert_int_equal(insn.call, strstr(text, "call") == text || strstr(text, " call") != NULL);
		next.v = addr.v + length;
		if (insn.call && !rt_call_before(decoder, rt_image_at(image, addr, length), next))
			fail_msg("%s %s: no call", line, text);
	}
	assert_true(n > 1000);
	free(lines);
	rt_image_destroy(image);
	rt_decoder_destroy(decoder);
	workdir_remove(&f);
}

/* By its bytes alone an instruction has objdump's length, or none; and few have none. */
TEST(lengths_without_a_decoder)
{
	struct workdir f;
	size_t n = 0, unknown = 0;
	char *lines;

	workdir_make(&f);
	/* the C library has vector code of each kind */
	lines = workdir_output(&f,
			       "objdump -d -w --insn-width=16 -j .text $(ldd /proc/%d/exe | sed -n 's/.*libc.so.6 => "
			       "\\([^ ]*\\).*/\\1/p') | sed -n 's/^ *\\([0-9a-f]*\\):\\t"
			       "\\(\\([0-9a-f][0-9a-f] \\)*\\) *\\t\\(.*\\)/\\1 \\2\\t\\4/p' | grep -v '(bad)'",
			       getpid());
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"), n++) {
		char *text = strchr(line, '\t') + 1, *bytes = strchr(line, ' ');
		uint8_t want[32] = { 0 };
		size_t length, have;

		*strchr(line, '\t') = 0;
		length = parse_bytes(bytes, want);
		have = rt_x86_length(rt_bytes_make(want, sizeof(want)));
		if (have && have != length)
			fail_msg("%s %s: length %zu", line, text, have);
		unknown += !have;
		/* cut, it has none */
		if (rt_x86_length(rt_bytes_make(want, length - 1)))
			fail_msg("%s %s: length %zu of less", line, text,
				 rt_x86_length(rt_bytes_make(want, length - 1)));
	}
	assert_true(n > 100000);
	assert_true(unknown < n / 1000);
	free(lines);
	workdir_remove(&f);
}

TEST(where_a_probe_holds)
{
	/* push %rbp; mov %rsp,%rbp; lock incl (%rdi); ret */
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xf0, 0xff, 0x07, 0xc3 };
	const struct rt_bytes bytes = { code, sizeof(code) };

	for (size_t at = 0; at < sizeof(code) + 2; at++)
		assert_int_equal(rt_x86_holds_probe(bytes, at), at == 0 || at == 1 || at == 7);
}

TEST(names_and_arguments)
{
	struct rt_decoder *decoder = NULL;

	assert_int_equal(rt_reg_argument(1), RT_REG_RDI);
	assert_int_equal(rt_reg_argument(4), RT_REG_RCX);
	assert_int_equal(rt_reg_argument(6), RT_REG_R9);
	assert_int_equal(rt_reg_argument(0), RT_REG_NONE);
	assert_int_equal(rt_reg_argument(7), RT_REG_NONE);
	assert_string_equal(rt_reg_name(RT_REG_RDX), "rdx");
	assert_string_equal(rt_reg_name(RT_REG_RIP), "rip");
	assert_code(rt_decoder_create(8, &decoder), RT_E_UNSUPPORTED);
}

TEST_MAIN();
