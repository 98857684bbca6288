/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a program counts the references of a type in the open (x->refs++), or in functions that are always inlined:
 * asked of the planner, which looks for just these places once the type is known.
 */
#include <string.h>

#include "probe/counted.h"
#include "probe/scan_build.h"

enum {
	INSTANCES_MAX = 16, /* of one function, looked at */
	CODE_INSNS = 2000
};

/* The scan's tables are lent for as long as it takes: they may grow. */
static struct rt_plan_build lend(struct rt_scan *s, struct rt_plan *plan)
{
	return (struct rt_plan_build){
		.plan = plan, .module = s->module, .survey = s->survey, .decoder = s->decoder, .decoded = s->decoded
	};
}

static void take_back(struct rt_scan *s, struct rt_plan_build *b)
{
	s->survey = b->survey;
	rt_vec_deinit(&b->targets);
	rt_vec_deinit(&b->late);
	rt_map_deinit(&b->taken);
	rt_map_deinit(&b->jumped);
	rt_vec_deinit(&b->tables);
	rt_arena_deinit(&b->arena);
}

static bool instance_counts(struct rt_plan_build *b, const struct rt_plan_type *type, int16_t delta,
			    const struct rt_inlined *instance)
{
	struct rt_counted counted;
	bool found = false;

	if (!rt_counted_find(b, type, delta, instance, &counted))
		return false;
	for (size_t i = 0; i < counted.sites.len; i++)
		found |= !counted.sites.data[i].offset;
	rt_counted_deinit(&counted);
	return found;
}

bool rt_scan_counts_inlined(struct rt_scan *s, const char *function, unsigned arg, const struct rt_member *counter,
			    int16_t delta)
{
	const struct rt_plan_type type = { .counter_offset = (int32_t)counter->offset,
					   .counter_size = (uint32_t)counter->size };
	_cleanup_error_ struct rt_error *err = NULL;
	_cleanup_free_ struct rt_inlined *list = NULL;
	struct rt_plan_build b;
	bool found = false;
	size_t count = 0;

	err = rt_dwarf_inlined(s->module->dwarf, function, arg, &list, &count);
	if (err)
		return false;
	b = lend(s, NULL);
	for (size_t i = 0; i < count && i < INSTANCES_MAX && !found; i++)
		found = instance_counts(&b, &type, delta, &list[i]);
	take_back(s, &b);
	return found;
}

/* insn adds 1 to what lies as far behind a register as the counter does in an object, and not in the frame */
static bool counts_one(struct rt_plan_build *b, const struct rt_insn *insn, const struct rt_making *m)
{
	const struct rt_mem_operand *mem = &insn->mem;
	int64_t delta;

	return insn->has_mem && mem->writes && mem->index == RT_REG_NONE && mem->base < RT_TRACK_REGS &&
	       mem->base != RT_REG_RSP && mem->disp == m->counter && mem->size == m->counter_size &&
	       rt_counted_delta(b, insn, &delta) && delta == 1;
}

bool rt_scan_counts_up(struct rt_scan *s, const struct rt_symbol *function, const struct rt_making *m)
{
	struct rt_elfaddr at = function->addr, end = { at.v + function->size };
	struct rt_plan_build b = lend(s, NULL);
	struct rt_insn insn;
	bool found = false;

	for (unsigned n = 0; n < CODE_INSNS && at.v < end.v && !found; n++, at.v += insn.length) {
		if (!rt_plan_decode(&b, at, &insn))
			break;
		found = counts_one(&b, &insn, m);
	}
	take_back(s, &b);
	return found;
}

static struct rt_error *look(struct rt_scan *s, struct rt_plan *plan, uint8_t *ret_counted)
{
	struct rt_plan_build b = lend(s, plan);
	struct rt_error *err = rt_plan_open_coded(&b);

	take_back(s, &b);
	for (size_t i = 0; i < plan->points.len; i++) {
		const struct rt_point *p = &plan->points.data[i];

		if (!(p->flags & RT_EV_MAYBE))
			ret_counted[p->type - 1] |= p->op == RT_OP_GET ? RT_SCAN_COUNTS_UP : RT_SCAN_COUNTS_DOWN;
	}
	return err;
}

struct rt_error *rt_scan_counted_open(struct rt_scan *s, const struct rt_spec *spec, uint8_t *ret_counted)
{
	static const struct rt_plan_options options = { 0 };
	_cleanup_(rt_plan_destroyp) struct rt_plan *plan = NULL;

	memset(ret_counted, 0, spec->types.len);
	if (!spec->types.len)
		return NULL;
	RT_TRY(rt_plan_create(spec, &options, &plan));
	return look(s, plan, ret_counted);
}
