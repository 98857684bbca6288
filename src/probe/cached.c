/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/cached.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "probe/spec.h"

/* "0x10a9" at *at, which moves behind it */
static bool read_hex(const char **at, uint64_t *ret)
{
	size_t len = strncmp(*at, "0x", 2) ? 0 : strspn(*at + 2, "0123456789abcdefABCDEF");

	if (!len || !rt_parse_u64(*at + 2, len, 16, ret))
		return false;
	*at += 2 + len;
	return true;
}

/* "PATH:0x10a9(0x3020)" and a blank, or the end: the last colon splits */
static bool read_place(const char *text, struct rt_cached_line *ret)
{
	size_t len = strcspn(text, " ");
	const char *colon = memrchr(text, ':', len), *at = colon ? colon + 1 : text;

	if (!colon || colon == text || !read_hex(&at, &ret->offset.v))
		return false;
	if (*at == '(') {
		at++;
		if (!read_hex(&at, &ret->semaphore.v) || *at++ != ')')
			return false;
	}
	ret->arguments = at;
	return at == text + len;
}

/* A name of the kernel's, up to the mark behind it; *at moves behind that. */
static bool read_name(const char **at, char mark, char ret[RT_REQUEST_NAME_MAX + 1])
{
	size_t len = rt_identifier_length(*at);

	if (!len || len > RT_REQUEST_NAME_MAX || (*at)[len] != mark)
		return false;
	memcpy(ret, *at, len);
	ret[len] = '\0';
	*at += len + 1;
	return true;
}

bool rt_cached_read(const char *line, struct rt_cached_line *ret)
{
	struct rt_cached_line l = { .at_return = *line == 'r' };
	const char *at = line + 1;

	/* the kernel ends a line at '#' */
	for (const char *c = line; *c; c++)
		if (*c == '#' || iscntrl((unsigned char)*c))
			return false;
	if ((*line != 'p' && *line != 'r') || *at++ != ':')
		return false;
	if (!read_name(&at, '/', l.group) || !read_name(&at, ' ', l.event) || !read_place(at, &l))
		return false;
	*ret = l;
	return true;
}

static bool group_fits(const char *pattern, const char *group)
{
	return !pattern || rt_glob_match(pattern, group) ||
	       (!strncmp(group, "sdt_", 4) && rt_glob_match(pattern, group + 4));
}

bool rt_cached_fits(const struct rt_probes_entry *e, const char *group, const char *event)
{
	struct rt_cached_line line;

	for (size_t i = 0; i < e->lines.len; i++)
		if (rt_cached_read(e->lines.data[i], &line) && group_fits(group, line.group) &&
		    rt_glob_match(event, line.event))
			return true;
	return false;
}

static struct rt_error *spec_of(const struct rt_request *r, const char *group, struct rt_sink *sink)
{
	rt_sink_init_memory(sink);
	RT_TRY(rt_request_write(r, group, sink));
	return rt_sink_end(sink);
}

/* Another entry whose event has the name of spec's, which tells one. */
static const struct rt_probes_entry *namesake(const struct rt_probes *probes, const char *spec)
{
	for (size_t i = 0; i < probes->entries.len; i++) {
		const struct rt_probes_entry *e = &probes->entries.data[i];

		if (!e->sdt && !strncmp(e->spec, spec, strcspn(spec, "=") + 1) && strcmp(e->spec, spec) != 0)
			return e;
	}
	return NULL;
}

struct rt_error *rt_cached_set(struct rt_probes *probes, const struct rt_request *r, const char *group,
			       const char *const *lines, size_t count)
{
	_cleanup_(rt_sink_deinit) struct rt_sink spec;

	RT_TRY(spec_of(r, group, &spec));
	RT_TRY(rt_probes_set(probes, false, spec.buffer, lines, count));
	/* the name is one definition's */
	for (const struct rt_probes_entry *e; r->event && (e = namesake(probes, spec.buffer));) {
		_cleanup_free_ char *old = strdup(e->spec);

		if (!old)
			return rt_error_nomem();
		(void)rt_probes_remove(probes, false, old);
	}
	return NULL;
}

struct rt_error *rt_cached_find(const struct rt_probes *probes, const struct rt_request *r, const char *group,
				const struct rt_probes_entry **ret)
{
	_cleanup_(rt_sink_deinit) struct rt_sink spec;
	struct rt_error *err = spec_of(r, group, &spec);

	*ret = NULL;
	/* what no cache takes is in none */
	if (rt_error_catch(&err, RT_E_UNSUPPORTED))
		return NULL;
	RT_TRY(err);
	*ret = rt_probes_find(probes, false, spec.buffer);
	return NULL;
}
