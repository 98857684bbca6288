/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A few counted blocks around texts that people read in tracefs. Only the texts of events are kept; pages, kernel
 * symbols and command lines behind them are not asked for.
 */
#include "perfdata/tracing.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

enum {
	EVENT_TEXT_MAX = 256 * 1024,
	FIELDS_MAX = 512,
	OFFSET_MAX = 65535, /* a sample is not longer */
};

struct rt_tracing {
	struct rt_arena arena;
	bool big_endian;
	RT_VEC(struct rt_trace_event) events;
	RT_VEC(struct rt_trace_field) fields; /* of the event being read */
	struct rt_map by_id;
};

/* A part of a text: [at, end). */
struct span {
	const char *at, *end;
};

static struct span trimmed(struct span s)
{
	while (s.at < s.end && (*s.at == ' ' || *s.at == '\t'))
		s.at++;
	while (s.end > s.at && (s.end[-1] == ' ' || s.end[-1] == '\t'))
		s.end--;
	return s;
}

/* Takes what stands before stop off s; everything when it does not occur. */
static struct span take_until(struct span *s, char stop)
{
	const char *at = s->at < s->end ? memchr(s->at, stop, (size_t)(s->end - s->at)) : NULL;
	struct span head = { s->at, at ? at : s->end };

	s->at = at ? at + 1 : s->end;
	return head;
}

static bool take_word(struct span *s, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len))
		return false;
	s->at += len;
	return true;
}

static bool contains(struct span s, const char *word)
{
	return s.at < s.end && memmem(s.at, (size_t)(s.end - s.at), word, strlen(word));
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool take_number(struct span *line, const char *key, uint64_t max, uint64_t *ret)
{
	struct span part = trimmed(take_until(line, ';'));

	return take_word(&part, key) && rt_parse_u64(part.at, (size_t)(part.end - part.at), 10, ret) && *ret <= max;
}

/* "unsigned long args[6]": type and name; what the brackets say follows from the size. */
static bool read_declaration(struct rt_tracing *t, struct span decl, struct rt_trace_field *f)
{
	struct span name = trimmed(decl), type;
	bool array = false, chars;

	if (name.end > name.at && name.end[-1] == ']') {
		array = true;
		while (name.end > name.at && name.end[-1] != '[')
			name.end--;
		if (name.end > name.at)
			name.end--;
		name = trimmed(name);
	}
	type.at = name.at;
	type.end = name.end;
	while (type.end > type.at && is_name(type.end[-1]))
		type.end--;
	name.at = type.end;
	type = trimmed(type);
	if (take_word(&type, "__data_loc "))
		f->place = RT_TRACE_DATA_LOC;
	else if (take_word(&type, "__rel_loc "))
		f->place = RT_TRACE_REL_LOC;
	array = array || f->place != RT_TRACE_HERE || contains(type, "[");
	chars = contains(type, "char") && !contains(type, "*");
	f->is_text = array && chars;
	f->is_array = array && !chars;
	f->is_address = contains(type, "*") || (contains(type, "unsigned long") && !contains(type, "long long"));
	f->type = rt_arena_strndup(&t->arena, type.at, (size_t)(type.end - type.at));
	f->name = rt_arena_strndup(&t->arena, name.at, (size_t)(name.end - name.at));
	return f->type && f->name;
}

static struct rt_error *read_field(struct rt_tracing *t, struct span line)
{
	struct rt_trace_field f = { 0 };
	struct span decl = take_until(&line, ';');
	uint64_t offset, size, is_signed = 0;

	if (!take_number(&line, "offset:", OFFSET_MAX, &offset) || !take_number(&line, "size:", OFFSET_MAX, &size))
		return rt_error_new(RT_E_TRUNCATED, "field without offset and size");
	if (!take_number(&line, "signed:", 1, &is_signed))
		is_signed = 0;
	f.offset = (uint32_t)offset;
	f.size = (uint32_t)size;
	f.is_signed = is_signed;
	if (t->fields.len == FIELDS_MAX)
		return rt_error_new(RT_E_TRUNCATED, "event with more than %d fields", FIELDS_MAX);
	if (!read_declaration(t, decl, &f))
		return rt_error_nomem();
	f.is_common = !strncmp(f.name, "common_", 7);
	return rt_vec_push(&t->fields, f) ? NULL : rt_error_nomem();
}

static struct rt_error *read_line(struct rt_tracing *t, struct span line, struct rt_trace_event *event)
{
	uint64_t id;

	line = trimmed(line);
	if (take_word(&line, "name: ")) {
		event->name = rt_arena_strndup(&t->arena, line.at, (size_t)(line.end - line.at));
		return event->name ? NULL : rt_error_nomem();
	}
	if (take_word(&line, "ID: ")) {
		if (!rt_parse_u64(line.at, (size_t)(line.end - line.at), 10, &id) || id > UINT32_MAX)
			return rt_error_new(RT_E_TRUNCATED, "event without a number");
		event->id = (uint32_t)id;
	}
	if (take_word(&line, "field:"))
		return read_field(t, line);
	return NULL;
}

/* One file "format": "name: ...", "ID: ...", "field:..." lines, and at its end "print fmt: ...". */
static struct rt_error *read_event(struct rt_tracing *t, const char *group, struct rt_bytes bytes)
{
	struct span text = { (const char *)bytes.data, (const char *)bytes.data + bytes.size };
	struct rt_trace_event event = { .group = group, .name = "", .format = "" };
	struct rt_trace_field *fields;
	uint64_t *slot;

	rt_vec_clear(&t->fields);
	while (text.at < text.end) {
		if (take_word(&text, "print fmt: ")) {
			event.format =
				rt_arena_strndup(&t->arena, text.at, strnlen(text.at, (size_t)(text.end - text.at)));
			if (!event.format)
				return rt_error_nomem();
			break;
		}
		RT_TRY(read_line(t, take_until(&text, '\n'), &event));
	}
	fields = rt_arena_alloc(&t->arena, (t->fields.len + 1) * sizeof(*fields));
	slot = rt_map_put(&t->by_id, rt_key_make(event.id, 0), NULL);
	if (!fields || !slot)
		return rt_error_nomem();
	if (t->fields.len)
		memcpy(fields, t->fields.data, t->fields.len * sizeof(*fields));
	event.fields = fields;
	event.field_count = t->fields.len;
	*slot = t->events.len;
	return rt_vec_push(&t->events, event) ? NULL : rt_error_nomem();
}

static struct rt_error *cut(const struct rt_cursor *c, const char *what)
{
	return rt_error_new(RT_E_TRUNCATED, "tracing data are cut at 0x%zx: %s", c->pos, what);
}

/* u64 size and as many bytes. */
static bool take_block(struct rt_cursor *c, struct rt_bytes *ret)
{
	struct rt_cursor at = *c;
	uint64_t size;

	if (!rt_cursor_u64(&at, &size) || !rt_cursor_bytes(&at, size, ret))
		return false;
	*c = at;
	return true;
}

static struct rt_error *read_events(struct rt_tracing *t, struct rt_cursor *c, const char *group, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		size_t at = c->pos;
		struct rt_bytes text;

		if (!take_block(c, &text) || text.size > EVENT_TEXT_MAX)
			return cut(c, "an event's format");
		RT_TRY(rt_error_wrap(read_event(t, group, text), "tracing data at 0x%zx", at));
	}
	return NULL;
}

static struct rt_error *read_all(struct rt_tracing *t, struct rt_cursor *c)
{
	struct rt_bytes ignored;
	const char *word;
	uint32_t count, systems;

	if (!rt_cursor_skip(c, 5) || !rt_cursor_string(c, &word) || strcmp(word, "header_page") ||
	    !take_block(c, &ignored) || !rt_cursor_string(c, &word) || strcmp(word, "header_event") ||
	    !take_block(c, &ignored))
		return cut(c, "its header");
	if (!rt_cursor_u32(c, &count))
		return cut(c, "number of ftrace's events");
	RT_TRY(read_events(t, c, "ftrace", count));
	if (!rt_cursor_u32(c, &systems))
		return cut(c, "number of systems");
	for (uint32_t i = 0; i < systems; i++) {
		const char *name;

		if (!rt_cursor_string(c, &word) || !rt_cursor_u32(c, &count))
			return cut(c, "name of a system");
		name = rt_arena_strndup(&t->arena, word, strlen(word));
		if (!name)
			return rt_error_nomem();
		RT_TRY(read_events(t, c, name, count));
	}
	return NULL;
}

struct rt_error *rt_tracing_create(struct rt_bytes bytes, struct rt_tracing **ret)
{
	static const char magic[] = "\x17\x08\x44tracing";
	_cleanup_(rt_tracing_destroyp) struct rt_tracing *t = calloc(1, sizeof(*t));
	struct rt_cursor c = rt_cursor_make(bytes, false);
	const char *version;
	struct rt_bytes head;
	uint8_t order;

	if (!t)
		return rt_error_nomem();
	if (!rt_cursor_bytes(&c, sizeof(magic) - 1, &head) || memcmp(head.data, magic, sizeof(magic) - 1))
		return rt_error_new(RT_E_FORMAT, "these are no tracing data");
	if (!rt_cursor_string(&c, &version) || !rt_cursor_u8(&c, &order))
		return cut(&c, "its version");
	c.big_endian = t->big_endian = order;
	RT_TRY(read_all(t, &c));
	*ret = rt_take(t);
	return NULL;
}

void rt_tracing_destroy(struct rt_tracing *t)
{
	if (!t)
		return;
	rt_arena_deinit(&t->arena);
	rt_vec_deinit(&t->events);
	rt_vec_deinit(&t->fields);
	rt_map_deinit(&t->by_id);
	free(t);
}

const struct rt_trace_event *rt_tracing_event(const struct rt_tracing *t, uint64_t id)
{
	uint64_t *slot = rt_map_get(&t->by_id, rt_key_make(id, 0));

	return slot ? &t->events.data[*slot] : NULL;
}

const struct rt_trace_event *rt_tracing_events(const struct rt_tracing *t, size_t *ret_count)
{
	*ret_count = t->events.len;
	return t->events.data;
}

const struct rt_trace_field *rt_trace_field(const struct rt_trace_event *event, const char *name)
{
	for (size_t i = 0; i < event->field_count; i++) {
		if (!strcmp(event->fields[i].name, name))
			return &event->fields[i];
	}
	return NULL;
}

bool rt_trace_number(const struct rt_tracing *t, const struct rt_trace_field *field, struct rt_bytes raw, uint64_t *ret)
{
	unsigned size = field->size;
	uint64_t value = 0;
	struct rt_bytes b;

	if (field->is_text || field->is_array || field->place != RT_TRACE_HERE || !size || size > 8 ||
	    !rt_bytes_sub(raw, field->offset, size, &b))
		return false;
	for (unsigned i = 0; i < size; i++)
		value = value << 8 | b.data[t->big_endian ? i : size - 1 - i];
	if (field->is_signed && size < 8 && value >> (8 * size - 1) & 1)
		value |= ~UINT64_C(0) << 8 * size;
	*ret = value;
	return true;
}

bool rt_trace_bytes(const struct rt_tracing *t, const struct rt_trace_field *field, struct rt_bytes raw,
		    struct rt_bytes *ret)
{
	struct rt_cursor c = rt_cursor_make(raw, t->big_endian);
	uint64_t offset = field->offset, size = field->size;
	struct rt_bytes b;
	uint32_t where;

	if (field->place != RT_TRACE_HERE) {
		if (!rt_cursor_skip(&c, offset) || !rt_cursor_u32(&c, &where))
			return false;
		offset = (where & 0xffff) + (field->place == RT_TRACE_REL_LOC ? offset + 4 : 0);
		size = where >> 16;
	}
	if (!rt_bytes_sub(raw, offset, size, &b))
		return false;
	if (field->is_text)
		b.size = b.size ? strnlen((const char *)b.data, b.size) : 0;
	*ret = b;
	return true;
}
