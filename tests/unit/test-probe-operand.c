/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arguments of SDT markers in every form: tables from sys/sdt.h's description and from what compilers wrote here; and
 * what gcc writes for a real marker of each kind, against the values that the program prints, is
 * tests/live/test_marker.py.
 */
#include "probe/operand.h"

#include "elf/image.h"

#include "test.h"

struct expect {
	const char *text;
	uint8_t kind, size;
	bool is_signed, is_float;
	uint8_t base, index, scale;
	int64_t value;
	const char *symbol;
};

enum { NO = RT_REG_NONE };

static void assert_operand(const struct rt_operand *o, const struct expect *e)
{
	if (o->kind != e->kind)
		fail_msg("%s: kind %u, expected %u (%s)", e->text, o->kind, e->kind, o->why ? o->why : "no reason");
	assert_int_equal(o->size, e->size);
	assert_int_equal(o->is_signed, e->is_signed);
	assert_int_equal(o->is_float, e->is_float);
	assert_int_equal(o->base, e->base);
	assert_int_equal(o->index, e->index);
	if (e->index != NO)
		assert_int_equal(o->scale, e->scale);
	assert_int_equal(o->value, e->value);
	assert_int_equal(o->symbol_len, e->symbol ? strlen(e->symbol) : 0);
	if (e->symbol)
		assert_memory_equal(o->symbol, e->symbol, o->symbol_len);
}

static void check(const struct expect *table, size_t count, uint16_t machine)
{
	for (size_t i = 0; i < count; i++) {
		const char *at = table[i].text;
		struct rt_operand o;

		assert_true(rt_operand_next(&at, machine, &o));
		assert_operand(&o, &table[i]);
		assert_int_equal(o.text_len, strlen(table[i].text));
		assert_false(rt_operand_next(&at, machine, &o));
	}
}

TEST(x86)
{
	static const struct expect table[] = {
		{ "8@%rdi", RT_OPERAND_REG, 8, false, false, RT_REG_RDI, NO },
		{ "-4@%eax", RT_OPERAND_REG, 4, true, false, RT_REG_RAX, NO },
		{ "1@%sil", RT_OPERAND_REG, 1, false, false, RT_REG_RSI, NO },
		{ "1@%bl", RT_OPERAND_REG, 1, false, false, RT_REG_RBX, NO },
		{ "2@%bp", RT_OPERAND_REG, 2, false, false, RT_REG_RBP, NO },
		{ "2@%r10w", RT_OPERAND_REG, 2, false, false, RT_REG_R10, NO },
		{ "-4@%r8d", RT_OPERAND_REG, 4, true, false, RT_REG_R8, NO },
		{ "-1@%r15b", RT_OPERAND_REG, 1, true, false, RT_REG_R15, NO },
		{ "%rax", RT_OPERAND_REG, 0, false, false, RT_REG_RAX, NO },
		{ "-4@$5", RT_OPERAND_CONST, 4, true, false, NO, NO, 0, 5 },
		{ "-8@$-1", RT_OPERAND_CONST, 8, true, false, NO, NO, 0, -1 },
		{ "8@$0xffffffffffffffff", RT_OPERAND_CONST, 8, false, false, NO, NO, 0, -1 },
		{ "8@$table+16", RT_OPERAND_ADDRESS, 8, false, false, NO, NO, 0, 16, "table" },
		{ "8@-16(%rbp)", RT_OPERAND_MEMORY, 8, false, false, RT_REG_RBP, NO, 0, -16 },
		{ "8@(%r12)", RT_OPERAND_MEMORY, 8, false, false, RT_REG_R12, NO },
		{ "-8@-8(%rsp)", RT_OPERAND_MEMORY, 8, true, false, RT_REG_RSP, NO, 0, -8 },
		{ "8@8(%rdx,%rcx,8)", RT_OPERAND_MEMORY, 8, false, false, RT_REG_RDX, RT_REG_RCX, 8, 8 },
		{ "8@(%rdx,%rcx)", RT_OPERAND_MEMORY, 8, false, false, RT_REG_RDX, RT_REG_RCX, 1 },
		{ "8@64(,%rax,4)", RT_OPERAND_MEMORY, 8, false, false, NO, RT_REG_RAX, 4, 64 },
		{ "4@counter(%rip)", RT_OPERAND_SYMBOL, 4, false, false, NO, NO, 0, 0, "counter" },
		{ "-4@table+4(%rip)", RT_OPERAND_SYMBOL, 4, true, false, NO, NO, 0, 4, "table" },
		{ "8@8+table-4(%rip)", RT_OPERAND_SYMBOL, 8, false, false, NO, NO, 0, 4, "table" },
		{ "8@.LC0(%rip)", RT_OPERAND_SYMBOL, 8, false, false, NO, NO, 0, 0, ".LC0" },
		{ "8@0x601040", RT_OPERAND_MEMORY, 8, false, false, NO, NO, 0, 0x601040 },
		{ "8@counter", RT_OPERAND_SYMBOL, 8, false, false, NO, NO, 0, 0, "counter" },
		{ "8f@8(%rsp)", RT_OPERAND_MEMORY, 8, false, true, RT_REG_RSP, NO, 0, 8 },
	};

	check(table, sizeof(table) / sizeof(table[0]), RT_MACHINE_X86_64);
}

TEST(aarch64)
{
	static const struct expect table[] = {
		{ "8@x0", RT_OPERAND_REG, 8, false, false, 0, NO },
		{ "-4@w19", RT_OPERAND_REG, 4, true, false, 19, NO },
		{ "8@sp", RT_OPERAND_REG, 8, false, false, 31, NO },
		{ "-4@5", RT_OPERAND_CONST, 4, true, false, NO, NO, 0, 5 },
		{ "8@[sp, 16]", RT_OPERAND_MEMORY, 8, false, false, 31, NO, 0, 16 },
		{ "8@[x19]", RT_OPERAND_MEMORY, 8, false, false, 19, NO },
		{ "8@[x1, x2]", RT_OPERAND_MEMORY, 8, false, false, 1, 2, 1 },
		{ "-8@[x29, -8]", RT_OPERAND_MEMORY, 8, true, false, 29, NO, 0, -8 },
	};

	/* numbers that are no register's, whatever is left of them in a byte */
	static const char *const none[] = { "8@x32", "8@x256", "8@x18446744073709551615", "8@w18446744073709551360" };

	check(table, sizeof(table) / sizeof(table[0]), RT_MACHINE_AARCH64);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		const char *at = none[i];
		struct rt_operand o;

		assert_true(rt_operand_next(&at, RT_MACHINE_AARCH64, &o));
		assert_int_equal(o.kind, RT_OPERAND_UNKNOWN);
	}
}

/* What cannot be read says why, and the next one is taken all the same. */
TEST(not_understood)
{
	static const char *const texts[] = { "8@%ah",
					     "8f@%xmm0",
					     "8@%fs:0x28",
					     "3@%rax",
					     "16@%rax",
					     "8@(%rdx,%rcx,3)",
					     "8@(%rdx",
					     "8@",
					     "8@table(%rax)",
					     "8@%",
					     "8@$",
					     "8@8(%rdx,%rcx,8)x",
					     "-8@%rflags",
					     "8@()",
					     "99999999999999999999@%rax",
					     "-9223372036854775808@%rax" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[64];
		const char *at = text;
		struct rt_operand o;

		snprintf(text, sizeof(text), " %s  8@%%rdi", texts[i]);
		assert_true(rt_operand_next(&at, RT_MACHINE_X86_64, &o));
		if (o.kind != RT_OPERAND_UNKNOWN)
			fail_msg("%s is no operand, but kind %u", texts[i], o.kind);
		assert_non_null(o.why);
		assert_int_equal(o.text_len, strlen(texts[i]));
		assert_true(rt_operand_next(&at, RT_MACHINE_X86_64, &o));
		assert_int_equal(o.base, RT_REG_RDI);
		assert_false(rt_operand_next(&at, RT_MACHINE_X86_64, &o));
	}
}

TEST(none)
{
	const char *at = "  ";
	struct rt_operand o;

	assert_false(rt_operand_next(&at, RT_MACHINE_X86_64, &o));
}

TEST_MAIN();
