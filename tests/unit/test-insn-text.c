/* SPDX-License-Identifier: GPL-2.0-only */
/* Machine code as text, against objdump. */
#include <elf.h>

#include "insn/insn.h"
#include "workdir.h"

static const char source[] = "struct o { long a; int b[4]; };\n"
			     "int put(struct o *o, int n)\n"
			     "{\n"
			     "	int s = 0;\n"
			     "	for (int i = 0; i < n; i++)\n"
			     "		s += o->b[i & 3] * (i ^ s);\n"
			     "	if (__atomic_sub_fetch(&o->a, 1, __ATOMIC_SEQ_CST) == 0)\n"
			     "		__builtin_free(o);\n"
			     "	return s / 7;\n"
			     "}\n";

/* "OFFSET MNEMONIC", one line for each instruction of the file's .text. AT&T suffixes that only one of the two writes,
 * and objdump's relocation lines, are left out. */
static const char objdump_script[] =
	"import re,sys\n"
	"for t in sys.stdin:\n"
	"  m=re.match(r'\\s*([0-9a-f]+):\\t(?:[0-9a-f]{2} )+\\s*\\t(\\S+)(.*)',t)\n"
	"  if m: print(m.group(1), re.sub(r'^(call|ret|jmp|push|pop)q$',r'\\1',m.group(2)))\n";

TEST(x86_text_is_that_of_objdump)
{
	static uint8_t code[4096];
	struct rt_decoder *decoder = NULL;
	struct workdir w;
	char *want, *at, text[160], mnemonic[64], line[160];
	size_t size, length, lines = 0;
	FILE *file;

	workdir_make(&w);
	workdir_write(&w, "a.c", source);
	workdir_write(&w, "o.py", objdump_script);
	workdir_run(&w, "gcc -O2 -fcf-protection -m64 -c a.c && objcopy -O binary -j .text a.o a.bin");
	want = at = workdir_output(&w, "objdump -d -w -j .text a.o | python3 o.py");
	file = fopen(workdir_path(&w, "a.bin"), "rb");
	assert_non_null(file);
	size = fread(code, 1, sizeof(code), file);
	fclose(file);
	assert_ok(rt_decoder_create(EM_X86_64, &decoder));
	for (size_t pos = 0; pos < size; pos += length) {
		size_t len = strcspn(at, "\n"), end;

		assert_ok(rt_disassemble(decoder, rt_bytes_make(code + pos, size - pos), (struct rt_elfaddr){ pos },
					 text, sizeof(text), &length));
		snprintf(mnemonic, sizeof(mnemonic), "%.*s", (int)strcspn(text, " "), text);
		end = strlen(mnemonic);
		if (!strcmp(mnemonic, "callq") || !strcmp(mnemonic, "retq") || !strcmp(mnemonic, "jmpq") ||
		    !strcmp(mnemonic, "pushq") || !strcmp(mnemonic, "popq"))
			mnemonic[end - 1] = 0;
		snprintf(line, sizeof(line), "%zx %s", pos, mnemonic);
		/* suffixes of operand size are optional in AT&T syntax: objdump leaves out what a register tells */
		if (strncmp(line, at, len) != 0 || strlen(line) > len + 1)
			fail_msg("objdump: %.*s, ours: %s (%s)", (int)len, at, line, text);
		at += len + (at[len] == '\n');
		lines++;
	}
	assert_int_equal(*at, 0);
	assert_true(lines > 20);
	free(want);
	rt_decoder_destroy(decoder);
	workdir_remove(&w);
}

TEST(hand_made)
{
	static const struct {
		uint16_t machine;
		uint8_t bytes[8];
		size_t size, length;
		const char *text;
	} cases[] = {
		{ EM_X86_64, { 0xf3, 0x0f, 0x1e, 0xfa }, 4, 4, "endbr64" },
		{ EM_X86_64, { 0xf0, 0x83, 0x07, 0x01 }, 4, 4, "lock addl $1, (%rdi)" },
		{ EM_X86_64, { 0x48, 0x89, 0xe5 }, 3, 3, "movq %rsp, %rbp" },
		{ EM_X86_64, { 0x75, 0x10 }, 2, 2, "jne 0x1012" },
		{ EM_X86_64, { 0xe8, 0, 1, 0, 0 }, 5, 5, "callq 0x1105" },
		{ EM_X86_64, { 0x06 }, 1, 1, ".byte 0x06" },
		{ EM_X86_64, { 0xe8, 0, 1 }, 3, 1, ".byte 0xe8" },
		{ EM_AARCH64, { 0xc0, 0x03, 0x5f, 0xd6 }, 4, 4, "ret" },
		{ EM_AARCH64, { 0x40, 0x00, 0x00, 0x94 }, 4, 4, "bl #0x1100" },
		{ EM_AARCH64, { 0, 0, 0, 0 }, 4, 4, ".inst 0x00000000" },
		{ EM_AARCH64, { 0xc0, 0x03 }, 2, 1, ".byte 0xc0" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rt_decoder *decoder = NULL;
		struct rt_insn insn;
		size_t length = 0;
		char text[64];

		assert_ok(rt_decoder_create(cases[i].machine, &decoder));
		/* looking at the operands before and after must not change the text, nor the other way round */
		(void)rt_decode(decoder, rt_bytes_make(cases[i].bytes, cases[i].size), (struct rt_elfaddr){ 0x1000 },
				&insn);
		assert_ok(rt_disassemble(decoder, rt_bytes_make(cases[i].bytes, cases[i].size),
					 (struct rt_elfaddr){ 0x1000 }, text, sizeof(text), &length));
		assert_string_equal(text, cases[i].text);
		assert_int_equal(length, cases[i].length);
		assert_code(rt_disassemble(decoder, rt_bytes_make(cases[i].bytes, 0), (struct rt_elfaddr){ 0 }, text,
					   sizeof(text), &length),
			    RT_E_TRUNCATED);
		if (i == 2) {
			assert_true(rt_decode(decoder, rt_bytes_make(cases[i].bytes, 3), (struct rt_elfaddr){ 0x1000 },
					      &insn));
			assert_int_equal(insn.dst_reg, RT_REG_RBP);
			assert_int_equal(insn.src_reg, RT_REG_RSP);
		}
		rt_decoder_destroy(decoder);
	}
}

TEST_MAIN();
