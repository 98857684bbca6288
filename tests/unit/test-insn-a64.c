/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/image.h"
#include "insn/insn.h"
#include "test.h"

#define AT 0x10000

static bool decode(uint32_t word, struct rt_insn *ret)
{
	uint8_t bytes[4] = { (uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16), (uint8_t)(word >> 24) };
	struct rt_decoder *decoder = NULL;
	bool ok;

	assert_ok(rt_decoder_create(RT_MACHINE_AARCH64, &decoder));
	ok = rt_decode(decoder, rt_bytes_make(bytes, 4), (struct rt_elfaddr){ AT }, ret);
	if (ok) {
		assert_int_equal(ret->length, 4);
		assert_int_equal(rt_call_before(decoder, rt_bytes_make(bytes, 4), (struct rt_elfaddr){ AT + 4 }),
				 ret->call);
		assert_false(rt_decode(decoder, rt_bytes_make(bytes, 3), (struct rt_elfaddr){ AT }, ret));
	}
	rt_decoder_destroy(decoder);
	return ok;
}

TEST(branches)
{
	struct rt_insn insn = { 0 };

	assert_true(decode(0x94000040, &insn)); /* bl +0x100 */
	assert_true(insn.call && insn.has_target && !insn.indirect);
	assert_int_equal(insn.target.v, AT + 0x100);
	assert_true(decode(0x17ffffff, &insn)); /* b -4 */
	assert_true(insn.jump && !insn.conditional);
	assert_int_equal(insn.target.v, AT - 4);
	assert_true(decode(0x54ffffe1, &insn)); /* b.ne -4 */
	assert_true(insn.jump && insn.conditional);
	assert_int_equal(insn.target.v, AT - 4);
	assert_true(decode(0xb4000100, &insn)); /* cbz x0, +0x20 */
	assert_true(insn.conditional);
	assert_int_equal(insn.target.v, AT + 0x20);
	assert_true(decode(0x37080080, &insn)); /* tbnz w0, #1, +0x10 */
	assert_true(insn.conditional);
	assert_int_equal(insn.target.v, AT + 0x10);
	assert_true(decode(0x36020000, &insn)); /* tbz w0, #0, +0x4000 */
	assert_int_equal(insn.target.v, AT + 0x4000);
	assert_true(decode(0xd63f0200, &insn)); /* blr x16 */
	assert_true(insn.call && insn.indirect && !insn.has_target);
	assert_true(decode(0xd61f0220, &insn)); /* br x17 */
	assert_true(insn.jump && insn.indirect);
	assert_true(decode(0xd65f03c0, &insn)); /* ret */
	assert_true(insn.ret && !insn.jump && !insn.call);
}

TEST(costs)
{
	struct rt_insn insn = { 0 };

	assert_true(decode(0xd503201f, &insn)); /* nop */
	assert_true(insn.nop);
	assert_int_equal(insn.cost, RT_COST_EMULATED);
	assert_true(decode(0xd503245f, &insn)); /* bti c */
	assert_true(insn.endbr);
	assert_true(decode(0xa9be7bfd, &insn)); /* stp x29, x30, [sp, #-32]! */
	assert_int_equal(insn.cost, RT_COST_STEP);
	assert_true(decode(0xc85ffc00, &insn)); /* ldaxr x0, [x0] */
	assert_int_equal(insn.cost, RT_COST_NEVER);
	assert_true(decode(0xd4000001, &insn)); /* svc #0 */
	assert_int_equal(insn.cost, RT_COST_NEVER);
	assert_false(decode(0x00000000, &insn));
}

TEST_MAIN();
