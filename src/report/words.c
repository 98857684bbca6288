/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/words.h"

#include <string.h>

#include "report/utf8.h"

const char *rt_finding_word(enum rt_finding_kind kind)
{
	switch (kind) {
	case RT_LEAK:
		return "leak";
	case RT_EXTRA_PUT:
		return "extra-put";
	case RT_USE_AFTER_PUT:
		return "use-after-put";
	case RT_RACY_UPDATE:
		return "racy-update";
	}
	return "leak";
}

const char *rt_role_word(enum rt_role role)
{
	switch (role) {
	case RT_ROLE_MISSING_PUT:
		return "missing-put";
	case RT_ROLE_EXTRA_GET:
		return "extra-get";
	case RT_ROLE_EXTRA_PUT:
		return "extra-put";
	case RT_ROLE_USE:
		return "use";
	case RT_ROLE_RACY_UPDATE:
		return "racy-update";
	}
	return "missing-put";
}

const char *rt_confidence_word(double confidence)
{
	return confidence >= RT_CERTAIN ? "certain" : confidence >= RT_LIKELY ? "likely" : "possible";
}

/* Characters that move the cursor, hide text or turn its direction. */
static bool harmful(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

const char *rt_clean(struct rt_arena *arena, const char *text)
{
	size_t need = 1;
	char *copy, *at;
	uint32_t c;

	if (!text)
		return "";
	for (const char *p = text; *p;) {
		size_t len = rt_utf8_next(p, &c);

		need += !len ? 4 : harmful(c) ? 12 : len;
		p += len ? len : 1;
	}
	copy = at = rt_arena_alloc(arena, need);
	if (!copy)
		return "";
	for (const char *p = text; *p;) {
		size_t len = rt_utf8_next(p, &c);
		size_t left = need - (size_t)(at - copy);

		if (!len || (harmful(c) && c < 0x80)) {
			at += snprintf(at, left, "\\x%02x", c & 0xff);
		} else if (harmful(c)) {
			at += snprintf(at, left, "\\u{%x}", c);
		} else {
			memcpy(at, p, len);
			at += len;
		}
		p += len ? len : 1;
	}
	return copy;
}

size_t rt_columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Bytes of the first n characters. */
static size_t prefix(const char *text, size_t n)
{
	size_t i = 0;

	while (text[i] && (n || ((unsigned char)text[i] & 0xc0) == 0x80)) {
		n -= ((unsigned char)text[i] & 0xc0) != 0x80;
		i++;
	}
	return i;
}

const char *rt_shorten(struct rt_arena *arena, const char *text, size_t max)
{
	size_t columns = rt_columns(text), head, tail;

	if (columns <= max)
		return text;
	if (max < 5)
		return rt_arena_strndup(arena, text, prefix(text, max)) ?: "";
	head = (max - 3) / 3;
	tail = max - 3 - head;
	return rt_format(arena, "%.*s...%s", (int)prefix(text, head), text, text + prefix(text, columns - tail));
}

const char *rt_cut(struct rt_arena *arena, const char *text, size_t max)
{
	if (rt_columns(text) <= max)
		return text;
	if (max < 4)
		return rt_arena_strndup(arena, text, prefix(text, max)) ?: "";
	return rt_format(arena, "%.*s...", (int)prefix(text, max - 3), text);
}

const char *rt_clean_code(struct rt_arena *arena, const char *text)
{
	enum { TAB = 4 };
	size_t n = 0, column = 0;
	char *wide = rt_arena_alloc(arena, strlen(text) * TAB + 1);

	if (!wide)
		return "";
	for (; *text && *text != '\r'; text++) {
		if (*text == '\t') {
			do {
				wide[n++] = ' ';
			} while (++column % TAB);
		} else {
			wide[n++] = *text;
			column += ((unsigned char)*text & 0xc0) != 0x80;
		}
	}
	while (n && wide[n - 1] == ' ')
		n--;
	wide[n] = 0;
	return rt_clean(arena, wide);
}

const char *rt_format(struct rt_arena *arena, const char *format, ...)
{
	const char *text;
	va_list args;

	va_start(args, format);
	text = rt_arena_vprintf(arena, format, args);
	va_end(args);
	return text ? text : "";
}

const char *rt_bytes_text(struct rt_arena *arena, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024)
		return rt_format(arena, "%u B", (unsigned)bytes);
	for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		value /= 1024;
	return rt_format(arena, "%.1f %s", value, units[unit]);
}

const char *rt_duration_text(struct rt_arena *arena, uint64_t ns)
{
	if (ns < 1000000)
		return rt_format(arena, "%.1f us", (double)ns / 1e3);
	if (ns < 100000000)
		return rt_format(arena, "%.1f ms", (double)ns / 1e6);
	if (ns < UINT64_C(120000000000))
		return rt_format(arena, "%.1f s", (double)ns / 1e9);
	return rt_format(arena, "%llu min %llu s", (unsigned long long)(ns / UINT64_C(60000000000)),
			 (unsigned long long)(ns / 1000000000 % 60));
}

const char *rt_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

const char *rt_type_text(struct rt_arena *arena, const char *type, const char *klass)
{
	if (klass)
		return rt_format(arena, "struct %s [%s]", rt_clean(arena, type), rt_clean(arena, klass));
	return rt_format(arena, "struct %s", rt_clean(arena, type));
}

const char *rt_place_text(struct rt_arena *arena, const struct rt_frame *frame)
{
	if (frame->function && *frame->function)
		return rt_clean(arena, frame->function);
	if (frame->module && *frame->module)
		return rt_format(arena, "%s+0x%llx", rt_clean(arena, rt_basename(frame->module)),
				 (unsigned long long)frame->address);
	return rt_format(arena, "0x%llx", (unsigned long long)frame->address);
}

size_t rt_unwound_notes(struct rt_arena *arena, const struct rt_unwound *stacks, const char *ret[RT_UNWOUND_NOTES])
{
	unsigned long long all = stacks->samples;
	size_t n = 0;

	if (stacks->foreign)
		ret[n++] = rt_format(
			arena,
			"%llu of %llu copied stacks are not of x86-64 code: their callers are not shown; perf "
			"report on a machine of that kind shows them",
			(unsigned long long)stacks->foreign, all);
	if (stacks->no_rows)
		ret[n++] = rt_format(arena,
				     "%llu of %llu copied stacks end at code without unwind information: .eh_frame is "
				     "missing, or the file is (reftrace archive keeps it)",
				     (unsigned long long)stacks->no_rows, all);
	if (stacks->short_copy)
		ret[n++] = rt_format(arena,
				     "%llu of %llu copied stacks end with what was copied; more: record --call-graph "
				     "dwarf,61440",
				     (unsigned long long)stacks->short_copy, all);
	if (stacks->too_deep)
		ret[n++] = rt_format(arena, "%llu of %llu copied stacks have more callers than the 127 that are shown",
				     (unsigned long long)stacks->too_deep, all);
	return n;
}
