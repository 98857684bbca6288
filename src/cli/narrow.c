/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/narrow.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/fs.h"
#include "base/sink.h"

enum { LEVELS = 12, WATCHED_MAX = 64 }; /* frames of a stack that are looked at; functions, in all */

/* Findings first, then suspects: number i of both. NULL: there are no more. */
static const struct rt_finding *accusation(const struct rt_verdict *v, size_t i)
{
	if (i < v->finding_count)
		return &v->findings[i];
	return i - v->finding_count < v->suspect_count ? &v->suspects[i - v->finding_count] : NULL;
}

/* With debug information what returns an object is watched in any run. */
static bool is_unknown(const struct rt_frame *f)
{
	return !f->inlined && !f->returns && !f->file && f->entry && f->module && *f->module;
}

/* By the code of its caller, which is the next frame: what is left in the register otherwise tells nothing. */
static bool may_hand_up(const struct rt_trace_stack *s, size_t k, const struct rt_session *session)
{
	return is_unknown(&s->frames[k]) && k + 1 < s->count &&
	       rt_session_takes_result(session, s->frames[k + 1].module_id,
				       (struct rt_elfaddr){ s->frames[k + 1].address });
}

/* One word of a SPEC for each function of the stacks that nobody knows the result of. */
static void watch(const struct rt_finding *f, const struct rt_session *session, struct rt_sink *words, size_t *watched)
{
	for (size_t i = 0; i < f->origin_count; i++) {
		const struct rt_trace_stack *s = &f->origins[i].stack;

		for (size_t k = 0; k < s->count && k < LEVELS && *watched < WATCHED_MAX; k++) {
			const char *module = rt_basename(s->frames[k].module ?: "");
			char word[NAME_MAX + 64];

			/* a name that the language has no word for cannot be told */
			if (strpbrk(module, " \t\n#,:=?*[]"))
				continue;
			snprintf(word, sizeof(word), " move=0x%" PRIx64 "@%s:ret", s->frames[k].entry, module);
			if (memmem(words->buffer, words->len, word, strlen(word)) || !may_hand_up(s, k, session))
				continue;
			rt_sink_puts(words, word);
			(*watched)++;
		}
	}
}

static struct rt_error *add_watched(const struct rt_finding *f, const struct rt_session *session, struct rt_narrow *n)
{
	struct rt_error *err;
	struct rt_sink words;
	size_t before = n->watched;

	rt_sink_init_memory(&words);
	rt_sink_printf(&words, "type=%s", f->type);
	watch(f, session, &words, &n->watched);
	err = rt_sink_end(&words);
	if (!err && n->watched > before)
		err = rt_spec_parse(words.buffer, words.len, "--narrow", &n->spec);
	rt_sink_deinit(&words);
	return err;
}

struct rt_error *rt_narrow_plan(const struct rt_verdict *verdict, const struct rt_session *session,
				struct rt_narrow *ret)
{
	const struct rt_finding *f;

	*ret = (struct rt_narrow){ 0 };
	for (size_t i = 0; (f = accusation(verdict, i)); i++) {
		ret->thin += rt_finding_is_thin(f);
		ret->type = ret->type ?: rt_finding_is_thin(f) ? f->type : NULL;
	}
	if (!ret->thin)
		return NULL;
	RT_TRY(rt_session_copy_spec(session, &ret->spec));
	for (size_t i = 0; (f = accusation(verdict, i)); i++) {
		if (rt_finding_is_thin(f) && rt_spec_type_named(&ret->spec, f->type))
			RT_TRY(add_watched(f, session, ret));
	}
	return NULL;
}

void rt_narrow_deinit(struct rt_narrow *narrow)
{
	rt_spec_deinit(&narrow->spec);
}

bool rt_narrow_recurred(const struct rt_verdict *first, const struct rt_verdict *second)
{
	const struct rt_finding *f, *again;

	for (size_t i = 0; (f = accusation(first, i)); i++) {
		if (!rt_finding_is_thin(f))
			continue;
		for (size_t k = 0; (again = accusation(second, k)); k++)
			if (again->kind == f->kind && !strcmp(again->type, f->type))
				return true;
	}
	return false;
}
