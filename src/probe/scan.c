/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Families of a module: names propose, debug information and code dispose. A
 * wrong family costs more than a missing one: it puts false findings in front of
 * the user, so what nothing confirms must at least be named unmistakably.
 */
#include "probe/scan.h"

#include <string.h>

#include "base/fs.h"
#include "base/words.h"
#include "probe/making.h"
#include "probe/result.h"
#include "probe/scan_build.h"

bool rt_scan_lookup(struct rt_scan *s, const char *name, struct rt_scan_named *ret)
{
	const struct rt_survey_symbol *symbol = NULL;
	const struct rt_survey_function *f = NULL;

	*ret = (struct rt_scan_named){ .name = name };
	if (s->marked.len && rt_map_get(&s->marked, rt_key_make(rt_intern_string(&s->survey.names, name), 0)))
		return false;
	while ((symbol = rt_survey_symbol(&s->survey, name, symbol)))
		if (symbol->clone != RT_CLONE_PART && !symbol->symbol->ifunc) {
			ret->symbol = symbol->symbol;
			break;
		}
	if (ret->symbol)
		ret->declared = rt_survey_declaration(&s->survey, name, ret->symbol->addr);
	while (!ret->declared && (f = rt_survey_function(&s->survey, name, f)))
		if (f->has_inlined || f->has_body)
			ret->declared = f;
	return ret->symbol || (ret->declared && ret->declared->has_inlined);
}

static bool same_struct(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* Does debug info speak for the pair (1), against it (-1), or not at all (0)? */
static int confirm_by_type(struct rt_scan *s, struct rt_scan_family *f)
{
	const struct rt_survey_function *get = f->get.declared, *put = f->put.declared;
	const struct rt_param *g = rt_survey_param(&s->survey, get, 1), *p = rt_survey_param(&s->survey, put, 1);
	struct rt_member counter;

	if (!get || !put)
		return 0;
	if (!g || !p || g->pointers != 1 || !p->pointers || p->pointers > 2)
		return -1;
	/* gpointer and void *: nothing is said, but by a structure of the family's name */
	if (!g->pointee && !p->pointee) {
		if (!rt_dwarf_counter(s->module->dwarf, f->stem_name, &counter) || !counter.says_reference ||
		    counter.level || counter.offset > INT32_MAX)
			return 0;
		f->structure = f->stem_name;
		f->named_counter = true;
		f->counter = (int32_t)counter.offset;
		f->counter_size = (uint32_t)counter.size;
		f->put_levels = p->pointers;
		return p->pointers == 1;
	}
	if (!same_struct(g->pointee, p->pointee))
		return -1;
	/* queue_get(q) hands out what queue_put(q, x) took: another thing than a reference to q */
	if (get->returns.type && get->returns.pointers && !same_struct(get->returns.pointee, g->pointee))
		return -1;
	if (get->param_count > 1 && get->returns.type && !get->returns.pointers)
		return -1;
	f->structure = g->pointee;
	f->put_levels = p->pointers;
	return f->stem->weight == RT_STEM_COMMON && put->param_count > 1 ? 0 : 1;
}

static bool confirm_by_code(struct rt_scan *s, struct rt_scan_family *f)
{
	struct rt_effect get, put;
	uint32_t size;
	int32_t at;

	if (!f->get.symbol || !f->put.symbol)
		return false;
	rt_effect_of(s->module->image, s->module->symtab, s->decoder, f->get.symbol->addr, RT_REG_RDI, &get);
	f->get_counts = rt_effect_single(&get, &at, &size);
	if (!get.count)
		return false;
	rt_effect_of(s->module->image, s->module->symtab, s->decoder, f->put.symbol->addr, RT_REG_RDI, &put);
	return rt_effect_counter(&get, &put, &f->counter, &f->counter_size);
}

bool rt_scan_is_public(const struct rt_scan_named *n)
{
	return n->symbol && n->symbol->bind != RT_BIND_LOCAL;
}

/* Is it a family at all? */
static bool accept(struct rt_scan *s, struct rt_scan_family *f)
{
	static const char *const weak[] = { "weak", "weakref" };
	struct rt_member counter;
	int types = confirm_by_type(s, f);

	if (types < 0)
		return false;
	f->by_type = types > 0;
	f->by_code = confirm_by_code(s, f);
	if (f->by_code)
		return true;
	/* obj_weak_ref() asks to be told when the object goes: it takes none, unless it counts as well */
	if (rt_words_have(f->get.name, weak, sizeof(weak) / sizeof(weak[0])))
		return false;
	if (f->by_type)
		switch (f->stem->weight) {
		case RT_STEM_STRONG:
			return true;
		case RT_STEM_COMMON:
			return rt_dwarf_counter(s->module->dwarf, f->structure, &counter);
		case RT_STEM_WEAK:
			return false;
		}
	/* an infix ("_ref_unlocked") is an inner variant of a family rather than one of its own */
	return f->stem->weight == RT_STEM_STRONG && rt_scan_is_public(&f->get) && rt_scan_is_public(&f->put) &&
	       f->get.name[0] != '_' &&
	       strcmp(f->get.name + strlen(f->get.name) - strlen(f->stem->get), f->stem->get) == 0;
}

bool rt_scan_asked(const struct rt_scan *s, const char *type)
{
	const char *const *types = s->options->types;

	while (types && *types && !rt_glob_match(*types, type))
		types++;
	return !types || *types;
}

bool rt_scan_wanted(const struct rt_scan *s, const struct rt_scan_family *f)
{
	return rt_scan_asked(s, f->stem_name) || (f->structure && rt_scan_asked(s, f->structure));
}

/* The caller's spec counts this function already: a second type would count it twice. */
bool rt_scan_is_known(const struct rt_spec *spec, const char *name)
{
	for (size_t t = 0; t < spec->types.len; t++)
		for (size_t i = 0; i < spec->types.data[t].functions.len; i++)
			if (rt_spec_means(spec->types.data[t].functions.data[i].name, name,
					  rt_spec_is_told(&spec->types.data[t])))
				return true;
	return false;
}

struct rt_error *rt_scan_add_function(struct rt_spec_type *type, const char *name, enum rt_op op, enum rt_place place,
				      uint8_t arg)
{
	struct rt_spec_function f = { .op = (uint8_t)op,
				      .place = (uint8_t)place,
				      .arg = arg,
				      .levels = place == RT_PLACE_ARG_PTR,
				      .guessed = true };

	f.name = strdup(name);
	if (!f.name)
		return rt_error_nomem();
	if (!rt_spec_has_function(type, &f) && rt_vec_push(&type->functions, f))
		return NULL;
	free(f.name);
	return NULL;
}

static bool makes(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_scan_named *n)
{
	const struct rt_param *r;

	/* "ssl_alloc_buffers" returns a status, "path_new_line" nothing */
	if (!n->declared)
		return !f->structure && rt_scan_is_public(n) && rt_family_is_new(n->name, f->stem_name, false) &&
		       !rt_result_is_number(s->module->image, s->decoder, n->symbol);
	r = &n->declared->returns;
	if (!f->structure)
		return r->pointers == 1 && rt_family_is_new(n->name, f->stem_name, false);
	return r->pointers == 1 && same_struct(r->pointee, f->structure) &&
	       (rt_family_is_new(n->name, f->stem_name, true) || rt_family_is_new(n->name, f->structure, true));
}

bool rt_scan_calls(struct rt_scan *s, const struct rt_symbol *from, struct rt_elfaddr target)
{
	struct rt_elfaddr at = from->addr, end = { from->addr.v + from->size };

	for (unsigned n = 0; n < 4000 && at.v < end.v; n++) {
		struct rt_insn insn;

		if (!rt_decode(s->decoder, rt_image_at(s->module->image, at, 16), at, &insn))
			return false;
		if ((insn.call || insn.jump) && insn.has_target && insn.target.v == target.v)
			return true;
		at.v += insn.length;
	}
	return false;
}

/* "X_unref() { X_free(); }" with the counting in X_free(). */
static bool moves_counter(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_scan_named *n)
{
	struct rt_effect effect;

	rt_effect_of(s->module->image, s->module->symtab, s->decoder, n->symbol->addr, RT_REG_RDI, &effect);
	for (unsigned i = 0; i < effect.count; i++)
		if (effect.fields[i].delta == -1 && (!f->by_code || effect.fields[i].offset == f->counter))
			return true;
	return false;
}

static bool frees(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_scan_named *n)
{
	const struct rt_param *p = rt_survey_param(&s->survey, n->declared, 1);
	struct rt_making m = { .image = s->module->image, .symtab = s->module->symtab, .decoder = s->decoder };

	if (!n->symbol || !f->put.symbol || strcmp(n->name, f->put.name) == 0 ||
	    n->symbol->addr.v == f->put.symbol->addr.v)
		return false;
	if (!rt_family_is_free(n->name, f->stem_name) && !(f->structure && rt_family_is_free(n->name, f->structure)))
		return false;
	if (n->declared && f->structure && (!p || p->pointers != 1 || !same_struct(p->pointee, f->structure)))
		return false;
	/* a put's own last step is death, and so is what frees by itself; others may just close or detach */
	return (rt_scan_calls(s, f->put.symbol, n->symbol->addr) ||
		(s->module->symtab && rt_making_ends(&m, n->symbol))) &&
	       !moves_counter(s, f, n);
}

static struct rt_error *complete(struct rt_scan *s, const struct rt_scan_family *f, struct rt_spec_type *type)
{
	for (uint32_t id = 1; id <= s->survey.head_count; id++) {
		const char *name = rt_intern_text(&s->survey.names, id);
		struct rt_scan_named n;

		if ((strncmp(name, f->stem_name, strlen(f->stem_name)) != 0 &&
		     (!f->structure || strncmp(name, f->structure, strlen(f->structure)) != 0)) ||
		    !rt_scan_lookup(s, name, &n))
			continue;
		if (makes(s, f, &n))
			RT_TRY(rt_scan_add_function(type, name, RT_OP_NEW, RT_PLACE_RET, 0));
		else if (frees(s, f, &n))
			RT_TRY(rt_scan_add_function(type, name, RT_OP_FREE, RT_PLACE_ARG, 1));
	}
	return NULL;
}

/*
 * Two pairs for one type are both counted only if they move the same counter and
 * neither is a wrapper of the other; acquire/release beside ref/unref is a lock.
 */
static struct rt_error *take_name(struct rt_scan *s, const struct rt_scan_family *f, bool *ret_mine)
{
	struct rt_scan_taken t = { .by_code = f->by_code, .counter = f->counter, .get = f->get.symbol };

	t.name = rt_intern_string(&s->survey.names, f->structure ? f->structure : f->stem_name);
	if (!t.name)
		return rt_error_nomem();
	*ret_mine = true;
	for (size_t i = 0; i < s->taken.len; i++) {
		const struct rt_scan_taken *old = &s->taken.data[i];

		/* the same function under another name */
		if (old->get && t.get && old->get->addr.v == t.get->addr.v)
			*ret_mine = false;
		if (old->name == t.name &&
		    (!old->by_code || !t.by_code || old->counter != t.counter ||
		     rt_scan_calls(s, old->get, t.get->addr) || rt_scan_calls(s, t.get, old->get->addr)))
			*ret_mine = false;
	}
	return !*ret_mine || rt_vec_push(&s->taken, t) ? NULL : rt_error_nomem();
}

/*
 * What a preset makes objects with, this family does, too: other words for their counting (g_byte_array_ref() jumps to
 * g_array_ref()), or another count that they have (g_main_context_acquire()).
 */
static bool is_presets(const struct rt_scan *s, const struct rt_spec_type *type)
{
	for (size_t t = 0; t < s->known->types.len; t++) {
		const struct rt_spec_type *known = &s->known->types.data[t];

		if (!rt_spec_is_preset(known))
			continue;
		for (size_t i = 0; i < type->functions.len; i++) {
			const struct rt_spec_function *f = &type->functions.data[i];

			for (size_t k = 0; f->op == RT_OP_NEW && k < known->functions.len; k++)
				if (rt_spec_means(known->functions.data[k].name, f->name, false))
					return true;
		}
	}
	return false;
}

/*
 * "T *t_ref(const T *)" that returns a T which it has just allocated: each reference is a handle of its own, to what is
 * counted behind it, and ends by itself.
 */
static bool gives_handles(const struct rt_scan *s, const struct rt_scan_family *f)
{
	const struct rt_making m = { .image = s->module->image, .symtab = s->module->symtab, .decoder = s->decoder };
	const struct rt_param *r = f->get.declared ? &f->get.declared->returns : NULL;

	return f->get.symbol && r && r->pointers == 1 && f->structure && same_struct(r->pointee, f->structure) &&
	       !f->by_code && m.symtab && rt_making_returns(&m, f->get.symbol);
}

/* What makes the family's objects makes those of `of`, whose get and put do the rest. */
static struct rt_error *join_makers(struct rt_scan *s, const struct rt_spec_type *of, struct rt_spec *family)
{
	struct rt_spec one = { 0 };
	struct rt_spec_type *type = rt_vec_add(&one.types);
	struct rt_error *err = NULL;

	if (!type)
		return rt_error_nomem();
	type->start = RT_START_UNKNOWN;
	type->counter_offset = RT_COUNTER_UNKNOWN;
	type->name = strdup(of->name);
	type->origin = strdup(of->origin);
	if (!type->name || !type->origin)
		err = rt_error_nomem();
	for (size_t i = 0; i < family->types.data[0].functions.len && !err; i++) {
		const struct rt_spec_function *f = &family->types.data[0].functions.data[i];

		if (f->op == RT_OP_NEW)
			err = rt_scan_add_function(type, f->name, RT_OP_NEW, f->place, f->arg);
	}
	if (!err && type->functions.len)
		err = rt_spec_join(&s->found, &one);
	rt_spec_deinit(&one);
	return err;
}

struct rt_error *rt_scan_add_family(struct rt_scan *s, const struct rt_scan_family *f)
{
	const struct rt_spec_type *same = rt_scan_jumps_to(s, f);
	struct rt_spec one = { 0 };
	struct rt_spec_type *type;
	struct rt_error *err = NULL;
	bool known, kin;

	RT_TRY(rt_scan_is_kin(s, f, &kin));
	if (kin)
		return NULL;
	type = rt_vec_add(&one.types);
	if (!type)
		return rt_error_nomem();
	type->start = RT_START_UNKNOWN;
	/* the planner looks into a get for the counter; without one it would not know what the scan has seen */
	known = f->named_counter || (f->by_code && (!f->get.name || !f->put.name));
	type->counter_offset = known ? f->counter : RT_COUNTER_UNKNOWN;
	type->counter_size = known ? f->counter_size : 0;
	type->unsure = !f->by_code && !f->by_type && !f->get_counts;
	type->name = strdup(f->structure ? f->structure : f->stem_name);
	type->origin = strdup("scan");
	if (!type->name || !type->origin)
		err = rt_error_nomem();
	if (!err && f->get.name && gives_handles(s, f))
		err = rt_scan_add_function(type, f->get.name, RT_OP_NEW, RT_PLACE_RET, 0);
	else if (!err && f->get.name)
		err = rt_scan_add_function(type, f->get.name, RT_OP_GET, RT_PLACE_ARG, f->get_arg ? f->get_arg : 1);
	if (!err && f->put.name)
		err = rt_scan_add_function(type, f->put.name, RT_OP_PUT,
					   f->put_levels == 2 ? RT_PLACE_ARG_PTR : RT_PLACE_ARG,
					   f->put_arg ? f->put_arg : 1);
	if (!err && !f->method)
		err = complete(s, f, type);
	if (!err && !f->method)
		err = rt_scan_variants(s, f, type);
	if (!err && !f->method)
		err = rt_scan_kin(s, f, type);
	if (!err)
		err = rt_scan_makers(s, f, type);
	if (!err && same)
		err = join_makers(s, same, &one);
	else if (!err && !is_presets(s, type))
		err = rt_spec_join(&s->found, &one);
	rt_spec_deinit(&one);
	return err;
}

/*
 * A variant beside a plain family counts the same objects: it goes by that
 * family's name. false: the caller counts the plain one already, under a name of its own.
 */
static bool join_plain(struct rt_scan *s, const char *name, const struct rt_stem *stem, struct rt_scan_family *f)
{
	char plain[RT_FAMILY_NAME_MAX], put[RT_FAMILY_NAME_MAX], family[RT_FAMILY_NAME_MAX];
	struct rt_scan_named get;

	if (!rt_family_plain(name, stem, plain) || !rt_scan_lookup(s, plain, &get) ||
	    !rt_family_partner(plain, stem, put, family))
		return true;
	memcpy(f->stem_name, family, sizeof(family));
	return !rt_scan_is_known(s->known, plain);
}

/*
 * Functions that are inlined everywhere (static inline, in a header) are a family of each module that uses them. The
 * one that a scan found in another module goes on here: constructors, and what ends objects, live in one of them only.
 */
static bool goes_on(const struct rt_scan *s, const struct rt_scan_family *f)
{
	const char *own = f->structure ? f->structure : f->stem_name;

	for (size_t i = 0; i < s->known->types.len; i++) {
		const struct rt_spec_type *type = &s->known->types.data[i];
		bool get = false, put = false;

		for (size_t k = 0; k < type->functions.len; k++) {
			const struct rt_spec_function *known = &type->functions.data[k];

			get |= known->guessed && known->op == RT_OP_GET && !strcmp(known->name, f->get.name);
			put |= known->guessed && known->op == RT_OP_PUT && !strcmp(known->name, f->put.name);
		}
		if (get && put)
			return strcmp(type->name, own) == 0;
	}
	return false;
}

static struct rt_error *consider(struct rt_scan *s, const char *name, const struct rt_stem *stem)
{
	struct rt_scan_family f = { .stem = stem, .put_levels = 1 };
	char put[RT_FAMILY_NAME_MAX];
	const char *alias;
	bool mine = false, known;

	if (!rt_family_partner(name, stem, put, f.stem_name) || !rt_scan_lookup(s, put, &f.put) ||
	    !rt_scan_lookup(s, name, &f.get) || !join_plain(s, name, stem, &f))
		return NULL;
	/* it comes by the name that debug information knows, and that inlined copies of it have */
	alias = rt_survey_alias(&s->survey, name);
	if (alias && rt_survey_symbol(&s->survey, alias, NULL))
		return NULL;
	known = rt_scan_is_known(s->known, name) || rt_scan_is_known(s->known, put);
	if (!accept(s, &f) || !rt_scan_wanted(s, &f) || (known && !goes_on(s, &f)))
		return NULL;
	RT_TRY(take_name(s, &f, &mine));
	return mine ? rt_scan_add_family(s, &f) : NULL;
}

/* The C and C++ run-time libraries: their own counting is nobody's business unless asked for. */
static bool is_runtime(const char *path)
{
	static const char *const names[] = { "libc.so",  "libc-",    "libpthread", "ld-linux", "libstdc++",
					     "libgcc_s", "libdl.so", "librt.so",   "libm.so",  "linux-vdso" };
	const char *base = rt_basename(path);

	if (strncmp(base, "[vdso]", 6) == 0)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(base, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static struct rt_error *scan_names(struct rt_scan *s)
{
	RT_TRY(rt_decoder_create(s->module->image->machine, &s->decoder));
	s->decoded = calloc(RT_DECODED, sizeof(*s->decoded));
	RT_TRY(rt_survey_init(s->module, &s->survey));
	RT_TRY(rt_scan_marks(s));
	/* the clearest words first: they claim the type */
	for (size_t i = 0; rt_stem_at(i); i++)
		for (uint32_t id = 1; id <= s->survey.head_count; id++)
			RT_TRY(consider(s, rt_intern_text(&s->survey.names, id), rt_stem_at(i)));
	RT_TRY(rt_scan_classes(s));
	RT_TRY(rt_scan_fields(s));
	RT_TRY(rt_scan_holders(s));
	RT_TRY(rt_scan_puts(s));
	return rt_scan_owned(s);
}

struct rt_error *rt_scan_module(const struct rt_plan_module *module, const struct rt_scan_options *options,
				struct rt_spec *spec)
{
	struct rt_scan s = { .module = module, .options = options, .known = spec };
	struct rt_error *err;

	if (!options->types && is_runtime(module->name))
		return NULL;
	RT_TRY(rt_plan_check_machine(module));
	err = scan_names(&s);
	if (!err)
		err = rt_spec_join(spec, &s.found);
	rt_spec_deinit(&s.found);
	rt_survey_deinit(&s.survey);
	rt_vec_deinit(&s.taken);
	rt_map_deinit(&s.marked);
	rt_kin_deinit(&s.kin);
	rt_decoder_destroy(s.decoder);
	free(s.decoded);
	return rt_error_wrap(err, "%s", module->name);
}
