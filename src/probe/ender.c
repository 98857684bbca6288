/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/ender.h"

#include <string.h>

#include "base/words.h"

struct search {
	struct rt_plan_build *b;
	const char *structure;
	uint64_t offset;
	const char *found;
	bool several;
};

/* the parameter is, or points to, a part of the struct that the byte lies in */
static bool takes_part(const struct search *s, const struct rt_param *p)
{
	const char *name = p->pointers == 1 ? p->pointee : p->pointers ? NULL : p->type;

	if (!name)
		return false;
	if (!p->pointers && (!strncmp(name, "struct ", 7) || !strncmp(name, "union ", 6)))
		name = strchr(name, ' ') + 1;
	return rt_dwarf_nested(s->b->module->dwarf, s->structure, s->offset, name);
}

static bool see(const char *name, void *arg)
{
	struct search *s = arg;
	struct rt_survey *survey = &s->b->survey;
	const struct rt_survey_function *f = NULL;

	if (!rt_words_destroy(name) || (s->found && !strcmp(s->found, name)))
		return true;
	while ((f = rt_survey_function(survey, name, f))) {
		for (unsigned i = 1; i <= f->param_count; i++) {
			if (!takes_part(s, rt_survey_param(survey, f, i)))
				continue;
			s->several = s->found != NULL;
			s->found = name;
			return !s->several;
		}
	}
	return true;
}

/* The source function that a call leads to, here in the module, if it ends something by its name; NULL: none is known.
 */
static const char *ender_called(const struct rt_plan_build *b, const struct rt_insn *insn)
{
	enum { SCOPES_MAX = 16 };
	struct rt_scope scopes[SCOPES_MAX];
	const struct rt_symbol *to = rt_symtab_at(b->module->symtab, insn->target);
	struct rt_elfaddr addr;
	size_t n;

	/* debug information is slow to tell where an address lies */
	if (!to || !rt_words_destroy(to->name))
		return NULL;
	addr = rt_plan_callee(b, insn->target);
	n = rt_dwarf_scopes(b->module->dwarf, addr, scopes, SCOPES_MAX);
	return n && scopes[n - 1].entry.v == addr.v ? scopes[n - 1].function : NULL;
}

/* What the code of the function calls before it comes to `at`. */
static void see_called(struct search *s, const struct rt_symbol *from, struct rt_elfaddr at)
{
	struct rt_elfaddr pc = from->addr;
	struct rt_insn insn;

	for (; pc.v < at.v && rt_plan_decode(s->b, pc, &insn); pc.v += insn.length) {
		const char *name = insn.call && insn.has_target ? ender_called(s->b, &insn) : NULL;

		if (name && !see(name, s))
			return;
	}
}

struct rt_error *rt_plan_ender(struct rt_plan_build *b, const struct rt_symbol *from, struct rt_elfaddr at,
			       const char *structure, uint64_t offset, const char **ret)
{
	struct search s = { .b = b, .structure = structure, .offset = offset };

	*ret = NULL;
	RT_TRY(rt_dwarf_inlined_into(b->module->dwarf, at, see, &s));
	if (!s.found)
		see_called(&s, from, at);
	*ret = s.several ? NULL : s.found;
	return NULL;
}
