/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/object_choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static struct rt_error *bad(const char *text)
{
	return rt_error_fix(
		rt_error_new(RT_E_USAGE, "'%s' names no object", text),
		"a number as the report prints it (5), TYPE:5, an address (0x...), or first:ID of a finding");
}

static bool hex(const char *text, uint64_t *ret)
{
	return !strncmp(text, "0x", 2) && rt_parse_u64(text + 2, strlen(text + 2), 16, ret);
}

struct rt_error *rt_object_parse(const char *text, struct rt_object_choice *ret)
{
	const char *colon = strrchr(text, ':'), *number = colon ? colon + 1 : text;

	*ret = (struct rt_object_choice){ .text = text };
	if (!strncmp(text, "first:", 6) && text[6]) {
		ret->finding = text + 6;
		return NULL;
	}
	if (hex(text, &ret->address) && ret->address)
		return NULL;
	number += *number == '#';
	if (!rt_parse_u64(number, strlen(number), 10, &ret->serial) || !ret->serial || colon == text)
		return bad(text);
	if (!colon)
		return NULL;
	if (!strncmp(text, "struct ", 7))
		text += 7;
	ret->type = strndup(text, (size_t)(colon - text));
	return ret->type ? NULL : rt_error_nomem();
}

void rt_object_deinit(struct rt_object_choice *choice)
{
	free(choice->type);
	choice->type = NULL;
}

bool rt_object_open(const struct rt_object_choice *choice)
{
	return choice->finding != NULL;
}

static const struct rt_finding *find(const struct rt_finding *f, size_t count, const char *id)
{
	size_t len = strlen(id);

	for (size_t i = 0; i < count; i++) {
		if (len >= 4 && !strncmp(f[i].id, id, len))
			return &f[i];
	}
	return NULL;
}

struct rt_error *rt_object_settle(struct rt_object_choice *choice, const struct rt_verdict *verdict, const char *path)
{
	const struct rt_finding *f = find(verdict->findings, verdict->finding_count, choice->finding)
					     ?: find(verdict->suspects, verdict->suspect_count, choice->finding);

	if (!f)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "%s has no finding %s", path, choice->finding),
				    "their ids: reftrace report -v -i %s", path);
	choice->type = strdup(f->type);
	choice->serial = f->first_object;
	return choice->type ? NULL : rt_error_nomem();
}

bool rt_object_wants(void *arg, const char *type, uint64_t serial, uint64_t object)
{
	const struct rt_object_choice *c = arg;

	if (c->address)
		return object == c->address;
	return serial == c->serial && (!c->type || !strcmp(c->type, type));
}

struct rt_error *rt_object_missing(const struct rt_object_choice *choice, const struct rt_verdict *verdict,
				   const char *path)
{
	_cleanup_free_ char *types = NULL;
	struct rt_error *err;

	for (size_t i = 0; i < verdict->type_count && i < 8; i++) {
		const struct rt_type_count *t = &verdict->types[i];
		char *longer = NULL;

		if (!t->incarnations || asprintf(&longer, "%s%s%s:1 to %s:%" PRIu64, types ?: "", types ? ", " : "",
						 t->name, t->name, t->incarnations) < 0)
			continue;
		free(types);
		types = longer;
	}
	if (choice->address)
		err = rt_error_new(RT_E_NOT_FOUND, "%s has no object at %s", path, choice->text);
	else
		err = rt_error_new(RT_E_NOT_FOUND, "%s has no object %s", path, choice->text);
	if (!types)
		return rt_error_fix(err, "no object at all was seen: reftrace report -i %s says why", path);
	return rt_error_fix(err, "there are %s; those of findings: reftrace report -i %s", types, path);
}

struct rt_error *rt_object_clear(const struct rt_object_choice *choice, const char *const *types, size_t count,
				 const char *verb, const char *path)
{
	_cleanup_free_ char *names = NULL;

	if (choice->address || count < 2)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		char *longer = NULL;

		if (asprintf(&longer, "%s%s%s", names ?: "", names ? ", " : "", types[i]) < 0)
			return rt_error_nomem();
		free(names);
		names = longer;
	}
	return rt_error_fix(rt_error_new(RT_E_USAGE, "several types have an object %s: %s", choice->text, names),
			    !strcmp(verb, "tree") ? "say which: reftrace tree --object %s:%" PRIu64 " -i %s"
						  : "say which: reftrace object %s:%" PRIu64 " -i %s",
			    types[0], choice->serial, path);
}
