/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Folded stacks: "main;f;g 20", one line for each call path by function names,
 * outermost first; samples have the command in front, as stackcollapse-perf.pl
 * writes it. With two numbers it is what difffolded.pl writes.
 */
#include <string.h>

#include "report/export_parts.h"
#include "report/words.h"

enum { DEPTH_MAX = 2048 };

struct line {
	const char *text;
	int64_t value[2];
};

struct folded {
	struct rt_export *e;
	struct rt_arena arena;
	struct rt_intern texts;
	RT_VEC(struct line) lines;
	RT_VEC(char) text; /* of the line that is made */
};

static bool add(struct folded *f, const char *name)
{
	for (const char *c = rt_clean(&f->arena, name); *c; c++) {
		/* the separator of frames cannot be in a name */
		if (!rt_vec_push(&f->text, *c == ';' ? ':' : *c))
			return false;
	}
	return rt_vec_push(&f->text, ';');
}

static bool write_path(struct folded *f, const struct rt_ex_count *c)
{
	uint32_t path[DEPTH_MAX];
	unsigned n = 0;

	rt_vec_clear(&f->text);
	if (c->who && !add(f, rt_ex_text(f->e, c->who)))
		return false;
	for (uint32_t node = c->node; node && n < DEPTH_MAX; node = rt_ex_node(f->e, node)->parent)
		path[n++] = rt_ex_node(f->e, node)->frame;
	while (n--) {
		if (!add(f, rt_ex_function(f->e, &f->arena, rt_ex_frame(f->e, path[n]))))
			return false;
	}
	if (!f->text.len && !add(f, "[no stack]"))
		return false;
	f->text.data[f->text.len - 1] = 0;
	return true;
}

static struct line *line_of(struct folded *f, const struct rt_ex_count *c)
{
	uint32_t id = write_path(f, c) ? rt_intern_string(&f->texts, f->text.data) : 0;
	struct line *line;

	if (!id || id <= f->lines.len)
		return id ? &f->lines.data[id - 1] : NULL;
	line = rt_vec_add(&f->lines);
	if (line)
		line->text = rt_intern_text(&f->texts, id);
	return line;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* what of -> the counter, and whether it is one of lives */
static int value_of(enum rt_export_of of, bool *ret_lives)
{
	*ret_lives = of < RT_EXPORT_OF_SAMPLES;
	switch (of) {
	case RT_EXPORT_OF_GETS:
		return RT_EX_GETS;
	case RT_EXPORT_OF_PUTS:
	case RT_EXPORT_OF_BALANCE:
		return RT_EX_PUTS;
	case RT_EXPORT_OF_SAMPLES:
		return RT_EX_SAMPLES;
	case RT_EXPORT_OF_PERIOD:
		return RT_EX_PERIOD;
	default:
		return RT_EX_OPEN;
	}
}

static enum rt_export_of choose(const struct rt_export *e)
{
	if (e->options.of != RT_EXPORT_OF_AUTO)
		return e->options.of;
	for (size_t i = 0; i < e->classes.len; i++) {
		if (e->classes.data[i].lives)
			return RT_EXPORT_OF_OPEN;
	}
	return RT_EXPORT_OF_PERIOD;
}

static struct rt_error *write_lines(struct folded *f)
{
	enum rt_export_of of = choose(f->e);
	bool lives;
	int what = value_of(of, &lives);

	for (size_t i = 0; i < f->e->counts.len; i++) {
		const struct rt_ex_count *c = &f->e->counts.data[i];
		struct line *line;

		if (f->e->classes.data[c->class].lives != lives)
			continue;
		line = line_of(f, c);
		if (!line)
			return rt_error_nomem();
		line->value[0] += c->value[what];
		line->value[1] += of == RT_EXPORT_OF_BALANCE ? c->value[RT_EX_GETS] : 0;
		rt_arena_deinit(&f->arena);
	}
	if (f->lines.len)
		qsort(f->lines.data, f->lines.len, sizeof(*f->lines.data), by_text);
	for (size_t i = 0; i < f->lines.len; i++) {
		const struct line *line = &f->lines.data[i];

		if (of == RT_EXPORT_OF_BALANCE && line->value[0] != line->value[1])
			rt_sink_printf(f->e->sink, "%s %lld %lld\n", line->text, (long long)line->value[0],
				       (long long)line->value[1]);
		else if (of != RT_EXPORT_OF_BALANCE && line->value[0] > 0)
			rt_sink_printf(f->e->sink, "%s %lld\n", line->text, (long long)line->value[0]);
	}
	return NULL;
}

struct rt_error *rt_ex_folded(struct rt_export *e)
{
	struct folded f = { .e = e };
	struct rt_error *err = write_lines(&f);

	rt_arena_deinit(&f.arena);
	rt_intern_deinit(&f.texts);
	rt_vec_deinit(&f.lines);
	rt_vec_deinit(&f.text);
	return err;
}
