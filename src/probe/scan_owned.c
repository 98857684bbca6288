/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that have one owner: parser_new() makes one, parser_free() ends it, nothing counts in between. Names propose,
 * debug information says what is made and ended, code that it comes from an allocator and goes back to one.
 *
 * Who adds something and is given an object for it takes that back where it is removed: "struct source
 * *loop_add_timer(loop)", "int source_remove(struct source *)". The object itself may be freed later, by somebody else.
 */
#include <string.h>

#include "base/words.h"
#include "probe/making.h"
#include "probe/scan_build.h"

enum { WORDS = 16 };

struct maker {
	const struct rt_survey_function *function;
	uint8_t out; /* the argument that tells where it leaves the object; 0: it returns it */
};

struct owned {
	const char *structure;
	RT_VEC(const struct rt_survey_function *) enders;
	RT_VEC(const struct rt_survey_function *) removers; /* where there are no enders */
	RT_VEC(struct maker) makers;
};

struct search {
	struct rt_scan *s;
	struct rt_making making;
	RT_VEC(struct owned) types;
	struct rt_map by_name; /* id in survey.names: index */
};

/* Where the code of a C function begins that nobody counts yet; NULL: it has none. */
static const struct rt_symbol *code_of(struct rt_scan *s, const struct rt_survey_function *d)
{
	const struct rt_symbol *symbol = rt_survey_code(&s->survey, d);

	if (!symbol || !strncmp(symbol->name, "_Z", 2) || rt_scan_is_known(s->known, d->name) ||
	    rt_scan_is_known(&s->found, d->name))
		return NULL;
	return symbol;
}

/*
 * A type of which it is known how its objects are counted is not one of these, whoever else frees some of it. Nor are
 * the nodes of lists: who frees the first one frees the others with it, and whoever puts one in makes it.
 */
static bool is_counted(struct rt_scan *s, const char *structure)
{
	struct rt_member member;

	return rt_spec_type_named(&s->found, structure) || rt_spec_type_named(s->known, structure) ||
	       (rt_dwarf_counter(s->module->dwarf, structure, &member) && member.says_reference) ||
	       rt_dwarf_member(s->module->dwarf, structure, "next", &member);
}

/* "close", and "closebackend", which is not parted */
static bool is_end(struct rt_word word)
{
	static const char *const begins[] = { "free", "close", "destroy", "delete", "release" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct rt_word first = { word.s, strlen(begins[i]) };

		if (word.len > first.len && rt_word_is(first, begins[i]))
			return true;
	}
	return rt_word_ends(word) || rt_word_is(word, "end");
}

/* What is done is undone by the other; what is made in between is over then. */
static const struct {
	const char *undoes;
	const char *does[4];
} opposites[] = {
	{ "remove", { "add", "insert", "install", "append" } },
	{ "del", { "add", "insert" } },
	{ "cancel", { "add", "schedule", "queue", "start" } },
	{ "unregister", { "register" } },
	{ "deregister", { "register" } },
	{ "uninstall", { "install" } },
	{ "unsubscribe", { "subscribe" } },
	{ "unwatch", { "watch" } },
};

static bool is_undoing(struct rt_word word)
{
	for (size_t i = 0; i < sizeof(opposites) / sizeof(opposites[0]); i++)
		if (rt_word_is(word, opposites[i].undoes))
			return true;
	return false;
}

/* name does what remover undoes */
static bool is_opposite(const char *remover, const char *name)
{
	for (size_t i = 0; i < sizeof(opposites) / sizeof(opposites[0]); i++) {
		size_t n = 0;

		while (n < 4 && opposites[i].does[n])
			n++;
		if (rt_words_have(remover, &opposites[i].undoes, 1) && rt_words_have(name, opposites[i].does, n))
			return true;
	}
	return false;
}

/* "void parser_free(struct parser *)", and of a struct parser ** */
static const char *ended_by(struct rt_scan *s, const struct rt_survey_function *d)
{
	const struct rt_param *p = rt_survey_param(&s->survey, d, 1);
	struct rt_word words[WORDS];
	unsigned n = rt_words(d->name, words, WORDS);
	bool ends = false;

	for (unsigned i = 0; i < n; i++)
		ends |= is_end(words[i]);
	return ends && p && (p->pointers == 1 || p->pointers == 2) && !d->returns.pointers && d->param_count <= 2
		       ? p->pointee
		       : NULL;
}

/* The words of ender but those that is_last() are those that name begins with. */
static bool is_called(const char *ender, bool (*is_last)(struct rt_word word), const char *name, bool whole)
{
	struct rt_word words[WORDS], others[WORDS];
	unsigned n = rt_words(ender, words, WORDS), m = rt_words(name, others, WORDS), at = 0;

	for (unsigned i = 0; i < n; i++) {
		if (is_last(words[i]))
			continue;
		if (at == m || !rt_word_same(words[i], others[at]))
			return false;
		at++;
	}
	/* "struct parser_s", "parser_t" */
	return at && (!whole || at == m || (at + 1 == m && others[at].len == 1));
}

static bool is_namesake(const char *ender, const char *name, bool whole)
{
	return is_called(ender, is_end, name, whole);
}

/* "int source_remove(struct source *)" */
static const char *removed_by(struct rt_scan *s, const struct rt_survey_function *d)
{
	const struct rt_param *p = rt_survey_param(&s->survey, d, 1);
	struct rt_word words[WORDS];
	unsigned n = rt_words(d->name, words, WORDS);

	if (!n || !is_undoing(words[n - 1]) || !p || p->pointers != 1 || !p->pointee || d->param_count != 1 ||
	    d->returns.pointers)
		return NULL;
	return is_called(d->name, is_undoing, p->pointee, true) ? p->pointee : NULL;
}

/* What is found was there before; what is grown, or copied out of its owner, is another thing than it seems. */
static bool sounds_like_more(const char *name)
{
	static const char *const words[] = { "set",    "find", "lookup", "search", "intern", "get",  "cache", "realloc",
					     "resize", "grow", "append", "add",    "insert", "next", "prev" };

	return rt_words_have(name, words, sizeof(words) / sizeof(words[0]));
}

static struct owned *type_of(struct search *o, const char *structure, bool add)
{
	uint32_t id = rt_intern_string(&o->s->survey.names, structure);
	uint64_t *at = id ? rt_map_get(&o->by_name, rt_key_make(id, 0)) : NULL;
	struct owned *type;

	if (at)
		return &o->types.data[*at];
	at = add && id ? rt_map_put(&o->by_name, rt_key_make(id, 0), NULL) : NULL;
	type = at ? rt_vec_add(&o->types) : NULL;
	if (!type)
		return NULL;
	*at = o->types.len - 1;
	type->structure = structure;
	return type;
}

static bool ends_slot(struct rt_scan *s, const struct rt_survey_function *d)
{
	return rt_survey_param(&s->survey, d, 1)->pointers == 2;
}

/* Those of what nobody ends otherwise. */
static struct rt_error *find_removers(struct search *o)
{
	for (size_t i = 0; i < o->s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &o->s->survey.functions.data[i];
		const char *structure = removed_by(o->s, d);
		struct owned *type;

		if (!structure || !code_of(o->s, d) || is_counted(o->s, structure) || !rt_scan_asked(o->s, structure))
			continue;
		type = type_of(o, structure, true);
		if (!type || (!type->enders.len && !rt_vec_push(&type->removers, d)))
			return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *find_enders(struct search *o)
{
	for (size_t i = 0; i < o->s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &o->s->survey.functions.data[i];
		const char *structure = ended_by(o->s, d);
		const struct rt_symbol *symbol = structure ? code_of(o->s, d) : NULL;
		struct owned *type;

		if (!symbol || is_counted(o->s, structure) || !rt_scan_asked(o->s, structure) ||
		    !(ends_slot(o->s, d) ? rt_making_ends_slot(&o->making, symbol)
					 : rt_making_ends(&o->making, symbol)))
			continue;
		type = type_of(o, structure, true);
		if (!type || !rt_vec_push(&type->enders, d))
			return rt_error_nomem();
	}
	return NULL;
}

/* "struct parser *parser_open(const char *)" */
static bool returns_new(struct search *o, const struct rt_survey_function *d, const struct rt_symbol *symbol)
{
	for (unsigned i = 1; i <= d->param_count; i++) {
		const struct rt_param *p = rt_survey_param(&o->s->survey, d, i);

		if (p->pointee && !strcmp(p->pointee, d->returns.pointee))
			return false;
	}
	return rt_making_returns(&o->making, symbol);
}

/* "int parser_open(struct parser **, const char *)": the type, and where; NULL: it is no such one. */
static struct owned *left_by(struct search *o, const struct rt_survey_function *d, const struct rt_symbol *symbol,
			     uint8_t *ret_arg)
{
	for (unsigned i = 1; i <= d->param_count; i++) {
		const struct rt_param *p = rt_survey_param(&o->s->survey, d, i);
		struct owned *type = p->pointee && p->pointers == 2 ? type_of(o, p->pointee, false) : NULL;

		*ret_arg = (uint8_t)i;
		if (type && rt_scan_leaves(o->s, type->structure, d) == i &&
		    rt_making_leaves(&o->making, symbol, (uint8_t)rt_reg_argument(i)))
			return type;
	}
	return NULL;
}

static bool adds(const struct owned *type, const char *name)
{
	for (size_t i = 0; i < type->removers.len; i++)
		if (is_opposite(type->removers.data[i]->name, name))
			return true;
	return false;
}

static struct rt_error *find_makers(struct search *o)
{
	for (size_t i = 0; i < o->s->survey.functions.len && o->types.len; i++) {
		const struct rt_survey_function *d = &o->s->survey.functions.data[i];
		struct maker maker = { .function = d };
		const struct rt_symbol *symbol;
		struct owned *type = NULL;

		if (d->returns.pointers == 1 && d->returns.pointee)
			type = type_of(o, d->returns.pointee, false);
		if (type && type->removers.len ? !adds(type, d->name) : sounds_like_more(d->name))
			continue;
		symbol = code_of(o->s, d);
		if (!symbol)
			continue;
		if (type && !returns_new(o, d, symbol))
			type = NULL;
		else if (!d->returns.pointers)
			type = left_by(o, d, symbol, &maker.out);
		if (type && !rt_vec_push(&type->makers, maker))
			return rt_error_nomem();
	}
	return NULL;
}

/*
 * One that ends them is called as the type, or as what makes them. Others end other things as well: the backends of an
 * interface, what holds such an object; or free something else for it.
 */
static bool belongs(const struct owned *type, const struct rt_survey_function *ender)
{
	if (is_namesake(ender->name, type->structure, true))
		return type->makers.len > 0;
	for (size_t i = 0; i < type->makers.len; i++)
		if (is_namesake(ender->name, type->makers.data[i].function->name, false))
			return true;
	return false;
}

static bool is_family(const struct owned *type)
{
	for (size_t i = 0; i < type->enders.len; i++)
		if (belongs(type, type->enders.data[i]))
			return true;
	return type->removers.len && type->makers.len;
}

static struct rt_error *take(struct rt_scan *s, const struct owned *owned)
{
	_cleanup_(rt_spec_deinit) struct rt_spec one = { 0 };
	struct rt_spec_type *type = rt_vec_add(&one.types);

	if (!type)
		return rt_error_nomem();
	type->start = 1;
	type->owned = true;
	type->counter_offset = RT_COUNTER_UNKNOWN;
	type->name = strdup(owned->structure);
	type->origin = strdup("scan");
	if (!type->name || !type->origin)
		return rt_error_nomem();
	for (size_t i = 0; i < owned->makers.len; i++) {
		const struct maker *m = &owned->makers.data[i];

		RT_TRY(m->out ? rt_scan_add_leaver(type, m->function, m->out)
			      : rt_scan_add_function(type, m->function->name, RT_OP_NEW, RT_PLACE_RET, 0));
	}
	for (size_t i = 0; i < owned->enders.len; i++) {
		const struct rt_survey_function *d = owned->enders.data[i];

		if (belongs(owned, d))
			RT_TRY(rt_scan_add_function(type, d->name, RT_OP_PUT,
						    ends_slot(s, d) ? RT_PLACE_ARG_PTR : RT_PLACE_ARG, 1));
	}
	for (size_t i = 0; i < owned->removers.len; i++)
		RT_TRY(rt_scan_add_function(type, owned->removers.data[i]->name, RT_OP_PUT, RT_PLACE_ARG, 1));
	return rt_spec_join(&s->found, &one);
}

struct rt_error *rt_scan_owned(struct rt_scan *s)
{
	struct search o = {
		.s = s, .making = { .image = s->module->image, .symtab = s->module->symtab, .decoder = s->decoder }
	};
	struct rt_error *err;

	if (!s->module->symtab || !s->module->dwarf)
		return NULL;
	err = find_enders(&o);
	if (!err)
		err = find_removers(&o);
	if (!err)
		err = find_makers(&o);
	for (size_t i = 0; i < o.types.len; i++) {
		struct owned *type = &o.types.data[i];

		if (!err && is_family(type))
			err = take(s, type);
		rt_vec_deinit(&type->makers);
		rt_vec_deinit(&type->enders);
		rt_vec_deinit(&type->removers);
	}
	rt_vec_deinit(&o.types);
	rt_map_deinit(&o.by_name);
	return err;
}
