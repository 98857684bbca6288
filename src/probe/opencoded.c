/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counting that no get or put does: x->refs++ somewhere in the program. An instruction that adds 1 to the field which
 * is the type's counter, or takes 1 off it, through a register that is, by debug information, a variable of type T *
 * right there. Of a type that no function makes, also one that stores a 1 there: it made the object. What lies in
 * functions that were told, or is inlined from them, is counted already. Where the instruction is not plain, nothing is
 * probed: the counter still says that something was not seen.
 *
 * Where debug information does not know the register (`put(queue->owner)`), and does not say either that it points to
 * something else, the point is a "maybe": it counts where an object of the type lives at the address, by what was seen
 * before. At the very beginning of a structure much else is counted: where no variable of that place is declared to
 * point to such an object, or to pointers to some, there are few of these, or none of them is probed.
 */
#include <stdio.h>
#include <string.h>

#include "dwarf/listing.h"
#include "probe/count_word.h"
#include "probe/counted.h"
#include "probe/handing.h"
#include "probe/kin.h"
#include "probe/pointee.h"
#include "probe/reach.h"
#include "probe/source_name.h"
#include "probe/spec_type.h"

enum {
	POINTS_MAX = 4096, /* of one type, in one module */
	MAYBES_MAX = 1024,
	FAR_MAX = 256, /* of the maybes, those that nothing but the offset 0 speaks for */
	FUNCTION_BYTES = 64 << 10,
	SCOPES_MAX = 16,
	AHEAD_INSNS = 6
};

struct open_type {
	uint32_t index;
	const char *structure; /* tag or typedef */
	bool made;             /* there is a function that makes them */
	unsigned points, maybes, far;
	unsigned left_out; /* places behind the first POINTS_MAX */
};

/* An instruction that counts something at the counter's place in what it works on. */
struct open_maybe {
	uint32_t type; /* index of types */
	struct rt_insn insn;
	int64_t delta;
	bool first;     /* it stores the count that a new object has */
	unsigned given; /* as is_object() says */
	bool far;
	bool inner; /* it counts through a register that points into the object; insn is as if it did not */
};

/* A register that points into what another one points to: `lea 8(base)`, for a counter that is worked on repeatedly. */
struct inner {
	struct rt_elfaddr at; /* of the last one that was passed; 0: none */
	uint8_t base;
	int64_t disp;
};

struct open_search {
	struct rt_plan_build *b;
	struct inner inner[RT_TRACK_REGS]; /* of the function that is looked at */
	struct rt_pointees pointees;
	struct rt_kin kin;
	RT_VEC(struct open_type) types;
	RT_VEC(struct open_maybe) maybes;
};

static bool next(struct open_search *s, struct rt_elfaddr *at, struct rt_insn *ret)
{
	if (!rt_plan_decode(s->b, *at, ret))
		return false;
	at->v += ret->length;
	return true;
}

/*
 * Both registers hold the same at insn: one was copied from the other shortly before it, and nothing has written either
 * since. Debug information knows of one place of a variable only.
 */
static bool are_copies(struct open_search *s, const struct rt_insn *insn, uint8_t a, uint8_t b)
{
	struct rt_elfaddr start, end, at, copied = { 0 };
	struct rt_insn one;

	if (a >= RT_TRACK_REGS || b >= RT_TRACK_REGS || !rt_survey_range(&s->b->survey, insn->addr, &start, &end) ||
	    end.v - start.v > FUNCTION_BYTES)
		return false;
	for (at = start; at.v < insn->addr.v;) {
		if (!next(s, &at, &one))
			return false;
		if (one.is_mov && !one.has_mem && !one.has_imm &&
		    ((one.src_reg == a && one.dst_reg == b) || (one.src_reg == b && one.dst_reg == a)))
			copied = one.addr;
		else if (one.call || one.ret || one.jump || (one.writes & (1u << a | 1u << b)))
			copied.v = 0;
	}
	return copied.v && at.v == insn->addr.v && !rt_counted_joined(s->b, start, end, copied, insn->addr);
}

struct variable {
	struct open_search *s;
	struct rt_instance in;
	const struct rt_insn *insn;
	const char *structure;
	bool found;   /* it is the object */
	bool kin;     /* it is what begins with the structure */
	bool other;   /* it points to something else */
	bool near;    /* another one leads to such an object */
	bool here;    /* in this very scope */
	bool counter; /* it points to the counter, or to what may be one */
};

/* a pointer to what has as many bytes as the counter */
static bool may_be_counter(struct variable *v, const char *type)
{
	static const char *const words[] = { "struct ", "union ", "volatile ", "_Atomic " };
	const char *star = type ? strchr(type, '*') : NULL;
	char name[128];

	if (!star || star == type || star[1] || (size_t)(star - type) > sizeof(name))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		type += strncmp(type, words[i], strlen(words[i])) ? 0 : strlen(words[i]);
	if (star <= type)
		return false;
	memcpy(name, type, (size_t)(star - type - 1));
	name[star - type - 1] = '\0';
	return !strcmp(name, "int") || !strcmp(name, "unsigned int") ||
	       rt_dwarf_struct_size(v->s->b->module->dwarf, name) == v->insn->mem.size;
}

/* the type is a pointer to what begins with the structure */
static bool is_kin(const struct open_search *s, const char *type, const char *structure)
{
	for (size_t i = 0; i < s->kin.all.len; i++) {
		if (rt_points_to(type, s->kin.all.data[i].structure) == 1)
			return rt_kin_begins(&s->kin, s->kin.all.data[i].structure, structure);
	}
	return false;
}

static void see_variable(const char *name, void *arg)
{
	struct variable *v = arg;
	struct rt_dwarf *dwarf = v->s->b->module->dwarf;
	const char *type = rt_dwarf_declared(dwarf, &v->in, v->insn->addr, name);
	struct rt_datum d;

	/* it may have no place just where it is counted */
	v->here |= rt_points_to(type, v->structure) != 0;
	v->counter |= may_be_counter(v, type);
	if (v->found || rt_dwarf_datum(dwarf, &v->in, v->insn->addr, name, NULL, 0, &d) != NULL ||
	    !rt_pointee_based(&d))
		return;
	v->counter |= d.is_param && d.where.reg == v->insn->mem.base && d.where.offset == v->insn->mem.disp &&
		      !rt_points_to(d.type, v->structure);
	if (d.where.offset)
		return;
	if (rt_points_to(d.type, v->structure) != 1) {
		const bool other =
			d.where.reg == v->insn->mem.base && strncmp(d.type ? d.type : "void", "void", 4) != 0;

		v->other |= other;
		v->kin |= other && is_kin(v->s, d.type, v->structure);
	} else
		v->found =
			d.where.reg == v->insn->mem.base || are_copies(v->s, v->insn, d.where.reg, v->insn->mem.base);
}

/*
 * The register that the instruction writes through is a variable that points to the structure, or was read from a
 * member that does: of the function itself, or of one that it is inlined into (atomic operations are functions of their
 * own, that are given the counter).
 * *ret_given: how many scopes from the innermost on are such functions.
 */
enum object {
	IS_OTHER,
	IS_UNKNOWN,
	IS_NEAR, /* unknown, but such objects are about */
	IS_KIN,  /* what begins with the object */
	IS_OBJECT
};

static enum object is_object(struct open_search *s, const struct rt_insn *insn, const char *structure,
			     unsigned *ret_given)
{
	struct variable v = { .s = s, .insn = insn, .structure = structure };
	enum rt_pointee read = RT_POINTEE_UNKNOWN;
	struct rt_instance inner;
	bool more = rt_dwarf_instance_at(s->b->module->dwarf, insn->addr, &v.in);

	*ret_given = 0;
	for (unsigned depth = 0; more && !v.found && depth < SCOPES_MAX; depth++) {
		v.counter = v.here = false;
		rt_dwarf_names(s->b->module->dwarf, &v.in, insn->addr, true, see_variable, &v);
		if (v.counter && !v.here && !v.found && *ret_given == depth)
			*ret_given = depth + 1;
		v.near |= v.here;
		inner = v.in;
		more = rt_dwarf_instance_outer(s->b->module->dwarf, &inner, &v.in);
	}
	if (!v.found)
		read = rt_pointee_read(&s->pointees, insn->addr, insn->mem.base, structure);
	if (v.found || read == RT_POINTEE_OBJECT)
		return IS_OBJECT;
	if (v.kin)
		return IS_KIN;
	return v.other || read == RT_POINTEE_OTHER ? IS_OTHER : v.near ? IS_NEAR : IS_UNKNOWN;
}

/*
 * The rest of a function that was split: where its beginning is inlined, nothing but what it does itself tells of it.
 * Where the whole function was seen as well, the counter says that both are one operation.
 */
static bool is_rest(struct open_search *s, struct rt_elfaddr at)
{
	const struct rt_symbol *symbol = rt_symtab_at(s->b->module->symtab, at);

	return symbol && strstr(symbol->name, ".part.");
}

/*
 * The function of the spec of this name, whose result is seen nowhere: what it counts where it is inlined is all that
 * tells of it; NULL: it is none.
 */
static const struct rt_spec_function *unseen(const struct rt_plan_type *type, const char *name)
{
	for (size_t i = 0; i < type->spec->functions.len; i++) {
		const struct rt_spec_function *f = &type->spec->functions.data[i];

		if (rt_needs_return(f) && rt_spec_means(f->name, name, rt_spec_is_told(type->spec)) &&
		    (type->seen[i] & (RT_SEEN_REFUSED | RT_SEEN_INNER)) == RT_SEEN_REFUSED)
			return f;
	}
	return NULL;
}

/*
 * It is done by a function of the spec that works on such objects, or inlined from one; others hold them, and count.
 * *ret_makes: it is not, but by one that makes them, inlined, of which nothing else is seen.
 */
static bool is_told(struct open_search *s, const char *structure, struct rt_elfaddr at, bool *ret_makes)
{
	struct rt_scope scopes[SCOPES_MAX];
	size_t n = rt_dwarf_scopes(s->b->module->dwarf, at, scopes, SCOPES_MAX);
	const struct rt_takers takers = { .b = s->b };

	*ret_makes = false;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; scopes[i].function && k < s->types.len; k++) {
			const struct rt_plan_type *type = &s->b->plan->types.data[s->types.data[k].index];
			const struct rt_spec_function *f = scopes[i].inlined ? unseen(type, scopes[i].function) : NULL;

			if (strcmp(s->types.data[k].structure, structure) != 0)
				continue;
			*ret_makes |= f && f->op == RT_OP_NEW;
			if (!f && rt_takers_told(&takers, s->types.data[k].index, scopes[i].function))
				return true;
		}
	}
	return !n;
}

/* What the parameters of a function are. */
struct given {
	struct open_search *s;
	struct rt_instance in;
	struct rt_elfaddr at;
	const char *structure;
	unsigned objects, others; /* pointers to the structure, to others */
};

static void see_parameter(const char *name, void *arg)
{
	struct given *g = arg;
	struct rt_dwarf *dwarf = g->s->b->module->dwarf;

	if (rt_points_to(rt_dwarf_declared(dwarf, &g->in, g->at, name), g->structure) == 1)
		g->objects++;
	else
		g->others += rt_dwarf_declared_structure(dwarf, &g->in, g->at, name);
}

/*
 * The innermost function around it that is inlined there, is given nothing but the object, and counts for who calls it,
 * as its name says; from this scope on. NULL: none.
 */
static const char *counts_for_caller(struct open_search *s, const char *structure, struct rt_elfaddr at, bool get,
				     unsigned from)
{
	struct given g = { .s = s, .at = at, .structure = structure };
	bool more = rt_dwarf_instance_at(s->b->module->dwarf, at, &g.in);
	struct rt_instance inner;

	for (unsigned depth = 0; more && g.in.inlined && depth < SCOPES_MAX; depth++) {
		g.objects = g.others = 0;
		if (depth >= from)
			rt_dwarf_names(s->b->module->dwarf, &g.in, at, false, see_parameter, &g);
		if (g.objects == 1 && !g.others && g.in.function && rt_count_word(g.in.function, get))
			return g.in.function;
		/* the object is its own business from here on */
		if (g.objects)
			return NULL;
		inner = g.in;
		more = rt_dwarf_instance_outer(s->b->module->dwarf, &inner, &g.in);
	}
	return NULL;
}

/*
 * No function has this name: the one around it is where the reference is taken or given back. But for a split one's,
 * and those that are just given the counter, or just the object: who calls these takes it.
 */
static void name_of(struct open_search *s, const struct open_type *t, struct rt_elfaddr at, const struct open_maybe *m,
		    char *ret, size_t size)
{
	struct rt_scope scopes[SCOPES_MAX];
	const unsigned given = m->given;
	size_t n = given || is_rest(s, at) ? rt_dwarf_scopes(s->b->module->dwarf, at, scopes, SCOPES_MAX) : 0;
	const char *helper = m->first ? NULL : counts_for_caller(s, t->structure, at, m->delta > 0, given);
	const struct rt_takers takers = { .b = s->b };

	if (helper)
		snprintf(ret, size, "%s", helper);
	else if (given && given < n && scopes[given - 1].inlined && scopes[given - 1].function)
		snprintf(ret, size, "%s", scopes[given - 1].function);
	else if (n && scopes[n - 1].function && rt_takers_told(&takers, t->index, scopes[n - 1].function))
		snprintf(ret, size, "%s", scopes[n - 1].function);
	else
		snprintf(ret, size, "%s.count", t->structure);
}

static struct rt_error *add(struct open_search *s, const struct open_maybe *m, bool maybe)
{
	struct open_type *t = &s->types.data[m->type];
	const struct rt_insn *insn = &m->insn;
	const struct rt_plan_type *type = &s->b->plan->types.data[t->index];
	struct rt_site_request request = { .image = s->b->module->image,
					   .decoder = s->b->decoder,
					   .entry = insn->addr,
					   .reg = insn->mem.base,
					   .nearest = true,
					   .first_insn = s->b->plan->options.first_insn,
					   .avoid_nop5 = s->b->plan->options.avoid_nop5,
					   .room = s->b->plan->options.room,
					   .breakpoints = s->b->plan->options.breakpoints };
	struct rt_point p = { .kind = RT_POINT_INSN,
			      .op = m->first       ? RT_OP_NEW
				    : m->delta > 0 ? RT_OP_GET
						   : RT_OP_PUT,
			      .delta = (int16_t)m->delta,
			      .guessed = true,
			      .function = insn->addr,
			      .place = RT_PLACE_ARG,
			      .counter_offset = RT_COUNTER_UNKNOWN,
			      .flags = (uint16_t)(RT_EV_INLINE | (maybe ? RT_EV_MAYBE : 0)) };
	char name[128];
	struct rt_site site;
	const char *why;
	bool mine = false;

	if (t->points == POINTS_MAX) {
		t->left_out++;
		return NULL;
	}
	(void)rt_survey_range(&s->b->survey, insn->addr, &request.start, &request.end);
	if (!rt_counted_place(s->b, &request, &site, &why) ||
	    !rt_image_offset(s->b->module->image, site.address, &p.offset))
		return NULL;
	p.address = site.address;
	p.cost = site.cost;
	p.before = site.before;
	p.breakpoint = site.breakpoint;
	p.reg = site.reg;
	p.cfa_delta = rt_plan_cfa_delta(s->b, site.address);
	if (!m->first) {
		if (!rt_counted_bias(s->b, &site, insn->addr, type->counter_offset, type->counter_size, m->delta,
				     &p.counter_bias))
			return NULL;
		/* the walk to the site does not know what that register points to */
		if (m->inner && site.address.v > insn->addr.v)
			p.counter_bias = (int8_t)(p.counter_bias - m->delta);
		p.counter_offset = type->counter_offset;
		p.counter_size = (uint8_t)type->counter_size;
	}
	RT_TRY(rt_plan_take_place(s->b, t->index, &p, &mine));
	if (!mine)
		return NULL;
	t->points++;
	name_of(s, t, insn->addr, m, name, sizeof(name));
	return rt_plan_add(s->b, t->index, (uint32_t)type->spec->functions.len, &p, name);
}

/* a few instructions from at on store reg where load has read it, and nothing else changes it or what it is based on */
static bool stores_back(struct open_search *s, struct rt_elfaddr at, const struct rt_insn *load, uint8_t reg)
{
	struct rt_insn insn;

	for (unsigned n = 0; n < AHEAD_INSNS && next(s, &at, &insn) && !insn.call && !insn.ret && !insn.jump; n++) {
		if (insn.is_mov && insn.has_mem && insn.mem.writes && insn.src_reg == reg &&
		    insn.mem.base == load->mem.base && insn.mem.disp == load->mem.disp &&
		    insn.mem.size == load->mem.size && insn.mem.index == RT_REG_NONE)
			return true;
		if (insn.writes & (1u << reg | 1u << load->mem.base))
			return false;
	}
	return false;
}

/*
 * if (--x->refs == 0) free(x): the count is read, and stored only where it is not the last, since the memory goes
 * anyway. load reads it; true: what is done to it.
 */
static bool counts_ahead(struct open_search *s, const struct rt_insn *load, int64_t *ret_delta)
{
	struct rt_elfaddr at = { load->addr.v + load->length };
	uint8_t reg = load->dst_reg;
	int64_t delta = 0;
	struct rt_insn insn;

	if (!load->is_mov || !load->has_mem || !load->mem.reads || reg >= RT_TRACK_REGS || reg == load->mem.base)
		return false;
	for (unsigned n = 0; n < AHEAD_INSNS && next(s, &at, &insn) && !insn.call && !insn.ret; n++) {
		if (insn.jump)
			return delta && insn.conditional && insn.has_target &&
			       (stores_back(s, at, load, reg) || stores_back(s, insn.target, load, reg)) &&
			       (*ret_delta = delta);
		if ((insn.is_add || insn.is_sub) && insn.has_imm && !insn.has_mem && insn.dst_reg == reg && !delta)
			delta = insn.is_add ? insn.imm : -insn.imm;
		else if (insn.writes & (1u << reg | 1u << load->mem.base))
			return false;
	}
	return false;
}

static struct rt_error *remember(struct open_search *s, const struct open_maybe *maybe)
{
	struct open_type *t = &s->types.data[maybe->type];

	*(maybe->far ? &t->far : &t->maybes) += 1;
	return rt_vec_push(&s->maybes, *maybe) ? NULL : rt_error_nomem();
}

/* No function makes such objects: who allocates one sets its count in the open. Zeros are stored wherever memory is
 * new. */
static bool counts_first(const struct open_type *t, int32_t start, const struct rt_insn *insn)
{
	return !t->made && start && insn->is_mov && insn->has_imm && insn->mem.writes &&
	       insn->imm == (start == RT_START_UNKNOWN ? 1 : start);
}

static struct rt_error *consider(struct open_search *s, const struct rt_insn *insn, bool inner)
{
	struct open_maybe kin;
	bool begins = false, makes;
	enum object is;

	for (size_t i = 0; i < s->types.len; i++) {
		struct open_type *t = &s->types.data[i];
		const struct rt_plan_type *type = &s->b->plan->types.data[t->index];
		struct open_maybe m = {
			.type = (uint32_t)i, .insn = *insn, .inner = inner, .delta = rt_op_delta(RT_OP_NEW, type->start)
		};

		if (insn->mem.size != type->counter_size || insn->mem.disp != type->counter_offset)
			continue;
		if (!(insn->mem.writes ? rt_counted_delta(s->b, insn, &m.delta) : counts_ahead(s, insn, &m.delta)) &&
		    !(m.first = counts_first(t, type->start, insn)))
			continue;
		if (!m.delta || m.delta > RT_COUNTED_AT_ONCE || m.delta < -RT_COUNTED_AT_ONCE)
			continue;
		is = is_object(s, insn, t->structure, &m.given);
		/*
		 * What is surely an object may count several references at once: compilers make one of two additions.
		 * And constants are stored in flags as well.
		 */
		if (is == IS_OTHER ||
		    (is < IS_KIN && ((m.delta != 1 && m.delta != -1) || (insn->is_mov && insn->has_imm))) ||
		    (is_told(s, t->structure, insn->addr, &makes) && !(is == IS_OBJECT && is_rest(s, insn->addr))))
			continue;
		m.first |= makes && m.delta == rt_op_delta(RT_OP_NEW, type->start);
		if (is == IS_OBJECT)
			return add(s, &m, false);
		if (is == IS_KIN) {
			kin = begins ? kin : m;
			begins = true;
			continue;
		}
		m.far = is == IS_UNKNOWN && !type->counter_offset;
		RT_TRY(remember(s, &m));
	}
	/* where no other one is just that */
	return begins ? add(s, &kin, false) : NULL;
}

/* what insn says of the registers that point into others */
static void follow_inner(struct open_search *s, const struct rt_insn *insn)
{
	if (insn->is_lea && insn->mem.index == RT_REG_NONE && insn->dst_reg < RT_TRACK_REGS &&
	    insn->mem.base < RT_TRACK_REGS && insn->mem.base != insn->dst_reg && insn->mem.base != RT_REG_RSP)
		s->inner[insn->dst_reg] = (struct inner){ insn->addr, insn->mem.base, insn->mem.disp };
}

/* insn, as if it were written with the register that its own one was made from. false: it was not, for all is known */
static bool by_outer(struct open_search *s, const struct rt_symbol *symbol, const struct rt_insn *insn,
		     struct rt_insn *ret)
{
	const struct inner *i = &s->inner[insn->mem.base];
	struct rt_elfaddr end = { symbol->addr.v + symbol->size };

	*ret = *insn;
	ret->mem.base = i->base;
	ret->mem.disp += i->disp;
	for (size_t k = 0; k < s->types.len; k++) {
		if (ret->mem.disp == s->b->plan->types.data[s->types.data[k].index].counter_offset)
			return rt_reach_only_by(s->b, symbol->addr, end, i->at, insn->addr,
						1u << insn->mem.base | 1u << i->base);
	}
	return false;
}

static struct rt_error *look_through(struct open_search *s, const struct rt_symbol *symbol)
{
	struct rt_elfaddr at = symbol->addr, end = { at.v + symbol->size };
	struct rt_insn insn, outer;

	memset(s->inner, 0, sizeof(s->inner));
	for (; at.v < end.v; at.v += insn.length) {
		if (!rt_plan_decode(s->b, at, &insn))
			return NULL;
		if (insn.has_mem && !insn.push && !insn.is_lea && !insn.call && !insn.mem.segment &&
		    insn.mem.index == RT_REG_NONE && insn.mem.base < RT_TRACK_REGS && insn.mem.base != RT_REG_RSP) {
			RT_TRY(consider(s, &insn, false));
			if (s->inner[insn.mem.base].at.v && by_outer(s, symbol, &insn, &outer))
				RT_TRY(consider(s, &outer, true));
		}
		follow_inner(s, &insn);
	}
	return NULL;
}

/* where so much looks like it, the counter's place is a common one */
static struct rt_error *add_maybes(struct open_search *s)
{
	for (size_t i = 0; i < s->maybes.len; i++) {
		const struct open_maybe *m = &s->maybes.data[i];
		struct open_type *t = &s->types.data[m->type];

		if (m->far ? t->far <= FAR_MAX : t->maybes <= MAYBES_MAX)
			RT_TRY(add(s, m, true));
	}
	for (size_t i = 0; i < s->types.len; i++) {
		const struct open_type *t = &s->types.data[i];

		RT_TRY(rt_plan_limit(s->b, t->index, "code that may count", t->maybes, MAYBES_MAX));
		RT_TRY(rt_plan_limit(s->b, t->index, "code that may count, far from the type", t->far, FAR_MAX));
	}
	return NULL;
}

/* what is not seen for this is said */
static struct rt_error *refuse(struct open_search *s)
{
	for (size_t i = 0; i < s->types.len; i++) {
		const struct open_type *t = &s->types.data[i];
		char name[128];

		if (!t->left_out)
			continue;
		snprintf(name, sizeof(name), "%s.count", t->structure);
		RT_TRY(rt_plan_refuse(s->b, t->index, (uint32_t)s->b->plan->types.data[t->index].spec->functions.len,
				      name, RT_E_UNARMED, "%u places are more than the %u that are probed",
				      t->points + t->left_out, POINTS_MAX));
	}
	return NULL;
}

/* The types whose counter and structure are known here. false: out of memory */
static bool collect(struct open_search *s)
{
	for (uint32_t i = 0; i < s->b->plan->types.len; i++) {
		const struct rt_plan_type *type = &s->b->plan->types.data[i];
		struct open_type t = { .index = i };
		struct rt_member counter;

		for (size_t k = 0; k < type->spec->functions.len && !t.structure; k++)
			if (type->spec->functions.data[k].place <= RT_PLACE_ARG_PTR)
				t.structure = rt_plan_structure(s->b, &type->spec->functions.data[k]);
		for (size_t k = 0; k < type->spec->functions.len; k++)
			t.made |= type->spec->functions.data[k].op == RT_OP_NEW;
		if (!t.structure)
			t.structure = type->spec->counter_struct ? type->spec->counter_struct : type->spec->name;
		if (type->counter_offset == RT_COUNTER_UNKNOWN || type->spec->klass)
			continue;
		/* a guess by code alone may be wrong: debug information has to say the same */
		if (!type->spec->counter_member &&
		    (!rt_dwarf_counter(s->b->module->dwarf, t.structure, &counter) ||
		     counter.offset != (uint64_t)type->counter_offset || counter.size != type->counter_size))
			continue;
		if (!rt_vec_push(&s->types, t))
			return false;
	}
	return true;
}

struct rt_error *rt_plan_open_coded(struct rt_plan_build *b)
{
	struct open_search s = { .b = b, .pointees = { .b = b } };
	struct rt_error *err = collect(&s) ? NULL : rt_error_nomem();

	if (!err && s.types.len)
		err = rt_pointees_init(&s.pointees);
	if (!err && s.types.len)
		err = rt_kin_read(b->module->dwarf, &s.kin);
	for (size_t i = 0; i < b->survey.symbols.len && s.types.len && !err; i++) {
		const struct rt_symbol *symbol = b->survey.symbols.data[i].symbol;

		if (symbol->size && symbol->size <= FUNCTION_BYTES)
			err = look_through(&s, symbol);
	}
	if (!err)
		err = add_maybes(&s);
	if (!err)
		err = refuse(&s);
	rt_kin_deinit(&s.kin);
	rt_pointees_deinit(&s.pointees);
	rt_vec_deinit(&s.maybes);
	rt_vec_deinit(&s.types);
	return err;
}
