/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a function goes on with what it gave to a call: a put, say, that took its last reference. What is looked at
 * is only what surely runs behind the call, up to where its way parts, and what surely was in a place before it, since
 * the last place that other ways lead to. What is not understood is no proof.
 */
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "insn/noreturn.h"
#include "symbol/parts.h"

enum { INSNS_MAX = 4000, BEHIND_MAX = 64, REGS = 16, ADDRESS_BYTES = 8, SLOTS = 32 };

#define ARGUMENTS \
	(1u << RT_REG_RDI | 1u << RT_REG_RSI | 1u << RT_REG_RDX | 1u << RT_REG_RCX | 1u << RT_REG_R8 | 1u << RT_REG_R9)

/* A variable on the stack. */
struct slot {
	int64_t disp; /* from base */
	uint8_t base; /* RT_REG_RSP, RT_REG_RBP */
	uint32_t value;
};

/* What is where: equal numbers are equal values. */
struct values {
	uint32_t reg[REGS];
	struct slot slot[SLOTS];
	unsigned slots;
	uint32_t next;
};

struct code {
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_decoder *decoder;
	struct rt_elfaddr start, end;
	int64_t shown[RT_REG_RSP + 1]; /* variables from there on may be known to others: their address was taken */
};

static bool decode(const struct code *c, struct rt_elfaddr at, struct rt_insn *ret)
{
	return rt_decode(c->decoder, rt_image_at(c->image, at, 16), at, ret) && ret->length;
}

static void forget(struct values *v)
{
	for (unsigned i = 0; i < REGS; i++)
		v->reg[i] = v->next++;
	v->slots = 0;
}

/* a variable moves a whole register, or is moved into one */
static bool is_variable(const struct rt_insn *insn)
{
	return insn->is_mov && insn->has_mem && !insn->has_imm && insn->width == ADDRESS_BYTES &&
	       (insn->mem.base == RT_REG_RSP || insn->mem.base == RT_REG_RBP) && insn->mem.index == RT_REG_NONE &&
	       !insn->mem.segment;
}

static struct slot *find_slot(struct values *v, const struct rt_mem_operand *mem)
{
	for (unsigned i = 0; i < v->slots; i++)
		if (v->slot[i].base == mem->base && v->slot[i].disp == mem->disp)
			return &v->slot[i];
	return NULL;
}

static void set_slot(struct values *v, const struct rt_mem_operand *mem, uint32_t value)
{
	struct slot *slot = find_slot(v, mem);

	if (!slot && v->slots < SLOTS)
		slot = &v->slot[v->slots++];
	if (slot)
		*slot = (struct slot){ mem->disp, mem->base, value };
}

/* variables that are found by a register which has changed are found no more */
static void forget_slots(struct values *v, uint32_t changed)
{
	for (unsigned i = 0; i < v->slots;) {
		if (changed >> v->slot[i].base & 1u)
			v->slot[i] = v->slot[--v->slots];
		else
			i++;
	}
}

/* what is stored anywhere else may be a part of a variable */
static void store(struct values *v, const struct rt_insn *insn)
{
	for (unsigned i = 0; i < v->slots;) {
		const struct slot *s = &v->slot[i];

		if (s->base == insn->mem.base && s->disp < insn->mem.disp + insn->mem.size &&
		    insn->mem.disp < s->disp + ADDRESS_BYTES)
			v->slot[i] = v->slot[--v->slots];
		else
			i++;
	}
}

/* variables that a call may change */
static void forget_shown(struct values *v, const struct code *c)
{
	for (unsigned i = 0; i < v->slots;) {
		if (v->slot[i].disp >= c->shown[v->slot[i].base])
			v->slot[i] = v->slot[--v->slots];
		else
			i++;
	}
}

static void step(struct values *v, const struct code *c, const struct rt_insn *insn)
{
	const uint32_t writes = insn->call ? RT_CHAIN_CLOBBERED : insn->writes;
	bool loads = is_variable(insn) && insn->dst_reg < REGS, stores = is_variable(insn) && insn->src_reg < REGS;
	const struct slot *slot = loads ? find_slot(v, &insn->mem) : NULL;
	bool copies = insn->is_mov && !insn->has_mem && !insn->has_imm && insn->width == ADDRESS_BYTES &&
		      insn->dst_reg < REGS && insn->src_reg < REGS;
	uint32_t value = slot ? slot->value : copies ? v->reg[insn->src_reg] : v->next++;

	if (insn->has_mem && insn->mem.writes)
		store(v, insn);
	if (stores && insn->mem.writes)
		set_slot(v, &insn->mem, v->reg[insn->src_reg]);
	if (insn->call)
		forget_shown(v, c);
	else
		forget_slots(v, writes);
	for (unsigned i = 0; i < REGS; i++)
		if (writes >> i & 1u)
			v->reg[i] = (loads || copies) && i == insn->dst_reg ? value : v->next++;
	if (loads && !slot && insn->dst_reg != insn->mem.base)
		set_slot(v, &insn->mem, value);
}

static int by_address(const void *x, const void *y)
{
	const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

/* where jumps lead to, sorted, and c->shown; false: not known of all */
static bool survey(struct code *c, uint64_t *targets, size_t *ret_n)
{
	struct rt_elfaddr at = c->start;
	struct rt_insn insn;

	*ret_n = 0;
	c->shown[RT_REG_RSP] = c->shown[RT_REG_RBP] = INT64_MAX;
	for (unsigned n = 0; at.v < c->end.v; n++, at.v += insn.length) {
		if (n == INSNS_MAX || !decode(c, at, &insn))
			return false;
		if (insn.jump && insn.has_target)
			targets[(*ret_n)++] = insn.target.v;
		if (insn.is_lea && (insn.mem.base == RT_REG_RSP || insn.mem.base == RT_REG_RBP) &&
		    insn.mem.disp < c->shown[insn.mem.base])
			c->shown[insn.mem.base] = insn.mem.disp;
	}
	qsort(targets, *ret_n, sizeof(*targets), by_address);
	return true;
}

/* what is where when the call that returns to `after` is made; false: not known */
static bool before(struct code *c, struct rt_elfaddr after, struct values *v)
{
	uint64_t *targets = calloc(INSNS_MAX, sizeof(*targets));
	struct rt_elfaddr at = c->start;
	size_t n = 0, next = 0;
	bool known = targets && survey(c, targets, &n);
	struct rt_insn insn;

	forget(v);
	while (known && at.v < after.v && (known = decode(c, at, &insn))) {
		while (next < n && targets[next] < at.v)
			next++;
		if (next < n && targets[next] == at.v)
			forget(v);
		if (at.v + insn.length == after.v) {
			free(targets);
			return insn.call;
		}
		step(v, c, &insn);
		/* whoever comes behind came another way */
		if (insn.ret || (insn.jump && !insn.conditional))
			forget(v);
		at.v += insn.length;
	}
	free(targets);
	return false;
}

/*
 * The function does something with what it is given, by its name: one that ends it may end here what the first one left
 * of it, the memory; and what is not its first argument may be no more than an address to it, which it prints, or takes
 * off a list.
 */
static bool is_use(const struct code *c, struct rt_elfaddr target, bool first)
{
	static const char *const prints[] = { "printf", "print", "log", "debug",  "dbg",
					      "trace",  "warn",  "msg", "message" };
	const struct rt_symbol *s = c->symtab ? rt_symtab_at(c->symtab, target) : NULL;

	if (!s || s->addr.v != target.v || rt_words_destroy(s->name) || rt_words_free(s->name))
		return false;
	return first || (!rt_words_end(s->name) && !strcasestr(s->name, "printf") &&
			 !rt_words_have(s->name, prints, sizeof(prints) / sizeof(prints[0])));
}

static bool is_given(const struct values *v, uint32_t value)
{
	for (unsigned i = 0; i < REGS; i++)
		if ((ARGUMENTS >> i & 1u) && v->reg[i] == value)
			return true;
	return false;
}

static bool uses(const struct code *c, const struct values *v, const struct rt_insn *insn, uint32_t value)
{
	const uint8_t base = insn->mem.base;

	if (insn->has_mem && (insn->mem.reads || insn->mem.writes) && base < REGS && v->reg[base] == value)
		return true;
	/* a jump out of the function is a call */
	return (insn->call || (insn->jump && (insn->target.v < c->start.v || insn->target.v >= c->end.v))) &&
	       insn->has_target && is_given(v, value) && is_use(c, insn->target, v->reg[RT_REG_RDI] == value);
}

bool rt_chain_goes_on(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr after)
{
	struct code c = { .image = image, .symtab = symtab, .decoder = decoder, .start = start, .end = end };
	struct rt_elfaddr at = after;
	struct rt_insn insn;
	struct values v = { .slots = 0 };
	uint32_t value;

	if (!before(&c, after, &v))
		return false;
	value = v.reg[RT_REG_RDI];
	/* the call was given what is in a variable, not where that is; later ones may be given that */
	for (unsigned i = 0; i < REGS; i++)
		if (RT_CHAIN_CLOBBERED >> i & 1u)
			v.reg[i] = v.next++;
	for (unsigned n = 0; n < BEHIND_MAX && at.v >= start.v && at.v < end.v && decode(&c, at, &insn); n++) {
		if (uses(&c, &v, &insn, value))
			return true;
		if (insn.ret || (insn.jump && (insn.conditional || !insn.has_target)) ||
		    (insn.call && rt_noreturn(image, symtab, decoder, &insn)))
			break;
		step(&v, &c, &insn);
		at.v = insn.jump ? insn.target.v : at.v + insn.length;
	}
	return false;
}
