/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stores of a pointer to a counted object, that the function was given as an argument or got from a constructor or a
 * get, into memory that is not its own frame: a slot, which may have held another object before. What it held, if it
 * has not just been allocated, and what is stored is looked at just before the store. Nothing is counted there.
 *
 * Of a variable of the module, which has a place of its own, the other stores are known as well: by whom it is cleared.
 * Debug information tells of more of them.
 *
 * Code is looked at in the order of its addresses: what is found is a place worth a look, and what is seen there
 * decides.
 */
#include <string.h>

#include "probe/handing.h"
#include "probe/spec_type.h"
#include "probe/way.h"

enum {
	STORES_MAX = 1024, /* of one type, in one module */
	ANY_MAX = 128,     /* of what may be anything */
	CODE_INSNS = 4000,
	SCOPES_MAX = 16
};

struct store {
	uint32_t type; /* index */
	const char *function;
	struct rt_elfaddr start; /* of the function */
	struct rt_elfaddr taken; /* the call before it that handed an object out; 0: none */
	struct rt_insn insn;
	bool fresh;  /* into memory that was just allocated */
	bool any;    /* it may store anything: type is the first one */
	bool other;  /* it is another place that stores into a variable of the module, maybe no object */
	bool filled; /* by what stands before insn, and at.disp behind at.base */
	struct rt_mem_operand at;
};

struct stores {
	const struct rt_takers *takers;
	RT_VEC(struct store) all;
	bool *called;            /* by the function that is looked at: takers of each type */
	struct rt_elfaddr taken; /* the last call in it that handed an object out; 0: none */
	struct rt_way way;
};

/* One look through the code of a function, for one type. */
struct look {
	const struct rt_survey_function *declared;
	const struct rt_symbol *symbol;
	uint32_t type;
	uint8_t object; /* register that has one at the entry; RT_REG_NONE: results of calls are */
	bool any;       /* it is declared as a mere pointer */
};

/* The slot is one of the object itself: nobody has it for that. Of several that calls return one may be in another. */
static bool is_own(const struct rt_track *objects, const struct look *look, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;

	return mem->base == insn->src_reg ||
	       (look->object != RT_REG_NONE && objects->regs[mem->base].kind == RT_VALUE_OBJECT);
}

static bool is_slot(const struct rt_track *objects, const struct look *look, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	const struct rt_value *v;

	if (!insn->is_mov || !insn->has_mem || !mem->writes || mem->segment || mem->size != 8 ||
	    insn->src_reg >= RT_TRACK_REGS || mem->base == RT_REG_RSP)
		return false;
	v = &objects->regs[insn->src_reg];
	if (v->kind != RT_VALUE_OBJECT || v->n)
		return false;
	/* a variable of the program */
	if (mem->base == RT_REG_RIP)
		return mem->index == RT_REG_NONE;
	return mem->base < RT_TRACK_REGS && objects->regs[mem->base].kind != RT_VALUE_FRAME &&
	       !is_own(objects, look, insn);
}

/* what insn reads is a pointer to an object: in a register, or in the frame */
static bool reads_object(const struct rt_track *objects, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;

	if (insn->src_reg < RT_TRACK_REGS)
		return objects->regs[insn->src_reg].kind == RT_VALUE_OBJECT && !objects->regs[insn->src_reg].n;
	if (!insn->has_mem || !mem->reads || mem->segment || mem->index != RT_REG_NONE || mem->base >= RT_TRACK_REGS ||
	    objects->regs[mem->base].kind != RT_VALUE_FRAME)
		return false;
	for (unsigned i = 0; i < objects->slot_count; i++) {
		if (objects->slots[i].at == objects->regs[mem->base].n + mem->disp)
			return objects->slots[i].value.kind == RT_VALUE_OBJECT && !objects->slots[i].value.n;
	}
	return false;
}

/*
 * insn stores two words at once, and one of them may be a pointer to an object that was put into a vector register
 * before: what is there then tells.
 */
static struct rt_error *pair_at(struct stores *s, const struct look *look, const struct rt_insn *insn)
{
	const struct rt_track *objects = &s->way.now.objects;
	struct store store = { .type = look->type,
			       .function = look->declared->name,
			       .start = look->symbol->addr,
			       .any = true,
			       .filled = true,
			       .at = insn->mem };
	const struct rt_elfaddr next = { insn->addr.v + insn->length };

	if (insn->vector_src == RT_REG_NONE || insn->mem.segment || insn->mem.index != RT_REG_NONE ||
	    insn->mem.base >= RT_TRACK_REGS || insn->mem.base == RT_REG_RSP ||
	    objects->regs[insn->mem.base].kind == RT_VALUE_FRAME || !rt_plan_decode(s->takers->b, next, &store.insn))
		return NULL;
	for (unsigned i = 0; i < 2; i++, store.at.disp += 8) {
		if (!rt_vec_push(&s->all, store))
			return rt_error_nomem();
	}
	return NULL;
}

/* a reference is taken inline right here: the function has the object, wherever it got it from */
static void note_taken(struct stores *s, const struct look *look)
{
	const struct rt_inline_taker *i = rt_takers_inline(s->takers, s->way.now.at);

	if (look->object == RT_REG_NONE && i && i->address == s->way.now.at.v && i->type == look->type)
		rt_track_learn(&s->way.now.objects, i->reg, i->in_memory, i->offset);
}

/* Past insn, which may be a call that hands an object out. false: out of memory */
static bool pass(struct stores *s, const struct look *look, const struct rt_insn *insn)
{
	struct rt_track *objects = &s->way.now.objects;
	const uint64_t *out = NULL;
	struct rt_value left = { 0 }, sp;

	if (insn->call && insn->has_target && look->object == RT_REG_NONE)
		out = rt_map_get(&s->takers->at, rt_key_make(insn->target.v, look->type + 1));
	if (out && *out)
		left = objects->regs[rt_reg_argument((unsigned)*out)];
	if (!rt_way_pass(&s->way, insn))
		return false;
	if (out)
		s->taken = insn->addr;
	if (out && !*out)
		rt_track_learn(objects, RT_REG_RAX, false, 0);
	sp = objects->regs[RT_REG_RSP];
	if (left.kind == RT_VALUE_FRAME && sp.kind == RT_VALUE_FRAME)
		rt_track_learn(objects, RT_REG_RSP, true, (int64_t)((uint64_t)left.n - (uint64_t)sp.n));
	return true;
}

static struct rt_error *look_through(struct stores *s, const struct look *look)
{
	const struct rt_plan_build *b = s->takers->b;
	struct rt_way *way = &s->way;
	bool in_vectors = false;

	s->taken.v = 0;
	rt_way_begin(way, b->module->symtab, look->symbol, look->object);
	for (unsigned n = 0; n < CODE_INSNS && rt_way_goes_on(way); n++) {
		struct store store = { .type = look->type,
				       .function = look->declared->name,
				       .start = look->symbol->addr,
				       .taken = s->taken,
				       .any = look->any };
		struct rt_insn *insn = &store.insn;

		if (!rt_plan_decode(b, way->now.at, insn))
			return NULL;
		note_taken(s, look);
		store.fresh = insn->has_mem && insn->mem.base < RT_TRACK_REGS &&
			      way->now.fresh.regs[insn->mem.base].kind == RT_VALUE_OBJECT;
		if (rt_way_reaches(way) && is_slot(&way->now.objects, look, insn) && !rt_vec_push(&s->all, store))
			return rt_error_nomem();
		in_vectors =
			!insn->call && (in_vectors || (insn->vector_writes && reads_object(&way->now.objects, insn)));
		if (in_vectors)
			RT_TRY(pair_at(s, look, insn));
		if (!pass(s, look, insn))
			return rt_error_nomem();
	}
	return NULL;
}

/* Cheap look at the bytes: of which types may this code call takers? */
static void find_called(struct stores *s, const struct rt_symbol *symbol)
{
	const struct rt_takers *t = s->takers;
	struct rt_bytes code = rt_image_at(t->b->module->image, symbol->addr, symbol->size);
	const struct rt_inline_taker *inlined, *end;
	int32_t to;

	memset(s->called, 0, t->b->plan->types.len);
	for (size_t i = 0; i + 1 + sizeof(to) <= code.size; i++) {
		uint64_t target;

		if (code.data[i] != 0xe8)
			continue;
		memcpy(&to, code.data + i + 1, sizeof(to));
		target = symbol->addr.v + i + 5 + (uint64_t)(int64_t)to;
		if (target < t->low || target > t->high || !rt_map_get(&t->at, rt_key_make(target, 0)))
			continue;
		for (uint32_t type = 0; type < t->b->plan->types.len; type++)
			s->called[type] |= rt_map_get(&t->at, rt_key_make(target, type + 1)) != NULL;
	}
	inlined = rt_takers_inline(t, symbol->addr);
	end = inlined ? t->inline_takers.data + t->inline_takers.len : NULL;
	for (; inlined && inlined < end && inlined->address < symbol->addr.v + symbol->size; inlined++)
		s->called[inlined->type] = true;
}

static struct rt_error *look_at(struct stores *s, const struct rt_survey_function *d, const struct rt_symbol *symbol)
{
	struct rt_survey *survey = &s->takers->b->survey;
	struct look look = { .declared = d, .symbol = symbol, .object = RT_REG_NONE };
	enum rt_clone clone;

	find_called(s, symbol);
	for (uint32_t t = 0; t < s->takers->b->plan->types.len; t++) {
		look.type = t;
		if (s->called[t] && !rt_takers_told(s->takers, t, d->name))
			RT_TRY(look_through(s, &look));
	}
	(void)rt_clone_base(symbol->name, &clone);
	for (unsigned i = 1; clone == RT_CLONE_FULL && i <= d->param_count; i++) {
		const struct rt_param *p = rt_survey_param(survey, d, i);
		uint32_t type = rt_takers_type(s->takers, p, 1);

		look.any = !type && rt_param_is_anything(p);
		look.type = type ? type - 1 : 0;
		if ((!type && !look.any) || !rt_takers_in_registers(survey, d, i) ||
		    (look.any ? rt_takers_told_any(s->takers, d->name) : rt_takers_told(s->takers, look.type, d->name)))
			continue;
		look.object = (uint8_t)rt_reg_argument(i);
		RT_TRY(look_through(s, &look));
	}
	return NULL;
}

/* by its declaration it is given or returns objects of the type */
static bool knows(const struct rt_takers *t, const char *function, uint32_t type)
{
	const struct rt_survey_function *d = NULL;

	while (function && (d = rt_survey_function(&t->b->survey, function, d))) {
		if (rt_takers_type(t, &d->returns, 1) == type + 1)
			return true;
		for (unsigned i = 1; i <= d->param_count; i++)
			if (rt_takers_type(t, rt_survey_param(&t->b->survey, d, i), 1) == type + 1)
				return true;
	}
	return false;
}

/* This scope around a store is one around the call that handed the object out as well. */
static bool took_itself(const struct rt_scope *scope, const struct rt_scope *taken, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (taken[i].function && scope->function && !strcmp(taken[i].function, scope->function))
			return true;
	}
	return false;
}

/*
 * The point goes by the name of the inlined helper that stores a mere pointer: it is its caller who knows what that
 * stands for. No helper is who took what it stores. Where there is none, by the place: not by the function's own name,
 * which would make its caller the site.
 */
static char *name_of(const struct rt_takers *t, const struct store *store)
{
	struct rt_scope scopes[SCOPES_MAX];
	struct rt_scope taken[SCOPES_MAX];
	size_t n = rt_dwarf_scopes(t->b->module->dwarf, store->insn.addr, scopes, SCOPES_MAX), skip = 0;
	size_t takers = store->taken.v ? rt_dwarf_scopes(t->b->module->dwarf, store->taken, taken, SCOPES_MAX) : 0;
	char *name = NULL;

	while (!store->other && skip + 1 < n && scopes[skip].inlined && !knows(t, scopes[skip].function, store->type) &&
	       !took_itself(&scopes[skip], taken, takers))
		skip++;
	if (skip && scopes[skip - 1].function)
		return strdup(scopes[skip - 1].function);
	if (asprintf(&name, "%s+0x%llx", store->function, (unsigned long long)(store->insn.addr.v - store->start.v)) <
	    0)
		return NULL;
	return name;
}

static struct rt_error *add_store(const struct rt_takers *t, const struct store *store)
{
	const struct rt_mem_operand *mem = store->filled ? &store->at : &store->insn.mem;
	const struct rt_slot slot = { .type = store->type,
				      .insn = &store->insn,
				      .reg = mem->base,
				      .index = mem->index,
				      .scale = mem->index == RT_REG_NONE ? 0 : mem->scale,
				      .offset = mem->disp,
				      .stored = store->filled || store->insn.src_reg >= RT_TRACK_REGS
							? (uint8_t)RT_REG_NONE
							: store->insn.src_reg,
				      .fresh = !store->filled && (store->fresh || store->any),
				      .filled = store->filled,
				      .maybe = store->any };
	_cleanup_free_ char *name = name_of(t, store);

	return name ? rt_plan_slot(t->b, &slot, name) : rt_error_nomem();
}

static struct rt_error *add_stores(struct stores *s)
{
	size_t types = s->takers->b->plan->types.len;
	_cleanup_free_ unsigned *count = calloc(types + 1, sizeof(*count));
	unsigned any = 0;

	if (!count)
		return rt_error_nomem();
	for (size_t i = 0; i < s->all.len; i++)
		*(s->all.data[i].any ? &any : &count[s->all.data[i].type]) += 1;
	for (size_t i = 0; i < s->all.len; i++) {
		const struct store *store = &s->all.data[i];

		if (store->any ? any <= ANY_MAX : count[store->type] <= STORES_MAX)
			RT_TRY(add_store(s->takers, store));
	}
	for (uint32_t type = 0; type < types; type++)
		RT_TRY(rt_plan_limit(s->takers->b, type, "stores into slots", count[type], STORES_MAX));
	return rt_plan_limit(s->takers->b, UINT32_MAX, "stores of anything into slots", any, ANY_MAX);
}

/* The module's variables that hold objects: address -> index of the type + 1. */
struct variables {
	const struct rt_takers *takers;
	struct rt_map types;
	bool nomem;
};

static bool see_global(struct rt_elfaddr addr, const char *pointee, void *arg)
{
	struct variables *v = arg;
	const uint64_t *type = rt_map_get(&v->takers->type_of, rt_key_text(pointee));
	uint64_t *slot = type ? rt_map_put(&v->types, rt_key_make(addr.v, 0), NULL) : NULL;

	v->nomem = type && !slot;
	if (slot)
		*slot = *type;
	return !v->nomem;
}

/* those that are declared so, and those into which an object is stored */
static struct rt_error *find_variables(const struct stores *s, struct variables *v)
{
	RT_TRY(rt_dwarf_pointer_globals(s->takers->b->module->dwarf, see_global, v));
	for (size_t i = 0; i < s->all.len && !v->nomem; i++) {
		const struct rt_mem_operand *mem = &s->all.data[i].insn.mem;
		uint64_t *slot;

		if (s->all.data[i].any || s->all.data[i].filled || mem->base != RT_REG_RIP)
			continue;
		slot = rt_map_put(&v->types, rt_key_make((uint64_t)mem->disp, 0), NULL);
		if (slot)
			*slot = s->all.data[i].type + 1;
		v->nomem = !slot;
	}
	return v->nomem ? rt_error_nomem() : NULL;
}

/*
 * Where the code at code.data + at stores 8 bytes into such a variable, as far as bytes tell (mov %reg, movq $imm): as
 * in struct variables; 0: it does not. What looks so in the middle of an instruction is none.
 */
static uint64_t variable_at(const struct variables *v, struct rt_bytes code, size_t at, uint64_t address)
{
	enum { REG = 7, IMM = 11 }; /* bytes of the instruction */
	const uint8_t *c = code.data + at;
	const bool imm = c[1] == 0xc7 && c[2] == 0x05, reg = c[1] == 0x89 && (c[2] & 0xc7) == 0x05;
	const size_t length = imm ? IMM : REG;
	const uint64_t *known;
	int32_t disp;

	if ((c[0] & 0xf8) != 0x48 || (!imm && !reg) || at + length > code.size)
		return 0;
	memcpy(&disp, c + 3, sizeof(disp));
	known = rt_map_get(&v->types, rt_key_make(address + length + (uint64_t)(int64_t)disp, 0));
	return known && rt_x86_holds_probe(code, at) ? *known : 0;
}

static bool is_known(const struct stores *s, struct rt_elfaddr at)
{
	for (size_t i = 0; i < s->all.len; i++)
		if (s->all.data[i].insn.addr.v == at.v)
			return true;
	return false;
}

/* the other places in this function that store into variables which hold objects */
static struct rt_error *find_others(struct stores *s, const struct variables *v, const struct rt_survey_function *d,
				    const struct rt_symbol *symbol)
{
	enum { SHORTEST = 7 };
	struct rt_bytes code = rt_image_at(s->takers->b->module->image, symbol->addr, symbol->size);

	for (size_t i = 0; i + SHORTEST <= code.size; i++) {
		struct store store = { .function = d->name, .start = symbol->addr, .other = true };
		const struct rt_elfaddr at = { symbol->addr.v + i };
		const uint64_t known = variable_at(v, code, i, at.v);

		if (!known || is_known(s, at) || !rt_plan_decode(s->takers->b, at, &store.insn))
			continue;
		store.type = (uint32_t)known - 1;
		if (!rt_vec_push(&s->all, store))
			return rt_error_nomem();
	}
	return NULL;
}

/* looks at each function of which there is code, or for other stores into these variables */
static struct rt_error *each_function(struct stores *s, const struct variables *v)
{
	const struct rt_survey *survey = &s->takers->b->survey;

	for (size_t i = 0; i < survey->functions.len; i++) {
		const struct rt_survey_function *d = &survey->functions.data[i];
		const struct rt_symbol *symbol = rt_survey_code(survey, d);

		if (!symbol)
			continue;
		RT_TRY(v ? find_others(s, v, d, symbol) : look_at(s, d, symbol));
	}
	return NULL;
}

struct rt_error *rt_plan_overwrites(const struct rt_takers *t)
{
	_cleanup_free_ bool *called = calloc(t->b->plan->types.len + 1, sizeof(*called));
	struct stores s = { .takers = t, .called = called };
	struct variables v = { .takers = t };
	struct rt_error *err = NULL;

	if (!called)
		return rt_error_nomem();
	err = each_function(&s, NULL);
	if (!err)
		err = find_variables(&s, &v);
	if (!err && v.types.len)
		err = each_function(&s, &v);
	if (!err)
		err = add_stores(&s);
	rt_map_deinit(&v.types);
	rt_vec_deinit(&s.all);
	rt_way_deinit(&s.way);
	return err;
}
