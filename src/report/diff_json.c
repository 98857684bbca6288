/* SPDX-License-Identifier: GPL-2.0-only */
/* A diff for programs: schema "reftrace-diff-1". */
#include "report/diff.h"
#include "report/json_writer.h"
#include "report/words.h"

static void side(struct rt_json *json, const char *key, const struct rt_diff_side *s)
{
	const struct rt_trust *trust = &s->verdict->trust;

	rt_json_begin_object(json, key);
	rt_json_string(json, "path", s->path);
	rt_json_begin_array(json, "command");
	for (size_t i = 0; s->command && s->command[i]; i++)
		rt_json_string(json, NULL, s->command[i]);
	rt_json_end_array(json);
	rt_json_bool(json, "complete", trust->complete && !trust->lost);
	rt_json_bool(json, "nothing_seen", trust->nothing_seen);
	rt_json_u64(json, "events", trust->events);
	rt_json_end_object(json);
}

static void frame(struct rt_json *json, const char *key, const struct rt_frame *f)
{
	if (!f) {
		rt_json_null(json, key);
		return;
	}
	rt_json_begin_object(json, key);
	rt_json_frame(json, f);
	rt_json_end_object(json);
}

static void one(struct rt_json *json, const char *key, const struct rt_finding *f, uint64_t objects)
{
	if (!f) {
		rt_json_null(json, key);
		return;
	}
	rt_json_begin_object(json, key);
	rt_json_string(json, "id", f->id);
	rt_json_u64(json, "objects", objects);
	rt_json_u64(json, "of", f->of);
	rt_json_u64(json, "references", f->references);
	rt_json_number(json, "confidence", f->confidence);
	frame(json, "guilty", &f->guilty);
	rt_json_end_object(json);
}

static void row(struct rt_json *json, const struct rt_diff_row *r)
{
	const struct rt_finding *f = r->new_one ?: r->old_one;

	rt_json_begin_object(json, NULL);
	rt_json_string(json, "change", rt_change_word(r->change));
	rt_json_bool(json, "suspect", r->suspect);
	rt_json_string(json, "kind", rt_finding_word(f->kind));
	rt_json_string(json, "type", f->type);
	rt_json_string(json, "class", f->klass);
	one(json, "old", r->old_one, r->old_objects);
	one(json, "new", r->new_one, r->new_objects);
	rt_json_begin_array(json, "sites");
	for (size_t i = 0; i < r->site_count; i++) {
		const struct rt_diff_site *s = &r->sites[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "change", rt_change_word(s->change));
		rt_json_string(json, "function", s->function);
		rt_json_u64(json, "old_references", s->old_references);
		rt_json_u64(json, "new_references", s->new_references);
		frame(json, "old", s->old_references ? &s->old_frame : NULL);
		frame(json, "new", s->new_references ? &s->new_frame : NULL);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
	rt_json_end_object(json);
}

struct rt_error *rt_diff_json(const struct rt_diff *diff, const struct rt_diff_head *head, struct rt_sink *sink)
{
	struct rt_json json;

	rt_json_init(&json, sink);
	rt_json_begin_object(&json, NULL);
	rt_json_string(&json, "schema", "reftrace-diff-1");
	side(&json, "old", &head->before);
	side(&json, "new", &head->after);
	rt_json_i64(&json, "exit", head->exit_status);
	rt_json_begin_object(&json, "counts");
	for (unsigned i = 0; i < RT_CHANGES; i++)
		rt_json_u64(&json, rt_change_word(i), diff->changes[i]);
	rt_json_end_object(&json);
	rt_json_begin_array(&json, "findings");
	for (size_t i = 0; i < diff->count; i++)
		row(&json, &diff->rows[i]);
	rt_json_end_array(&json);
	rt_json_begin_array(&json, "alive");
	for (size_t i = 0; i < diff->alive_count; i++) {
		rt_json_begin_object(&json, NULL);
		rt_json_string(&json, "type", diff->alive[i].type);
		rt_json_string(&json, "class", diff->alive[i].klass);
		rt_json_u64(&json, "old", diff->alive[i].old_objects);
		rt_json_u64(&json, "new", diff->alive[i].new_objects);
		rt_json_end_object(&json);
	}
	rt_json_end_array(&json);
	rt_json_end_object(&json);
	return rt_sink_end(sink);
}
