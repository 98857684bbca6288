/* SPDX-License-Identifier: GPL-2.0-only */
/* One life as a table: a row for each operation, in the order in which they happened. */
#include <inttypes.h>
#include <string.h>

#include "report/view.h"
#include "report/words.h"

enum { DEFAULT_WIDTH = 80, PLACE_LEAST = 20, API_MAX = 24 };

struct text {
	struct rt_sink *sink;
	struct rt_view_options options;
	const struct rt_verdict *verdict;
	struct rt_arena arena;
};

static const char *bad(const struct text *t)
{
	return t->options.color ? "\033[1;31m" : "";
}

static const char *end(const struct text *t)
{
	return t->options.color ? "\033[0m" : "";
}

/* "+1.2 ms", since the recording began */
static const char *since_start(struct text *t, uint64_t time_ns)
{
	uint64_t start = t->verdict->start_ns;

	return rt_format(&t->arena, "+%s", rt_duration_text(&t->arena, time_ns > start ? time_ns - start : 0));
}

static const char *place(struct text *t, const struct rt_frame *f)
{
	const char *name = rt_place_text(&t->arena, f), *file = f->file ? rt_basename(f->file) : NULL;

	if (!file)
		return name;
	if (!f->line)
		return rt_format(&t->arena, "%s %s", name, rt_clean(&t->arena, file));
	return rt_format(&t->arena, "%s %s:%u", name, rt_clean(&t->arena, file), f->line);
}

static const char *references(struct text *t, int64_t n)
{
	if (n == INT64_MIN)
		return "how many references are left is not known";
	return rt_format(&t->arena, "%" PRId64 " reference%s", n, n == 1 ? "" : "s");
}

static void title(struct text *t, const struct rt_watched *w)
{
	rt_sink_printf(t->sink,
		       "%s #%" PRIu64 " at 0x%" PRIx64 " in process %u: ", rt_type_text(&t->arena, w->type, NULL),
		       w->serial, w->object, w->pid);
	if (w->end == RT_WATCHED_LIVE)
		rt_sink_printf(t->sink, "alive at the end, %s", references(t, w->references));
	else if (w->end == RT_WATCHED_LOST)
		rt_sink_puts(t->sink, "gone, its end was not seen");
	else
		rt_sink_printf(t->sink, "dead after %s%s",
			       rt_duration_text(&t->arena, w->end_ns > w->birth_ns ? w->end_ns - w->birth_ns : 0),
			       w->forced ? ", freed with open references" : "");
	rt_sink_puts(t->sink, "\n");
}

static void birth(struct text *t, const struct rt_watched *w)
{
	const char *had = w->at_first_sight > 0 ? references(t, w->at_first_sight) : NULL;

	if (w->has_new)
		return;
	rt_sink_printf(t->sink, "  born before %s",
		       w->earlier     ? "this file"
		       : w->attached  ? "the attach"
		       : w->inherited ? "the fork"
				      : "its first event; who made it was not seen");
	if (had)
		rt_sink_printf(t->sink, ": it had %s already", had);
	rt_sink_puts(t->sink, "\n");
}

static const char *role_text(const struct rt_finding *f)
{
	switch (f->role) {
	case RT_ROLE_MISSING_PUT:
		return "lacks a put";
	case RT_ROLE_EXTRA_GET:
		return "takes one reference too many";
	case RT_ROLE_EXTRA_PUT:
		return "puts a reference that it does not have";
	case RT_ROLE_USE:
		return "uses it after its last put";
	case RT_ROLE_RACY_UPDATE:
		return "changes the counter in a race";
	}
	return "is at fault";
}

static void accused(struct text *t, const struct rt_watched *w)
{
	const struct rt_finding *f = w->finding;

	if (f)
		rt_sink_printf(t->sink, "  %s%s%s %s (%s): %s %s\n", bad(t),
			       w->suspected ? "suspicion" : rt_finding_word(f->kind), end(t), f->id,
			       w->suspected ? "below one half" : rt_confidence_word(f->confidence),
			       place(t, &f->guilty), role_text(f));
	if (w->reason)
		rt_sink_printf(t->sink, "  alive, and not accused: %s\n", w->reason);
	if (w->incomplete)
		rt_sink_puts(t->sink, "  note: some operations on it were not seen\n");
}

struct columns {
	int nr, time, tid, where, api;
};

static int at_least(int a, size_t b)
{
	return a > (int)b ? a : (int)b;
}

static struct columns columns(struct text *t, const struct rt_watched *w)
{
	struct columns c = { .nr = 1, .time = 4, .tid = 6, .where = PLACE_LEAST, .api = 6 };
	int most;

	c.nr = at_least(c.nr, strlen(rt_format(&t->arena, "%zu", w->event_count)));
	for (size_t i = 0; i < w->event_count; i++) {
		const struct rt_history *h = &w->events[i].history;

		c.time = at_least(c.time, strlen(since_start(t, h->time_ns)));
		c.tid = at_least(c.tid, h->tid > 999999 ? 7 : 6);
		c.where = at_least(c.where, rt_columns(place(t, &h->site)));
		c.api = at_least(c.api, rt_columns(rt_clean(&t->arena, h->api)));
	}
	c.api = c.api > API_MAX ? API_MAX : c.api;
	/* a long place moves what is behind it to the right, in its own row only */
	most = (int)t->options.width - (c.nr + c.time + c.tid + c.api + 20);
	if (c.where > most)
		c.where = most > PLACE_LEAST ? most : PLACE_LEAST;
	return c;
}

static void row(struct text *t, const struct rt_watched *w, size_t i, const struct columns *c, bool *dead)
{
	const struct rt_watched_event *e = &w->events[i];
	const struct rt_history *h = &e->history;
	const char *where = place(t, &h->site), *api = rt_clean(&t->arena, h->api), *mark = "";
	const char *change = h->delta ? rt_format(&t->arena, "%+d", h->delta) : "";
	const char *after = h->count_after != INT64_MIN && !*dead && (h->delta || h->op == RT_OP_NEW)
				    ? rt_format(&t->arena, "=%" PRId64, h->count_after)
				    : "";

	if (e->mark == RT_WATCHED_OPEN)
		mark = "  <== never given back";
	else if (e->mark == RT_WATCHED_FAULT)
		mark = h->delta < 0 ? "  <== one put too many" : "  <== after the last put";
	else if (e->mate >= 0)
		mark = rt_format(&t->arena, "  %s %d", h->delta < 0 || h->op == RT_OP_FREE ? "closes" : "closed by",
				 e->mate + 1);
	rt_sink_printf(t->sink, "  %*zu %*s %*u  %-5s %3s %4s  %s%*s  %s%*s%s%s%s\n", c->nr, i + 1, c->time,
		       since_start(t, h->time_ns), c->tid, h->tid, rt_op_name(h->op), change, after, where,
		       at_least(0, c->where > (int)rt_columns(where) ? (size_t)c->where - rt_columns(where) : 0), "",
		       api, *mark && c->api > (int)rt_columns(api) ? c->api - (int)rt_columns(api) : 0, "",
		       e->mark ? bad(t) : "", mark, e->mark ? end(t) : "");
	*dead |= h->op == RT_OP_FREE || (h->delta < 0 && h->count_after == 0);
	if (!t->options.stacks)
		return;
	for (size_t k = 1; k < e->stack.count; k++)
		rt_sink_printf(t->sink, "  %*s< %s\n", c->nr + c->time + c->tid + 19, "",
			       place(t, &e->stack.frames[k]));
}

static void life(struct text *t, const struct rt_watched *w)
{
	struct columns c = columns(t, w);
	bool dead = false;

	title(t, w);
	birth(t, w);
	accused(t, w);
	rt_sink_printf(t->sink, "\n  %*s %*s %*s  %-5s %8s  %-*s  %s\n", c.nr, "#", c.time, "TIME", c.tid, "THREAD",
		       "OP", "COUNT", c.where, "WHERE", "CALLED");
	for (size_t i = 0; i < w->event_count; i++)
		row(t, w, i, &c, &dead);
	if (w->left_out)
		rt_sink_printf(t->sink, "  and %" PRIu64 " more, beyond what is kept\n", w->left_out);
	rt_sink_puts(t->sink, "\n");
}

struct rt_error *rt_object_text(const struct rt_view_head *head, const struct rt_verdict *verdict,
				const struct rt_view_options *options, struct rt_sink *sink)
{
	struct text t = { .sink = sink, .options = *options, .verdict = verdict };

	rt_view_command(head, sink);
	t.options.width = t.options.width ? t.options.width : DEFAULT_WIDTH;
	for (size_t i = 0; i < verdict->watched_count; i++) {
		life(&t, &verdict->watched[i]);
		rt_arena_deinit(&t.arena);
	}
	if (!verdict->trust.complete)
		rt_sink_puts(sink, "trust: incomplete: reftrace report says what is missing\n");
	rt_arena_deinit(&t.arena);
	return rt_sink_end(sink);
}
