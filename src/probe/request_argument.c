/* SPDX-License-Identifier: GPL-2.0-only */
/* The arguments of a probe definition. */
#include "probe/request_build.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "probe/definition.h"

enum { ARGUMENTS_MAX = 128, STEPS_MAX = 32, ARRAY_MAX = 64 };

static bool take(struct rt_scanner *s, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(s->at, text, len) != 0)
		return false;
	s->at += len;
	return true;
}

/* A word of letters, digits and _; empty: NULL with a reason. */
static struct rt_error *take_word(struct rt_scanner *s, const char *what, const char **ret)
{
	const char *start = s->at;

	while (rt_is_word(*s->at))
		s->at++;
	if (s->at == start)
		return rt_request_fault(s, start, "see: man reftrace-probe, ARGUMENTS", "%s is missing here", what);
	*ret = rt_scanner_copy(s, start, (size_t)(s->at - start));
	return *ret ? NULL : rt_error_nomem();
}

static bool digits(const char **at, const char *end, uint64_t *ret)
{
	const char *start = *at;

	while (*at < end && isdigit((unsigned char)**at))
		++*at;
	return rt_parse_u64(start, (size_t)(*at - start), 10, ret);
}

/* "b<width>@<offset>/<container>" */
static bool is_bitfield(const char *at, const char *end)
{
	uint64_t width, offset, container;

	if (*at++ != 'b' || !digits(&at, end, &width) || at == end || *at++ != '@' || !digits(&at, end, &offset) ||
	    at == end || *at++ != '/' || !digits(&at, end, &container) || at != end)
		return false;
	return width && (container == 8 || container == 16 || container == 32 || container == 64) &&
	       offset < container && width <= container - offset;
}

bool rt_request_is_type(const char *text, size_t len)
{
	static const char *const words[] = { "u8",  "u16", "u32", "u64",  "s8",     "s16",     "s32",    "s64",   "x8",
					     "x16", "x32", "x64", "char", "string", "ustring", "symbol", "symstr" };
	const char *end = text + len, *open = memchr(text, '[', len), *at;
	uint64_t count;

	if (open) {
		at = open + 1;
		if (!digits(&at, end, &count) || at + 1 != end || *at != ']' || !count || count > ARRAY_MAX)
			return false;
		end = open;
	}
	len = (size_t)(end - text);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i]) == len && !memcmp(words[i], text, len))
			return true;
	return len && is_bitfield(text, end);
}

static struct rt_error *parse_type(struct rt_scanner *s, struct rt_request_argument *a)
{
	const char *start = s->at;
	/* a bit field has an '@' of its own */
	size_t len = strcspn(start, " \t"), user = strlen("@user");

	if (len >= user && !strncmp(start + len - user, "@user", user)) {
		len -= user;
		a->user = true;
	}
	if (!rt_request_is_type(start, len))
		return rt_request_fault(s, start,
					"u8 to u64, s8 to s64, x8 to x64, char, string, ustring, symbol, symstr, "
					"b<bits>@<offset>/<size>, each with [n] behind it for an array",
					"'%.*s' is no type", (int)len, start);
	a->type = rt_scanner_copy(s, start, len);
	s->at = start + strcspn(start, " \t");
	return a->type ? NULL : rt_error_nomem();
}

static struct rt_error *parse_index(struct rt_scanner *s, struct rt_trail *step)
{
	const char *start = s->at;
	bool minus = take(s, "-");
	uint64_t v = 0;

	if (!isdigit((unsigned char)*s->at))
		return rt_request_fault(s, start, "[0]; the kernel cannot compute with a second variable",
					"an index must be a number");
	RT_TRY(rt_scanner_number(s, "the index", INT32_MAX, &v));
	if (!take(s, "]"))
		return rt_request_fault(s, s->at, "put it here", "']' is missing");
	step->kind = RT_TRAIL_INDEX;
	step->index = minus ? -(int64_t)v : (int64_t)v;
	return NULL;
}

/* "VARIABLE->MEMBER.MEMBER[INDEX]" */
static struct rt_error *parse_variable(struct rt_scanner *s, struct rt_request_argument *a)
{
	struct rt_trail steps[STEPS_MAX];

	a->kind = RT_ARGUMENT_VARIABLE;
	RT_TRY(take_word(s, "a variable", &a->variable));
	for (;;) {
		struct rt_trail *step = &steps[a->step_count];
		const char *at = s->at;
		bool arrow = take(s, "->"), dot = !arrow && take(s, "."), open = !arrow && !dot && take(s, "[");

		if (!arrow && !dot && !open)
			break;
		if (a->step_count == STEPS_MAX)
			return rt_request_fault(s, at, "a shorter way", "more than %d members in a row", STEPS_MAX);
		*step = (struct rt_trail){ .kind = arrow ? RT_TRAIL_ARROW : RT_TRAIL_DOT };
		if (open)
			RT_TRY(parse_index(s, step));
		else
			RT_TRY(take_word(s, "a member", &step->name));
		a->step_count++;
	}
	a->steps = rt_arena_alloc(&s->request->arena, (a->step_count + 1) * sizeof(*steps));
	if (!a->steps)
		return rt_error_nomem();
	memcpy(a->steps, steps, a->step_count * sizeof(*steps));
	return NULL;
}

/* The kernel's names; others that people know stand beside them. */
static struct rt_error *parse_register(struct rt_scanner *s, struct rt_request_fetch *f)
{
	static const char *const more[] = { "ip", "flags" };
	const char *start = s->at, *name = "", *kernel;

	RT_TRY(take_word(s, "a register", &name));
	for (size_t i = 0, extra = 0; extra < sizeof(more) / sizeof(*more); i++) {
		kernel = rt_kernel_register((uint8_t)i) ?: more[extra++];
		if (!strcmp(name, kernel) || (*name == 'r' && !strcmp(name + 1, kernel))) {
			f->base = RT_FETCH_REG;
			f->name = kernel;
			return NULL;
		}
	}
	return rt_request_fault(s, start, "ax bx cx dx si di bp sp r8 to r15 ip flags",
				"the kernel knows no register %%%s", name);
}

static struct rt_error *parse_dollar(struct rt_scanner *s, struct rt_request_argument *a)
{
	struct rt_request_fetch *f = &a->fetch;
	const char *start = s->at - 1, *word = "";
	uint64_t n = 0;

	RT_TRY(take_word(s, "stack, comm, argN, retval, params or vars", &word));
	if (!strcmp(word, "retval")) {
		a->kind = RT_ARGUMENT_RETVAL;
		return NULL;
	}
	if (!strcmp(word, "comm")) {
		f->base = RT_FETCH_COMM;
		return NULL;
	}
	if (!strcmp(word, "stack")) {
		f->base = RT_FETCH_STACK;
		return NULL;
	}
	if (!strncmp(word, "stack", 5) && rt_parse_u64(word + 5, strlen(word + 5), 10, &n) && n <= INT16_MAX) {
		f->base = RT_FETCH_STACK_ENTRY;
		f->number = (int64_t)n;
		return NULL;
	}
	if (!strncmp(word, "arg", 3) && rt_parse_u64(word + 3, strlen(word + 3), 10, &n) && n && n <= INT8_MAX) {
		f->base = RT_FETCH_ARGUMENT;
		f->number = (int64_t)n;
		return NULL;
	}
	return rt_request_fault(s, start, "$retval, $params, $vars, $argN, $stack, $stackN, $comm", "there is no $%s",
				word);
}

static struct rt_error *parse_at(struct rt_scanner *s, struct rt_request_fetch *f)
{
	bool plus = take(s, "+");
	uint64_t v = 0;

	if (plus || isdigit((unsigned char)*s->at)) {
		RT_TRY(rt_scanner_number(s, plus ? "the file offset" : "the address", plus ? INT64_MAX : UINT64_MAX,
					 &v));
		f->base = plus ? RT_FETCH_OFFSET : RT_FETCH_ADDRESS;
		f->number = (int64_t)v;
		return NULL;
	}
	f->base = RT_FETCH_SYMBOL;
	RT_TRY(take_word(s, "an address, +OFFSET or a symbol", &f->name));
	if (*s->at == '+' || *s->at == '-') {
		bool minus = *s->at++ == '-';

		RT_TRY(rt_scanner_number(s, "the offset", INT32_MAX, &v));
		f->number = minus ? -(int64_t)v : (int64_t)v;
	}
	return NULL;
}

static struct rt_error *parse_literal(struct rt_scanner *s, struct rt_request_fetch *f)
{
	const char *start = s->at;
	bool minus;
	uint64_t v = 0;

	if (take(s, "\"")) {
		size_t len = strcspn(s->at, "\" \t");

		if (s->at[len] != '"')
			return rt_request_fault(s, start, "\\\"text\" without blanks", "this text has no end");
		f->base = RT_FETCH_TEXT;
		f->name = rt_scanner_copy(s, s->at, len);
		s->at += len + 1;
		return f->name ? NULL : rt_error_nomem();
	}
	minus = take(s, "-");
	RT_TRY(rt_scanner_number(s, "the constant", minus ? (uint64_t)INT64_MAX + 1 : UINT64_MAX, &v));
	f->base = RT_FETCH_NUMBER;
	f->number = (int64_t)(minus ? 0 - v : v);
	return NULL;
}

/* "+8(+0(%di))": outermost is written first and done last. */
static struct rt_error *parse_fetch(struct rt_scanner *s, struct rt_request_argument *a)
{
	struct rt_request_fetch *f = &a->fetch, outer;
	const char *start = s->at;

	a->kind = RT_ARGUMENT_FETCH;
	while (*s->at == '+' || *s->at == '-') {
		bool minus = *s->at++ == '-';
		uint64_t v = 0;

		if (f->derefs == RT_REQUEST_DEREFS_MAX)
			return rt_request_fault(s, start, "fewer", "it reads memory more than %d times",
						RT_REQUEST_DEREFS_MAX);
		f->user[f->derefs] = take(s, "u");
		RT_TRY(rt_scanner_number(s, "the offset", INT32_MAX, &v));
		f->offset[f->derefs++] = minus ? -(int64_t)v : (int64_t)v;
		if (!take(s, "("))
			return rt_request_fault(s, s->at, "+8(%di)", "'(' is missing");
	}
	outer = *f;
	for (unsigned i = 0; i < f->derefs; i++) {
		f->offset[i] = outer.offset[f->derefs - 1 - i];
		f->user[i] = outer.user[f->derefs - 1 - i];
	}
	if (take(s, "%"))
		RT_TRY(parse_register(s, f));
	else if (take(s, "$"))
		RT_TRY(parse_dollar(s, a));
	else if (take(s, "@"))
		RT_TRY(parse_at(s, f));
	else if (take(s, "\\"))
		RT_TRY(parse_literal(s, f));
	else
		return rt_request_fault(s, s->at, "%REGISTER, $stackN, @ADDRESS, @+OFFSET or @SYMBOL",
					"nothing to read from stands here");
	if (f->derefs && (a->kind != RT_ARGUMENT_FETCH || f->base == RT_FETCH_COMM || f->base == RT_FETCH_TEXT))
		return rt_request_fault(s, start, "it alone", "memory cannot be read from it");
	for (unsigned i = 0; i < f->derefs; i++)
		if (!take(s, ")"))
			return rt_request_fault(s, s->at, "put it here", "')' is missing");
	return NULL;
}

static bool is_group_word(struct rt_scanner *s, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(s->at, word, len) && (!s->at[len] || s->at[len] == ' ' || s->at[len] == '\t');
}

static struct rt_error *parse_name(struct rt_scanner *s, struct rt_request_argument *a)
{
	const char *end = s->at;

	while (rt_is_word(*end))
		end++;
	if (end == s->at || *end != '=')
		return NULL;
	if (isdigit((unsigned char)*s->at) || end - s->at > RT_REQUEST_ARGUMENT_NAME_MAX)
		return rt_request_fault(s, s->at, "at most 31 letters, digits and _, no digit first",
					"the kernel takes this for no name of an argument");
	a->name = rt_scanner_copy(s, s->at, (size_t)(end - s->at));
	s->at = end + 1;
	return a->name ? NULL : rt_error_nomem();
}

static struct rt_error *parse_value(struct rt_scanner *s, struct rt_request_argument *a)
{
	if (is_group_word(s, "$params") || is_group_word(s, "$vars")) {
		if (a->name)
			return rt_request_fault(s, s->at, "without NAME=", "it stands for several arguments");
		a->kind = s->at[1] == 'p' ? RT_ARGUMENT_PARAMS : RT_ARGUMENT_VARS;
		s->at += strcspn(s->at, " \t");
		return NULL;
	}
	if (isalpha((unsigned char)*s->at) || *s->at == '_')
		return parse_variable(s, a);
	if (strchr("%$@\\+-", *s->at) && *s->at)
		return parse_fetch(s, a);
	return rt_request_fault(s, s->at, "VARIABLE->MEMBER, %REGISTER, $retval, @ADDRESS, \\NUMBER",
				"this begins no argument");
}

struct rt_error *rt_request_parse_argument(struct rt_scanner *s)
{
	struct rt_request_argument a = { .user = false };
	const char *start = s->at;

	if (s->request->arguments.len == ARGUMENTS_MAX)
		return rt_request_fault(s, start, "fewer", "the kernel takes at most %d arguments", ARGUMENTS_MAX);
	RT_TRY(parse_name(s, &a));
	RT_TRY(parse_value(s, &a));
	if (take(s, ":"))
		RT_TRY(parse_type(s, &a));
	else if (take(s, "@user"))
		a.user = true;
	if (*s->at && *s->at != ' ' && *s->at != '\t')
		return rt_request_fault(s, s->at, "a blank between arguments", "'%c' cannot stand here", *s->at);
	a.text = rt_arena_strndup(&s->request->arena, start, (size_t)(s->at - start));
	return a.text && rt_vec_push(&s->request->arguments, a) ? NULL : rt_error_nomem();
}
