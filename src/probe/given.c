/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that may keep an object that they are given: by debug information they take a T *, and by their code they
 * store it somewhere, or pass it on to one that does. They get a point at their entry, where nothing is counted: who
 * had the object last, and neither kept nor put it, has lost the reference that came with it. What keeps anything it is
 * given (a container's push) counts as such a one, by its code, or where that lies in another module by its name. So do
 * functions that the module's data points to (operations in a table), whatever they do with it: others of the same
 * table may keep it. But for types of which references are taken: these are mostly lent.
 *
 * The same for functions that by their name destroy something, whatever they are declared to be given: destructors that
 * a container calls with a void *, those of a derived type. What lives at the address, the analysis knows. Those that
 * just free a block are none.
 */
#include <string.h>

#include "base/words.h"
#include "elf/pointed.h"
#include "probe/handing.h"
#include "probe/spec_type.h"
#include "probe/way.h"

enum {
	GIVEN_MAX = 512, /* of one type, in one module */
	POINTED_MAX = 1024,
	ENDERS_MAX = 2048, /* in one module */
	ENDER_ARGS = 3,
	PASSES_MAX = 1 << 17,
	WORDS = 10, /* of a name */
	CODE_INSNS = 4000
};

/* of a keeper: it is declared to be given anything */
static const uint32_t ANYTHING = UINT32_MAX;

/* A function and the parameter by which it gets the object. */
struct keeper {
	const struct rt_survey_function *declared;
	const struct rt_symbol *symbol;
	uint32_t type; /* index, or ANYTHING */
	uint8_t arg;
	bool keeps;
	bool pointed;              /* data points to it */
	size_t first_pass, passes; /* in search.passes */
};

/* A keeper may pass the object on: to the function at this address, as this argument. */
struct pass {
	uint64_t to;
	uint8_t arg;
	bool keeps; /* it is known by its name to keep it */
};

struct given_search {
	const struct rt_takers *t;
	RT_VEC(struct keeper) keepers;
	RT_VEC(struct pass) passes;
	struct rt_map index; /* (address, argument) -> index of keepers */
	struct rt_pointed pointed;
	struct rt_way way;
};

static bool is_object(const struct rt_track *objects, uint8_t reg)
{
	return reg < RT_TRACK_REGS && objects->regs[reg].kind == RT_VALUE_OBJECT && !objects->regs[reg].n;
}

/* the object is stored in memory that is not the function's own frame */
static bool stores(const struct rt_track *objects, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;

	if (!insn->is_mov || !insn->has_mem || !mem->writes || mem->segment || mem->size != 8 ||
	    !is_object(objects, insn->src_reg) || mem->base == RT_REG_RSP)
		return false;
	return mem->base == RT_REG_RIP ||
	       (mem->base < RT_TRACK_REGS && objects->regs[mem->base].kind != RT_VALUE_FRAME &&
		objects->regs[mem->base].kind != RT_VALUE_OBJECT);
}

static bool note_passes(struct given_search *s, struct keeper *k, const struct rt_insn *insn)
{
	for (uint8_t arg = 1; arg <= RT_SPEC_ARG_MAX; arg++) {
		if (!is_object(&s->way.now.objects, (uint8_t)rt_reg_argument(arg)))
			continue;
		if (!rt_vec_push(&s->passes, ((struct pass){ rt_plan_callee(s->t->b, insn->target).v, arg, false })))
			return false;
		k->passes++;
	}
	return true;
}

static struct rt_error *look_inside(struct given_search *s, struct keeper *k)
{
	const struct rt_plan_build *b = s->t->b;
	struct rt_elfaddr start = k->symbol->addr, end = { start.v + k->symbol->size };
	struct rt_way *way = &s->way;
	struct rt_insn insn;

	k->first_pass = s->passes.len;
	rt_way_begin(way, b->module->symtab, k->symbol, (uint8_t)rt_reg_argument(k->arg));
	for (unsigned n = 0; n < CODE_INSNS && rt_way_goes_on(way); n++) {
		bool leaves;

		if (!rt_plan_decode(b, way->now.at, &insn))
			return NULL;
		leaves = insn.has_target && (insn.call || insn.jump) &&
			 (insn.target.v < start.v || insn.target.v >= end.v);
		if (rt_way_reaches(way)) {
			k->keeps |= stores(&way->now.objects, &insn);
			if (leaves && !note_passes(s, k, &insn))
				return rt_error_nomem();
		}
		if (!rt_way_pass(way, &insn))
			return rt_error_nomem();
	}
	return NULL;
}

/* the only reference to an object of the type is the one that it is made with */
static bool is_handle(const struct given_search *s, uint32_t type)
{
	const struct rt_spec_type *spec = s->t->b->plan->types.data[type].spec;

	for (size_t i = 0; i < spec->functions.len; i++) {
		if (spec->functions.data[i].op == RT_OP_GET)
			return false;
	}
	return true;
}

static struct rt_error *find_pointed(struct given_search *s)
{
	for (uint32_t type = 0; type < s->t->b->plan->types.len; type++) {
		if (is_handle(s, type))
			return rt_pointed_read(s->t->b->module->image, &s->pointed);
	}
	return NULL;
}

static struct rt_error *add_keeper(struct given_search *s, const struct rt_survey_function *d,
				   const struct rt_symbol *symbol, uint32_t type, uint8_t arg)
{
	struct keeper k = { .declared = d,
			    .symbol = symbol,
			    .type = type,
			    .arg = arg,
			    .pointed = type != ANYTHING && is_handle(s, type) &&
				       rt_pointed_has(&s->pointed, symbol->addr) };
	uint64_t *index = rt_map_put(&s->index, rt_key_make(symbol->addr.v, arg), NULL);

	if (!index)
		return rt_error_nomem();
	*index = s->keepers.len;
	RT_TRY(look_inside(s, &k));
	return rt_vec_push(&s->keepers, k) ? NULL : rt_error_nomem();
}

static struct rt_error *find_keepers(struct given_search *s)
{
	struct rt_plan_build *b = s->t->b;

	for (size_t i = 0; i < b->survey.functions.len; i++) {
		const struct rt_survey_function *d = &b->survey.functions.data[i];
		const struct rt_symbol *symbol = rt_survey_code(&b->survey, d);
		enum rt_clone clone = RT_CLONE_PART;

		if (!symbol)
			continue;
		/* of a changed copy parameters may be gone */
		(void)rt_clone_base(symbol->name, &clone);
		for (unsigned arg = 1; clone == RT_CLONE_FULL && arg <= d->param_count && arg <= RT_SPEC_ARG_MAX;
		     arg++) {
			uint32_t type = rt_takers_type(s->t, rt_survey_param(&b->survey, d, arg), 1);

			if (type && !rt_takers_told(s->t, type - 1, d->name) &&
			    rt_takers_in_registers(&b->survey, d, arg))
				RT_TRY(add_keeper(s, d, symbol, type - 1, (uint8_t)arg));
		}
	}
	return NULL;
}

/* a function of another module that is called through the stub keeps what it is given, by its name */
static bool keeps_by_name(const struct rt_symbol *stub)
{
	static const char *const words[] = { "push", "append", "prepend", "insert", "enqueue", "add" };

	return stub->plt && rt_words_have(stub->name, words, sizeof(words) / sizeof(words[0]));
}

/* Those that are passed an object are looked at as well, where they are declared to be given anything. */
static struct rt_error *find_containers(struct given_search *s)
{
	const struct rt_plan_build *b = s->t->b;

	/* those that are found pass on what they are given */
	for (size_t i = 0; i < s->passes.len && i < PASSES_MAX; i++) {
		const struct pass pass = s->passes.data[i];
		const struct rt_symbol *symbol = rt_symtab_at(b->module->symtab, (struct rt_elfaddr){ pass.to });
		const struct rt_survey_function *d;

		if (!symbol || symbol->addr.v != pass.to || rt_map_get(&s->index, rt_key_make(pass.to, pass.arg)))
			continue;
		d = symbol->plt ? NULL : rt_survey_at(&b->survey, symbol->addr);
		if (d && pass.arg <= d->param_count && rt_param_is_anything(rt_survey_param(&b->survey, d, pass.arg)) &&
		    rt_takers_in_registers(&s->t->b->survey, d, pass.arg))
			RT_TRY(add_keeper(s, d, symbol, ANYTHING, pass.arg));
		s->passes.data[i].keeps = keeps_by_name(symbol);
	}
	return NULL;
}

/* who passes it on to one that keeps it, keeps it as well */
static void spread(struct given_search *s)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < s->keepers.len; i++) {
			struct keeper *k = &s->keepers.data[i];

			for (size_t p = 0; p < k->passes && !k->keeps; p++) {
				const struct pass *pass = &s->passes.data[k->first_pass + p];
				const uint64_t *at = rt_map_get(&s->index, rt_key_make(pass->to, pass->arg));
				const struct keeper *to = at ? &s->keepers.data[*at] : NULL;

				k->keeps = pass->keeps ||
					   (to && to->keeps && (to->type == k->type || to->type == ANYTHING));
				more |= k->keeps;
			}
		}
	}
}

static struct rt_error *arm_one(const struct given_search *s, const struct keeper *k)
{
	struct rt_plan_build *b = s->t->b;
	const struct rt_target target = {
		.type = k->type,
		.function = (uint32_t)b->plan->types.data[k->type].spec->functions.len,
		.name = k->declared->name,
		.symbol = k->symbol,
		.addr = k->symbol->addr,
		.as = { .op = RT_OP_MOVE, .place = RT_PLACE_ARG, .arg = k->arg, .hidden = true, .guessed = true },
		.optional = true
	};

	return rt_plan_point(b, &target);
}

static struct rt_error *arm(struct given_search *s)
{
	size_t types = s->t->b->plan->types.len;
	_cleanup_free_ unsigned *kept = calloc(types + 1, sizeof(*kept)),
				*pointed = calloc(types + 1, sizeof(*pointed));

	if (!kept || !pointed)
		return rt_error_nomem();
	for (size_t i = 0; i < s->keepers.len; i++) {
		const struct keeper *k = &s->keepers.data[i];

		if (k->type == ANYTHING)
			continue;
		kept[k->type] += k->keeps;
		pointed[k->type] += k->pointed;
	}
	for (size_t i = 0; i < s->keepers.len; i++) {
		const struct keeper *k = &s->keepers.data[i];

		if (k->type == ANYTHING)
			continue;
		if ((k->keeps && kept[k->type] <= GIVEN_MAX) || (k->pointed && pointed[k->type] <= POINTED_MAX))
			RT_TRY(arm_one(s, k));
	}
	for (uint32_t type = 0; type < types; type++) {
		RT_TRY(rt_plan_limit(s->t->b, type, "functions that keep objects", kept[type], GIVEN_MAX));
		RT_TRY(rt_plan_limit(s->t->b, type, "functions that are given objects", pointed[type], POINTED_MAX));
	}
	return NULL;
}

/* what is passed as this argument may be, or may be a part of, a pointer to an object */
static bool may_be_object(struct rt_survey *survey, const struct rt_survey_function *d, unsigned arg)
{
	const struct rt_param *first = rt_survey_param(survey, d, 1), *p = rt_survey_param(survey, d, arg);

	/* a small struct in registers, that holds the pointer */
	if (arg <= 2 && first && first->type && !first->pointers &&
	    (!strncmp(first->type, "struct ", 7) || !strncmp(first->type, "union ", 6)))
		return true;
	return p && p->type && p->pointers == 1 && !strstr(p->type, "char") && rt_takers_in_registers(survey, d, arg);
}

static bool is_free(const struct given_search *s, struct rt_elfaddr at)
{
	const struct rt_symbol *symbol = rt_symtab_at(s->t->b->module->symtab, at);

	return symbol && !strcmp(symbol->name, "free");
}

/* all that the function does is to pass what it was given to a free() of the C library, as it is */
static bool just_frees(struct given_search *s, const struct rt_symbol *symbol, uint8_t arg)
{
	const struct rt_plan_build *b = s->t->b;
	struct rt_elfaddr end = { symbol->addr.v + symbol->size };
	struct rt_insn insn;
	bool frees = false;

	rt_way_begin(&s->way, b->module->symtab, symbol, (uint8_t)rt_reg_argument(arg));
	for (unsigned n = 0; n < CODE_INSNS && rt_way_goes_on(&s->way); n++) {
		bool leaves, free;

		if (!rt_plan_decode(b, s->way.now.at, &insn))
			return false;
		leaves = insn.call ||
			 (insn.jump && (!insn.has_target || insn.target.v < symbol->addr.v || insn.target.v >= end.v));
		free = leaves && insn.has_target && is_free(s, insn.target);
		if (leaves && !free)
			return false;
		frees |= free && rt_way_reaches(&s->way) && is_object(&s->way.now.objects, (uint8_t)rt_reg_argument(1));
		if (!rt_way_pass(&s->way, &insn))
			break;
	}
	return frees;
}

static struct rt_error *add_ender(struct given_search *s, const struct rt_survey_function *d,
				  const struct rt_symbol *symbol, uint8_t arg)
{
	struct rt_plan_build *b = s->t->b;
	const struct rt_target target = {
		.function = (uint32_t)b->plan->types.data[0].spec->functions.len,
		.name = d->name,
		.symbol = symbol,
		.addr = symbol->addr,
		.as = { .op = RT_OP_MOVE, .place = RT_PLACE_ARG, .arg = arg, .hidden = true, .guessed = true },
		.optional = true,
		.maybe = true
	};

	return just_frees(s, symbol, arg) ? NULL : rt_plan_point(b, &target);
}

/* so many of the words of the name are spelled in what the parameter points to */
static unsigned named_by(const char *name, const struct rt_param *p)
{
	struct rt_word words[WORDS];
	unsigned n = rt_words(name, words, WORDS), spelled = 0;

	for (unsigned i = 0; i < n; i++)
		spelled += rt_word_spelled(words[i], p->pointee);
	return spelled;
}

/* bufq_purge(broker, bufq) ends the latter: by its name another argument is what it ends */
static bool ends_another(struct rt_survey *survey, const struct rt_survey_function *d, unsigned arg)
{
	const struct rt_param *mine = rt_survey_param(survey, d, arg);
	unsigned most = 0;

	if (!mine || !mine->pointee || mine->pointers != 1)
		return false;
	for (unsigned i = 1; i <= d->param_count; i++) {
		const struct rt_param *p = rt_survey_param(survey, d, i);
		unsigned spelled = p && p->pointee && p->pointers ? named_by(d->name, p) : 0;

		most = spelled > most ? spelled : most;
	}
	return named_by(d->name, mine) < most;
}

static struct rt_error *find_enders(struct given_search *s)
{
	struct rt_plan_build *b = s->t->b;
	unsigned enders = 0;

	for (size_t i = 0; i < b->survey.functions.len; i++) {
		const struct rt_survey_function *d = &b->survey.functions.data[i];
		const struct rt_symbol *symbol = rt_survey_code(&b->survey, d);
		enum rt_clone clone = RT_CLONE_PART;

		if (!symbol || !rt_words_destroy(d->name))
			continue;
		(void)rt_clone_base(symbol->name, &clone);
		if (clone != RT_CLONE_FULL || rt_takers_told_any(s->t, d->name))
			continue;
		if (++enders > ENDERS_MAX)
			continue;
		for (unsigned arg = 1; arg <= ENDER_ARGS; arg++) {
			if (may_be_object(&b->survey, d, arg) && !ends_another(&b->survey, d, arg))
				RT_TRY(add_ender(s, d, symbol, (uint8_t)arg));
		}
	}
	return rt_plan_limit(b, UINT32_MAX, "functions that end something", enders, ENDERS_MAX);
}

struct rt_error *rt_plan_given(const struct rt_takers *t)
{
	struct given_search s = { .t = t };
	struct rt_error *err = find_pointed(&s);

	if (!err)
		err = find_keepers(&s);
	if (!err)
		err = find_containers(&s);
	if (!err) {
		spread(&s);
		err = arm(&s);
	}
	if (!err)
		err = find_enders(&s);
	rt_vec_deinit(&s.keepers);
	rt_vec_deinit(&s.passes);
	rt_map_deinit(&s.index);
	rt_pointed_deinit(&s.pointed);
	rt_way_deinit(&s.way);
	return err;
}
