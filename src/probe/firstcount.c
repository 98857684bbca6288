/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constructors that are inlined where nobody returns what they make: the instruction that stores the first count shows
 * the object, in the register that it stores through.
 */
#include <string.h>

#include "probe/counted.h"

enum { CODE_BYTES = 64 << 10 };

enum { VECTORS = 16, VECTOR_BYTES = 16 };

/* Numbers that registers hold, as far as straight code tells. */
struct constants {
	const struct rt_image *image;
	uint32_t known; /* bit set */
	int64_t value[RT_TRACK_REGS];
	uint16_t vectors; /* bit set */
	uint8_t vector[VECTORS][VECTOR_BYTES];
};

struct first_search {
	struct rt_plan_build *b;
	const struct rt_plan_type *type;
	struct rt_insn insn; /* the store */
	unsigned count;
};

/*
 * The instruction loads size bytes from the file's constants: compilers keep the first values of members side by side
 * there, to store several at once.
 */
static bool is_constant(const struct constants *c, const struct rt_insn *insn, size_t size, void *ret)
{
	struct rt_elfaddr at = { (uint64_t)insn->mem.disp }, start;
	struct rt_bytes bytes;

	if (!insn->has_mem || insn->mem.writes || insn->mem.base != RT_REG_RIP || insn->mem.segment ||
	    insn->mem.index != RT_REG_NONE || insn->mem.size != size)
		return false;
	if (!rt_image_section(c->image, ".rodata", &bytes, &start) || at.v < start.v || at.v - start.v > bytes.size ||
	    bytes.size - (at.v - start.v) < size)
		return false;
	memcpy(ret, bytes.data + (at.v - start.v), size);
	return true;
}

static void step(struct constants *c, const struct rt_insn *insn)
{
	bool loads = insn->is_mov && insn->has_imm && !insn->has_mem;
	uint64_t value = (uint64_t)insn->imm;

	if (insn->is_mov && (insn->width == 4 || insn->width == 8) && !loads) {
		value = 0;
		loads = is_constant(c, insn, insn->width, &value);
	}
	c->known &= ~insn->writes;
	if (loads && insn->dst_reg < RT_TRACK_REGS) {
		c->known |= 1u << insn->dst_reg;
		c->value[insn->dst_reg] = (int64_t)value;
	}
	c->vectors &= (uint16_t)~insn->vector_writes;
	if (insn->vector_loads && is_constant(c, insn, VECTOR_BYTES, c->vector[__builtin_ctz(insn->vector_loads)]))
		c->vectors |= insn->vector_loads;
	if (insn->ret || (insn->jump && !insn->conditional))
		c->known = c->vectors = 0;
}

/* The bytes that the instruction stores, by itself or from a register: atomic stores are exchanges. false: not known */
static bool stored(const struct constants *c, const struct rt_insn *insn, uint8_t ret[VECTOR_BYTES])
{
	bool swaps = insn->mem.reads && !insn->is_mov && !insn->is_add && !insn->is_sub && !insn->is_xadd &&
		     !insn->is_cmpxchg && !insn->is_test_or_cmp;

	if (insn->vector_src != RT_REG_NONE) {
		memcpy(ret, c->vector[insn->vector_src], VECTOR_BYTES);
		return c->vectors >> insn->vector_src & 1;
	}
	if (insn->is_mov && insn->has_imm) {
		memcpy(ret, &insn->imm, sizeof(insn->imm));
		return true;
	}
	for (unsigned r = 0; r < RT_TRACK_REGS; r++) {
		if (!(c->known & 1u << r) || !(insn->is_mov ? insn->src_reg == r : swaps && insn->writes == 1u << r))
			continue;
		memcpy(ret, &c->value[r], sizeof(c->value[r]));
		return true;
	}
	return false;
}

/* Does it store the count that new objects have into the counter's place, with or without what lies around it? */
static bool is_first_count(const struct rt_plan_type *type, const struct constants *c, const struct rt_insn *insn)
{
	const int64_t at = type->counter_offset - insn->mem.disp;
	const int64_t first = type->start == RT_START_UNKNOWN ? 1 : type->start;
	const int64_t bytes = insn->vector_src != RT_REG_NONE ? VECTOR_BYTES : 8;
	uint8_t number[VECTOR_BYTES];

	if (!insn->has_mem || !insn->mem.writes || insn->mem.segment || insn->mem.index != RT_REG_NONE ||
	    insn->mem.base >= RT_TRACK_REGS || insn->mem.base == RT_REG_RSP)
		return false;
	/* both are little-endian */
	return at >= 0 && at < bytes && type->counter_size <= sizeof(first) &&
	       at + (int64_t)type->counter_size <= (insn->mem.size < bytes ? insn->mem.size : bytes) &&
	       stored(c, insn, number) && !memcmp(number + at, &first, type->counter_size);
}

static void look(struct rt_elfaddr start, struct rt_elfaddr end, void *arg)
{
	struct first_search *s = arg;
	struct constants c = { .image = s->b->module->image };
	struct rt_elfaddr at = start, last;
	struct rt_insn insn;

	/* compilers load constants early */
	if (!rt_survey_range(&s->b->survey, start, &at, &last) || start.v - at.v > CODE_BYTES)
		at = start;
	for (; at.v < end.v && rt_plan_decode(s->b, at, &insn); at.v += insn.length) {
		if (at.v >= start.v && is_first_count(s->type, &c, &insn)) {
			s->insn = insn;
			s->count++;
		}
		step(&c, &insn);
	}
}

struct rt_error *rt_plan_first_count(struct rt_plan_build *b, uint32_t type_index, uint32_t function,
				     const struct rt_inlined *instance, const char *name, bool *ret_seen)
{
	const struct rt_plan_type *type = &b->plan->types.data[type_index];
	const struct rt_spec_function *f = &type->spec->functions.data[function];
	struct first_search s = { .b = b, .type = type };
	struct rt_point p = { .kind = RT_POINT_INSN,
			      .op = f->op,
			      .delta = rt_op_delta(f->op, type->start),
			      .guessed = f->guessed,
			      .function = instance->start,
			      .place = RT_PLACE_ARG,
			      .counter_offset = RT_COUNTER_UNKNOWN,
			      .flags = RT_EV_INLINE };
	struct rt_site_request request = { .image = b->module->image,
					   .decoder = b->decoder,
					   .nearest = true,
					   .first_insn = b->plan->options.first_insn,
					   .avoid_nop5 = b->plan->options.avoid_nop5,
					   .room = b->plan->options.room };
	struct rt_site site;
	const char *why;
	bool mine = false;

	*ret_seen = false;
	/* a zero is stored wherever something begins */
	if (f->op != RT_OP_NEW || type->counter_offset == RT_COUNTER_UNKNOWN || !type->start)
		return NULL;
	rt_dwarf_inlined_ranges(b->module->dwarf, instance, look, &s);
	if (s.count != 1)
		return NULL;
	request.entry = s.insn.addr;
	request.reg = s.insn.mem.base;
	(void)rt_survey_range(&b->survey, request.entry, &request.start, &request.end);
	if (!rt_counted_place(b, &request, &site, &why) || !rt_image_offset(b->module->image, site.address, &p.offset))
		return NULL;
	p.address = site.address;
	p.cost = site.cost;
	p.before = site.before;
	p.reg = site.reg;
	p.cfa_delta = rt_plan_cfa_delta(b, site.address);
	*ret_seen = true;
	RT_TRY(rt_plan_take_place(b, type_index, &p, &mine));
	return mine ? rt_plan_add(b, type_index, function, &p, name) : NULL;
}
