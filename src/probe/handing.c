/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that hand references up: by debug information they return a T * or a void *, or are given a T ** by their
 * caller, and by their code a reference is taken inside: they call a constructor or a get of T, or another function
 * that hands up.
 * What they hand out is looked at when they return. Nothing is counted there, so what cannot be looked at is not
 * missed, and of a type that half of the program returns nothing is.
 */
#include <ctype.h>
#include <string.h>

#include "base/words.h"
#include "probe/handing.h"
#include "probe/kin.h"
#include "probe/spec_type.h"

enum {
	HANDING_MAX = 1024, /* of one type, in one module */
	CODE_INSNS = 4000,
	WRAPPER_INSNS = 8,
	WORDS = 10, /* of a name */
	CALLS_MAX = 64,
	KIN_DEPTH = 8 /* and of those that begin with these, and so on */
};

struct giver {
	const struct rt_survey_function *declared;
	const struct rt_symbol *symbol;
	uint32_t type; /* index */
	uint8_t place, arg;
	bool takes; /* a reference is taken inside */
	size_t first_call, calls;
};

struct search {
	struct rt_takers t;
	struct rt_plan_build *b;
	RT_VEC(uint64_t) sites;      /* addresses of what is inlined and takes one, by type */
	RT_VEC(uint32_t) site_types; /* of these */
	RT_VEC(struct giver) givers;
	RT_VEC(const struct rt_symbol *) stubs; /* of what this module exports, or imports */
	RT_VEC(uint64_t) calls;
};

static bool opens(uint8_t op, bool hidden)
{
	return op == RT_OP_NEW || op == RT_OP_GET || hidden;
}

/* A type goes by its own name, and by what its functions are declared to take. */
static struct rt_error *name_types(struct search *s)
{
	struct rt_plan_build *b = s->b;

	for (uint32_t t = 0; t < b->plan->types.len; t++) {
		const struct rt_spec_type *spec = b->plan->types.data[t].spec;
		bool made;

		for (size_t i = 0; i <= spec->functions.len; i++) {
			const char *name = i ? rt_plan_structure(b, &spec->functions.data[i - 1]) : spec->name;
			uint64_t *type = name ? rt_map_put(&s->t.type_of, rt_key_text(name), &made) : NULL;

			if (name && !type)
				return rt_error_nomem();
			if (type && made)
				*type = t + 1;
		}
	}
	return NULL;
}

/* Who uses a library's objects declares no function of it that would say so, but the typedef that the type goes by. */
static struct rt_error *name_typedefs(struct search *s)
{
	struct rt_plan_build *b = s->b;

	for (uint32_t t = 0; t < b->plan->types.len; t++) {
		const char *tag = rt_dwarf_tag(b->module->dwarf, b->plan->types.data[t].spec->name);
		bool made = false;
		uint64_t *type = tag ? rt_map_put(&s->t.type_of, rt_key_text(tag), &made) : NULL;

		if (tag && !type)
			return rt_error_nomem();
		if (made)
			*type = t + 1;
	}
	return NULL;
}

/* the structure goes by the type of its head, if that has one; true: it had none */
static bool adopt(struct rt_map *type_of, const struct rt_head *kin, bool *ret_nomem)
{
	const uint64_t *head = rt_map_get(type_of, rt_key_text(kin->head));
	uint64_t type = head ? *head : 0, *own;
	bool made = false;

	own = type ? rt_map_put(type_of, rt_key_text(kin->structure), &made) : NULL;
	*ret_nomem |= type && !own;
	if (made)
		*own = type;
	return made;
}

/* the same letters and digits, one behind the other, whatever is in between: most names differ in the first */
static bool same_letters(const char *a, const char *b)
{
	for (;;) {
		while (*a && !isalnum((unsigned char)*a))
			a++;
		while (*b && !isalnum((unsigned char)*b))
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

/* "g_object" and "_GObject": several words, and all the same */
static bool is_spelled_as(const char *structure, const char *type)
{
	struct rt_word a[WORDS], b[WORDS];
	unsigned n = same_letters(structure, type) ? rt_words(structure, a, WORDS) : 0, same = 0;

	if (n < 2 || n == WORDS || rt_words(type, b, WORDS) != n)
		return false;
	while (same < n && rt_word_same(a[same], b[same]))
		same++;
	return same == n;
}

/*
 * A family of functions that are all declared to take anything is known by their name alone. What others begin with,
 * and is spelled like that, is what they take.
 */
static bool name_by_words(struct search *s, const struct rt_kin *k)
{
	const struct rt_plan *plan = s->b->plan;

	for (size_t i = 0; i < k->all.len; i++) {
		const char *head = k->all.data[i].head;
		uint64_t *type;

		if (rt_map_get(&s->t.type_of, rt_key_text(head)))
			continue;
		for (uint32_t t = 0; t < plan->types.len; t++) {
			if (!is_spelled_as(head, plan->types.data[t].spec->name))
				continue;
			type = rt_map_put(&s->t.type_of, rt_key_text(head), NULL);
			if (!type)
				return false;
			*type = t + 1;
			break;
		}
	}
	return true;
}

/* What begins with an object is one: "struct commit { struct object base; ..." goes by the type of object. */
static struct rt_error *name_kin(struct search *s)
{
	struct rt_kin k;
	struct rt_error *err = rt_kin_read(s->b->module->dwarf, &k);
	unsigned kin = 0, before = UINT32_MAX;
	bool nomem = !err && !name_by_words(s, &k);

	for (unsigned depth = 0; !err && depth < KIN_DEPTH && kin != before; depth++) {
		before = kin;
		for (size_t i = 0; i < k.all.len; i++)
			kin += adopt(&s->t.type_of, &k.all.data[i], &nomem);
	}
	if (!err && nomem)
		err = rt_error_nomem();
	rt_kin_deinit(&k);
	return err;
}

/* place, arg: where it leaves the object */
static struct rt_error *add_taker(struct search *s, uint64_t address, uint32_t type, uint8_t place, uint8_t arg)
{
	uint64_t *out = rt_map_put(&s->t.at, rt_key_make(address, type + 1), NULL);

	if (!out)
		return rt_error_nomem();
	*out = place == RT_PLACE_OUT ? arg : 0;
	s->t.low = address < s->t.low ? address : s->t.low;
	s->t.high = address > s->t.high ? address : s->t.high;
	return rt_map_put(&s->t.at, rt_key_make(address, 0), NULL) ? NULL : rt_error_nomem();
}

static struct rt_error *add_counting(struct search *s, uint64_t address)
{
	return rt_map_put(&s->t.counts, rt_key_make(address, 0), NULL) ? NULL : rt_error_nomem();
}

/* stubs through which this module calls what other modules have */
static struct rt_error *add_stubs(struct search *s)
{
	const struct rt_symtab *symtab = s->b->module->symtab;

	for (size_t k = 0; k < symtab->count; k++) {
		const struct rt_symbol *stub = &symtab->symbols[k];

		if (stub->plt && !rt_vec_push(&s->stubs, stub))
			return rt_error_nomem();
		for (uint32_t t = 0; stub->plt && t < s->b->plan->types.len; t++) {
			const struct rt_spec_type *spec = s->b->plan->types.data[t].spec;

			for (size_t i = 0; i < spec->functions.len; i++) {
				const struct rt_spec_function *f = &spec->functions.data[i];
				const struct rt_told_stub told = { stub->addr.v, t, f };

				if (!rt_spec_means(f->name, stub->name, rt_spec_is_told(spec)))
					continue;
				if (!rt_vec_push(&s->t.stubs, told))
					return rt_error_nomem();
				RT_TRY(add_counting(s, stub->addr.v));
				if (opens(f->op, f->hidden))
					RT_TRY(add_taker(s, stub->addr.v, t, f->place, f->arg));
			}
		}
	}
	return NULL;
}

static int by_address(const void *x, const void *y)
{
	const struct rt_inline_taker *a = x, *b = y;

	return a->address < b->address ? -1 : a->address > b->address;
}

const struct rt_inline_taker *rt_takers_inline(const struct rt_takers *t, struct rt_elfaddr from)
{
	size_t low = 0, high = t->inline_takers.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->inline_takers.data[middle].address < from.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->inline_takers.len ? &t->inline_takers.data[low] : NULL;
}

/* the object is in a register at the point, as it is, or in a variable */
static struct rt_error *add_inline_taker(struct search *s, const struct rt_point *p)
{
	struct rt_inline_taker one = { p->address.v, p->type - 1, p->reg, p->deref == 1, p->reg_offset };

	if (p->reg >= RT_TRACK_REGS || p->deref > 1 || p->scale || (!p->deref && p->reg_offset) ||
	    p->kind == RT_POINT_RETURN)
		return NULL;
	return rt_vec_push(&s->t.inline_takers, one) ? NULL : rt_error_nomem();
}

/* the argument that is passed in this register; 0: none is */
static uint8_t argument_in(uint8_t reg)
{
	for (uint8_t arg = 1; arg <= RT_SPEC_ARG_MAX; arg++) {
		if (rt_reg_argument(arg) == (enum rt_reg)reg)
			return arg;
	}
	return 0;
}

static struct rt_error *find_takers(struct search *s)
{
	const struct rt_plan *plan = s->b->plan;

	for (size_t i = 0; i < plan->points.len; i++) {
		const struct rt_point *p = &plan->points.data[i];

		if (p->module != s->b->module->id)
			continue;
		RT_TRY(add_counting(s, p->function.v));
		if ((p->flags & RT_EV_INLINE) && !rt_vec_push(&s->t.inlined, p->address.v))
			return rt_error_nomem();
		if (!opens(p->op, p->flags & RT_EV_HIDDEN))
			continue;
		RT_TRY(add_taker(s, p->function.v, p->type - 1, p->place, argument_in(p->reg)));
		if (p->flags & RT_EV_INLINE)
			RT_TRY(add_inline_taker(s, p));
		if ((p->flags & RT_EV_INLINE) &&
		    (!rt_vec_push(&s->sites, p->address.v) || !rt_vec_push(&s->site_types, p->type - 1)))
			return rt_error_nomem();
	}
	if (s->t.inline_takers.len)
		qsort(s->t.inline_takers.data, s->t.inline_takers.len, sizeof(*s->t.inline_takers.data), by_address);
	return add_stubs(s);
}

bool rt_takers_in_registers(struct rt_survey *survey, const struct rt_survey_function *d, unsigned arg)
{
	const struct rt_param *r = &d->returns;

	if (arg > RT_SPEC_ARG_MAX || (r->type && !r->pointers && !strncmp(r->type, "struct ", 7)))
		return false;
	for (unsigned i = 1; i < arg; i++) {
		const struct rt_param *p = rt_survey_param(survey, d, i);

		if (!p->type || (!p->pointers &&
				 (strstr(p->type, "float") || strstr(p->type, "double") || strstr(p->type, "struct ") ||
				  strstr(p->type, "union ") || strstr(p->type, "128"))))
			return false;
	}
	return true;
}

uint32_t rt_takers_type(const struct rt_takers *t, const struct rt_param *p, uint8_t pointers)
{
	const uint64_t *type;

	if (p->pointers != pointers || !p->pointee)
		return 0;
	type = rt_map_get(&t->type_of, rt_key_text(p->pointee));
	return type ? (uint32_t)*type : 0;
}

/* By its declaration: of which type (index + 1), and where; 0: it hands out nothing. */
static uint32_t declared_type(struct search *s, struct giver *h)
{
	uint32_t type = rt_takers_type(&s->t, &h->declared->returns, 1);

	h->place = RT_PLACE_RET;
	h->arg = 0;
	for (unsigned i = 1; !type && i <= h->declared->param_count; i++) {
		type = rt_takers_type(&s->t, rt_survey_param(&s->b->survey, h->declared, i), 2);
		if (type && !rt_takers_in_registers(&s->b->survey, h->declared, i))
			return 0;
		h->place = RT_PLACE_OUT;
		h->arg = (uint8_t)i;
	}
	return type;
}

/* debug information calls the function by this name that was told by another */
static bool is_alias(struct rt_plan_build *b, const char *told, const char *name)
{
	const char *alias = rt_survey_alias(&b->survey, told);

	return alias && !strcmp(alias, name);
}

bool rt_takers_told(const struct rt_takers *t, uint32_t type, const char *name)
{
	const struct rt_spec_type *spec = t->b->plan->types.data[type].spec;

	for (size_t i = 0; i < spec->functions.len; i++)
		if (rt_spec_means(spec->functions.data[i].name, name, rt_spec_is_told(spec)) ||
		    is_alias(t->b, spec->functions.data[i].name, name))
			return true;
	return false;
}

bool rt_takers_told_any(const struct rt_takers *t, const char *name)
{
	for (uint32_t type = 0; type < t->b->plan->types.len; type++)
		if (rt_takers_told(t, type, name))
			return true;
	return false;
}

/* the function that begins at `at` takes a reference first of all, by a call or by a jump to what does */
static bool just_takes(const struct search *s, struct rt_elfaddr at, uint32_t type)
{
	if (rt_map_get(&s->t.at, rt_key_make(at.v, type + 1)))
		return true;
	for (unsigned n = 0; n < WRAPPER_INSNS; n++) {
		struct rt_insn insn;

		if (!rt_plan_decode(s->b, at, &insn) || insn.ret)
			return false;
		at.v += insn.length;
		if ((insn.call || insn.jump) && insn.has_target &&
		    rt_map_get(&s->t.at, rt_key_make(insn.target.v, type + 1)))
			return true;
		if (insn.call || (insn.jump && !insn.conditional))
			return false;
	}
	return false;
}

/*
 * insn finds the address of a function that takes such a reference: who returns such objects passes it to whom he has
 * them from, "fetch(ctx, obj_ref, obj_put)", and by that they take it.
 */
static bool passes_taker(const struct search *s, const struct giver *h, const struct rt_insn *insn)
{
	const struct rt_symbol *symbol;
	struct rt_elfaddr at = { 0 };

	if (h->place != RT_PLACE_RET || !h->declared->returns.pointee || insn->dst_reg >= RT_TRACK_REGS)
		return false;
	if (insn->is_lea && insn->has_mem && insn->mem.base == RT_REG_RIP)
		at.v = (uint64_t)insn->mem.disp;
	else if (insn->is_mov && insn->has_imm && !insn->has_mem && insn->imm > 0)
		at.v = (uint64_t)insn->imm;
	symbol = at.v ? rt_symtab_code_at(s->b->module->symtab, at) : NULL;
	return symbol && symbol->addr.v == at.v && just_takes(s, at, h->type);
}

static struct rt_error *look_inside(struct search *s, struct giver *h)
{
	struct rt_elfaddr at = h->symbol->addr, end = { at.v + h->symbol->size };

	for (size_t i = 0; i < s->sites.len && !h->takes; i++)
		h->takes = s->site_types.data[i] == h->type && s->sites.data[i] >= at.v && s->sites.data[i] < end.v;
	h->first_call = s->calls.len;
	for (unsigned n = 0; n < CODE_INSNS && at.v < end.v && h->calls < CALLS_MAX; n++) {
		struct rt_insn insn;

		if (!rt_plan_decode(s->b, at, &insn))
			break;
		at.v += insn.length;
		/* a callback may make the object that is left where the caller said */
		h->takes |= (insn.call && insn.indirect && h->place == RT_PLACE_OUT) || passes_taker(s, h, &insn);
		if (!(insn.call || insn.jump) || !insn.has_target)
			continue;
		h->takes |= rt_map_get(&s->t.at, rt_key_make(insn.target.v, h->type + 1)) != NULL;
		if (insn.target.v >= h->symbol->addr.v && insn.target.v < end.v)
			continue;
		if (!rt_vec_push(&s->calls, insn.target.v))
			return rt_error_nomem();
		h->calls++;
	}
	return NULL;
}

static struct rt_error *consider(struct search *s, struct giver h)
{
	enum rt_clone clone = RT_CLONE_PART;

	if (rt_takers_told(&s->t, h.type, h.declared->name))
		return NULL;
	h.symbol = rt_survey_code(&s->b->survey, h.declared);
	if (!h.symbol)
		return NULL;
	/* of a changed copy the result may be gone */
	(void)rt_clone_base(h.symbol->name, &clone);
	if (clone != RT_CLONE_FULL || rt_map_get(&s->t.at, rt_key_make(h.symbol->addr.v, h.type + 1)))
		return NULL;
	RT_TRY(look_inside(s, &h));
	return rt_vec_push(&s->givers, h) ? NULL : rt_error_nomem();
}

/* void *: the object as much as anything else */
static bool returns_anything(const struct rt_survey_function *d)
{
	return rt_param_is_anything(&d->returns);
}

static struct rt_error *find_handers(struct search *s)
{
	const struct rt_plan_build *b = s->b;

	for (size_t i = 0; i < b->survey.functions.len; i++) {
		struct giver h = { .declared = &b->survey.functions.data[i] };

		if (!h.declared->has_body)
			continue;
		h.type = declared_type(s, &h);
		if (h.type--) {
			RT_TRY(consider(s, h));
			continue;
		}
		h.place = RT_PLACE_RET;
		h.arg = 0;
		for (h.type = 0; returns_anything(h.declared) && h.type < b->plan->types.len; h.type++)
			RT_TRY(consider(s, h));
	}
	return NULL;
}

/* It hands up, and so does the stub through which a library calls what it exports itself. */
static struct rt_error *add_giver(struct search *s, const struct giver *h)
{
	for (size_t i = 0; i < s->stubs.len; i++)
		if (!strcmp(s->stubs.data[i]->name, h->symbol->name))
			RT_TRY(add_taker(s, s->stubs.data[i]->addr.v, h->type, h->place, h->arg));
	return add_taker(s, h->symbol->addr.v, h->type, h->place, h->arg);
}

/* who calls one that takes, takes as well */
static struct rt_error *spread(struct search *s)
{
	bool more = true;

	for (size_t i = 0; i < s->givers.len; i++)
		if (s->givers.data[i].takes)
			RT_TRY(add_giver(s, &s->givers.data[i]));
	while (more) {
		more = false;
		for (size_t i = 0; i < s->givers.len; i++) {
			struct giver *h = &s->givers.data[i];

			for (size_t k = 0; k < h->calls && !h->takes; k++)
				h->takes = rt_map_get(&s->t.at, rt_key_make(s->calls.data[h->first_call + k],
									    h->type + 1)) != NULL;
			if (!h->takes || rt_map_get(&s->t.at, rt_key_make(h->symbol->addr.v, h->type + 1)))
				continue;
			RT_TRY(add_giver(s, h));
			more = true;
		}
	}
	return NULL;
}

static struct rt_error *arm(struct search *s)
{
	struct rt_plan_build *b = s->b;
	_cleanup_free_ unsigned *count = calloc(b->plan->types.len + 1, sizeof(*count));

	if (!count)
		return rt_error_nomem();
	for (size_t i = 0; i < s->givers.len; i++)
		count[s->givers.data[i].type] += s->givers.data[i].takes;
	for (size_t i = 0; i < s->givers.len; i++) {
		const struct giver *h = &s->givers.data[i];
		struct rt_target target = {
			.type = h->type,
			.function = (uint32_t)b->plan->types.data[h->type].spec->functions.len,
			.name = h->declared->name,
			.symbol = h->symbol,
			.addr = h->symbol->addr,
			.as = { .op = RT_OP_MOVE, .place = h->place, .arg = h->arg, .guessed = true },
			.optional = true
		};

		if (h->takes && count[h->type] <= HANDING_MAX)
			RT_TRY(rt_plan_point(b, &target));
	}
	for (uint32_t type = 0; type < b->plan->types.len; type++)
		RT_TRY(rt_plan_limit(b, type, "functions that hand objects out", count[type], HANDING_MAX));
	return NULL;
}

struct rt_error *rt_plan_handing(struct rt_plan_build *b)
{
	struct search s = { .t = { .b = b, .low = UINT64_MAX }, .b = b };
	struct rt_error *err;

	if (!b->module->symtab || !b->plan->options.return_points || b->plan->options.counts_only)
		return NULL;
	err = name_types(&s);
	if (!err)
		err = find_takers(&s);
	if (!err && s.t.at.len && !b->survey.functions.len)
		err = rt_plan_infer(&s.t);
	if (!err && s.t.at.len)
		err = name_typedefs(&s);
	if (!err && s.t.at.len)
		err = name_kin(&s);
	if (!err && s.t.at.len)
		err = find_handers(&s);
	if (!err)
		err = spread(&s);
	if (!err)
		err = arm(&s);
	if (!err && s.t.at.len)
		err = rt_plan_overwrites(&s.t);
	if (!err && s.t.at.len)
		err = rt_plan_dropped(&s.t);
	if (!err && s.t.at.len)
		err = rt_plan_given(&s.t);
	rt_map_deinit(&s.t.type_of);
	rt_map_deinit(&s.t.at);
	rt_map_deinit(&s.t.counts);
	rt_vec_deinit(&s.t.stubs);
	rt_vec_deinit(&s.t.inlined);
	rt_vec_deinit(&s.t.inline_takers);
	rt_vec_deinit(&s.sites);
	rt_vec_deinit(&s.site_types);
	rt_vec_deinit(&s.givers);
	rt_vec_deinit(&s.stubs);
	rt_vec_deinit(&s.calls);
	return err;
}
