/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Location expressions in words: the expression is run on a stack of texts instead of numbers. What is not understood
 * is named, never guessed.
 */
#include "dwarf/where.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STACK_MAX = 8, TERM_MAX = 80, OPS_MAX = 64 };

struct term {
	char text[TERM_MAX];
	bool number; /* text is value */
	bool atomic; /* needs no brackets anywhere */
	bool sum;    /* needs none behind a + */
	int64_t value;
};

struct run {
	const struct rt_expression *q;
	struct term stack[STACK_MAX];
	unsigned depth;
	bool entry_value, constant_only, frame, value, in_register;
	const char *why; /* it cannot be understood */
	char why_text[32];
};

static const char *register_name(const struct rt_dwarf *dwarf, unsigned reg, char text[16])
{
	static const char *const x86[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
					   "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip" };

	if (dwarf->image->machine == RT_MACHINE_X86_64 && reg < sizeof(x86) / sizeof(*x86))
		return x86[reg];
	if (dwarf->image->machine == RT_MACHINE_X86_64 && reg < 33)
		snprintf(text, 16, "xmm%u", reg - 17);
	else if (dwarf->image->machine == RT_MACHINE_AARCH64 && reg < 32)
		snprintf(text, 16, reg == 31 ? "sp" : "x%u", reg);
	else if (dwarf->image->machine == RT_MACHINE_AARCH64 && reg >= 64 && reg < 96)
		snprintf(text, 16, "v%u", reg - 64);
	else
		snprintf(text, 16, "register %u", reg);
	return text;
}

static struct term *push(struct run *r)
{
	if (r->depth >= STACK_MAX) {
		r->why = "too long";
		return NULL;
	}
	r->stack[r->depth] = (struct term){ .atomic = true };
	return &r->stack[r->depth++];
}

static void push_number(struct run *r, int64_t value)
{
	struct term *t = push(r);

	if (!t)
		return;
	t->number = true;
	t->value = value;
	if (value > -4096 && value < 4096)
		snprintf(t->text, TERM_MAX, "%" PRId64, value);
	else
		snprintf(t->text, TERM_MAX, "0x%" PRIx64, (uint64_t)value);
}

static void push_text(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void push_text(struct run *r, const char *format, ...)
{
	struct term *t = push(r);
	va_list args;
	int n;

	r->constant_only = false;
	if (!t)
		return;
	va_start(args, format);
	n = vsnprintf(t->text, TERM_MAX, format, args);
	va_end(args);
	if (n < 0 || n >= TERM_MAX)
		r->why = "too long";
}

static void push_offset(struct run *r, unsigned reg, int64_t offset)
{
	char name[16];

	if (!offset) {
		push_text(r, "%s", register_name(r->q->dwarf, reg, name));
		return;
	}
	push_text(r, "%s%s0x%" PRIx64, register_name(r->q->dwarf, reg, name), offset < 0 ? "-" : "+",
		  offset < 0 ? -(uint64_t)offset : (uint64_t)offset);
	if (r->depth) {
		r->stack[r->depth - 1].atomic = false;
		r->stack[r->depth - 1].sum = true;
	}
}

static bool pop(struct run *r, struct term *ret)
{
	if (!r->depth) {
		r->why = "it takes more than there is";
		return false;
	}
	*ret = r->stack[--r->depth];
	return true;
}

static void binary(struct run *r, const char *sign, unsigned atom)
{
	bool additive = atom == DW_OP_plus || atom == DW_OP_minus, was = r->constant_only, left, right;
	struct term a, b;

	if (!pop(r, &b) || !pop(r, &a))
		return;
	left = a.atomic || (additive && a.sum);
	right = b.atomic || (atom == DW_OP_plus && b.sum);
	push_text(r, "%s%s%s%s%s%s%s", left ? "" : "(", a.text, left ? "" : ")", sign, right ? "" : "(", b.text,
		  right ? "" : ")");
	r->constant_only = was;
	if (r->why || !r->depth)
		return;
	r->stack[r->depth - 1].atomic = false;
	r->stack[r->depth - 1].sum = additive;
}

static const char *sign_of(unsigned atom)
{
	static const struct {
		unsigned atom;
		const char *sign;
	} signs[] = {
		{ DW_OP_plus, "+" }, { DW_OP_minus, "-" }, { DW_OP_mul, "*" },   { DW_OP_div, "/" },
		{ DW_OP_mod, "%" },  { DW_OP_and, "&" },   { DW_OP_or, "|" },    { DW_OP_xor, "^" },
		{ DW_OP_shl, "<<" }, { DW_OP_shr, ">>" },  { DW_OP_shra, ">>" }, { DW_OP_eq, "==" },
		{ DW_OP_ne, "!=" },  { DW_OP_lt, "<" },    { DW_OP_le, "<=" },   { DW_OP_gt, ">" },
		{ DW_OP_ge, ">=" },
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (signs[i].atom == atom)
			return signs[i].sign;
	}
	return NULL;
}

static void unary(struct run *r, const char *before, const char *behind)
{
	bool was = r->constant_only;
	struct term a;

	if (!pop(r, &a))
		return;
	push_text(r, "%s%s%s", before, a.text, behind);
	r->constant_only = was && before[0] != '[';
}

/* What a register held when the function was called. */
static void entry_value(struct run *r, const Dwarf_Op *op)
{
	Dwarf_Attribute inner;
	Dwarf_Op *ops;
	char name[16];
	size_t count;

	r->entry_value = true;
	if (dwarf_getlocation_attr(r->q->attr, op, &inner) != 0 || dwarf_getlocation(&inner, &ops, &count) != 0 ||
	    count != 1)
		r->why = "the value of an expression at the entry";
	else if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		push_text(r, "%s@entry", register_name(r->q->dwarf, ops[0].atom - DW_OP_reg0, name));
	else if (ops[0].atom == DW_OP_regx)
		push_text(r, "%s@entry", register_name(r->q->dwarf, ops[0].number, name));
	else
		r->why = "the value of an expression at the entry";
}

static void address(struct run *r, const Dwarf_Op *op)
{
	Dwarf_Addr value = op->number;
	Dwarf_Attribute inner;

	if (op->atom != DW_OP_addr &&
	    (dwarf_getlocation_attr(r->q->attr, op, &inner) != 0 || dwarf_formaddr(&inner, &value) != 0)) {
		r->why = "an address that is not in the file";
		return;
	}
	push_text(r, "0x%" PRIx64, value);
}

static void frame(struct run *r, const Dwarf_Op *op)
{
	struct rt_location where;
	const char *why = rt_location_evaluate(r->q, op, 1, &where);

	r->frame = true;
	if (!why && (where.base != RT_LOCATION_REG || where.at_entry || where.deref_count))
		why = "in a frame whose base is no register";
	if (why)
		r->why = why;
	else
		push_offset(r, where.reg, where.offset);
}

static void other(struct run *r, const Dwarf_Op *op)
{
	const char *sign = sign_of(op->atom);

	if (sign) {
		binary(r, sign, op->atom);
		return;
	}
	switch (op->atom) {
	case DW_OP_dup:
		if (r->depth && push(r))
			r->stack[r->depth - 1] = r->stack[r->depth - 2];
		break;
	case DW_OP_neg:
		unary(r, "-(", ")");
		break;
	case DW_OP_not:
		unary(r, "~(", ")");
		break;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		unary(r, "thread-local ", "");
		r->constant_only = false;
		break;
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		unary(r, "cast(", ")");
		break;
	case DW_OP_nop:
		break;
	default:
		snprintf(r->why_text, sizeof(r->why_text), "operation 0x%x", op->atom);
		r->why = r->why_text;
	}
}

static void step(struct run *r, const Dwarf_Op *op)
{
	unsigned atom = op->atom;
	char name[16];

	if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
		r->in_register = true;
		push_text(r, "%s", register_name(r->q->dwarf, atom - DW_OP_reg0, name));
	} else if (atom == DW_OP_regx) {
		r->in_register = true;
		push_text(r, "%s", register_name(r->q->dwarf, op->number, name));
	} else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		push_offset(r, atom - DW_OP_breg0, (int64_t)op->number);
	} else if (atom == DW_OP_bregx) {
		push_offset(r, op->number, (int64_t)op->number2);
	} else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
		push_number(r, atom - DW_OP_lit0);
	} else if (atom >= DW_OP_const1u && atom <= DW_OP_consts) {
		push_number(r, (int64_t)op->number);
	} else if (atom == DW_OP_plus_uconst) {
		push_number(r, (int64_t)op->number);
		binary(r, "+", DW_OP_plus);
	} else if (atom == DW_OP_fbreg || atom == DW_OP_call_frame_cfa) {
		frame(r, op);
	} else if (atom == DW_OP_addr || atom == DW_OP_addrx || atom == DW_OP_GNU_addr_index) {
		address(r, op);
	} else if (atom == DW_OP_deref || atom == DW_OP_deref_size || atom == DW_OP_deref_type ||
		   atom == DW_OP_GNU_deref_type) {
		unary(r, "[", "]");
	} else if (atom == DW_OP_regval_type || atom == DW_OP_GNU_regval_type) {
		push_text(r, "%s", register_name(r->q->dwarf, op->number, name));
	} else if (atom == DW_OP_entry_value || atom == DW_OP_GNU_entry_value) {
		entry_value(r, op);
	} else if (atom == DW_OP_stack_value) {
		r->value = true;
	} else {
		other(r, op);
	}
}

/* One place: ops without pieces. */
static void tell_one(const struct rt_expression *q, const Dwarf_Op *ops, size_t count, struct rt_where_text *ret)
{
	struct run r = { .q = q, .constant_only = true };

	*ret = (struct rt_where_text){ .where = RT_WHERE_GONE };
	if (!count)
		return;
	if (ops[0].atom == DW_OP_implicit_value) {
		ret->where = RT_WHERE_CONSTANT;
		snprintf(ret->text, sizeof(ret->text), "constant of %" PRIu64 " bytes", (uint64_t)ops[0].number);
		return;
	}
	if (ops[0].atom == DW_OP_implicit_pointer || ops[0].atom == DW_OP_GNU_implicit_pointer) {
		ret->where = RT_WHERE_IMPLICIT_POINTER;
		snprintf(ret->text, sizeof(ret->text), "points to what has no place of its own");
		return;
	}
	for (size_t i = 0; i < count && i < OPS_MAX && !r.why; i++)
		step(&r, &ops[i]);
	if (!r.why && (!r.depth || count > OPS_MAX))
		r.why = "too long";
	if (r.why) {
		ret->where = RT_WHERE_UNKNOWN;
		ret->frame = r.frame;
		if (r.why == rt_dwarf_no_frame)
			snprintf(ret->text, sizeof(ret->text), "%s", r.why);
		else
			snprintf(ret->text, sizeof(ret->text), "its location is not understood: %s", r.why);
		return;
	}
	ret->where = r.entry_value                ? RT_WHERE_ENTRY_VALUE
		     : r.value && r.constant_only ? RT_WHERE_CONSTANT
						  : RT_WHERE_READABLE;
	ret->frame = r.frame && !r.value;
	snprintf(ret->text, sizeof(ret->text), "%s%s%s",
		 r.in_register                     ? "in "
		 : ret->where == RT_WHERE_CONSTANT ? "constant "
		 : r.value                         ? "value "
						   : "at [",
		 r.stack[r.depth - 1].text, r.in_register || r.value ? "" : "]");
}

static bool is_piece(const Dwarf_Op *op)
{
	return op->atom == DW_OP_piece || op->atom == DW_OP_bit_piece;
}

void rt_where_tell(const struct rt_expression *q, const Dwarf_Op *ops, size_t count, struct rt_where_text *ret)
{
	size_t first = 0, len = 0;
	bool pieces = false;

	for (size_t i = 0; i < count; i++)
		pieces |= is_piece(&ops[i]);
	if (!pieces) {
		tell_one(q, ops, count, ret);
		return;
	}
	*ret = (struct rt_where_text){ .where = RT_WHERE_PIECES };
	for (size_t i = 0; i < count; i++) {
		struct rt_where_text one;
		int n;

		if (!is_piece(&ops[i]))
			continue;
		tell_one(q, ops + first, i - first, &one);
		first = i + 1;
		n = snprintf(ret->text + len, sizeof(ret->text) - len, "%s%" PRIu64 " %s %s", len ? ", " : "",
			     (uint64_t)ops[i].number, ops[i].atom == DW_OP_piece ? "bytes" : "bits",
			     one.where == RT_WHERE_GONE ? "gone" : one.text);
		len += n < 0 ? 0 : (size_t)n;
		if (len >= sizeof(ret->text))
			return;
	}
}
