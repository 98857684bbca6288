/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One look through a function's code. The arguments that it was called with, and what calls hand out, are followed all
 * at once: each has a tag, far above what offsets into objects are, so that the tracker takes them for places in one.
 */
#include "probe/inferred.h"

#include "insn/taken.h"

enum {
	CODE_INSNS = 4000,
	MODULE_INSNS = 200000, /* in all */
	MEMBERS_MAX = 1024,
	CLEARS_MAX = 256,
	TAG_SHIFT = 40,
	TAG_RESULT = 16 /* + index of the type: what a call handed out; below it the number of an argument */
};

/*
 * The tag of what the register holds as it came: 1.. an argument of the function, TAG_RESULT.. a result; 0: neither.
 * Code may add to a pointer whatever it likes: not each number is one.
 */
static unsigned tag_of(const struct rt_inference *f, uint8_t reg)
{
	const struct rt_value *v = reg < RT_TRACK_REGS ? &f->way.now.objects.regs[reg] : NULL;
	int64_t tag;

	if (!v || v->kind != RT_VALUE_OBJECT || v->n <= 0 || (v->n & ((INT64_C(1) << TAG_SHIFT) - 1)))
		return 0;
	tag = v->n >> TAG_SHIFT;
	return tag <= RT_SPEC_ARG_MAX || (tag >= TAG_RESULT && (uint64_t)tag < TAG_RESULT + f->t->b->plan->types.len)
		       ? (unsigned)tag
		       : 0;
}

static void set_tag(struct rt_track *objects, uint8_t reg, unsigned tag)
{
	objects->regs[reg] = (struct rt_value){ .kind = RT_VALUE_OBJECT, .n = (int64_t)tag << TAG_SHIFT };
}

static struct rt_error *learn_given(struct rt_inference *f, struct rt_infer_function *fn, unsigned own, uint32_t type)
{
	if (fn->given[own - 1] || f->spread[type - 1] > RT_INFER_CURRENCY)
		return NULL;
	f->spread[type - 1]++;
	fn->given[own - 1] = type;
	fn->learnt = f->round + 1;
	f->more = true;
	return rt_infer_add_arg(f, fn->symbol.addr.v, own, type);
}

/* what was read from a member of an argument is passed on as an object */
static struct rt_error *learn_member(struct rt_inference *f, struct rt_infer_function *fn, const struct rt_value *v,
				     uint32_t type)
{
	const struct rt_infer_member member = { fn->symbol.addr.v, v->n, type };

	if (v->kind != RT_VALUE_FIELD || v->size != 8 || v->delta || v->n < INT64_C(1) << TAG_SHIFT ||
	    v->n >= (int64_t)TAG_RESULT << TAG_SHIFT)
		return NULL;
	for (size_t i = 0; i < f->members.len; i++) {
		if (f->members.data[i].function == member.function && f->members.data[i].at == member.at)
			return NULL;
	}
	fn->members = true;
	return f->members.len == MEMBERS_MAX || rt_vec_push(&f->members, member) ? NULL : rt_error_nomem();
}

static void see_call(struct rt_inference *f, const struct rt_insn *insn)
{
	const struct rt_plan_build *b = f->t->b;
	struct rt_infer_function *callee = rt_infer_at(f, insn->target);
	const struct rt_elfaddr after = { insn->addr.v + insn->length };

	if (callee && callee->returns && !callee->taken)
		callee->taken = rt_result_is_taken(b->module->image, b->decoder, after);
}

/* what stands behind the call has what it handed out */
static void see_result(struct rt_inference *f, struct rt_infer_function *fn, const struct rt_insn *insn)
{
	const struct rt_takers *t = f->t;
	const struct rt_infer_function *callee = rt_infer_at(f, insn->target);

	if (callee && callee->returns)
		set_tag(&f->way.now.objects, RT_REG_RAX, TAG_RESULT + callee->returns - 1);
	if (!rt_map_get(&t->at, rt_key_make(insn->target.v, 0)))
		return;
	fn->calls = true;
	for (uint32_t type = 0; type < t->b->plan->types.len; type++) {
		const uint64_t *out = rt_map_get(&t->at, rt_key_make(insn->target.v, type + 1));

		if (out && !*out && !f->left_out[type])
			set_tag(&f->way.now.objects, RT_REG_RAX, TAG_RESULT + type);
	}
}

/*
 * Callers pass such objects, which says nothing of what others pass: the likes of free() take anything. So nothing else
 * follows from that.
 */
static void learn_passed(struct rt_inference *f, struct rt_infer_function *fn, unsigned arg, uint32_t type)
{
	uint32_t *passed = &fn->passed[arg - 1];

	if (!*passed)
		f->spread[type - 1]++;
	*passed = !*passed || *passed == type ? type : RT_INFER_ANYTHING;
}

/* the type of what the register has here: a result, or an argument that is known by now; index + 1, 0: not known */
static uint32_t type_in(const struct rt_inference *f, const struct rt_infer_function *fn, uint8_t reg)
{
	unsigned tag = tag_of(f, reg);

	if (tag >= TAG_RESULT)
		return tag - TAG_RESULT + 1;
	return tag && tag <= RT_SPEC_ARG_MAX ? fn->given[tag - 1] : 0;
}

/* so that callers are looked at once more */
static struct rt_error *learn_out(struct rt_inference *f, struct rt_infer_function *fn, unsigned arg, uint32_t type)
{
	if (fn->out[arg - 1])
		return NULL;
	fn->out[arg - 1] = type;
	f->more = true;
	return rt_infer_add_known(f, fn->symbol.addr.v);
}

/* What is passed is no object: where does it point to? What the function was given itself is what its callers pass. */
static struct rt_error *see_pointer(struct rt_inference *f, struct rt_infer_function *fn,
				    struct rt_infer_function *callee, unsigned arg)
{
	const uint8_t reg = (uint8_t)rt_reg_argument(arg), bit = (uint8_t)(1u << (arg - 1));
	const uint8_t framed = callee->framed, elsewhere = callee->elsewhere;
	const unsigned own = tag_of(f, reg);

	if (own && own <= RT_SPEC_ARG_MAX) {
		callee->framed |= fn->framed >> (own - 1) & 1 ? bit : 0;
		callee->elsewhere |= fn->elsewhere >> (own - 1) & 1 ? bit : 0;
		if (callee->out[arg - 1])
			RT_TRY(learn_out(f, fn, own, callee->out[arg - 1]));
	} else if (f->way.now.objects.regs[reg].kind == RT_VALUE_FRAME) {
		callee->framed |= bit;
	} else {
		callee->elsewhere |= bit;
	}
	f->more |= callee->out[arg - 1] && (callee->framed != framed || callee->elsewhere != elsewhere);
	return NULL;
}

/* a function of the module that is called with an object is given one, whatever it does with it */
static struct rt_error *see_given(struct rt_inference *f, struct rt_infer_function *fn, const struct rt_insn *insn)
{
	struct rt_infer_function *callee = rt_infer_at(f, insn->target);

	for (unsigned arg = 1; callee && callee != fn && arg <= RT_SPEC_ARG_MAX; arg++) {
		uint32_t type = type_in(f, fn, (uint8_t)rt_reg_argument(arg));

		if (type)
			learn_passed(f, callee, arg, type);
		else
			RT_TRY(see_pointer(f, fn, callee, arg));
	}
	return NULL;
}

/* an object that a call handed out is stored right where an argument points to */
static struct rt_error *see_store(struct rt_inference *f, struct rt_infer_function *fn, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	unsigned to, tag;

	if (!insn->is_mov || !insn->has_mem || !mem->writes || mem->segment || mem->size != 8 || mem->disp ||
	    mem->index != RT_REG_NONE)
		return NULL;
	to = tag_of(f, mem->base);
	tag = tag_of(f, insn->src_reg);
	return to && to <= RT_SPEC_ARG_MAX && tag >= TAG_RESULT ? learn_out(f, fn, to, tag - TAG_RESULT + 1) : NULL;
}

static struct rt_error *see(struct rt_inference *f, struct rt_infer_function *fn, const struct rt_insn *insn)
{
	const struct rt_track *objects = &f->way.now.objects;
	unsigned tag;

	for (unsigned arg = 1; (insn->call || insn->jump) && insn->has_target && arg <= RT_SPEC_ARG_MAX; arg++) {
		const uint64_t *type = rt_map_get(&f->args, rt_key_make(insn->target.v, arg));

		tag = type ? tag_of(f, (uint8_t)rt_reg_argument(arg)) : 0;
		fn->calls |= type != NULL;
		if (type)
			RT_TRY(learn_member(f, fn, &objects->regs[rt_reg_argument(arg)], (uint32_t)*type));
		if (tag && tag <= RT_SPEC_ARG_MAX)
			RT_TRY(learn_given(f, fn, tag, (uint32_t)*type));
	}
	if ((insn->call || insn->jump) && insn->has_target)
		RT_TRY(see_given(f, fn, insn));
	tag = insn->ret ? tag_of(f, RT_REG_RAX) : 0;
	if (tag >= TAG_RESULT && !fn->returns) {
		fn->returns = tag - TAG_RESULT + 1;
		f->more = true;
		RT_TRY(rt_infer_add_known(f, fn->symbol.addr.v));
	}
	return NULL;
}

/* how many words of 0 insn stores: 2 out of a vector register */
static unsigned words_cleared(const struct rt_inference *f, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	const struct rt_value *source = insn->src_reg < RT_TRACK_REGS ? &f->way.now.objects.regs[insn->src_reg] : NULL;

	if (!insn->has_mem || mem->segment || mem->index != RT_REG_NONE || mem->base >= RT_TRACK_REGS)
		return 0;
	if (insn->vector_src != RT_REG_NONE)
		return f->zeroes >> insn->vector_src & 1 ? 2 : 0;
	return insn->is_mov && mem->writes && mem->size == 8 &&
	       (insn->has_imm ? !insn->imm : source && source->kind == RT_VALUE_CONST && !source->n);
}

/* NULL takes the place of the pointer in a member that is known to hold an object: that is looked at before */
static struct rt_error *add_clear(struct rt_inference *f, const struct rt_infer_function *fn,
				  const struct rt_insn *insn)
{
	const unsigned words = words_cleared(f, insn);
	const struct rt_value *base = words ? &f->way.now.objects.regs[insn->mem.base] : NULL;

	for (size_t i = 0; base && base->kind == RT_VALUE_OBJECT && i < f->members.len; i++) {
		const struct rt_infer_member *m = &f->members.data[i];
		/* as addresses: code may have added anything */
		const uint64_t behind = (uint64_t)m->at - (uint64_t)base->n - (uint64_t)insn->mem.disp;
		const struct rt_slot slot = { .type = m->type - 1,
					      .insn = insn,
					      .reg = insn->mem.base,
					      .offset = (int64_t)((uint64_t)insn->mem.disp + behind),
					      .stored = RT_REG_NONE };
		_cleanup_free_ char *name = NULL;

		if (m->function != fn->symbol.addr.v || (behind && (behind != 8 || words < 2)) ||
		    f->clears == CLEARS_MAX)
			continue;
		f->clears++;
		if (asprintf(&name, "%s+0x%llx", fn->symbol.name,
			     (unsigned long long)(insn->addr.v - fn->symbol.addr.v)) < 0)
			return rt_error_nomem();
		RT_TRY(rt_plan_slot(f->t->b, &slot, name));
	}
	return NULL;
}

/* clears: members that hold objects are known, and stores of NULL are looked for */
static struct rt_error *look_through(struct rt_inference *f, struct rt_infer_function *fn, bool clears)
{
	struct rt_way *way = &f->way;

	rt_way_begin(way, f->t->b->module->symtab, &fn->symbol, RT_REG_NONE);
	f->zeroes = 0;
	for (unsigned arg = 1; arg <= RT_SPEC_ARG_MAX; arg++)
		set_tag(&way->now.objects, (uint8_t)rt_reg_argument(arg), arg);
	for (unsigned n = 0; n < CODE_INSNS && f->insns < MODULE_INSNS && rt_way_goes_on(way); n++, f->insns++) {
		struct rt_insn insn;
		bool reached, call;

		if (!rt_plan_decode(f->t->b, way->now.at, &insn))
			return NULL;
		call = insn.call && insn.has_target;
		reached = rt_way_reaches(way);
		if (call)
			see_call(f, &insn);
		if (reached && clears) {
			RT_TRY(add_clear(f, fn, &insn));
		} else if (reached) {
			RT_TRY(see_store(f, fn, &insn));
			RT_TRY(see(f, fn, &insn));
		}
		f->zeroes = (uint16_t)((f->zeroes & ~insn.vector_writes) | insn.vector_zeroes);
		if (!rt_way_pass(way, &insn))
			return rt_error_nomem();
		if (call && reached)
			see_result(f, fn, &insn);
	}
	return NULL;
}

struct rt_error *rt_infer_look(struct rt_inference *f, struct rt_infer_function *fn)
{
	return look_through(f, fn, false);
}

struct rt_error *rt_infer_clears(struct rt_inference *f, struct rt_infer_function *fn)
{
	return fn->members ? look_through(f, fn, true) : NULL;
}
