/* SPDX-License-Identifier: GPL-2.0-only */
#include "cache/probes.h"

#include <string.h>

static void entry_deinit(struct rt_probes_entry *e)
{
	for (size_t i = 0; i < e->lines.len; i++)
		free(e->lines.data[i]);
	rt_vec_deinit(&e->lines);
	free(e->spec);
}

void rt_probes_deinit(struct rt_probes *p)
{
	for (size_t i = 0; i < p->entries.len; i++)
		entry_deinit(&p->entries.data[i]);
	rt_vec_deinit(&p->entries);
}

static size_t entry_index(const struct rt_probes *p, bool sdt, const char *spec)
{
	size_t i = 0;

	while (i < p->entries.len && (p->entries.data[i].sdt != sdt || strcmp(p->entries.data[i].spec, spec) != 0))
		i++;
	return i;
}

const struct rt_probes_entry *rt_probes_find(const struct rt_probes *p, bool sdt, const char *spec)
{
	size_t i = entry_index(p, sdt, spec);

	return i < p->entries.len ? &p->entries.data[i] : NULL;
}

/* In order, and once. false: out of memory. */
static bool add_line(struct rt_probes_entry *e, const char *text, size_t len)
{
	char *line = strndup(text, len);
	size_t at = e->lines.len;

	if (!line || !rt_vec_push(&e->lines, line)) {
		free(line);
		return false;
	}
	while (at && strcmp(e->lines.data[at - 1], line) > 0) {
		e->lines.data[at] = e->lines.data[at - 1];
		at--;
	}
	e->lines.data[at] = line;
	if (at && !strcmp(e->lines.data[at - 1], line)) {
		memmove(&e->lines.data[at], &e->lines.data[at + 1], (e->lines.len - at - 1) * sizeof(line));
		e->lines.len--;
		free(line);
	}
	return true;
}

static bool begin_entry(struct rt_probes *p, const char *line, size_t len)
{
	struct rt_probes_entry e = { .sdt = *line == '%', .spec = strndup(line + 1, len - 1) };

	if (!e.spec || !rt_vec_push(&p->entries, e)) {
		free(e.spec);
		return false;
	}
	return true;
}

struct rt_error *rt_probes_parse(struct rt_bytes text, struct rt_probes *ret)
{
	const char *at = (const char *)text.data, *end = at + text.size;
	struct rt_probes p = { 0 };

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline ? newline : end) - at);
		bool header = len > 1 && (*at == '%' || *at == '#'), fine = true;

		if (memchr(at, 0, len) || len > RT_PROBES_LINE_MAX || !len || (!header && !p.entries.len))
			p.dropped += len != 0;
		else if (header)
			fine = begin_entry(&p, at, len);
		else
			fine = add_line(&p.entries.data[p.entries.len - 1], at, len);
		if (!fine) {
			rt_probes_deinit(&p);
			return rt_error_nomem();
		}
		at += len + (newline != NULL);
	}
	*ret = p;
	return NULL;
}

static bool fits(const char *text, size_t more)
{
	return *text && strlen(text) + more <= RT_PROBES_LINE_MAX && !strchr(text, '\n');
}

struct rt_error *rt_probes_set(struct rt_probes *p, bool sdt, const char *spec, const char *const *lines, size_t count)
{
	struct rt_probes_entry e = { .sdt = sdt };
	bool fine = fits(spec, 1);

	for (size_t i = 0; i < count; i++)
		fine &= fits(lines[i], 0) && *lines[i] != '%' && *lines[i] != '#';
	if (!fine)
		return rt_error_new(RT_E_LIMIT, "'%.60s' cannot be kept in a cache: perf reads lines of up to %d bytes",
				    spec, RT_PROBES_LINE_MAX);
	e.spec = strdup(spec);
	fine = e.spec != NULL;
	for (size_t i = 0; i < count && fine; i++)
		fine = add_line(&e, lines[i], strlen(lines[i]));
	if (!fine || !rt_vec_reserve(&p->entries, p->entries.len + 1)) {
		entry_deinit(&e);
		return rt_error_nomem();
	}
	(void)rt_probes_remove(p, sdt, spec);
	(void)rt_vec_push(&p->entries, e);
	return NULL;
}

bool rt_probes_remove(struct rt_probes *p, bool sdt, const char *spec)
{
	size_t i, before = p->entries.len;

	/* a file may hold a name twice: none may come to light when the first one goes */
	while ((i = entry_index(p, sdt, spec)) < p->entries.len) {
		entry_deinit(&p->entries.data[i]);
		memmove(&p->entries.data[i], &p->entries.data[i + 1],
			(p->entries.len - i - 1) * sizeof(p->entries.data[0]));
		p->entries.len--;
	}
	return p->entries.len < before;
}

void rt_probes_write(const struct rt_probes *p, struct rt_sink *sink)
{
	for (size_t i = 0; i < p->entries.len; i++) {
		const struct rt_probes_entry *e = &p->entries.data[i];

		rt_sink_printf(sink, "%c%s\n", e->sdt ? '%' : '#', e->spec);
		for (size_t n = 0; n < e->lines.len; n++)
			rt_sink_printf(sink, "%s\n", e->lines.data[n]);
	}
}
