/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/body.h"

#include "dwarf/dwarf.h"

enum { BEGINS = 1, TARGET = 2, INSN_BYTES = 16 };

#define RT_CODE_MAX (16u << 20) /* bytes of one function */

static bool range(const struct rt_symtab *symtab, struct rt_dwarf *dwarf, struct rt_elfaddr addr,
		  struct rt_elfaddr *ret_start, struct rt_elfaddr *ret_end)
{
	const struct rt_symbol *symbol = symtab ? rt_symtab_at(symtab, addr) : NULL;
	bool lsda;

	if (symbol && symbol->size && addr.v - symbol->addr.v < symbol->size) {
		*ret_start = symbol->addr;
		ret_end->v = symbol->addr.v + symbol->size;
		return true;
	}
	return dwarf && rt_dwarf_fde(dwarf, addr, ret_start, ret_end, &lsda);
}

struct rt_error *rt_body_read(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_dwarf *dwarf,
			      struct rt_decoder *decoder, struct rt_elfaddr addr, struct rt_body *ret)
{
	struct rt_body c = { .image = image, .decoder = decoder };
	struct rt_elfaddr at;
	struct rt_bytes code;

	*ret = c;
	if (!range(symtab, dwarf, addr, &c.start, &c.end))
		return rt_error_fix(rt_error_new(RT_E_NO_FUNCTION,
						 "%s: neither a symbol nor an unwind table tells which "
						 "function 0x%llx is in",
						 image->name, (unsigned long long)addr.v),
				    "give the file with its debug information, or an address of .text");
	code = rt_image_at(image, c.start, c.end.v - c.start.v);
	if (c.end.v - c.start.v > RT_CODE_MAX || code.size < c.end.v - c.start.v)
		return rt_error_new(RT_E_NO_FUNCTION, "%s: the code around 0x%llx is not in the file", image->name,
				    (unsigned long long)addr.v);
	c.marks = calloc(code.size, 1);
	if (!c.marks)
		return rt_error_nomem();
	for (at = c.start; at.v < c.end.v;) {
		struct rt_bytes rest = rt_bytes_make(code.data + (at.v - c.start.v), c.end.v - at.v);
		struct rt_insn insn;

		/* bytes that are no instruction are data between code: go on behind them */
		if (!rt_decode(decoder, rest, at, &insn) || !insn.length) {
			at.v++;
			continue;
		}
		c.marks[at.v - c.start.v] |= BEGINS;
		if (insn.jump && insn.has_target && insn.target.v >= c.start.v && insn.target.v < c.end.v)
			c.marks[insn.target.v - c.start.v] |= TARGET;
		at.v += insn.length;
	}
	*ret = c;
	return NULL;
}

void rt_body_deinit(struct rt_body *code)
{
	free(code->marks);
	*code = (struct rt_body){ .marks = NULL };
}

bool rt_body_holds(const struct rt_body *code, struct rt_elfaddr addr)
{
	return code->marks && addr.v >= code->start.v && addr.v < code->end.v;
}

bool rt_body_is_insn(const struct rt_body *code, struct rt_elfaddr addr, struct rt_elfaddr *ret_before,
		     struct rt_elfaddr *ret_behind)
{
	uint64_t before = addr.v, behind = addr.v;

	*ret_before = *ret_behind = addr;
	if (!rt_body_holds(code, addr))
		return false;
	if (code->marks[addr.v - code->start.v] & BEGINS)
		return true;
	while (before > code->start.v && !(code->marks[before - code->start.v] & BEGINS))
		before--;
	while (behind < code->end.v && !(code->marks[behind - code->start.v] & BEGINS))
		behind++;
	ret_before->v = before;
	ret_behind->v = behind;
	return false;
}

bool rt_body_is_target(const struct rt_body *code, struct rt_elfaddr addr)
{
	return rt_body_holds(code, addr) && (code->marks[addr.v - code->start.v] & TARGET);
}

bool rt_body_at(const struct rt_body *code, struct rt_elfaddr addr, struct rt_insn *ret)
{
	return rt_body_holds(code, addr) &&
	       rt_decode(code->decoder, rt_image_at(code->image, addr, INSN_BYTES), addr, ret);
}
