/* SPDX-License-Identifier: GPL-2.0-only */
/* Paths are followed with a work list; a place is entered once with each state that matters. */
#include "probe/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "insn/noreturn.h"
#include "probe/making.h"

enum {
	FLOW_INSNS = 8000, /* all paths together */
	FLOW_PATHS = 256,  /* waiting branches */
};

struct path {
	struct rt_elfaddr at;
	struct rt_track track;
	bool made;              /* an object is at hand */
	bool given;             /* and was passed to another function */
	bool exposed;           /* the address of the frame was passed on: any call may change it */
	struct rt_value tested; /* the flags say whether this is 0; UNKNOWN: they do not */
};

struct flow {
	const struct rt_flow_request *request;
	RT_VEC(struct path) waiting;
	struct rt_map entered; /* (address, state) */
	unsigned insns;
	bool counted;  /* the calls make objects */
	bool returned; /* at least one path returns one */
};

const char *rt_flow_callee(const struct rt_symtab *symtab, const struct rt_insn *insn)
{
	const struct rt_symbol *to = symtab && insn->has_target ? rt_symtab_at(symtab, insn->target) : NULL;

	return to && to->addr.v == insn->target.v ? to->name : NULL;
}

static bool in_function(const struct rt_flow_request *r, struct rt_elfaddr at)
{
	return (at.v >= r->start.v && at.v < r->end.v) || (at.v >= r->cold_start.v && at.v < r->cold_end.v);
}

/* What the call at an address returned, other than an object. Addresses of calls are no offsets of fields. */
static struct rt_value result_of_call(struct rt_elfaddr at)
{
	return (struct rt_value){ .kind = RT_VALUE_FIELD, .size = 8, .n = (int64_t)(at.v | UINT64_C(1) << 62) };
}

static bool is_result(const struct rt_value *v)
{
	return v->kind == RT_VALUE_FIELD && v->n >> 62 && !v->delta;
}

static bool is_object(const struct rt_value *v)
{
	return v->kind == RT_VALUE_OBJECT && !v->n;
}

/* Leaves of a value what matters, so that loops come back to a state that was there. */
static void simplify(struct rt_value *v)
{
	if ((v->kind == RT_VALUE_FIELD && !is_result(v)) || (v->kind == RT_VALUE_CONST && v->n))
		*v = (struct rt_value){ .kind = RT_VALUE_UNKNOWN };
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t state_of(struct path *p)
{
	uint64_t hash =
		(uint64_t)p->made | (uint64_t)p->given << 1 | (uint64_t)p->exposed << 2 | (uint64_t)p->tested.kind << 3;
	unsigned kept = 0;

	hash = mix(hash, (uint64_t)p->tested.n);
	for (unsigned i = 0; i < RT_TRACK_REGS; i++) {
		simplify(&p->track.regs[i]);
		hash = mix(mix(hash, p->track.regs[i].kind), (uint64_t)p->track.regs[i].n);
	}
	for (unsigned i = 0; i < p->track.slot_count; i++) {
		simplify(&p->track.slots[i].value);
		if (p->track.slots[i].value.kind != RT_VALUE_UNKNOWN)
			p->track.slots[kept++] = p->track.slots[i];
	}
	p->track.slot_count = kept;
	for (unsigned i = 0; i < kept; i++)
		hash = mix(mix(mix(hash, (uint64_t)p->track.slots[i].at), p->track.slots[i].value.kind),
			   (uint64_t)p->track.slots[i].value.n);
	return hash;
}

/* Goes on at path->at later, unless somebody was there in this state. false: too much, or outside. */
static bool branch(struct flow *f, struct path *path)
{
	bool made = false;

	if (!in_function(f->request, path->at) ||
	    !rt_map_put(&f->entered, rt_key_make(path->at.v, state_of(path)), &made))
		return false;
	if (!made)
		return true;
	return f->waiting.len < FLOW_PATHS && rt_vec_push(&f->waiting, *path);
}

static void replace(struct rt_value *v, const struct rt_value *old, struct rt_value new)
{
	if (v->kind == old->kind && v->n == old->n && v->delta == old->delta)
		*v = new;
}

static void replace_all(struct path *p, struct rt_value old, struct rt_value new)
{
	for (unsigned i = 0; i < RT_TRACK_REGS; i++)
		replace(&p->track.regs[i], &old, new);
	for (unsigned i = 0; i < p->track.slot_count; i++)
		replace(&p->track.slots[i].value, &old, new);
}

static void forget_object(struct path *p)
{
	const struct rt_value unknown = { .kind = RT_VALUE_UNKNOWN };

	for (unsigned i = 0; i < RT_TRACK_REGS; i++)
		if (p->track.regs[i].kind == RT_VALUE_OBJECT)
			p->track.regs[i] = unknown;
	for (unsigned i = 0; i < p->track.slot_count; i++)
		if (p->track.slots[i].value.kind == RT_VALUE_OBJECT)
			p->track.slots[i].value = unknown;
	p->made = p->given = false;
}

/* The tested value turned out to be 0. If it was the object, there is none. */
static void is_null(struct path *p)
{
	replace_all(p, p->tested, (struct rt_value){ .kind = RT_VALUE_CONST });
	if (is_object(&p->tested))
		forget_object(p);
}

/* je: 1, jne: 0, other jumps: -1 */
static int equal_jump(const struct rt_image *image, struct rt_elfaddr at)
{
	struct rt_bytes code = rt_image_at(image, at, 2);

	if (code.size < 2)
		return -1;
	if (code.data[0] == 0x74 || (code.data[0] == 0x0f && code.data[1] == 0x84))
		return 1;
	return code.data[0] == 0x75 || (code.data[0] == 0x0f && code.data[1] == 0x85) ? 0 : -1;
}

static bool step_jump(struct flow *f, struct path *p, const struct rt_insn *insn)
{
	int equal = insn->conditional && p->tested.kind ? equal_jump(f->request->image, insn->addr) : -1;
	struct path taken = *p;

	if (!insn->has_target)
		return false;
	if (!insn->conditional && rt_noreturn(f->request->image, f->request->symtab, f->request->decoder, insn))
		return true;
	taken.at = insn->target;
	if (equal == 1)
		is_null(&taken);
	if (!branch(f, &taken))
		return false;
	if (!insn->conditional)
		return true;
	p->at.v = insn->addr.v + insn->length;
	if (equal == 0)
		is_null(p);
	return branch(f, p);
}

static bool makes_object(const struct rt_flow_request *r, struct rt_elfaddr at)
{
	for (size_t i = 0; i < r->call_count; i++)
		if (r->calls[i].v == at.v)
			return true;
	return false;
}

/* Before a call: what it gets to see. */
static void pass_arguments(struct path *p)
{
	for (unsigned n = 1; n <= 6; n++) {
		const struct rt_value *v = &p->track.regs[rt_reg_argument(n)];

		p->given |= is_object(v);
		p->exposed |= v->kind == RT_VALUE_FRAME;
	}
	for (unsigned i = 0; i < p->track.slot_count && p->exposed; i++)
		p->track.slots[i].value = (struct rt_value){ .kind = RT_VALUE_UNKNOWN };
}

/* The field is overwritten rather than changed: its first value. */
static bool stores_first_count(const struct rt_flow_request *r, const struct rt_track *t)
{
	for (unsigned i = 0; i < t->change_count && r->counter_size; i++)
		if (!t->changes[i].known && t->changes[i].offset <= r->counter &&
		    t->changes[i].offset + t->changes[i].size >= r->counter + r->counter_size)
			return true;
	return false;
}

static bool at_return(struct flow *f, const struct path *p)
{
	const struct rt_value *v = &p->track.regs[RT_REG_RAX];

	if (p->made && is_object(v)) {
		f->returned = true;
		return true;
	}
	return v->kind == RT_VALUE_CONST && !v->n && (!p->made || p->given);
}

/* "cmpq $0,-8(%rbp)", as unoptimised code asks */
static struct rt_value compared_slot(const struct rt_track *t, const struct rt_insn *insn)
{
	const struct rt_mem_operand *m = &insn->mem;
	const struct rt_value *base = m->base < RT_TRACK_REGS ? &t->regs[m->base] : NULL;

	for (unsigned i = 0; i < t->slot_count && base && base->kind == RT_VALUE_FRAME; i++)
		if (m->size == 8 && !m->segment && m->index == RT_REG_NONE && insn->has_imm && !insn->imm &&
		    (uint64_t)t->slots[i].at == (uint64_t)base->n + (uint64_t)m->disp)
			return t->slots[i].value;
	return (struct rt_value){ .kind = RT_VALUE_UNKNOWN };
}

/* "test %rax,%rax": what it tells the flags of; UNKNOWN for everything else. */
static struct rt_value tested_by(const struct rt_track *t, const struct rt_insn *insn)
{
	struct rt_value v = { .kind = RT_VALUE_UNKNOWN };

	if (!insn->is_test_or_cmp)
		return v;
	if (insn->has_mem)
		v = compared_slot(t, insn);
	else if (insn->width == 8 && !insn->has_imm && insn->dst_reg == insn->src_reg && insn->dst_reg < RT_TRACK_REGS)
		v = t->regs[insn->dst_reg];
	return is_object(&v) || is_result(&v) ? v : (struct rt_value){ .kind = RT_VALUE_UNKNOWN };
}

static bool keeps_flags(const struct rt_insn *insn)
{
	return insn->is_mov || insn->is_lea || insn->push || insn->pop || insn->nop;
}

/* Behind a call: what it returned. false: a second object on one path. */
static bool step_result(struct flow *f, struct path *p, const struct rt_insn *insn)
{
	struct rt_value result = result_of_call(insn->addr);
	const char *name;

	if (makes_object(f->request, insn->addr)) {
		if (p->made)
			return false;
		name = rt_flow_callee(f->request->symtab, insn);
		f->counted |= name && rt_making_allocates(name);
		p->made = true;
		result = (struct rt_value){ .kind = RT_VALUE_OBJECT };
	} else {
		/* in a loop: what it returned the last time is another value */
		replace_all(p, result, (struct rt_value){ .kind = RT_VALUE_UNKNOWN });
	}
	p->track.regs[RT_REG_RAX] = result;
	return true;
}

/* false: the proof fails here. */
static bool run_path(struct flow *f, struct path *p)
{
	const struct rt_flow_request *r = f->request;

	for (;;) {
		struct rt_insn insn;

		if (++f->insns > FLOW_INSNS || !in_function(r, p->at) ||
		    !rt_decode(r->decoder, rt_image_at(r->image, p->at, 16), p->at, &insn))
			return false;
		if (insn.ret)
			return at_return(f, p);
		if (insn.jump)
			return step_jump(f, p, &insn);
		if (insn.call) {
			if (rt_noreturn(r->image, r->symtab, r->decoder, &insn))
				return true;
			pass_arguments(p);
		}
		if (insn.has_mem && insn.mem.writes && insn.src_reg < RT_TRACK_REGS)
			p->exposed |= p->track.regs[insn.src_reg].kind == RT_VALUE_FRAME;
		if (!keeps_flags(&insn))
			p->tested = tested_by(&p->track, &insn);
		rt_track_step(&p->track, &insn);
		f->counted |= stores_first_count(r, &p->track);
		p->track.change_count = 0;
		if (insn.call && !step_result(f, p, &insn))
			return false;
		p->at.v += insn.length;
	}
}

bool rt_flow_returns(const struct rt_flow_request *request)
{
	struct flow f = { .request = request };
	struct path path = { .at = request->start };
	bool proven;

	rt_track_init(&path.track, RT_REG_NONE);
	proven = branch(&f, &path);
	while (proven && f.waiting.len) {
		path = f.waiting.data[--f.waiting.len];
		proven = run_path(&f, &path);
	}
	rt_vec_deinit(&f.waiting);
	rt_map_deinit(&f.entered);
	return proven && f.counted && f.returned;
}
