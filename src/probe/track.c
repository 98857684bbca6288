/* SPDX-License-Identifier: GPL-2.0-only */
/* Only additions of constants, copies and stack slots are followed: that is what counting code consists of. */
#include "probe/track.h"

#include <string.h>

static const struct rt_value unknown;

void rt_track_init(struct rt_track *track, uint8_t reg)
{
	memset(track, 0, sizeof(*track));
	track->regs[RT_REG_RSP] = (struct rt_value){ .kind = RT_VALUE_FRAME, .n = -8 };
	if (reg < RT_TRACK_REGS)
		track->regs[reg] = (struct rt_value){ .kind = RT_VALUE_OBJECT };
}

static struct rt_value reg_value(const struct rt_track *t, uint8_t reg)
{
	return reg < RT_TRACK_REGS ? t->regs[reg] : unknown;
}

static void set_reg(struct rt_track *t, uint8_t reg, struct rt_value v)
{
	if (reg < RT_TRACK_REGS && reg != RT_REG_RSP)
		t->regs[reg] = v;
}

static int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Address of the memory operand as OBJECT + n or FRAME + n. */
static struct rt_value address_of(const struct rt_track *t, const struct rt_insn *insn)
{
	struct rt_value v;

	if (!insn->has_mem || insn->mem.segment || insn->mem.index != RT_REG_NONE)
		return unknown;
	v = reg_value(t, insn->mem.base);
	if (v.kind != RT_VALUE_OBJECT && v.kind != RT_VALUE_FRAME)
		return unknown;
	v.n = wrap_add(v.n, insn->mem.disp);
	return v;
}

static struct rt_value slot_value(const struct rt_track *t, int64_t at)
{
	for (unsigned i = 0; i < t->slot_count; i++)
		if (t->slots[i].at == at)
			return t->slots[i].value;
	return unknown;
}

/* Stack memory [at, at + size) now holds v. */
static void set_slot(struct rt_track *t, int64_t at, unsigned size, struct rt_value v)
{
	unsigned keep = 0;

	for (unsigned i = 0; i < t->slot_count; i++)
		if (t->slots[i].at <= wrap_add(at, -8) || t->slots[i].at >= wrap_add(at, size))
			t->slots[keep++] = t->slots[i];
	t->slot_count = keep;
	if (v.kind == RT_VALUE_UNKNOWN || keep == RT_TRACK_SLOTS)
		return;
	t->slots[keep].at = at;
	t->slots[keep].value = v;
	t->slot_count++;
}

static void add_change(struct rt_track *t, int64_t offset, unsigned size, bool known, int64_t delta)
{
	if (t->change_count == RT_TRACK_CHANGES) {
		t->too_many = true;
		return;
	}
	t->changes[t->change_count++] =
		(struct rt_change){ .offset = offset, .size = (uint8_t)size, .known = known, .delta = delta };
}

static int64_t narrow(int64_t v, unsigned size)
{
	unsigned shift = size && size < 8 ? 64 - 8 * size : 0;

	return (int64_t)((uint64_t)v << shift) >> shift;
}

/* v is stored at OBJECT + offset. */
static void store_field(struct rt_track *t, int64_t offset, unsigned size, struct rt_value v)
{
	if (v.kind == RT_VALUE_FIELD && v.n == offset && v.size == size)
		add_change(t, offset, size, true, narrow(v.delta, size));
	else
		add_change(t, offset, size, false, 0);
}

/* add, sub, inc, dec, xadd on memory of the object */
static void change_field(struct rt_track *t, const struct rt_insn *insn, int64_t offset)
{
	struct rt_value by = insn->has_imm ? (struct rt_value){ .kind = RT_VALUE_CONST, .n = insn->imm }
					   : reg_value(t, insn->src_reg);
	int64_t delta = insn->is_sub ? (int64_t)(0 - (uint64_t)by.n) : by.n;

	add_change(t, offset, insn->mem.size, by.kind == RT_VALUE_CONST, narrow(delta, insn->mem.size));
}

static void step_memory_write(struct rt_track *t, const struct rt_insn *insn, struct rt_value at)
{
	unsigned size = insn->mem.size;
	struct rt_value source = insn->has_imm ? (struct rt_value){ .kind = RT_VALUE_CONST, .n = insn->imm }
					       : reg_value(t, insn->src_reg);

	if (at.kind == RT_VALUE_FRAME) {
		set_slot(t, at.n, size, insn->is_mov && size >= 4 ? source : unknown);
		return;
	}
	if (at.kind != RT_VALUE_OBJECT) {
		t->elsewhere = true;
		return;
	}
	if (insn->is_add || insn->is_sub || insn->is_xadd)
		change_field(t, insn, at.n);
	else if (insn->is_mov || insn->is_cmpxchg)
		store_field(t, at.n, size, source);
	else
		add_change(t, at.n, size, false, 0);
}

/* The value that a mov, lea, add or sub gives its register. */
static struct rt_value result_of(const struct rt_track *t, const struct rt_insn *insn, struct rt_value at)
{
	struct rt_value v = unknown;
	int64_t by = 0;

	if (insn->is_zero)
		return (struct rt_value){ .kind = RT_VALUE_CONST };
	if (insn->is_mov) {
		if (insn->has_imm)
			return (struct rt_value){ .kind = RT_VALUE_CONST, .n = insn->imm };
		if (!insn->has_mem)
			v = reg_value(t, insn->src_reg);
		else if (at.kind == RT_VALUE_FRAME)
			v = slot_value(t, at.n);
		else if (at.kind == RT_VALUE_OBJECT)
			return (struct rt_value){ .kind = RT_VALUE_FIELD, .size = insn->mem.size, .n = at.n };
	} else if (insn->is_lea) {
		if (insn->mem.index != RT_REG_NONE)
			return unknown;
		v = reg_value(t, insn->mem.base);
		by = insn->mem.disp;
	} else if ((insn->is_add || insn->is_sub) && insn->has_imm && !insn->has_mem) {
		v = reg_value(t, insn->dst_reg);
		by = insn->is_sub ? (int64_t)(0 - (uint64_t)insn->imm) : insn->imm;
	}
	/* unoptimised code subtracts by adding what it negated */
	if (insn->is_neg && !insn->has_mem) {
		v = reg_value(t, insn->dst_reg);
		v = v.kind == RT_VALUE_CONST
			    ? (struct rt_value){ .kind = RT_VALUE_CONST, .n = (int64_t)(0 - (uint64_t)v.n) }
			    : unknown;
	}
	if (v.kind == RT_VALUE_FIELD) {
		/* half a counter is not the counter */
		if (insn->width != v.size)
			return unknown;
		v.delta = wrap_add(v.delta, by);
		return v;
	}
	if (v.kind != RT_VALUE_CONST && insn->width != 8)
		return unknown;
	v.n = wrap_add(v.n, by);
	return v;
}

static void step_stack_pointer(struct rt_track *t, const struct rt_insn *insn)
{
	struct rt_value *sp = &t->regs[RT_REG_RSP];

	if (insn->call || !(insn->writes & (1u << RT_REG_RSP)))
		return;
	if (sp->kind == RT_VALUE_FRAME && insn->sp_known)
		sp->n += insn->sp_delta;
	else
		*sp = unknown;
}

void rt_track_step(struct rt_track *track, const struct rt_insn *insn)
{
	struct rt_value at = address_of(track, insn), result = unknown;
	struct rt_value pushed =
		insn->push && !insn->has_mem && !insn->has_imm ? reg_value(track, insn->dst_reg) : unknown;
	bool xadd = insn->is_xadd && at.kind == RT_VALUE_OBJECT;
	uint8_t target = insn->dst_reg;

	if (insn->pop && track->regs[RT_REG_RSP].kind == RT_VALUE_FRAME)
		result = slot_value(track, track->regs[RT_REG_RSP].n);
	else if (!insn->has_mem || !insn->mem.writes)
		result = result_of(track, insn, at);
	if (insn->has_mem && insn->mem.writes)
		step_memory_write(track, insn, at);
	for (unsigned r = 0; r < RT_TRACK_REGS; r++)
		if (insn->writes & (1u << r))
			set_reg(track, (uint8_t)r, unknown);
	step_stack_pointer(track, insn);
	if (xadd) {
		/* the register gets what the field was */
		target = insn->src_reg;
		result = (struct rt_value){ .kind = RT_VALUE_FIELD, .size = insn->mem.size, .n = at.n };
	}
	if (target < RT_TRACK_REGS && (insn->writes & (1u << target)) && !insn->call)
		set_reg(track, target, result);
	if (insn->is_cmpxchg && at.kind == RT_VALUE_OBJECT)
		set_reg(track, RT_REG_RAX,
			(struct rt_value){ .kind = RT_VALUE_FIELD, .size = insn->mem.size, .n = at.n });
	if (insn->push && track->regs[RT_REG_RSP].kind == RT_VALUE_FRAME)
		set_slot(track, track->regs[RT_REG_RSP].n, 8, pushed);
}

uint8_t rt_track_object(const struct rt_track *track, uint8_t prefer)
{
	if (prefer < RT_TRACK_REGS && track->regs[prefer].kind == RT_VALUE_OBJECT && !track->regs[prefer].n)
		return prefer;
	for (unsigned r = 0; r < RT_TRACK_REGS; r++)
		if (track->regs[r].kind == RT_VALUE_OBJECT && !track->regs[r].n)
			return (uint8_t)r;
	return RT_REG_NONE;
}

void rt_track_learn(struct rt_track *track, uint8_t reg, bool in_memory, int64_t offset)
{
	const struct rt_value object = { .kind = RT_VALUE_OBJECT }, at = reg_value(track, reg);

	if (!in_memory)
		set_reg(track, reg, object);
	else if (at.kind == RT_VALUE_FRAME)
		set_slot(track, wrap_add(at.n, offset), 8, object);
}

bool rt_track_cfa(const struct rt_track *track, int32_t *ret)
{
	const struct rt_value *sp = &track->regs[RT_REG_RSP];

	if (sp->kind != RT_VALUE_FRAME || sp->n > 0 || sp->n < -(1 << 20))
		return false;
	*ret = (int32_t)-sp->n;
	return true;
}

bool rt_track_bias(const struct rt_track *track, int64_t offset, uint32_t size, int8_t *ret)
{
	int64_t sum = 0;

	if (track->too_many)
		return false;
	for (unsigned i = 0; i < track->change_count; i++) {
		const struct rt_change *c = &track->changes[i];

		if (c->offset >= wrap_add(offset, size) || wrap_add(c->offset, c->size) <= offset)
			continue;
		if (!c->known || c->offset != offset || c->size != size || c->delta < -64 || c->delta > 64)
			return false;
		sum -= c->delta;
	}
	if (sum < INT8_MIN || sum > INT8_MAX)
		return false;
	*ret = (int8_t)sum;
	return true;
}
