/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/text_table.h"

#include "probe/body.h"

/* What the code up to here has loaded from variables. */
struct loads {
	struct rt_elfaddr from[RT_REG_RIP];
	uint32_t known; /* bit set over enum rt_reg */
};

/* true: insn loads a text from a table that a variable has the address of */
static bool looks_up(const struct loads *l, const struct rt_insn *insn, struct rt_elfaddr *ret)
{
	const struct rt_mem_operand *m = &insn->mem;

	if (!insn->is_mov || !insn->has_mem || !m->reads || m->segment || m->size != 8 || m->scale != 8 || m->disp ||
	    m->base >= RT_REG_RIP || m->index >= RT_REG_RIP || !(l->known & 1u << m->base))
		return false;
	*ret = l->from[m->base];
	return true;
}

static void step(struct loads *l, const struct rt_insn *insn)
{
	const struct rt_mem_operand *m = &insn->mem;

	l->known &= ~insn->writes;
	if (insn->call)
		l->known = 0;
	if (insn->is_mov && insn->has_mem && m->reads && !m->segment && m->size == 8 && m->base == RT_REG_RIP &&
	    m->index == RT_REG_NONE && insn->dst_reg < RT_REG_RIP) {
		l->known |= 1u << insn->dst_reg;
		l->from[insn->dst_reg].v = (uint64_t)m->disp;
	}
}

bool rt_text_table(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		   const struct rt_symbol *function, struct rt_elfaddr *ret)
{
	struct rt_body body = { 0 };
	struct rt_error *err = rt_body_read(image, symtab, NULL, decoder, function->addr, &body);
	struct loads l = { .known = 0 };
	struct rt_elfaddr at = body.start;
	bool found = false;
	struct rt_insn insn;

	while (!err && !found && at.v < body.end.v && rt_body_at(&body, at, &insn) && insn.length) {
		found = looks_up(&l, &insn, ret);
		step(&l, &insn);
		at.v += insn.length;
	}
	rt_body_deinit(&body);
	rt_error_free(err);
	return found;
}
