/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Classes that count: a pair of methods of one class, told apart by their
 * mangled names. The object is `this`, the first argument, so the code has the
 * last word: both must change one field, by +1 and by -1.
 */
#include <stdio.h>
#include <string.h>

#include "probe/mangled.h"
#include "probe/scan_build.h"

/* The method called word of the class that get belongs to, without arguments. */
static bool find_put(struct rt_scan *s, const char *get, const struct rt_mangled *m, const char *word,
		     struct rt_scan_named *ret)
{
	char name[2 * RT_FAMILY_NAME_MAX];
	const struct rt_survey_symbol *found;
	int n = snprintf(name, sizeof(name), "%.*s%zu%sEv", (int)m->prefix, get, strlen(word), word);

	if (n < 0 || (size_t)n >= sizeof(name))
		return false;
	found = rt_survey_symbol(&s->survey, name, NULL);
	if (!found)
		return false;
	/* the name must outlive this call */
	*ret = (struct rt_scan_named){ .name = found->symbol->name, .symbol = found->symbol };
	return true;
}

static bool counts(struct rt_scan *s, struct rt_scan_family *f)
{
	struct rt_effect get, put;

	rt_effect_of(s->module->image, s->module->symtab, s->decoder, f->get.symbol->addr, RT_REG_RDI, &get);
	rt_effect_of(s->module->image, s->module->symtab, s->decoder, f->put.symbol->addr, RT_REG_RDI, &put);
	return rt_effect_counter(&get, &put, &f->counter, &f->counter_size);
}

static struct rt_error *consider_method(struct rt_scan *s, const struct rt_symbol *symbol)
{
	struct rt_scan_family f = { .get = { .name = symbol->name, .symbol = symbol },
				    .put_levels = 1,
				    .by_code = true };
	struct rt_mangled m;
	const char *word;

	if (!rt_mangled_method(symbol->name, &m) || !m.plain || m.klass_len >= sizeof(f.stem_name) ||
	    rt_scan_is_known(s->known, symbol->name) || rt_scan_is_known(&s->found, symbol->name))
		return NULL;
	memcpy(f.stem_name, m.klass, m.klass_len);
	f.method = m.prefix;
	for (size_t i = 0; (word = rt_mangled_put(&m, i)); i++)
		if (find_put(s, symbol->name, &m, word, &f.put) && counts(s, &f) && rt_scan_wanted(s, &f))
			return rt_scan_add_family(s, &f);
	return NULL;
}

struct rt_error *rt_scan_classes(struct rt_scan *s)
{
	for (size_t i = 0; i < s->survey.symbols.len; i++)
		if (strncmp(s->survey.symbols.data[i].symbol->name, "_ZN", 3) == 0)
			RT_TRY(consider_method(s, s->survey.symbols.data[i].symbol));
	return NULL;
}
