/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Families by what their functions do, whatever these are called: a struct has a member that by its name counts
 * references, one function adds 1 to it in the T * that it is given, at any place among its arguments, and another
 * takes 1 off; or only the latter, where there is a constructor that sets it, or code that counts it up in the open; or
 * none, and code counts it up and down in the open: x->refs++, or a macro.
 * Names are only asked for a word that says as much: who takes a reference for a purpose of his own does
 * the same to the counter, and is whom reports should name.
 */
#include <string.h>

#include "base/words.h"
#include "probe/count_word.h"
#include "probe/making.h"
#include "probe/scan_build.h"

enum { FIELD_FUNCTIONS_MAX = 24 /* of one type */ };

struct field_function {
	const struct rt_survey_function *declared;
	const struct rt_symbol *symbol; /* NULL: always inlined */
	unsigned arg;
	bool get;
};

struct field_type {
	const char *structure;
	struct rt_member counter;
	struct field_function functions[FIELD_FUNCTIONS_MAX];
	unsigned count;
};

/* What the function's own code does to the counter of argument n: 1, -1, or 0 for neither, or both. */
static int moves(struct rt_scan *s, const struct field_type *t, const struct rt_symbol *symbol, unsigned n)
{
	struct rt_effect e;
	int moves = 0;

	rt_effect_own(s->module->image, s->module->symtab, s->decoder, symbol->addr, (uint8_t)rt_reg_argument(n), &e);
	for (unsigned i = 0; i < e.count; i++) {
		const struct rt_change *c = &e.fields[i];

		if (c->offset != (int64_t)t->counter.offset || c->size != t->counter.size)
			continue;
		if ((c->delta != 1 && c->delta != -1) || (moves && moves != c->delta))
			return 0;
		moves = (int)c->delta;
	}
	return moves;
}

/* the only T * among the arguments, 0: none, or more than one */
static unsigned object_of(struct rt_scan *s, const struct rt_survey_function *d, const char *structure)
{
	unsigned found = 0;

	for (unsigned n = 1; n <= d->param_count && n <= RT_SPEC_ARG_MAX; n++) {
		const struct rt_param *p = rt_survey_param(&s->survey, d, n);

		if (!p->pointee || strcmp(p->pointee, structure) != 0)
			continue;
		if (found || p->pointers != 1)
			return 0;
		found = n;
	}
	return found;
}

static bool returns_plain(const struct rt_survey_function *d, const char *structure, bool get)
{
	const struct rt_param *r = &d->returns;

	if (!r->type || !r->pointers)
		return !get || !r->type;
	return get && r->pointers == 1 && r->pointee && !strcmp(r->pointee, structure);
}

static void add_function(struct rt_scan *s, struct field_type *t, const struct rt_survey_function *d)
{
	struct field_function f = { .declared = d, .arg = object_of(s, d, t->structure) };
	bool taken = false;

	for (unsigned i = 0; i < t->count; i++)
		taken |= !strcmp(t->functions[i].declared->name, d->name);
	if (!f.arg || t->count == FIELD_FUNCTIONS_MAX || taken || rt_scan_is_known(s->known, d->name))
		return;
	if (d->has_body) {
		const struct rt_symbol *symbol = rt_survey_code(&s->survey, d);
		int delta = symbol ? moves(s, t, symbol, f.arg) : 0;

		if (!delta || !rt_count_word(d->name, delta > 0))
			return;
		/* one that is given more and returns something takes it for a purpose of its own, or not always */
		if (delta > 0 && d->param_count > 1 && d->returns.type &&
		    !(rt_count_word_sure(d->name, true) && returns_plain(d, t->structure, true)))
			return;
		f.symbol = symbol;
		f.get = delta > 0;
	} else if (d->has_inlined) {
		f.get = rt_count_word_sure(d->name, true);
		if (f.get == rt_count_word_sure(d->name, false) || !returns_plain(d, t->structure, f.get) ||
		    !rt_scan_counts_inlined(s, d->name, f.arg, &t->counter, f.get ? 1 : -1))
			return;
	} else {
		return;
	}
	t->functions[t->count++] = f;
}

static const struct field_function *first(const struct field_type *t, bool get)
{
	const struct field_function *any = NULL;

	for (unsigned i = 0; i < t->count; i++) {
		const struct field_function *f = &t->functions[i];

		if (f->get == get && (!any || (f->symbol && !any->symbol)))
			any = f;
	}
	return any;
}

static struct rt_scan_named named(const struct field_function *f)
{
	return f ? (struct rt_scan_named){ .name = f->declared->name, .symbol = f->symbol, .declared = f->declared }
		 : (struct rt_scan_named){ .name = NULL };
}

static struct rt_scan_family family_of(const struct field_type *t)
{
	const struct field_function *get = first(t, true), *put = first(t, false);
	struct rt_scan_family f = { .structure = t->structure,
				    .by_type = true,
				    .by_code = true,
				    .put_levels = 1,
				    .get = named(get),
				    .put = named(put),
				    .get_arg = get ? (uint8_t)get->arg : 1,
				    .put_arg = put ? (uint8_t)put->arg : 1,
				    .counter = (int32_t)t->counter.offset,
				    .counter_size = t->counter.size };

	memcpy(f.stem_name, t->structure, strnlen(t->structure, sizeof(f.stem_name) - 1));
	return f;
}

/*
 * "void obj_free_final(T *)", which gives its memory back: who counts in the open calls it when nothing is left. By its
 * name, too, it ends something.
 */
static bool ends_objects(struct rt_scan *s, const struct field_type *t, const struct rt_survey_function *d)
{
	struct rt_making m = { .image = s->module->image, .symtab = s->module->symtab, .decoder = s->decoder };
	const struct rt_param *p = rt_survey_param(&s->survey, d, 1);
	const struct rt_symbol *symbol = rt_survey_code(&s->survey, d);

	return p && p->pointers == 1 && p->pointee && !strcmp(p->pointee, t->structure) && !d->returns.pointers &&
	       rt_words_destroy(d->name) && symbol && strncmp(symbol->name, "_Z", 2) != 0 &&
	       !rt_scan_is_known(s->known, d->name) && !moves(s, t, symbol, 1) && rt_making_ends(&m, symbol);
}

static struct rt_error *add_enders(struct rt_scan *s, const struct field_type *t, struct rt_spec_type *type)
{
	for (size_t i = 0; i < s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &s->survey.functions.data[i];

		if (ends_objects(s, t, d))
			RT_TRY(rt_scan_add_function(type, d->name, RT_OP_FREE, RT_PLACE_ARG, 1));
	}
	return NULL;
}

/* Where no function takes the last reference, a count of 0 may be no end: another flag, or owner, may have to agree. */
static bool is_ended(struct rt_scan *s, const struct field_type *t)
{
	for (size_t i = 0; i < s->survey.functions.len; i++)
		if (ends_objects(s, t, &s->survey.functions.data[i]))
			return true;
	return false;
}

static struct rt_error *take(struct rt_scan *s, const struct field_type *t)
{
	struct rt_scan_family f = family_of(t);
	struct rt_spec_type *type;

	if (!rt_scan_wanted(s, &f))
		return NULL;
	RT_TRY(rt_scan_add_family(s, &f));
	type = &s->found.types.data[s->found.types.len - 1];
	for (unsigned i = 0; i < t->count; i++)
		RT_TRY(rt_scan_add_function(type, t->functions[i].declared->name,
					    t->functions[i].get ? RT_OP_GET : RT_OP_PUT, RT_PLACE_ARG,
					    (uint8_t)t->functions[i].arg));
	return first(t, false) ? NULL : add_enders(s, t, type);
}

/* a put without a get gives up the last reference, too, and nothing else looks like it: it ends the object */
static bool ends(struct rt_scan *s, const struct field_type *t)
{
	struct rt_making m = { .image = s->module->image, .symtab = s->module->symtab, .decoder = s->decoder };

	for (unsigned i = 0; i < t->count; i++) {
		const struct field_function *f = &t->functions[i];

		if (!f->get && f->symbol && f->arg == 1 && rt_making_ends(&m, f->symbol))
			return true;
	}
	return false;
}

struct fields {
	struct rt_scan *s;
	RT_VEC(struct field_type) open; /* what they lack, a get or both, may be done in the open */
};

static struct rt_error *consider(struct fields *all, const char *structure)
{
	struct field_type t = { .structure = structure };
	struct rt_scan *s = all->s;
	struct rt_scan_family f;

	if (rt_spec_type_named(&s->found, structure) || rt_spec_type_named(s->known, structure) ||
	    strlen(structure) >= RT_FAMILY_NAME_MAX || !rt_dwarf_counter(s->module->dwarf, structure, &t.counter) ||
	    !t.counter.says_reference || t.counter.level || t.counter.offset > INT32_MAX)
		return NULL;
	for (size_t i = 0; i < s->survey.functions.len; i++)
		add_function(s, &t, &s->survey.functions.data[i]);
	/* what is counted down and never up is no count of references */
	if (first(&t, false) && !first(&t, true) && !ends(s, &t))
		return NULL;
	if (!first(&t, false) && !is_ended(s, &t))
		return NULL;
	f = family_of(&t);
	if (first(&t, false) && (first(&t, true) || rt_scan_is_made(s, &f)))
		return take(s, &t);
	return rt_vec_push(&all->open, t) ? NULL : rt_error_nomem();
}

static struct rt_error *open_spec(const struct fields *all, struct rt_spec *spec)
{
	for (size_t i = 0; i < all->open.len; i++) {
		const struct field_type *t = &all->open.data[i];
		struct rt_spec_type *type = rt_vec_add(&spec->types);

		if (!type)
			return rt_error_nomem();
		type->start = RT_START_UNKNOWN;
		type->counter_offset = (int32_t)t->counter.offset;
		type->counter_size = (uint32_t)t->counter.size;
		type->name = strdup(t->structure);
		if (!type->name)
			return rt_error_nomem();
		for (unsigned k = 0; k < t->count; k++)
			RT_TRY(rt_scan_add_function(type, t->functions[k].declared->name,
						    t->functions[k].get ? RT_OP_GET : RT_OP_PUT, RT_PLACE_ARG,
						    (uint8_t)t->functions[k].arg));
	}
	return NULL;
}

static struct rt_error *take_open(struct fields *all)
{
	_cleanup_(rt_spec_deinit) struct rt_spec spec = { 0 };
	_cleanup_free_ uint8_t *counted = calloc(all->open.len + 1, 1);

	if (!counted)
		return rt_error_nomem();
	RT_TRY(open_spec(all, &spec));
	RT_TRY(rt_scan_counted_open(all->s, &spec, counted));
	for (size_t i = 0; i < all->open.len; i++) {
		const struct field_type *t = &all->open.data[i];
		uint8_t ways = counted[i];

		ways |= first(t, true) ? RT_SCAN_COUNTS_UP : 0;
		ways |= first(t, false) ? RT_SCAN_COUNTS_DOWN : 0;
		if (ways == (RT_SCAN_COUNTS_UP | RT_SCAN_COUNTS_DOWN))
			RT_TRY(take(all->s, t));
	}
	return NULL;
}

struct rt_error *rt_scan_fields(struct rt_scan *s)
{
	struct fields all = { .s = s };
	struct rt_map seen = { 0 };
	struct rt_error *err = NULL;

	for (size_t i = 0; i < s->survey.params.len && s->module->symtab && !err; i++) {
		const struct rt_param *p = &s->survey.params.data[i];
		uint32_t id = p->pointers == 1 && p->pointee ? rt_intern_string(&s->survey.names, p->pointee) : 0;
		bool made = false;

		if (!id)
			continue;
		if (!rt_map_put(&seen, rt_key_make(id, 0), &made))
			err = rt_error_nomem();
		else if (made)
			err = consider(&all, p->pointee);
	}
	if (!err)
		err = take_open(&all);
	rt_map_deinit(&seen);
	rt_vec_deinit(&all.open);
	return err;
}
