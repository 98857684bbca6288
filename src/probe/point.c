/* SPDX-License-Identifier: GPL-2.0-only */
/* Points for functions with code of their own. */
#include <string.h>

#include "probe/build.h"

/* Bytes of a value of this type in a register. */
static uint8_t type_size(const struct rt_param *type)
{
	if (!type || !type->type || type->pointers)
		return 8;
	if (strstr(type->type, "long"))
		return 8;
	if (strstr(type->type, "_Bool") || strstr(type->type, "bool") || strstr(type->type, "char"))
		return 1;
	return strstr(type->type, "short") ? 2 : 4;
}

static uint8_t result_size(struct rt_plan_build *b, const struct rt_target *t, const struct rt_spec_function *f)
{
	const struct rt_survey_function *declared = rt_survey_declaration(&b->survey, t->name, t->addr);

	if (declared && declared->returns.type)
		return type_size(&declared->returns);
	/* without debug info: an object is a pointer, everything else that is compared is most likely an int */
	return f->place == RT_PLACE_RET || f->place == RT_PLACE_RET_PTR ? 8 : 4;
}

/* Why the return of this function must not be hooked; NULL: it may be. */
static const char *return_refused(struct rt_plan_build *b, const struct rt_target *t)
{
	struct rt_elfaddr start, end;
	bool lsda = false;

	if (!b->plan->options.return_points)
		return "its result is needed, and this engine does not see results";
	if (b->plan->options.force_returns)
		return NULL;
	if (t->symbol && strncmp(t->symbol->name, "_Z", 2) == 0)
		return "its result is needed, but exceptions may leave a C++ function and a hooked return breaks them";
	if (b->module->dwarf && rt_dwarf_fde(b->module->dwarf, t->addr, &start, &end, &lsda) && lsda)
		return "its result is needed, but it has exception handlers and a hooked return breaks them";
	return NULL;
}

/* Is this (address, op) a point already? A second type is told so. What counts nothing may look at several arguments.
 */
static struct rt_error *take_address(struct rt_plan_build *b, const struct rt_target *t, uint8_t op, bool *ret_mine)
{
	struct rt_plan_type *type = &b->plan->types.data[t->type];
	uint64_t which = op == RT_OP_MOVE ? (uint64_t)op | (uint64_t)t->as.place << 8 | (uint64_t)t->as.arg << 16 : op;
	bool made;
	uint64_t *owner = rt_map_put(&b->taken, rt_key_make(t->addr.v, which), &made);

	if (!owner)
		return rt_error_nomem();
	*ret_mine = made;
	if (made) {
		*owner = type->id;
		return NULL;
	}
	if (*owner == type->id) {
		type->seen[t->function] |= RT_SEEN_POINT;
		return NULL;
	}
	if (t->optional)
		return NULL;
	return rt_plan_refuse(b, t->type, t->function, t->name, RT_E_UNARMED, "it is already counted for type %s",
			      b->plan->types.data[*owner - 1].spec->name);
}

static struct rt_error *refuse(struct rt_plan_build *b, const struct rt_target *t, const char *why)
{
	return t->optional ? NULL : rt_plan_refuse(b, t->type, t->function, t->name, RT_E_UNARMED, "%s", why);
}

static void set_place(const struct rt_spec_function *f, const struct rt_site *site, struct rt_point *p)
{
	p->place = f->place;
	p->condition = f->condition;
	p->reg = RT_REG_NONE;
	if (f->place == RT_PLACE_RET || f->place == RT_PLACE_RET_PTR)
		return;
	p->reg = site->reg;
	p->deref = (uint8_t)rt_spec_levels(f);
	p->reg_offset = f->place == RT_PLACE_ARG_PTR ? f->behind : 0;
}

struct rt_error *rt_plan_point(struct rt_plan_build *b, const struct rt_target *t)
{
	const struct rt_plan_type *type = &b->plan->types.data[t->type];
	const struct rt_spec_function *f = &t->as;
	bool at_return = rt_needs_return(f), result = f->place >= RT_PLACE_RET;
	struct rt_site_request request = { .image = b->module->image,
					   .decoder = b->decoder,
					   .entry = t->addr,
					   .start = t->addr,
					   .reg = f->arg ? (uint8_t)rt_reg_argument(f->arg) : RT_REG_NONE,
					   .return_slot = at_return,
					   .slot = f->place == RT_PLACE_ARG_PTR,
					   .first_insn = b->plan->options.first_insn,
					   .avoid_nop5 = b->plan->options.avoid_nop5,
					   .room = b->plan->options.room,
					   .breakpoints = b->plan->options.breakpoints };
	struct rt_point p = { .kind = at_return ? RT_POINT_RETURN : RT_POINT_ENTRY, .op = f->op, .function = t->addr };
	struct rt_site site;
	const char *why;
	bool mine = false;

	RT_TRY(take_address(b, t, f->op, &mine));
	if (!mine)
		return NULL;
	why = at_return ? return_refused(b, t) : NULL;
	if (why && b->plan->options.return_points && rt_result_is_object(f) && !t->optional)
		return rt_vec_push(&b->late, ((struct rt_late){ .target = *t, .why = why })) ? NULL : rt_error_nomem();
	if (why)
		return refuse(b, t, why);
	if (t->symbol && t->symbol->size)
		request.end.v = t->addr.v + t->symbol->size;
	else
		(void)rt_survey_range(&b->survey, t->addr, &request.start, &request.end);
	if (t->symbol)
		(void)rt_survey_cold(&b->survey, t->symbol, &request.cold_start, &request.cold_end);
	if (!rt_site_find(&request, &site, &why))
		return refuse(b, t, why);
	if (!rt_image_offset(b->module->image, site.address, &p.offset))
		return refuse(b, t, "its code is not in the file");
	set_place(f, &site, &p);
	p.address = site.address;
	p.cost = site.cost;
	p.before = site.before;
	p.breakpoint = site.breakpoint;
	p.cfa_delta = site.cfa_delta;
	p.delta = rt_op_delta(f->op, type->start);
	p.guessed = f->guessed;
	p.first = f->place == RT_PLACE_ARG && f->arg == 1;
	p.flags = (uint16_t)((f->hidden ? RT_EV_HIDDEN : 0) | (at_return ? RT_EV_AT_RETURN : 0) |
			     (t->maybe ? RT_EV_MAYBE : 0));
	p.result_size = at_return ? result_size(b, t, f) : 0;
	/* where the result names the object, the counter is read when the operation is over, and is told as it is */
	if (f->op == RT_OP_MOVE)
		p.counter_offset = RT_COUNTER_UNKNOWN; /* an object of another type may be there */
	else
		rt_plan_set_counter(type, result || f->place == RT_PLACE_ARG_PTR ? NULL : &site.track, &p);
	return rt_plan_add(b, t->type, t->function, &p, t->name);
}

struct rt_error *rt_plan_points(struct rt_plan_build *b)
{
	for (size_t i = 0; i < b->targets.len; i++)
		RT_TRY(rt_plan_point(b, &b->targets.data[i]));
	return NULL;
}
