/* SPDX-License-Identifier: GPL-2.0-only */
/* A module opened as the session opens it, and a plan over it. */
#pragma once

#include "probe/plan.h"
#include "probe/scan.h"

#include "workdir.h"

struct planned {
	struct rt_image *image;
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
	struct rt_plan_module module;
	struct rt_spec spec;
	struct rt_plan *plan;
};

static inline void planned_open(struct planned *p, const char *path)
{
	*p = (struct planned){ 0 };
	assert_ok(rt_image_open(path, &p->image));
	assert_ok(rt_symtab_create(p->image, &p->symtab));
	assert_ok(rt_dwarf_create(p->image, &p->dwarf));
	p->module = (struct rt_plan_module){
		.id = 1, .name = p->image->name, .image = p->image, .symtab = p->symtab, .dwarf = p->dwarf
	};
}

/* Plans spec text (added to p->spec) over the module. */
static inline void planned_make(struct planned *p, const char *text, const struct rt_plan_options *options)
{
	static const struct rt_plan_options usual = { .return_points = true, .avoid_nop5 = true };
	size_t first;

	if (text)
		assert_ok(rt_spec_parse(text, strlen(text), "-P", &p->spec));
	assert_ok(rt_plan_create(&p->spec, options ? options : &usual, &p->plan));
	assert_ok(rt_plan_module(p->plan, &p->module, &first));
	assert_int_equal(first, 0);
}

static inline void planned_close(struct planned *p)
{
	rt_plan_destroy(p->plan);
	rt_spec_deinit(&p->spec);
	rt_dwarf_destroy(p->dwarf);
	rt_symtab_destroy(p->symtab);
	rt_image_destroy(p->image);
}

/* The first point of a function; NULL: none. */
static inline const struct rt_point *planned_point(const struct planned *p, const char *name)
{
	for (size_t i = 0; i < p->plan->points.len; i++)
		if (strcmp(p->plan->points.data[i].name, name) == 0)
			return &p->plan->points.data[i];
	return NULL;
}

/* What a scan found of a type; NULL: not that. */
static inline const struct rt_spec_function *planned_function(const struct rt_spec_type *type, const char *name)
{
	for (size_t i = 0; type && i < type->functions.len; i++)
		if (strcmp(type->functions.data[i].name, name) == 0)
			return &type->functions.data[i];
	return NULL;
}

/* Why a function was refused; NULL: it was not. */
static inline const char *planned_why(const struct planned *p, const char *name)
{
	for (size_t i = 0; i < p->plan->refused.len; i++)
		if (strcmp(p->plan->refused.data[i].function, name) == 0)
			return p->plan->refused.data[i].why;
	return NULL;
}
