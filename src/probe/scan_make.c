/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constructors by what they do: whatever its name, a function that returns
 * T *, takes none, allocates and stores the first count makes a T.
 */
#include <string.h>

#include "probe/making.h"
#include "probe/mangled.h"
#include "probe/scan_build.h"

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* A find that may make what it does not find hands out old objects as well. */
static bool sounds_like_find(const char *name)
{
	static const char *const words[] = { "find", "lookup", "search", "intern", "get", "ref", "cache" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

static bool declared_as_maker(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_survey_function *d)
{
	if (!f->structure || d->returns.pointers != 1 || !same(d->returns.pointee, f->structure))
		return false;
	for (unsigned i = 1; i <= d->param_count; i++)
		if (same(rt_survey_param(&s->survey, d, i)->pointee, f->structure))
			return false;
	return true;
}

/* Where the counter lies; size 0: unknown. */
static void find_counter(struct rt_scan *s, const struct rt_scan_family *f, struct rt_making *m)
{
	struct rt_member member;

	m->counter = f->counter;
	m->counter_size = f->by_code ? f->counter_size : 0;
	if (m->counter_size || !f->structure || !s->module->dwarf ||
	    !rt_dwarf_counter(s->module->dwarf, f->structure, &member) || member.offset > INT32_MAX || member.size > 8)
		return;
	m->counter = (int32_t)member.offset;
	m->counter_size = member.size;
}

/* "packet_replace(T **, T *)": gives up what the slot held, takes a reference to the other one. */
static struct rt_error *add_swap(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_making *m,
				 const struct rt_survey_function *d, const struct rt_symbol *symbol,
				 struct rt_spec_type *type)
{
	const struct rt_param *slot = rt_survey_param(&s->survey, d, 1), *with = rt_survey_param(&s->survey, d, 2);
	struct rt_effect effect;

	if (!slot || !with || d->param_count != 2 || slot->pointers != 2 || with->pointers != 1 ||
	    !same(slot->pointee, f->structure) || !same(with->pointee, f->structure))
		return NULL;
	rt_effect_of(s->module->image, s->module->symtab, s->decoder, symbol->addr, RT_REG_RSI, &effect);
	for (unsigned i = 0; i < effect.count; i++) {
		const struct rt_change *c = &effect.fields[i];

		if (c->offset == m->counter && c->size == m->counter_size && c->delta == 1)
			return rt_scan_add_function(type, d->name, RT_OP_SWAP, RT_PLACE_ARG_PTR, 1);
	}
	return NULL;
}

static struct rt_error *by_declaration(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_making *m,
				       struct rt_spec_type *type)
{
	for (size_t i = 0; i < s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &s->survey.functions.data[i];
		const struct rt_symbol *symbol;

		if (!d->has_body || !f->structure)
			continue;
		symbol = rt_symtab_at(s->module->symtab, d->addr);
		/* methods are armed by their mangled names */
		if (!symbol || symbol->addr.v != d->addr.v || !symbol->size || rt_scan_is_known(s->known, d->name) ||
		    strncmp(symbol->name, "_Z", 2) == 0)
			continue;
		if (declared_as_maker(s, f, d) && !sounds_like_find(d->name) && rt_making_starts(m, symbol))
			RT_TRY(rt_scan_add_function(type, d->name, RT_OP_NEW, RT_PLACE_RET, 0));
		else
			RT_TRY(add_swap(s, f, m, d, symbol, type));
	}
	return NULL;
}

/* "scene::Node::create" makes a Node. */
static struct rt_error *by_class(struct rt_scan *s, const struct rt_scan_family *f, struct rt_spec_type *type)
{
	for (size_t i = 0; i < s->survey.symbols.len; i++) {
		const char *name = s->survey.symbols.data[i].symbol->name;
		struct rt_mangled m;

		if (strncmp(name, f->put.name, f->method) == 0 && rt_mangled_method(name, &m) &&
		    m.prefix == f->method && rt_mangled_is_new(&m))
			RT_TRY(rt_scan_add_function(type, name, RT_OP_NEW, RT_PLACE_RET, 0));
	}
	return NULL;
}

struct rt_error *rt_scan_makers(struct rt_scan *s, const struct rt_scan_family *f, struct rt_spec_type *type)
{
	struct rt_making m = { .image = s->module->image, .symtab = s->module->symtab, .decoder = s->decoder };

	if (f->method)
		return by_class(s, f, type);
	find_counter(s, f, &m);
	return m.counter_size && m.symtab ? by_declaration(s, f, &m, type) : NULL;
}
