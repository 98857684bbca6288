/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lost objects that point to each other in a circle: no census finds one that nobody points to. They are the fault only
 * where nothing lost outside of the circle points into it; what hangs on a circle, another circle included, is lost
 * with it.
 *
 * Of the objects of one circle those that have more references than pointers are the fault, where there are any: the
 * others are held by just those that the circle says, and would go with it. What is still in the slots that its
 * references were taken for goes with it as well, and what the constructor of one of them made for it is a part of that
 * one. Of what a function made and links with each other, the one that it hands out then is whose reference its caller
 * has. And who has more pointers than references has owners enough.
 *
 * The last one that a walk along the pointers is done with stands in such a circle, and whoever leads to it is in it
 * as well. What it reaches besides hangs on it; then the same with the rest.
 */
#include "lifetime/answer.h"
#include "lifetime/slot.h"

/* An edge from one lost object to another, by their numbers. */
struct edge {
	uint32_t from, to;
	uint32_t pointers;
};

struct graph {
	RT_VEC(struct lt_inc *) nodes;
	struct rt_map number; /* address of the lt_inc -> its number */
	RT_VEC(struct edge) edges;
	uint64_t *back; /* of each node, its pointers to itself; at last those of what is lost with it as well */
	/* of each node the edges out of it, and into it: [first[n], first[n + 1]) */
	uint32_t *first_out, *out, *first_in, *in;
	uint32_t *done;   /* nodes as a walk was done with them */
	uint32_t *circle; /* those of one circle */
	uint8_t *mark;
	RT_VEC(struct edge) stack; /* node, and how many of its edges were followed */
};

enum { NEW, SEEN, FAULT, CHILD };

static bool is_lost(const struct lt_inc *inc)
{
	return inc->life == LT_LIVE && inc->census && !inc->rooted && !inc->child && !inc->nobody;
}

static bool add_edges(struct graph *g, const struct rt_lifetime *lt)
{
	for (size_t i = 0; i < lt->holders.len; i++) {
		const struct lt_holder *h = &lt->holders.data[i];
		const struct lt_inc *by = is_lost(h->inc) ? lt_holder_of(lt, h) : NULL;
		uint64_t *from = by ? rt_map_get(&g->number, rt_key_make((uintptr_t)by, 0)) : NULL;
		uint64_t *to = rt_map_get(&g->number, rt_key_make((uintptr_t)h->inc, 0));

		if (from && to && *from == *to)
			g->back[*to] += h->pointers;
		else if (from && to &&
			 !rt_vec_push(&g->edges, ((struct edge){ (uint32_t)*from, (uint32_t)*to, h->pointers })))
			return false;
	}
	return true;
}

static bool add_nodes(struct graph *g, struct rt_lifetime *lt)
{
	uint32_t at = UINT32_MAX;
	struct lt_inc *inc;

	while ((inc = lt_row_older(&lt->live, &at))) {
		uint64_t *number = is_lost(inc) ? rt_map_put(&g->number, rt_key_make((uintptr_t)inc, 0), NULL) : NULL;

		if (!is_lost(inc))
			continue;
		if (!number || !rt_vec_push(&g->nodes, inc))
			return false;
		*number = g->nodes.len - 1;
	}
	return true;
}

/* sorts the edges by one of their ends */
static bool sort_edges(const struct graph *g, bool by_from, uint32_t **ret_first, uint32_t **ret)
{
	uint32_t *first = *ret_first = calloc(g->nodes.len + 2, sizeof(*first));
	uint32_t *all = *ret = calloc(g->edges.len + 1, sizeof(*all));

	if (!first || !all)
		return false;
	for (size_t i = 0; i < g->edges.len; i++)
		first[(by_from ? g->edges.data[i].from : g->edges.data[i].to) + 2]++;
	for (size_t i = 2; i < g->nodes.len + 2; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < g->edges.len; i++) {
		const struct edge *e = &g->edges.data[i];

		all[first[(by_from ? e->from : e->to) + 1]++] = by_from ? e->to : e->from;
	}
	return true;
}

/*
 * Gives node, and what it reaches of what has mark `from`, the mark `mark`; these are added to the *n of done (NULL:
 * they are not). false: out of memory.
 */
static bool walk(struct graph *g, uint32_t node, const uint32_t *first, const uint32_t *next, uint8_t from,
		 uint8_t mark, uint32_t *done, uint32_t *n)
{
	g->mark[node] = mark;
	rt_vec_clear(&g->stack);
	if (!rt_vec_push(&g->stack, ((struct edge){ node, first[node], 0 })))
		return false;
	while (g->stack.len) {
		struct edge *top = &g->stack.data[g->stack.len - 1];
		uint32_t to;

		if (top->to == first[top->from + 1]) {
			if (done)
				done[(*n)++] = top->from;
			g->stack.len--;
			continue;
		}
		to = next[top->to++];
		if (g->mark[to] != from)
			continue;
		g->mark[to] = mark;
		if (!rt_vec_push(&g->stack, ((struct edge){ to, first[to], 0 })))
			return false;
	}
	return true;
}

/* the type that a function which the object was made in makes as well, this one or one further out; NULL: none */
static const struct lt_type *whole_of(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	const struct lt_type *whole = NULL;
	uint16_t place[LT_LEVELS];
	uint32_t src[LT_LEVELS];
	unsigned n;

	if (!inc->has_new || !inc->nr || inc->ledger[0].op != RT_OP_NEW)
		return NULL;
	n = lt_use_levels(lt, &lt->uses.data[inc->ledger[0].use], src, place, LT_LEVELS);
	for (unsigned i = 0; i < n && !whole; i++)
		whole = lt_made_by(lt, lt_src(lt, src[i])->name, inc->type);
	return whole;
}

/*
 * Made by the constructor of another one's type, or by its helpers, and that one points to it: it is of the circle,
 * since nothing lost points into that from outside, be it a fault itself or lost with others.
 */
static bool is_part(const struct graph *g, const struct rt_lifetime *lt, uint32_t node)
{
	const struct lt_type *whole = whole_of(lt, g->nodes.data[node]);

	for (uint32_t i = g->first_in[node]; whole && i < g->first_in[node + 1]; i++) {
		if (lt_inc_type(lt, g->nodes.data[g->in[i]]) == whole)
			return true;
	}
	return false;
}

/* these are no longer faults, if any other one of the circle is */
static void leave(struct graph *g, uint32_t n, const bool *others)
{
	bool any = false;

	for (uint32_t i = 0; i < n; i++)
		any |= g->mark[g->circle[i]] == FAULT && !others[i];
	for (uint32_t i = 0; any && i < n; i++) {
		if (others[i])
			g->mark[g->circle[i]] = CHILD;
	}
}

/* all that is left of the object is in the slots that it was taken for: it has its owners */
static bool is_in_slots(const struct graph *g, const struct rt_lifetime *lt, uint32_t node)
{
	struct lt_inc *inc = g->nodes.data[node];

	lt_slots_settle(lt, inc, inc->nr);
	return inc->known && lt_slots_kept(lt, inc) >= inc->balance;
}

/*
 * More pointers than references: it has all its owners, and indexes or friends besides. Of one with just as many, one
 * of these may stand where its owner is missing.
 */
static bool has_more(const struct graph *g, const struct rt_lifetime *lt, uint32_t node)
{
	const struct lt_inc *inc = g->nodes.data[node];

	(void)lt;
	return inc->known && (int64_t)inc->held[RT_HOLDER_OBJECT] - (int64_t)g->back[node] > inc->balance;
}

/* the last time that a function handed the object out; NULL: none did */
static const struct lt_event *last_handed(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	for (uint32_t i = inc->nr; i-- > 0;) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->op == RT_OP_MOVE && lt_point_hands(lt_event_point(lt, e)))
			return e;
	}
	return NULL;
}

/* all references to the object were taken by the function that the return out is of, or further in */
static bool taken_inside(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *out)
{
	bool any = false;

	for (uint32_t i = 0; i < inc->nr; i++) {
		if (!lt_event_takes(&inc->ledger[i]))
			continue;
		if (!lt_inside(lt, &inc->ledger[i], out))
			return false;
		any = true;
	}
	return any;
}

/* Which of the circle a function took that handed out another one, the last one of all that was. */
static void find_linked(const struct graph *g, const struct rt_lifetime *lt, uint32_t n, bool *ret)
{
	const struct lt_event *out = NULL;
	uint32_t head = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct lt_event *e = last_handed(lt, g->nodes.data[g->circle[i]]);

		if (e && (!out || e->time_ns > out->time_ns)) {
			out = e;
			head = i;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		ret[i] = out && i != head && taken_inside(lt, g->nodes.data[g->circle[i]], out);
}

static bool is_held(const struct graph *g, const struct rt_lifetime *lt, uint32_t node)
{
	(void)lt;
	return lt_held_by_lost(g->nodes.data[node]);
}

/* those of the circle that the reason holds for are lost with the others, where there are such */
static void leave_for(struct graph *g, const struct rt_lifetime *lt, uint32_t n, bool *others,
		      bool (*reason)(const struct graph *, const struct rt_lifetime *, uint32_t node))
{
	for (uint32_t i = 0; i < n; i++)
		others[i] = reason(g, lt, g->circle[i]);
	leave(g, n, others);
}

static bool judge_circle(struct graph *g, const struct rt_lifetime *lt, uint32_t n)
{
	bool *others = calloc(n + 1, sizeof(*others));

	if (!others)
		return false;
	/* the surest reason first */
	leave_for(g, lt, n, others, is_held);
	leave_for(g, lt, n, others, is_in_slots);
	leave_for(g, lt, n, others, is_part);
	if (n > 1) {
		find_linked(g, lt, n, others);
		leave(g, n, others);
	}
	leave_for(g, lt, n, others, has_more);
	free(others);
	return true;
}

static bool judge(struct graph *g, const struct rt_lifetime *lt)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nodes.len; i++) {
		if (g->mark[i] == NEW && !walk(g, i, g->first_out, g->out, NEW, SEEN, g->done, &n))
			return false;
	}
	while (n-- > 0) {
		uint32_t node = g->done[n], circle = 0;

		if (g->mark[node] != SEEN)
			continue;
		/* it reaches its circle, and what hangs on that; of these, the circle leads back to it */
		if (!walk(g, node, g->first_out, g->out, SEEN, CHILD, NULL, NULL) ||
		    !walk(g, node, g->first_in, g->in, CHILD, FAULT, g->circle, &circle) ||
		    !judge_circle(g, lt, circle))
			return false;
	}
	return true;
}

/* Says of the faults which have more references than pointers, their own and those in what is lost with them aside. */
static void find_short(struct graph *g)
{
	for (size_t i = 0; i < g->edges.len; i++) {
		const struct edge *e = &g->edges.data[i];

		if (g->mark[e->from] == CHILD)
			g->back[e->to] += e->pointers;
	}
	for (size_t i = 0; i < g->nodes.len; i++) {
		struct lt_inc *inc = g->nodes.data[i];

		inc->backwards = g->mark[i] == FAULT && g->back[i] && inc->known &&
				 (int64_t)inc->held[RT_HOLDER_OBJECT] - (int64_t)g->back[i] < inc->balance;
	}
}

bool lt_lost(struct rt_lifetime *lt)
{
	struct graph g = { 0 };
	bool ok = add_nodes(&g, lt);

	g.back = calloc(g.nodes.len + 1, sizeof(*g.back));
	g.done = calloc(g.nodes.len + 1, sizeof(*g.done));
	g.circle = calloc(g.nodes.len + 1, sizeof(*g.circle));
	g.mark = calloc(g.nodes.len + 1, sizeof(*g.mark));
	ok = ok && g.back && g.done && g.circle && g.mark && add_edges(&g, lt) &&
	     sort_edges(&g, true, &g.first_out, &g.out) && sort_edges(&g, false, &g.first_in, &g.in) && judge(&g, lt);
	if (ok)
		find_short(&g);
	for (size_t i = 0; ok && i < g.nodes.len; i++) {
		g.nodes.data[i]->nobody = g.mark[i] == FAULT;
		g.nodes.data[i]->child = g.mark[i] == CHILD;
	}
	rt_vec_deinit(&g.nodes);
	rt_vec_deinit(&g.edges);
	rt_vec_deinit(&g.stack);
	rt_map_deinit(&g.number);
	free(g.first_out);
	free(g.out);
	free(g.first_in);
	free(g.in);
	free(g.back);
	free(g.done);
	free(g.circle);
	free(g.mark);
	return ok;
}
