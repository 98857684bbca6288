/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constructors by what they do: whatever its name, a function that returns
 * T *, takes none, allocates and stores the first count makes a T.
 */
#include <string.h>

#include "base/words.h"
#include "probe/handing.h"
#include "probe/making.h"
#include "probe/mangled.h"
#include "probe/scan_build.h"

enum { SLOT_INSNS = 400 };

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* A find that may make what it does not find hands out old objects as well. */
static bool sounds_like_find(const char *name)
{
	static const char *const words[] = { "find", "findnew", "lookup", "search", "intern", "get", "ref", "cache" };

	return rt_words_have(name, words, sizeof(words) / sizeof(words[0]));
}

/* Makes one beside the one that it is given; what "detaches" or "unshares" may return that one. */
static bool sounds_like_making(const char *name)
{
	static const char *const words[] = { "new",   "create", "alloc", "make",  "clone", "dup",  "open",
					     "begin", "read",   "load",  "parse", "build", "init", "from" };

	return rt_words_have(name, words, sizeof(words) / sizeof(words[0]));
}

static bool begins_with(const char *name, const char *word)
{
	size_t n = word ? strlen(word) : 0;

	return n && strncmp(name, word, n) == 0 && name[n] == '_';
}

/* What anything may be is one of these by the function's name: "void *proxy_create_wrapper(void *)". */
static bool named_as_maker(const struct rt_scan_family *f, const struct rt_survey_function *d)
{
	return d->returns.pointers == 1 && !d->returns.pointee && sounds_like_making(d->name) &&
	       (begins_with(d->name, f->structure) || begins_with(d->name, f->stem_name));
}

static bool declared_as_maker(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_survey_function *d)
{
	if (named_as_maker(f, d))
		return true;
	if (!f->structure || d->returns.pointers != 1 || !same(d->returns.pointee, f->structure))
		return false;
	for (unsigned i = 1; i <= d->param_count; i++)
		if (same(rt_survey_param(&s->survey, d, i)->pointee, f->structure) && !sounds_like_making(d->name))
			return false;
	return true;
}

/* the one T ** that it is given; 0: there is none, or more. *ret_others: it is given a T, too */
static unsigned slot_of(struct rt_scan *s, const char *structure, const struct rt_survey_function *d, bool *ret_others)
{
	unsigned found = 0;

	*ret_others = false;
	for (unsigned i = 1; i <= d->param_count; i++) {
		const struct rt_param *p = rt_survey_param(&s->survey, d, i);

		if (!same(p->pointee, structure))
			continue;
		if (p->pointers != 2) {
			*ret_others = true;
			continue;
		}
		if (found)
			return 0;
		found = i;
	}
	return found && rt_made_is_status(&d->returns) && rt_takers_in_registers(&s->survey, d, found) ? found : 0;
}

unsigned rt_scan_leaves(struct rt_scan *s, const char *structure, const struct rt_survey_function *d)
{
	bool others;
	unsigned found = slot_of(s, structure, d, &others);

	return others ? 0 : found;
}

static struct rt_error *add_output(struct rt_spec_type *type, const struct rt_survey_function *d, enum rt_op op,
				   uint8_t arg)
{
	size_t before = type->functions.len;

	RT_TRY(rt_scan_add_function(type, d->name, op, RT_PLACE_OUT, arg));
	if (type->functions.len == before)
		return NULL;
	type->functions.data[before].condition = (uint8_t)rt_made_condition(&d->returns);
	type->functions.data[before].hidden = op == RT_OP_GET;
	return NULL;
}

struct rt_error *rt_scan_add_leaver(struct rt_spec_type *type, const struct rt_survey_function *d, uint8_t arg)
{
	return add_output(type, d, RT_OP_NEW, arg);
}

/* "void object_init(T *, ...)": for memory that its caller has, be it the beginning of something larger */
static bool initialises(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_making *m,
			const struct rt_survey_function *d, const struct rt_symbol *symbol)
{
	static const char *const words[] = { "init", "initialize", "initialise" };
	const struct rt_param *object = d->param_count ? rt_survey_param(&s->survey, d, 1) : NULL;

	/* one that may fail leaves no object then */
	if (!object || object->pointers != 1 || !same(object->pointee, f->structure) || d->returns.type ||
	    !rt_words_have(d->name, words, sizeof(words) / sizeof(words[0])) || !f->put.symbol)
		return false;
	return rt_making_inits(m, symbol) && rt_making_ends(m, f->put.symbol);
}

/*
 * "int packet_new(T **ret)"; or "int node_acquire(T *parent, T **ret)", which makes one where it finds none to take a
 * reference to: the counter tells which.
 */
static struct rt_error *add_leaver(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_making *m,
				   const struct rt_survey_function *d, const struct rt_symbol *symbol,
				   struct rt_spec_type *type)
{
	bool others;
	unsigned arg = slot_of(s, f->structure, d, &others);

	if (arg && (others || sounds_like_find(d->name)))
		return rt_scan_counts_up(s, symbol, m) && rt_making_starts(m, symbol)
			       ? add_output(type, d, RT_OP_GET, (uint8_t)arg)
			       : NULL;
	return arg && rt_making_stores(m, symbol, (uint8_t)rt_reg_argument(arg))
		       ? rt_scan_add_leaver(type, d, (uint8_t)arg)
		       : NULL;
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

static bool gives_slot(const struct rt_track *track)
{
	for (unsigned n = 1; n <= 6; n++) {
		enum rt_reg reg = rt_reg_argument(n);

		if ((unsigned)reg < RT_TRACK_REGS && track->regs[reg].kind == RT_VALUE_OBJECT)
			return true;
	}
	return false;
}

/* Does it read what the slot in its first argument held, or give the slot to who may? */
static bool reads_slot(struct rt_scan *s, const struct rt_symbol *symbol)
{
	struct rt_elfaddr at = symbol->addr, end = { at.v + symbol->size };
	struct rt_track track;
	struct rt_insn insn;

	rt_track_init(&track, RT_REG_RDI);
	for (unsigned n = 0; n < SLOT_INSNS && at.v < end.v; n++, at.v += insn.length) {
		if (!rt_decode(s->decoder, rt_image_at(s->module->image, at, 16), at, &insn))
			return false;
		if (insn.has_mem && insn.mem.reads && insn.mem.size == 8 && insn.mem.index == RT_REG_NONE &&
		    insn.mem.base < RT_TRACK_REGS && track.regs[insn.mem.base].kind == RT_VALUE_OBJECT &&
		    !(track.regs[insn.mem.base].n + insn.mem.disp))
			return true;
		if ((insn.call ||
		     (insn.jump && insn.has_target && (insn.target.v < symbol->addr.v || insn.target.v >= end.v))) &&
		    gives_slot(&track))
			return true;
		if (!insn.pop)
			rt_track_step(&track, &insn);
		track.change_count = 0;
	}
	return false;
}

/*
 * "packet_replace(T **, T *)": gives up what the slot held, takes a reference to the other one. One that does not look
 * at what the slot held only takes: "packet_dup(T **, T *)".
 */
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

		if (c->offset != m->counter || c->size != m->counter_size || c->delta != 1)
			continue;
		if (reads_slot(s, symbol))
			return rt_scan_add_function(type, d->name, RT_OP_SWAP, RT_PLACE_ARG_PTR, 1);
		return rt_scan_add_function(type, d->name, RT_OP_GET, RT_PLACE_ARG, 2);
	}
	return NULL;
}

static struct rt_error *by_declaration(struct rt_scan *s, const struct rt_scan_family *f, const struct rt_making *m,
				       struct rt_spec_type *type)
{
	for (size_t i = 0; i < s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &s->survey.functions.data[i];
		const struct rt_symbol *symbol = f->structure ? rt_survey_code(&s->survey, d) : NULL;

		/* methods are armed by their mangled names */
		if (!symbol || rt_scan_is_known(s->known, d->name) || strncmp(symbol->name, "_Z", 2) == 0)
			continue;
		if (declared_as_maker(s, f, d) && !sounds_like_find(d->name) && rt_making_starts(m, symbol))
			RT_TRY(rt_scan_add_function(type, d->name, RT_OP_NEW, RT_PLACE_RET, 0));
		else if (initialises(s, f, m, d, symbol))
			RT_TRY(rt_scan_add_function(type, d->name, RT_OP_NEW, RT_PLACE_ARG, 1));
		else
			RT_TRY(add_leaver(s, f, m, d, symbol, type));
		RT_TRY(add_swap(s, f, m, d, symbol, type));
	}
	return NULL;
}

bool rt_scan_is_made(struct rt_scan *s, const struct rt_scan_family *f)
{
	_cleanup_(rt_spec_type_deinit) struct rt_spec_type type = { 0 };
	_cleanup_error_ struct rt_error *err = rt_scan_makers(s, f, &type);

	for (size_t i = 0; i < type.functions.len; i++)
		if (type.functions.data[i].op == RT_OP_NEW)
			return true;
	return false;
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
