/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Results without a hooked return: where all callers of a function are known,
 * the instruction behind each call sees its result. Calls are looked for in the
 * code of every symbol. A function whose address is taken, or that something
 * jumps to, may be called from anywhere: then none of its calls is armed, since
 * a part of the truth looks like leaks.
 */
#include <elf.h>
#include <string.h>

#include "probe/build.h"
#include "probe/spec_type.h"

struct call {
	struct rt_elfaddr behind; /* the instruction after the call */
	const struct rt_symbol *caller;
};

/* What is known about one late function's callers. */
struct callers {
	RT_VEC(struct call) calls;
	bool unknown;
};

struct search {
	struct rt_plan_build *b;
	struct rt_map entries; /* address of the function or of its stub -> index in b->late + 1 */
	uint64_t low, high;    /* all entries lie in [low, high] */
	struct callers *callers;
};

static struct callers *entry(struct search *s, uint64_t addr)
{
	uint64_t *index;

	if (addr < s->low || addr > s->high)
		return NULL;
	index = rt_map_get(&s->entries, rt_key_make(addr, 0));
	return index ? &s->callers[*index - 1] : NULL;
}

static struct rt_error *add_entry(struct search *s, uint64_t addr, size_t late)
{
	uint64_t *index = addr ? rt_map_put(&s->entries, rt_key_make(addr, 0), NULL) : NULL;

	if (!addr)
		return NULL;
	if (!index)
		return rt_error_nomem();
	*index = late + 1;
	s->low = addr < s->low ? addr : s->low;
	s->high = addr > s->high ? addr : s->high;
	return NULL;
}

static struct rt_error *add_entries(struct search *s)
{
	const struct rt_symtab *symtab = s->b->module->symtab;

	for (size_t i = 0; i < s->b->late.len; i++) {
		const struct rt_target *t = &s->b->late.data[i].target;

		RT_TRY(add_entry(s, t->addr.v, i));
		for (size_t k = 0; t->symbol && k < symtab->count; k++)
			if (symtab->symbols[k].plt && strcmp(symtab->symbols[k].name, t->symbol->name) == 0)
				RT_TRY(add_entry(s, symtab->symbols[k].addr.v, i));
	}
	return NULL;
}

/* Cheap look at the bytes: may this code name one of the entries? */
static bool mentions(struct search *s, struct rt_elfaddr at, struct rt_bytes code)
{
	for (size_t i = 0; i < code.size; i++) {
		int32_t value;

		if (i && ((code.data[i - 1] & 0xf0) == 0x70 || code.data[i - 1] == 0xeb) &&
		    entry(s, at.v + i + 1 + (uint64_t)(int64_t)(int8_t)code.data[i]))
			return true;
		if (code.size - i < sizeof(value))
			continue;
		memcpy(&value, code.data + i, sizeof(value));
		if (entry(s, at.v + i + 4 + (uint64_t)(int64_t)value) || entry(s, (uint32_t)value))
			return true;
	}
	return false;
}

static struct rt_error *note(struct search *s, const struct rt_symbol *function, const struct rt_insn *insn)
{
	struct callers *called = insn->has_target ? entry(s, insn->target.v) : NULL, *taken = NULL;
	struct call call = { .behind = { insn->addr.v + insn->length }, .caller = function };

	if (called && insn->call)
		return rt_vec_push(&called->calls, call) ? NULL : rt_error_nomem();
	/* a function may loop through its own entry */
	if (called && insn->jump && insn->target.v != function->addr.v)
		called->unknown = true;
	if (insn->has_mem && insn->mem.base == RT_REG_RIP)
		taken = entry(s, (uint64_t)insn->mem.disp);
	if (!taken && insn->has_imm && !insn->call && !insn->jump && s->b->module->image->type == ET_EXEC)
		taken = entry(s, (uint64_t)insn->imm);
	if (taken)
		taken->unknown = true;
	return NULL;
}

static struct rt_error *search_function(struct search *s, const struct rt_symbol *function)
{
	struct rt_bytes code = rt_image_at(s->b->module->image, function->addr, function->size);
	struct rt_elfaddr at = function->addr;

	if (!mentions(s, at, code))
		return NULL;
	while (code.size) {
		struct rt_insn insn;
		size_t length = 1;

		if (rt_decode(s->b->decoder, code, at, &insn)) {
			RT_TRY(note(s, function, &insn));
			length = insn.length;
		}
		if (!length || length > code.size)
			break;
		code.data += length;
		code.size -= length;
		at.v += length;
	}
	return NULL;
}

static bool inside(struct rt_bytes part, const uint8_t *at)
{
	/* a section that is not there has no address */
	return (uintptr_t)at - (uintptr_t)part.data < part.size;
}

/* Pointers in data, and the addends of relocations that will make some. */
static void search_data(struct search *s)
{
	const struct rt_image *image = s->b->module->image;
	struct rt_bytes symbols = { 0 };

	(void)rt_image_section(image, ".dynsym", &symbols, NULL);
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *segment = &image->segments[i];
		struct rt_bytes data;

		if (segment->flags & 1)
			continue;
		data = rt_image_at(image, segment->start, segment->end.v - segment->start.v);
		for (size_t at = -segment->start.v & 7; data.size >= 8 && at <= data.size - 8; at += 8) {
			struct callers *c;
			uint64_t value;

			memcpy(&value, data.data + at, sizeof(value));
			c = entry(s, value);
			if (c && !inside(symbols, data.data + at))
				c->unknown = true;
		}
	}
}

/* Relocations that name a function other than for its PLT stub. */
static void search_relocations(struct search *s)
{
	enum { RELA = 24, SYM = 24 };
	const struct rt_image *image = s->b->module->image;
	struct rt_bytes relas, symbols, names;

	if (!rt_image_section(image, ".rela.dyn", &relas, NULL) ||
	    !rt_image_section(image, ".dynsym", &symbols, NULL) || !rt_image_section(image, ".dynstr", &names, NULL))
		return;
	for (size_t at = 0; relas.size >= RELA && at <= relas.size - RELA; at += RELA) {
		uint64_t info;
		uint32_t name;

		memcpy(&info, relas.data + at + 8, sizeof(info));
		if (!(info >> 32) || (info >> 32) >= symbols.size / SYM)
			continue;
		memcpy(&name, symbols.data + (info >> 32) * SYM, sizeof(name));
		for (size_t i = 0; name < names.size && i < s->b->late.len; i++) {
			const struct rt_symbol *symbol = s->b->late.data[i].target.symbol;
			size_t len = symbol ? strlen(symbol->name) + 1 : 0;

			if (len && len <= names.size - name && memcmp(names.data + name, symbol->name, len) == 0)
				s->callers[i].unknown = true;
		}
	}
}

static struct rt_error *search_all(struct search *s)
{
	const struct rt_symtab *symtab = s->b->module->symtab;
	struct rt_elfaddr last = { 0 };

	RT_TRY(add_entries(s));
	for (size_t i = 0; i < symtab->count; i++) {
		const struct rt_symbol *f = &symtab->symbols[i];

		/* aliases share their code */
		if (!f->function || f->plt || !f->size || f->addr.v == last.v)
			continue;
		last = f->addr;
		RT_TRY(search_function(s, f));
	}
	search_data(s);
	search_relocations(s);
	return NULL;
}

static struct rt_error *arm(struct rt_plan_build *b, const struct rt_late *late, const struct call *call)
{
	const struct rt_target *t = &late->target;
	const struct rt_plan_type *type = &b->plan->types.data[t->type];
	struct rt_site_request request = { .image = b->module->image,
					   .decoder = b->decoder,
					   .entry = call->behind,
					   .start = call->caller->addr,
					   .end = { call->caller->addr.v + call->caller->size },
					   .reg = RT_REG_RAX,
					   .nearest = true,
					   .unshared = true,
					   .avoid_nop5 = b->plan->options.avoid_nop5,
					   .room = b->plan->options.room,
					   .breakpoints = b->plan->options.breakpoints };
	struct rt_point p = { .kind = RT_POINT_INSN,
			      .op = t->as.op,
			      .delta = rt_op_delta(t->as.op, type->start),
			      .guessed = t->as.guessed,
			      .flags = (uint16_t)(RT_EV_AT_RETURN | (t->as.hidden ? RT_EV_HIDDEN : 0)),
			      .function = t->addr,
			      .place = t->as.place == RT_PLACE_RET_PTR ? RT_PLACE_ARG_PTR : RT_PLACE_ARG,
			      .deref = t->as.place == RT_PLACE_RET_PTR };
	struct rt_site site;
	const char *why;

	(void)rt_survey_cold(&b->survey, call->caller, &request.cold_start, &request.cold_end);
	if (!rt_site_find(&request, &site, &why) || !rt_image_offset(b->module->image, site.address, &p.offset))
		return rt_plan_refuse(b, t->type, t->function, t->name, RT_E_UNARMED,
				      "%s; nor can the code behind the call in %s", late->why, call->caller->name);
	p.address = site.address;
	p.cost = site.cost;
	p.before = site.before;
	p.breakpoint = site.breakpoint;
	p.reg = site.reg;
	p.cfa_delta = rt_plan_cfa_delta(b, site.address);
	rt_plan_set_counter(type, NULL, &p);
	return rt_plan_add(b, t->type, t->function, &p, t->name);
}

/* Exported to callers whose modules do not show, by its name, that they see its result behind the call. */
static bool has_foreign_callers(struct rt_plan_build *b, const struct rt_target *t)
{
	struct rt_bytes interpreter;

	return t->symbol && !t->symbol->plt && strncmp(t->symbol->name, "_Z", 2) != 0 &&
	       t->symbol->bind != RT_BIND_LOCAL && b->module->image->type == ET_DYN &&
	       !rt_image_section(b->module->image, ".interp", &interpreter, NULL);
}

static struct rt_error *finish(struct rt_plan_build *b, const struct rt_late *late, const struct callers *c)
{
	const struct rt_target *t = &late->target;

	if (late->imported && !c->unknown && !c->calls.len)
		return NULL;
	if (c->unknown || b->module->symtab->stripped || !t->symbol || has_foreign_callers(b, t))
		return rt_plan_refuse(b, t->type, t->function, t->name, RT_E_UNARMED,
				      "%s, and some callers are not known", late->why);
	if (!c->calls.len && t->symbol->bind == RT_BIND_LOCAL)
		return NULL;
	if (!c->calls.len)
		return rt_plan_refuse(b, t->type, t->function, t->name, RT_E_UNARMED, "%s, and nothing here calls it",
				      late->why);
	for (size_t i = 0; i < c->calls.len; i++)
		RT_TRY(arm(b, late, &c->calls.data[i]));
	return NULL;
}

/* C++ functions that this module calls through stubs: their own module cannot tell their result. */
static struct rt_error *add_imports(struct rt_plan_build *b)
{
	const struct rt_symtab *symtab = b->module->symtab;

	for (size_t i = 0; i < symtab->count; i++) {
		const struct rt_symbol *stub = &symtab->symbols[i];

		if (!stub->plt || strncmp(stub->name, "_Z", 2) != 0 || rt_symtab_find(symtab, stub->name))
			continue;
		for (uint32_t t = 0; t < b->plan->types.len; t++)
			for (uint32_t k = 0; k < b->plan->types.data[t].spec->functions.len; k++) {
				const struct rt_spec_function *f = &b->plan->types.data[t].spec->functions.data[k];
				struct rt_late late = { .target = { .type = t,
								    .function = k,
								    .name = stub->name,
								    .symbol = stub,
								    .addr = stub->addr,
								    .as = *f },
							.why = "its result is needed",
							.imported = true };

				if (rt_result_is_object(f) && rt_spec_means(f->name, stub->name, true) &&
				    !rt_vec_push(&b->late, late))
					return rt_error_nomem();
			}
	}
	return NULL;
}

struct rt_error *rt_plan_callers(struct rt_plan_build *b)
{
	struct search s = { .b = b, .low = UINT64_MAX };
	struct rt_error *err = NULL;

	if (!b->module->symtab)
		return NULL;
	if (b->plan->options.return_points && !b->plan->options.force_returns)
		RT_TRY(add_imports(b));
	if (!b->late.len)
		return NULL;
	s.callers = calloc(b->late.len, sizeof(*s.callers));
	if (!s.callers)
		return rt_error_nomem();
	err = search_all(&s);
	for (size_t i = 0; i < b->late.len; i++) {
		if (!err)
			err = finish(b, &b->late.data[i], &s.callers[i]);
		rt_vec_deinit(&s.callers[i].calls);
	}
	free(s.callers);
	rt_map_deinit(&s.entries);
	return err;
}
