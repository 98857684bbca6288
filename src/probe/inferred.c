/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations that code implies, for a module without debug information: a function whose own argument reaches, as it
 * is, what is known to be given an object of a type, is given such an object itself; so is one that callers pass such
 * to. One that returns what it got from a call that hands one out, to callers who take that for an address, returns
 * one; and one that stores it where an argument points to, of which callers pass the address of a variable, hands it
 * out there. So where references go is looked for in stripped files as well. What is found is worth a look, no proof:
 * nothing is counted by it.
 */
#include "probe/inferred.h"

#include <string.h>

enum {
	ROUNDS = 6,
	FUNCTIONS_MAX = 1 << 17,
	CODE_BYTES = 1 << 17,
	MODULE_BYTES = 1 << 28, /* in all rounds */
	SHORTEST = 5            /* bytes of a call or jump to an address */
};

struct rt_infer_function *rt_infer_at(const struct rt_inference *f, struct rt_elfaddr at)
{
	const uint64_t *index = rt_map_get(&f->index, rt_key_make(at.v, 0));

	return index && *index ? &f->functions.data[*index - 1] : NULL;
}

struct rt_error *rt_infer_add_known(struct rt_inference *f, uint64_t address)
{
	uint64_t *round = rt_map_put(&f->known, rt_key_make(address, 0), NULL);

	if (!round)
		return rt_error_nomem();
	*round = f->begun ? f->round + 1 : 0;
	f->low = address < f->low ? address : f->low;
	f->high = address > f->high ? address : f->high;
	return NULL;
}

struct rt_error *rt_infer_add_arg(struct rt_inference *f, uint64_t address, unsigned arg, uint32_t type)
{
	uint64_t *known = rt_map_put(&f->args, rt_key_make(address, arg), NULL);

	if (!known)
		return rt_error_nomem();
	*known = type;
	return rt_infer_add_known(f, address);
}

static struct rt_error *add_function(struct rt_inference *f, const struct rt_symbol *symbol)
{
	const struct rt_infer_function function = { .symbol = *symbol };
	bool made = false;
	uint64_t *index = rt_map_put(&f->index, rt_key_make(symbol->addr.v, 0), &made);

	if (!index)
		return rt_error_nomem();
	if (!made || f->functions.len == FUNCTIONS_MAX)
		return NULL;
	*index = f->functions.len + 1;
	return rt_vec_push(&f->functions, function) ? NULL : rt_error_nomem();
}

/* a number: by that, whoever reads it knows that the function has no name */
static char *name_of(struct rt_arena *arena, struct rt_elfaddr start)
{
	char name[24];
	int n = snprintf(name, sizeof(name), "0x%llx", (unsigned long long)start.v);

	return rt_arena_strndup(arena, name, (size_t)n);
}

/* those that have a symbol, and what the unwind table knows beside them */
static struct rt_error *find_functions(struct rt_inference *f)
{
	struct rt_plan_build *b = f->t->b;
	struct rt_elfaddr at = { 1 }, start, end;

	for (size_t i = 0; i < b->survey.symbols.len; i++) {
		const struct rt_survey_symbol *s = &b->survey.symbols.data[i];

		if (s->symbol->size && s->clone == RT_CLONE_FULL)
			RT_TRY(add_function(f, s->symbol));
	}
	while (b->module->dwarf && rt_dwarf_next_fde(b->module->dwarf, at, &start, &end)) {
		struct rt_symbol symbol = { .addr = start, .size = end.v - start.v, .function = true };
		const struct rt_symbol *known = rt_symtab_at(b->module->symtab, start);

		at.v = start.v + 1;
		if (known && known->size && known->addr.v <= start.v)
			continue;
		symbol.name = symbol.full = name_of(&b->arena, start);
		if (!symbol.name)
			return rt_error_nomem();
		RT_TRY(add_function(f, &symbol));
	}
	return NULL;
}

/* a library calls what it exports by a stub */
static struct rt_error *find_stubs(struct rt_inference *f)
{
	const struct rt_symtab *symtab = f->t->b->module->symtab;

	for (size_t i = 0; i < symtab->count; i++) {
		const struct rt_symbol *stub = &symtab->symbols[i];
		const struct rt_symbol *own = stub->plt ? rt_symtab_find(symtab, stub->name) : NULL;
		const uint64_t *index = own ? rt_map_get(&f->index, rt_key_make(own->addr.v, 0)) : NULL;
		uint64_t to = index ? *index : 0, *slot;

		if (!to)
			continue;
		slot = rt_map_put(&f->index, rt_key_make(stub->addr.v, 0), NULL);
		if (!slot)
			return rt_error_nomem();
		*slot = to;
	}
	return NULL;
}

/*
 * The library of a preset knows its own objects: what half of its functions do inside is of interest to who builds it,
 * and has its debug information. Who uses them is looked at.
 */
static void find_left_out(struct rt_inference *f)
{
	const struct rt_plan_build *b = f->t->b;

	/* memory itself, descriptors, mappings: anything may be one */
	for (uint32_t type = 0; type < b->plan->types.len; type++)
		f->left_out[type] = rt_spec_is_only_made(b->plan->types.data[type].spec);
	for (size_t i = 0; i < b->plan->points.len; i++) {
		const struct rt_point *p = &b->plan->points.data[i];

		if (p->module == b->module->id && rt_spec_is_preset(b->plan->types.data[p->type - 1].spec))
			f->left_out[p->type - 1] = true;
	}
}

static struct rt_error *add_told(struct rt_inference *f, uint64_t address, uint32_t type, unsigned arg)
{
	if (f->left_out[type])
		return NULL;
	return arg ? rt_infer_add_arg(f, address, arg, type + 1) : rt_infer_add_known(f, address);
}

static unsigned argument_of(const struct rt_point *p)
{
	unsigned arg = RT_SPEC_ARG_MAX;

	while (arg && !(p->place == RT_PLACE_ARG && !p->deref && rt_reg_argument(arg) == (enum rt_reg)p->reg))
		arg--;
	return arg;
}

/* what the specs say is given an object, or hands one out, here or behind a stub */
static struct rt_error *find_told(struct rt_inference *f)
{
	const struct rt_plan_build *b = f->t->b;

	for (size_t i = 0; i < b->plan->points.len; i++) {
		const struct rt_point *p = &b->plan->points.data[i];

		if (p->module == b->module->id && p->kind != RT_POINT_INSN)
			RT_TRY(add_told(f, p->function.v, p->type - 1, argument_of(p)));
	}
	for (size_t i = 0; i < f->t->stubs.len; i++) {
		const struct rt_told_stub *stub = &f->t->stubs.data[i];
		const bool given = stub->function->place == RT_PLACE_ARG && stub->function->arg <= RT_SPEC_ARG_MAX;

		RT_TRY(add_told(f, stub->address, stub->type, given ? stub->function->arg : 0));
	}
	return NULL;
}

/* something was learnt of what lies there, since the last round began */
static bool is_news(const struct rt_inference *f, uint64_t address)
{
	const uint64_t *round = rt_map_get(&f->known, rt_key_make(address, 0));

	return round && *round >= f->round;
}

/* Cheap look at the bytes: may this code call, or jump to, what something was learnt of? */
static bool mentions(struct rt_inference *f, const struct rt_symbol *symbol)
{
	struct rt_bytes code = rt_image_at(f->t->b->module->image, symbol->addr, symbol->size);
	int32_t to;

	/* unwind tables of a damaged file may say that all of it is each function's */
	if (code.size > CODE_BYTES || f->bytes > MODULE_BYTES)
		return false;
	f->bytes += code.size;
	for (size_t i = 0; i + SHORTEST <= code.size; i++) {
		uint64_t target;

		if (code.data[i] != 0xe8 && code.data[i] != 0xe9)
			continue;
		memcpy(&to, code.data + i + 1, sizeof(to));
		target = symbol->addr.v + i + SHORTEST + (uint64_t)(int64_t)to;
		if (target >= f->low && target <= f->high && is_news(f, target))
			return true;
	}
	return false;
}

/* what callers pass is where they keep the object, a variable on their stack, and no struct of theirs */
static bool is_output(const struct rt_infer_function *fn, unsigned arg)
{
	const uint8_t bit = (uint8_t)(1u << (arg - 1));

	return fn->out[arg - 1] && !fn->given[arg - 1] && !fn->passed[arg - 1] && (fn->framed & bit) &&
	       !(fn->elsewhere & bit);
}

/*
 * The type of the argument: index + 1; 0: none is known. Of what half of the program hands around nothing is declared:
 * no point would be armed for that.
 */
static uint32_t type_of(const struct rt_inference *f, const struct rt_infer_function *fn, unsigned arg)
{
	uint32_t type = fn->given[arg - 1];

	if (!type && fn->passed[arg - 1] != RT_INFER_ANYTHING)
		type = fn->passed[arg - 1];
	return type && f->spread[type - 1] <= RT_INFER_CURRENCY ? type : 0;
}

/* what code implies, in the words of a declaration */
static struct rt_error *declare(struct rt_inference *f, const struct rt_infer_function *fn)
{
	struct rt_plan_build *b = f->t->b;
	struct rt_survey_function *d;
	struct rt_symbol *code;
	const uint32_t returns = fn->taken ? fn->returns : 0;
	unsigned last = 0;

	for (unsigned arg = 1; arg <= RT_SPEC_ARG_MAX; arg++)
		last = type_of(f, fn, arg) || is_output(fn, arg) ? arg : last;
	if (!last && !returns && !fn->calls)
		return NULL;
	d = rt_vec_add(&b->survey.functions);
	code = rt_arena_alloc(&b->arena, sizeof(*code));
	if (!d || !code)
		return rt_error_nomem();
	*code = fn->symbol;
	*d = (struct rt_survey_function){ .name = fn->symbol.name,
					  .has_body = true,
					  .addr = fn->symbol.addr,
					  .code = code,
					  .first_param = b->survey.params.len,
					  .param_count = last };
	if (returns)
		d->returns = (struct rt_param){ .type = "inferred *",
						.pointers = 1,
						.pointee = b->plan->types.data[returns - 1].spec->name };
	for (unsigned arg = 0; arg < last; arg++) {
		struct rt_param p = { .type = "long" };

		if (is_output(fn, arg + 1))
			p = (struct rt_param){ .type = "inferred **",
					       .pointers = 2,
					       .pointee = b->plan->types.data[fn->out[arg] - 1].spec->name };
		else if (type_of(f, fn, arg + 1))
			p = (struct rt_param){ .type = "inferred *",
					       .pointers = 1,
					       .pointee = b->plan->types.data[type_of(f, fn, arg + 1) - 1].spec->name };
		if (!rt_vec_push(&b->survey.params, p))
			return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *infer(struct rt_inference *f)
{
	RT_TRY(find_functions(f));
	RT_TRY(find_stubs(f));
	find_left_out(f);
	RT_TRY(find_told(f));
	f->begun = f->more = true;
	for (f->round = 0; f->more && f->round < ROUNDS; f->round++) {
		f->more = false;
		for (size_t i = 0; i < f->functions.len; i++) {
			struct rt_infer_function *fn = &f->functions.data[i];

			if ((fn->learnt && fn->learnt >= f->round) || mentions(f, &fn->symbol))
				RT_TRY(rt_infer_look(f, fn));
		}
	}
	for (size_t i = 0; i < f->functions.len; i++)
		RT_TRY(rt_infer_clears(f, &f->functions.data[i]));
	for (size_t i = 0; i < f->functions.len; i++)
		RT_TRY(declare(f, &f->functions.data[i]));
	return NULL;
}

struct rt_error *rt_plan_infer(const struct rt_takers *t)
{
	_cleanup_free_ unsigned *spread = calloc(t->b->plan->types.len + 1, sizeof(*spread));
	_cleanup_free_ bool *left_out = calloc(t->b->plan->types.len + 1, sizeof(*left_out));
	struct rt_inference f = { .t = t, .spread = spread, .left_out = left_out, .low = UINT64_MAX };
	struct rt_error *err = spread && left_out ? infer(&f) : rt_error_nomem();

	rt_vec_deinit(&f.functions);
	rt_vec_deinit(&f.members);
	rt_map_deinit(&f.index);
	rt_map_deinit(&f.args);
	rt_map_deinit(&f.known);
	rt_way_deinit(&f.way);
	return err;
}
