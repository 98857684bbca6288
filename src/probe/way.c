/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/way.h"

#include "probe/flow.h"
#include "probe/making.h"

enum { BRANCHES_MAX = 128 };

void rt_way_begin(struct rt_way *way, const struct rt_symtab *symtab, const struct rt_symbol *function, uint8_t object)
{
	way->symtab = symtab;
	way->start = way->now.at = function->addr;
	way->end = (struct rt_elfaddr){ function->addr.v + function->size };
	rt_track_init(&way->now.objects, object);
	rt_track_init(&way->now.fresh, RT_REG_NONE);
	way->over = way->again = false;
	rt_vec_clear(&way->branches);
	rt_vec_clear(&way->seen);
}

/* How much a state is worth: 2 where some register or variable holds an object, else 1. */
static uint8_t level(const struct rt_way_state *state)
{
	const struct rt_track *objects = &state->objects;

	for (unsigned i = 0; i < RT_TRACK_REGS; i++)
		if (objects->regs[i].kind == RT_VALUE_OBJECT)
			return 2;
	for (unsigned i = 0; i < objects->slot_count; i++)
		if (objects->slots[i].value.kind == RT_VALUE_OBJECT)
			return 2;
	return 1;
}

/* at this place was a state as good as this one */
static bool was_reached(const struct rt_way *way, struct rt_elfaddr at, const struct rt_way_state *state)
{
	uint64_t offset = at.v - way->start.v;

	return offset < way->seen.len && way->seen.data[offset] >= level(state);
}

static bool note_reached(struct rt_way *way)
{
	uint64_t offset = way->now.at.v - way->start.v;
	uint8_t now = level(&way->now);

	while (way->seen.len <= offset) {
		if (!rt_vec_push(&way->seen, 0))
			return false;
	}
	if (way->seen.data[offset] < now)
		way->seen.data[offset] = now;
	return true;
}

bool rt_way_goes_on(struct rt_way *way)
{
	if (way->now.at.v < way->end.v && !(way->again && (way->over || was_reached(way, way->now.at, &way->now))))
		return true;
	for (size_t i = 0; i < way->branches.len; i++) {
		if (!was_reached(way, way->branches.data[i].at, &way->branches.data[i])) {
			way->now = way->branches.data[i];
			way->over = false;
			way->again = true;
			return true;
		}
	}
	return false;
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
	struct rt_way_state *branch = NULL;

	for (size_t i = 0; i < way->branches.len && !branch; i++) {
		if (way->branches.data[i].at.v == target.v)
			branch = &way->branches.data[i];
	}
	if ((branch && level(branch) >= level(&way->now)) || target.v < way->start.v || target.v >= way->end.v ||
	    was_reached(way, target, &way->now) || (!branch && way->branches.len == BRANCHES_MAX))
		return true;
	branch = branch ?: rt_vec_add(&way->branches);
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

	if (!way->over && !note_reached(way))
		return false;
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
	rt_vec_deinit(&way->seen);
}
