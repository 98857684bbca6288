/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/survey.h"

#include <string.h>

static struct rt_error *add_symbols(struct rt_survey *s, const struct rt_symtab *symtab)
{
	for (size_t i = 0; symtab && i < symtab->count; i++) {
		const struct rt_symbol *symbol = &symtab->symbols[i];
		struct rt_survey_symbol *entry;
		enum rt_clone clone;
		size_t len;

		if (!symbol->function || symbol->plt || !symbol->addr.v)
			continue;
		len = rt_clone_base(symbol->name, &clone);
		entry = rt_vec_add(&s->symbols);
		if (!entry)
			return rt_error_nomem();
		*entry = (struct rt_survey_symbol){ .symbol = symbol, .clone = (uint8_t)clone };
		entry->name = rt_intern_bytes(&s->names, symbol->name, len);
		if (!entry->name)
			return rt_error_nomem();
	}
	return NULL;
}

struct visit {
	struct rt_survey *survey;
	bool failed;
};

static bool add_function(const struct rt_signature *sig, void *arg)
{
	struct visit *v = arg;
	struct rt_survey *s = v->survey;
	struct rt_survey_function *f;

	if (!sig->function)
		return true;
	v->failed = true;
	f = rt_vec_add(&s->functions);
	if (!f)
		return false;
	*f = (struct rt_survey_function){ .name = sig->function,
					  .linkage = sig->linkage,
					  .file = sig->file,
					  .line = sig->line,
					  .external = sig->external,
					  .has_body = sig->has_body,
					  .has_inlined = sig->has_inlined,
					  .addr = sig->addr,
					  .returns = sig->returns,
					  .first_param = s->params.len };
	f->name_id = rt_intern_string(&s->names, sig->function);
	if (!f->name_id)
		return false;
	for (size_t i = 0; i < sig->param_count; i++, f->param_count++)
		if (!rt_vec_push(&s->params, sig->params[i]))
			return false;
	v->failed = false;
	return true;
}

/* Chains run in file order. */
static struct rt_error *link_names(struct rt_survey *s)
{
	s->head_count = (uint32_t)s->names.items.len;
	s->heads = calloc(s->head_count + 1, sizeof(*s->heads));
	if (!s->heads)
		return rt_error_nomem();
	for (size_t i = s->symbols.len; i-- > 0;) {
		uint32_t *head = &s->heads[s->symbols.data[i].name - 1].symbol;

		s->symbols.data[i].next = *head;
		*head = (uint32_t)i + 1;
	}
	for (size_t i = s->functions.len; i-- > 0;) {
		uint32_t *head = &s->heads[s->functions.data[i].name_id - 1].function;

		s->functions.data[i].next = *head;
		*head = (uint32_t)i + 1;
	}
	return NULL;
}

struct rt_error *rt_survey_init(const struct rt_plan_module *module, struct rt_survey *survey)
{
	struct rt_survey s = { .module = module };
	struct visit visit = { .survey = &s };
	struct rt_error *err = add_symbols(&s, module->symtab);

	if (!err && module->dwarf && rt_dwarf_present(module->dwarf))
		err = rt_dwarf_functions(module->dwarf, add_function, &visit);
	if (!err && visit.failed)
		err = rt_error_nomem();
	if (!err)
		err = link_names(&s);
	if (err) {
		rt_survey_deinit(&s);
		return err;
	}
	*survey = s;
	return NULL;
}

void rt_survey_deinit(struct rt_survey *survey)
{
	rt_intern_deinit(&survey->names);
	rt_vec_deinit(&survey->symbols);
	rt_vec_deinit(&survey->functions);
	rt_vec_deinit(&survey->params);
	free(survey->heads);
	*survey = (struct rt_survey){ 0 };
}

/* 0: no such name. An unknown name is interned as well; the table is ours. */
static uint32_t name_id(struct rt_survey *survey, const char *name)
{
	uint32_t id = rt_intern_string(&survey->names, name);

	return id > survey->head_count ? 0 : id;
}

const struct rt_survey_symbol *rt_survey_symbol(struct rt_survey *survey, const char *name,
						const struct rt_survey_symbol *prev)
{
	uint32_t id = prev ? 0 : name_id(survey, name), at = prev ? prev->next : id ? survey->heads[id - 1].symbol : 0;

	return at ? &survey->symbols.data[at - 1] : NULL;
}

const struct rt_survey_function *rt_survey_function(struct rt_survey *survey, const char *name,
						    const struct rt_survey_function *prev)
{
	uint32_t id = prev ? 0 : name_id(survey, name);
	uint32_t at = prev ? prev->next : id ? survey->heads[id - 1].function : 0;

	return at ? &survey->functions.data[at - 1] : NULL;
}

const struct rt_survey_function *rt_survey_at(const struct rt_survey *survey, struct rt_elfaddr addr)
{
	for (size_t i = 0; i < survey->functions.len; i++)
		if (survey->functions.data[i].has_body && survey->functions.data[i].addr.v == addr.v)
			return &survey->functions.data[i];
	return NULL;
}

const struct rt_survey_function *rt_survey_declaration(struct rt_survey *survey, const char *name,
						       struct rt_elfaddr addr)
{
	const struct rt_survey_function *f = NULL, *any = NULL;

	while ((f = rt_survey_function(survey, name, f))) {
		if (f->has_body && f->addr.v == addr.v)
			return f;
		if (!any)
			any = f;
	}
	return any ? any : rt_survey_at(survey, addr);
}

/* a header may declare the name that only symbols have */
static bool has_code(struct rt_survey *survey, const char *name)
{
	const struct rt_survey_function *f = NULL;

	while ((f = rt_survey_function(survey, name, f))) {
		if (f->has_body || f->has_inlined)
			return true;
	}
	return false;
}

const char *rt_survey_alias(struct rt_survey *survey, const char *name)
{
	const struct rt_survey_symbol *s = rt_survey_symbol(survey, name, NULL);
	const struct rt_survey_function *f = s ? rt_survey_at(survey, s->symbol->addr) : NULL;

	return f && !has_code(survey, name) ? f->name : NULL;
}

const struct rt_symbol *rt_survey_code(const struct rt_survey *survey, const struct rt_survey_function *function)
{
	const struct rt_symbol *symbol = function->code;

	if (!symbol && function->has_body && survey->module->symtab)
		symbol = rt_symtab_at(survey->module->symtab, function->addr);
	return symbol && symbol->addr.v == function->addr.v && symbol->size ? symbol : NULL;
}

const struct rt_param *rt_survey_param(const struct rt_survey *survey, const struct rt_survey_function *function,
				       unsigned n)
{
	if (!function || !n || n > function->param_count)
		return NULL;
	return &survey->params.data[function->first_param + n - 1];
}

bool rt_survey_range(const struct rt_survey *survey, struct rt_elfaddr addr, struct rt_elfaddr *start,
		     struct rt_elfaddr *end)
{
	const struct rt_symbol *symbol = survey->module->symtab ? rt_symtab_at(survey->module->symtab, addr) : NULL;
	bool lsda;

	if (symbol && symbol->size && symbol->addr.v + symbol->size > symbol->addr.v) {
		*start = symbol->addr;
		end->v = symbol->addr.v + symbol->size;
		return true;
	}
	return survey->module->dwarf && rt_dwarf_fde(survey->module->dwarf, addr, start, end, &lsda);
}

bool rt_survey_cold(struct rt_survey *survey, const struct rt_symbol *symbol, struct rt_elfaddr *start,
		    struct rt_elfaddr *end)
{
	const struct rt_survey_symbol *s = NULL;
	size_t len = strlen(symbol->name);
	enum rt_clone clone;
	char base[256];
	size_t base_len = rt_clone_base(symbol->name, &clone);

	if (base_len >= sizeof(base))
		return false;
	memcpy(base, symbol->name, base_len);
	base[base_len] = '\0';
	while ((s = rt_survey_symbol(survey, base, s))) {
		if (strncmp(s->symbol->name, symbol->name, len) != 0 ||
		    strncmp(s->symbol->name + len, ".cold", 5) != 0 || !s->symbol->size)
			continue;
		*start = s->symbol->addr;
		end->v = s->symbol->addr.v + s->symbol->size;
		return true;
	}
	return false;
}
