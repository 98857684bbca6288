/* SPDX-License-Identifier: GPL-2.0-only */
/* Which rule takes which finding. */
#include "report/suppress.h"

#include <string.h>

#include "probe/spec.h"
#include "report/words.h"

static bool fits(const char *glob, const char *text)
{
	return text && rt_glob_match(glob, text);
}

/* A path, or its last part. */
static bool fits_path(const char *glob, const char *path)
{
	return path && (rt_glob_match(glob, path) || rt_glob_match(glob, rt_basename(path)));
}

static bool fits_line(struct rt_arena *arena, const char *glob, const struct rt_frame *frame)
{
	return frame->file && frame->line && fits_path(glob, rt_format(arena, "%s:%u", frame->file, frame->line));
}

/* Function, FILE, FILE:LINE or module. */
static bool fits_place(struct rt_arena *arena, const char *glob, const struct rt_frame *frame)
{
	return fits(glob, frame->function) || fits_path(glob, frame->file) || fits_path(glob, frame->module) ||
	       fits_line(arena, glob, frame);
}

static bool fits_guilty(struct rt_arena *arena, const char *glob, const struct rt_frame *frame)
{
	return rt_glob_match(glob, rt_place_text(arena, frame));
}

static bool fits_frame(struct rt_arena *arena, const struct rt_rule_frame *rule, const struct rt_frame *frame)
{
	switch (rule->kind) {
	case RT_RULE_FUN:
		return fits(rule->glob, frame->function);
	case RT_RULE_OBJ:
		return fits_path(rule->glob, frame->module);
	case RT_RULE_SRC:
		return fits_path(rule->glob, frame->file) || fits_line(arena, rule->glob, frame);
	case RT_RULE_ANY:
		break;
	}
	return true;
}

/* What a stack of valgrind's has below the function that hands out an object. */
static bool is_allocator(const struct rt_rule_frame *rule)
{
	static const char *const names[] = { "malloc",         "calloc",        "realloc",       "memalign",
					     "posix_memalign", "aligned_alloc", "_Znwm",         "_Znam",
					     "strdup",         "operator new",  "operator new[]" };

	for (size_t i = 0; rule->kind == RT_RULE_FUN && i < sizeof(names) / sizeof(*names); i++) {
		if (rt_glob_match(rule->glob, names[i]))
			return true;
	}
	return false;
}

/* The frames of an origin, the function called there included as number 0. */
static struct rt_frame frame_of(const struct rt_origin *origin, size_t n)
{
	/* of the API only its name is known */
	return n ? origin->stack.frames[n - 1] : (struct rt_frame){ .function = origin->api };
}

/* Do the rule's frames from i on fit the stack from frame n on? "..." stands for any number, as * does in a glob. */
static bool fits_stack(struct rt_arena *arena, const struct rt_rule *rule, size_t i, const struct rt_origin *origin,
		       size_t n)
{
	size_t count = origin->stack.count + 1, star = SIZE_MAX, resume = 0;

	while (i < rule->frames.len) {
		const struct rt_rule_frame *f = &rule->frames.data[i];
		struct rt_frame frame;

		if (f->kind == RT_RULE_ANY) {
			star = ++i;
			resume = n;
			continue;
		}
		if (n < count) {
			frame = frame_of(origin, n);
			if (fits_frame(arena, f, &frame)) {
				i++;
				n++;
				continue;
			}
		}
		if (star == SIZE_MAX || resume >= count)
			return false;
		i = star;
		n = ++resume;
	}
	return true;
}

static bool fits_origin(struct rt_arena *arena, const struct rt_rule *rule, const struct rt_origin *origin)
{
	size_t skip = 0;

	if (!origin->stack.count)
		return false;
	/* with or without the function that was called there, and with what it called to get memory */
	if (fits_stack(arena, rule, 0, origin, 0) || fits_stack(arena, rule, 0, origin, 1))
		return true;
	while (skip < rule->frames.len && is_allocator(&rule->frames.data[skip]))
		skip++;
	return skip && skip < rule->frames.len &&
	       (fits_stack(arena, rule, skip, origin, 0) || fits_stack(arena, rule, skip, origin, 1));
}

static bool any_frame(struct rt_arena *arena, const char *glob, const struct rt_origin *origin)
{
	if (fits(glob, origin->api))
		return true;
	for (size_t i = 0; i < origin->stack.count; i++) {
		if (fits_place(arena, glob, &origin->stack.frames[i]))
			return true;
	}
	return false;
}

static bool site_fits(struct rt_arena *arena, const char *glob, const struct rt_origin *origin)
{
	return origin->stack.count && fits_place(arena, glob, &origin->stack.frames[0]);
}

/* What a rule says about the places that the references came from: of how many of them it is true. */
static size_t count_origins(struct rt_arena *arena, const struct rt_rule *rule, const struct rt_finding *f)
{
	bool site = rule->site && !fits_place(arena, rule->site, &f->guilty);
	bool any = rule->any && !fits_place(arena, rule->any, &f->guilty);
	size_t n = 0;

	for (size_t i = 0; i < f->origin_count; i++) {
		const struct rt_origin *o = &f->origins[i];

		n += (!site || site_fits(arena, rule->site, o)) && (!any || any_frame(arena, rule->any, o)) &&
		     (!rule->frames.len || fits_origin(arena, rule, o));
	}
	if (!site && !any && !rule->frames.len)
		return f->origin_count;
	return n;
}

static bool takes(struct rt_arena *arena, struct rt_rule *rule, const struct rt_finding *f)
{
	bool by_place = rule->frames.len || (rule->site && !fits_place(arena, rule->site, &f->guilty)) ||
			(rule->any && !fits_place(arena, rule->any, &f->guilty));
	size_t n;

	if (!(rule->kinds & 1U << f->kind) || (rule->type && !fits(rule->type, f->type)) ||
	    (rule->klass && !fits(rule->klass, f->klass)) ||
	    (rule->guilty && !fits_guilty(arena, rule->guilty, &f->guilty)))
		return false;
	n = count_origins(arena, rule, f);
	if (by_place && !n)
		return false;
	/* what fits some of its stacks, or less of it, must not hide the rest */
	if ((by_place && (n < f->origin_count || f->origins_left_out)) || f->objects > rule->max) {
		rule->partly++;
		return false;
	}
	return true;
}

static const struct rt_rule *rule_for(struct rt_suppressions *s, const struct rt_finding *f)
{
	struct rt_arena arena = { 0 };
	const struct rt_rule *found = NULL;

	for (size_t i = 0; !found && i < s->rules.len; i++) {
		if (takes(&arena, &s->rules.data[i], f))
			found = &s->rules.data[i];
	}
	rt_arena_deinit(&arena);
	return found;
}

/* The objects of a finding that is suppressed are in no finding any more. */
static void uncount(struct rt_verdict *v, const struct rt_finding *f)
{
	for (size_t i = 0; f->kind == RT_LEAK && i < v->type_count; i++) {
		struct rt_type_count *t = &v->types[i];

		if (t->name && !strcmp(t->name, f->type))
			t->leaked -= t->leaked < f->objects ? t->leaked : f->objects;
	}
}

static void part(struct rt_suppressions *s, const struct rt_finding *findings, size_t count, bool suspects,
		 struct rt_suppression_result *r)
{
	struct rt_finding *to = suspects ? r->verdict.suspects : r->verdict.findings;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct rt_rule *rule = rule_for(s, &findings[i]);

		if (!rule) {
			to[kept++] = findings[i];
			continue;
		}
		r->suppressed[r->count++] = (struct rt_suppressed){ &findings[i], rule, suspects };
		s->rules.data[rule - s->rules.data].objects += findings[i].objects;
		if (suspects) {
			s->rules.data[rule - s->rules.data].suspects++;
		} else {
			s->rules.data[rule - s->rules.data].findings++;
			uncount(&r->verdict, &findings[i]);
		}
	}
	if (suspects)
		r->verdict.suspect_count = kept;
	else
		r->verdict.finding_count = kept;
}

struct rt_error *rt_suppress(struct rt_suppressions *suppressions, const struct rt_verdict *verdict,
			     struct rt_suppression_result *ret)
{
	*ret = (struct rt_suppression_result){ .verdict = *verdict };
	for (size_t i = 0; i < suppressions->rules.len; i++) {
		struct rt_rule *rule = &suppressions->rules.data[i];

		rule->findings = rule->suspects = rule->objects = rule->partly = 0;
	}
	ret->verdict.findings = calloc(verdict->finding_count + 1, sizeof(*verdict->findings));
	ret->verdict.suspects = calloc(verdict->suspect_count + 1, sizeof(*verdict->suspects));
	ret->verdict.types = calloc(verdict->type_count + 1, sizeof(*verdict->types));
	ret->suppressed = calloc(verdict->finding_count + verdict->suspect_count + 1, sizeof(*ret->suppressed));
	if (!ret->verdict.findings || !ret->verdict.suspects || !ret->verdict.types || !ret->suppressed)
		return rt_error_nomem();
	if (verdict->type_count)
		memcpy(ret->verdict.types, verdict->types, verdict->type_count * sizeof(*verdict->types));
	part(suppressions, verdict->findings, verdict->finding_count, false, ret);
	part(suppressions, verdict->suspects, verdict->suspect_count, true, ret);
	return NULL;
}

void rt_suppression_result_deinit(struct rt_suppression_result *result)
{
	free(result->verdict.findings);
	free(result->verdict.suspects);
	free(result->verdict.types);
	free(result->suppressed);
	*result = (struct rt_suppression_result){ 0 };
}

/* A name as a glob that fits nothing else; what no line of a file can hold there becomes "any one character". */
static const char *as_glob(struct rt_arena *arena, const char *name)
{
	char *glob = rt_arena_alloc(arena, 2 * strlen(name) + 1), *to = glob;

	if (!glob)
		return "?";
	for (const char *c = name; *c; c++) {
		if (strchr("*?[\\", *c))
			*to++ = '\\';
		*to++ = (unsigned char)*c < ' ' || *c == 0x7f || (*c == ' ' && (c == name || !c[1])) ? '?' : *c;
	}
	*to = 0;
	return glob;
}

const char *rt_suppression_for(struct rt_arena *arena, const struct rt_finding *f)
{
	static const char *const kinds[] = { [RT_LEAK] = "Leak",
					     [RT_EXTRA_PUT] = "ExtraPut",
					     [RT_USE_AFTER_PUT] = "UseAfterPut",
					     [RT_RACY_UPDATE] = "RacyUpdate" };
	const char *guilty = rt_place_text(arena, &f->guilty), *text;

	text = rt_format(arena, "{\n   %s %s of %s in %s\n   RefTrace:%s\n   type:%s\n", f->id,
			 rt_finding_word(f->kind), rt_type_text(arena, f->type, f->klass), guilty,
			 (unsigned)f->kind < sizeof(kinds) / sizeof(*kinds) ? kinds[f->kind] : "Any",
			 as_glob(arena, f->type));
	if (f->klass)
		text = rt_format(arena, "%s   class:%s\n", text, as_glob(arena, f->klass));
	return rt_format(arena, "%s   guilty:%s\n}\n", text, as_glob(arena, guilty));
}
