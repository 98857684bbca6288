/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Families that have no get: dev_create() makes an object, dev_find() counts
 * by itself, dev_put() gives back. A name like a put's says little, so the code
 * must count down one field, free (or leave that to others, where names say that
 * it counts references), and there must be a constructor that sets that field.
 */
#include <string.h>

#include "probe/making.h"
#include "probe/scan_build.h"

/* Words for giving back that nothing else is called by, and whether they say that it is a reference. */
static const struct {
	const char *word;
	bool reference;
} words[] = {
	{ "_unref", true },       { "_decref", true },   { "_dec_ref", true },  { "_unreference", true },
	{ "_remove_ref", true },  { "_drop_ref", true }, { "_del_ref", true },  { "_put_ref", true },
	{ "_release_ref", true }, { "_put", false },     { "_release", false }, { "_rele", false },
	{ "_drop", false },       { "_dec", false },
};

/* "dev" of "dev_put"; false: no such name. *ret_reference: it says that it gives a reference back. */
static bool family_of(const char *name, char *family, bool *ret_reference)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].word);

		if (len <= n || len - n >= RT_FAMILY_NAME_MAX || strcmp(name + len - n, words[i].word) != 0)
			continue;
		len -= n;
		while (len && name[len - 1] == '_')
			len--;
		memcpy(family, name, len);
		family[len] = '\0';
		*ret_reference = words[i].reference;
		return len > 0;
	}
	return false;
}

/* The one field that the put makes smaller by 1. */
static bool counts_down(struct rt_scan *s, struct rt_scan_family *f)
{
	struct rt_effect e;
	unsigned found = 0;

	rt_effect_of(s->module->image, s->module->symtab, s->decoder, f->put.symbol->addr, RT_REG_RDI, &e);
	for (unsigned i = 0; i < e.count; i++) {
		const struct rt_change *c = &e.fields[i];

		if (c->delta != -1 || c->offset < 0 || c->offset > INT32_MAX)
			continue;
		found++;
		f->counter = (int32_t)c->offset;
		f->counter_size = c->size;
	}
	return found == 1;
}

/* What debug information says about the put, where there is any; false: it is against it. */
static bool declaration_fits(struct rt_scan *s, struct rt_scan_family *f)
{
	const struct rt_survey_function *d = f->put.declared;
	const struct rt_param *p = rt_survey_param(&s->survey, d, 1);
	struct rt_member counter;

	if (!d)
		return true;
	if (!p || p->pointers != 1 || !p->pointee || d->param_count != 1 ||
	    !rt_dwarf_counter(s->module->dwarf, p->pointee, &counter) || counter.offset != (uint64_t)f->counter)
		return false;
	f->structure = p->pointee;
	f->by_type = true;
	return true;
}

/* Without debug information: a constructor by name that sets the counter. */
static bool has_named_maker(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_making *m)
{
	for (size_t i = 0; i < s->survey.symbols.len; i++) {
		const struct rt_symbol *symbol = s->survey.symbols.data[i].symbol;

		if (rt_family_is_new(symbol->name, f->stem_name, false) && rt_making_starts(m, symbol))
			return true;
	}
	return false;
}

static bool makes_declared(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_making *m)
{
	for (size_t i = 0; i < s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &s->survey.functions.data[i];
		const struct rt_symbol *symbol = d->has_body ? rt_symtab_at(m->symtab, d->addr) : NULL;

		if (symbol && symbol->addr.v == d->addr.v && d->returns.pointers == 1 && d->returns.pointee &&
		    strcmp(d->returns.pointee, f->structure) == 0 && rt_making_starts(m, symbol))
			return true;
	}
	return false;
}

static struct rt_error *consider_put(struct rt_scan *s, const char *name)
{
	struct rt_scan_family f = { .put_levels = 1, .by_code = true };
	struct rt_making m = { .image = s->module->image, .symtab = s->module->symtab, .decoder = s->decoder };
	bool reference = false;

	if (!family_of(name, f.stem_name, &reference) || rt_scan_is_known(s->known, name) ||
	    rt_scan_is_known(&s->found, name) || !rt_scan_lookup(s, name, &f.put) || !f.put.symbol || !m.symtab ||
	    !counts_down(s, &f) || !declaration_fits(s, &f) || !rt_scan_wanted(s, &f))
		return NULL;
	for (size_t i = 0; i < s->found.types.len; i++)
		if (strcmp(s->found.types.data[i].name, f.structure ? f.structure : f.stem_name) == 0)
			return NULL;
	m.counter = f.counter;
	m.counter_size = f.counter_size;
	/* a timer may free it, later: then the member and the function have to be called so */
	if (!(rt_making_ends(&m, f.put.symbol) || (reference && f.by_type)) ||
	    !(f.structure ? makes_declared(s, &f, &m) : has_named_maker(s, &f, &m)))
		return NULL;
	return rt_scan_add_family(s, &f);
}

struct rt_error *rt_scan_puts(struct rt_scan *s)
{
	for (uint32_t id = 1; id <= s->survey.head_count; id++)
		RT_TRY(consider_put(s, rt_intern_text(&s->survey.names, id)));
	return NULL;
}
