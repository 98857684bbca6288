/* SPDX-License-Identifier: GPL-2.0-only */
#include "insn/decoder.h"

#include <dlfcn.h>
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

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
static const char library[] = "libcapstone.so." TEXT(CS_API_MAJOR);

static bool open_library(struct rt_capstone *cs)
{
	cs->library = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	if (!cs->library)
		return false;
	*(void **)&cs->open = dlsym(cs->library, "cs_open");
	*(void **)&cs->close = dlsym(cs->library, "cs_close");
	*(void **)&cs->option = dlsym(cs->library, "cs_option");
	*(void **)&cs->malloc = dlsym(cs->library, "cs_malloc");
	*(void **)&cs->free = dlsym(cs->library, "cs_free");
	*(void **)&cs->disasm_iter = dlsym(cs->library, "cs_disasm_iter");
	*(void **)&cs->regs_access = dlsym(cs->library, "cs_regs_access");
	return cs->open && cs->close && cs->option && cs->malloc && cs->free && cs->disasm_iter && cs->regs_access;
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
	if (!open_library(&decoder->cs))
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "no instruction can be decoded: %s", dlerror()),
				    "apt-get install libcapstone4");
	if (decoder->cs.open(arch, mode, &decoder->handle) != CS_ERR_OK)
		return rt_error_new(RT_E_UNSUPPORTED, "this build's capstone cannot decode ELF machine %u", machine);
	if (decoder->cs.option(decoder->handle, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK)
		return rt_error_new(RT_E_UNSUPPORTED, "this build's capstone tells no operands");
	decoder->insn = decoder->cs.malloc(decoder->handle);
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
		decoder->cs.free(decoder->insn, 1);
	if (decoder->text_insn)
		decoder->cs.free(decoder->text_insn, 1);
	if (decoder->text_handle)
		decoder->cs.close(&decoder->text_handle);
	if (decoder->handle)
		decoder->cs.close(&decoder->handle);
	if (decoder->cs.library)
		dlclose(decoder->cs.library);
	free(decoder);
}

bool rt_decode(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr, struct rt_insn *ret)
{
	struct rt_insn insn = { .addr = addr,
				.sp_known = true,
				.mem = { .base = RT_REG_NONE, .index = RT_REG_NONE },
				.dst_reg = RT_REG_NONE,
				.src_reg = RT_REG_NONE,
				.vector_src = RT_REG_NONE };
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
