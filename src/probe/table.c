/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/table.h"

#include <string.h>

unsigned rt_table_read(const struct rt_image *image, const struct rt_table *table, rt_table_entry *entry, void *arg)
{
	unsigned n = 0;

	for (; n < (table->entries ? table->entries : RT_TABLE_MAX); n++) {
		struct rt_elfaddr at = { table->address.v + (uint64_t)n * table->width };
		struct rt_bytes bytes = rt_image_at(image, at, table->width);
		uint64_t target = 0;

		if (bytes.size < table->width)
			break;
		memcpy(&target, bytes.data, table->width);
		if (table->width == 4)
			target = table->address.v + (uint64_t)(int64_t)(int32_t)target;
		if (!entry((struct rt_elfaddr){ target }, arg))
			break;
	}
	return n;
}

static struct rt_elfaddr earlier(struct rt_elfaddr a, struct rt_elfaddr b)
{
	return a.v < b.v ? a : b;
}

/* with as many entries as there are values of the index, where that is known */
static struct rt_table bounded(const struct rt_tables *t, struct rt_table table, uint8_t index)
{
	const struct rt_table_bound *b = index < RT_TRACK_REGS ? &t->bound[index] : NULL;

	if (!table.address.v || !b || !b->below)
		return (struct rt_table){ 0 };
	table.entries = b->below;
	table.since = earlier(table.since, b->since);
	return table;
}

/* a distance is read from a table */
static struct rt_table read_by(const struct rt_tables *t, const struct rt_insn *insn)
{
	if (!insn->has_mem || insn->mem.writes || insn->mem.size != 4 || insn->mem.scale != 4 || insn->mem.disp ||
	    insn->mem.base >= RT_TRACK_REGS)
		return (struct rt_table){ 0 };
	return bounded(t, t->at[insn->mem.base], insn->mem.index);
}

/* the address of a table and a distance that was read from it are added */
static struct rt_table added_by(const struct rt_tables *t, const struct rt_insn *insn)
{
	const struct rt_table none = { 0 }, *read, *at;

	if (!insn->is_add || insn->has_mem || insn->has_imm || insn->width != 8 || insn->dst_reg >= RT_TRACK_REGS ||
	    insn->src_reg >= RT_TRACK_REGS)
		return none;
	read = t->read[insn->dst_reg].entries ? &t->read[insn->dst_reg] : &t->read[insn->src_reg];
	at = t->read[insn->dst_reg].entries ? &t->at[insn->src_reg] : &t->at[insn->dst_reg];
	return read->entries && read->address.v == at->address.v ? *read : none;
}

static struct rt_table jumped_by(const struct rt_tables *t, const struct rt_insn *insn)
{
	const struct rt_table absolute = { { (uint64_t)insn->mem.disp }, insn->addr, 0, 8 };

	if (!insn->jump || !insn->indirect)
		return (struct rt_table){ 0 };
	if (insn->has_mem)
		return insn->mem.base == RT_REG_NONE && insn->mem.scale == 8 && !insn->mem.segment
			       ? bounded(t, absolute, insn->mem.index)
			       : (struct rt_table){ 0 };
	return insn->dst_reg < RT_TRACK_REGS ? t->into[insn->dst_reg] : (struct rt_table){ 0 };
}

/* cmp $n,reg; ja: what goes on has no more than n in it */
static bool goes_on_below(struct rt_bytes code, const struct rt_insn *insn)
{
	return insn->jump && insn->conditional &&
	       ((code.size > 0 && code.data[0] == 0x77) ||
		(code.size > 1 && code.data[0] == 0x0f && code.data[1] == 0x87));
}

static void follow_bounds(struct rt_tables *t, struct rt_bytes code, const struct rt_insn *insn)
{
	const uint8_t reg = t->compared_reg;
	struct rt_table_bound copied = { 0 };

	if (t->compared.below && goes_on_below(code, insn))
		t->bound[reg] = t->compared;
	t->compared.below = 0;
	/* a copy of its lower half has no upper one */
	if (insn->is_mov && !insn->has_mem && !insn->has_imm && insn->src_reg < RT_TRACK_REGS && insn->width >= 4)
		copied = t->bound[insn->src_reg];
	for (unsigned r = 0; r < RT_TRACK_REGS; r++) {
		if (insn->writes & 1u << r)
			t->bound[r].below = 0;
	}
	if (copied.below && insn->dst_reg < RT_TRACK_REGS)
		t->bound[insn->dst_reg] = copied;
	if (insn->is_cmp && insn->has_imm && !insn->has_mem && insn->dst_reg < RT_TRACK_REGS && insn->imm >= 0 &&
	    insn->imm < RT_TABLE_MAX) {
		t->compared = (struct rt_table_bound){ insn->addr, (uint32_t)insn->imm + 1 };
		t->compared_reg = insn->dst_reg;
	}
}

bool rt_tables_pass(struct rt_tables *tables, struct rt_bytes code, const struct rt_insn *insn, struct rt_table *ret)
{
	const struct rt_table read = read_by(tables, insn), sum = added_by(tables, insn);

	*ret = jumped_by(tables, insn);
	/* behind it code begins that is come to from elsewhere */
	if (insn->ret || (insn->jump && !insn->conditional))
		memset(tables, 0, sizeof(*tables));
	follow_bounds(tables, code, insn);
	for (unsigned r = 0; r < RT_TRACK_REGS; r++) {
		if (insn->writes & 1u << r)
			tables->at[r] = tables->read[r] = tables->into[r] = (struct rt_table){ 0 };
	}
	if (insn->dst_reg >= RT_TRACK_REGS)
		return ret->entries;
	if (insn->is_lea && insn->mem.base == RT_REG_RIP)
		tables->at[insn->dst_reg] = (struct rt_table){ { (uint64_t)insn->mem.disp }, insn->addr, 0, 4 };
	else if (read.entries)
		tables->read[insn->dst_reg] = read;
	else if (sum.entries)
		tables->into[insn->dst_reg] = sum;
	return ret->entries;
}
