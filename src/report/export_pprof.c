/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pprof's profile.proto, gzipped (github.com/google/pprof/proto/profile.proto).
 * Values of a sample: open references, gets, puts; then for each event its samples
 * and its periods. Labels: "type" of the objects, "command" of samples.
 */
#include <zlib.h>

#include "report/export_parts.h"
#include "report/export_proto.h"
#include "report/words.h"

/* Fields of profile.proto. */
enum {
	P_SAMPLE_TYPE = 1,
	P_SAMPLE,
	P_MAPPING,
	P_LOCATION,
	P_FUNCTION,
	P_STRING,
	P_DURATION = 10,
	P_COMMENT = 13,
	P_DEFAULT
};
enum { EVENTS_MAX = 16, INLINE_MAX = 64, OUT_BYTES = 65536 };

struct pprof {
	struct rt_export *e;
	struct rt_proto top, inner, part;
	struct rt_intern locations, functions, mappings;
	struct rt_arena arena;
	z_stream zip;
	bool lives;
	unsigned events;
	uint32_t event_class[EVENTS_MAX];
	struct rt_error *err;
};

static void deflate_all(struct pprof *p, int flush)
{
	uint8_t out[OUT_BYTES];

	p->zip.next_in = p->top.bytes.data;
	p->zip.avail_in = (uInt)p->top.bytes.len;
	do {
		p->zip.next_out = out;
		p->zip.avail_out = sizeof(out);
		(void)deflate(&p->zip, flush);
		rt_sink_write(p->e->sink, out, sizeof(out) - p->zip.avail_out);
	} while (!p->zip.avail_out);
	rt_vec_clear(&p->top.bytes);
}

static void emit(struct pprof *p, unsigned field)
{
	rt_proto_message(&p->top, field, &p->inner);
	if (p->top.bytes.len >= OUT_BYTES && !p->top.nomem)
		deflate_all(p, Z_NO_FLUSH);
}

static uint32_t text(struct pprof *p, const char *s)
{
	uint32_t id = rt_intern_string(&p->e->strings, s);

	p->top.nomem |= !id;
	return id;
}

static void value_type(struct pprof *p, const char *type, const char *unit)
{
	rt_proto_varint(&p->inner, 1, text(p, type));
	rt_proto_varint(&p->inner, 2, text(p, unit));
	emit(p, P_SAMPLE_TYPE);
}

static void value_types(struct pprof *p)
{
	for (uint32_t i = 0; i < p->e->classes.len; i++) {
		const struct rt_ex_class *class = &p->e->classes.data[i];

		p->lives |= class->lives;
		if (!class->lives && class->samples && p->events < EVENTS_MAX)
			p->event_class[p->events++] = i;
	}
	if (p->lives) {
		value_type(p, "open", "count");
		value_type(p, "gets", "count");
		value_type(p, "puts", "count");
	}
	for (unsigned i = 0; i < p->events; i++) {
		const struct rt_ex_class *class = &p->e->classes.data[p->event_class[i]];
		const char *name = rt_ex_text(p->e, class->name);

		value_type(p, p->events == 1 ? "samples" : rt_format(&p->arena, "%s samples", name), "count");
		value_type(p, name, class->clock ? "nanoseconds" : "count");
	}
	rt_proto_varint(&p->top, P_DEFAULT,
			text(p, p->lives    ? "open"
				: p->events ? rt_ex_text(p->e, p->e->classes.data[p->event_class[0]].name)
					    : ""));
}

/* id of the function or mapping with this key */
static uint32_t function_of(struct pprof *p, const struct rt_ex_frame *f)
{
	uint32_t key[2] = { f->name ? f->name : text(p, rt_ex_function(p->e, &p->arena, f)), f->file };
	size_t known = p->functions.items.len;
	uint32_t id = rt_intern_bytes(&p->functions, key, sizeof(key));

	p->top.nomem |= !id;
	if (id > known) {
		rt_proto_varint(&p->inner, 1, id);
		rt_proto_varint(&p->inner, 2, key[0]);
		rt_proto_varint(&p->inner, 3, key[0]);
		rt_proto_varint(&p->inner, 4, key[1]);
		emit(p, P_FUNCTION);
	}
	return id;
}

static uint32_t mapping_of(struct pprof *p, const struct rt_ex_frame *f)
{
	uint32_t key[2] = { f->module ? f->module : text(p, f->kernel ? "[kernel]" : "[unknown]"), (uint32_t)f->build };
	size_t known = p->mappings.items.len;
	uint32_t id = rt_intern_bytes(&p->mappings, key, sizeof(key));

	p->top.nomem |= !id;
	if (id > known) {
		rt_proto_varint(&p->inner, 1, id);
		rt_proto_varint(&p->inner, 5, key[0]);
		rt_proto_varint(&p->inner, 6, key[1]);
		/* functions, files, lines and inlined functions are there: nobody need look for the file */
		for (unsigned field = 7; field <= 10; field++)
			rt_proto_varint(&p->inner, field, 1);
		emit(p, P_MAPPING);
	}
	return id;
}

/* One machine frame: n source frames at one address, innermost first. */
static uint32_t location_of(struct pprof *p, const uint32_t *frames, unsigned n)
{
	const struct rt_ex_frame *outer = rt_ex_frame(p->e, frames[n - 1]);
	size_t known = p->locations.items.len;
	uint32_t id = rt_intern_bytes(&p->locations, frames, n * sizeof(*frames)), function[INLINE_MAX], mapping;

	p->top.nomem |= !id;
	if (!id || id <= known)
		return id;
	mapping = mapping_of(p, outer);
	for (unsigned i = 0; i < n; i++)
		function[i] = function_of(p, rt_ex_frame(p->e, frames[i]));
	rt_proto_varint(&p->inner, 1, id);
	rt_proto_varint(&p->inner, 2, mapping);
	rt_proto_varint(&p->inner, 3, outer->address);
	for (unsigned i = 0; i < n; i++) {
		rt_proto_varint(&p->part, 1, function[i]);
		rt_proto_varint(&p->part, 2, rt_ex_frame(p->e, frames[i])->line);
		rt_proto_message(&p->inner, 4, &p->part);
	}
	emit(p, P_LOCATION);
	return id;
}

static void values(struct pprof *p, const struct rt_ex_count *c)
{
	bool lives = p->e->classes.data[c->class].lives;

	for (unsigned i = 0; p->lives && i < 3; i++)
		rt_proto_packed(&p->part, lives ? (uint64_t)c->value[i] : 0);
	for (unsigned i = 0; i < p->events; i++) {
		bool mine = !lives && p->event_class[i] == c->class;

		rt_proto_packed(&p->part, mine ? (uint64_t)c->value[RT_EX_SAMPLES] : 0);
		rt_proto_packed(&p->part, mine ? (uint64_t)c->value[RT_EX_PERIOD] : 0);
	}
}

static void sample(struct pprof *p, const struct rt_ex_count *c)
{
	bool lives = p->e->classes.data[c->class].lives;
	struct rt_proto places = { .nomem = false };
	uint32_t frames[INLINE_MAX];
	unsigned n = 0;

	for (uint32_t node = c->node; node; node = rt_ex_node(p->e, node)->parent) {
		frames[n++] = rt_ex_node(p->e, node)->frame;
		if (rt_ex_frame(p->e, frames[n - 1])->inlined && n < INLINE_MAX && rt_ex_node(p->e, node)->parent)
			continue;
		rt_proto_packed(&places, location_of(p, frames, n));
		n = 0;
	}
	rt_proto_message(&p->inner, 1, &places);
	rt_proto_deinit(&places);
	values(p, c);
	rt_proto_message(&p->inner, 2, &p->part);
	rt_proto_varint(&p->part, 1, text(p, lives ? "type" : "command"));
	rt_proto_varint(&p->part, 2, lives ? p->e->classes.data[c->class].name : c->who);
	rt_proto_message(&p->inner, 3, &p->part);
	emit(p, P_SAMPLE);
}

static void strings(struct pprof *p)
{
	rt_proto_varint(&p->top, P_COMMENT, text(p, rt_format(&p->arena, "reftrace %s", p->e->options.version ?: "")));
	rt_proto_varint(&p->top, P_COMMENT, text(p, rt_ex_title(p->e, &p->arena)));
	rt_proto_varint(&p->top, P_DURATION, p->e->last_ns - p->e->first_ns);
	rt_proto_string(&p->top, P_STRING, "");
	for (uint32_t i = 1; i <= p->e->strings.items.len; i++) {
		rt_proto_string(&p->top, P_STRING, rt_clean(&p->arena, rt_ex_text(p->e, i)));
		if (p->top.bytes.len >= OUT_BYTES && !p->top.nomem)
			deflate_all(p, Z_NO_FLUSH);
		rt_arena_deinit(&p->arena);
	}
}

struct rt_error *rt_ex_pprof(struct rt_export *e)
{
	struct pprof p = { .e = e };
	bool nomem =
		deflateInit2(&p.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK;

	if (!nomem) {
		value_types(&p);
		for (size_t i = 0; i < e->counts.len; i++) {
			const struct rt_ex_count *c = &e->counts.data[i];

			/* what was moved to its caller leaves nothing */
			if (c->value[0] || c->value[1] || c->value[2])
				sample(&p, c);
			rt_arena_deinit(&p.arena);
		}
		strings(&p);
		nomem = p.top.nomem;
		if (!nomem)
			deflate_all(&p, Z_FINISH);
		deflateEnd(&p.zip);
	}
	rt_proto_deinit(&p.top);
	rt_proto_deinit(&p.inner);
	rt_proto_deinit(&p.part);
	rt_intern_deinit(&p.locations);
	rt_intern_deinit(&p.functions);
	rt_intern_deinit(&p.mappings);
	rt_arena_deinit(&p.arena);
	return nomem ? rt_error_nomem() : NULL;
}
