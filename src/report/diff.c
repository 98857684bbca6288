/* SPDX-License-Identifier: GPL-2.0-only */
/* Matches the findings of two verdicts. */
#include "report/diff.h"

#include <string.h>

#include "base/glob.h"
#include "base/map.h"
#include "report/words.h"

/* as many sites of one function are aligned by line; more are paired as they come */
enum { ALIGNED_MAX = 32 };

/* by how much a share of a type's objects must differ to be more than chance, and more work of the same kind */
static const double MARGIN = 1.1;

const char *rt_change_word(enum rt_change change)
{
	static const char *const words[] = { "new", "grown", "gone", "shrunk", "same" };

	return words[(unsigned)change < RT_CHANGES ? change : RT_SAME];
}

/* ---- rows */

/* "foo.part.0", "foo.constprop.1": clones that another compiler run makes or does not. */
static const char *plain_name(struct rt_arena *arena, const char *name)
{
	static const char *const marks[] = { ".part.", ".isra.", ".constprop.", ".cold" };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		const char *at = strstr(name, marks[i]);

		if (at && at > name && (size_t)(at - name) < len)
			len = (size_t)(at - name);
	}
	return name[len] ? rt_arena_strndup(arena, name, len) ?: name : name;
}

static const char *function_of(struct rt_arena *arena, const struct rt_frame *frame)
{
	if (frame->function && *frame->function)
		return plain_name(arena, frame->function);
	return rt_format(arena, "[%s]", frame->module ? rt_basename(frame->module) : "?");
}

static const char *key_of(struct rt_arena *arena, const struct rt_finding *f)
{
	return rt_format(arena, "%u\n%s\n%s\n%s\n%s", f->kind, f->type, f->klass ?: "", function_of(arena, &f->guilty),
			 f->guilty.file ? rt_basename(f->guilty.file) : "");
}

static bool wanted(const struct rt_diff_filter *filter, const struct rt_finding *f)
{
	bool type = !filter->type_count;

	for (size_t i = 0; i < filter->type_count && !type; i++)
		type = rt_glob_match(filter->types[i], f->type) ||
		       (f->klass && rt_glob_match(filter->types[i], f->klass));
	return type && (!filter->id || !strcmp(filter->id, f->id));
}

struct maker {
	struct rt_diff *diff;
	const struct rt_diff_filter *filter;
	struct rt_map rows; /* key -> index */
	bool nomem;
};

static void add_finding(struct maker *m, const struct rt_finding *f, bool suspect, bool after)
{
	const char *key = key_of(&m->diff->arena, f);
	struct rt_diff_row *row;
	uint64_t *at;
	bool made;

	if (!wanted(m->filter, f))
		return;
	at = rt_map_put(&m->rows, rt_key_text(key), &made);
	if (!at) {
		m->nomem = true;
		return;
	}
	if (made) {
		*at = m->diff->count++;
		m->diff->rows[*at].suspect = true;
	}
	row = &m->diff->rows[*at];
	row->suspect &= suspect;
	if (after) {
		row->new_objects += f->objects;
		row->new_one = row->new_one ?: f;
	} else {
		row->old_objects += f->objects;
		row->old_one = row->old_one ?: f;
	}
}

static void add_verdict(struct maker *m, const struct rt_verdict *v, bool after)
{
	for (size_t i = 0; i < v->finding_count; i++)
		add_finding(m, &v->findings[i], false, after);
	for (size_t i = 0; i < v->suspect_count; i++)
		add_finding(m, &v->suspects[i], true, after);
}

/* More objects of more work are no growth: shares of the type are compared. */
static enum rt_change change_of(uint64_t before, uint64_t after, uint64_t of_before, uint64_t of_after)
{
	double old_share = (double)before * (double)(of_after ?: 1),
	       new_share = (double)after * (double)(of_before ?: 1);

	if (!before || !after)
		return before ? RT_GONE : RT_NEW;
	if (after > before && new_share > old_share * MARGIN)
		return RT_GROWN;
	if (after < before && new_share * MARGIN < old_share)
		return RT_SHRUNK;
	return RT_SAME;
}

/* ---- sites */

/* What tells the places of one function apart: the line, or the address in code without lines. */
static int64_t place_of(const struct rt_frame *frame)
{
	return frame->line ? (int64_t)frame->line : (int64_t)(frame->address & (INT64_MAX >> 1));
}

struct place {
	const char *function;
	struct rt_frame frame;
	uint64_t references;
};

static int by_place(const void *x, const void *y)
{
	const struct place *a = x, *b = y;
	int order = strcmp(a->function, b->function);
	int64_t p = place_of(&a->frame), q = place_of(&b->frame);

	return order ? order : p < q ? -1 : p > q;
}

/* The places of a finding, sorted, those of one line as one. */
static struct place *places_of(struct rt_arena *arena, const struct rt_finding *f, size_t *ret)
{
	size_t count = f ? f->origin_count : 0, n = 0;
	struct place *all = rt_arena_alloc(arena, count * sizeof(*all) + 1);

	*ret = 0;
	if (!all)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const struct rt_origin *o = &f->origins[i];

		if (!o->stack.count)
			continue;
		all[n].frame = o->stack.frames[0];
		all[n].function = function_of(arena, &all[n].frame);
		all[n++].references = o->references;
	}
	if (n)
		qsort(all, n, sizeof(*all), by_place);
	for (size_t i = 0; i < n; i++) {
		if (*ret && !by_place(&all[*ret - 1], &all[i]))
			all[*ret - 1].references += all[i].references;
		else
			all[(*ret)++] = all[i];
	}
	return all;
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * Pairs each of few with one of many, in order, so that the lines fit best when all are moved by shift. mate[i]: index
 * into many. Returns what it costs.
 */
static uint64_t align(const struct place *few, size_t n, const struct place *many, size_t m, int64_t shift,
		      unsigned mate[ALIGNED_MAX])
{
	/* cost[i][j]: the first i of few among the first j of many */
	static const uint64_t NEVER = UINT64_MAX;
	uint64_t cost[ALIGNED_MAX + 1][ALIGNED_MAX + 1];

	for (size_t i = 0; i <= n; i++) {
		for (size_t j = 0; j <= m; j++) {
			uint64_t pair, skip;

			if (!i || j < i) {
				cost[i][j] = i ? NEVER : 0;
				continue;
			}
			pair = add(cost[i - 1][j - 1],
				   distance(place_of(&many[j - 1].frame), place_of(&few[i - 1].frame) + shift));
			skip = cost[i][j - 1];
			cost[i][j] = pair < skip ? pair : skip;
		}
	}
	for (size_t i = n, j = m; i; j--) {
		if (j > i && cost[i][j] == cost[i][j - 1])
			continue;
		mate[--i] = (unsigned)j - 1;
	}
	return cost[n][m];
}

static void best_alignment(const struct place *few, size_t n, const struct place *many, size_t m,
			   unsigned mate[ALIGNED_MAX])
{
	uint64_t best = UINT64_MAX, best_shift = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = i; j < m; j++) {
			int64_t shift = place_of(&many[j].frame) - place_of(&few[i].frame);
			uint64_t size = distance(shift, 0), cost;
			unsigned mates[ALIGNED_MAX];

			cost = align(few, n, many, m, shift, mates);
			if (cost > best || (cost == best && size >= best_shift))
				continue;
			best = cost;
			best_shift = size;
			memcpy(mate, mates, n * sizeof(*mate));
		}
	}
}

static void add_site(struct rt_diff_row *row, const struct place *before, const struct place *after)
{
	struct rt_diff_site *s = &row->sites[row->site_count++];
	uint64_t of_before = row->old_one ? row->old_one->of : 0, of_after = row->new_one ? row->new_one->of : 0;

	*s = (struct rt_diff_site){ .function = before ? before->function : after->function };
	if (before) {
		s->old_frame = before->frame;
		s->old_references = before->references;
	}
	if (after) {
		s->new_frame = after->frame;
		s->new_references = after->references;
	}
	s->change = change_of(s->old_references, s->new_references, of_before, of_after);
}

/* The places of one function on both sides. */
static void add_function(struct rt_diff_row *row, const struct place *old, size_t n, const struct place *young,
			 size_t m)
{
	bool swap = n > m, is_mate[ALIGNED_MAX] = { false };
	const struct place *few = swap ? young : old, *many = swap ? old : young;
	size_t less = swap ? m : n, more = swap ? n : m;
	unsigned mate[ALIGNED_MAX] = { 0 };

	if (more > ALIGNED_MAX || !less) {
		for (size_t i = 0; i < more; i++)
			add_site(row, i < n ? &old[i] : NULL, i < m ? &young[i] : NULL);
		return;
	}
	best_alignment(few, less, many, more, mate);
	for (size_t i = 0; i < less; i++) {
		is_mate[mate[i]] = true;
		add_site(row, swap ? &many[mate[i]] : &few[i], swap ? &few[i] : &many[mate[i]]);
	}
	for (size_t i = 0; i < more; i++) {
		if (!is_mate[i])
			add_site(row, swap ? &many[i] : NULL, swap ? NULL : &many[i]);
	}
}

static size_t run_length(const struct place *places, size_t count, size_t from)
{
	size_t n = 1;

	while (from + n < count && !strcmp(places[from + n].function, places[from].function))
		n++;
	return n;
}

static bool add_sites(struct rt_arena *arena, struct rt_diff_row *row)
{
	size_t n, m, i = 0, j = 0;
	struct place *old = places_of(arena, row->old_one, &n), *young = places_of(arena, row->new_one, &m);

	row->sites = rt_arena_alloc(arena, (n + m) * sizeof(*row->sites) + 1);
	if (!old || !young || !row->sites)
		return false;
	while (i < n || j < m) {
		int order = i == n ? 1 : j == m ? -1 : strcmp(old[i].function, young[j].function);
		size_t a = order <= 0 ? run_length(old, n, i) : 0, b = order >= 0 ? run_length(young, m, j) : 0;

		add_function(row, old + i, a, young + j, b);
		i += a;
		j += b;
	}
	return true;
}

/* ---- all of it */

static int by_change(const void *x, const void *y)
{
	const struct rt_diff_row *a = x, *b = y;
	uint64_t n = a->new_objects ?: a->old_objects, m = b->new_objects ?: b->old_objects;

	if (a->suspect != b->suspect)
		return a->suspect ? 1 : -1;
	if (a->change != b->change)
		return a->change < b->change ? -1 : 1;
	if (n != m)
		return n > m ? -1 : 1;
	return strcmp((a->new_one ?: a->old_one)->id, (b->new_one ?: b->old_one)->id);
}

static void add_alive(struct maker *m, struct rt_map *types, const struct rt_verdict *v, bool after)
{
	for (size_t i = 0; i < v->alive_count; i++) {
		const struct rt_alive *from = &v->alive[i];
		const char *key = rt_format(&m->diff->arena, "%s\n%s", from->type, from->klass ?: "");
		uint64_t *at;
		bool made;

		/* what is asked about one finding is not asked about types */
		if (m->filter->id)
			continue;
		at = rt_map_put(types, rt_key_text(key), &made);
		if (!at) {
			m->nomem = true;
			return;
		}
		if (made)
			*at = m->diff->alive_count++;
		m->diff->alive[*at].type = from->type;
		m->diff->alive[*at].klass = from->klass;
		*(after ? &m->diff->alive[*at].new_objects : &m->diff->alive[*at].old_objects) += from->objects;
	}
}

static bool make(struct maker *m, const struct rt_verdict *before, const struct rt_verdict *after)
{
	size_t most = before->finding_count + before->suspect_count + after->finding_count + after->suspect_count;
	struct rt_map types = { 0 };
	struct rt_diff *d = m->diff;

	d->rows = rt_arena_alloc(&d->arena, most * sizeof(*d->rows) + 1);
	d->alive = rt_arena_alloc(&d->arena, (before->alive_count + after->alive_count) * sizeof(*d->alive) + 1);
	if (!d->rows || !d->alive)
		return false;
	add_verdict(m, before, false);
	add_verdict(m, after, true);
	add_alive(m, &types, before, false);
	add_alive(m, &types, after, true);
	rt_map_deinit(&types);
	for (size_t i = 0; i < d->count; i++) {
		struct rt_diff_row *row = &d->rows[i];

		row->change = change_of(row->old_objects, row->new_objects, row->old_one ? row->old_one->of : 0,
					row->new_one ? row->new_one->of : 0);
		d->changes[row->change] += !row->suspect;
		m->nomem |= !add_sites(&d->arena, row);
	}
	if (d->count)
		qsort(d->rows, d->count, sizeof(*d->rows), by_change);
	return !m->nomem;
}

struct rt_error *rt_diff_make(const struct rt_verdict *before, const struct rt_verdict *after,
			      const struct rt_diff_filter *filter, struct rt_diff *ret)
{
	struct maker m = { .diff = ret, .filter = filter };
	bool ok;

	*ret = (struct rt_diff){ 0 };
	ok = make(&m, before, after);
	rt_map_deinit(&m.rows);
	return ok ? NULL : rt_error_nomem();
}

void rt_diff_deinit(struct rt_diff *diff)
{
	rt_arena_deinit(&diff->arena);
}
