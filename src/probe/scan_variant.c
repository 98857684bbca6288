/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Members of a family that have no partner of their own: obj_ref() and obj_unref() count, and so do
 * _obj_ref_unlocked() and _obj_unref_and_unlock(). The name says what they want to be, the code that they move the
 * counter of their first argument by themselves.
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

static bool fits(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_survey_function *d,
		 const char *word)
{
	const struct rt_param *p = rt_survey_param(&s->survey, d, 1);

	return p && p->pointers == 1 && p->pointee && !strcmp(p->pointee, f->structure) &&
	       (!d->returns.type ||
		(d->returns.pointers == 1 && d->returns.pointee && !strcmp(d->returns.pointee, f->structure))) &&
	       (is_called(d->name, f->stem_name, word) || is_called(d->name, f->structure, word));
}

/* Does the code move the counter by just so much? One that calls the get or put does it through that. */
static bool counts(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_symbol *symbol,
		   const struct rt_member *counter, int64_t delta)
{
	struct rt_effect e;
	bool found = false;

	if ((f->get.symbol && rt_scan_calls(s, symbol, f->get.symbol->addr)) ||
	    (f->put.symbol && rt_scan_calls(s, symbol, f->put.symbol->addr)))
		return false;
	rt_effect_of(s->module->image, s->module->symtab, s->decoder, symbol->addr, RT_REG_RDI, &e);
	for (unsigned i = 0; i < e.count; i++) {
		const struct rt_change *c = &e.fields[i];

		if (c->offset != (int64_t)counter->offset || c->size != counter->size)
			continue;
		if (c->delta != delta)
			return false;
		found = true;
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
		bool get = d->has_body && fits(s, f, d, f->stem->get);

		if (!get && !(d->has_body && fits(s, f, d, f->stem->put)))
			continue;
		symbol = rt_symtab_at(s->module->symtab, d->addr);
		if (!symbol || symbol->addr.v != d->addr.v || rt_scan_is_known(s->known, d->name) ||
		    !counts(s, f, symbol, &counter, get ? 1 : -1))
			continue;
		RT_TRY(rt_scan_add_function(type, d->name, get ? RT_OP_GET : RT_OP_PUT, RT_PLACE_ARG, 1));
	}
	return NULL;
}
