/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/probe_place.h"

#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "elf/demangle.h"
#include "probe/lines.h"
#include "probe/near.h"
#include "report/words.h"

static const char forms[] = "a place is FUNC, FUNC@SRC, FUNC:N-M (lines of the function, from 0), SRC:N-M or SRC";

static struct rt_error *bad_place(const char *text, const char *why)
{
	return rt_error_fix(rt_error_new(RT_E_USAGE, "'%s' is no place: %s", text, why), forms);
}

static bool number(const char *text, size_t len, uint32_t *ret)
{
	uint64_t value;

	if (!rt_parse_u64(text, len, 10, &value) || value > INT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* "12", "12-20", "12+8" behind the last colon. */
static struct rt_error *parse_lines(const char *text, struct rt_probe_place *ret)
{
	size_t n = strspn(text, "0123456789");
	uint32_t more;

	ret->ranged = true;
	if (!number(text, n, &ret->first))
		return bad_place(ret->text, "its line is no number");
	ret->last = ret->first;
	if (!text[n])
		return NULL;
	if ((text[n] != '-' && text[n] != '+') || !number(text + n + 1, strlen(text + n + 1), &more))
		return bad_place(ret->text, "its last line is no number");
	ret->last = text[n] == '+' ? ret->first + more : more;
	return ret->last < ret->first ? bad_place(ret->text, "its last line comes before the first") : NULL;
}

struct rt_error *rt_probe_place_parse(struct rt_listing *file, const char *text, struct rt_probe_place *ret)
{
	const char *colon = strrchr(text, ':'), *end = text + strlen(text), *at;

	*ret = (struct rt_probe_place){ .text = text };
	if (!strncmp(text, "0x", 2)) {
		ret->at_address = true;
		return rt_parse_u64(text + 2, strlen(text + 2), 16, &ret->address)
			       ? NULL
			       : bad_place(text, "its address is no number");
	}
	/* a name may hold "::", and nothing else begins with a digit */
	if (colon && colon[1] >= '0' && colon[1] <= '9') {
		RT_TRY(parse_lines(colon + 1, ret));
		end = colon;
	} else if (colon && !colon[1]) {
		return bad_place(text, "there is no line behind the colon");
	}
	at = memrchr(text, '@', (size_t)(end - text));
	if (at) {
		ret->source = rt_arena_strndup(&file->arena, at + 1, (size_t)(end - at - 1));
		end = at;
		if (!ret->source || !*ret->source)
			return bad_place(text, "there is no file behind the @");
	}
	ret->name = rt_arena_strndup(&file->arena, text, (size_t)(end - text));
	if (!ret->name)
		return rt_error_nomem();
	return *ret->name ? NULL : bad_place(text, "it names no function and no file");
}

bool rt_probe_is_named(const char *name, const char *linkage, const char *wanted)
{
	_cleanup_free_ char *whole = NULL, *bare = NULL;

	if (!strcmp(name, wanted) || (linkage && !strcmp(linkage, wanted)))
		return true;
	/* demangling each of a hundred thousand names would take its time */
	if (!linkage || !strstr(wanted, name))
		return false;
	whole = rt_demangle(linkage);
	if (whole && !strcmp(whole, wanted))
		return true;
	bare = whole ? rt_demangle_name(linkage) : NULL;
	return bare && !strcmp(bare, wanted);
}

struct search {
	struct rt_listing *file;
	const struct rt_probe_place *place;
	RT_VEC(struct rt_probe_range) list;
	struct rt_near near;
	bool nomem;
};

static bool is_function(const char *name, const char *linkage, void *arg)
{
	struct search *s = arg;

	return rt_probe_is_named(name, linkage, s->place->name);
}

static const char *plain(struct rt_listing *file, const char *path)
{
	_cleanup_free_ char *text = path[0] == '/' ? rt_fs_plain_path(path) : NULL;

	return rt_format(&file->arena, "%s", text ?: path);
}

static struct rt_error *find_functions(struct search *s)
{
	const struct rt_probe_place *place = s->place;
	_cleanup_free_ struct rt_extent *extents = NULL;
	size_t count;

	RT_TRY(rt_dwarf_extents(s->file->dwarf, is_function, s, &extents, &count));
	for (size_t i = 0; i < count; i++) {
		const struct rt_extent *e = &extents[i];
		struct rt_probe_range *range;

		if (place->source && !rt_path_is(e->file, place->source))
			continue;
		range = rt_vec_add(&s->list);
		if (!range)
			return rt_error_nomem();
		*range = (struct rt_probe_range){ .function = rt_listing_name(s->file, e->linkage ?: e->name),
						  .path = plain(s->file, e->file),
						  .base = e->first,
						  .first = e->first,
						  .last = e->last,
						  .bodies = e->bodies,
						  .inlined = e->inlined };
		if (!place->ranged)
			continue;
		range->first = e->first + place->first;
		range->last = e->first + place->last;
	}
	return NULL;
}

static bool take_file(const char *path, void *arg)
{
	struct search *s = arg;
	const struct rt_probe_place *place = s->place;
	const char *clean = plain(s->file, path);

	if (!rt_path_is(path, place->name))
		return true;
	/* the same file by two spellings */
	for (size_t i = 0; i < s->list.len; i++) {
		if (!strcmp(s->list.data[i].path, clean))
			return true;
	}
	if (!rt_vec_push(&s->list, ((struct rt_probe_range){ .path = clean,
							     .first = place->ranged ? place->first : 1,
							     .last = place->ranged ? place->last : UINT32_MAX })))
		s->nomem = true;
	return !s->nomem;
}

static bool offer(const struct rt_function *function, void *arg)
{
	struct search *s = arg;

	rt_near_offer(&s->near, function->name);
	return true;
}

static struct rt_error *nothing(struct search *s)
{
	const char *path = s->file->path;
	struct rt_error *err =
		rt_error_new(RT_E_NO_FUNCTION, "no function and no source file of %s is called '%s'%s%s", path,
			     s->place->name, s->place->source ? " in " : "", s->place->source ?: "");
	struct rt_error *ignored;

	s->near.wanted = s->place->name;
	ignored = rt_dwarf_each_function(s->file->dwarf, offer, s);
	rt_error_free(ignored);
	if (s->near.count)
		return rt_error_fix(err, "did you mean %s? all functions: reftrace probe funcs %s", s->near.names[0],
				    path);
	return rt_error_fix(err, "all functions: reftrace probe funcs %s", path);
}

struct rt_error *rt_probe_place_find(struct rt_listing *file, const struct rt_probe_place *place,
				     struct rt_probe_range **ret, size_t *ret_count)
{
	struct search s = { .file = file, .place = place };
	struct rt_error *err = NULL;

	if (!rt_dwarf_present(file->dwarf))
		return rt_error_fix(
			rt_error_new(RT_E_DEBUG_INFO,
				     "%s has no debug information: nothing tells which code is of which line",
				     file->path),
			"%s", rt_listing_debug_fix(file));
	/* a name with a slash is no function's */
	if (!strchr(place->name, '/'))
		err = find_functions(&s);
	if (!err && !s.list.len && !place->source)
		err = rt_dwarf_each_file(file->dwarf, take_file, &s);
	if (!err && s.nomem)
		err = rt_error_nomem();
	if (!err && !s.list.len)
		err = nothing(&s);
	if (err) {
		rt_vec_deinit(&s.list);
		return err;
	}
	*ret = s.list.data;
	*ret_count = s.list.len;
	return NULL;
}
