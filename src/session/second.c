/* SPDX-License-Identifier: GPL-2.0-only */
/* What a second run of the same program asks of the first one. */
#include "insn/taken.h"
#include "probe/call.h"
#include "probe/spec_type.h"
#include "session/internal.h"

/* The only module in which the plan has points for a function of this name. NULL: several have, or none. */
static const char *only_module(const struct rt_session *s, const struct rt_plan *plan, const char *name)
{
	uint32_t only = 0;

	for (size_t i = 0; i < plan->points.len; i++) {
		const struct rt_point *p = &plan->points.data[i];

		if (!p->name || strcmp(p->name, name) != 0)
			continue;
		if (only && only != p->module)
			return NULL;
		only = p->module;
	}
	return only && rt_session_module(s, only) ? rt_module_basename(rt_session_module(s, only)) : NULL;
}

/* What was found in one module is meant there: others may have loaded the same names by then, or wrap them. */
static struct rt_error *bind(const struct rt_session *s, const struct rt_plan *plan, struct rt_spec_type *type)
{
	for (size_t i = 0; i < type->functions.len; i++) {
		struct rt_spec_function *f = &type->functions.data[i];
		const char *module;

		if (f->dso || rt_spec_is_marker(f) || rt_spec_is_pattern(f) || rt_spec_is_calls(type))
			continue;
		module = only_module(s, plan, f->name);
		if (!module || rt_glob_is(module))
			continue;
		f->dso = strdup(module);
		if (!f->dso)
			return rt_error_nomem();
	}
	return NULL;
}

/* By its own words, as sure of it as before. */
static struct rt_error *copy_type(const struct rt_session *s, const struct rt_plan *plan,
				  const struct rt_spec_type *type, struct rt_spec *to)
{
	_cleanup_free_ char *text = NULL;
	struct rt_spec one = { 0 };
	struct rt_error *err = rt_vec_push(&one.types, *type) ? NULL : rt_error_nomem();

	if (!err)
		err = rt_spec_write(&one, &text);
	rt_vec_deinit(&one.types); /* what is in it belongs to type */
	if (!err)
		err = rt_spec_parse(text, strlen(text), type->origin ?: "-P", to);
	if (err || !rt_spec_is_guessed(type))
		return err;
	rt_spec_guess(&to->types.data[to->types.len - 1]);
	return bind(s, plan, &to->types.data[to->types.len - 1]);
}

struct rt_error *rt_session_copy_spec(const struct rt_session *session, struct rt_spec *to)
{
	for (size_t i = 0; i < session->batches.len; i++) {
		const struct rt_plan *plan = session->batches.data[i]->plan;

		for (size_t k = 0; k < plan->types.len; k++) {
			const struct rt_plan_type *type = &plan->types.data[k];

			if (type->present && !rt_spec_type_named(to, type->spec->name))
				RT_TRY(copy_type(session, plan, type->spec, to));
		}
	}
	return NULL;
}

bool rt_session_takes_result(const struct rt_session *session, uint32_t module, struct rt_elfaddr after)
{
	_cleanup_(rt_decoder_destroyp) struct rt_decoder *decoder = NULL;
	const struct rt_module *m = rt_session_module(session, module);

	if (!m || !m->image)
		return false;
	rt_error_free(rt_decoder_create(m->image->machine, &decoder));
	return decoder && rt_result_is_taken(m->image, decoder, after);
}
