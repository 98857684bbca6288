/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slots of counted objects that debug information knows: the block that holds the pointer is passed to a free(), NULL
 * is stored there, all of it is set to 0, or, by a function that counts references, another pointer is stored. What the
 * slot held is looked at just before, and what is stored. Nothing is counted there.
 *
 * Which structs hold such pointers, debug information says; and of what struct a block is, by the variable that points
 * to it right there. A member that may point to anything (the void * of a list) counts where few blocks with one are
 * freed: the analysis knows what lives at the address. Who frees those mostly does not know what is in them, so the
 * place goes by the name of that helper, and is its caller's.
 */
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "dwarf/listing.h"
#include "probe/block.h"
#include "probe/ender.h"
#include "probe/flow.h"
#include "probe/frees.h"
#include "probe/handing.h"
#include "probe/spec_type.h"
#include "probe/way.h"

enum {
	DROPS_MAX = 1024,    /* of one type, in one module */
	ANY_MAX = 32,        /* of these, places where anything may be held */
	MEMBERS_MAX = 16,    /* of one struct */
	THROUGH_MAX = 32768, /* calls by pointers that are looked at, in one module: most are of no free() */
	ENTRIES = 8,         /* of a table */
	CODE_INSNS = 4000,
	CODE_BYTES = 64 << 10,
	SCOPES_MAX = 16,
	STOS = 0xab, /* opcodes */
	MOVS = 0xa5
};

struct drop {
	struct rt_insn insn;
	const struct rt_symbol *symbol; /* of the function */
	uint8_t reg;                    /* that the member lies behind */
	uint8_t stored;                 /* register; RT_REG_NONE: no object is stored there */
	int64_t offset;
	uint32_t type; /* index */
	bool fresh;    /* in memory that was just allocated */
	bool freed;
	const char *structure; /* that the block is; NULL: a table of pointers */
	const char *cleared;   /* the struct, all of which is set to 0; NULL: that is not so */
	const char *anything;  /* the struct of which a member may hold anything; NULL: it is known what it holds */
};

/*
 * How compilers set a struct to 0 in place: its first 8 bytes by an instruction of their own, the others, as they are
 * aligned, by "rep stos", which no probe can stand on. How many these are is its whole size, less what comes before.
 */
struct wipe {
	struct rt_insn first; /* the store of the first bytes */
	uint8_t reg;          /* that the struct lies behind there; RT_REG_NONE: there was none */
	int64_t size;         /* that was added to the count since */
	unsigned left;        /* instructions that may come before the rep stos */
};

struct drops {
	const struct rt_takers *takers;
	struct rt_plan_build *b;
	struct rt_blocks blocks;
	struct rt_map frees;            /* address of what frees blocks -> the register that tells which */
	struct rt_map frees_pointed_to; /* the same by where a pointer to it lies, as of rt_blocks_through() */
	struct rt_map clears;           /* address of memset() */
	struct rt_map copies;           /* address of memcpy() */
	RT_VEC(struct drop) all;
	struct rt_way way;
	uint16_t zeroes; /* vector registers that are 0 */
	struct wipe wipe;
	bool copied;      /* the function has copied a block before: what it clears then went there, maybe */
	unsigned through; /* of THROUGH_MAX */
	bool counts;      /* the function that is looked at counts references, or calls what does */
};

static bool add(struct drops *d, const struct drop *like, const struct rt_block_member *m)
{
	struct drop one = *like;

	if (m->table)
		return true;
	one.offset += (int64_t)m->offset;
	one.type = m->type ? m->type - 1 : 0;
	one.structure = m->structure;
	one.anything = m->type ? NULL : m->structure;
	return rt_vec_push(&d->all, one);
}

/* like->reg has the address of a table: the entry that lies so many bytes behind it */
static bool add_entry(struct drops *d, const struct drop *like, uint64_t offset)
{
	return add(d, like,
		   &(struct rt_block_member){ NULL, offset, (uint32_t)d->blocks.origins[like->reg].disp, false });
}

/* The block is a table: its first entries are given up; more are not known to be there. */
static bool add_entries(struct drops *d, const struct drop *like)
{
	for (uint64_t i = 0; i < ENTRIES; i++)
		if (!add_entry(d, like, 8 * i))
			return false;
	return true;
}

/* what goes by the function that insn calls, or jumps to for good; NULL: none of these */
static const uint64_t *goes_to(const struct rt_map *functions, const struct rt_insn *insn)
{
	return insn->has_target && (insn->call || (insn->jump && !insn->conditional))
		       ? rt_map_get(functions, rt_key_make(insn->target.v, 0))
		       : NULL;
}

/* the register with the block that insn gives a free() which it calls, or jumps to for good; NULL: it does neither */
static const uint64_t *frees_by(struct drops *d, const struct rt_insn *insn)
{
	if (!insn->indirect || !d->frees_pointed_to.len)
		return goes_to(&d->frees, insn);
	if (++d->through > THROUGH_MAX)
		return NULL;
	return rt_map_get(&d->frees_pointed_to, rt_blocks_through(&d->blocks, insn));
}

/* insn passes a block to a free(): each of its members is given up */
static bool free_at(struct drops *d, const struct rt_symbol *symbol, const struct rt_insn *insn)
{
	const uint64_t *reg = frees_by(d, insn);
	struct drop drop = { .insn = *insn, .symbol = symbol, .stored = RT_REG_NONE, .freed = true };
	size_t first;

	if (!reg || d->way.now.fresh.regs[*reg].kind == RT_VALUE_OBJECT || !rt_blocks_look(&d->blocks))
		return true;
	drop.reg = (uint8_t)*reg;
	first = rt_blocks_at(&d->blocks, insn, drop.reg);
	for (size_t i = first; rt_blocks_is_of(&d->blocks, first, i) && i < first + MEMBERS_MAX; i++)
		if (!add(d, &drop, &d->blocks.members.data[i - 1]))
			return false;
	return first || d->blocks.origins[drop.reg].from != RT_BLOCK_TABLE || add_entries(d, &drop);
}

/* the bytes [from, to) of a struct are set to 0, by drop->insn or behind it: each of its members there is given up */
static bool clear(struct drops *d, struct drop *drop, int64_t from, int64_t to)
{
	size_t first;

	if (d->copied || d->way.now.fresh.regs[drop->reg].kind == RT_VALUE_OBJECT || !rt_blocks_look(&d->blocks))
		return true;
	first = rt_blocks_at(&d->blocks, &drop->insn, drop->reg);
	for (size_t i = first; rt_blocks_is_of(&d->blocks, first, i) && i < first + MEMBERS_MAX; i++) {
		const struct rt_block_member *m = &d->blocks.members.data[i - 1];

		if (!m->type || (int64_t)m->offset < from || (int64_t)m->offset + 8 > to)
			continue;
		drop->cleared = m->structure;
		if (!add(d, drop, m))
			return false;
	}
	return true;
}

static bool is_zero(const struct rt_value *v)
{
	return v->kind == RT_VALUE_CONST && !v->n;
}

/* insn calls memset() */
static bool memset_at(struct drops *d, const struct rt_symbol *symbol, const struct rt_insn *insn)
{
	const struct rt_value *regs = d->way.now.fresh.regs, *size = &regs[RT_REG_RDX];
	struct drop drop = { .insn = *insn, .symbol = symbol, .stored = RT_REG_NONE, .reg = RT_REG_RDI };

	if (!goes_to(&d->clears, insn) || regs[RT_REG_RDI].kind == RT_VALUE_FRAME || !is_zero(&regs[RT_REG_RSI]) ||
	    size->kind != RT_VALUE_CONST)
		return true;
	return clear(d, &drop, 0, size->n);
}

/* insn stores 8 bytes of 0 right where a register points to: a wipe may begin so */
static bool is_begin(const struct drops *d, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;

	return insn->is_mov && insn->has_mem && mem->writes && mem->size == 8 && !mem->segment && !mem->disp &&
	       mem->index == RT_REG_NONE && mem->base < RT_TRACK_REGS && mem->base != RT_REG_RSP &&
	       d->way.now.fresh.regs[mem->base].kind != RT_VALUE_FRAME &&
	       (insn->has_imm ? !insn->imm
			      : insn->src_reg < RT_TRACK_REGS && is_zero(&d->way.now.fresh.regs[insn->src_reg]));
}

/* code[at] may begin a "rep" instruction on words of 8 bytes: stos or movs */
static bool is_rep(struct rt_bytes code, size_t at, uint8_t opcode)
{
	const uint8_t bytes[] = { 0xf3, 0x48, opcode };

	return at + sizeof(bytes) <= code.size && !memcmp(code.data + at, bytes, sizeof(bytes));
}

static bool is_rep_insn(const struct drops *d, const struct rt_insn *insn, uint8_t opcode)
{
	return insn->length == 3 && is_rep(rt_image_at(d->b->module->image, insn->addr, insn->length), 0, opcode);
}

/* "*to = *from" */
static bool copies_at(const struct drops *d, const struct rt_insn *insn)
{
	return is_rep_insn(d, insn, MOVS) ||
	       (insn->call && insn->has_target && rt_map_get(&d->copies, rt_key_make(insn->target.v, 0)));
}

/* insn is a part of a wipe; when it is known to be one, the members are given up */
static bool wipe_at(struct drops *d, const struct rt_symbol *symbol, const struct rt_insn *insn)
{
	enum { NEAR = 16 };
	struct wipe *w = &d->wipe;

	if (is_begin(d, insn))
		*w = (struct wipe){ .first = *insn, .reg = insn->mem.base, .left = NEAR };
	else if (!w->left || insn->call || insn->jump || insn->ret)
		w->reg = RT_REG_NONE;
	if (w->reg == RT_REG_NONE)
		return true;
	w->left--;
	if (insn->has_imm && !insn->is_mov && !insn->has_mem && insn->dst_reg == RT_REG_RCX && insn->imm > w->size)
		w->size = insn->imm;
	if (is_rep_insn(d, insn, STOS) && is_zero(&d->way.now.fresh.regs[RT_REG_RAX])) {
		struct drop drop = { .insn = w->first, .symbol = symbol, .stored = RT_REG_NONE, .reg = w->reg };

		w->reg = RT_REG_NONE;
		return clear(d, &drop, 8, w->size); /* the first one is a store like any other */
	}
	return true;
}

/* NULL, or a mark that stands for no object: (T *)1, (T *)-1 */
static bool is_nothing(int64_t n)
{
	enum { PAGE = 4096 };

	return n > -PAGE && n < PAGE;
}

/* what insn stores: nothing (RT_REG_NONE), a register, or what is no pointer to an object (RT_TRACK_REGS) */
static uint8_t what_it_stores(const struct drops *d, const struct rt_insn *insn)
{
	const struct rt_value *v = insn->src_reg < RT_TRACK_REGS ? &d->way.now.fresh.regs[insn->src_reg] : NULL;

	if (insn->has_imm)
		return is_nothing(insn->imm) ? RT_REG_NONE : RT_TRACK_REGS;
	if (!v || v->kind == RT_VALUE_FRAME)
		return RT_TRACK_REGS;
	if (v->kind == RT_VALUE_CONST)
		return is_nothing(v->n) ? RT_REG_NONE : RT_TRACK_REGS;
	/* x->was = x->next: who counts nothing moves pointers about; or keeps what somebody got for him */
	return d->counts || rt_blocks_may_hold(&d->blocks, insn->src_reg) ||
			       rt_blocks_is_result(&d->blocks, insn->src_reg)
		       ? insn->src_reg
		       : RT_TRACK_REGS;
}

/* the operand may be a member, or an entry of an array of them, of what a register points to, and not of the frame */
static bool may_be_member(const struct drops *d, const struct rt_mem_operand *mem)
{
	return !mem->segment && (mem->index == RT_REG_NONE || mem->index < RT_TRACK_REGS) &&
	       mem->base < RT_TRACK_REGS && mem->base != RT_REG_RSP && mem->disp >= 0 &&
	       d->way.now.fresh.regs[mem->base].kind != RT_VALUE_FRAME;
}

/* insn stores NULL, or in a function that counts anything, into a member that points to an object */
static bool store_at(struct drops *d, const struct rt_symbol *symbol, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	struct drop drop = { .insn = *insn, .symbol = symbol, .reg = mem->base };
	int64_t disp;
	size_t first;
	bool table;

	if (!insn->is_mov || !insn->has_mem || !mem->writes || mem->size != 8 || !may_be_member(d, mem))
		return true;
	disp = rt_blocks_disp(&d->blocks, mem);
	drop.offset = mem->disp - disp; /* what was added before to the index is not to be added again */
	table = d->blocks.origins[mem->base].from == RT_BLOCK_TABLE && !(mem->disp % 8);
	if (!table && !rt_map_get(&d->blocks.offsets, rt_key_make((uint64_t)disp, 0)))
		return true;
	drop.stored = what_it_stores(d, insn);
	drop.fresh = d->way.now.fresh.regs[mem->base].kind == RT_VALUE_OBJECT;
	if (drop.stored == RT_TRACK_REGS || (drop.fresh && drop.stored == RT_REG_NONE) || !rt_blocks_look(&d->blocks))
		return true;
	if (table)
		return add_entry(d, &drop, (uint64_t)disp);
	first = rt_blocks_at(&d->blocks, insn, mem->base);
	/* of a union, several may lie there */
	for (size_t i = first; rt_blocks_is_of(&d->blocks, first, i); i++)
		if (d->blocks.members.data[i - 1].type && !d->blocks.members.data[i - 1].table &&
		    d->blocks.members.data[i - 1].offset == (uint64_t)disp &&
		    !add(d, &drop, &d->blocks.members.data[i - 1]))
			return false;
	return true;
}

/* insn stores two NULLs at once, one into such a member at least */
static bool pair_at(struct drops *d, const struct rt_symbol *symbol, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	struct drop drop = { .insn = *insn, .symbol = symbol, .reg = mem->base, .stored = RT_REG_NONE };
	size_t first;

	if (insn->vector_src == RT_REG_NONE || !(d->zeroes >> insn->vector_src & 1) || mem->index != RT_REG_NONE ||
	    !may_be_member(d, mem) || d->way.now.fresh.regs[mem->base].kind == RT_VALUE_OBJECT)
		return true;
	if ((!rt_map_get(&d->blocks.offsets, rt_key_make((uint64_t)mem->disp, 0)) &&
	     !rt_map_get(&d->blocks.offsets, rt_key_make((uint64_t)mem->disp + 8, 0))) ||
	    !rt_blocks_look(&d->blocks))
		return true;
	first = rt_blocks_at(&d->blocks, insn, mem->base);
	for (size_t i = first; rt_blocks_is_of(&d->blocks, first, i); i++) {
		const struct rt_block_member *m = &d->blocks.members.data[i - 1];

		if (m->type && m->offset - (uint64_t)mem->disp <= 8 && !add(d, &drop, m))
			return false;
	}
	return true;
}

static struct rt_error *look_through(struct drops *d, const struct rt_symbol *symbol)
{
	struct rt_elfaddr end = { symbol->addr.v + symbol->size };
	struct rt_insn insn;

	rt_way_begin(&d->way, d->b->module->symtab, symbol, RT_REG_NONE);
	rt_blocks_enter(&d->blocks);
	d->zeroes = 0;
	d->wipe.reg = RT_REG_NONE;
	d->copied = false;
	for (unsigned n = 0; n < CODE_INSNS && d->way.now.at.v < end.v; n++) {
		if (!rt_plan_decode(d->b, d->way.now.at, &insn))
			return NULL;
		(void)rt_way_reaches(&d->way);
		if (!free_at(d, symbol, &insn) || !memset_at(d, symbol, &insn) || !wipe_at(d, symbol, &insn) ||
		    !store_at(d, symbol, &insn) || !pair_at(d, symbol, &insn))
			return rt_error_nomem();
		d->copied |= copies_at(d, &insn);
		rt_blocks_follow(&d->blocks, &insn);
		d->zeroes = (uint16_t)((d->zeroes & ~insn.vector_writes) | insn.vector_zeroes);
		if (d->blocks.nomem || !rt_way_pass(&d->way, &insn))
			return rt_error_nomem();
	}
	return NULL;
}

/*
 * The operand in memory of an instruction at code[i], whose opcode has one byte behind a prefix: its displacement.
 * Returns the index behind it; 0: it is none, or the field of the other register is not 0.
 */
static size_t operand_at(struct rt_bytes code, size_t i, int32_t *ret_disp)
{
	unsigned modrm = i + 3 <= code.size ? code.data[i + 2] : 0xff, mod = modrm >> 6;
	size_t at = i + 3 + ((modrm & 7) == 4), bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;

	*ret_disp = 0;
	if (modrm >> 3 & 7 || mod == 3 || at + bytes > code.size)
		return 0;
	if (bytes == 1)
		*ret_disp = (int8_t)code.data[at];
	else
		memcpy(ret_disp, code.data + at, bytes);
	return at + bytes;
}

static bool is_member(const struct drops *d, int32_t disp)
{
	return disp >= 0 && rt_map_get(&d->blocks.offsets, rt_key_make((uint64_t)disp, 0));
}

/* movq $0, disp(reg), or another small number, with a displacement at which a member lies: code[i] may begin one */
static bool may_clear(const struct drops *d, struct rt_bytes code, size_t i)
{
	enum { REX_W = 0x48, REX_MASK = 0xf8, MOV_IMM = 0xc7, SIB = 4 };
	int32_t disp, imm;
	bool indexed;
	size_t at;

	if ((code.data[i] & REX_MASK) != REX_W || code.data[i + 1] != MOV_IMM)
		return false;
	at = operand_at(code, i, &disp);
	if (!at || at + sizeof(imm) > code.size)
		return false;
	memcpy(&imm, code.data + at, sizeof(imm));
	indexed = (code.data[i + 2] & 7) == SIB && (code.data[i + 3] >> 3 & 7) != 4;
	/* by an index, it may be any */
	return is_nothing(imm) && disp >= 0 && (indexed || is_member(d, disp));
}

/* mov %rax, disp(reg), with a displacement at which a member lies: code[i] may begin one */
static bool may_store_result(const struct drops *d, struct rt_bytes code, size_t i)
{
	enum { REX_W = 0x48, REX_MASK = 0xfe, MOV = 0x89 };
	int32_t disp;

	return (code.data[i] & REX_MASK) == REX_W && code.data[i + 1] == MOV && operand_at(code, i, &disp) &&
	       is_member(d, disp);
}

/* call or jmp by a pointer in memory or a register: code[i] may begin one */
static bool may_go_through(const struct drops *d, struct rt_bytes code, size_t i)
{
	enum { GROUP = 0xff, CALL = 2, JUMP = 4 };
	unsigned reg = code.data[i + 1] >> 3 & 7;

	return d->frees_pointed_to.len && code.data[i] == GROUP && (reg == CALL || reg == JUMP);
}

/* Cheap look at the bytes: is there a call or jump to a free() or memset(), or a NULL stored where a member may lie? */
static bool is_worth_it(struct drops *d, const struct rt_symbol *symbol)
{
	struct rt_bytes code = rt_image_at(d->b->module->image, symbol->addr, symbol->size);
	enum { CALL = 0xe8, JUMP = 0xe9, SHORT_JUMP = 0xeb };
	const struct rt_takers *t = d->takers;
	bool worth = false;

	d->counts = false;
	for (size_t i = 0; i < t->inlined.len && !d->counts; i++)
		d->counts = t->inlined.data[i] >= symbol->addr.v && t->inlined.data[i] - symbol->addr.v < symbol->size;
	for (size_t i = 0; i + 2 <= code.size && !d->counts; i++) {
		bool is_short = code.data[i] == SHORT_JUMP;
		int32_t to;
		uint64_t next = symbol->addr.v + i + 1 + (is_short ? 1 : sizeof(to));

		worth = worth || may_clear(d, code, i) || may_store_result(d, code, i) || is_rep(code, i, STOS) ||
			may_go_through(d, code, i);
		if (!is_short && ((code.data[i] != CALL && code.data[i] != JUMP) || i + 1 + sizeof(to) > code.size))
			continue;
		if (is_short)
			to = (int8_t)code.data[i + 1];
		else
			memcpy(&to, code.data + i + 1, sizeof(to));
		next += (uint64_t)(int64_t)to;
		worth = worth || rt_map_get(&d->frees, rt_key_make(next, 0)) ||
			rt_map_get(&d->clears, rt_key_make(next, 0));
		d->counts = rt_map_get(&t->counts, rt_key_make(next, 0));
	}
	return worth || d->counts;
}

/* p is a pointer to the struct, or to a pointer to it; or to anything */
static bool is_about(const struct rt_param *p, const char *structure)
{
	return rt_param_is_anything(p) || (p->pointee && !strcmp(p->pointee, structure));
}

/* A function that is given or hands out such structs, by its declaration, works on them and not on what they hold. */
static bool is_helper(const struct drops *d, const char *function, const char *structure)
{
	struct rt_survey *survey = &d->b->survey;
	const struct rt_survey_function *f = NULL;
	bool declared = false;

	while ((f = rt_survey_function(survey, function, f))) {
		declared = true;
		if (is_about(&f->returns, structure))
			return true;
		for (unsigned i = 1; i <= f->param_count; i++)
			if (is_about(rt_survey_param(survey, f, i), structure))
				return true;
	}
	return !declared;
}

/* It is given no struct at all, but a mere pointer to free: what is in the block is its caller's business. */
static bool takes_anything(const struct drops *d, const char *function)
{
	struct rt_survey *survey = &d->b->survey;
	const struct rt_survey_function *f = function ? rt_survey_function(survey, function, NULL) : NULL;
	bool pointer = false;

	for (unsigned i = 1; f && i <= f->param_count; i++) {
		const struct rt_param *p = rt_survey_param(survey, f, i);

		if (p->pointee)
			return false;
		pointer |= rt_param_is_anything(p);
	}
	return pointer;
}

/* It is given the struct and no such object, and does not end the struct: "void frame_defaults(struct frame *)". */
static bool sets_up(const struct drops *d, const char *function, const struct drop *drop)
{
	struct rt_survey *survey = &d->b->survey;
	const struct rt_survey_function *f = rt_survey_function(survey, function, NULL);
	bool given = false;

	if (rt_words_destroy(function) || rt_words_end(function))
		return false;
	for (unsigned i = 1; f && i <= f->param_count; i++) {
		const struct rt_param *p = rt_survey_param(survey, f, i);
		const uint64_t *type = p->pointee ? rt_map_get(&d->takers->type_of, rt_key_text(p->pointee)) : NULL;

		if (type && *type == drop->type + 1)
			return false;
		given |= p->pointee && !strcmp(p->pointee, drop->cleared);
	}
	return given;
}

/*
 * By the place; not by the function's own name, which would make its caller the site, as it is where the function does
 * not know what it gives up.
 */
static char *name_of(const struct drops *d, const struct drop *drop)
{
	struct rt_scope scopes[SCOPES_MAX];
	size_t n = rt_dwarf_scopes(d->b->module->dwarf, drop->insn.addr, scopes, SCOPES_MAX), skip = 0;
	char *name = NULL;

	while ((drop->freed || drop->cleared) && skip + 1 < n && scopes[skip].inlined &&
	       takes_anything(d, scopes[skip].function))
		skip++;
	if (drop->cleared && skip < n && scopes[skip].function && sets_up(d, scopes[skip].function, drop))
		return strdup(scopes[skip].function);
	if (skip)
		return strdup(scopes[skip - 1].function);
	if (drop->anything && n && scopes[0].function && is_helper(d, scopes[0].function, drop->anything))
		return strdup(scopes[0].function);
	if (asprintf(&name, "%s+0x%llx", drop->symbol->name,
		     (unsigned long long)(drop->insn.addr.v - drop->symbol->addr.v)) < 0)
		return NULL;
	return name;
}

/* Who ends the part of the block that the pointer lies in, and has no frame when that is freed; NULL: nobody. */
static struct rt_error *find_ender(const struct drops *d, const struct drop *drop, const char **ret)
{
	*ret = NULL;
	if (!drop->freed || !drop->structure || drop->anything)
		return NULL;
	return rt_plan_ender(d->b, drop->symbol, drop->insn.addr, drop->structure, (uint64_t)drop->offset, ret);
}

static struct rt_error *add_point(struct drops *d, const struct drop *drop)
{
	struct rt_slot slot = { .type = drop->type,
				.insn = &drop->insn,
				.reg = drop->reg,
				.index = drop->insn.mem.index,
				.scale = drop->insn.mem.index == RT_REG_NONE ? 0 : drop->insn.mem.scale,
				.offset = drop->offset,
				.stored = drop->stored,
				.fresh = drop->fresh,
				.freed = drop->freed,
				.maybe = drop->anything != NULL };
	_cleanup_free_ char *name = name_of(d, drop);

	RT_TRY(find_ender(d, drop, &slot.ender));
	return name ? rt_plan_slot(d->b, &slot, name) : rt_error_nomem();
}

static struct rt_error *add_points(struct drops *d)
{
	size_t types = d->b->plan->types.len;
	_cleanup_free_ unsigned *count = calloc(2 * types + 1, sizeof(*count));

	if (!count)
		return rt_error_nomem();
	for (size_t i = 0; i < d->all.len; i++)
		count[2 * d->all.data[i].type + (d->all.data[i].anything != NULL)]++;
	for (size_t i = 0; i < d->all.len; i++) {
		const struct drop *drop = &d->all.data[i];

		if (count[2 * drop->type + (drop->anything != NULL)] <= (drop->anything ? ANY_MAX : DROPS_MAX))
			RT_TRY(add_point(d, drop));
	}
	for (uint32_t type = 0; type < types; type++) {
		RT_TRY(rt_plan_limit(d->b, type, "slots that are given up", count[2 * type], DROPS_MAX));
		RT_TRY(rt_plan_limit(d->b, type, "slots of anything that are given up", count[2 * type + 1], ANY_MAX));
	}
	RT_TRY(rt_plan_limit(d->b, UINT32_MAX, "calls that may free a block", d->through, THROUGH_MAX));
	return rt_blocks_told(&d->blocks);
}

/* adds the stubs of a function of the C library, or of what checks the length as well */
static struct rt_error *find_stubs(const struct drops *d, const char *name, const char *checked, struct rt_map *ret)
{
	const struct rt_symtab *symtab = d->b->module->symtab;

	for (size_t i = 0; i < symtab->count; i++) {
		const struct rt_symbol *symbol = &symtab->symbols[i];

		if (symbol->plt && (!strcmp(symbol->name, name) || !strcmp(symbol->name, checked)) &&
		    !rt_map_put(ret, rt_key_make(symbol->addr.v, 0), NULL))
			return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *look_everywhere(struct drops *d)
{
	RT_TRY(rt_blocks_read(&d->blocks));
	if (!d->blocks.members.len)
		return NULL;
	RT_TRY(rt_frees_find(d->b, &d->frees));
	RT_TRY(rt_frees_pointed_to(&d->blocks, &d->frees_pointed_to));
	RT_TRY(find_stubs(d, "memset", "__memset_chk", &d->clears));
	RT_TRY(find_stubs(d, "memcpy", "__memcpy_chk", &d->copies));
	for (size_t i = 0; i < d->b->survey.symbols.len; i++) {
		const struct rt_symbol *symbol = d->b->survey.symbols.data[i].symbol;

		if (symbol->size && symbol->size <= CODE_BYTES && is_worth_it(d, symbol))
			RT_TRY(look_through(d, symbol));
	}
	return add_points(d);
}

struct rt_error *rt_plan_dropped(const struct rt_takers *t)
{
	struct drops d = { .takers = t, .b = t->b, .blocks = { .b = t->b, .type_of = &t->type_of } };
	struct rt_error *err = look_everywhere(&d);

	rt_blocks_deinit(&d.blocks);
	rt_map_deinit(&d.frees);
	rt_map_deinit(&d.frees_pointed_to);
	rt_map_deinit(&d.clears);
	rt_map_deinit(&d.copies);
	rt_vec_deinit(&d.all);
	rt_way_deinit(&d.way);
	return err;
}
