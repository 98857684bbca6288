/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/json_writer.h"
#include "report/view.h"
#include "report/words.h"

static uint64_t since(const struct rt_verdict *v, uint64_t time_ns)
{
	return time_ns > v->start_ns ? time_ns - v->start_ns : 0;
}

static void number(struct rt_json *json, const char *key, int64_t n)
{
	if (n == INT64_MIN)
		rt_json_null(json, key);
	else
		rt_json_i64(json, key, n);
}

static void event(struct rt_json *json, const struct rt_verdict *v, const struct rt_watched_event *e)
{
	static const char *const marks[] = { NULL, "open", "fault" };

	rt_json_begin_object(json, NULL);
	rt_json_u64(json, "time_ns", since(v, e->history.time_ns));
	rt_json_u64(json, "tid", e->history.tid);
	rt_json_string(json, "op", rt_op_name(e->history.op));
	rt_json_i64(json, "delta", e->history.delta);
	number(json, "count", e->history.count_after);
	rt_json_string(json, "api", e->history.api);
	rt_json_string(json, "function", e->history.site.function);
	rt_json_string(json, "file", e->history.site.file);
	rt_json_u64(json, "line", e->history.site.line);
	number(json, "mate", e->mate < 0 ? INT64_MIN : e->mate);
	rt_json_string(json, "mark", marks[e->mark]);
	rt_json_begin_array(json, "stack");
	for (size_t i = 0; i < e->stack.count; i++) {
		rt_json_begin_object(json, NULL);
		rt_json_frame(json, &e->stack.frames[i]);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
	rt_json_end_object(json);
}

static void finding(struct rt_json *json, const struct rt_watched *w)
{
	if (!w->finding) {
		rt_json_null(json, "finding");
		return;
	}
	rt_json_begin_object(json, "finding");
	rt_json_string(json, "id", w->finding->id);
	rt_json_string(json, "kind", rt_finding_word(w->finding->kind));
	rt_json_string(json, "role", rt_role_word(w->finding->role));
	rt_json_number(json, "confidence", w->finding->confidence);
	rt_json_bool(json, "suspect", w->suspected);
	rt_json_begin_object(json, "guilty");
	rt_json_frame(json, &w->finding->guilty);
	rt_json_end_object(json);
	rt_json_end_object(json);
}

static void life(struct rt_json *json, const struct rt_verdict *v, const struct rt_watched *w)
{
	static const char *const ends[] = { "live", "dead", "lost" };

	rt_json_begin_object(json, NULL);
	rt_json_string(json, "type", w->type);
	rt_json_u64(json, "serial", w->serial);
	rt_json_hex(json, "address", w->object);
	rt_json_u64(json, "pid", w->pid);
	rt_json_string(json, "birth",
		       w->has_new     ? "seen"
		       : w->earlier   ? "before-file"
		       : w->attached  ? "before-attach"
		       : w->inherited ? "before-fork"
				      : "not-seen");
	rt_json_u64(json, "birth_ns", since(v, w->birth_ns));
	rt_json_string(json, "end", ends[w->end]);
	number(json, "end_ns", w->end == RT_WATCHED_LIVE ? INT64_MIN : (int64_t)since(v, w->end_ns));
	number(json, "references", w->references);
	rt_json_i64(json, "at_first_sight", w->at_first_sight);
	rt_json_bool(json, "incomplete", w->incomplete);
	rt_json_bool(json, "forced", w->forced);
	finding(json, w);
	rt_json_string(json, "alive_reason", w->reason);
	rt_json_u64(json, "left_out", w->left_out);
	rt_json_begin_array(json, "events");
	for (size_t i = 0; i < w->event_count; i++)
		event(json, v, &w->events[i]);
	rt_json_end_array(json);
	rt_json_end_object(json);
}

struct rt_error *rt_object_json(const struct rt_view_head *head, const struct rt_verdict *verdict, struct rt_sink *sink)
{
	struct rt_json json;

	rt_json_init(&json, sink);
	rt_json_begin_object(&json, NULL);
	rt_json_string(&json, "schema", "reftrace-object-1");
	rt_json_begin_array(&json, "command");
	for (const char *const *word = head->command; word && *word; word++)
		rt_json_string(&json, NULL, *word);
	rt_json_end_array(&json);
	rt_json_bool(&json, "complete", verdict->trust.complete);
	rt_json_u64(&json, "lost", verdict->trust.lost);
	rt_json_begin_array(&json, "objects");
	for (size_t i = 0; i < verdict->watched_count; i++)
		life(&json, verdict, &verdict->watched[i]);
	rt_json_end_array(&json);
	rt_json_end_object(&json);
	rt_sink_puts(sink, "\n");
	return rt_sink_end(sink);
}
