/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/frees.h"

#include <string.h>

#include "base/words.h"
#include "probe/handing.h"
#include "probe/spec_type.h"

enum { UNDECLARED = UINT16_MAX /* for a register */ };

struct search {
	struct rt_plan_build *b;
	struct rt_map foreign; /* name of what other modules have -> its register, RT_REG_NONE, or UNDECLARED */
	size_t undeclared;     /* so many of these */
};

/* NONE: the function is none that is given a mere pointer to free. */
static uint8_t block_of(struct search *s, const char *name)
{
	const struct rt_survey_function *f = rt_survey_function(&s->b->survey, name, NULL);
	const uint64_t *foreign = f ? NULL : rt_map_get(&s->foreign, rt_key_text(name));

	/* a part or a copy of a function that debug information knows by its whole name */
	if (!f && strchr(name, '.'))
		return RT_REG_NONE;
	if (!rt_words_free(name) && strncmp(name, "_ZdlPv", 6) != 0)
		return RT_REG_NONE;
	for (unsigned i = 1; f && i <= f->param_count; i++) {
		if (rt_param_is_anything(rt_survey_param(&s->b->survey, f, i)))
			return rt_takers_in_registers(&s->b->survey, f, i) ? (uint8_t)rt_reg_argument(i) : RT_REG_NONE;
	}
	if (foreign && *foreign != UNDECLARED)
		return (uint8_t)*foreign;
	return f ? RT_REG_NONE : (uint8_t)RT_REG_RDI;
}

static bool is_undeclared(const char *name, void *arg)
{
	const struct search *s = arg;
	const uint64_t *reg = rt_map_get(&s->foreign, rt_key_text(name));

	return reg && *reg == UNDECLARED;
}

/* What is given a struct takes it apart before it frees it: that is looked at in its own module. */
static bool see_declared(const struct rt_signature *sig, void *arg)
{
	struct search *s = arg;
	uint64_t *reg = rt_map_get(&s->foreign, rt_key_text(sig->function));

	if (!reg || *reg != UNDECLARED)
		return true;
	*reg = RT_REG_NONE;
	for (unsigned i = 1; i <= sig->param_count && i <= RT_SPEC_ARG_MAX && *reg == RT_REG_NONE; i++) {
		if (rt_param_is_anything(&sig->params[i - 1]))
			*reg = (uint8_t)rt_reg_argument(i);
	}
	return --s->undeclared > 0;
}

/* How the functions of other modules are declared that may free what they are given. */
static struct rt_error *find_foreign(struct search *s)
{
	const struct rt_symtab *symtab = s->b->module->symtab;

	for (size_t i = 0; i < symtab->count; i++) {
		const struct rt_symbol *symbol = &symtab->symbols[i];
		uint64_t *reg;
		bool made;

		if (!symbol->plt || !rt_words_free(symbol->name) ||
		    rt_survey_function(&s->b->survey, symbol->name, NULL))
			continue;
		reg = rt_map_put(&s->foreign, rt_key_text(symbol->name), &made);
		if (!reg)
			return rt_error_nomem();
		if (made) {
			*reg = UNDECLARED;
			s->undeclared++;
		}
	}
	return s->undeclared ? rt_dwarf_imports(s->b->module->dwarf, is_undeclared, see_declared, s) : NULL;
}

static struct rt_error *find_all(struct search *s, struct rt_map *ret)
{
	const struct rt_symtab *symtab = s->b->module->symtab;

	RT_TRY(find_foreign(s));
	for (size_t i = 0; i < symtab->count; i++) {
		const struct rt_symbol *symbol = &symtab->symbols[i];
		uint8_t reg = symbol->function && symbol->addr.v ? block_of(s, symbol->name) : RT_REG_NONE;
		uint64_t *at = reg == RT_REG_NONE ? NULL : rt_map_put(ret, rt_key_make(symbol->addr.v, 0), NULL);

		if (reg != RT_REG_NONE && !at)
			return rt_error_nomem();
		if (at)
			*at = reg;
	}
	return NULL;
}

struct rt_error *rt_frees_find(struct rt_plan_build *b, struct rt_map *ret)
{
	struct search s = { .b = b };
	struct rt_error *err = find_all(&s, ret);

	rt_map_deinit(&s.foreign);
	return err;
}

struct pointed_to {
	struct rt_blocks *blocks;
	struct rt_map *all;
	bool nomem;
};

static bool is_called_free(const char *name, void *arg)
{
	(void)arg;
	return rt_words_free(name);
}

static bool see_pointer(const struct rt_function_pointer *p, void *arg)
{
	struct pointed_to *t = arg;
	const uint64_t number = p->structure ? rt_blocks_number(t->blocks, p->structure) : 0;
	uint64_t *reg;

	if (p->argument > RT_SPEC_ARG_MAX)
		return true;
	reg = number || !p->structure ? rt_map_put(t->all, rt_key_make(number, p->place), NULL) : NULL;
	if (reg)
		*reg = rt_reg_argument(p->argument);
	t->nomem |= !reg;
	return reg != NULL;
}

struct rt_error *rt_frees_pointed_to(struct rt_blocks *blocks, struct rt_map *ret)
{
	struct pointed_to t = { .blocks = blocks, .all = ret };

	RT_TRY(rt_dwarf_function_pointers(blocks->b->module->dwarf, is_called_free, see_pointer, &t));
	return t.nomem ? rt_error_nomem() : NULL;
}
