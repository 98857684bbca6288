/* SPDX-License-Identifier: GPL-2.0-only */
#include <inttypes.h>

#include "base/fs.h"
#include "lifetime/models.h"
#include "lifetime/order.h"
#include "lifetime/state.h"

/* Numbers of what is written once and named by others. */
struct writer {
	struct rt_lifetime *lt;
	struct rt_sink *sink;
	struct rt_map modules, frames, sites; /* our id -> number in the file */
	uint64_t module_nr, frame_nr, site_nr;
	bool nomem;
};

bool rt_models_build(const struct rt_lifetime *lt, size_t i, char ret[2 * RT_BUILD_ID_MAX + 1])
{
	struct rt_bytes id = rt_intern_get(&lt->builds, (uint32_t)i + 1);

	for (size_t k = 0; k < id.size && k < RT_BUILD_ID_MAX; k++)
		snprintf(ret + 2 * k, 3, "%02x", id.data[k]);
	return id.size;
}

bool rt_models_program(const struct rt_lifetime *lt, char ret[2 * RT_BUILD_ID_MAX + 1])
{
	for (size_t i = 0; lt->modules.len && i < lt->build_modules.len; i++) {
		if (lt->build_modules.data[i] == lt->modules.data[0].id)
			return rt_models_build(lt, i, ret);
	}
	return false;
}

/* A word of the line: what would end it, or begin another one, as %XX. */
static void word(struct writer *w, const char *text)
{
	rt_sink_puts(w->sink, " ");
	if (!text || !*text) {
		rt_sink_puts(w->sink, "-");
		return;
	}
	if (!strcmp(text, "-")) {
		rt_sink_puts(w->sink, "%2d");
		return;
	}
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c <= ' ' || *c == '%' || *c == 0x7f)
			rt_sink_printf(w->sink, "%%%02x", *c);
		else
			rt_sink_write(w->sink, c, 1);
	}
}

static uint64_t times(uint64_t n)
{
	return n < LT_TIMES_MAX ? n : LT_TIMES_MAX;
}

/* The number of what has this id; a new one if it has none yet: *ret_made, and it is to be written. 0: out of memory */
static uint64_t number(struct writer *w, struct rt_map *map, uint64_t id, uint64_t *next, bool *ret_made)
{
	uint64_t *slot = rt_map_put(map, rt_key_make(id, 0), ret_made);

	if (!slot) {
		w->nomem = true;
		*ret_made = false;
		return 0;
	}
	if (*ret_made)
		*slot = ++*next;
	return *slot;
}

/* A module without a build-id is none: its code is known by its lines alone. */
static uint64_t module(struct writer *w, const struct rt_frame *f)
{
	bool made;
	uint64_t n;

	if (!f->build_id_size)
		return 0;
	n = number(w, &w->modules, f->module_id, &w->module_nr, &made);
	if (!made)
		return n;
	rt_sink_puts(w->sink, "module ");
	for (unsigned i = 0; i < f->build_id_size && i < RT_BUILD_ID_MAX; i++)
		rt_sink_printf(w->sink, "%02x", f->build_id[i]);
	word(w, f->module ? rt_basename(f->module) : NULL);
	rt_sink_puts(w->sink, "\n");
	return n;
}

/* It can be found again: by its lines, or by its place in a file of the same build-id. */
static bool is_lasting(const struct rt_frame *f)
{
	return (f->function && f->file) || f->build_id_size;
}

static uint64_t frame(struct writer *w, uint32_t src)
{
	const struct rt_frame *f = &lt_src(w->lt, src)->frame;
	uint64_t in = module(w, f), n;
	bool made;

	n = number(w, &w->frames, src, &w->frame_nr, &made);
	if (!made)
		return n;
	rt_sink_printf(w->sink, "frame %" PRIu64, in);
	word(w, f->function);
	word(w, f->file);
	rt_sink_printf(w->sink, " %u 0x%" PRIx64 " 0x%" PRIx64 "\n", f->line, f->entry, f->address);
	return n;
}

/* A site is told before it is named. false: it has no name that lasts. */
static bool tell_site(struct writer *w, uint32_t site)
{
	const struct lt_site *s = lt_site(w->lt, site);
	uint64_t frames[LT_PATH];
	bool made;

	if (site == LT_NOWHERE)
		return true;
	if (!s->nr)
		return false;
	for (uint32_t i = 0; i < s->nr; i++) {
		if (!is_lasting(&lt_src(w->lt, s->src[i])->frame))
			return false;
	}
	if (rt_map_get(&w->sites, rt_key_make(site, 0)))
		return true;
	for (uint32_t i = 0; i < s->nr; i++)
		frames[i] = frame(w, s->src[i]);
	(void)number(w, &w->sites, site, &w->site_nr, &made);
	if (!made)
		return false;
	rt_sink_puts(w->sink, "site");
	for (uint32_t i = 0; i < s->nr; i++)
		rt_sink_printf(w->sink, " %" PRIu64, frames[i]);
	rt_sink_puts(w->sink, "\n");
	return true;
}

/* 0 is nowhere */
static uint64_t site_number(const struct writer *w, uint32_t site)
{
	const uint64_t *n = rt_map_get(&w->sites, rt_key_make(site, 0));

	return n ? *n : 0;
}

static void write_shape(struct writer *w, const struct lt_learnt *l, const struct lt_shape *shape)
{
	struct rt_bytes bytes = rt_intern_get(&l->shape_ids, shape->id);
	struct lt_mark marks[LT_UNITS];
	unsigned n = (unsigned)(bytes.size / sizeof(marks[0]));

	memcpy(marks, bytes.data, bytes.size);
	for (unsigned i = 0; i < n; i++) {
		if (!tell_site(w, marks[i].site))
			return;
	}
	rt_sink_printf(w->sink, "shape %" PRIu64, times(shape->count));
	for (unsigned i = 0; i < n; i++)
		rt_sink_printf(w->sink, " %c%" PRIu64 ",%u,%u,%u", marks[i].opens ? '+' : '-',
			       site_number(w, marks[i].site), marks[i].how, marks[i].thread, marks[i].act);
	rt_sink_puts(w->sink, "\n");
}

static void write_learnt(struct writer *w, const char *type, const char *klass, const struct lt_learnt *l)
{
	const struct rt_map_slot *s;
	size_t pos = 0;

	if (!l->healthy)
		return;
	rt_sink_puts(w->sink, "type");
	word(w, type);
	if (klass)
		word(w, klass);
	rt_sink_printf(w->sink, "\nhealthy %" PRIu64 "\n", times(l->healthy));
	for (size_t i = 0; i < l->stats.len; i++) {
		const struct lt_stat *stat = &l->stats.data[i];

		if (tell_site(w, stat->site))
			rt_sink_printf(w->sink, "stat %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				       site_number(w, stat->site), times(stat->opened), times(stat->closed),
				       times(stat->objects));
	}
	while ((s = rt_map_next(&l->exact, &pos))) {
		uint32_t opens = (uint32_t)s->key.a, closes = (uint32_t)s->key.b;

		if (tell_site(w, opens) && tell_site(w, closes))
			rt_sink_printf(w->sink, "pair %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", site_number(w, opens),
				       site_number(w, closes), times(l->pairs.data[s->value]));
	}
	for (size_t i = 0; i < l->shapes.len; i++)
		write_shape(w, l, &l->shapes.data[i]);
}

struct rt_error *rt_models_write(struct rt_lifetime *lt, struct rt_sink *sink)
{
	struct writer w = { .lt = lt, .sink = sink };

	rt_sink_puts(sink, "reftrace-models 1\n");
	for (size_t i = 0; i < lt->types.len; i++)
		write_learnt(&w, lt->types.data[i].name, NULL, &lt->types.data[i].learnt);
	for (size_t i = 0; i < lt->classes.len; i++)
		write_learnt(&w, lt->types.data[lt->classes.data[i].type].name, lt->classes.data[i].name,
			     &lt->classes.data[i].learnt);
	rt_map_deinit(&w.modules);
	rt_map_deinit(&w.frames);
	rt_map_deinit(&w.sites);
	return w.nomem ? rt_error_nomem() : NULL;
}
