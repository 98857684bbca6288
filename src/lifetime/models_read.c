/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First all of the text is read, so that one that cannot be understood adds nothing; then what can be found here is
 * added: frames of modules that are here, sites of which all frames are, and what was seen at such sites alone.
 */
#include <inttypes.h>

#include "base/text.h"
#include "lifetime/models.h"
#include "lifetime/site.h"
#include "lifetime/state.h"

enum { WORDS = LT_UNITS + 2, LINES_MAX = 1 << 22 };

enum kind { STAT, PAIR, SHAPE };

struct module {
	uint8_t build_id[RT_BUILD_ID_MAX];
	uint32_t size, here; /* module number of the stream; 0: it is not here */
	const char *name;
};

struct site {
	uint32_t frame[LT_PATH]; /* index + 1 */
	uint32_t nr, here;       /* site of the lifetime; 0: not here */
};

struct frame {
	const char *function, *file;
	uint32_t module, line; /* index + 1, 0 = none */
	uint64_t entry, address;
	uint32_t here; /* src; 0: not here */
};

/* Of the type that was told before. */
struct fact {
	enum kind kind;
	uint32_t model;
	uint32_t first; /* of a shape's marks, in marks */
	uint32_t nr;
	uint32_t site[2]; /* numbers in the file */
	uint64_t n[3];
};

struct model {
	const char *type, *klass;
	uint64_t healthy;
	struct lt_learnt *here;
	bool used;
};

struct word {
	const char *s;
	size_t len;
};

struct reader {
	struct rt_lifetime *lt;
	const char *name;
	unsigned line;
	struct word words[WORDS];
	unsigned nr;
	struct rt_arena arena;
	RT_VEC(struct module) modules;
	RT_VEC(struct frame) frames;
	RT_VEC(struct site) sites;
	RT_VEC(struct model) models;
	RT_VEC(struct fact) facts;
	RT_VEC(struct lt_mark) marks; /* site: number in the file */
};

static struct rt_error *fault(const struct reader *r, const char *expected)
{
	return rt_error_fix(
		rt_error_new(RT_E_FORMAT, "%s: line %u is not understood, expected %s", r->name, r->line, expected),
		"save it again: reftrace run --save-models FILE");
}

static bool is(struct word w, const char *text)
{
	return strlen(text) == w.len && !memcmp(w.s, text, w.len);
}

static bool count_of(struct word w, uint64_t most, uint64_t *ret)
{
	return rt_parse_u64(w.s, w.len, 10, ret) && *ret <= most;
}

static bool hex_of(struct word w, uint64_t *ret)
{
	return w.len > 2 && w.s[0] == '0' && w.s[1] == 'x' && rt_parse_u64(w.s + 2, w.len - 2, 16, ret);
}

/* false: it is damaged, or out of memory. *ret NULL: "-" */
static bool text_of(struct reader *r, struct word w, const char **ret)
{
	char *out;
	size_t n = 0;

	*ret = NULL;
	if (is(w, "-"))
		return true;
	out = rt_arena_alloc(&r->arena, w.len + 1);
	for (size_t i = 0; out && i < w.len; i++) {
		uint64_t c = (unsigned char)w.s[i];

		if (w.s[i] == '%') {
			if (w.len - i < 3 || !rt_parse_u64(w.s + i + 1, 2, 16, &c) || !c)
				return false;
			i += 2;
		}
		out[n++] = (char)c;
	}
	if (out)
		out[n] = 0;
	*ret = out;
	return out;
}

static struct rt_error *read_module(struct reader *r)
{
	static const char expected[] = "module BUILD-ID NAME";
	struct word id = r->nr == 3 ? r->words[1] : (struct word){ 0 };
	struct module m = { .size = (uint32_t)(id.len / 2) };
	uint64_t byte;

	if (!id.len || id.len % 2 || id.len / 2 > RT_BUILD_ID_MAX || !text_of(r, r->words[2], &m.name))
		return fault(r, expected);
	for (size_t i = 0; i < m.size; i++) {
		if (!rt_parse_u64(id.s + 2 * i, 2, 16, &byte))
			return fault(r, expected);
		m.build_id[i] = (uint8_t)byte;
	}
	return rt_vec_push(&r->modules, m) ? NULL : rt_error_nomem();
}

static struct rt_error *read_frame(struct reader *r)
{
	struct frame f = { 0 };
	uint64_t module = 0, line = 0;

	if (r->nr != 7 || !count_of(r->words[1], r->modules.len, &module) || !text_of(r, r->words[2], &f.function) ||
	    !text_of(r, r->words[3], &f.file) || !count_of(r->words[4], UINT32_MAX, &line) ||
	    !hex_of(r->words[5], &f.entry) || !hex_of(r->words[6], &f.address) || (!module && !(f.function && f.file)))
		return fault(r, "frame MODULE FUNCTION FILE LINE 0xENTRY 0xADDRESS");
	f.module = (uint32_t)module;
	f.line = (uint32_t)line;
	return rt_vec_push(&r->frames, f) ? NULL : rt_error_nomem();
}

static struct rt_error *read_site(struct reader *r)
{
	struct site s = { .nr = r->nr - 1 };

	if (!s.nr || s.nr > LT_PATH)
		return fault(r, "site FRAME...");
	for (uint32_t i = 0; i < s.nr; i++) {
		uint64_t n = 0;

		if (!count_of(r->words[1 + i], r->frames.len, &n) || !n)
			return fault(r, "numbers of frames that were told before");
		s.frame[i] = (uint32_t)n;
	}
	return rt_vec_push(&r->sites, s) ? NULL : rt_error_nomem();
}

static struct rt_error *read_type(struct reader *r)
{
	struct model m = { 0 };

	if (r->nr < 2 || r->nr > 3 || !text_of(r, r->words[1], &m.type) || !m.type ||
	    (r->nr == 3 && (!text_of(r, r->words[2], &m.klass) || !m.klass)))
		return fault(r, "type NAME [CLASS]");
	return rt_vec_push(&r->models, m) ? NULL : rt_error_nomem();
}

/* "+SITE,HOW,THREAD,ACT" */
static bool mark_of(const struct reader *r, struct word w, struct lt_mark *ret)
{
	uint64_t n[4];

	if (!w.len || (*w.s != '+' && *w.s != '-'))
		return false;
	ret->opens = *w.s == '+';
	w.s++;
	w.len--;
	for (unsigned i = 0; i < 4; i++) {
		const char *comma = i < 3 ? memchr(w.s, ',', w.len) : w.s + w.len;
		struct word part = { w.s, comma ? (size_t)(comma - w.s) : 0 };

		if (!comma || !count_of(part, i ? UINT8_MAX : r->sites.len, &n[i]))
			return false;
		w.s += part.len + (i < 3);
		w.len -= part.len + (i < 3);
	}
	ret->site = (uint32_t)n[0];
	ret->how = (uint8_t)n[1];
	ret->thread = (uint8_t)n[2];
	ret->act = (uint8_t)n[3];
	return true;
}

static struct rt_error *read_shape(struct reader *r, struct fact *f)
{
	f->kind = SHAPE;
	f->first = (uint32_t)r->marks.len;
	f->nr = r->nr - 2;
	if (r->nr < 3 || f->nr > LT_UNITS || !count_of(r->words[1], LT_TIMES_MAX, &f->n[0]) || !f->n[0])
		return fault(r, "shape TIMES MARK...");
	for (unsigned i = 0; i < f->nr; i++) {
		struct lt_mark mark;

		memset(&mark, 0, sizeof(mark));
		if (!mark_of(r, r->words[2 + i], &mark))
			return fault(r, "marks like +SITE,HOW,THREAD,ACT");
		if (!rt_vec_push(&r->marks, mark))
			return rt_error_nomem();
	}
	return NULL;
}

/* stat, pair, shape */
static struct rt_error *read_fact(struct reader *r)
{
	struct fact f = { .kind = STAT, .model = (uint32_t)r->models.len - 1 };
	uint64_t site[2] = { 0 };

	if (is(r->words[0], "shape")) {
		RT_TRY(read_shape(r, &f));
	} else if (is(r->words[0], "stat")) {
		if (r->nr != 5 || !count_of(r->words[1], r->sites.len, &site[0]) ||
		    !count_of(r->words[2], LT_TIMES_MAX, &f.n[0]) || !count_of(r->words[3], LT_TIMES_MAX, &f.n[1]) ||
		    !count_of(r->words[4], LT_TIMES_MAX, &f.n[2]))
			return fault(r, "stat SITE OPENED CLOSED OBJECTS");
	} else {
		f.kind = PAIR;
		if (r->nr != 4 || !count_of(r->words[1], r->sites.len, &site[0]) ||
		    !count_of(r->words[2], r->sites.len, &site[1]) || !count_of(r->words[3], LT_TIMES_MAX, &f.n[0]))
			return fault(r, "pair SITE SITE TIMES");
	}
	f.site[0] = (uint32_t)site[0];
	f.site[1] = (uint32_t)site[1];
	return rt_vec_push(&r->facts, f) ? NULL : rt_error_nomem();
}

static struct rt_error *read_line(struct reader *r)
{
	struct word first = r->words[0];

	if (is(first, "module"))
		return read_module(r);
	if (is(first, "frame"))
		return read_frame(r);
	if (is(first, "site"))
		return read_site(r);
	if (is(first, "type"))
		return read_type(r);
	if (!r->models.len)
		return fault(r, "a type before what is known of it");
	if (is(first, "healthy"))
		return r->nr == 2 && count_of(r->words[1], LT_TIMES_MAX, &r->models.data[r->models.len - 1].healthy)
			       ? NULL
			       : fault(r, "healthy OBJECTS");
	if (is(first, "stat") || is(first, "pair") || is(first, "shape"))
		return read_fact(r);
	return fault(r, "module, frame, site, type, healthy, stat, pair or shape");
}

/* Words of a line; false: more than any line has. */
static bool split(struct reader *r, const char *at, const char *end)
{
	r->nr = 0;
	while (at < end) {
		const char *blank = memchr(at, ' ', (size_t)(end - at));
		struct word w = { at, (size_t)((blank ? blank : end) - at) };

		at = blank ? blank + 1 : end;
		if (!w.len)
			continue;
		if (r->nr == WORDS)
			return false;
		r->words[r->nr++] = w;
	}
	return true;
}

static struct rt_error *read_all(struct reader *r, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *line = memchr(text, '\n', (size_t)(end - text));

		if (!split(r, text, line ? line : end) || ++r->line == LINES_MAX)
			return fault(r, "fewer words");
		if (r->line == 1 && (r->nr != 2 || !is(r->words[0], "reftrace-models") || !is(r->words[1], "1")))
			return fault(r, "reftrace-models 1");
		if (r->line > 1 && r->nr && *r->words[0].s != '#')
			RT_TRY(read_line(r));
		text = line ? line + 1 : end;
	}
	return r->line ? NULL : fault(r, "reftrace-models 1");
}

static void find_modules(struct reader *r)
{
	for (size_t i = 0; i < r->modules.len; i++) {
		struct module *m = &r->modules.data[i];

		for (uint32_t k = 0; k < r->lt->build_modules.len && !m->here; k++) {
			struct rt_bytes id = rt_intern_get(&r->lt->builds, k + 1);

			if (id.size == m->size && !memcmp(id.data, m->build_id, m->size))
				m->here = r->lt->build_modules.data[k];
		}
	}
}

/* What lives as long as the analysis; NULL stays NULL. */
static const char *keep(struct reader *r, const char *text)
{
	uint32_t id = text ? rt_intern_string(&r->lt->names, text) : 0;

	return id ? rt_intern_text(&r->lt->names, id) : NULL;
}

static bool find_frame(struct reader *r, struct frame *f)
{
	const struct module *m = f->module ? &r->modules.data[f->module - 1] : NULL;
	struct rt_frame frame = { .line = f->line, .entry = f->entry, .address = f->address };

	if (m && !m->here)
		return true;
	frame.function = keep(r, f->function);
	frame.file = keep(r, f->file);
	if (m) {
		frame.module = keep(r, m->name);
		frame.module_id = m->here;
		frame.build_id_size = (uint8_t)m->size;
		memcpy(frame.build_id, m->build_id, m->size);
	}
	f->here = lt_src_make(r->lt, &frame);
	return f->here;
}

static bool find_sites(struct reader *r)
{
	for (size_t i = 0; i < r->frames.len; i++) {
		if (!find_frame(r, &r->frames.data[i]))
			return false;
	}
	for (size_t i = 0; i < r->sites.len; i++) {
		struct site *s = &r->sites.data[i];
		struct lt_site site = { { 0 }, s->nr };
		bool all = true;

		for (uint32_t k = 0; k < s->nr; k++) {
			site.src[k] = r->frames.data[s->frame[k] - 1].here;
			all &= site.src[k] != 0;
		}
		s->here = all ? lt_site_make(r->lt, &site) : 0;
		if (all && !s->here)
			return false;
	}
	return true;
}

static void find_models(struct reader *r)
{
	for (size_t i = 0; i < r->models.len; i++) {
		struct model *m = &r->models.data[i];

		for (uint32_t t = 0; t < r->lt->types.len && !m->here; t++) {
			if (!m->klass && !strcmp(r->lt->types.data[t].name, m->type))
				m->here = &r->lt->types.data[t].learnt;
		}
		for (size_t k = 0; k < r->lt->classes.len && m->klass; k++) {
			struct lt_class *c = &r->lt->classes.data[k];

			if (!strcmp(c->name, m->klass) && !strcmp(r->lt->types.data[c->type].name, m->type))
				m->here = &c->learnt;
		}
	}
}

/* false: it is not here. 0 is nowhere */
static bool here(const struct reader *r, uint32_t number, uint32_t *ret)
{
	*ret = number ? r->sites.data[number - 1].here : LT_NOWHERE;
	return *ret;
}

static bool apply_shape(struct reader *r, struct lt_learnt *to, const struct fact *f, bool *ret_used)
{
	struct lt_mark marks[LT_UNITS];

	for (unsigned i = 0; i < f->nr; i++) {
		marks[i] = r->marks.data[f->first + i];
		if (!here(r, marks[i].site, &marks[i].site))
			return true;
	}
	lt_learnt_shape(to, marks, f->nr, f->n[0]);
	*ret_used = true;
	return true;
}

static bool apply(struct reader *r, const struct fact *f)
{
	struct model *m = &r->models.data[f->model];
	uint32_t site[2];

	if (!m->here)
		return true;
	if (f->kind == SHAPE)
		return apply_shape(r, m->here, f, &m->used);
	if (!here(r, f->site[0], &site[0]) || (f->kind == PAIR && !here(r, f->site[1], &site[1])))
		return true;
	m->used = true;
	return f->kind == PAIR ? lt_learnt_pair(m->here, site[0], site[1], f->n[0])
			       : lt_learnt_site(m->here, site[0], f->n[0], f->n[1], f->n[2]);
}

static bool apply_all(struct reader *r, uint64_t *ret_used)
{
	find_modules(r);
	find_models(r);
	if (!find_sites(r))
		return false;
	for (size_t i = 0; i < r->facts.len; i++) {
		if (!apply(r, &r->facts.data[i]))
			return false;
	}
	for (size_t i = 0; i < r->models.len; i++) {
		const struct model *m = &r->models.data[i];

		if (!m->used)
			continue;
		m->here->healthy += m->healthy;
		*ret_used += m->healthy;
	}
	return true;
}

struct rt_error *rt_models_read(struct rt_lifetime *lt, const char *text, size_t len, const char *name,
				uint64_t *ret_used)
{
	struct reader r = { .lt = lt, .name = name };
	struct rt_error *err = read_all(&r, text, len);

	*ret_used = 0;
	if (!err && !apply_all(&r, ret_used))
		err = rt_error_nomem();
	rt_vec_deinit(&r.modules);
	rt_vec_deinit(&r.frames);
	rt_vec_deinit(&r.sites);
	rt_vec_deinit(&r.models);
	rt_vec_deinit(&r.facts);
	rt_vec_deinit(&r.marks);
	rt_arena_deinit(&r.arena);
	return err;
}
