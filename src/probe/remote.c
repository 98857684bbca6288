/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/remote.h"

#include <ctype.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"

static void probe_deinit(struct rt_remote_probe *p)
{
	free(p->event);
	free(p->place);
	free(p->args);
	free(p->function);
}

void rt_remote_deinit(struct rt_remote *r)
{
	for (size_t i = 0; i < r->probes.len; i++)
		probe_deinit(&r->probes.data[i]);
	rt_vec_deinit(&r->probes);
}

/* Bytes of "0x10a9" at text; 0: it is none. */
static size_t hex_number(const char *text)
{
	size_t digits = strncmp(text, "0x", 2) ? 0 : strspn(text + 2, "0123456789abcdefABCDEF");

	return digits ? 2 + digits : 0;
}

/* "_text+4711": where every boot has it */
static bool is_kernel_place(const char *text, size_t len)
{
	static const char from[] = "_text+";
	size_t at = sizeof(from) - 1;

	return len > at && !memcmp(text, from, at) && strspn(text + at, "0123456789") >= len - at;
}

/* "0x10a9", "0x10a9(0x3020)" and nothing else */
static bool is_place(const char *text, size_t len)
{
	size_t at = hex_number(text), more;

	if (!at || at == len)
		return at;
	if (text[at] != '(')
		return false;
	more = hex_number(text + at + 1);
	return more && at + 1 + more == len - 1 && text[len - 1] == ')';
}

/* The kernel ends a line at '#', and so does a newline; other control characters have no business there. */
static bool is_clean(const char *text)
{
	while (*text && *text != '#' && !iscntrl((unsigned char)*text))
		text++;
	return !*text;
}

/* The next " NAME=FETCH[:TYPE]" behind *at. false: there is none. */
static bool next_argument(const char **at, const char **name, size_t *name_len, const char **type, size_t *type_len)
{
	const char *colon = NULL;

	*at += strspn(*at, " ");
	if (!**at)
		return false;
	*name = *at;
	*name_len = strcspn(*at, " =");
	for (; **at && **at != ' '; ++*at)
		if (**at == ':')
			colon = *at + 1;
	*type = colon ?: *at;
	*type_len = (size_t)(*at - *type);
	return true;
}

static bool same_arguments(const char *a, const char *b)
{
	const char *name[2], *type[2];
	size_t name_len[2], type_len[2];

	for (;;) {
		bool some = next_argument(&a, &name[0], &name_len[0], &type[0], &type_len[0]);
		bool other = next_argument(&b, &name[1], &name_len[1], &type[1], &type_len[1]);

		if (!some || !other)
			return some == other;
		if (name_len[0] != name_len[1] || type_len[0] != type_len[1] ||
		    memcmp(name[0], name[1], name_len[0]) != 0 || memcmp(type[0], type[1], type_len[0]) != 0)
			return false;
	}
}

/* Can the probe be one more place of the event of its name? Else the name is another one's. */
static bool fits(const struct rt_remote *r, const struct rt_remote_probe *p)
{
	for (size_t i = 0; i < r->probes.len; i++) {
		const struct rt_remote_probe *other = &r->probes.data[i];

		if (!strcmp(other->event, p->event) &&
		    (other->type != p->type || !same_arguments(other->args, p->args)))
			return false;
	}
	return true;
}

static bool is_there(const struct rt_remote *r, const struct rt_remote_probe *p)
{
	for (size_t i = 0; i < r->probes.len; i++)
		if (!strcmp(r->probes.data[i].event, p->event) && !strcmp(r->probes.data[i].place, p->place))
			return true;
	return false;
}

/* The place in [text, end): of a kernel all of it; of a file what is behind the last colon. NULL: none. */
static const char *place_of(const char *text, const char *end, bool kernel)
{
	const char *colon = memrchr(text, ':', (size_t)(end - text));

	if (kernel)
		return is_kernel_place(text, (size_t)(end - text)) ? text : NULL;
	return colon && *text == '/' && is_place(colon + 1, (size_t)(end - colon) - 1) ? colon + 1 : NULL;
}

/* The identifier at *at, which moves behind it and the mark that ends it. false: none, or another mark. */
static bool take_name(const char **at, char mark)
{
	size_t len = rt_identifier_length(*at);

	if (!len || (*at)[len] != mark)
		return false;
	*at += len + 1;
	return true;
}

/* *ret: strings owned by the caller, also on failure */
static struct rt_error *parse(const char *line, bool kernel, struct rt_remote_probe *ret)
{
	const char *event = line + 2, *at = event, *path, *end, *place;

	ret->type = *line;
	if ((*line != 'p' && *line != 'r') || line[1] != ':' || !take_name(&at, '/') || !take_name(&at, ' ') ||
	    !is_clean(line))
		return rt_error_new(RT_E_FORMAT, "no definition of a %s: %s", kernel ? "kprobe" : "uprobe", line);
	path = at;
	end = path + strcspn(path, " ");
	place = place_of(path, end, kernel);
	if (!place)
		return rt_error_new(RT_E_FORMAT, "no place in a %s: %s", kernel ? "kernel" : "file", line);
	ret->event = strndup(event, (size_t)(path - 1 - event));
	ret->place = strndup(place, (size_t)(end - place));
	ret->args = strdup(end);
	return ret->event && ret->place && ret->args ? NULL : rt_error_nomem();
}

/* NAME_1, NAME_2, ... where the name is another event's. */
static struct rt_error *name_apart(const struct rt_remote *r, struct rt_remote_probe *p)
{
	_cleanup_free_ char *first = p->event ? strdup(p->event) : NULL;
	char *event;

	if (!first)
		return rt_error_nomem();
	for (unsigned n = 1; !fits(r, p); n++) {
		if (asprintf(&event, "%s_%u", first, n) < 0)
			return rt_error_nomem();
		free(p->event);
		p->event = event;
	}
	return NULL;
}

struct rt_error *rt_remote_add(struct rt_remote *r, const char *line, const char *function)
{
	struct rt_remote_probe p = { 0 };
	struct rt_error *err = parse(line, r->kernel, &p);

	if (!err && function) {
		p.function = strdup(function);
		err = p.function ? NULL : rt_error_nomem();
	}
	if (!err)
		err = name_apart(r, &p);
	/* it has a name then; clang-tidy does not see it */
	if (!err && p.event && !is_there(r, &p)) {
		if (rt_vec_push(&r->probes, p))
			return NULL;
		err = rt_error_nomem();
	}
	probe_deinit(&p);
	return err;
}

struct rt_error *rt_remote_lines(const struct rt_remote *r, const char *path, struct rt_sink *sink)
{
	if (!r->kernel && (*path != '/' || strpbrk(path, " \t") || !is_clean(path)))
		return rt_error_fix(rt_error_new(RT_E_FORMAT, "a line for the kernel cannot hold the path '%s'", path),
				    "the script can: leave --lines out");
	for (size_t i = 0; i < r->probes.len; i++) {
		const struct rt_remote_probe *p = &r->probes.data[i];

		rt_sink_printf(sink, "%c:%s %s%s%s%s\n", p->type, p->event, r->kernel ? "" : path, r->kernel ? "" : ":",
			       p->place, p->args);
	}
	return NULL;
}
