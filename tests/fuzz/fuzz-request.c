/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any text as a probe definition: it is refused with a column and a fix, or what it says is in its own text, within the
 * kernel's limits, and its arguments alone, behind another function, are understood the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
	if (name && (!*name || strlen(name) > RT_REQUEST_NAME_MAX || strpbrk(name, " \t:/=")))
		abort();
}

static void check_argument(const struct rt_request_argument *a, const char *text)
{
	if (!a->text || !*a->text || !strstr(text, a->text) || strpbrk(a->text, " \t"))
		abort();
	check_name(a->name);
	if (a->type && !rt_request_is_type(a->type, strlen(a->type)))
		abort();
	if ((a->kind == RT_ARGUMENT_VARIABLE) != (a->variable != NULL) || a->fetch.derefs > RT_REQUEST_DEREFS_MAX)
		abort();
	for (size_t i = 0; i < a->step_count; i++)
		if ((a->steps[i].kind == RT_TRAIL_INDEX) == (a->steps[i].name != NULL))
			abort();
}

static void check_point(const struct rt_request *r)
{
	check_name(r->group);
	check_name(r->event);
	if (r->group && !r->event)
		abort();
	switch (r->kind) {
	case RT_REQUEST_FUNCTION:
		if (!r->function || !*r->function || r->provider ||
		    (r->offset != 0) + r->at_return + r->has_line + (r->pattern != NULL) > 1)
			abort();
		break;
	case RT_REQUEST_LINE:
		if (!r->file || !r->line || r->function)
			abort();
		break;
	case RT_REQUEST_SOURCE:
		if (!r->file || !r->pattern || r->function)
			abort();
		break;
	case RT_REQUEST_ADDRESS:
		if (r->function || r->file)
			abort();
		break;
	case RT_REQUEST_MARKER:
		/* "%EVENT" is that of any group */
		if ((!r->provider && !r->cached) || !r->function || r->file)
			abort();
		break;
	}
}

static void check_alone(const struct rt_request_argument *a)
{
	_cleanup_free_ char *text = NULL;
	struct rt_request again;

	if (asprintf(&text, "f %s", a->text) < 0)
		abort();
	if (rt_request_parse(text, &again) || again.arguments.len != 1 || again.arguments.data[0].kind != a->kind ||
	    again.arguments.data[0].step_count != a->step_count || again.arguments.data[0].user != a->user ||
	    !again.arguments.data[0].type != !a->type || again.arguments.data[0].fetch.base != a->fetch.base ||
	    again.arguments.data[0].fetch.number != a->fetch.number)
		abort();
	rt_request_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	struct rt_request r;
	struct rt_error *err;

	if (!text)
		return 0;
	err = rt_request_parse(text, &r);
	if (err) {
		if (err->code == RT_E_SPEC && (!strstr(err->message, ", column ") || !err->fix))
			abort();
		rt_error_free(err);
	} else {
		check_point(&r);
		for (size_t i = 0; i < r.arguments.len; i++) {
			check_argument(&r.arguments.data[i], r.text);
			check_alone(&r.arguments.data[i]);
		}
	}
	rt_request_deinit(&r);
	return 0;
}
