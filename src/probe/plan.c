/* SPDX-License-Identifier: GPL-2.0-only */
/* The plan as data, and the planning of one module: resolve, find counters, choose sites. */
#include "probe/plan.h"

#include <stdarg.h>
#include <string.h>

#include "base/fs.h"
#include "probe/build.h"

const char *rt_probe_cost_name(enum rt_probe_cost cost)
{
	static const char *const names[] = { [RT_COST_EMULATED] = "emulated",
					     [RT_COST_STEP] = "single-stepped",
					     [RT_COST_AVOID] = "5-byte nop",
					     [RT_COST_NEVER] = "never" };

	return (unsigned)cost < sizeof(names) / sizeof(names[0]) ? names[cost] : "?";
}

int16_t rt_op_delta(uint8_t op, int32_t start)
{
	switch (op) {
	case RT_OP_NEW:
		return start >= 0 && start <= INT16_MAX ? (int16_t)start : 1;
	case RT_OP_GET:
		return 1;
	case RT_OP_PUT:
		return -1;
	default:
		return 0;
	}
}

bool rt_plan_decode(const struct rt_plan_build *b, struct rt_elfaddr at, struct rt_insn *ret)
{
	enum { LONGEST = 16 }; /* bytes of an instruction */
	struct rt_insn *known = b->decoded ? &b->decoded[at.v / 2 % RT_DECODED] : NULL;

	if (known && known->length && known->addr.v == at.v) {
		*ret = *known;
		return true;
	}
	if (!rt_decode(b->decoder, rt_image_at(b->module->image, at, LONGEST), at, ret) || !ret->length)
		return false;
	if (known)
		*known = *ret;
	return true;
}

struct rt_elfaddr rt_plan_callee(const struct rt_plan_build *b, struct rt_elfaddr target)
{
	const struct rt_symbol *to = rt_symtab_at(b->module->symtab, target);
	const struct rt_symbol *own = to && to->plt ? rt_symtab_find(b->module->symtab, to->name) : NULL;

	return own && own->addr.v ? own->addr : target;
}

void rt_plan_destroy(struct rt_plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->types.len; i++) {
		free(plan->types.data[i].seen);
		free(plan->types.data[i].structure);
	}
	for (size_t i = 0; i < plan->points.len; i++) {
		free(plan->points.data[i].name);
		free(plan->points.data[i].alias);
		free(plan->points.data[i].ender);
	}
	for (size_t i = 0; i < plan->refused.len; i++) {
		free(plan->refused.data[i].function);
		free(plan->refused.data[i].why);
	}
	for (size_t i = 0; i < plan->doubts.len; i++)
		free(plan->doubts.data[i]);
	rt_vec_deinit(&plan->doubts);
	for (size_t i = 0; i < plan->limits.len; i++)
		free(plan->limits.data[i]);
	rt_vec_deinit(&plan->limits);
	rt_vec_deinit(&plan->types);
	rt_vec_deinit(&plan->points);
	rt_vec_deinit(&plan->refused);
	free(plan);
}

struct rt_error *rt_plan_create(const struct rt_spec *spec, const struct rt_plan_options *options, struct rt_plan **ret)
{
	_cleanup_(rt_plan_destroyp) struct rt_plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return rt_error_nomem();
	plan->spec = spec;
	plan->options = *options;
	for (size_t i = 0; i < spec->types.len; i++) {
		const struct rt_spec_type *s = &spec->types.data[i];
		struct rt_plan_type *t = rt_vec_add(&plan->types);

		if (!t)
			return rt_error_nomem();
		t->id = (uint32_t)i + 1;
		t->spec = s;
		t->start = s->start;
		t->floating = s->floating;
		t->counter_offset = s->counter_offset;
		t->counter_size = s->counter_offset == RT_COUNTER_UNKNOWN ? 0 : s->counter_size;
		if (s->counter_offset != RT_COUNTER_UNKNOWN)
			t->counter_from = s->origin && !strcmp(s->origin, "scan") ? "inferred" : "told";
		t->seen = calloc(s->functions.len + 1, 1);
		if (!t->seen)
			return rt_error_nomem();
	}
	*ret = rt_take(plan);
	return NULL;
}

/* Two symbol tables may tell of the same function. */
static bool is_refused(const struct rt_plan *plan, const struct rt_refused *r)
{
	for (size_t i = plan->refused.len; i-- > 0 && plan->refused.data[i].module == r->module;) {
		const struct rt_refused *other = &plan->refused.data[i];

		if (other->type == r->type && !strcmp(other->function, r->function) && !strcmp(other->why, r->why))
			return true;
	}
	return false;
}

struct rt_error *rt_plan_refuse(struct rt_plan_build *b, uint32_t type, uint32_t function, const char *name,
				enum rt_code code, const char *format, ...)
{
	struct rt_refused r = { .type = b->plan->types.data[type].id, .module = b->module->id, .code = (uint8_t)code };
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&r.why, format, ap) < 0)
		r.why = NULL;
	va_end(ap);
	r.function = strdup(name);
	if (r.why && r.function && is_refused(b->plan, &r)) {
		free(r.why);
		free(r.function);
	} else if (!r.why || !r.function || !rt_vec_push(&b->plan->refused, r)) {
		free(r.why);
		free(r.function);
		return rt_error_nomem();
	}
	b->plan->types.data[type].seen[function] |= RT_SEEN_REFUSED;
	return NULL;
}

struct rt_error *rt_plan_limit(struct rt_plan_build *b, uint32_t type, const char *what, unsigned have, unsigned most)
{
	char *text;

	if (have <= most)
		return NULL;
	if (asprintf(&text, "%s: %s%s%s: %u places, more than %u", rt_basename(b->module->name),
		     type < b->plan->types.len ? b->plan->types.data[type].spec->name : "",
		     type < b->plan->types.len ? ": " : "", what, have, most) < 0)
		return rt_error_nomem();
	if (rt_vec_push(&b->plan->limits, text))
		return NULL;
	free(text);
	return rt_error_nomem();
}

struct rt_error *rt_plan_add(struct rt_plan_build *b, uint32_t type, uint32_t function, const struct rt_point *point,
			     const char *name)
{
	const char *alias = b->survey.functions.len ? rt_survey_alias(&b->survey, name) : NULL;
	struct rt_plan_type *t = &b->plan->types.data[type];
	struct rt_point p = *point;

	p.id = (uint32_t)b->plan->points.len + 1;
	p.module = b->module->id;
	p.type = t->id;
	p.name = strdup(name);
	p.alias = alias ? strdup(alias) : NULL;
	p.ender = point->ender ? strdup(point->ender) : NULL;
	if (!p.name || (alias && !p.alias) || (point->ender && !p.ender) || !rt_vec_push(&b->plan->points, p)) {
		free(p.name);
		free(p.alias);
		free(p.ender);
		return rt_error_nomem();
	}
	t->points++;
	t->present |= p.op != RT_OP_MOVE;
	t->seen[function] |= RT_SEEN_POINT;
	return NULL;
}

struct rt_error *rt_plan_take_place(struct rt_plan_build *b, uint32_t type, const struct rt_point *p, bool *ret_mine)
{
	/*
	 * What counts nothing may be looked at for several types: unions hold this or that. Of what counts, the counter
	 * tells apart what stands at one place for two instructions behind it, which no probe can stand on.
	 */
	uint64_t which = p->op == RT_OP_MOVE ? type : (uint64_t)p->counter_bias;
	uint64_t place = (uint64_t)p->op | (uint64_t)p->reg << 8 | (uint64_t)p->deref << 16 | UINT64_C(1) << 24 |
			 (which & 0x7f) << 25 | (uint64_t)(uint32_t)p->reg_offset << 32;
	uint64_t *owner = rt_map_put(&b->taken, rt_key_make(p->address.v, place), ret_mine);

	if (!owner)
		return rt_error_nomem();
	if (*ret_mine)
		*owner = b->plan->types.data[type].id;
	return NULL;
}

void rt_plan_set_counter(const struct rt_plan_type *type, const struct rt_track *track, struct rt_point *point)
{
	int8_t bias = 0;

	point->counter_offset = RT_COUNTER_UNKNOWN;
	point->counter_size = 0;
	if (type->counter_offset == RT_COUNTER_UNKNOWN ||
	    (track && !rt_track_bias(track, type->counter_offset, type->counter_size, &bias)))
		return;
	point->counter_offset = type->counter_offset;
	point->counter_size = (uint8_t)type->counter_size;
	point->counter_bias = bias;
}

static void build_deinit(struct rt_plan_build *b)
{
	rt_survey_deinit(&b->survey);
	rt_decoder_destroy(b->decoder);
	free(b->decoded);
	rt_vec_deinit(&b->targets);
	rt_vec_deinit(&b->late);
	rt_map_deinit(&b->taken);
	rt_map_deinit(&b->jumped);
	rt_vec_deinit(&b->tables);
	rt_arena_deinit(&b->arena);
}

struct rt_error *rt_plan_check_machine(const struct rt_plan_module *module)
{
	if (module->image->machine == RT_MACHINE_X86_64 && module->image->is_64)
		return NULL;
	return rt_error_new(RT_E_ARCH, "%s is for another machine (ELF machine %u): only x86-64 code can be probed",
			    module->name, module->image->machine);
}

/* what is given to a get or put, or a constructor returns, is declared as a pointer to it */
static struct rt_error *name_structures(struct rt_plan_build *b)
{
	for (size_t t = 0; t < b->plan->types.len; t++) {
		struct rt_plan_type *type = &b->plan->types.data[t];

		for (size_t i = 0; i < type->spec->functions.len && !type->structure; i++) {
			const char *name = rt_plan_structure(b, &type->spec->functions.data[i]);

			if (!name || !strcmp(name, type->spec->name))
				continue;
			type->structure = strdup(name);
			if (!type->structure)
				return rt_error_nomem();
		}
	}
	return NULL;
}

static struct rt_error *build(struct rt_plan_build *b)
{
	RT_TRY(rt_decoder_create(b->module->image->machine, &b->decoder));
	b->decoded = calloc(RT_DECODED, sizeof(*b->decoded));
	RT_TRY(rt_survey_init(b->module, &b->survey));
	RT_TRY(rt_plan_resolve(b));
	RT_TRY(name_structures(b));
	RT_TRY(rt_plan_counters(b));
	RT_TRY(rt_plan_points(b));
	RT_TRY(rt_plan_markers(b));
	if (!b->plan->options.no_inline) {
		RT_TRY(rt_plan_inlined(b));
		RT_TRY(rt_plan_open_coded(b));
	}
	RT_TRY(rt_plan_callers(b));
	return rt_plan_handing(b);
}

struct rt_error *rt_plan_module(struct rt_plan *plan, const struct rt_plan_module *module, size_t *ret_first)
{
	struct rt_plan_build b = { .plan = plan, .module = module };
	size_t first = plan->points.len;
	struct rt_error *err;

	RT_TRY(rt_plan_check_machine(module));
	err = build(&b);
	build_deinit(&b);
	if (err)
		return rt_error_wrap(err, "%s", module->name);
	*ret_first = first;
	return NULL;
}
