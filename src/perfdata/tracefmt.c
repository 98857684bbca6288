/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * "print fmt" is a C format string and C expressions. Those of probes and of most tracepoints only name fields:
 * REC->name, casts of it, __get_str(name). These are printed as C would; everything else is left to name=value.
 * Two passes over the format, the first one without output, so that nothing is half printed.
 */
#include <string.h>

#include "base/text.h"
#include "perfdata/tracing.h"

enum { WIDTH_DIGITS = 3 };
#define NO_PRECISION UINT32_MAX

struct conversion {
	char flags[8];
	unsigned width;
	unsigned precision; /* or NO_PRECISION */
	bool wide;          /* l, ll, L: 64 bits */
	char type;
};

struct print {
	const struct rt_tracing *tracing;
	const struct rt_trace_event *event;
	struct rt_bytes raw;
	struct rt_sink *out; /* NULL in the first pass */
};

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void print_text(struct rt_sink *out, struct rt_bytes text, const struct conversion *cv)
{
	size_t len = text.size < cv->precision ? text.size : cv->precision;
	size_t pad = len < cv->width ? cv->width - len : 0;
	bool left = strchr(cv->flags, '-');

	for (size_t i = 0; !left && i < pad; i++)
		rt_sink_write(out, " ", 1);
	for (size_t i = 0; i < len; i++) {
		char c = (char)text.data[i];

		if ((unsigned char)c < ' ' || c == 0x7f)
			c = '.';
		rt_sink_write(out, &c, 1);
	}
	for (size_t i = 0; left && i < pad; i++)
		rt_sink_write(out, " ", 1);
}

static void print_number(struct rt_sink *out, uint64_t value, const struct conversion *cv)
{
	char spec[24], text[2100];
	char c = (char)value;
	int n;

	if (cv->type == 'c') {
		print_text(out, rt_bytes_make(&c, 1), cv);
		return;
	}
	if (cv->type == 'p') {
		rt_sink_printf(out, "0x%llx", (unsigned long long)value);
		return;
	}
	if (!cv->wide)
		value = cv->type == 'd' || cv->type == 'i' ? (uint64_t)(int32_t)value : (uint32_t)value;
	/* a negative precision counts as none */
	snprintf(spec, sizeof(spec), "%%%s*.*ll%c", cv->flags, cv->type);
	n = snprintf(text, sizeof(text), spec, (int)cv->width, cv->precision == NO_PRECISION ? -1 : (int)cv->precision,
		     (unsigned long long)value);
	if (n > 0)
		rt_sink_write(out, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static bool take_digits(const char **at, unsigned *ret)
{
	size_t len = strspn(*at, "0123456789");
	uint64_t value = 0;

	if (len > WIDTH_DIGITS || (len && !rt_parse_u64(*at, len, 10, &value)))
		return false;
	*at += len;
	*ret = (unsigned)value;
	return true;
}

/* What stands behind a '%'. false: none that we know ("%pS", "%*d"). */
static bool take_conversion(const char **at, struct conversion *cv)
{
	size_t flags = strspn(*at, "-+ #0");

	memset(cv, 0, sizeof(*cv));
	if (flags >= sizeof(cv->flags))
		return false;
	memcpy(cv->flags, *at, flags);
	*at += flags;
	cv->precision = NO_PRECISION;
	if (!take_digits(at, &cv->width))
		return false;
	if (**at == '.') {
		++*at;
		if (!take_digits(at, &cv->precision))
			return false;
	}
	for (; **at && strchr("hlLzjt", **at); ++*at)
		cv->wide = cv->wide || **at != 'h';
	if (!**at || !strchr("diuxXocsp", **at))
		return false;
	cv->type = *(*at)++;
	return cv->type != 'p' || !is_name(**at);
}

struct span {
	const char *at, *end;
};

static struct span trimmed(struct span s)
{
	while (s.at < s.end && *s.at == ' ')
		s.at++;
	while (s.end > s.at && s.end[-1] == ' ')
		s.end--;
	return s;
}

/* The next argument, up to a comma outside of brackets and strings. */
static struct span take_argument(const char **at)
{
	struct span s = { *at, *at };
	unsigned depth = 0;
	bool quoted = false;

	for (; *s.end && (depth || quoted || *s.end != ','); s.end++) {
		if (*s.end == '"')
			quoted = !quoted;
		else if (quoted && *s.end == '\\' && s.end[1])
			s.end++;
		else if (!quoted && strchr("([{", *s.end))
			depth++;
		else if (!quoted && depth && strchr(")]}", *s.end))
			depth--;
		else if (!quoted && !depth && *s.end == '\n')
			break;
	}
	*at = *s.end == ',' ? s.end + 1 : s.end;
	return trimmed(s);
}

/* Takes casts and the brackets around the whole off an expression. false: it is neither. */
static bool unwrap(struct span *s)
{
	const char *close = s->at + 1;
	unsigned depth = 1;
	bool type = true;

	for (; close < s->end; close++) {
		depth += *close == '(';
		depth -= *close == ')';
		if (!depth)
			break;
		type = type && (is_name(*close) || *close == ' ' || *close == '*');
	}
	if (close == s->end)
		return false;
	if (close + 1 == s->end)
		*s = trimmed((struct span){ s->at + 1, close });
	else if (type)
		*s = trimmed((struct span){ close + 1, s->end });
	else
		return false;
	return true;
}

/* The field that an argument names; NULL when it does more. */
static const struct rt_trace_field *resolve(const struct print *p, struct span s)
{
	static const struct {
		const char *open, *close;
	} forms[] = { { "REC->", "" }, { "__get_str(", ")" }, { "__get_rel_str(", ")" } };

	while (s.at < s.end && *s.at == '(') {
		if (!unwrap(&s))
			return NULL;
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t open = strlen(forms[i].open), close = strlen(forms[i].close), len = (size_t)(s.end - s.at);
		struct span name = { s.at + open, s.end - close };

		if (len <= open + close || memcmp(s.at, forms[i].open, open) || memcmp(name.end, forms[i].close, close))
			continue;
		name = trimmed(name);
		for (size_t n = 0; n < p->event->field_count; n++) {
			const struct rt_trace_field *f = &p->event->fields[n];

			if (strlen(f->name) == (size_t)(name.end - name.at) &&
			    !memcmp(f->name, name.at, strlen(f->name)))
				return f;
		}
	}
	return NULL;
}

/* One argument by one conversion. false: they do not fit. */
static bool print_argument(const struct print *p, const struct conversion *cv, const struct rt_trace_field *f)
{
	struct rt_bytes text;
	uint64_t value;

	if (!f || f->is_array || f->is_text != (cv->type == 's'))
		return false;
	if (!p->out)
		return true;
	if (f->is_text ? !rt_trace_bytes(p->tracing, f, p->raw, &text)
		       : !rt_trace_number(p->tracing, f, p->raw, &value))
		rt_sink_puts(p->out, "?");
	else if (f->is_text)
		print_text(p->out, text, cv);
	else
		print_number(p->out, value, cv);
	return true;
}

static void print_char(const struct print *p, char c)
{
	if (p->out)
		rt_sink_write(p->out, &c, 1);
}

/* The end of the string literal that starts at text; NULL: there is none. */
static const char *literal_end(const char *text)
{
	if (*text != '"')
		return NULL;
	for (text++; *text && *text != '"'; text++) {
		if (*text == '\\' && text[1])
			text++;
	}
	return *text ? text : NULL;
}

/* One pass over the format. false: it does more than name fields. */
static bool run(const struct print *p)
{
	const char *end = literal_end(p->event->format), *args = end ? end + 1 + strspn(end + 1, " \n") : NULL;

	if (!end || (*args && *args != ','))
		return false;
	args += *args == ',';
	for (const char *at = p->event->format + 1; at < end;) {
		struct conversion cv;

		if (*at == '\\') { /* \n and the like are blanks on our one line */
			at++;
			print_char(p, *at == '"' || *at == '\\' ? *at : ' ');
			at++;
		} else if (*at != '%') {
			print_char(p, *at++);
		} else if (at[1] == '%') {
			print_char(p, '%');
			at += 2;
		} else {
			at++;
			if (!take_conversion(&at, &cv) || !print_argument(p, &cv, resolve(p, take_argument(&args))))
				return false;
		}
	}
	return !*args || *args == '\n'; /* nothing is left over */
}

static void print_field(const struct print *p, const struct rt_trace_field *f)
{
	static const struct conversion as_is = { .precision = NO_PRECISION };
	struct rt_bytes bytes;
	uint64_t value;

	rt_sink_printf(p->out, " %s=", f->name);
	if (!f->is_text && rt_trace_number(p->tracing, f, p->raw, &value)) {
		if (f->is_address)
			rt_sink_printf(p->out, "0x%llx", (unsigned long long)value);
		else
			rt_sink_printf(p->out, f->is_signed ? "%lld" : "%llu", (unsigned long long)value);
	} else if (!rt_trace_bytes(p->tracing, f, p->raw, &bytes)) {
		rt_sink_puts(p->out, "?");
	} else if (f->is_text) {
		print_text(p->out, bytes, &as_is);
	} else {
		rt_sink_puts(p->out, "ARRAY[");
		for (size_t i = 0; i < bytes.size; i++)
			rt_sink_printf(p->out, "%s%02x", i ? ", " : "", bytes.data[i]);
		rt_sink_puts(p->out, "]");
	}
}

void rt_trace_print(const struct rt_tracing *tracing, const struct rt_trace_event *event, struct rt_bytes raw,
		    struct rt_sink *out)
{
	struct print p = { .tracing = tracing, .event = event, .raw = raw };
	bool simple = run(&p);

	p.out = out;
	if (simple && run(&p))
		return;
	for (size_t i = 0; i < event->field_count; i++) {
		if (!event->fields[i].is_common)
			print_field(&p, &event->fields[i]);
	}
}
