/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/way.h"

#include "probe/flow.h"
#include "probe/making.h"

enum { BRANCHES_MAX = 128 };

void rt_way_begin(struct rt_way *way, const struct rt_symtab *symtab, struct rt_elfaddr start, uint8_t object)
{
	way->symtab = symtab;
	way->now.at = start;
	rt_track_init(&way->now.objects, object);
	rt_track_init(&way->now.fresh, RT_REG_NONE);
	way->over = false;
	rt_vec_clear(&way->branches);
}

bool rt_way_reaches(struct rt_way *way)
{
	for (size_t i = 0; way->over && i < way->branches.len; i++) {
		if (way->branches.data[i].at.v == way->now.at.v) {
			way->now = way->branches.data[i];
			way->over = false;
		}
	}
	return !way->over;
}

static bool remember(struct rt_way *way, struct rt_elfaddr target)
{
	struct rt_way_state *branch;

	for (size_t i = 0; i < way->branches.len; i++) {
		if (way->branches.data[i].at.v == target.v)
			return true;
	}
	if (target.v <= way->now.at.v || way->branches.len == BRANCHES_MAX)
		return true;
	branch = rt_vec_add(&way->branches);
	if (!branch)
		return false;
	*branch = way->now;
	branch->at = target;
	return true;
}

bool rt_way_pass(struct rt_way *way, const struct rt_insn *insn)
{
	struct rt_way_state *now = &way->now;
	const char *callee;

	rt_track_step(&now->objects, insn);
	rt_track_step(&now->fresh, insn);
	now->objects.change_count = now->fresh.change_count = 0;
	now->at.v += insn->length;
	callee = insn->call ? rt_flow_callee(way->symtab, insn) : NULL;
	if (callee && rt_making_allocates(callee))
		now->fresh.regs[RT_REG_RAX] = (struct rt_value){ .kind = RT_VALUE_OBJECT };
	if (!way->over && insn->jump && insn->has_target && !remember(way, insn->target))
		return false;
	way->over |= insn->ret || (insn->jump && !insn->conditional);
	return true;
}

void rt_way_deinit(struct rt_way *way)
{
	rt_vec_deinit(&way->branches);
}
