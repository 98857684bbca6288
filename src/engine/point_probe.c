// SPDX-License-Identifier: GPL-2.0-only
#include "engine/point_probe.h"

#include <sys/socket.h>

#include "probe/call.h"

static uint8_t result_of(const struct rt_point *p)
{
	switch (p->place) {
	case RT_PLACE_RET:
		return RT_PROBE_RESULT;
	case RT_PLACE_RET_PTR:
		return RT_PROBE_RESULT_PTR;
	case RT_PLACE_OUT:
		return RT_PROBE_OUT;
	}
	return RT_PROBE_AT_ENTRY;
}

/* A reference is handed out through a T **: what that points to may be a member of a block. */
static bool takes_into(const struct rt_point *p)
{
	return (p->place == RT_PLACE_OUT || p->place == RT_PLACE_ARG_PTR) && (p->op == RT_OP_NEW || p->op == RT_OP_GET);
}

static const char *set_object(struct rt_probe *probe, const struct rt_point *p)
{
	if (probe->result == RT_PROBE_RESULT || probe->result == RT_PROBE_RESULT_PTR)
		return NULL;
	/* only what a marker says may do without a register: a constant, or an address that never moves */
	if (p->reg > RT_REG_RIP && !p->scale && !p->reg_offset)
		return "the object is in no register here";
	probe->reg = p->reg;
	probe->reg_offset = p->reg_offset;
	probe->index = p->index;
	probe->scale = p->scale;
	probe->width = p->width;
	probe->deref = p->deref;
	probe->stored = p->stored;
	probe->look = p->look;
	probe->marks |= p->stored || p->filled || takes_into(p) ? RT_MARKS_SLOT : 0;
	if (p->place == RT_PLACE_ARG_PTR) {
		probe->kind |= RT_PROBE_SLOT;
		if (!probe->deref)
			probe->deref = 1;
	}
	/* The slot itself is what is kept from the entry, where arguments are in registers. */
	if (p->place == RT_PLACE_OUT)
		probe->deref = 0;
	return probe->deref > RT_PROBE_DEREF_MAX ? "the object is behind too many pointers" : NULL;
}

static const char *call_probe(const struct rt_point *p, struct rt_probe *ret)
{
	*ret = (struct rt_probe){
		.delta = p->delta,
		.flags = p->flags,
		.op = p->op,
		.kind = RT_PROBE_SITE | (p->size_reg == RT_REG_NONE ? 0 : RT_PROBE_SIZE) |
			(p->size_to ? RT_PROBE_TO : 0) | (p->match_reg == RT_REG_NONE ? 0 : RT_PROBE_MATCH) |
			(p->message ? RT_PROBE_MESSAGE : 0),
		.result = result_of(p),
		.condition = p->condition,
		.result_size = p->result_size,
		.reg = p->reg,
		.reg_offset = p->reg_offset,
		.width = p->width,
		.index = p->message == RT_CALL_MANY_MESSAGES ? sizeof(struct mmsghdr)
			 : p->message                        ? 0
							     : p->size_reg,
		.scale = p->match_reg,
		.counter_offset = p->match_reg == RT_REG_NONE ? p->behind : p->match,
	};
	return NULL;
}

const char *rt_point_probe(const struct rt_point *p, struct rt_probe *ret)
{
	bool at_return = rt_point_at_return(p);
	struct rt_probe probe = {
		.delta = p->delta,
		.flags = p->flags | (at_return ? RT_EV_AT_RETURN : 0),
		.op = p->op,
		.cfa_delta = p->cfa_delta,
		.kind = p->kind == RT_POINT_INSN ? RT_PROBE_SITE
			: at_return              ? RT_PROBE_RETURN
						 : 0,
		.result = at_return ? result_of(p) : RT_PROBE_AT_ENTRY,
		.condition = p->condition,
		.result_size = p->result_size ? p->result_size : 4,
	};
	const char *why;

	probe.type = p->type;
	probe.start = p->start;
	probe.class_at = probe.kind & RT_PROBE_SLOT || p->kind == RT_POINT_CALL ? 0 : p->class_at;
	if (p->sampled)
		probe.kind |= RT_PROBE_SAMPLED;
	if (p->owned)
		probe.marks = RT_MARKS_OBJECT;
	if (p->kind == RT_POINT_CALL)
		return call_probe(p, ret);
	if (at_return && (p->kind == RT_POINT_INSN || p->cfa_delta != 8))
		return "a return can only be seen from the function's first instructions";
	if (!at_return && result_of(p) != RT_PROBE_AT_ENTRY)
		return "a result can only be seen at the function's return";
	why = set_object(&probe, p);
	if (why)
		return why;
	if (p->counter_offset != RT_COUNTER_UNKNOWN &&
	    (p->counter_size == 1 || p->counter_size == 2 || p->counter_size == 4 || p->counter_size == 8)) {
		probe.counter_offset = p->counter_offset;
		probe.counter_size = p->counter_size;
		probe.counter_bias = p->counter_bias;
	}
	*ret = probe;
	return NULL;
}
