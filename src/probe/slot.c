/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/handing.h"
#include "probe/spec_type.h"

static struct rt_error *add(struct rt_plan_build *b, uint32_t type, const struct rt_point *p, const char *name)
{
	bool mine = false;

	RT_TRY(rt_plan_take_place(b, type, p, &mine));
	return mine ? rt_plan_add(b, type, (uint32_t)b->plan->types.data[type].spec->functions.len, p, name) : NULL;
}

struct rt_error *rt_plan_slot(struct rt_plan_build *b, const struct rt_slot *slot, const char *name)
{
	const struct rt_insn *insn = slot->insn;
	struct rt_point p = { .kind = RT_POINT_INSN,
			      .op = RT_OP_MOVE,
			      .guessed = true,
			      .flags = (uint16_t)(RT_EV_INLINE | RT_EV_HIDDEN | (slot->maybe ? RT_EV_MAYBE : 0)),
			      .address = insn->addr,
			      .function = insn->addr,
			      .cost = insn->cost,
			      .cfa_delta = rt_plan_cfa_delta(b, insn->addr),
			      .place = RT_PLACE_ARG_PTR,
			      .frees = slot->freed,
			      .filled = slot->filled,
			      .ender = (char *)(uintptr_t)slot->ender, /* rt_plan_add() copies it */
			      .deref = 1,
			      .reg = slot->reg,
			      .reg_offset = slot->offset,
			      .counter_offset = RT_COUNTER_UNKNOWN };

	if (slot->reg == RT_REG_RIP)
		p.reg_offset -= (int64_t)insn->addr.v; /* it lies wherever the file was loaded */
	if (slot->scale) {
		p.index = slot->index;
		p.scale = slot->scale;
	}
	if ((insn->cost != RT_COST_EMULATED && insn->cost != RT_COST_STEP) || !rt_plan_has_room(b, insn->addr, &p) ||
	    !rt_image_offset(b->module->image, insn->addr, &p.offset))
		return NULL;
	if (!slot->fresh)
		RT_TRY(add(b, slot->type, &p, name));
	if (slot->stored == RT_REG_NONE)
		return NULL;
	p.place = RT_PLACE_ARG;
	p.deref = 0;
	p.stored = (uint8_t)(slot->stored + 1);
	return add(b, slot->type, &p, name);
}
