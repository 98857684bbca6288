/* SPDX-License-Identifier: GPL-2.0-only */
/* Arguments of kernel functions, and ways through their types, as BTF tells them. */
#include <stdarg.h>
#include <string.h>

#include "insn/insn.h"
#include "probe/kernel.h"

enum { CHAIN_MAX = 32, PARTS_MAX = 1024, ARGUMENT_REGISTERS = 6, POINTER_BYTES = 8, INT_SIGNED = 1 };

const char rt_kernel_no_parameter[] = "there is no such parameter, and BTF knows no other variables";

/* Where a walk stands: the value, and its type. */
struct stand {
	const struct rt_btf *btf;
	struct rt_arena *arena;
	struct rt_location at;
	uint32_t type;
	uint32_t bits, first; /* of a bit field: its bits from at on */
	const char *name;
};

__attribute__((format(printf, 2, 3))) static const char *say(const struct stand *s, const char *format, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, format);
	text = rt_arena_vprintf(s->arena, format, ap);
	va_end(ap);
	return text ? text : "out of memory";
}

/* What is behind typedefs and qualifiers. false: nothing that BTF knows. */
static bool peel(const struct rt_btf *btf, uint32_t id, struct rt_btf_type *ret, uint32_t *ret_id)
{
	for (unsigned n = 0; n < CHAIN_MAX; n++) {
		if (!rt_btf_type(btf, id, ret))
			return false;
		*ret_id = id;
		if (ret->kind != RT_BTF_TYPEDEF && ret->kind != RT_BTF_CONST && ret->kind != RT_BTF_VOLATILE &&
		    ret->kind != RT_BTF_RESTRICT && ret->kind != RT_BTF_TYPE_TAG)
			return true;
		id = ret->type;
	}
	return false;
}

static bool size_of(const struct rt_btf *btf, uint32_t id, uint64_t *ret)
{
	uint64_t count = 1;

	for (unsigned n = 0; n < CHAIN_MAX; n++) {
		struct rt_btf_type t;

		if (!peel(btf, id, &t, &id))
			return false;
		if (t.kind != RT_BTF_ARRAY) {
			*ret = count * (t.kind == RT_BTF_PTR ? POINTER_BYTES : t.size);
			return *ret;
		}
		if (__builtin_mul_overflow(count, (uint64_t)t.elements, &count) || count > UINT32_MAX)
			return false;
		id = t.type;
	}
	return false;
}

/*
 * left: parts that may still be looked at, one in the other or side by side. Types that hold one another twice, in each
 * depth again, would take for ever.
 */
static bool is_word_within(const struct rt_btf *btf, uint32_t id, unsigned depth, unsigned *left)
{
	struct rt_btf_type t;
	struct rt_btf_member m;
	uint64_t size;

	if (depth > CHAIN_MAX || !*left || !peel(btf, id, &t, &id))
		return false;
	--*left;
	switch (t.kind) {
	case RT_BTF_PTR:
		return true;
	case RT_BTF_INT:
	case RT_BTF_ENUM:
	case RT_BTF_ENUM64:
		return t.size && t.size <= 8 && !(t.size & (t.size - 1));
	case RT_BTF_STRUCT:
	case RT_BTF_UNION:
		if (!t.size || t.size > 8 || (t.size & (t.size - 1)))
			return false;
		/* members that are not where their size wants them make it one that is passed in memory */
		for (uint32_t i = 0; i < t.vlen; i++)
			if (!rt_btf_member(btf, id, i, &m) || !is_word_within(btf, m.type, depth + 1, left) ||
			    !size_of(btf, m.type, &size) || (!m.size && m.offset % (8 * size)))
				return false;
		return t.vlen;
	default:
		return false;
	}
}

/* Is it passed in one register, or in one word of the stack? */
static bool is_word(const struct rt_btf *btf, uint32_t id)
{
	unsigned left = PARTS_MAX;

	return is_word_within(btf, id, 0, &left);
}

/* Is it a function of that name in the source, or a copy that the compiler made of one ("f.constprop.0")? */
static bool is_called(const struct rt_symbol *s, const char *function, size_t len)
{
	const char *end = s->name + len;

	return s->function && !strncmp(s->name, function, len) &&
	       (!*end || (*end == '.' && strncmp(end, ".cold", 5) != 0));
}

/* The prototype of the one function of this name; NULL, or why there is none. */
static const char *prototype(const struct rt_kernel *k, const char *function, struct rt_btf_type *ret, uint32_t *ret_id)
{
	uint32_t found = 0;
	size_t symbols = 0, len = strlen(function);
	struct rt_btf_type t;

	if (strchr(function, '.'))
		return "the compiler has made it from another function, and may have changed its arguments";
	for (size_t i = 0; i < k->symtab->count; i++)
		symbols += is_called(&k->symtab->symbols[i], function, len);
	if (symbols > 1)
		return "there are several functions of that name, or copies of it, and BTF does not tell which has "
		       "which arguments";
	for (uint32_t id = 1; id <= rt_btf_count(k->btf); id++) {
		const char *name = rt_btf_function(k->btf, id);

		if (!name || strcmp(name, function) != 0 || !rt_btf_type(k->btf, id, &t))
			continue;
		if (found && found != t.type)
			return "BTF has two prototypes of it";
		found = t.type;
	}
	if (!found || !rt_btf_type(k->btf, found, ret) || ret->kind != RT_BTF_FUNC_PROTO)
		return "BTF has no prototype of it";
	*ret_id = found;
	return NULL;
}

/* Parameter index of the prototype: its register, or word of the stack. */
static const char *locate(const struct rt_btf *btf, uint32_t proto, uint32_t index, struct rt_location *ret)
{
	struct rt_btf_member m;

	for (uint32_t i = 0; i <= index; i++) {
		if (!rt_btf_member(btf, proto, i, &m))
			return "BTF is damaged";
		if (!is_word(btf, m.type))
			return i == index ? "it is passed in several parts, or in memory"
					  : "a parameter before it is passed in several parts, or in memory";
	}
	*ret = (struct rt_location){ .base = RT_LOCATION_REG, .is_value = true };
	if (index < ARGUMENT_REGISTERS) {
		ret->reg = (uint8_t)rt_reg_argument(index + 1);
		return NULL;
	}
	/* behind the return address */
	ret->reg = RT_REG_RSP;
	ret->is_value = false;
	ret->offset = (int64_t)POINTER_BYTES * (index - ARGUMENT_REGISTERS + 1);
	return NULL;
}

/* The member of this name, also in nameless parts. *offset counts bits; left: as above. */
static bool find_member(const struct rt_btf *btf, uint32_t id, const char *name, unsigned *left,
			struct rt_btf_member *ret, uint64_t *offset)
{
	struct rt_btf_type t;

	if (!*left || !peel(btf, id, &t, &id) || (t.kind != RT_BTF_STRUCT && t.kind != RT_BTF_UNION))
		return false;
	--*left;
	for (uint32_t i = 0; i < t.vlen; i++) {
		uint64_t within = 0;

		if (!rt_btf_member(btf, id, i, ret))
			return false;
		if (!strcmp(ret->name, name)) {
			*offset += ret->offset;
			return true;
		}
		within = *offset + ret->offset;
		if (!*ret->name && find_member(btf, ret->type, name, left, ret, &within)) {
			*offset = within;
			return true;
		}
	}
	return false;
}

/* The stand becomes what its pointer points to. */
static const char *follow(struct stand *s, const struct rt_btf_type *pointer)
{
	if (s->at.is_value) {
		s->at.is_value = false;
	} else {
		if (s->at.deref_count == RT_LOCATION_DEREFS_MAX)
			return "behind too many pointers";
		s->at.derefs[s->at.deref_count++] = s->at.offset;
		s->at.offset = 0;
	}
	s->type = pointer->type;
	return NULL;
}

static const char *step_member(struct stand *s, const struct rt_trail *step)
{
	struct rt_btf_member m;
	struct rt_btf_type t;
	unsigned left = PARTS_MAX;
	uint64_t offset = 0;
	const char *why;
	uint32_t id;

	if (s->bits || !peel(s->btf, s->type, &t, &id))
		return say(s, "%s has no members", s->name);
	if (t.kind == RT_BTF_PTR) {
		if (step->kind == RT_TRAIL_DOT)
			return say(s, "%s is a pointer: write -> before %s", s->name, step->name);
		why = follow(s, &t);
		if (why)
			return why;
		if (!peel(s->btf, s->type, &t, &id))
			return "BTF is damaged";
	} else if (step->kind == RT_TRAIL_ARROW) {
		return say(s, "%s is no pointer: write a dot before %s", s->name, step->name);
	}
	if (t.kind != RT_BTF_STRUCT && t.kind != RT_BTF_UNION)
		return say(s, "%s is no struct, or one that BTF has no definition of", s->name);
	if (!find_member(s->btf, id, step->name, &left, &m, &offset))
		return say(s, "there is no member %s in struct %s", step->name, t.name);
	if (s->at.is_value && (offset || m.size))
		return "a struct in a register: only its first member can be told";
	s->bits = m.size;
	s->first = offset % 8;
	if (__builtin_add_overflow(s->at.offset, offset / 8, &s->at.offset))
		return "BTF is damaged";
	s->type = m.type;
	s->name = step->name;
	return !s->bits && s->first ? "BTF is damaged" : NULL;
}

static const char *step_index(struct stand *s, const struct rt_trail *step)
{
	struct rt_btf_type t;
	const char *why;
	uint64_t size;
	uint32_t id;
	int64_t bytes;

	if (s->bits || !peel(s->btf, s->type, &t, &id) || (t.kind != RT_BTF_PTR && t.kind != RT_BTF_ARRAY))
		return say(s, "%s is neither array nor pointer", s->name);
	if (t.kind == RT_BTF_PTR) {
		why = follow(s, &t);
		if (why)
			return why;
	} else {
		if (s->at.is_value)
			return "an array in a register";
		/* arrays of 0 and 1 at the end of a struct stand for any number */
		if (step->index < 0 || (t.elements > 1 && (uint64_t)step->index >= t.elements))
			return say(s, "%s has fewer elements", s->name);
		s->type = t.type;
	}
	if (!size_of(s->btf, s->type, &size) || __builtin_mul_overflow(step->index, size, &bytes) ||
	    __builtin_add_overflow(s->at.offset, bytes, &s->at.offset))
		return say(s, "the size of the elements of %s is not known", s->name);
	return NULL;
}

static bool is_char(const struct rt_btf *btf, uint32_t id)
{
	struct rt_btf_type t;

	return peel(btf, id, &t, &id) && t.kind == RT_BTF_INT && t.size == 1 && strstr(t.name, "char");
}

static enum rt_datum_kind kind_of(const struct rt_btf_type *t)
{
	switch (t->kind) {
	case RT_BTF_INT:
		return t->encoding & INT_SIGNED ? RT_DATUM_SIGNED : RT_DATUM_UNSIGNED;
	case RT_BTF_ENUM:
	case RT_BTF_ENUM64:
		return t->kind_flag ? RT_DATUM_SIGNED : RT_DATUM_UNSIGNED;
	case RT_BTF_PTR:
		return RT_DATUM_POINTER;
	case RT_BTF_FLOAT:
		return RT_DATUM_FLOAT;
	case RT_BTF_ARRAY:
		return RT_DATUM_ARRAY;
	case RT_BTF_STRUCT:
	case RT_BTF_UNION:
		return RT_DATUM_STRUCT;
	default:
		return RT_DATUM_OTHER;
	}
}

static const char *describe(struct stand *s, struct rt_datum *ret)
{
	struct rt_btf_type t, named;
	uint32_t id;

	if (!peel(s->btf, s->type, &t, &id) || !rt_btf_type(s->btf, s->type, &named))
		return "BTF is damaged";
	ret->kind = kind_of(&t);
	ret->name = s->name;
	ret->type = *named.name ? named.name : *t.name ? t.name : t.kind == RT_BTF_PTR ? "a pointer" : NULL;
	if (!size_of(s->btf, id, &ret->size))
		ret->size = 0;
	ret->is_text = (ret->kind == RT_DATUM_POINTER || ret->kind == RT_DATUM_ARRAY) && is_char(s->btf, t.type);
	if (s->bits) {
		/* the bits of a unit that begins at a multiple of its size */
		int64_t whole = ret->size ? s->at.offset / (int64_t)ret->size * (int64_t)ret->size : 0;

		ret->shift = (uint32_t)(s->at.offset - whole) * 8 + s->first;
		ret->bits = s->bits;
		s->at.offset = whole;
		if (!ret->size || ret->shift + ret->bits > ret->size * 8)
			return "a bit field whose place is not known";
	}
	ret->where = s->at;
	return NULL;
}

const char *rt_kernel_datum(const struct rt_kernel *kernel, struct rt_arena *arena, const char *function,
			    const char *name, const struct rt_trail *path, size_t count, struct rt_datum *ret)
{
	struct stand s = { .btf = kernel->btf, .arena = arena, .name = name };
	struct rt_btf_type proto;
	struct rt_btf_member m;
	uint32_t id, index = 0;
	const char *why = prototype(kernel, function, &proto, &id);

	if (why)
		return why;
	while (rt_btf_member(s.btf, id, index, &m) && strcmp(m.name, name) != 0)
		index++;
	if (index >= proto.vlen)
		return rt_kernel_no_parameter;
	why = locate(s.btf, id, index, &s.at);
	*ret = (struct rt_datum){ .is_param = true, .variable = s.at };
	s.type = m.type;
	for (size_t i = 0; i < count && !why; i++)
		why = path[i].kind == RT_TRAIL_INDEX ? step_index(&s, &path[i]) : step_member(&s, &path[i]);
	return why ? why : describe(&s, ret);
}

const char *rt_kernel_parameters(const struct rt_kernel *kernel, const char *function,
				 void (*visit)(const char *name, void *arg), void *arg)
{
	struct rt_btf_type proto;
	struct rt_btf_member m;
	uint32_t id;
	const char *why = prototype(kernel, function, &proto, &id);

	for (uint32_t i = 0; !why && rt_btf_member(kernel->btf, id, i, &m); i++)
		if (*m.name)
			visit(m.name, arg);
	return why;
}

const char *rt_kernel_returns(const struct rt_kernel *kernel, struct rt_arena *arena, const char *function,
			      struct rt_datum *ret, bool *ret_void)
{
	struct stand s = { .btf = kernel->btf, .arena = arena };
	struct rt_btf_type proto, type;
	uint32_t id;
	const char *why = prototype(kernel, function, &proto, &id);

	if (why)
		return why;
	*ret = (struct rt_datum){ .is_param = false };
	s.type = proto.type;
	*ret_void = peel(s.btf, s.type, &type, &id) && type.kind == RT_BTF_VOID;
	return *ret_void ? NULL : describe(&s, ret);
}
