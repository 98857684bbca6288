/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points for SDT markers: one at each place where a marker of that name was compiled in, with the object where the
 * marker's argument says it is. Nothing is moved: the marker is a nop, made to be probed.
 */
#include <string.h>

#include "elf/sdt.h"
#include "probe/build.h"
#include "probe/definition.h"
#include "probe/family.h"
#include "probe/kept.h"
#include "probe/operand.h"
#include "probe/spec_type.h"

enum { SCOPES_MAX = 16, ENTRY_FRAME_MAX = 1024 };

/* A marker that the spec asks for. */
struct wanted {
	uint32_t type, function; /* indexes */
	const struct rt_sdt_marker *marker;
	const struct rt_kept_marker *kept; /* it is none of the file's, but this definition of the cache; or NULL */
	const char *inside;                /* innermost source function around it, or the operation that this one is
					    * inlined in (kmod_module_ref() of kmod_module_get()), else its symbol;
					    * NULL: unknown */
	struct rt_elfaddr code;            /* where the machine function around it begins; 0: unknown */
	bool inlined;                      /* inside is not that function */
	bool operation;                    /* inside does nothing but the operation: who calls it is the site */
};

struct wanted_list {
	RT_VEC(struct wanted) list;
};

static struct rt_error *refuse(struct rt_plan_build *b, const struct wanted *w, const char *why)
{
	char name[RT_MARKER_NAME_MAX];

	if (w->kept)
		snprintf(name, sizeof(name), "%s%s:%s", RT_SPEC_KEPT, w->marker->provider, w->marker->name);
	else
		(void)rt_marker_name(w->marker, name);
	return rt_plan_refuse(b, w->type, w->function, name, RT_E_UNARMED, "%s at 0x%llx: %s",
			      w->kept ? "definition" : "marker", (unsigned long long)w->marker->location.v, why);
}

const char *rt_plan_function_around(const struct rt_plan_module *module, struct rt_elfaddr at)
{
	struct rt_scope scopes[SCOPES_MAX];
	const struct rt_symbol *symbol;

	if (module->dwarf && rt_dwarf_scopes(module->dwarf, at, scopes, SCOPES_MAX) && scopes[0].function)
		return scopes[0].function;
	symbol = module->symtab ? rt_symtab_at(module->symtab, at) : NULL;
	return symbol ? symbol->name : NULL;
}

static bool has_word(const char *name, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = name; (at = strstr(at, word)); at += len)
		if (!at[len] || at[len] == '_' || at[len] == '.')
			return true;
	return false;
}

/* "conn_ref" for a get: the function is the operation, and who calls it is the site. */
static bool named_for(const char *function, uint8_t op, const char *type)
{
	const struct rt_stem *stem;

	if (op == RT_OP_NEW)
		return rt_family_is_new(function, type, true);
	if (op == RT_OP_FREE)
		return rt_family_is_free(function, type);
	for (size_t i = 0; (stem = rt_stem_at(i)); i++)
		if (has_word(function, op == RT_OP_PUT ? stem->put : stem->get))
			return true;
	return false;
}

/*
 * Does the function bear the operation's and the type's name, and nothing else? Such a one is the operation even where
 * it calls one of that name, as a library's kmod_module_ref() does that has kmod_module_get() from refcnt/refcnt.h.
 */
static bool is_wrapper(const char *function, uint8_t op, const char *type)
{
	size_t len = strlen(type);
	const struct rt_stem *stem;

	if (!function || strncmp(function, type, len) != 0)
		return false;
	if (op == RT_OP_NEW)
		return rt_family_is_new(function, type, true);
	for (size_t i = 0; (stem = rt_stem_at(i)); i++)
		if (!strcmp(function + len, op == RT_OP_PUT ? stem->put : stem->get))
			return op == RT_OP_GET || op == RT_OP_PUT;
	return false;
}

static bool same_function(const struct wanted *a, const struct wanted *b)
{
	if (a->inside && b->inside)
		return !strcmp(a->inside, b->inside);
	return !a->inside && !b->inside && a->code.v && a->code.v == b->code.v;
}

/*
 * Does the marker stand in conn_get(), or in a function that counts by hand? The former is named so, or inlined in
 * several places, or the only one that does it for the type.
 */
static bool is_operation(const struct rt_plan_build *b, const struct wanted_list *all, const struct wanted *w)
{
	const struct rt_spec_type *type = b->plan->types.data[w->type].spec;
	bool only = w->inside || w->code.v, again = false;

	for (size_t i = 0; i < all->list.len; i++) {
		const struct wanted *other = &all->list.data[i];

		if (other->type != w->type || other->function != w->function)
			continue;
		only &= same_function(w, other);
		again |= other != w && w->inlined && same_function(w, other);
	}
	return only || again || (w->inside && named_for(w->inside, type->functions.data[w->function].op, type->name));
}

/* What the operation is called: the function that does it, else the marker. */
static const char *operation_name(const struct wanted *w, char text[RT_MARKER_NAME_MAX])
{
	if (w->operation && w->inside)
		return w->inside;
	(void)rt_marker_name(w->marker, text);
	return text + strlen(RT_SPEC_MARKER);
}

/* The operand to where the engine reads; NULL, or why it cannot. */
static const char *set_operand(struct rt_plan_build *b, const struct rt_operand *o, struct rt_elfaddr location,
			       struct rt_point *p)
{
	const struct rt_symbol *symbol = NULL;
	_cleanup_free_ char *name = NULL;

	p->reg = o->base;
	p->reg_offset = o->value;
	p->index = o->index;
	p->scale = o->index == RT_REG_NONE ? 0 : o->scale;
	p->deref = o->kind == RT_OPERAND_MEMORY || o->kind == RT_OPERAND_SYMBOL;
	switch (o->kind) {
	case RT_OPERAND_UNKNOWN:
		return o->why;
	case RT_OPERAND_SYMBOL:
	case RT_OPERAND_ADDRESS:
		name = strndup(o->symbol, o->symbol_len);
		symbol = name && b->module->symtab ? rt_symtab_find(b->module->symtab, name) : NULL;
		if (!symbol)
			return "it names a symbol that the file does not have";
		/* the program lies wherever it was loaded: counted from where the marker is */
		p->reg = RT_REG_RIP;
		p->reg_offset = (int64_t)(symbol->addr.v + (uint64_t)o->value - location.v);
		return NULL;
	case RT_OPERAND_MEMORY:
		return o->base == RT_REG_RIP ? "it is relative to an instruction that the marker does not name" : NULL;
	default:
		return NULL;
	}
}

/* The spec's argument of this marker; NULL, or why there is none. */
static const char *find_operand(const struct rt_plan_build *b, const struct wanted *w, const struct rt_spec_function *f,
				struct rt_operand *ret)
{
	const char *args = w->marker->args;
	unsigned n = 0;

	*ret = (struct rt_operand){ .kind = RT_OPERAND_UNKNOWN };
	while (n < f->arg && rt_operand_next(&args, b->module->image->machine, ret))
		n++;
	if (n < f->arg)
		return n ? "it has fewer arguments" : "it has no arguments";
	if (ret->is_float)
		return "this argument is a floating-point number";
	return NULL;
}

static const char *set_place(struct rt_plan_build *b, const struct wanted *w, const struct rt_spec_function *f,
			     struct rt_point *p)
{
	struct rt_operand operand;
	const char *why = find_operand(b, w, f, &operand);

	if (!why)
		why = set_operand(b, &operand, w->marker->location, p);
	if (why)
		return why;
	if (operand.size && operand.size < sizeof(uint64_t)) {
		if (f->place == RT_PLACE_ARG_PTR)
			return "this argument is too small for a pointer";
		p->width = (int8_t)(operand.is_signed ? -operand.size : operand.size);
	}
	p->deref = (uint8_t)(p->deref + rt_spec_levels(f));
	return NULL;
}

/* Code of another file may have other instructions there; as far as a function's begin tells. NULL: at one's begin. */
static const char *inside_instruction(struct rt_plan_build *b, struct rt_elfaddr location)
{
	struct rt_elfaddr at, end;
	struct rt_insn insn;

	if (!rt_survey_range(&b->survey, location, &at, &end))
		return NULL;
	while (at.v < location.v) {
		if (!rt_plan_decode(b, at, &insn))
			return "the code before it cannot be read";
		at.v += insn.length;
	}
	return at.v == location.v ? NULL : "it is inside of an instruction";
}

/* Is the marker's instruction one that can be armed? */
static const char *set_location(struct rt_plan_build *b, const struct wanted *w, struct rt_point *p)
{
	const struct rt_image *image = b->module->image;
	const struct rt_sdt_marker *m = w->marker;
	const char *why = rt_sdt_offsets(image, m, &p->offset, &p->semaphore);
	struct rt_insn insn;

	if (!why && w->kept)
		why = inside_instruction(b, m->location);
	if (why)
		return why;
	if (!rt_plan_decode(b, m->location, &insn))
		return "there is no code at its place";
	if (!rt_plan_has_room(b, m->location, p))
		return "there is no room for a jump at its place";
	if ((!b->plan->options.room || p->breakpoint) &&
	    (insn.cost == RT_COST_NEVER || (insn.cost == RT_COST_AVOID && b->plan->options.avoid_nop5)))
		return "its instruction cannot be probed here";
	p->address = m->location;
	p->counter = m->semaphore;
	p->cost = insn.cost;
	p->cfa_delta = rt_plan_cfa_delta(b, m->location);
	p->function = m->location;
	p->flags |= RT_EV_INLINE;
	/* as a probe at the function's entry sees it: the stack begins with the caller. The copy of the stack in which
	 * the engine looks for who that is may end within a large frame; a walk goes on beyond it. */
	if (w->operation && !w->inlined && w->code.v && p->cfa_delta && p->cfa_delta <= ENTRY_FRAME_MAX) {
		p->kind = RT_POINT_ENTRY;
		p->function = w->code;
		p->flags &= (uint16_t)~RT_EV_INLINE;
	}
	return NULL;
}

/* A definition of a function's return: as the spec's own FN:ret. */
static struct rt_error *add_return(struct rt_plan_build *b, const struct wanted *w)
{
	const struct rt_spec_function *f = &b->plan->types.data[w->type].spec->functions.data[w->function];
	struct rt_target target = { .type = w->type, .function = w->function, .as = *f };
	struct rt_foff offset, semaphore;
	char text[RT_MARKER_NAME_MAX];
	const char *name, *why = rt_sdt_offsets(b->module->image, w->marker, &offset, &semaphore);

	if (!why)
		why = inside_instruction(b, w->marker->location);
	if (!why && w->code.v && w->code.v != w->marker->location.v)
		why = "it sees the return of what is no function here";
	if (!why && !(w->kept->results >> (f->arg - 1) & 1))
		why = "at a return, $retval alone says where the object is";
	if (why)
		return refuse(b, w, why);
	name = operation_name(w, text);
	target.name = rt_arena_strndup(&b->arena, name, strlen(name));
	if (!target.name)
		return rt_error_nomem();
	target.addr = w->marker->location;
	target.as.place = f->place == RT_PLACE_ARG_PTR ? RT_PLACE_RET_PTR : RT_PLACE_RET;
	target.as.arg = 0;
	return rt_plan_point(b, &target);
}

static struct rt_error *add_marker(struct rt_plan_build *b, const struct wanted *w)
{
	const struct rt_plan_type *type = &b->plan->types.data[w->type];
	const struct rt_spec_function *f = &type->spec->functions.data[w->function];
	struct rt_point p = { .kind = RT_POINT_INSN,
			      .op = f->op,
			      .delta = rt_op_delta(f->op, type->start),
			      .guessed = f->guessed,
			      .place = f->place,
			      /* whether the program counts before or after its marker is not known */
			      .counter_offset = RT_COUNTER_UNKNOWN,
			      .flags = (uint16_t)(f->hidden ? RT_EV_HIDDEN : 0) };
	const char *why = set_location(b, w, &p);
	char name[RT_MARKER_NAME_MAX];
	bool mine;

	if (!why)
		why = set_place(b, w, f, &p);
	if (why)
		return refuse(b, w, why);
	RT_TRY(rt_plan_take_place(b, w->type, &p, &mine));
	return mine ? rt_plan_add(b, w->type, w->function, &p, operation_name(w, name)) : NULL;
}

static void fill_around(struct rt_plan_build *b, struct wanted *w)
{
	const struct rt_spec_type *type = b->plan->types.data[w->type].spec;
	struct rt_dwarf *dwarf = b->module->dwarf;
	struct rt_scope scopes[SCOPES_MAX];
	struct rt_elfaddr end;
	size_t n = dwarf ? rt_dwarf_scopes(dwarf, w->marker->location, scopes, SCOPES_MAX) : 0, at = 0;

	w->inside = rt_plan_function_around(b->module, w->marker->location);
	if (n && scopes[0].function) {
		while (at + 1 < n &&
		       is_wrapper(scopes[at + 1].function, type->functions.data[w->function].op, type->name))
			at++;
		w->inside = scopes[at].function;
		w->inlined = scopes[at].inlined;
	}
	(void)rt_survey_range(&b->survey, w->marker->location, &w->code, &end);
}

/* A marker that says its type counts for the type of that name only. */
static struct rt_error *collect(struct rt_plan_build *b, uint32_t type, uint32_t function,
				const struct rt_sdt_marker *markers, size_t count, struct wanted_list *all)
{
	const struct rt_spec_type *spec = b->plan->types.data[type].spec;
	const char *pattern = spec->functions.data[function].name;

	for (size_t i = 0; i < count; i++) {
		const struct rt_sdt_marker *m = &markers[i];
		char name[RT_MARKER_NAME_MAX];
		struct wanted *w;

		if ((m->type && strcmp(m->type, spec->name) != 0) || !rt_marker_name(m, name) ||
		    !rt_glob_match(pattern, name))
			continue;
		w = rt_vec_add(&all->list);
		if (!w)
			return rt_error_nomem();
		*w = (struct wanted){ .type = type, .function = function, .marker = m };
		fill_around(b, w);
	}
	return NULL;
}

/* *ret_damaged: the list ends early. */
static struct rt_error *read_markers(const struct rt_image *image, struct rt_sdt_marker **ret, size_t *ret_count,
				     bool *ret_damaged)
{
	struct rt_error *err = rt_sdt_read(image, ret, ret_count);

	*ret_damaged = rt_error_catch(&err, RT_E_FORMAT);
	return err;
}

/* What the cache has for one function of the spec. */
static struct rt_error *collect_kept(struct rt_plan_build *b, uint32_t type, uint32_t function, struct rt_kept *kept,
				     struct wanted_list *all)
{
	size_t first = kept->markers.len;

	RT_TRY(rt_plan_kept(b, type, function, kept));
	for (size_t i = first; i < kept->markers.len; i++) {
		const struct rt_kept_marker *k = kept->markers.data[i];
		struct wanted *w = rt_vec_add(&all->list);

		if (!w)
			return rt_error_nomem();
		*w = (struct wanted){ .type = type, .function = function, .marker = &k->marker, .kept = k };
		fill_around(b, w);
	}
	return NULL;
}

static struct rt_error *add_all(struct rt_plan_build *b, const struct rt_sdt_marker *markers, size_t count,
				bool damaged, struct rt_kept *kept)
{
	struct wanted_list all = { 0 };
	struct rt_error *err = NULL;

	for (uint32_t t = 0; !err && t < b->plan->types.len; t++) {
		const struct rt_spec_type *spec = b->plan->types.data[t].spec;

		for (uint32_t i = 0; !err && i < spec->functions.len; i++) {
			const struct rt_spec_function *f = &spec->functions.data[i];

			if (!rt_spec_is_marker(f) || !rt_plan_dso_fits(f->dso, b->module->name))
				continue;
			if (rt_spec_is_kept(f)) {
				err = collect_kept(b, t, i, kept, &all);
				continue;
			}
			if (damaged)
				err = rt_plan_refuse(b, t, i, f->name, RT_E_UNARMED, "%s has damaged SDT notes",
						     b->module->name);
			if (!err)
				err = collect(b, t, i, markers, count, &all);
		}
	}
	for (size_t i = 0; i < all.list.len; i++)
		all.list.data[i].operation = is_operation(b, &all, &all.list.data[i]);
	for (size_t i = 0; !err && i < all.list.len; i++)
		err = all.list.data[i].kept && all.list.data[i].kept->at_return ? add_return(b, &all.list.data[i])
										: add_marker(b, &all.list.data[i]);
	rt_vec_deinit(&all.list);
	return err;
}

static bool asks_for_markers(const struct rt_plan *plan)
{
	for (size_t t = 0; t < plan->types.len; t++)
		for (size_t i = 0; i < plan->types.data[t].spec->functions.len; i++)
			if (rt_spec_is_marker(&plan->types.data[t].spec->functions.data[i]))
				return true;
	return false;
}

struct rt_error *rt_plan_markers(struct rt_plan_build *b)
{
	_cleanup_free_ struct rt_sdt_marker *markers = NULL;
	struct rt_kept kept = { .markers = { 0 } };
	struct rt_error *err;
	size_t count = 0;
	bool damaged;

	if (!asks_for_markers(b->plan))
		return NULL;
	RT_TRY(read_markers(b->module->image, &markers, &count, &damaged));
	err = add_all(b, markers, count, damaged, &kept);
	rt_kept_deinit(&kept);
	return err;
}
