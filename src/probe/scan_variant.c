/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Members of a family that have no partner of their own: obj_ref() and obj_unref() count, and so do
 * _obj_ref_unlocked(), _obj_unref_and_unlock(), and obj_free() where it gives up one reference as well. The name says
 * what they want to be, the code that they move the counter of their first argument by themselves.
 */
#include <string.h>

#include "probe/scan_build.h"

/* name, less underscores, is family or structure and then the word */
static bool is_called(const char *name, const char *of, const char *word)
{
	size_t n = strlen(of), w = strlen(word);

	name += strspn(name, "_");
	return strncmp(name, of, n) == 0 && strncmp(name + n, word, w) == 0 &&
	       (name[n + w] == '\0' || name[n + w] == '_');
}

/* T * comes first */
static bool takes_object(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_survey_function *d)
{
	const struct rt_param *p = rt_survey_param(&s->survey, d, 1);

	return p && p->pointers == 1 && p->pointee && !strcmp(p->pointee, f->structure);
}

static bool returns_object(const struct rt_scan_family *f, const struct rt_survey_function *d)
{
	return d->returns.pointers == 1 && d->returns.pointee && !strcmp(d->returns.pointee, f->structure);
}

/* A get hands the object on, if anything; a put may tell whether it was the last one. */
static bool fits(const struct rt_scan_family *f, const struct rt_survey_function *d, bool get)
{
	const char *word = get ? f->stem->get : f->stem->put;

	return (!d->returns.type || (!get && !d->returns.pointers) || returns_object(f, d)) &&
	       (is_called(d->name, f->stem_name, word) || is_called(d->name, f->structure, word));
}

/* "obj_free": what it returns may be what the object was a wrapper of */
static bool is_freeing(const struct rt_scan_family *f, const struct rt_survey_function *d)
{
	return rt_family_is_free(d->name, f->stem_name) || rt_family_is_free(d->name, f->structure);
}

static bool is_of(const struct rt_change *c, const struct rt_member *counter)
{
	return c->offset == (int64_t)counter->offset && c->size == counter->size;
}

/* Does the family's own function count by a call of this one only? */
static bool is_core(struct rt_scan *s, const struct rt_scan_named *own, const struct rt_symbol *symbol,
		    const struct rt_member *counter)
{
	struct rt_effect e;

	if (!own->symbol || own->symbol->addr.v == symbol->addr.v || !rt_scan_calls(s, own->symbol, symbol->addr))
		return false;
	rt_effect_inside(s->module->image, s->module->symtab, s->decoder, own->symbol->addr, RT_REG_RDI, &e);
	for (unsigned i = 0; i < e.count; i++)
		if (is_of(&e.fields[i], counter))
			return false;
	return !e.cut;
}

/*
 * Does the code move the counter by just so much? One that calls the get or put does it through that. What one of these
 * does by nothing else than this function is the same operation, whatever becomes of the counter once it was the last.
 */
static bool counts(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_symbol *symbol,
		   const struct rt_member *counter, bool get)
{
	bool core = is_core(s, get ? &f->get : &f->put, symbol, counter), found = false;
	int64_t delta = get ? 1 : -1;
	struct rt_effect e;

	if ((f->get.symbol && rt_scan_calls(s, symbol, f->get.symbol->addr)) ||
	    (f->put.symbol && rt_scan_calls(s, symbol, f->put.symbol->addr)))
		return false;
	rt_effect_of(s->module->image, s->module->symtab, s->decoder, symbol->addr, RT_REG_RDI, &e);
	for (unsigned i = 0; i < e.count; i++) {
		const struct rt_change *c = &e.fields[i];

		if (!is_of(c, counter))
			continue;
		if (c->delta != delta && !core)
			return false;
		found |= c->delta == delta;
	}
	return found;
}

static bool get_counter(struct rt_scan *s, const struct rt_scan_family *f, struct rt_member *ret)
{
	if (f->by_code) {
		*ret = (struct rt_member){ .offset = (uint64_t)f->counter, .size = f->counter_size };
		return f->counter >= 0;
	}
	return s->module->dwarf && rt_dwarf_counter(s->module->dwarf, f->structure, ret);
}

struct rt_error *rt_scan_variants(struct rt_scan *s, const struct rt_scan_family *f, struct rt_spec_type *type)
{
	struct rt_member counter;

	if (!f->structure || !f->stem || !s->module->symtab || !get_counter(s, f, &counter))
		return NULL;
	for (size_t i = 0; i < s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &s->survey.functions.data[i];
		const struct rt_symbol *symbol;
		bool get;

		if (!d->has_body || !takes_object(s, f, d))
			continue;
		get = fits(f, d, true);
		if (!get && !fits(f, d, false) && !is_freeing(f, d))
			continue;
		symbol = rt_symtab_at(s->module->symtab, d->addr);
		if (!symbol || symbol->addr.v != d->addr.v || rt_scan_is_known(s->known, d->name) ||
		    !counts(s, f, symbol, &counter, get))
			continue;
		RT_TRY(rt_scan_add_function(type, d->name, get ? RT_OP_GET : RT_OP_PUT, RT_PLACE_ARG, 1));
	}
	return NULL;
}
