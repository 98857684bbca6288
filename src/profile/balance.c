/* SPDX-License-Identifier: GPL-2.0-only */
/* Nodes are numbered from 1 in the order of first sight; a type is a node without a parent. */
#include "profile/balance.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { NODES_MAX = 1 << 20, DEPTH_MAX = 256 };

/* What a node stands for; compared byte by byte. */
struct label {
	uint32_t function, file, module, api; /* in strings, 0 = unknown */
	uint64_t address;                     /* where there is no function */
	uint32_t line;                        /* of a leaf */
	uint32_t pad;
};

struct node {
	uint32_t parent, label, line;
	bool lines; /* several */
	uint64_t events, gets, puts;
};

struct type {
	uint32_t name, node;
	uint64_t at_first_sight, cut;
};

struct rt_balance_trees {
	bool inverted;
	struct rt_intern strings, labels;
	RT_VEC(struct node) nodes;
	RT_VEC(struct type) types;
	struct rt_map node_by_key, type_by_name;
	struct rt_arena answer;
	struct rt_balance_type *out;
};

struct rt_error *rt_balance_create(bool inverted, struct rt_balance_trees **ret)
{
	struct rt_balance_trees *t = calloc(1, sizeof(*t));

	if (!t)
		return rt_error_nomem();
	t->inverted = inverted;
	*ret = t;
	return NULL;
}

void rt_balance_destroy(struct rt_balance_trees *t)
{
	if (!t)
		return;
	rt_intern_deinit(&t->strings);
	rt_intern_deinit(&t->labels);
	rt_vec_deinit(&t->nodes);
	rt_vec_deinit(&t->types);
	rt_map_deinit(&t->node_by_key);
	rt_map_deinit(&t->type_by_name);
	rt_arena_deinit(&t->answer);
	free(t);
}

/* false: out of memory. *ret is 0 for a text that is not there. */
static bool text_id(struct rt_balance_trees *t, const char *text, uint32_t *ret)
{
	*ret = text ? rt_intern_string(&t->strings, text) : 0;
	return !text || *ret;
}

static uint32_t label_of(struct rt_balance_trees *t, const struct rt_frame *f, const char *api)
{
	struct label l = { .address = f->function ? 0 : f->address, .line = api ? f->line : 0 };

	if (!text_id(t, f->function, &l.function) || !text_id(t, f->file, &l.file) ||
	    !text_id(t, f->module, &l.module) || !text_id(t, api, &l.api))
		return 0;
	return rt_intern_bytes(&t->labels, &l, sizeof(l));
}

/* Index of the node; 0: out of memory; UINT32_MAX: there are too many. */
static uint32_t node_of(struct rt_balance_trees *t, uint32_t parent, uint32_t label)
{
	struct rt_key key = rt_key_make(parent, label);
	uint64_t *slot = rt_map_get(&t->node_by_key, key);
	struct node *n;

	if (slot)
		return (uint32_t)*slot;
	if (t->nodes.len >= NODES_MAX)
		return UINT32_MAX;
	slot = rt_map_put(&t->node_by_key, key, NULL);
	n = slot ? rt_vec_add(&t->nodes) : NULL;
	if (!n)
		return 0;
	*n = (struct node){ .parent = parent, .label = label };
	*slot = t->nodes.len;
	return (uint32_t)*slot;
}

static void count(struct rt_balance_trees *t, uint32_t node, const struct rt_balance_path *p, uint32_t line)
{
	struct node *n = &t->nodes.data[node - 1];

	n->lines |= n->events && n->line != line;
	n->line = line;
	n->events += p->events;
	n->gets += p->gets;
	n->puts += p->puts;
}

static struct type *type_of(struct rt_balance_trees *t, const char *name)
{
	uint32_t text = rt_intern_string(&t->strings, name), node;
	uint64_t *slot = text ? rt_map_get(&t->type_by_name, rt_key_make(text, 0)) : NULL;
	struct type *type;

	if (slot)
		return &t->types.data[*slot];
	/* no label has number UINT32_MAX - n: a type is no function */
	node = text ? node_of(t, 0, UINT32_MAX - text) : 0;
	slot = node && node != UINT32_MAX ? rt_map_put(&t->type_by_name, rt_key_make(text, 0), NULL) : NULL;
	type = slot ? rt_vec_add(&t->types) : NULL;
	if (!type)
		return NULL;
	*slot = t->types.len - 1;
	*type = (struct type){ .name = text, .node = node };
	return type;
}

struct rt_error *rt_balance_add(struct rt_balance_trees *t, const struct rt_balance_path *p)
{
	struct type *type = type_of(t, p->type);
	size_t depth = p->count < DEPTH_MAX ? p->count : DEPTH_MAX;
	uint32_t at;

	if (!type)
		return rt_error_nomem();
	at = type->node;
	count(t, at, p, 0);
	if (!p->api)
		type->at_first_sight += p->gets;
	/* a last turn for the call itself; it is the root of the inverted tree's functions, and says nothing there */
	for (size_t i = 0; i < depth + (p->api && !t->inverted); i++) {
		static const struct rt_frame nowhere;
		bool leaf = i == depth;
		const struct rt_frame *f = leaf && !p->count ? &nowhere
					   : leaf            ? &p->frames[0]
					   : t->inverted     ? &p->frames[i]
							     : &p->frames[p->count - 1 - i];
		uint32_t label = label_of(t, f, leaf ? p->api : NULL), next = label ? node_of(t, at, label) : 0;

		if (!next)
			return rt_error_nomem();
		if (next == UINT32_MAX) {
			type->cut += p->events;
			break;
		}
		at = next;
		count(t, at, p, f->line);
	}
	return NULL;
}

static uint64_t far(uint64_t gets, uint64_t puts)
{
	return gets > puts ? gets - puts : puts - gets;
}

static int order(uint64_t a, uint64_t b)
{
	return a == b ? 0 : a < b ? 1 : -1;
}

static int compare_nodes(const void *x, const void *y)
{
	const struct rt_balance_node *a = x, *b = y;
	int c = order(far(a->gets, a->puts), far(b->gets, b->puts)) ?: order(a->events, b->events);

	if (!c)
		c = strcmp(a->function ?: "", b->function ?: "") ?: strcmp(a->api ?: "", b->api ?: "");
	return c ?: order(b->line, a->line) ?: order(b->address, a->address);
}

static int compare_types(const void *x, const void *y)
{
	const struct rt_balance_type *a = x, *b = y;

	return order(far(a->gets, a->puts), far(b->gets, b->puts)) ?: order(a->events, b->events) ?:
			       strcmp(a->type, b->type);
}

/* Lists of children: first[] and next[], by node number. */
struct links {
	uint32_t *first, *next;
	bool all;
};

static const char *text_of(const struct rt_balance_trees *t, uint32_t id)
{
	return id ? rt_intern_text(&t->strings, id) : NULL;
}

static struct label label_at(const struct rt_balance_trees *t, const struct node *node)
{
	struct label label;

	memcpy(&label, rt_intern_get(&t->labels, node->label).data, sizeof(label));
	return label;
}

/* Balance of what the function itself calls: one line of it says nothing alone. INT64_MIN: it calls nothing. */
static int64_t own_sum(const struct rt_balance_trees *t, const struct links *l, uint32_t parent)
{
	int64_t sum = 0;
	bool any = false;

	for (uint32_t i = l->first[parent]; i; i = l->next[i]) {
		const struct node *node = &t->nodes.data[i - 1];

		if (!label_at(t, node).api)
			continue;
		any = true;
		sum += (int64_t)(node->gets - node->puts);
	}
	return any ? sum : INT64_MIN;
}

static struct rt_error *collect(struct rt_balance_trees *t, const struct links *l, uint32_t parent,
				struct rt_balance_node **ret, size_t *ret_count, size_t *ret_balanced)
{
	struct rt_balance_node *out;
	int64_t own;
	size_t n = 0;

	for (uint32_t i = l->first[parent]; i; i = l->next[i])
		n++;
	out = rt_arena_alloc(&t->answer, n * sizeof(*out) + 1);
	if (!out)
		return rt_error_nomem();
	own = own_sum(t, l, parent);
	*ret_balanced += !l->all && own == 0;
	n = 0;
	for (uint32_t i = l->first[parent]; i; i = l->next[i]) {
		const struct node *node = &t->nodes.data[i - 1];
		struct rt_balance_node *o = &out[n];
		struct label label = label_at(t, node);

		if (!l->all && (label.api ? !own : node->gets == node->puts)) {
			*ret_balanced += !label.api;
			continue;
		}
		*o = (struct rt_balance_node){ .function = text_of(t, label.function), .address = label.address };
		o->file = text_of(t, label.file);
		o->module = text_of(t, label.module);
		o->api = text_of(t, label.api);
		o->line = node->lines ? 0 : node->line;
		o->events = node->events;
		o->gets = node->gets;
		o->puts = node->puts;
		RT_TRY(collect(t, l, i, &o->children, &o->child_count, &o->balanced));
		n++;
	}
	qsort(out, n, sizeof(*out), compare_nodes);
	*ret = out;
	*ret_count = n;
	return NULL;
}

struct rt_error *rt_balance_types(struct rt_balance_trees *t, bool all, const struct rt_balance_type **ret,
				  size_t *ret_count)
{
	size_t n = t->nodes.len + 1;
	_cleanup_free_ uint32_t *lists = calloc(n, 2 * sizeof(*lists));
	struct links l = { lists, lists + n, all };

	if (!lists)
		return rt_error_nomem();
	rt_arena_deinit(&t->answer);
	for (uint32_t i = (uint32_t)t->nodes.len; i > 0; i--) {
		uint32_t parent = t->nodes.data[i - 1].parent;

		l.next[i] = l.first[parent];
		l.first[parent] = i;
	}
	t->out = rt_arena_alloc(&t->answer, t->types.len * sizeof(*t->out) + 1);
	if (!t->out)
		return rt_error_nomem();
	for (size_t i = 0; i < t->types.len; i++) {
		const struct type *type = &t->types.data[i];
		const struct node *node = &t->nodes.data[type->node - 1];
		struct rt_balance_type *o = &t->out[i];

		*o = (struct rt_balance_type){ .type = rt_intern_text(&t->strings, type->name), .cut = type->cut };
		o->events = node->events;
		o->gets = node->gets;
		o->puts = node->puts;
		o->at_first_sight = type->at_first_sight;
		RT_TRY(collect(t, &l, type->node, &o->nodes, &o->node_count, &o->balanced));
	}
	qsort(t->out, t->types.len, sizeof(*t->out), compare_types);
	*ret = t->out;
	*ret_count = t->types.len;
	return NULL;
}
