/* SPDX-License-Identifier: GPL-2.0-only */
#include "insn/decoder.h"

#include <elf.h>

enum rt_reg rt_reg_argument(unsigned n)
{
	static const uint8_t regs[] = { RT_REG_RDI, RT_REG_RSI, RT_REG_RDX, RT_REG_RCX, RT_REG_R8, RT_REG_R9 };

	return n >= 1 && n <= 6 ? regs[n - 1] : RT_REG_NONE;
}

const char *rt_reg_name(enum rt_reg reg)
{
	static const char *const names[RT_REG_NR] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
						      "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip" };

	return (unsigned)reg < RT_REG_NR ? names[reg] : "none";
}

struct rt_error *rt_decoder_create(uint16_t machine, struct rt_decoder **ret)
{
	_cleanup_(rt_decoder_destroyp) struct rt_decoder *decoder = NULL;
	cs_arch arch;
	cs_mode mode;

	if (machine == EM_X86_64) {
		arch = CS_ARCH_X86;
		mode = CS_MODE_64;
	} else if (machine == EM_AARCH64) {
		arch = CS_ARCH_ARM64;
		mode = CS_MODE_LITTLE_ENDIAN;
	} else {
		return rt_error_new(RT_E_UNSUPPORTED, "cannot decode instructions of ELF machine %u", machine);
	}
	decoder = calloc(1, sizeof(*decoder));
	if (!decoder)
		return rt_error_nomem();
	decoder->machine = machine;
	if (cs_open(arch, mode, &decoder->handle) != CS_ERR_OK)
		return rt_error_new(RT_E_UNSUPPORTED, "this build's capstone cannot decode ELF machine %u", machine);
	if (cs_option(decoder->handle, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK)
		return rt_error_new(RT_E_UNSUPPORTED, "this build's capstone tells no operands");
	decoder->insn = cs_malloc(decoder->handle);
	if (!decoder->insn)
		return rt_error_nomem();
	*ret = rt_take(decoder);
	return NULL;
}

void rt_decoder_destroy(struct rt_decoder *decoder)
{
	if (!decoder)
		return;
	if (decoder->insn)
		cs_free(decoder->insn, 1);
	if (decoder->text_insn)
		cs_free(decoder->text_insn, 1);
	if (decoder->text_handle)
		cs_close(&decoder->text_handle);
	if (decoder->handle)
		cs_close(&decoder->handle);
	free(decoder);
}

bool rt_decode(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr, struct rt_insn *ret)
{
	struct rt_insn insn = { .addr = addr,
				.sp_known = true,
				.mem = { .base = RT_REG_NONE, .index = RT_REG_NONE },
				.dst_reg = RT_REG_NONE,
				.src_reg = RT_REG_NONE };
	bool ok;

	if (decoder->machine == EM_X86_64)
		ok = rt_x86_decode(decoder, code, addr, &insn);
	else
		ok = rt_a64_decode(decoder, code, addr, &insn);
	if (ok)
		*ret = insn;
	return ok;
}

bool rt_call_before(struct rt_decoder *decoder, struct rt_bytes before, struct rt_elfaddr addr)
{
	return decoder->machine == EM_X86_64 ? rt_x86_call_before(before) : rt_a64_call_before(before);
}
