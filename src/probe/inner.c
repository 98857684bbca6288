/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constructors that are inlined into functions nobody named. The object of such
 * an instance cannot be read in its middle; but where the function around it
 * provably hands out that object as its own result, it is a constructor itself.
 *
 * Where that is not proven, but the function returns a T *, it is a find: what it returns may be a new object, an old
 * one with a reference more (a get that is inlined where its object cannot be read), or just an old one. The counter
 * tells; what else the function may do with other objects stays unseen, and is said to.
 */
#include <string.h>

#include "probe/build.h"
#include "probe/flow.h"
#include "probe/making.h"
#include "probe/spec_type.h"

enum {
	CALLS_MAX = 8, /* of one instance */
	SCOPES_MAX = 16,
	CODE_INSNS = 4000,
};

/* The function with code that an instance lies in. */
struct outer {
	struct rt_elfaddr start, end;
	const struct rt_symbol *symbol; /* NULL: has none */
	const struct rt_survey_function *declared;
};

struct inner {
	struct rt_plan_build *b;
	uint32_t type, function; /* indexes */
	const struct rt_inlined *list;
	size_t count;
};

/* The calls of one instance. */
struct calls {
	struct rt_elfaddr at[CALLS_MAX];
	size_t count, allocators;
	struct rt_elfaddr allocator; /* the last of them */
	bool cut;
};

static bool outer_of(struct rt_plan_build *b, struct rt_elfaddr at, struct outer *ret)
{
	struct outer o = { .declared = NULL };
	enum rt_clone clone;
	char base[256];
	size_t len;

	if (!rt_survey_range(&b->survey, at, &o.start, &o.end))
		return false;
	o.symbol = b->module->symtab ? rt_symtab_at(b->module->symtab, o.start) : NULL;
	if (o.symbol && o.symbol->addr.v != o.start.v)
		o.symbol = NULL;
	for (size_t i = 0; i < b->survey.functions.len && !o.declared; i++)
		if (b->survey.functions.data[i].has_body && b->survey.functions.data[i].addr.v == o.start.v)
			o.declared = &b->survey.functions.data[i];
	len = o.symbol ? rt_clone_base(o.symbol->name, &clone) : 0;
	if (!o.declared && len && len < sizeof(base)) {
		memcpy(base, o.symbol->name, len);
		base[len] = '\0';
		o.declared = rt_survey_function(&b->survey, base, NULL);
	}
	*ret = o;
	return o.declared != NULL;
}

/* Is a function of this name a constructor of the type already, other than the one that is looked at? */
static bool is_maker(const struct inner *in, const char *name)
{
	const struct rt_spec_type *type = in->b->plan->types.data[in->type].spec;

	for (size_t k = 0; name && k < type->functions.len; k++)
		if (k != in->function && type->functions.data[k].op == RT_OP_NEW &&
		    rt_spec_means(type->functions.data[k].name, name, rt_spec_is_told(type)))
			return true;
	return false;
}

static bool in_instance(struct inner *in, const struct rt_inlined *instance, struct rt_elfaddr at)
{
	struct rt_scope scopes[SCOPES_MAX];
	size_t n = rt_dwarf_scopes(in->b->module->dwarf, at, scopes, SCOPES_MAX);

	for (size_t i = 0; i < n; i++)
		if (scopes[i].inlined && scopes[i].entry.v == instance->start.v)
			return true;
	return false;
}

static void find_calls(struct inner *in, const struct outer *o, const struct rt_inlined *instance, struct calls *ret)
{
	struct rt_elfaddr at = o->start;

	*ret = (struct calls){ .count = 0 };
	for (unsigned n = 0; at.v < o->end.v; n++) {
		struct rt_insn insn;
		const char *name;

		if (n == CODE_INSNS || !rt_plan_decode(in->b, at, &insn)) {
			ret->cut = true;
			return;
		}
		if (insn.call && in_instance(in, instance, at)) {
			if (ret->count == CALLS_MAX) {
				ret->cut = true;
				return;
			}
			name = rt_flow_callee(in->b->module->symtab, &insn);
			if (name && rt_making_allocates(name)) {
				ret->allocators++;
				ret->allocator = at;
			}
			ret->at[ret->count++] = at;
		}
		at.v += insn.length;
	}
}

/* Does the function return the object of the instances, on every path? */
static bool proven(struct inner *in, const struct outer *o)
{
	const struct rt_plan_type *type = &in->b->plan->types.data[in->type];
	struct rt_elfaddr makers[CALLS_MAX];
	struct rt_flow_request request = { .image = in->b->module->image,
					   .symtab = in->b->module->symtab,
					   .decoder = in->b->decoder,
					   .start = o->start,
					   .end = o->end,
					   .calls = makers };
	struct calls calls = { .count = 0 };
	size_t instances = 0;

	if (type->counter_offset != RT_COUNTER_UNKNOWN) {
		request.counter = type->counter_offset;
		request.counter_size = type->counter_size;
	}
	if (o->symbol)
		(void)rt_survey_cold(&in->b->survey, o->symbol, &request.cold_start, &request.cold_end);
	for (size_t i = 0; i < in->count; i++) {
		if (in->list[i].start.v < o->start.v || in->list[i].start.v >= o->end.v)
			continue;
		find_calls(in, o, &in->list[i], &calls);
		if (calls.cut || !calls.count || instances == CALLS_MAX)
			return false;
		makers[instances++] = calls.allocators == 1 ? calls.allocator : calls.at[0];
		/* of several instances each must have one call that can be meant */
		if (instances > 1 && calls.allocators != 1 && calls.count > 1)
			return false;
	}
	request.call_count = instances;
	if (instances > 1)
		return rt_flow_returns(&request);
	request.call_count = 1;
	for (size_t i = 0; i < calls.count; i++) {
		makers[0] = calls.at[i];
		if (rt_flow_returns(&request))
			return true;
	}
	return false;
}

static struct rt_error *add_outer(struct rt_plan_build *b, uint32_t type, uint32_t function, const struct outer *o,
				  const struct rt_spec_function *as)
{
	struct rt_target target = { .type = type,
				    .function = function,
				    .name = o->declared->name,
				    .symbol = o->symbol,
				    .addr = o->start,
				    .as = *as,
				    .optional = as->hidden };

	return rt_plan_point(b, &target);
}

/* the structure that the function is declared to make, or to be given; NULL: not known */
static const char *structure_of(struct rt_plan_build *b, const struct rt_spec_function *f)
{
	const struct rt_survey_function *d = rt_survey_function(&b->survey, f->name, NULL);
	const struct rt_param *p = d && f->place == RT_PLACE_RET ? &d->returns : rt_survey_param(&b->survey, d, f->arg);

	return p && p->pointers == 1 ? p->pointee : NULL;
}

/* a function that returns an object of the type that f works on, and whose result is no victim of the compiler */
static bool returns_such(struct rt_plan_build *b, const struct rt_spec_function *f, const struct outer *o)
{
	const char *structure = structure_of(b, f);
	const struct rt_param *r = &o->declared->returns;

	return structure && r->pointers == 1 && r->pointee && !strcmp(r->pointee, structure) &&
	       !(o->symbol && strstr(o->symbol->name, ".isra."));
}

/* what the function is to the type is known already */
static bool is_known(struct rt_plan_build *b, uint32_t type, const struct outer *o)
{
	const struct rt_spec_type *spec = b->plan->types.data[type].spec;

	for (size_t i = 0; i < spec->functions.len; i++)
		if (rt_spec_means(spec->functions.data[i].name, o->declared->name, rt_spec_is_told(spec)))
			return true;
	for (size_t i = 0; i < b->plan->points.len; i++)
		if (b->plan->points.data[i].module == b->module->id &&
		    b->plan->points.data[i].function.v == o->start.v &&
		    b->plan->points.data[i].type == b->plan->types.data[type].id)
			return true;
	return false;
}

struct rt_error *rt_plan_inner_find(struct rt_plan_build *b, uint32_t type, uint32_t function, struct rt_elfaddr at)
{
	struct rt_spec_function f = b->plan->types.data[type].spec->functions.data[function];
	struct outer o;

	if (b->plan->types.data[type].counter_offset == RT_COUNTER_UNKNOWN || !b->plan->options.return_points ||
	    (f.op != RT_OP_NEW && f.op != RT_OP_GET) || !outer_of(b, at, &o) || !returns_such(b, &f, &o) ||
	    is_known(b, type, &o))
		return NULL;
	f.op = RT_OP_GET;
	f.place = RT_PLACE_RET;
	f.arg = 0;
	f.condition = RT_IF_ALWAYS;
	f.hidden = f.guessed = true;
	return add_outer(b, type, function, &o, &f);
}

struct rt_error *rt_plan_inner(struct rt_plan_build *b, uint32_t type, uint32_t function, const struct rt_inlined *list,
			       size_t count, size_t *ret_unseen)
{
	const struct rt_spec_function *f = &b->plan->types.data[type].spec->functions.data[function];
	struct inner in = { .b = b, .type = type, .function = function, .list = list, .count = count };
	_cleanup_(rt_map_deinit) struct rt_map answers = { 0 }; /* start of a function -> 1 yes, 2 no, 3 no: a find */
	size_t unseen = 0;

	for (size_t i = 0; i < count; i++) {
		struct outer o;
		uint64_t *answer;
		bool seen;

		if (f->op != RT_OP_NEW || !rt_result_is_object(f) || f->place != RT_PLACE_RET) {
			unseen++;
			continue;
		}
		/* instances that lie in other constructors of the type show when those return */
		if (is_maker(&in, list[i].caller))
			continue;
		if (!outer_of(b, list[i].start, &o) || o.declared->returns.pointers != 1) {
			RT_TRY(rt_plan_first_count(b, type, function, &list[i], f->name, &seen));
			unseen += !seen;
			continue;
		}
		if (is_maker(&in, o.declared->name))
			continue;
		answer = rt_map_put(&answers, rt_key_make(o.start.v, 0), NULL);
		if (!answer)
			return rt_error_nomem();
		if (!*answer) {
			*answer = proven(&in, &o) ? 1 : 2;
			if (*answer == 1)
				RT_TRY(add_outer(b, type, function, &o, f));
		}
		if (*answer == 1)
			continue;
		RT_TRY(rt_plan_first_count(b, type, function, &list[i], f->name, &seen));
		unseen += !seen;
		/* once for each function */
		if (!seen && *answer == 2) {
			*answer = 3;
			RT_TRY(rt_plan_inner_find(b, type, function, list[i].start));
		}
	}
	*ret_unseen = unseen;
	return NULL;
}
