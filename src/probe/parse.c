/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parser of the SPEC language. It reads words into a spec of its own and
 * joins that to the caller's only when everything was understood. Errors point
 * at the first character that makes no sense and say what was expected.
 */
#include "probe/spec.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "event/stream.h"
#include "probe/call.h"
#include "probe/near.h"
#include "probe/source_name.h"
#include "probe/spec_type.h"

/* A piece of the text: [start, end). */
struct span {
	const char *start, *end;
};

struct parser {
	const char *text, *end;
	const char *origin;
	struct rt_spec spec;               /* what was read so far */
	struct rt_spec_type *type;         /* that words go to; NULL before the first */
	const char *type_at;               /* where it began, for messages */
	bool named;                        /* type has been given a name */
	RT_VEC(struct span) unverified;    /* function names of unverified=, of the type */
	struct rt_spec_includes *includes; /* NULL: there can be none */
};

static const char *const keys[] = { "type", "new", "get",    "put",   "free",    "sink",  "steal",      "swap",
				    "move", "use", "hidden", "start", "counter", "class", "unverified", "preset" };

#define KEYS_TEXT "type new get put free sink steal swap move use hidden start counter class unverified preset"

/* What is wrong at `at`, with line and column from 1. */
static struct rt_error *spec_error(const struct parser *p, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static struct rt_error *spec_error(const struct parser *p, const char *at, const char *format, ...)
{
	size_t line = 1, column = 1;
	char *what = NULL;
	struct rt_error *err;
	va_list ap;

	for (const char *c = p->text; c < at; c++) {
		column++;
		if (*c == '\n') {
			line++;
			column = 1;
		}
	}
	va_start(ap, format);
	if (vasprintf(&what, format, ap) < 0)
		what = NULL;
	va_end(ap);
	if (!what)
		return rt_error_nomem();
	err = rt_error_new(RT_E_SPEC, "%s: line %zu, column %zu: %s", p->origin, line, column, what);
	free(what);
	return err;
}

enum { QUOTE_MAX = 48 };

/* The piece as a message may show it: cut, and without control characters. Returns text. */
static const char *quote(struct span s, char text[QUOTE_MAX + 4])
{
	size_t n = 0;

	for (; s.start < s.end && n < QUOTE_MAX; s.start++)
		text[n++] = isprint((unsigned char)*s.start) ? *s.start : '?';
	text[n] = '\0';
	if (s.start < s.end)
		memcpy(text + n, "...", 4);
	return text;
}

static size_t span_len(struct span s)
{
	return (size_t)(s.end - s.start);
}

static bool span_is(struct span s, const char *text)
{
	return span_len(s) == strlen(text) && memcmp(s.start, text, span_len(s)) == 0;
}

/* Tokens without "type" in a row may come before type=: then the type is named afterwards. */
static struct rt_error *begin_type(struct parser *p, const char *at)
{
	p->type = rt_vec_add(&p->spec.types);
	if (!p->type)
		return rt_error_nomem();
	p->type->start = RT_START_UNKNOWN;
	p->type->counter_offset = RT_COUNTER_UNKNOWN;
	p->type_at = at;
	p->named = false;
	p->type->origin = strdup(p->origin);
	return p->type->origin ? NULL : rt_error_nomem();
}

/* What unverified= names may be told before or behind it. */
static struct rt_error *mark_unverified(struct parser *p)
{
	for (size_t i = 0; i < p->unverified.len; i++) {
		struct span name = p->unverified.data[i];
		char text[QUOTE_MAX + 4];
		bool found = false;

		for (size_t n = 0; n < p->type->functions.len; n++) {
			if (span_is(name, "*") || span_is(name, p->type->functions.data[n].name))
				found = p->type->functions.data[n].unverified = true;
		}
		if (!found)
			return spec_error(p, name.start,
					  "'%s' is no function of the type, expected the name of one, or *",
					  quote(name, text));
	}
	rt_vec_clear(&p->unverified);
	return NULL;
}

static struct rt_error *end_type(struct parser *p)
{
	if (!p->type)
		return NULL;
	/* what is counted in the open needs none */
	if (!p->type->functions.len && !(p->type->name && rt_spec_has_counter(p->type)))
		return spec_error(p, p->type_at,
				  "type %s names no function, expected new=, get=, put= or free=, or counter=",
				  p->type->name ? p->type->name : "without a name");
	RT_TRY(mark_unverified(p));
	if (!p->type->name)
		p->type->name = rt_spec_common_stem(p->type);
	p->type = NULL;
	return p->spec.types.data[p->spec.types.len - 1].name ? NULL : rt_error_nomem();
}

static struct rt_error *parse_type_name(struct parser *p, struct span value)
{
	char text[QUOTE_MAX + 4];
	const char *c = value.start;

	while (c < value.end && (rt_spec_is_name_char(*c) || *c == '-' || *c == ':'))
		c++;
	if (c < value.end || value.start == value.end)
		return spec_error(p, c, "'%s' is no type name, expected letters, digits, '_', '-', '.' and ':'",
				  quote(value, text));
	if (!p->type || p->named) {
		RT_TRY(end_type(p));
		RT_TRY(begin_type(p, value.start));
	}
	p->type->name = strndup(value.start, span_len(value));
	p->named = true;
	return p->type->name ? NULL : rt_error_nomem();
}

/* "[name]" */
static struct rt_error *parse_header(struct parser *p, struct span word)
{
	char text[QUOTE_MAX + 4];
	struct span name = { word.start + 1, word.end - 1 };

	if (span_len(word) < 3 || word.end[-1] != ']')
		return spec_error(p, word.start, "'%s' is no type header, expected [name]", quote(word, text));
	/* a header always starts a type, also after lines that have none yet */
	RT_TRY(end_type(p));
	return parse_type_name(p, name);
}

/* "ret!=0" and the like */
static struct rt_error *parse_condition(struct parser *p, struct span value, uint8_t *ret)
{
	static const struct {
		const char *text;
		enum rt_condition condition;
	} table[] = { { "ret!=0", RT_IF_NONZERO },
		      { "ret==0", RT_IF_ZERO },
		      { "ret>0", RT_IF_POSITIVE },
		      { "ret<0", RT_IF_NEGATIVE },
		      { "ret>=0", RT_IF_NOT_NEGATIVE } };
	char text[QUOTE_MAX + 4];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (span_is(value, table[i].text)) {
			*ret = table[i].condition;
			return NULL;
		}
	return spec_error(p, value.start, "unknown condition '%s', expected ret!=0, ret==0, ret>0, ret<0 or ret>=0",
			  quote(value, text));
}

/* A small number, 1 to most. */
static struct rt_error *parse_small(struct parser *p, struct span digits, unsigned most, uint8_t *ret)
{
	char text[QUOTE_MAX + 4];
	uint64_t number;

	if (!rt_parse_u64(digits.start, span_len(digits), 10, &number) || number < 1 || number > most)
		return spec_error(p, digits.start, "'%s' is no number from 1 to %u", quote(digits, text), most);
	*ret = (uint8_t)number;
	return NULL;
}

/* Takes "+8" off. */
static struct rt_error *parse_behind(struct parser *p, struct span *place, struct rt_spec_function *f)
{
	const char *plus = memchr(place->start, '+', span_len(*place));
	struct span digits = { plus ? plus + 1 : place->end, place->end };

	if (!plus)
		return NULL;
	place->end = plus;
	return parse_small(p, digits, UINT8_MAX, &f->behind);
}

/* "1" "*1" "*1+8" "**1" "ret" "*ret" "out*1" */
static struct rt_error *parse_place(struct parser *p, struct span value, struct rt_spec_function *f)
{
	char text[QUOTE_MAX + 4];
	unsigned arg_max = rt_spec_is_marker(f) ? RT_SPEC_MARKER_ARG_MAX : RT_SPEC_ARG_MAX;
	struct span digits = value;
	uint64_t number;

	f->arg = f->levels = 0;
	if (span_is(value, "ret") || span_is(value, "*ret")) {
		f->place = *value.start == '*' ? RT_PLACE_RET_PTR : RT_PLACE_RET;
		return NULL;
	}
	f->place = RT_PLACE_ARG;
	if (!rt_spec_call(f) && span_len(value) && *value.start == '*')
		RT_TRY(parse_behind(p, &digits, f));
	if (span_len(value) > 4 && memcmp(value.start, "out*", 4) == 0) {
		f->place = RT_PLACE_OUT;
		digits.start += 4;
	} else {
		while (digits.start + 1 < digits.end && *digits.start == '*' && f->levels < RT_SPEC_LEVELS_MAX) {
			f->place = RT_PLACE_ARG_PTR;
			f->levels++;
			digits.start++;
		}
	}
	if (!rt_parse_u64(digits.start, span_len(digits), 10, &number))
		return spec_error(p, value.start,
				  "'%s' does not say where the object is, expected N, *N, **N, ret, *ret or out*N",
				  quote(value, text));
	if (f->behind && f->levels > 1)
		return spec_error(p, value.start, "'%s' is too much, expected *N+BYTES", quote(value, text));
	if (number < 1 || number > arg_max)
		return spec_error(p, digits.start, "argument %" PRIu64 " cannot be seen, expected 1 to %u", number,
				  arg_max);
	f->arg = (uint8_t)number;
	return NULL;
}

/* What only a system call's place may have behind it, "[2]", "-2" and "+4": takes it off. */
static struct rt_error *parse_extent(struct parser *p, struct span *place, struct rt_spec_function *f)
{
	for (const char *c = place->start; c < place->end; c++) {
		struct span rest = { c + 1, place->end };

		if (!strchr("[-+", *c))
			continue;
		place->end = c;
		if (*c == '+')
			return parse_small(p, rest, UINT8_MAX, &f->behind);
		if (*c == '[' && (rest.start == rest.end || *--rest.end != ']'))
			return spec_error(p, c, "this '[' is not closed, expected [N]: argument N says how many bytes");
		f->to = *c == '-';
		return parse_small(p, rest, RT_SPEC_ARG_MAX, &f->size_arg);
	}
	return NULL;
}

static struct rt_error *unknown_call(struct parser *p, struct span name)
{
	char text[QUOTE_MAX + 4];
	struct rt_near near = { .wanted = quote(name, text) };
	struct rt_error *err;

	for (size_t i = 0; rt_call_at(i); i++)
		rt_near_offer(&near, rt_call_at(i)->name);
	err = spec_error(p, name.start, "%s is no system call that hands out or takes back descriptors or mappings",
			 text);
	return near.count ? rt_error_fix(err, "did you mean %s%s?", RT_SPEC_CALL, near.names[0]) : err;
}

/* A type's functions are all calls of one kind, or none is one. */
static struct rt_error *check_call(struct parser *p, struct span item, const struct rt_spec_function *f)
{
	const struct rt_call *call = rt_spec_call(f);
	const struct rt_spec_function *first = p->type->functions.len ? &p->type->functions.data[0] : f;
	const struct rt_call *other = rt_spec_call(first);

	if (call && (f->op != RT_OP_NEW && f->op != RT_OP_FREE))
		return spec_error(p, item.start, "a system call can stand in new= and free= only");
	if (call && (f->tail || f->dso || f->place == RT_PLACE_ARG_PTR || f->place == RT_PLACE_RET_PTR))
		return spec_error(p, item.start, "expected sys:NAME[:N, :N[M], :N-M, :ret, :ret[M] or :out*N+BYTES]");
	if (!call != !other || (call && call->kind != other->kind))
		return spec_error(
			p, item.start,
			"one type cannot have %s and %s: its objects are of one kind, expected a type= of its own",
			first->name, f->name);
	return NULL;
}

/* Characters at c that belong to a name of C++ or Rust in any case; 0: none. */
static size_t source_chars(struct rt_name_scan *scan, const char *c)
{
	unsigned depth = scan->depth;
	size_t size = (size_t)(rt_name_step(scan, c) - c);

	for (size_t i = 0; i < size; i++)
		if (iscntrl((unsigned char)c[i]))
			return 0;
	if (depth || scan->depth || size > 1)
		return size;
	/* a digit there is the place of "f::1", which is none */
	if (c > scan->start && scan->end - c > 2 && c[0] == ':' && c[1] == ':' && !isdigit((unsigned char)c[2]) &&
	    (rt_spec_is_name_char(c[2]) || (c[2] && strchr("~<{(*\\", c[2]))))
		return 2;
	return *c == '~';
}

/* Where the name ends: a '?' is part of a glob unless "ret" and a comparison follow. */
static const char *name_end(struct span s)
{
	struct rt_name_scan scan = { .start = s.start, .end = s.end };
	size_t n;

	for (const char *c = s.start; c < s.end; c += n) {
		struct span rest = { c + 1, s.end };

		n = source_chars(&scan, c);
		if (n)
			continue;
		n = 1;
		if (*c == '?' && span_len(rest) >= 4 && memcmp(rest.start, "ret", 3) == 0 && rest.start[3] &&
		    strchr("!=<>", rest.start[3]))
			return c;
		if (!rt_spec_is_name_char(*c) && *c != '*' && *c != '?')
			return c;
	}
	return s.end;
}

/* "sdt:PROVIDER:NAME" and "%GROUP:EVENT" end like a name; item.start itself if it is neither. */
static const char *marker_end(struct span item)
{
	bool kept = span_len(item) && *item.start == *RT_SPEC_KEPT;
	const char *prefix = kept ? RT_SPEC_KEPT : RT_SPEC_MARKER;
	struct span rest = { item.start + strlen(prefix), item.end };
	const char *colon;

	if (span_len(item) <= strlen(prefix) || memcmp(item.start, prefix, strlen(prefix)) != 0)
		return item.start;
	/* a function "sdt" has its argument's number there */
	if (isdigit((unsigned char)*rest.start))
		return item.start;
	colon = name_end(rest);
	if (colon == rest.start || colon == item.end || *colon != ':')
		return item.start;
	rest.start = colon + 1;
	return name_end(rest);
}

/* "sys:NAME" ends like a name, too; item.start itself if it is something else, as a function "sys" with a place. */
static const char *call_end(struct span item)
{
	struct span rest = { item.start + strlen(RT_SPEC_CALL), item.end };
	struct span name;

	if (span_len(item) <= strlen(RT_SPEC_CALL) || memcmp(item.start, RT_SPEC_CALL, strlen(RT_SPEC_CALL)) != 0 ||
	    !isalpha((unsigned char)*rest.start))
		return item.start;
	name = (struct span){ rest.start, name_end(rest) };
	return span_is(name, "ret") || span_is(name, "tail") || (span_len(name) > 3 && !memcmp(name.start, "out*", 4))
		       ? item.start
		       : name.end;
}

static struct rt_error *parse_dso(struct parser *p, struct span *rest, struct rt_spec_function *f)
{
	const char *c = ++rest->start;

	while (c < rest->end && (rt_spec_is_name_char(*c) || *c == '*' || *c == '-' || *c == '+'))
		c++;
	if (c == rest->start)
		return spec_error(p, c, "no file name after '@', expected one like libfoo.so.1");
	f->dso = strndup(rest->start, (size_t)(c - rest->start));
	rest->start = c;
	return f->dso ? NULL : rt_error_nomem();
}

static struct rt_error *check_address(struct parser *p, struct span name, const struct rt_spec_function *f)
{
	char text[QUOTE_MAX + 4];
	uint64_t address;

	if (span_len(name) < 2 || name.start[0] != '0' || name.start[1] != 'x')
		return NULL;
	if (!rt_parse_u64(name.start + 2, span_len(name) - 2, 16, &address))
		return spec_error(p, name.start, "'%s' is no address, expected 0x and hexadecimal digits",
				  quote(name, text));
	if (!f->dso)
		return spec_error(p, name.end, "address %s needs its file, expected %s@FILE", quote(name, text), text);
	return NULL;
}

/* "1:tail", or "tail" alone: takes it off. */
static void parse_tail(struct span *place, struct rt_spec_function *f)
{
	static const char word[] = { ':', 't', 'a', 'i', 'l' };
	size_t len = span_len(*place);

	f->tail = span_is(*place, "tail") ||
		  (len > sizeof(word) && memcmp(place->end - sizeof(word), word, sizeof(word)) == 0);
	if (f->tail)
		place->end -= len > sizeof(word) ? sizeof(word) : len;
}

/* A marker tells its arguments when it is passed; it has no result. */
static struct rt_error *check_marker(struct parser *p, struct span item, const struct rt_spec_function *f)
{
	if ((f->place == RT_PLACE_ARG || f->place == RT_PLACE_ARG_PTR) && f->condition == RT_IF_ALWAYS && !f->tail &&
	    (f->levels < 2 || !rt_spec_is_kept(f)) && !f->behind)
		return NULL;
	if (rt_spec_is_kept(f))
		return spec_error(p, item.start,
				  "a cached definition has its own arguments only, expected "
				  "%%GROUP:EVENT[@FILE][:N or :*N]");
	return spec_error(p, item.start, "a marker has arguments only, expected sdt:PROVIDER:NAME[@FILE][:N or :*N]");
}

/* One function of a list: FN[@DSO][:PLACE][?CONDITION] */
static struct rt_error *parse_function(struct parser *p, struct span item, struct rt_spec_function *f)
{
	char text[QUOTE_MAX + 4];
	const char *marker = marker_end(item), *call = call_end(item);
	struct span rest = { marker > item.start ? marker : call > item.start ? call : name_end(item), item.end };
	struct span name = { item.start, rest.start };

	if (marker > item.start) {
		f->place = RT_PLACE_ARG;
		f->arg = 1;
	}
	if (name.start == name.end)
		return item.start == item.end
			       ? spec_error(p, item.start, "a function name is missing")
			       : spec_error(p, item.start, "a function name is missing before '%s'", quote(item, text));
	f->name = strndup(name.start, span_len(name));
	if (!f->name)
		return rt_error_nomem();
	if (call > item.start && !rt_spec_call(f))
		return unknown_call(p, (struct span){ name.start + strlen(RT_SPEC_CALL), name.end });
	if (rest.start < rest.end && *rest.start == '@')
		RT_TRY(parse_dso(p, &rest, f));
	RT_TRY(check_address(p, name, f));
	if (rest.start < rest.end && *rest.start == ':') {
		struct span place = { rest.start + 1, rest.end };
		const char *question = memchr(place.start, '?', span_len(place));

		if (question)
			place.end = question;
		rest.start = place.end;
		parse_tail(&place, f);
		if (rt_spec_call(f))
			RT_TRY(parse_extent(p, &place, f));
		if (!f->tail || span_len(place))
			RT_TRY(parse_place(p, place, f));
		if (f->tail && f->place != RT_PLACE_ARG)
			return spec_error(p, place.start, ":tail is for objects that are an argument, expected N:tail");
	}
	if (rest.start < rest.end && *rest.start == '?') {
		struct span condition = { rest.start + 1, rest.end };

		RT_TRY(parse_condition(p, condition, &f->condition));
		rest.start = rest.end;
	}
	if (rest.start < rest.end)
		return spec_error(p, rest.start,
				  "unexpected '%s' after the function name, expected @FILE, :PLACE or ?ret",
				  quote(rest, text));
	RT_TRY(check_call(p, item, f));
	return rt_spec_is_marker(f) ? check_marker(p, item, f) : NULL;
}

/* The next comma that is no part of a name; NULL: there is none. */
static const char *find_comma(struct span value)
{
	struct rt_name_scan scan = { .start = value.start, .end = value.end };

	for (const char *c = value.start; c < value.end; c = rt_name_step(&scan, c))
		if (!scan.depth && *c == ',')
			return c;
	return NULL;
}

/* "FN,FN2" or "*" */
static struct rt_error *parse_unverified(struct parser *p, struct span value)
{
	for (;;) {
		const char *comma = find_comma(value);

		if (!rt_vec_push(&p->unverified, ((struct span){ value.start, comma ? comma : value.end })))
			return rt_error_nomem();
		if (!comma)
			return NULL;
		value.start = comma + 1;
	}
}

/* "FN:1,FN2:*1" */
static struct rt_error *parse_functions(struct parser *p, struct span value, enum rt_op op, bool hidden)
{
	bool result = hidden || op == RT_OP_NEW;

	for (;;) {
		struct rt_spec_function f = { .op = (uint8_t)op, .hidden = hidden };
		const char *comma = find_comma(value);
		struct span item = { value.start, comma ? comma : value.end };
		struct rt_error *err;

		f.place = result ? RT_PLACE_RET : RT_PLACE_ARG;
		f.arg = result ? 0 : 1;
		err = parse_function(p, item, &f);
		if (!err && !rt_spec_has_function(p->type, &f)) {
			if (rt_vec_push(&p->type->functions, f))
				f = (struct rt_spec_function){ 0 };
			else
				err = rt_error_nomem();
		}
		free(f.name);
		free(f.dso);
		if (err || !comma)
			return err;
		value.start = comma + 1;
	}
}

static struct rt_error *parse_start(struct parser *p, struct span value)
{
	char text[QUOTE_MAX + 4];
	uint64_t number;

	if (span_is(value, "floating")) {
		p->type->floating = true;
		p->type->start = 1;
		return NULL;
	}
	if (!rt_parse_u64(value.start, span_len(value), 10, &number) || number > INT32_MAX)
		return spec_error(p, value.start, "start='%s' is no count, expected 0, 1, another number, or floating",
				  quote(value, text));
	p->type->floating = false;
	p->type->start = (int32_t)number;
	return NULL;
}

/* "+8" "+8:4" "+0x10" "-16:4" */
static struct rt_error *parse_counter_offset(struct parser *p, struct span value)
{
	char text[QUOTE_MAX + 4];
	const char *colon = memchr(value.start, ':', span_len(value));
	struct span digits = { value.start + 1, colon ? colon : value.end };
	uint64_t offset, size = 4;
	unsigned base = 10;

	if (span_len(digits) > 2 && digits.start[0] == '0' && digits.start[1] == 'x') {
		digits.start += 2;
		base = 16;
	}
	if (!rt_parse_u64(digits.start, span_len(digits), base, &offset) || offset > INT32_MAX)
		return spec_error(p, value.start, "counter='%s' is no offset, expected +BYTES, -BYTES or +BYTES:SIZE",
				  quote(value, text));
	if (colon && (!rt_parse_u64(colon + 1, (size_t)(value.end - colon - 1), 10, &size) ||
		      (size != 1 && size != 2 && size != 4 && size != 8)))
		return spec_error(p, colon + 1, "a counter has 1, 2, 4 or 8 bytes, not '%s'",
				  quote((struct span){ colon + 1, value.end }, text));
	/* one that begins within its size before the object would lie in both */
	if (*value.start == '-' && offset < size)
		return spec_error(p, value.start, "counter='%s' does not end before the object", quote(value, text));
	p->type->counter_offset = *value.start == '-' ? -(int32_t)offset : (int32_t)offset;
	p->type->counter_size = (uint32_t)size;
	return NULL;
}

static struct rt_error *parse_counter(struct parser *p, struct span value)
{
	char text[QUOTE_MAX + 4];
	const char *dot, *c = value.start;

	if (c < value.end && (*c == '+' || *c == '-'))
		return parse_counter_offset(p, value);
	while (c < value.end && rt_spec_is_name_char(*c))
		c++;
	dot = memchr(value.start, '.', span_len(value));
	if (c < value.end || !dot || dot == value.start || dot + 1 == value.end)
		return spec_error(
			p, value.start,
			"counter='%s' names no field, expected STRUCT.MEMBER, +OFFSET[:BYTES] or -OFFSET[:BYTES]",
			quote(value, text));
	free(p->type->counter_struct);
	free(p->type->counter_member);
	p->type->counter_struct = strndup(value.start, (size_t)(dot - value.start));
	p->type->counter_member = strndup(dot + 1, (size_t)(value.end - dot - 1));
	return p->type->counter_struct && p->type->counter_member ? NULL : rt_error_nomem();
}

static struct rt_error *parse_class(struct parser *p, struct span value)
{
	char text[QUOTE_MAX + 4];

	size_t at = 0;

	if (!rt_class_path_parse(value.start, span_len(value), &p->type->path, &at))
		return spec_error(p, value.start + at,
				  "class='%s' is not understood here, expected +N[>+N...][:FN] or vtable",
				  quote(value, text));
	free(p->type->klass);
	p->type->klass = strndup(value.start, span_len(value));
	return p->type->klass ? NULL : rt_error_nomem();
}

/* "glib,dbus" */
static struct rt_error *parse_preset(struct parser *p, struct span value)
{
	char text[QUOTE_MAX + 4];

	if (!p->includes)
		return spec_error(p, value.start, "preset= is not understood here");
	while (value.start <= value.end) {
		const char *comma = memchr(value.start, ',', span_len(value)), *c = value.start;
		struct span item = { value.start, comma ? comma : value.end };
		char *name;

		while (c < item.end && (rt_spec_is_name_char(*c) || *c == '-'))
			c++;
		if (c < item.end || item.start == item.end || *item.start == '.')
			return spec_error(p, c, "'%s' is no name of a preset", quote(item, text));
		name = strndup(item.start, span_len(item));
		if (!name || !rt_vec_push(&p->includes->names, name)) {
			free(name);
			return rt_error_nomem();
		}
		value.start = item.end + 1;
	}
	return NULL;
}

static struct rt_error *unknown_key(struct parser *p, struct span key)
{
	char text[QUOTE_MAX + 4];
	struct rt_near near = { .wanted = quote(key, text) };
	struct rt_error *err;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		rt_near_offer(&near, keys[i]);
	err = spec_error(p, key.start, "unknown key '%s', expected one of %s", text, KEYS_TEXT);
	return near.count ? rt_error_fix(err, "did you mean %s=?", near.names[0]) : err;
}

static struct rt_error *parse_word(struct parser *p, struct span word)
{
	char text[QUOTE_MAX + 4];
	const char *equals = memchr(word.start, '=', span_len(word));
	struct span key = { word.start, equals ? equals : word.end },
		    value = { equals ? equals + 1 : word.end, word.end };
	enum rt_op op = rt_op_parse(key.start, span_len(key));
	size_t i = 0;

	if (*word.start == '[')
		return parse_header(p, word);
	if (!equals)
		return spec_error(p, word.start, "'%s' is no KEY=VALUE word", quote(word, text));
	while (i < sizeof(keys) / sizeof(keys[0]) && !span_is(key, keys[i]))
		i++;
	if (i == sizeof(keys) / sizeof(keys[0]))
		return unknown_key(p, key);
	if (value.start == value.end)
		return spec_error(p, value.start, "nothing after '%s='", keys[i]);
	if (span_is(key, "type"))
		return parse_type_name(p, value);
	if (span_is(key, "preset"))
		return parse_preset(p, value);
	if (!p->type)
		RT_TRY(begin_type(p, word.start));
	if (span_is(key, "start"))
		return parse_start(p, value);
	if (span_is(key, "counter"))
		return parse_counter(p, value);
	if (span_is(key, "class"))
		return parse_class(p, value);
	if (span_is(key, "unverified"))
		return parse_unverified(p, value);
	if (span_is(key, "hidden"))
		return parse_functions(p, value, RT_OP_GET, true);
	return parse_functions(p, value, op, false);
}

static struct rt_error *parse_text(struct parser *p)
{
	const char *c = p->text;

	while (c < p->end) {
		struct rt_name_scan scan = { .start = c, .end = p->end };
		struct span word;

		if (*c == '#') {
			while (c < p->end && *c != '\n')
				c++;
			continue;
		}
		if (isspace((unsigned char)*c)) {
			c++;
			continue;
		}
		word.start = c;
		/* blanks in a list of parameters, and Rust's {closure#0}, are no end */
		while (c < p->end && *c != '\n' && (scan.depth || (!isspace((unsigned char)*c) && *c != '#')))
			c = rt_name_step(&scan, c);
		if (scan.depth)
			return spec_error(p, scan.opened, "this bracket is not closed");
		word.end = c;
		RT_TRY(parse_word(p, word));
	}
	RT_TRY(end_type(p));
	if (!p->spec.types.len && !(p->includes && p->includes->names.len))
		return spec_error(p, p->end, "nothing is named, expected words like get=FN:1 put=FN:1");
	return NULL;
}

struct rt_error *rt_spec_parse(const char *text, size_t len, const char *origin, struct rt_spec *spec)
{
	return rt_spec_parse_including(text, len, origin, spec, NULL);
}

struct rt_error *rt_spec_parse_including(const char *text, size_t len, const char *origin, struct rt_spec *spec,
					 struct rt_spec_includes *includes)
{
	struct parser p = { .text = text, .end = text + len, .origin = origin, .includes = includes };
	struct rt_error *err = parse_text(&p);

	if (!err)
		err = rt_spec_join(spec, &p.spec);
	rt_spec_deinit(&p.spec);
	rt_vec_deinit(&p.unverified);
	return err;
}
