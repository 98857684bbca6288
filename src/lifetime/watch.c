/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lives that are kept whole. Beside the ledger, which is folded, a watched life
 * has one of its own that only grows; or, where only sums are asked for, its events
 * are counted by stack. What is not watched pays one branch for each event.
 */
#include <string.h>

#include "lifetime/answer.h"
#include "lifetime/watch.h"

#define ALLOC(a, n, type) ((type *)rt_arena_alloc((a)->arena, (n) * sizeof(type) + 1))

enum { EVENTS_MAX = 1 << 22 }; /* kept, of all watched lives together */

struct lt_watched {
	struct lt_watched *older;
	struct lt_inc *inc; /* NULL: forgotten, then `last` is what it was */
	struct lt_inc last;
	RT_VEC(struct lt_event) events;
	uint64_t left_out;
};

static struct lt_watch_count *count_of(struct rt_lifetime *lt, uint32_t use)
{
	static const struct lt_watch_count none;

	while (lt->counts.len <= use) {
		if (!rt_vec_push(&lt->counts, none))
			return NULL;
	}
	return &lt->counts.data[use];
}

/* references that the event takes (> 0) or gives back, before inc takes it */
static int64_t moves(const struct lt_inc *inc, const struct lt_event *ev)
{
	if (ev->op == RT_OP_NEW)
		return inc->start;
	if (ev->op != RT_OP_FREE)
		return ev->delta;
	/* what was open when the memory was freed by force stays open */
	return inc->life == LT_LIVE && (ev->flags & LT_EV_CLOSES) && inc->balance > 0 ? -inc->balance : 0;
}

static void count(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	struct lt_watch_count *c = count_of(lt, ev->use);

	if (!c)
		return;
	c->events++;
	c->references += moves(inc, ev);
}

static void count_base(struct rt_lifetime *lt, const struct lt_inc *inc)
{
	while (lt->count_base.len <= inc->type) {
		if (!rt_vec_push(&lt->count_base, 0))
			return;
	}
	lt->count_base.data[inc->type] += inc->base;
}

void lt_watch_begin(struct rt_lifetime *lt, struct lt_inc *inc)
{
	struct lt_watched *w;

	if (!lt->watch->wants(lt->watch->arg, lt_inc_type(lt, inc)->name, inc->serial, inc->object))
		return;
	w = rt_arena_alloc(&lt->arena, sizeof(*w));
	if (!w)
		return;
	w->inc = inc;
	w->older = lt->watched;
	lt->watched = w;
	inc->watched = w;
}

void lt_watch_event(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	struct lt_watched *w = inc->watched;

	if (lt->watch->counts) {
		count(lt, inc, ev);
		return;
	}
	if (lt->watched_events == EVENTS_MAX || !rt_vec_push(&w->events, *ev)) {
		w->left_out++;
		return;
	}
	lt->watched_events++;
}

void lt_watch_birth(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	struct lt_watched *w = inc->watched;

	lt_watch_event(lt, inc, ev);
	if (lt->watch->counts || w->left_out)
		return;
	memmove(w->events.data + 1, w->events.data, (w->events.len - 1) * sizeof(*ev));
	w->events.data[0] = *ev;
}

void lt_watch_site(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *old, const struct lt_event *outer)
{
	struct lt_watched *w = inc->watched;
	size_t index = (size_t)(old - inc->ledger), from_end = inc->nr - index;
	struct lt_watch_count *from, *to;

	if (lt->watch->counts) {
		to = count_of(lt, outer->use);
		from = count_of(lt, old->use);
		if (!from || !to || !from->events)
			return;
		to = count_of(lt, outer->use);
		from->events--;
		from->references -= moves(inc, old);
		to->events++;
		to->references += moves(inc, old);
		return;
	}
	if (w->left_out || w->events.len < from_end)
		return;
	index = index ? w->events.len - from_end : 0;
	w->events.data[index].use = outer->use;
	w->events.data[index].act = outer->act;
	w->events.data[index].up = outer->up;
	w->events.data[index].sp = outer->sp;
}

void lt_watch_forget(struct rt_lifetime *lt, struct lt_inc *inc)
{
	struct lt_watched *w = inc->watched;

	inc->watched = NULL;
	w->last = *inc;
	w->last.ledger = NULL;
	w->inc = NULL;
	if (lt->watch->counts)
		count_base(lt, inc);
}

void lt_watch_deinit(struct rt_lifetime *lt)
{
	for (struct lt_watched *w = lt->watched; w; w = w->older)
		rt_vec_deinit(&w->events);
	rt_vec_deinit(&lt->counts);
	rt_vec_deinit(&lt->count_base);
}

/* who closes what, as far as that is beyond doubt */
static void fill_mates(const struct lt_answer *a, const struct lt_watched *w, const struct lt_inc *inc,
		       struct rt_watched *ret)
{
	struct lt_inc whole = *inc;
	_cleanup_free_ struct lt_units *units = malloc(sizeof(*units));

	if (!units || w->left_out || w->events.len >= LT_NO_EVENT)
		return;
	whole.ledger = w->events.data;
	whole.nr = (uint32_t)w->events.len;
	whole.folded = 0;
	lt_pair(a->lt, &whole, units);
	for (unsigned i = 0; i < units->nr; i++) {
		const struct lt_unit *u = &units->u[i], *mate = u->mate >= 0 ? &units->u[u->mate] : NULL;

		if (mate && u->ev != LT_NO_EVENT && mate->ev != LT_NO_EVENT && ret->events[u->ev].mate < 0)
			ret->events[u->ev].mate = mate->ev;
	}
}

/* where an event of the folded ledger is among those that were kept */
static struct rt_watched_event *find_event(const struct lt_watched *w, const struct lt_inc *inc, uint16_t ev,
					   struct rt_watched *ret)
{
	const struct lt_event *e = &inc->ledger[ev];

	for (size_t i = w->events.len; ev != LT_NO_EVENT && ev < inc->nr && i-- > 0;) {
		const struct lt_event *k = &w->events.data[i];

		if (k->time_ns == e->time_ns && k->tid == e->tid && k->use == e->use && k->op == e->op)
			return &ret->events[i];
	}
	return NULL;
}

static const struct rt_finding *find_finding(const struct rt_verdict *v, const struct lt_group *g)
{
	const struct rt_finding *f = g->suspect ? v->suspects : v->findings;
	size_t n = g->suspect ? v->suspect_count : v->finding_count;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(f[i].id, g->id))
			return &f[i];
	}
	return NULL;
}

/* what the findings say of this life; what is certain goes before what is suspected */
static void fill_accused(const struct lt_answer *a, const struct rt_verdict *v, const struct lt_watched *w,
			 struct rt_watched *ret)
{
	for (size_t i = 0; i < 2 * a->groups.len; i++) {
		bool suspects = i >= a->groups.len;
		const struct lt_group *g = &a->groups.data[suspects ? i - a->groups.len : i];
		const struct rt_finding *f = g->suspect == suspects ? find_finding(v, g) : NULL;

		for (size_t k = 0; f && k < g->members.len; k++) {
			const struct lt_ref *ref = &g->members.data[k].ref;
			struct rt_watched_event *open, *bad;

			if (ref->inc != w->inc)
				continue;
			if (!ret->finding) {
				ret->finding = f;
				ret->suspected = g->suspect;
			}
			open = find_event(w, w->inc, ref->ev, ret);
			bad = find_event(w, w->inc, ref->bad, ret);
			if (open && g->kind == RT_LEAK)
				open->mark = RT_WATCHED_OPEN;
			if (bad)
				bad->mark = RT_WATCHED_FAULT;
		}
	}
}

static bool fill_events(const struct lt_answer *a, const struct lt_watched *w, const struct lt_inc *inc,
			struct rt_watched *ret)
{
	int64_t balance = inc->base;

	ret->events = ALLOC(a, w->events.len, struct rt_watched_event);
	if (!ret->events)
		return false;
	ret->event_count = w->events.len;
	for (size_t i = 0; i < w->events.len; i++) {
		const struct lt_event *e = &w->events.data[i];
		struct rt_watched_event *to = &ret->events[i];

		balance += e->op == RT_OP_NEW ? inc->start : e->delta;
		lt_history_entry(a, inc, e, balance, &to->history);
		to->history.gap_before = false;
		to->mate = -1;
		if (!lt_use_stack(a, &a->lt->uses.data[e->use], &to->stack))
			return false;
	}
	fill_mates(a, w, inc, ret);
	return true;
}

static bool fill_life(const struct lt_answer *a, const struct rt_verdict *v, const struct lt_watched *w,
		      struct rt_watched *ret)
{
	const struct lt_inc *inc = w->inc ? w->inc : &w->last;

	*ret = (struct rt_watched){ .type = a->lt->types.data[inc->type].name, .serial = inc->serial };
	ret->object = inc->object;
	ret->pid = RT_PID_OF(inc->pid);
	ret->birth_ns = inc->birth_ns;
	ret->end_ns = inc->end_ns;
	ret->end = inc->life == LT_LIVE ? RT_WATCHED_LIVE : inc->life == LT_DEAD ? RT_WATCHED_DEAD : RT_WATCHED_LOST;
	ret->references = inc->known ? inc->balance : INT64_MIN;
	ret->at_first_sight = inc->base;
	ret->has_new = inc->has_new;
	ret->attached = inc->attached;
	ret->earlier = inc->attached && a->lt->began_earlier;
	ret->inherited = inc->inherited;
	ret->incomplete = inc->incomplete;
	ret->forced = inc->forced;
	ret->left_out = w->left_out;
	if (!fill_events(a, w, inc, ret))
		return false;
	if (w->inc)
		fill_accused(a, v, w, ret);
	if (inc->life == LT_LIVE && (!ret->finding || ret->suspected))
		ret->reason = lt_alive_reason(a->lt, inc);
	return true;
}

static int by_serial(const void *x, const void *y)
{
	const struct rt_watched *a = x, *b = y;
	int types = strcmp(a->type, b->type);

	return types ? types : a->serial < b->serial ? -1 : a->serial > b->serial;
}

static bool fill_paths(const struct lt_answer *a, struct rt_verdict *v)
{
	struct rt_lifetime *lt = a->lt;
	size_t types = lt->types.len;
	int64_t *base = ALLOC(a, types, int64_t);

	v->paths = ALLOC(a, lt->counts.len + types, struct rt_path);
	if (!base || !v->paths)
		return false;
	for (size_t i = 0; i < lt->counts.len; i++) {
		const struct lt_watch_count *c = &lt->counts.data[i];
		const struct lt_use *use = &lt->uses.data[i];
		const struct lt_point *point = &lt->points.data[use->point];
		struct rt_path *p = &v->paths[v->path_count];

		if (!c->events)
			continue;
		*p = (struct rt_path){ .type = lt->types.data[point->type].name, .op = point->op };
		p->api = rt_intern_text(&lt->names, point->name);
		p->events = c->events;
		p->references = c->references;
		if (!lt_use_stack(a, use, &p->stack))
			return false;
		v->path_count++;
	}
	for (size_t i = 0; i < lt->count_base.len; i++)
		base[i] = lt->count_base.data[i];
	for (const struct lt_watched *w = lt->watched; w; w = w->older) {
		if (w->inc)
			base[w->inc->type] += w->inc->base;
	}
	for (size_t i = 0; i < types; i++) {
		if (base[i])
			v->paths[v->path_count++] =
				(struct rt_path){ .type = lt->types.data[i].name, .references = base[i] };
	}
	return true;
}

bool lt_watch_fill(struct lt_answer *a, struct rt_verdict *v)
{
	size_t n = 0;

	if (!a->lt->watch)
		return true;
	if (a->lt->watch->counts)
		return fill_paths(a, v);
	for (const struct lt_watched *w = a->lt->watched; w; w = w->older)
		n++;
	v->watched = ALLOC(a, n, struct rt_watched);
	if (!v->watched)
		return false;
	for (const struct lt_watched *w = a->lt->watched; w; w = w->older) {
		if (!fill_life(a, v, w, &v->watched[v->watched_count++]))
			return false;
	}
	qsort(v->watched, v->watched_count, sizeof(*v->watched), by_serial);
	return true;
}
