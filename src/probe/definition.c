/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/definition.h"

#include <inttypes.h>
#include <string.h>

#include "probe/operand.h"

/* As arch/x86/kernel/ptrace.c names them. */
static const char *register_name(uint8_t reg)
{
	static const char *const names[] = { "ax", "dx", "cx",  "bx",  "si",  "di",  "bp",  "sp",
					     "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };

	return reg < sizeof(names) / sizeof(names[0]) ? names[reg] : NULL;
}

struct line {
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	const struct rt_sdt_marker *marker;
	struct rt_foff offset;
};

/* Where a symbol of the file lies, as the kernel counts it: as far from the probe as its address is. */
static bool symbol_offset(const struct line *l, const struct rt_operand *o, uint64_t *ret)
{
	char name[256];
	const struct rt_symbol *symbol;

	if (o->symbol_len >= sizeof(name) || !l->symtab)
		return false;
	memcpy(name, o->symbol, o->symbol_len);
	name[o->symbol_len] = 0;
	symbol = rt_symtab_find(l->symtab, name);
	if (!symbol)
		return false;
	*ret = l->offset.v + (symbol->addr.v + (uint64_t)o->value - l->marker->location.v);
	/* the kernel reads it as a signed number, and it has to be one behind a '+' */
	return *ret <= INT64_MAX;
}

/* "%di", "+8(%di)", "\\5", "@+0x3020". false: tracefs has no word for it. */
static bool write_operand(const struct line *l, const struct rt_operand *o, unsigned n, struct rt_sink *sink)
{
	const char *reg = register_name(o->base);
	uint64_t offset;

	if (o->index != RT_REG_NONE)
		return false;
	switch (o->kind) {
	case RT_OPERAND_REG:
		if (reg)
			rt_sink_printf(sink, " arg%u=%%%s", n, reg);
		return reg;
	case RT_OPERAND_MEMORY:
		if (reg)
			rt_sink_printf(sink, " arg%u=%+" PRId64 "(%%%s)", n, o->value, reg);
		else if (o->base == RT_REG_NONE && o->value >= 0)
			rt_sink_printf(sink, " arg%u=@0x%" PRIx64, n, o->value);
		return reg || (o->base == RT_REG_NONE && o->value >= 0);
	case RT_OPERAND_CONST:
		rt_sink_printf(sink, " arg%u=\\%" PRId64, n, o->value);
		return true;
	case RT_OPERAND_SYMBOL:
		if (!symbol_offset(l, o, &offset))
			return false;
		rt_sink_printf(sink, " arg%u=@+0x%" PRIx64, n, offset);
		return true;
	default:
		return false;
	}
}

struct rt_error *rt_marker_definition(const struct rt_image *image, const struct rt_symtab *symtab,
				      const struct rt_sdt_marker *m, const char *path, struct rt_sink *sink,
				      unsigned *ret_dropped)
{
	struct line l = { image, symtab, m, { 0 } };
	struct rt_foff semaphore = { 0 };
	const char *args = m->args;
	unsigned dropped = 0;
	struct rt_operand o;

	if (!rt_image_offset(image, m->location, &l.offset) ||
	    (m->semaphore.v && !rt_image_offset(image, m->semaphore, &semaphore)))
		return rt_error_new(RT_E_UNARMED, "the marker %s:%s or its semaphore is not in the file", m->provider,
				    m->name);
	rt_sink_printf(sink, "p:sdt_%s/%s %s:0x%" PRIx64, m->provider, m->name, path, l.offset.v);
	if (semaphore.v)
		rt_sink_printf(sink, "(0x%" PRIx64 ")", semaphore.v);
	for (unsigned n = 1; rt_operand_next(&args, image->machine, &o); n++) {
		if (!write_operand(&l, &o, n, sink))
			dropped++;
		else if (o.size)
			rt_sink_printf(sink, ":%c%u", o.is_signed ? 's' : 'u', o.size * 8u);
	}
	*ret_dropped = dropped;
	return NULL;
}
