/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that mark their own operations (include/refcnt/mark.h): nothing is guessed, and what is marked is not
 * counted a second time by its name.
 */
#include <string.h>

#include "elf/sdt.h"
#include "event/stream.h"
#include "probe/scan_build.h"

#define PROVIDER "refcnt"

static struct rt_error *add_type(struct rt_scan *s, const char *name, struct rt_spec_type **ret)
{
	struct rt_scan_taken taken = { .name = rt_intern_string(&s->survey.names, name) };
	struct rt_spec_type *type = rt_vec_add(&s->found.types);

	if (!type || !taken.name || !rt_vec_push(&s->taken, taken))
		return rt_error_nomem();
	type->start = 1; /* as the marks are defined */
	type->counter_offset = RT_COUNTER_UNKNOWN;
	type->name = strdup(name);
	type->origin = strdup("scan");
	*ret = type;
	return type->name && type->origin ? NULL : rt_error_nomem();
}

/* A family by names of functions that hold marks is the same operation again. */
static struct rt_error *hide_function(struct rt_scan *s, struct rt_elfaddr at)
{
	const char *inside = rt_plan_function_around(s->module, at);
	uint32_t id = inside ? rt_intern_string(&s->survey.names, inside) : 0;

	return !id || rt_map_put(&s->marked, rt_key_make(id, 0), NULL) ? NULL : rt_error_nomem();
}

static struct rt_error *add_mark(struct rt_scan *s, const struct rt_sdt_marker *m)
{
	const char *name = m->type && *m->type ? m->type : PROVIDER;
	struct rt_spec_type *type = rt_spec_type_named(&s->found, name);
	enum rt_op op = rt_op_parse(m->name, strlen(m->name));
	char function[64];

	if (strcmp(m->provider, PROVIDER) != 0 || op == RT_OP_NONE)
		return NULL;
	RT_TRY(hide_function(s, m->location));
	if (!rt_scan_asked(s, name))
		return NULL;
	if (!type)
		RT_TRY(add_type(s, name, &type));
	snprintf(function, sizeof(function), RT_SPEC_MARKER PROVIDER ":%s", rt_op_name(op));
	return rt_scan_is_known(s->known, function) ? NULL : rt_scan_add_function(type, function, op, RT_PLACE_ARG, 1);
}

struct rt_error *rt_scan_marks(struct rt_scan *s)
{
	_cleanup_free_ struct rt_sdt_marker *markers = NULL;
	struct rt_error *err;
	size_t count = 0;

	err = rt_sdt_read(s->module->image, &markers, &count);
	/* what can be read is found; the plan tells of the damage where such a marker is asked for */
	(void)rt_error_catch(&err, RT_E_FORMAT);
	for (size_t i = 0; !err && i < count; i++)
		err = add_mark(s, &markers[i]);
	return err;
}
