/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machine instructions as text. The library's text comes from a handle of its
 * own: in AT&T syntax it would also turn the operands that rt_decode() looks at.
 */
#include <elf.h>

#include "insn/decoder.h"

static struct rt_error *open_text(struct rt_decoder *decoder)
{
	bool x86 = decoder->machine == EM_X86_64;

	if (decoder->text_insn)
		return NULL;
	if (!decoder->text_handle &&
	    decoder->cs.open(x86 ? CS_ARCH_X86 : CS_ARCH_ARM64, x86 ? CS_MODE_64 : CS_MODE_LITTLE_ENDIAN,
			     &decoder->text_handle) != CS_ERR_OK)
		return rt_error_new(RT_E_UNSUPPORTED, "this build's capstone cannot decode ELF machine %u",
				    decoder->machine);
	/* a library that was built without it writes Intel's syntax: better than nothing */
	if (x86)
		(void)decoder->cs.option(decoder->text_handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	decoder->text_insn = decoder->cs.malloc(decoder->text_handle);
	return decoder->text_insn ? NULL : rt_error_nomem();
}

static bool is_endbr(struct rt_bytes code, uint8_t *ret_last)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e };

	if (code.size < 4 || memcmp(code.data, endbr, sizeof(endbr)) != 0)
		return false;
	*ret_last = code.data[3];
	return *ret_last == 0xfa || *ret_last == 0xfb;
}

struct rt_error *rt_disassemble(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr, char *text,
				size_t size, size_t *ret_length)
{
	size_t left = code.size < 16 ? code.size : 16;
	const uint8_t *at = code.data;
	uint64_t pc = addr.v;
	struct rt_insn insn;
	uint8_t last;

	RT_TRY(open_text(decoder));
	if (!code.size)
		return rt_error_new(RT_E_TRUNCATED, "no instruction at %#llx: the code ends here",
				    (unsigned long long)addr.v);
	/* the library of Debian 12 does not know it */
	if (decoder->machine == EM_X86_64 && is_endbr(code, &last)) {
		snprintf(text, size, "endbr%s", last == 0xfa ? "64" : "32");
		*ret_length = 4;
	} else if (decoder->cs.disasm_iter(decoder->text_handle, &at, &left, &pc, decoder->text_insn)) {
		const cs_insn *i = decoder->text_insn;

		snprintf(text, size, "%s%s%s", i->mnemonic, *i->op_str ? " " : "", i->op_str);
		*ret_length = i->size;
	} else if (rt_decode(decoder, code, addr, &insn)) {
		snprintf(text, size, "(newer than this disassembler)");
		*ret_length = insn.length;
	} else {
		bool word = decoder->machine == EM_AARCH64 && code.size >= 4;

		if (word)
			snprintf(text, size, ".inst 0x%02x%02x%02x%02x", code.data[3], code.data[2], code.data[1],
				 code.data[0]);
		else
			snprintf(text, size, ".byte 0x%02x", code.data[0]);
		*ret_length = word ? 4 : 1;
	}
	return NULL;
}
