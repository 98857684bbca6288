/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * speedscope's own JSON (file-format-schema.json of the npm package): one
 * sampled profile for each count of each type of objects, and for each event;
 * a sample is a call path, its weight what was counted there.
 */
#include "report/export_parts.h"
#include "report/json_writer.h"
#include "report/words.h"

enum { DEPTH_MAX = 2048 };

struct scope {
	struct rt_export *e;
	struct rt_json json;
	struct rt_arena arena;
	uint32_t *comm_frame; /* frame number of a command, by string id - 1; 0 = not made */
	uint32_t frames;
};

/* Names come from ELF files: whatever bytes they hold, rt_json makes them valid. */
static void frames(struct scope *s)
{
	rt_json_begin_object(&s->json, "shared");
	rt_json_begin_array(&s->json, "frames");
	for (size_t i = 0; i < s->e->frames.len; i++) {
		const struct rt_ex_frame *f = &s->e->frames.data[i];

		rt_json_begin_object(&s->json, NULL);
		rt_json_string(&s->json, "name", rt_ex_function(s->e, &s->arena, f));
		if (f->file || f->module)
			rt_json_string(&s->json, "file", rt_ex_text(s->e, f->file ? f->file : f->module));
		if (f->line)
			rt_json_u64(&s->json, "line", f->line);
		rt_json_end_object(&s->json);
		rt_arena_deinit(&s->arena);
	}
	s->frames = (uint32_t)s->e->frames.len;
	/* commands are the outermost frames of samples; the last one is for what has no stack */
	for (size_t i = 0; i < s->e->counts.len; i++) {
		uint32_t who = s->e->counts.data[i].who;

		if (!who || s->comm_frame[who - 1])
			continue;
		rt_json_begin_object(&s->json, NULL);
		rt_json_string(&s->json, "name", rt_ex_text(s->e, who));
		rt_json_end_object(&s->json);
		s->comm_frame[who - 1] = ++s->frames;
	}
	rt_json_begin_object(&s->json, NULL);
	rt_json_string(&s->json, "name", "[no stack]");
	rt_json_end_object(&s->json);
	s->frames++;
	rt_json_end_array(&s->json);
	rt_json_end_object(&s->json);
}

static void sample(struct scope *s, const struct rt_ex_count *c)
{
	uint32_t path[DEPTH_MAX];
	unsigned n = 0;

	for (uint32_t node = c->node; node && n < DEPTH_MAX; node = rt_ex_node(s->e, node)->parent)
		path[n++] = rt_ex_node(s->e, node)->frame - 1;
	rt_json_begin_array(&s->json, NULL);
	if (c->who)
		rt_json_u64(&s->json, NULL, s->comm_frame[c->who - 1] - 1);
	if (!n)
		rt_json_u64(&s->json, NULL, s->frames - 1);
	while (n--)
		rt_json_u64(&s->json, NULL, path[n]);
	rt_json_end_array(&s->json);
}

static void profile(struct scope *s, uint32_t class, int what, const char *unit, const char *name)
{
	uint64_t total = 0;

	for (size_t i = 0; i < s->e->counts.len; i++) {
		const struct rt_ex_count *c = &s->e->counts.data[i];

		if (c->class == class && c->value[what] > 0)
			total += (uint64_t)c->value[what];
	}
	if (!total)
		return;
	rt_json_begin_object(&s->json, NULL);
	rt_json_string(&s->json, "type", "sampled");
	rt_json_string(&s->json, "name", name);
	rt_json_string(&s->json, "unit", unit);
	rt_json_u64(&s->json, "startValue", 0);
	rt_json_u64(&s->json, "endValue", total);
	rt_json_begin_array(&s->json, "samples");
	for (size_t i = 0; i < s->e->counts.len; i++) {
		if (s->e->counts.data[i].class == class && s->e->counts.data[i].value[what] > 0)
			sample(s, &s->e->counts.data[i]);
	}
	rt_json_end_array(&s->json);
	rt_json_begin_array(&s->json, "weights");
	for (size_t i = 0; i < s->e->counts.len; i++) {
		const struct rt_ex_count *c = &s->e->counts.data[i];

		if (c->class == class && c->value[what] > 0)
			rt_json_u64(&s->json, NULL, (uint64_t)c->value[what]);
	}
	rt_json_end_array(&s->json);
	rt_json_end_object(&s->json);
}

static void profiles(struct scope *s)
{
	static const struct {
		int what;
		const char *text;
	} counts[] = { { RT_EX_OPEN, "open references" }, { RT_EX_GETS, "gets" }, { RT_EX_PUTS, "puts" } };

	rt_json_begin_array(&s->json, "profiles");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (uint32_t k = 0; k < s->e->classes.len; k++) {
			const struct rt_ex_class *class = &s->e->classes.data[k];

			if (class->lives)
				profile(s, k, counts[i].what, "none",
					rt_format(&s->arena, "%s: %s", rt_ex_text(s->e, class->name), counts[i].text));
		}
	}
	for (uint32_t k = 0; k < s->e->classes.len; k++) {
		const struct rt_ex_class *class = &s->e->classes.data[k];

		if (!class->lives)
			profile(s, k, RT_EX_PERIOD, class->clock ? "nanoseconds" : "none",
				rt_ex_text(s->e, class->name));
	}
	rt_json_end_array(&s->json);
}

struct rt_error *rt_ex_speedscope(struct rt_export *e)
{
	_cleanup_free_ uint32_t *comms = calloc(e->strings.items.len + 1, sizeof(*comms));
	struct scope s = { .e = e, .comm_frame = comms };

	if (!comms)
		return rt_error_nomem();
	rt_json_init(&s.json, e->sink);
	rt_json_begin_object(&s.json, NULL);
	rt_json_string(&s.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	rt_json_string(&s.json, "exporter", rt_format(&s.arena, "reftrace %s", e->options.version ?: ""));
	rt_json_string(&s.json, "name", rt_ex_title(e, &s.arena));
	rt_json_u64(&s.json, "activeProfileIndex", 0);
	rt_arena_deinit(&s.arena);
	frames(&s);
	profiles(&s);
	rt_json_end_object(&s.json);
	rt_sink_puts(e->sink, "\n");
	rt_arena_deinit(&s.arena);
	return NULL;
}
