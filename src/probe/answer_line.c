/* SPDX-License-Identifier: GPL-2.0-only */
/* Points of source lines: by number, or by the text of the line. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "probe/answer_build.h"
#include "probe/lines.h"
#include "probe/spec.h"

enum { NEAR_LINES = 1000, PLACES_MAX = 10000 };

/* A row that was asked for, in the innermost instance around it. */
struct found {
	struct rt_instance instance;
	bool has_instance;
	struct rt_row row;
	const struct rt_instance *wanted; /* of FUNC: which of them it is */
};

struct rows {
	struct rt_answer_build *b;
	const struct rt_instance *instances; /* of FUNC; NULL: FILE */
	size_t count;
	const char *file;      /* whose lines count, of FUNC */
	uint32_t line;         /* wanted; 0: by pattern */
	uint32_t above, below; /* nearest lines with code */
	/* the file of the row before, its text, and how far it was read */
	const char *text_file, *text, *text_at;
	uint32_t text_line;
	bool unreadable, file_seen;
	RT_VEC(struct found) list;
	struct rt_error *err;
};

static bool wants_file(const char *file, void *arg)
{
	struct rows *r = arg;
	bool fits = r->file ? !strcmp(file, r->file) : rt_path_is(file, r->b->request->file);

	r->file_seen |= fits;
	return fits;
}

/* The text of a line, without its blanks; NULL: the file cannot be read, or is shorter. */
static const char *line_text(struct rows *r, const char *file, uint32_t line, char *out, size_t size)
{
	const struct rt_answer_module *m = r->b->module;
	size_t n = 0;

	if (file != r->text_file) {
		r->text_file = file;
		r->text = m->source ? m->source(m->source_arg, file) : NULL;
		r->text_at = NULL;
		r->unreadable |= !r->text;
	}
	if (!r->text)
		return NULL;
	if (!r->text_at || line < r->text_line) {
		r->text_at = r->text;
		r->text_line = 1;
	}
	while (r->text_line < line) {
		r->text_at += strcspn(r->text_at, "\n");
		if (!*r->text_at)
			return NULL;
		r->text_at++;
		r->text_line++;
	}
	for (const char *c = r->text_at; *c && *c != '\n' && n + 1 < size; c++)
		if (!isspace((unsigned char)*c))
			out[n++] = *c;
	out[n] = '\0';
	return out;
}

/* Blanks of neither the line nor the pattern count. */
static bool fits_pattern(struct rows *r, const struct rt_row *row)
{
	char text[1024], pattern[1024];
	size_t n = 0;

	for (const char *c = r->b->request->pattern; *c && n + 1 < sizeof(pattern); c++)
		if (!isspace((unsigned char)*c))
			pattern[n++] = *c;
	pattern[n] = '\0';
	return line_text(r, row->file, row->line, text, sizeof(text)) && rt_glob_match(pattern, text);
}

static bool keep(struct rows *r, const struct rt_row *row)
{
	struct found f = { .row = *row };
	struct rt_dwarf *dwarf = r->b->debug;

	f.has_instance = rt_dwarf_instance_of_row(dwarf, row, &f.instance);
	for (size_t i = 0; i < r->count && f.has_instance && !f.wanted; i++)
		if (r->instances[i].unit == f.instance.unit && r->instances[i].node == f.instance.node)
			f.wanted = &r->instances[i];
	if (r->instances && !f.wanted)
		return true;
	if (r->list.len == PLACES_MAX)
		r->err = rt_error_new(RT_E_LIMIT, "more than %d places fit '%s'", PLACES_MAX, r->b->request->text);
	else if (!rt_vec_push(&r->list, f))
		r->err = rt_error_nomem();
	return !r->err;
}

/* Is the row one of the function that was asked for? */
static bool is_wanted(const struct rows *r, const struct rt_row *row)
{
	struct rt_instance instance;

	if (!r->instances)
		return true;
	if (!rt_dwarf_instance_of_row(r->b->debug, row, &instance))
		return false;
	for (size_t i = 0; i < r->count; i++)
		if (r->instances[i].unit == instance.unit && r->instances[i].node == instance.node)
			return true;
	return false;
}

/* Of lines of the same function, the nearest are told when the one that was asked for has no code. */
static void note_near(struct rows *r, const struct rt_row *row)
{
	uint32_t *nearest = row->line < r->line ? &r->above : &r->below;
	uint32_t far = row->line < r->line ? r->line - row->line : row->line - r->line;
	bool nearer = !*nearest || (row->line < r->line ? row->line > *nearest : row->line < *nearest);

	if (far < NEAR_LINES && nearer && is_wanted(r, row))
		*nearest = row->line;
}

static bool visit(const struct rt_row *row, void *arg)
{
	struct rows *r = arg;

	if (!row->is_stmt)
		return true;
	if (r->b->request->pattern)
		return !fits_pattern(r, row) || keep(r, row);
	if (row->line == r->line)
		return keep(r, row);
	if (!r->list.len)
		note_near(r, row);
	return true;
}

static int by_place(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->instance.unit != y->instance.unit)
		return x->instance.unit < y->instance.unit ? -1 : 1;
	if (x->instance.node != y->instance.node)
		return x->instance.node < y->instance.node ? -1 : 1;
	if (x->row.line != y->row.line)
		return x->row.line < y->row.line ? -1 : 1;
	/* what was split off into another part of the file (.cold) comes last */
	if ((x->row.addr.v < x->instance.around.v) != (y->row.addr.v < y->instance.around.v))
		return x->row.addr.v < x->instance.around.v ? 1 : -1;
	return x->row.addr.v < y->row.addr.v ? -1 : x->row.addr.v > y->row.addr.v;
}

static bool same_place(const struct found *x, const struct found *y)
{
	return x->has_instance && y->has_instance && x->instance.unit == y->instance.unit &&
	       x->instance.node == y->instance.node && x->row.line == y->row.line;
}

static struct rt_error *add(struct rows *r, const struct found *f, size_t others)
{
	struct rt_answer_build *b = r->b;
	struct rt_answer_place place = { .instance = f->has_instance ? &f->instance : NULL, .address = f->row.addr };

	if (f->has_instance) {
		place.function = f->instance.function;
		place.is_entry = f->row.addr.v == f->instance.entry.v;
	}
	if (b->request->kind == RT_REQUEST_FUNCTION && b->request->has_line && b->request->line)
		place.named = b->request->line;
	place.key = rt_answer_text(b, "%s:%s:%u", place.function ? place.function : "", f->row.file, f->row.line);
	/* a line that is counted twice each time would be as wrong as one that is missed on one way: say it */
	if (others)
		rt_answer_note(b,
			       "%s: code of line %u begins at %zu more place%s of it; the first is probed "
			       "(--all-places: each)",
			       rt_answer_where(b, &place), f->row.line, others, others == 1 ? "" : "s");
	return rt_answer_add(b, &place);
}

static struct rt_error *nothing(struct rows *r)
{
	const struct rt_request *q = r->b->request;
	uint32_t first = r->instances && r->count ? r->instances[0].line : 0;
	struct rt_error *err;

	if (!r->instances && !r->file_seen)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "%s: no source file fits '%s'",
						 r->b->module->image->name, q->file),
				    "the end of its path, such as dir/file.c");
	if (q->pattern && r->unreadable)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "the source file %s cannot be read", r->text_file),
				    "a pattern needs the source; or give a line: FUNC:LINE");
	if (q->pattern)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "no line with code fits ';%s'", q->pattern),
				    "a pattern stands for the whole line, blanks do not count: ;*%s*%s", q->pattern,
				    strchr(q->pattern, '[') ? "; a bracket that is meant itself: \\[" : "");
	err = rt_error_new(RT_E_NOT_FOUND, "line %u of '%s' has no code", q->line, q->text);
	if (r->above && r->below)
		return rt_error_fix(err, "lines %u and %u have", r->above - first, r->below - first);
	if (r->above || r->below)
		return rt_error_fix(err, "line %u has", (r->above ? r->above : r->below) - first);
	return err;
}

static struct rt_error *add_all(struct rows *r)
{
	if (!r->list.len)
		return nothing(r);
	qsort(r->list.data, r->list.len, sizeof(*r->list.data), by_place);
	for (size_t i = 0; i < r->list.len;) {
		size_t next = i + 1, others = 0;

		for (; !r->b->module->all_places && next < r->list.len &&
		       same_place(&r->list.data[i], &r->list.data[next]);
		     next++)
			others += r->list.data[next].row.addr.v != r->list.data[next - 1].row.addr.v;
		RT_TRY(add(r, &r->list.data[i], others));
		i = next;
	}
	return NULL;
}

/* All units that have one of the instances, each once. */
static struct rt_error *rows_of_function(struct rows *r)
{
	const struct rt_request *q = r->b->request;
	struct rt_dwarf *dwarf = r->b->debug;

	for (size_t i = 0; i < r->count && !r->err; i++) {
		const struct rt_instance *in = &r->instances[i];
		bool seen = false;

		for (size_t k = 0; k < i; k++)
			seen |= r->instances[k].unit == in->unit && r->instances[k].file == in->file &&
				r->instances[k].line == in->line;
		if (seen || !in->file)
			continue;
		r->file = in->file;
		r->line = in->line + q->line;
		RT_TRY(rt_dwarf_rows(dwarf, in->unit, wants_file, visit, r));
	}
	return NULL;
}

struct rt_error *rt_answer_lines(struct rt_answer_build *b, const struct rt_instance *instances, size_t count)
{
	struct rows r = { .b = b, .instances = instances, .count = count, .line = b->request->line };
	struct rt_error *err;

	if (instances)
		err = rows_of_function(&r);
	else
		err = rt_dwarf_rows(b->debug, SIZE_MAX, wants_file, visit, &r);
	if (!err)
		err = rt_take(r.err);
	if (!err)
		err = add_all(&r);
	rt_error_free(r.err);
	rt_vec_deinit(&r.list);
	return err;
}
