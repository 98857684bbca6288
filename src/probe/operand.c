/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/operand.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "elf/image.h"

enum { SIZE_MAX_BYTES = 8, A64_SP = 31, A64_REGS = 31 };

/* A piece of an argument: [at, end). */
struct piece {
	const char *at, *end;
};

static size_t left(const struct piece *p)
{
	return (size_t)(p->end - p->at);
}

static bool take(struct piece *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static void skip_blanks(struct piece *p)
{
	while (p->at < p->end && *p->at == ' ')
		p->at++;
}

static bool is_symbol_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || c == '@';
}

/* "-8", "+0x10"; a number of 64 bits without sign is taken as it is stored. */
static bool take_number(struct piece *p, int64_t *ret)
{
	struct piece rest = *p;
	bool minus = take(&rest, '-');
	unsigned base = 10;
	const char *digits;
	uint64_t v;

	if (!minus)
		(void)take(&rest, '+');
	if (left(&rest) > 2 && rest.at[0] == '0' && (rest.at[1] | 32) == 'x') {
		rest.at += 2;
		base = 16;
	}
	digits = rest.at;
	while (rest.at < rest.end &&
	       (base == 16 ? isxdigit((unsigned char)*rest.at) : isdigit((unsigned char)*rest.at)))
		rest.at++;
	if (!rt_parse_u64(digits, (size_t)(rest.at - digits), base, &v))
		return false;
	*ret = (int64_t)(minus ? 0 - v : v);
	*p = rest;
	return true;
}

/* "symbol", "symbol+4", "4+symbol", "4" in any order of two: the numbers are summed. false: neither. */
static bool take_expression(struct piece *p, struct rt_operand *o)
{
	bool any = false;
	int64_t n;

	for (;;) {
		struct piece rest = *p;

		if (take_number(&rest, &n)) {
			o->value = (int64_t)((uint64_t)o->value + (uint64_t)n);
			*p = rest;
			any = true;
			continue;
		}
		if (any)
			(void)take(&rest, '+');
		if (o->symbol || rest.at == rest.end || isdigit((unsigned char)*rest.at) || !is_symbol_char(*rest.at))
			return any;
		o->symbol = rest.at;
		while (rest.at < rest.end && is_symbol_char(*rest.at))
			rest.at++;
		o->symbol_len = (size_t)(rest.at - o->symbol);
		*p = rest;
		any = true;
	}
}

/* The name's register and its width, by the ways x86 names parts of it. */
static uint8_t x86_register(const char *name, size_t len)
{
	static const char *const legacy[] = { "ax", "dx", "cx", "bx", "si", "di", "bp", "sp" };
	static const char *const low[] = { "al", "dl", "cl", "bl", "sil", "dil", "bpl", "spl" };
	struct piece digits;
	int64_t n;

	if (len == 3 && !memcmp(name, "rip", 3))
		return RT_REG_RIP;
	for (uint8_t i = 0; i < 8; i++) {
		if (len == strlen(low[i]) && !memcmp(name, low[i], len))
			return i;
		if ((len == 2 && !memcmp(name, legacy[i], 2)) ||
		    (len == 3 && (*name == 'r' || *name == 'e') && !memcmp(name + 1, legacy[i], 2)))
			return i;
	}
	digits = (struct piece){ name + 1, name + len };
	if (len < 2 || *name != 'r' || !isdigit((unsigned char)name[1]) || !take_number(&digits, &n) ||
	    left(&digits) > 1 || (left(&digits) && !strchr("dwb", *digits.at)))
		return RT_REG_NONE;
	return n >= 8 && n <= 15 ? (uint8_t)n : RT_REG_NONE;
}

/* "%rdi": its DWARF number */
static bool take_x86_register(struct piece *p, uint8_t *ret, const char **ret_why)
{
	const char *start = p->at + 1, *c = start;

	if (p->at == p->end || *p->at != '%')
		return false;
	while (c < p->end && isalnum((unsigned char)*c))
		c++;
	*ret = x86_register(start, (size_t)(c - start));
	if (*ret == RT_REG_NONE) {
		bool high = c - start == 2 && start[1] == 'h';

		*ret_why = high ? "it is in the second byte of a register" : "it is in a register that is not read";
		return false;
	}
	p->at = c;
	return true;
}

/* "(%rdx,%rcx,8)" */
static bool take_x86_address(struct piece *p, struct rt_operand *o)
{
	int64_t scale = 1;

	if (!take(p, '('))
		return false;
	if (*p->at != ',' && !take_x86_register(p, &o->base, &o->why))
		return false;
	if (take(p, ',')) {
		if (*p->at != ',' && !take_x86_register(p, &o->index, &o->why))
			return false;
		if (take(p, ',') && (!take_number(p, &scale) || (scale != 1 && scale != 2 && scale != 4 && scale != 8)))
			return false;
		o->scale = (uint8_t)scale;
	}
	return take(p, ')');
}

static bool parse_x86(struct piece *p, struct rt_operand *o)
{
	if (take(p, '$')) {
		o->kind = RT_OPERAND_CONST;
		if (!take_expression(p, o))
			return false;
		if (o->symbol)
			o->kind = RT_OPERAND_ADDRESS;
		return p->at == p->end;
	}
	if (p->at < p->end && *p->at == '%' && memchr(p->at, ':', left(p))) {
		o->why = "it is relative to a segment (thread-local)";
		return false;
	}
	if (take_x86_register(p, &o->base, &o->why)) {
		o->kind = RT_OPERAND_REG;
		return p->at == p->end;
	}
	if (o->why)
		return false;
	o->kind = RT_OPERAND_MEMORY;
	if (!take_expression(p, o) && (p->at == p->end || *p->at != '('))
		return false;
	if (p->at < p->end && !take_x86_address(p, o))
		return false;
	if (o->symbol) {
		/* only its address by rip, or all of it, can be known here */
		if ((o->base != RT_REG_NONE && o->base != RT_REG_RIP) || o->index != RT_REG_NONE)
			return false;
		o->kind = RT_OPERAND_SYMBOL;
		o->base = RT_REG_NONE;
	}
	return p->at == p->end;
}

/* "x0", "w19", "sp": the number that DWARF gives it too */
static bool take_a64_register(struct piece *p, uint8_t *ret)
{
	struct piece rest = *p;
	int64_t n;

	if (left(p) >= 2 && !memcmp(p->at, "sp", 2)) {
		*ret = A64_SP;
		p->at += 2;
		return true;
	}
	if (!take(&rest, 'x') && !take(&rest, 'w'))
		return false;
	if (rest.at == rest.end || !isdigit((unsigned char)*rest.at) || !take_number(&rest, &n) || n < 0 ||
	    n >= A64_REGS)
		return false;
	*ret = (uint8_t)n;
	*p = rest;
	return true;
}

static bool parse_a64(struct piece *p, struct rt_operand *o)
{
	if (take(p, '[')) {
		o->kind = RT_OPERAND_MEMORY;
		if (!take_a64_register(p, &o->base))
			return false;
		if (take(p, ',')) {
			skip_blanks(p);
			(void)take(p, '#');
			if (take_a64_register(p, &o->index))
				o->scale = 1;
			else if (!take_number(p, &o->value))
				return false;
		}
		return take(p, ']') && p->at == p->end;
	}
	if (take_a64_register(p, &o->base)) {
		o->kind = RT_OPERAND_REG;
		return p->at == p->end;
	}
	o->kind = RT_OPERAND_CONST;
	(void)take(p, '#');
	return take_number(p, &o->value) && p->at == p->end;
}

/* "8@", "-4@", "8f@"; nothing where the marker's arguments have no sizes (their first versions) */
static bool take_size(struct piece *p, struct rt_operand *o)
{
	const char *at = memchr(p->at, '@', left(p));
	struct piece size = { p->at, at };
	int64_t n;

	if (!at || !(*p->at == '-' || isdigit((unsigned char)*p->at)))
		return true;
	if (!take_number(&size, &n))
		return false;
	o->is_signed = n < 0;
	o->is_float = take(&size, 'f');
	/* the smallest number has no counterpart above 0 */
	n = n < -SIZE_MAX_BYTES ? 0 : n < 0 ? -n : n;
	if (size.at != size.end || n < 1 || n > SIZE_MAX_BYTES || (n & (n - 1))) {
		o->why = "its size is none of 1, 2, 4 and 8";
		return false;
	}
	o->size = (uint8_t)n;
	p->at = at + 1;
	return true;
}

bool rt_operand_next(const char **args, uint16_t machine, struct rt_operand *ret)
{
	struct rt_operand o = { .base = RT_REG_NONE, .index = RT_REG_NONE, .scale = 1 };
	const char *c = *args + strspn(*args, " ");
	struct piece p = { c, c };
	bool bracket = false, known;

	if (!*c)
		return false;
	/* aarch64 writes blanks inside of brackets */
	for (; *c && (*c != ' ' || bracket); c++)
		bracket = *c == '[' || (bracket && *c != ']');
	p.end = c;
	o.text = p.at;
	o.text_len = left(&p);
	known = take_size(&p, &o);
	if (known)
		known = machine == RT_MACHINE_AARCH64 ? parse_a64(&p, &o) : parse_x86(&p, &o);
	if (!known) {
		o.kind = RT_OPERAND_UNKNOWN;
		if (!o.why)
			o.why = "its form is not known";
	}
	*args = c;
	*ret = o;
	return true;
}
