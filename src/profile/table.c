/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables out of the counters: rows by period, their callers as trees. */
#include <stdlib.h>
#include <string.h>

#include "profile/parts.h"

static struct rt_profile_symbol symbol_out(const struct rt_profile *p, uint32_t id)
{
	const struct rt_pf_symbol *s = &p->symbols.data[id - 1];

	return (struct rt_profile_symbol){
		.function = s->function ? rt_intern_text(&p->strings, s->function) : NULL,
		.module = rt_intern_text(&p->strings, s->module),
		.module_id = s->module_id,
		.entry = s->entry,
		.address = s->address,
		.kernel = s->kernel,
	};
}

static int by_name(const struct rt_profile_symbol *a, const struct rt_profile_symbol *b)
{
	int c = strcmp(a->module, b->module);

	if (!c)
		c = strcmp(a->function ? a->function : "", b->function ? b->function : "");
	return c ? c : (a->address > b->address) - (a->address < b->address);
}

static int compare_rows(const void *x, const void *y)
{
	const struct rt_profile_row *a = x, *b = y;

	if (a->period != b->period)
		return a->period < b->period ? 1 : -1;
	if (a->total_period != b->total_period)
		return a->total_period < b->total_period ? 1 : -1;
	return strcmp(a->comm, b->comm) ?: by_name(&a->symbol, &b->symbol);
}

static int compare_nodes(const void *x, const void *y)
{
	const struct rt_profile_node *a = x, *b = y;

	if (a->period != b->period)
		return a->period < b->period ? 1 : -1;
	return by_name(&a->symbol, &b->symbol);
}

/* Children lists of all nodes: first[] and next[] by node number, roots by row. */
struct links {
	uint32_t *first_of_node, *first_of_row, *next;
};

static struct rt_error *collect(struct rt_profile *p, const struct links *l, uint32_t head,
				struct rt_profile_node **ret, size_t *ret_count)
{
	struct rt_profile_node *out;
	size_t n = 0;

	for (uint32_t i = head; i; i = l->next[i - 1])
		n++;
	out = rt_arena_alloc(&p->answer, n * sizeof(*out));
	if (!out && n)
		return rt_error_nomem();
	n = 0;
	for (uint32_t i = head; i; i = l->next[i - 1]) {
		const struct rt_pf_node *node = &p->nodes.data[i - 1];
		struct rt_profile_node *o = &out[n++];

		o->symbol = symbol_out(p, node->symbol);
		o->samples = node->samples;
		o->period = node->period;
		RT_TRY(collect(p, l, l->first_of_node[i - 1], &o->children, &o->child_count));
	}
	if (n)
		qsort(out, n, sizeof(*out), compare_nodes);
	*ret = out;
	*ret_count = n;
	return NULL;
}

static struct rt_error *link_nodes(struct rt_profile *p, struct links *l)
{
	l->first_of_node = rt_arena_alloc(&p->answer, (p->nodes.len + 1) * sizeof(uint32_t));
	l->next = rt_arena_alloc(&p->answer, (p->nodes.len + 1) * sizeof(uint32_t));
	l->first_of_row = rt_arena_alloc(&p->answer, (p->rows.len + 1) * sizeof(uint32_t));
	if (!l->first_of_node || !l->next || !l->first_of_row)
		return rt_error_nomem();
	for (size_t i = 0; i < p->nodes.len; i++) {
		uint64_t parent = p->nodes.data[i].parent;
		uint32_t *head = parent & RT_PF_ROOT ? &l->first_of_row[(parent & ~RT_PF_ROOT) - 1]
						     : &l->first_of_node[parent - 1];

		l->next[i] = *head;
		*head = (uint32_t)i + 1;
	}
	return NULL;
}

struct rt_error *rt_profile_table(struct rt_profile *p, unsigned event, const struct rt_profile_table **ret)
{
	struct rt_profile_table *t;
	struct links links;

	t = rt_arena_alloc(&p->answer, sizeof(*t));
	if (t)
		t->rows = rt_arena_alloc(&p->answer, (p->rows.len + 1) * sizeof(*t->rows));
	if (!t || !t->rows)
		return rt_error_nomem();
	if (event < p->tables.len) {
		const struct rt_pf_table *in = &p->tables.data[event];

		t->samples = in->samples;
		t->period = in->period;
		t->without_chain = in->without_chain;
		t->cut_chains = in->cut_chains;
		t->has_chains = in->has_chains;
	}
	RT_TRY(link_nodes(p, &links));
	for (size_t i = 0; i < p->rows.len; i++) {
		const struct rt_pf_row *in = &p->rows.data[i];
		struct rt_profile_row *row = &t->rows[t->row_count];

		if (in->event != event)
			continue;
		row->comm = rt_intern_text(&p->strings, in->comm);
		row->symbol = symbol_out(p, in->symbol);
		row->samples = in->samples;
		row->period = in->period;
		row->total_samples = in->total_samples;
		row->total_period = in->total_period;
		RT_TRY(collect(p, &links, links.first_of_row[i], &row->callers, &row->caller_count));
		t->row_count++;
	}
	if (t->row_count)
		qsort(t->rows, t->row_count, sizeof(*t->rows), compare_rows);
	*ret = t;
	return NULL;
}

static int compare_hits(const void *x, const void *y)
{
	const struct rt_profile_hit *a = x, *b = y;

	return (a->address > b->address) - (a->address < b->address);
}

struct rt_error *rt_profile_hits(struct rt_profile *p, unsigned event, const struct rt_profile_symbol *symbol,
				 const struct rt_profile_hit **ret, size_t *ret_count)
{
	struct rt_profile_hit *out = rt_arena_alloc(&p->answer, (p->hits.len + 1) * sizeof(*out));
	size_t n = 0;

	if (!out)
		return rt_error_nomem();
	for (size_t i = 0; i < p->hits.len; i++) {
		const struct rt_pf_hit *h = &p->hits.data[i];
		const struct rt_pf_symbol *s = &p->symbols.data[h->symbol - 1];

		if (h->event == event && s->module_id == symbol->module_id && s->entry == symbol->entry &&
		    (symbol->function != NULL) == (s->function != 0) &&
		    (!symbol->function || !strcmp(symbol->function, rt_intern_text(&p->strings, s->function))))
			out[n++] = (struct rt_profile_hit){ h->address, h->samples, h->period };
	}
	if (n)
		qsort(out, n, sizeof(*out), compare_hits);
	*ret = out;
	*ret_count = n;
	return NULL;
}
