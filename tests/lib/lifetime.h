/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs .events text through the analysis. A scenario lives until story_end(). */
#pragma once

#include "engine/text.h"
#include "lifetime/lifetime.h"
#include "test.h"

struct story {
	struct rt_text *text;
	struct rt_lifetime *lifetime;
	const struct rt_verdict *verdict;
};

/* first: a record that the text cannot say, before all others; NULL = none */
static inline struct story story_begun(const struct rt_wire_head *first, const char *events,
				       const struct rt_lifetime_options *options)
{
	struct story s = { 0 };
	const struct rt_wire_head *record;

	assert_ok(rt_text_create(events, strlen(events), "story", &s.text));
	assert_ok(rt_lifetime_create(options, rt_text_namer(s.text), &s.lifetime));
	if (first)
		assert_ok(rt_lifetime_record(s.lifetime, first));
	for (;;) {
		assert_ok(rt_text_source(s.text)->next(rt_text_source(s.text), &record));
		if (!record)
			break;
		assert_true(rt_record_valid(record, record->size));
		assert_ok(rt_lifetime_record(s.lifetime, record));
	}
	assert_ok(rt_lifetime_verdict(s.lifetime, &s.verdict));
	return s;
}

static inline struct story story_run(const char *events, const struct rt_lifetime_options *options)
{
	return story_begun(NULL, events, options);
}

static inline void story_end(struct story *s)
{
	rt_lifetime_destroy(s->lifetime);
	rt_text_destroy(s->text);
}

static inline void story_print(const struct rt_verdict *v)
{
	static const char *const kinds[] = { "leak", "extra-put", "use-after-put", "racy-update" };
	static const char *const roles[] = { "missing-put", "extra-get", "extra-put", "use", "racy-update" };

	for (int pass = 0; pass < 2; pass++) {
		const struct rt_finding *f = pass ? v->suspects : v->findings;
		size_t n = pass ? v->suspect_count : v->finding_count;

		for (size_t i = 0; i < n; i++, f++) {
			print_message("%s %s %s %s in %s line %u, %llu objects, %.2f\n", pass ? "suspect" : "finding",
				      kinds[f->kind], f->type, roles[f->role],
				      f->guilty.function ? f->guilty.function : "?", f->guilty.line,
				      (unsigned long long)f->objects, f->confidence);
			for (size_t j = 0; j < f->evidence_count; j++)
				print_message("    %s\n", f->evidence[j]);
			for (size_t j = 0; j < f->alternative_count; j++)
				print_message("    or %s %.2f\n", f->alternatives[j].frame.function,
					      f->alternatives[j].confidence);
		}
	}
	for (size_t i = 0; i < v->alive_count; i++)
		print_message("alive %s %llu: %s\n", v->alive[i].type, (unsigned long long)v->alive[i].objects,
			      v->alive[i].reason);
	for (size_t i = 0; i < v->trust.note_count; i++)
		print_message("note: %s\n", v->trust.notes[i]);
	for (size_t i = 0; i < v->trust.unarmed_count; i++)
		print_message("unarmed: %s\n", v->trust.unarmed[i]);
	print_message("complete: %d\n", v->trust.complete);
}

/* Neither a finding nor a suspect, and that is known; so many objects of the first type, so many of them alive. */
static inline void story_lives(const char *events, uint64_t objects, uint64_t live)
{
	struct story s = story_run(events, NULL);

	if (s.verdict->finding_count || s.verdict->suspect_count || !s.verdict->trust.complete ||
	    s.verdict->types[0].incarnations != objects || s.verdict->types[0].live != live) {
		story_print(s.verdict);
		fail_msg("expected %llu objects, %llu alive; are %llu, %llu", (unsigned long long)objects,
			 (unsigned long long)live, (unsigned long long)s.verdict->types[0].incarnations,
			 (unsigned long long)s.verdict->types[0].live);
	}
	story_end(&s);
}

/* One finding and no other: kind, role, function, objects. */
static inline void story_accuses(const char *events, enum rt_finding_kind kind, enum rt_role role, const char *function,
				 uint64_t objects)
{
	struct story s = story_run(events, NULL);
	const struct rt_finding *f = s.verdict->findings;

	if (s.verdict->finding_count != 1 || f->kind != kind || f->role != role || !f->guilty.function ||
	    strcmp(f->guilty.function, function) || f->objects != objects) {
		story_print(s.verdict);
		fail_msg("expected one finding: kind %d role %d in %s, %llu objects", kind, role, function,
			 (unsigned long long)objects);
	}
	story_end(&s);
}

/* Nothing is accused. */
static inline void story_silent(const char *events)
{
	struct story s = story_run(events, NULL);

	if (s.verdict->finding_count) {
		story_print(s.verdict);
		fail_msg("expected no finding");
	}
	story_end(&s);
}

/* text times n, with @ replaced by the number of the turn plus from; caller frees */
static inline char *story_loop(const char *text, unsigned from, unsigned n)
{
	char *out = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	for (unsigned i = from; i < from + n; i++) {
		for (const char *p = text; *p; p++) {
			if (*p == '$')
				fprintf(f, "0x%x", 0x1000 + i * 0x40);
			else
				fputc(*p, f);
		}
	}
	fclose(f);
	return out;
}

static inline char *story_join(char *a, char *b, const char *end)
{
	char *out = NULL;

	if (asprintf(&out, "%s%s%s", a, b ? b : "", end) < 0)
		out = NULL;
	free(a);
	free(b);
	return out;
}
