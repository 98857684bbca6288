/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/json_writer.h"

#include <math.h>
#include <string.h>

#include "report/utf8.h"

/* The outer levels get a line for each element, so that people and diff can read it. */
enum { LINE_DEPTH = 2 };

void rt_json_init(struct rt_json *json, struct rt_sink *sink)
{
	*json = (struct rt_json){ .sink = sink };
}

static void quoted(struct rt_json *json, const char *text)
{
	rt_sink_puts(json->sink, "\"");
	while (*text) {
		uint32_t c;
		size_t len = rt_utf8_next(text, &c);

		if (!len) {
			rt_sink_puts(json->sink, "\xef\xbf\xbd");
			len = 1;
		} else if (c == '"' || c == '\\') {
			rt_sink_printf(json->sink, "\\%c", (char)c);
		} else if (c < 0x20 || c == 0x7f) {
			rt_sink_printf(json->sink, "\\u%04x", c);
		} else {
			rt_sink_write(json->sink, text, len);
		}
		text += len;
	}
	rt_sink_puts(json->sink, "\"");
}

static void indent(struct rt_json *json)
{
	if (!json->depth || json->depth > LINE_DEPTH)
		return;
	rt_sink_puts(json->sink, "\n");
	for (unsigned i = 0; i < json->depth; i++)
		rt_sink_puts(json->sink, "  ");
}

static void element(struct rt_json *json, const char *key)
{
	uint64_t bit = UINT64_C(1) << (json->depth & 63);

	if (json->depth) {
		if (json->started & bit)
			rt_sink_puts(json->sink, ",");
		if (json->depth > LINE_DEPTH && (json->started & bit))
			rt_sink_puts(json->sink, " ");
		json->started |= bit;
		indent(json);
	}
	if (key) {
		quoted(json, key);
		rt_sink_puts(json->sink, ": ");
	}
}

static void begin(struct rt_json *json, const char *key, const char *open)
{
	element(json, key);
	rt_sink_puts(json->sink, open);
	json->depth++;
	json->started &= ~(UINT64_C(1) << (json->depth & 63));
}

static void end(struct rt_json *json, const char *close)
{
	bool some = json->started >> (json->depth & 63) & 1;
	bool lines = json->depth <= LINE_DEPTH;

	json->depth--;
	if (some && lines) {
		rt_sink_puts(json->sink, "\n");
		for (unsigned i = 0; i < json->depth; i++)
			rt_sink_puts(json->sink, "  ");
	}
	rt_sink_puts(json->sink, close);
	if (!json->depth)
		rt_sink_puts(json->sink, "\n");
}

void rt_json_begin_object(struct rt_json *json, const char *key)
{
	begin(json, key, "{");
}

void rt_json_end_object(struct rt_json *json)
{
	end(json, "}");
}

void rt_json_begin_array(struct rt_json *json, const char *key)
{
	begin(json, key, "[");
}

void rt_json_end_array(struct rt_json *json)
{
	end(json, "]");
}

void rt_json_string(struct rt_json *json, const char *key, const char *text)
{
	if (!text) {
		rt_json_null(json, key);
		return;
	}
	element(json, key);
	quoted(json, text);
}

void rt_json_u64(struct rt_json *json, const char *key, uint64_t value)
{
	element(json, key);
	rt_sink_printf(json->sink, "%llu", (unsigned long long)value);
}

void rt_json_i64(struct rt_json *json, const char *key, int64_t value)
{
	element(json, key);
	rt_sink_printf(json->sink, "%lld", (long long)value);
}

void rt_json_decimals(struct rt_json *json, const char *key, double value, int most)
{
	char text[400];
	size_t n;

	if (!isfinite(value)) {
		rt_json_null(json, key);
		return;
	}
	snprintf(text, sizeof(text), "%.*f", most, value);
	for (n = strlen(text); n > 1 && text[n - 1] == '0' && text[n - 2] != '.'; n--)
		text[n - 1] = 0;
	/* a locale of the embedding program may write a comma */
	for (char *p = text; *p; p++) {
		if (*p == ',')
			*p = '.';
	}
	element(json, key);
	rt_sink_puts(json->sink, text);
}

void rt_json_number(struct rt_json *json, const char *key, double value)
{
	rt_json_decimals(json, key, value, 4);
}

void rt_json_hex(struct rt_json *json, const char *key, uint64_t value)
{
	element(json, key);
	rt_sink_printf(json->sink, "\"0x%llx\"", (unsigned long long)value);
}

void rt_json_bool(struct rt_json *json, const char *key, bool value)
{
	element(json, key);
	rt_sink_puts(json->sink, value ? "true" : "false");
}

void rt_json_null(struct rt_json *json, const char *key)
{
	element(json, key);
	rt_sink_puts(json->sink, "null");
}
