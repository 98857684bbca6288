/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Own allocators whose references belong to holders: mem_reference(holder, object) adds one, mem_unlink(holder, object)
 * takes it back, mem_free(object) gives up the one that came with the memory. Objects are whatever was allocated there:
 * nothing is declared but void *, nothing is counted in a member. Two functions that are both given the same two
 * pointers say it all, with their names.
 */
#include <string.h>

#include "base/words.h"
#include "probe/making.h"
#include "probe/scan_build.h"

enum { WORDS = 16, OBJECT_ARG = 2 };

static const char *const unlinks[] = { "unlink", "unreference", "unref" };

static bool is_pointer_to_anything(const struct rt_param *p)
{
	return p && p->pointers == 1 && !p->pointee && p->type && strstr(p->type, "void");
}

/* the name, less underscores, is stem, '_' and the word, and maybe more behind it. Returns the stem's length; 0: no */
static size_t stem_before(const char *name, const char *const *words, size_t nr, bool *ret_plain)
{
	struct rt_word parts[WORDS];
	unsigned n = rt_words(name, parts, WORDS);

	for (unsigned i = 1; i < n; i++) {
		if (!rt_word_in(parts[i], words, nr))
			continue;
		*ret_plain = i + 1 == n;
		return (size_t)(parts[i - 1].s + parts[i - 1].len - name);
	}
	return 0;
}

struct holder {
	struct rt_scan *s;
	char stem[RT_FAMILY_NAME_MAX];
	size_t len;
};

/* "mem" of "_mem_unlink" */
static bool is_ours(const struct holder *h, const char *name, const char *const *words, size_t nr, bool plain)
{
	const char *start = name + strspn(name, "_");
	bool is_plain = false;
	size_t len = stem_before(start, words, nr, &is_plain);

	return len == h->len && !strncmp(start, h->stem, len) && (is_plain || !plain);
}

static bool takes_both(struct rt_scan *s, const struct rt_survey_function *d)
{
	return d->param_count >= OBJECT_ARG && is_pointer_to_anything(rt_survey_param(&s->survey, d, 1)) &&
	       is_pointer_to_anything(rt_survey_param(&s->survey, d, OBJECT_ARG));
}

static const struct rt_symbol *code_of(struct rt_scan *s, const struct rt_survey_function *d)
{
	const struct rt_symbol *symbol = rt_survey_code(&s->survey, d);

	return symbol && symbol->bind != RT_BIND_LOCAL ? symbol : NULL;
}

/* What one function of the allocator does; RT_OP_NONE: nothing that counts. */
static enum rt_op operation(const struct holder *h, const struct rt_survey_function *d, uint8_t *ret_arg)
{
	static const char *const gets[] = { "reference", "ref" }, *const frees[] = { "free" };
	/* what they return was there before, or is what the memory was before it moved */
	static const char *const others[] = { "realloc", "move",   "steal", "reparent", "find", "get",
					      "check",   "parent", "root",  "lookup",   "top",  "reference",
					      "append",  "ref",    "take",  "set" };
	struct rt_making m = { .image = h->s->module->image, .symtab = h->s->module->symtab, .decoder = h->s->decoder };
	const struct rt_symbol *symbol = code_of(h->s, d);

	if (!symbol)
		return RT_OP_NONE;
	*ret_arg = OBJECT_ARG;
	if (takes_both(h->s, d) && is_ours(h, d->name, gets, 2, false) && is_pointer_to_anything(&d->returns))
		return RT_OP_GET;
	if (takes_both(h->s, d) && is_ours(h, d->name, unlinks, 3, true))
		return RT_OP_PUT;
	*ret_arg = 1;
	if (is_ours(h, d->name, frees, 1, true) && is_pointer_to_anything(rt_survey_param(&h->s->survey, d, 1)))
		return RT_OP_PUT;
	*ret_arg = 0;
	if (!strncmp(d->name + strspn(d->name, "_"), h->stem, h->len) && is_pointer_to_anything(&d->returns) &&
	    !rt_words_have(d->name, others, sizeof(others) / sizeof(others[0])) && rt_making_returns(&m, symbol))
		return RT_OP_NEW;
	return RT_OP_NONE;
}

static struct rt_error *take(const struct holder *h)
{
	_cleanup_(rt_spec_deinit) struct rt_spec one = { 0 };
	struct rt_spec_type *type = rt_vec_add(&one.types);
	struct rt_scan *s = h->s;
	unsigned gets = 0, puts_ = 0, news = 0;

	if (!type)
		return rt_error_nomem();
	type->start = 1;
	type->counter_offset = RT_COUNTER_UNKNOWN;
	type->name = strdup(h->stem);
	type->origin = strdup("scan");
	if (!type->name || !type->origin)
		return rt_error_nomem();
	for (size_t i = 0; i < s->survey.functions.len; i++) {
		const struct rt_survey_function *d = &s->survey.functions.data[i];
		uint8_t arg = 0;
		enum rt_op op = operation(h, d, &arg);

		if (op == RT_OP_NONE || rt_scan_is_known(s->known, d->name))
			continue;
		RT_TRY(rt_scan_add_function(type, d->name, op, arg ? RT_PLACE_ARG : RT_PLACE_RET, arg));
		gets += op == RT_OP_GET;
		puts_ += op == RT_OP_PUT;
		news += op == RT_OP_NEW;
	}
	return gets && puts_ > 1 && news ? rt_spec_join(&s->found, &one) : NULL;
}

struct rt_error *rt_scan_holders(struct rt_scan *s)
{
	for (size_t i = 0; i < s->survey.functions.len && s->module->symtab; i++) {
		const struct rt_survey_function *d = &s->survey.functions.data[i];
		const char *name = d->name + strspn(d->name, "_");
		struct holder h = { .s = s };
		bool plain = false;

		if (!takes_both(s, d))
			continue;
		h.len = stem_before(name, unlinks, 3, &plain);
		if (!h.len || !plain || h.len >= sizeof(h.stem))
			continue;
		memcpy(h.stem, name, h.len);
		if (!rt_spec_type_named(&s->found, h.stem) && !rt_spec_type_named(s->known, h.stem) &&
		    rt_scan_asked(s, h.stem))
			RT_TRY(take(&h));
	}
	return NULL;
}
