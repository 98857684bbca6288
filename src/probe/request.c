/* SPDX-License-Identifier: GPL-2.0-only */
/* The point of a definition; its arguments are in request_argument.c. */
#include "base/text.h"
#include "probe/request_build.h"
#include "probe/source_name.h"
#include "probe/spec.h"

#include <ctype.h>
#include <string.h>

enum { TEXT_MAX = 4096 };

struct rt_error *rt_request_fault(const struct rt_scanner *s, const char *at, const char *fix, const char *format, ...)
{
	_cleanup_free_ char *why = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&why, format, ap);
	va_end(ap);
	if (n < 0) {
		why = NULL;
		return rt_error_nomem();
	}
	return rt_error_fix(rt_error_new(RT_E_SPEC, "probe definition '%s', column %zu: %s", s->text,
					 (size_t)(at - s->text) + 1, why),
			    "%s", fix);
}

char *rt_scanner_copy(struct rt_scanner *s, const char *at, size_t len)
{
	char *copy = rt_arena_strndup(&s->request->arena, at, len), *out = copy;

	for (size_t i = 0; copy && i < len; i++) {
		if (at[i] == '\\' && i + 1 < len)
			i++;
		*out++ = at[i];
	}
	if (copy)
		*out = '\0';
	return copy;
}

/* Number behind a sign or colon: decimal or 0x. */
struct rt_error *rt_scanner_number(struct rt_scanner *s, const char *what, uint64_t max, uint64_t *ret)
{
	const char *start = s->at, *digits = start;
	unsigned base = 10;
	uint64_t v = 0;

	if (digits[0] == '0' && (digits[1] | 32) == 'x') {
		digits += 2;
		base = 16;
	}
	while (base == 16 ? isxdigit((unsigned char)*s->at) || s->at < digits : isdigit((unsigned char)*s->at))
		s->at++;
	if (!rt_parse_u64(digits, (size_t)(s->at - digits), base, &v) || v > max)
		return rt_request_fault(s, start, "a number such as 12 or 0x1f", "%s is no number, or too large", what);
	*ret = v;
	return NULL;
}

/* A function's name as a pattern for rt_glob_match(), where it is one. */
static char *copy_pattern(struct rt_scanner *s, const char *at, size_t len, bool *ret_is_glob)
{
	char *copy = rt_arena_alloc(&s->request->arena, 2 * len + 1);

	if (copy)
		rt_source_pattern(at, len, copy, ret_is_glob);
	return copy && !*ret_is_glob ? rt_scanner_copy(s, at, len) : copy;
}

/* A name up to one of the characters of stop, or a blank; "::" belongs to it, and what is in brackets. */
static struct rt_error *scan_name(struct rt_scanner *s, const char *stop, const char **ret, bool *ret_is_glob)
{
	const char *start = s->at;
	struct rt_name_scan scan = { .start = start, .end = start + strlen(start), .classes = true };

	while (*s->at) {
		const char *behind = rt_name_step(&scan, s->at);

		if (!scan.depth && behind == s->at + 1) {
			if (s->at[0] == ':' && s->at[1] == ':')
				behind++;
			else if (*s->at == ' ' || *s->at == '\t' || strchr(stop, *s->at))
				break;
		}
		s->at = behind;
	}
	if (scan.depth)
		return rt_request_fault(s, scan.opened, "a name with a bracket alone needs a backslash: name\\<",
					"this bracket is not closed");
	if (s->at == start)
		return rt_request_fault(s, start, "FUNC, FILE:LINE, 0xADDRESS or sdt_PROVIDER:NAME",
					"a name is missing here");
	*ret = ret_is_glob ? copy_pattern(s, start, (size_t)(s->at - start), ret_is_glob)
			   : rt_scanner_copy(s, start, (size_t)(s->at - start));
	return *ret ? NULL : rt_error_nomem();
}

/* The characters that end a word; escapes and brackets count as in scan_name(). */
static size_t word_length(const char *at)
{
	struct rt_name_scan scan = { .start = at, .end = at + strlen(at), .classes = true };
	const char *c = at;

	while (*c && (scan.depth || (*c != ' ' && *c != '\t')))
		c = rt_name_step(&scan, c);
	return (size_t)(c - at);
}

static struct rt_error *check_name(struct rt_scanner *s, const char *at, size_t len, const char *what)
{
	if (!len || rt_identifier_length(at) < len)
		return rt_request_fault(s, at, "letters, digits and _, no digit first",
					"the kernel takes this for no name of %s", what);
	if (len > RT_REQUEST_NAME_MAX)
		return rt_request_fault(s, at, "a shorter one", "the name of %s is longer than %d characters", what,
					RT_REQUEST_NAME_MAX);
	return NULL;
}

/* "[GROUP:]EVENT=": perf takes it for that when '=' comes before the other marks */
static struct rt_error *parse_event(struct rt_scanner *s)
{
	size_t len = word_length(s->at), n = 0;
	const char *at = s->at, *colon;

	while (n < len && !strchr(";=@+%<(", at[n]))
		n += 1 + (at[n] == '\\' && n + 1 < len);
	if (n >= len || at[n] != '=')
		return NULL;
	colon = memchr(at, ':', n);
	if (colon) {
		RT_TRY(check_name(s, at, (size_t)(colon - at), "a group"));
		s->request->group = rt_scanner_copy(s, at, (size_t)(colon - at));
		if (!s->request->group)
			return rt_error_nomem();
		n -= (size_t)(colon + 1 - at);
		at = colon + 1;
	}
	RT_TRY(check_name(s, at, n, "an event"));
	s->request->event = rt_scanner_copy(s, at, n);
	s->at = at + n + 1;
	return s->request->event ? NULL : rt_error_nomem();
}

static struct rt_error *parse_marker(struct rt_scanner *s)
{
	struct rt_request *r = s->request;
	const char *start = s->at + (*s->at == '%'), *colon = strchr(start, ':');
	const char *prefix = strncmp(start, "sdt_", 4) ? start : start + 4;
	size_t len = word_length(start);

	r->cached = *s->at == '%';
	/* "%EVENT": one of the cache's own, whatever its group */
	if (r->cached && len && (!colon || colon >= start + len)) {
		r->kind = RT_REQUEST_MARKER;
		r->function = rt_scanner_copy(s, start, len);
		s->at = start + len;
		return r->function ? NULL : rt_error_nomem();
	}
	if (!colon || colon >= start + len || colon == prefix || colon + 1 == start + len)
		return rt_request_fault(s, start, "%sdt_PROVIDER:NAME; list them: reftrace probe markers FILE",
					"a marker has a provider and a name");
	r->kind = RT_REQUEST_MARKER;
	r->provider = rt_scanner_copy(s, prefix, (size_t)(colon - prefix));
	r->function = rt_scanner_copy(s, colon + 1, (size_t)(start + len - colon - 1));
	s->at = start + len;
	return r->provider && r->function ? NULL : rt_error_nomem();
}

static struct rt_error *parse_pattern(struct rt_scanner *s)
{
	const char *start = s->at, *end;

	if (*start == '"') {
		end = strchr(++start, '"');
		if (!end)
			return rt_request_fault(s, start - 1, "put one at its end",
						"this quotation mark is not closed");
		s->at = end + 1;
	} else {
		end = start + word_length(start);
		s->at = end;
	}
	/* with its backslashes: what they stand before is no sign of the pattern */
	s->request->pattern = rt_arena_strndup(&s->request->arena, start, (size_t)(end - start));
	if (!s->request->pattern)
		return rt_error_nomem();
	if (!s->request->pattern[strspn(s->request->pattern, " \t")])
		return rt_request_fault(s, start, "such as ;*refs++* (blanks do not count)",
					"a pattern is missing here");
	return NULL;
}

/* What may stand behind a function. Two of +, %return, : and ; contradict each other. */
static struct rt_error *parse_behind(struct rt_scanner *s)
{
	struct rt_request *r = s->request;
	bool placed = false;
	uint64_t v = 0;

	for (char mark; (mark = *s->at) && mark != ' ' && mark != '\t';) {
		const char *at = s->at++;

		if (mark == '@') {
			if (r->file)
				return rt_request_fault(s, at, "one @FILE", "there are two files");
			RT_TRY(scan_name(s, "+%:;@=", &r->file, NULL));
			continue;
		}
		if (placed)
			return rt_request_fault(s, at, "one of +OFFSET, %return, :LINE and ;PATTERN",
						"the place was told already");
		placed = true;
		switch (mark) {
		case '+':
			RT_TRY(rt_scanner_number(s, "the offset", INT64_MAX, &r->offset));
			break;
		case ':':
			RT_TRY(rt_scanner_number(s, "the line", INT32_MAX, &v));
			r->line = (uint32_t)v;
			r->has_line = true;
			break;
		case ';':
			RT_TRY(parse_pattern(s));
			break;
		case '%':
			if (strncmp(s->at, "return", 6) != 0)
				return rt_request_fault(s, at, "FUNC%return", "only %%return can stand here");
			s->at += 6;
			r->at_return = true;
			break;
		default:
			return rt_request_fault(s, at, "a backslash before it makes it a part of the name",
						"'%c' cannot stand here", mark);
		}
	}
	return NULL;
}

/* As strcspn(); what has a backslash before it is not one of stop. */
static size_t unescaped(const char *at, const char *stop)
{
	size_t n = 0;

	while (at[n] && !strchr(stop, at[n]))
		n += 1 + (at[n] == '\\' && at[n + 1]);
	return n;
}

/* As perf tells them apart: a file has a dot or a slash, none of "+@%", and a line or pattern behind it. */
static bool is_file(const char *at)
{
	size_t len = word_length(at), name = unescaped(at, ":;");

	if (name >= len || (at[name] == ':' && at[name + 1] == ':'))
		return false;
	return unescaped(at, "+@%") > name && (strcspn(at, ".") < name || strcspn(at, "/") < name);
}

static struct rt_error *parse_file(struct rt_scanner *s)
{
	struct rt_request *r = s->request;
	uint64_t v = 0;

	RT_TRY(scan_name(s, ":;", &r->file, NULL));
	if (*s->at != ':' && *s->at != ';')
		return rt_request_fault(s, s->at, "FILE:LINE or FILE;PATTERN", "a line is missing here");
	if (*s->at++ == ';') {
		r->kind = RT_REQUEST_SOURCE;
		return parse_pattern(s);
	}
	r->kind = RT_REQUEST_LINE;
	RT_TRY(rt_scanner_number(s, "the line", INT32_MAX, &v));
	r->line = (uint32_t)v;
	if (!v)
		return rt_request_fault(s, s->at - 1, "FILE:1 or more", "lines of a file begin with 1");
	return NULL;
}

static struct rt_error *parse_point(struct rt_scanner *s)
{
	struct rt_request *r = s->request;
	const char *name = s->at;
	size_t sdt = strncmp(name, "sdt_", 4) ? 0 : unescaped(name, ":; \t@+%");

	if (*name == '%' || (sdt && name[sdt] == ':' && name[sdt + 1] != ':' && !isdigit((unsigned char)name[sdt + 1])))
		return parse_marker(s);
	if (name[0] == '0' && (name[1] | 32) == 'x') {
		r->kind = RT_REQUEST_ADDRESS;
		return rt_scanner_number(s, "the address", UINT64_MAX, &r->offset);
	}
	if (is_file(name))
		return parse_file(s);
	r->kind = RT_REQUEST_FUNCTION;
	RT_TRY(scan_name(s, "+%:;@=", &r->function, &r->is_glob));
	return parse_behind(s);
}

struct rt_error *rt_request_parse(const char *text, struct rt_request *ret)
{
	struct rt_scanner s = { .request = ret };

	*ret = (struct rt_request){ .kind = RT_REQUEST_FUNCTION };
	if (strnlen(text, TEXT_MAX) == TEXT_MAX)
		return rt_error_new(RT_E_LIMIT, "a probe definition is longer than %d characters", TEXT_MAX);
	s.text = s.at = ret->text = rt_arena_strndup(&ret->arena, text, strlen(text));
	if (!s.text)
		return rt_error_nomem();
	for (const char *c = s.text; *c; c++)
		if (iscntrl((unsigned char)*c) && *c != '\t')
			return rt_request_fault(&s, c, "text on one line",
						"a control character is no part of a definition");
	s.at += strspn(s.at, " \t");
	RT_TRY(parse_event(&s));
	RT_TRY(parse_point(&s));
	if (*s.at && *s.at != ' ' && *s.at != '\t')
		return rt_request_fault(&s, s.at, "a blank before the arguments", "'%c' cannot stand here", *s.at);
	for (s.at += strspn(s.at, " \t"); *s.at; s.at += strspn(s.at, " \t"))
		RT_TRY(rt_request_parse_argument(&s));
	return NULL;
}

void rt_request_deinit(struct rt_request *request)
{
	rt_vec_deinit(&request->arguments);
	rt_arena_deinit(&request->arena);
}
