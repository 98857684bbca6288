/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gets and puts by another name for what begins with an object of the family: "static inline struct sink
 * *sink_ref(struct sink *s) { return (struct sink *)object_ref(&s->parent); }". They count by a call of the family's
 * own functions, and who calls them takes or gives back the reference. Without debug information such a function is
 * known where it is nothing but a jump.
 */
#include <stdio.h>
#include <string.h>

#include "probe/scan_build.h"

enum { INSTANCES_MAX = 16, RANGE_BYTES = 4096, HEADS_MAX = 8 };

struct call_search {
	struct rt_scan *s;
	const struct rt_scan_named *to;
	bool found;
};

static bool ends_with(const char *name, const char *word)
{
	size_t n = strlen(name), w = strlen(word);

	return n > w && !strcmp(name + n - w, word);
}

/* a call of it, or of the stub through which the module calls it */
static bool leads_to(const struct call_search *c, const struct rt_insn *insn)
{
	const struct rt_symbol *stub;

	if ((!insn->call && !insn->jump) || !insn->has_target)
		return false;
	if (c->to->symbol && c->to->symbol->addr.v == insn->target.v)
		return true;
	stub = rt_symtab_at(c->s->module->symtab, insn->target);
	return stub && stub->plt && !strcmp(stub->name, c->to->name);
}

static void look(struct rt_elfaddr start, struct rt_elfaddr end, void *arg)
{
	struct call_search *c = arg;
	struct rt_insn insn;

	for (; start.v < end.v && end.v - start.v <= RANGE_BYTES && !c->found; start.v += insn.length) {
		if (!rt_decode(c->s->decoder, rt_image_at(c->s->module->image, start, 16), start, &insn))
			return;
		c->found = leads_to(c, &insn);
	}
}

/* its code calls the function: that of its own, or where it is inlined */
static bool calls(struct rt_scan *s, const struct rt_scan_named *from, const struct rt_scan_named *to)
{
	struct call_search c = { .s = s, .to = to };
	const struct rt_symbol *symbol = from->symbol;
	_cleanup_error_ struct rt_error *err = NULL;
	_cleanup_free_ struct rt_inlined *list = NULL;
	size_t count = 0;

	if (symbol)
		look(symbol->addr, (struct rt_elfaddr){ symbol->addr.v + symbol->size }, &c);
	if (!c.found)
		err = rt_dwarf_inlined(s->module->dwarf, from->name, 1, &list, &count);
	for (size_t i = 0; !err && i < count && i < INSTANCES_MAX && !c.found; i++)
		rt_dwarf_inlined_ranges(s->module->dwarf, &list[i], look, &c);
	return c.found;
}

static struct rt_error *read_kin(struct rt_scan *s)
{
	if (s->kin_read)
		return NULL;
	s->kin_read = true;
	return rt_kin_read(s->module->dwarf, &s->kin);
}

struct rt_error *rt_scan_is_kin(struct rt_scan *s, const struct rt_scan_family *f, bool *ret)
{
	const char *head = f->structure;
	struct rt_scan_named of_head;
	char name[RT_FAMILY_NAME_MAX];

	*ret = f->get.name && rt_scan_is_known(&s->found, f->get.name);
	if (*ret || !head || !f->stem || !f->get.name || !s->module->symtab || !s->module->dwarf)
		return NULL;
	RT_TRY(read_kin(s));
	/* names of several files may go round in a circle */
	for (unsigned depth = 0; depth < HEADS_MAX && !*ret && (head = rt_kin_head(&s->kin, head)); depth++) {
		int n = snprintf(name, sizeof(name), "%s%s", head, f->stem->get);

		*ret = n > 0 && (size_t)n < sizeof(name) && rt_scan_asked(s, head) &&
		       rt_scan_lookup(s, name, &of_head) && calls(s, &f->get, &of_head);
	}
	return NULL;
}

/* by its name and declaration it does to something else what the family's get or put does; NULL: neither */
static const struct rt_scan_named *means(struct rt_scan *s, const struct rt_scan_family *f,
					 const struct rt_survey_function *d)
{
	const struct rt_param *p = d->param_count == 1 ? rt_survey_param(&s->survey, d, 1) : NULL;
	const bool returns_it = p && p->pointee && d->returns.pointee && !strcmp(p->pointee, d->returns.pointee);

	if (!p || p->pointers != 1 || !p->pointee || !strcmp(p->pointee, f->structure) ||
	    (d->returns.type && !returns_it))
		return NULL;
	if (f->put.name && ends_with(d->name, f->stem->put))
		return &f->put;
	return f->get.name && ends_with(d->name, f->stem->get) ? &f->get : NULL;
}

/*
 * The function is one by another name. A put whose get counts by itself ends something when that is over, and gives
 * back what it held.
 */
static bool is_other_name(struct rt_scan *s, const struct rt_scan_family *f, const char *name,
			  const struct rt_scan_named *as)
{
	char partner[RT_FAMILY_NAME_MAX];
	struct rt_scan_named own, get;
	int n;

	if (!rt_scan_lookup(s, name, &own) || !calls(s, &own, as))
		return false;
	if (as == &f->get || !f->get.name)
		return true;
	n = snprintf(partner, sizeof(partner), "%.*s%s", (int)(strlen(name) - strlen(f->stem->put)), name,
		     f->stem->get);
	if (n < 0 || (size_t)n >= sizeof(partner))
		return false;
	return !rt_scan_lookup(s, partner, &get) || calls(s, &get, &f->get);
}

struct rt_error *rt_scan_kin(struct rt_scan *s, const struct rt_scan_family *f, struct rt_spec_type *type)
{
	if (!f->structure || !f->stem || !s->module->symtab || !s->module->dwarf)
		return NULL;
	for (size_t i = 0; i < s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &s->survey.functions.data[i];
		const struct rt_scan_named *as = means(s, f, d);

		if (!as || rt_scan_is_known(s->known, d->name) || rt_scan_is_known(&s->found, d->name))
			continue;
		RT_TRY(read_kin(s));
		if (!rt_kin_begins(&s->kin, rt_survey_param(&s->survey, d, 1)->pointee, f->structure) ||
		    !is_other_name(s, f, d->name, as))
			continue;
		RT_TRY(rt_scan_add_function(type, d->name, as == &f->get ? RT_OP_GET : RT_OP_PUT, RT_PLACE_ARG, 1));
	}
	return NULL;
}

/* All that it does is to jump to the function of this name. */
static bool is_jump_to(struct rt_scan *s, const struct rt_symbol *from, const char *name)
{
	const struct rt_scan_named to = { .name = name, .symbol = rt_symtab_find(s->module->symtab, name) };
	const struct call_search c = { .s = s, .to = &to };
	struct rt_elfaddr at = from->addr;
	struct rt_insn insn;

	do {
		if (!rt_decode(s->decoder, rt_image_at(s->module->image, at, 16), at, &insn))
			return false;
		at.v += insn.length;
	} while (insn.endbr);
	return insn.jump && !insn.conditional && leads_to(&c, &insn);
}

static bool jumps_to_op(struct rt_scan *s, const struct rt_symbol *from, const struct rt_spec_type *type, enum rt_op op)
{
	for (size_t i = 0; i < type->functions.len; i++) {
		const struct rt_spec_function *f = &type->functions.data[i];

		if (f->op == op && !rt_spec_is_pattern(f) && is_jump_to(s, from, f->name))
			return true;
	}
	return false;
}

const struct rt_spec_type *rt_scan_jumps_to(struct rt_scan *s, const struct rt_scan_family *f)
{
	const struct rt_symbol *get = f->get.symbol, *put = f->put.symbol;

	if (!s->module->symtab || (!get && !put))
		return NULL;
	for (size_t t = 0; t < s->known->types.len; t++) {
		const struct rt_spec_type *type = &s->known->types.data[t];

		if (rt_spec_is_preset(type) && (!get || jumps_to_op(s, get, type, RT_OP_GET)) &&
		    (!put || jumps_to_op(s, put, type, RT_OP_PUT)))
			return type;
	}
	return NULL;
}
