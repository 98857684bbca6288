/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A group of accusations as the report shows it: names, story, balance and the
 * sentences that say why.
 */
#include <string.h>

#include "lifetime/answer.h"

#define ALLOC(a, n, type) ((type *)rt_arena_alloc((a)->arena, (n) * sizeof(type) + 1))
#define ULL(x) ((unsigned long long)(x))

static const struct lt_member *first_member(const struct lt_group *g)
{
	const struct lt_member *first = &g->members.data[0];

	for (size_t i = 1; i < g->members.len; i++) {
		if (g->members.data[i].ref.inc->serial < first->ref.inc->serial)
			first = &g->members.data[i];
	}
	return first;
}

static uint64_t fnv(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

/* a function that has no name in this file is told apart by where it starts */
static uint64_t fnv_function(uint64_t h, const struct rt_frame *f)
{
	h = fnv(h, f->function);
	return f->function || !f->entry ? h : (h ^ f->entry) * UINT64_C(0x100000001b3);
}

static void make_id(struct rt_finding *f)
{
	uint64_t h = fnv(UINT64_C(0xcbf29ce484222325) ^ f->kind, f->type);

	h = fnv(h, f->klass);
	h = fnv_function(h, &f->guilty);
	h = fnv_function(h, &f->taken_by);
	h ^= h >> 32;
	for (int i = 7; i >= 0; i--, h >>= 4)
		f->id[i] = "0123456789abcdef"[h & 15];
	f->id[8] = 0;
}

static const struct lt_use *use_of(const struct lt_answer *a, const struct lt_event *e)
{
	return &a->lt->uses.data[e->use];
}

static struct rt_frame site_frame(const struct lt_answer *a, const struct lt_event *e)
{
	return lt_src(a->lt, lt_site(a->lt, use_of(a, e)->site)->src[0])->frame;
}

void lt_history_entry(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e, int64_t balance,
		      struct rt_history *ret)
{
	const struct lt_point *point = &a->lt->points.data[use_of(a, e)->point];

	*ret = (struct rt_history){ .time_ns = e->time_ns, .tid = e->tid, .op = e->op, .delta = e->delta };
	ret->count_after = e->count != INT32_MIN && !(e->flags & LT_EV_RETURN) ? (int64_t)e->count + e->delta : balance;
	if (!inc->known && e->count == INT32_MIN)
		ret->count_after = INT64_MIN;
	ret->site = site_frame(a, e);
	ret->api = rt_intern_text(&a->lt->names, point->name);
	ret->gap_before = e->flags & LT_EV_GAP;
}

static bool add_history(const struct lt_answer *a, const struct lt_inc *inc, struct rt_finding *f)
{
	uint32_t keep = a->lt->history, n = inc->nr <= 2 * keep ? inc->nr : 2 * keep;
	int64_t balance = inc->base;

	f->history = ALLOC(a, n, struct rt_history);
	if (!f->history)
		return false;
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		balance += e->op == RT_OP_NEW ? inc->start : e->delta;
		if (i >= keep && i + keep < inc->nr)
			continue;
		lt_history_entry(a, inc, e, balance, &f->history[f->history_count++]);
		if (i >= keep && i + keep == inc->nr && inc->nr > 2 * keep)
			f->history[f->history_count - 1].gap_before = true;
	}
	return true;
}

bool lt_use_stack(const struct lt_answer *a, const struct lt_use *use, struct rt_trace_stack *t)
{
	const struct lt_stack *s = use->stack ? &a->lt->stacks.data[use->stack - 1] : NULL;
	uint32_t first = lt_site(a->lt, use->site)->src[0];
	/* a site that jumped away has no frame: the outer ones follow it */
	bool gone = s && use->machine >= LT_JUMPED;
	uint32_t from = !gone ? use->machine : use->machine == LT_JUMPED ? 0 : s->nr;
	size_t max = gone;

	for (uint32_t i = from; s && i < s->nr; i++)
		max += a->lt->machines.data[s->first + i].srcs;
	t->count = 0;
	t->frames = ALLOC(a, max, struct rt_frame);
	if (!t->frames || !max)
		return t->frames != NULL;
	if (gone)
		t->frames[t->count++] = lt_src(a->lt, first)->frame;
	for (uint32_t i = from; i < s->nr; i++) {
		const struct lt_machine *m = &a->lt->machines.data[s->first + i];

		for (uint32_t j = 0; j < m->srcs; j++) {
			uint32_t src = a->lt->stack_srcs.data[m->src + j];

			/* what lies below the site is API */
			if (!t->count && i == from && src != first)
				continue;
			t->frames[t->count++] = lt_src(a->lt, src)->frame;
		}
	}
	return true;
}

static bool add_stack(const struct lt_answer *a, const struct lt_event *e, const char *label, struct rt_finding *f)
{
	struct rt_trace_stack *t = &f->stacks[f->stack_count];

	if (!lt_use_stack(a, use_of(a, e), t))
		return false;
	t->label = label;
	f->stack_count += t->count != 0;
	return true;
}

static bool add_stacks(const struct lt_answer *a, const struct lt_group *g, const struct lt_ref *ref,
		       struct rt_finding *f)
{
	const struct lt_inc *inc = ref->inc;
	const struct lt_event *dies = NULL;
	bool ok = true;

	f->stacks = ALLOC(a, 4, struct rt_trace_stack);
	if (!f->stacks)
		return false;
	if (ref->ev != LT_NO_EVENT)
		ok = add_stack(a, &inc->ledger[ref->ev], "taken", f);
	if (g->kind == RT_LEAK)
		return ok;
	for (uint32_t i = 0; i < inc->nr && !(inc->ledger[i].flags & LT_EV_POST); i++) {
		if (inc->ledger[i].delta < 0)
			dies = &inc->ledger[i];
	}
	if (g->kind == RT_EXTRA_PUT && ref->bad != LT_NO_EVENT)
		ok &= add_stack(a, &inc->ledger[ref->bad], "extra put", f);
	if (dies && (ref->bad == LT_NO_EVENT || dies != &inc->ledger[ref->bad]))
		ok &= add_stack(a, dies, "put", f);
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if ((e->flags & LT_EV_POST) && (ref->bad != i || g->kind == RT_USE_AFTER_PUT))
			return ok & add_stack(a, e, "use", f);
	}
	return ok;
}

static void add_line(struct rt_balance *row, uint32_t line)
{
	size_t n = sizeof(row->lines) / sizeof(row->lines[0]), at = 0;

	while (at < n && row->lines[at] && row->lines[at] < line)
		at++;
	if (!line || at == n || row->lines[at] == line)
		return;
	memmove(row->lines + at + 1, row->lines + at, (n - at - 1) * sizeof(row->lines[0]));
	row->lines[at] = line;
}

static bool add_balance(const struct lt_answer *a, const struct lt_group *g, struct rt_finding *f)
{
	struct rt_lifetime *lt = a->lt;
	struct rt_map rows = { 0 };
	uint32_t accused = lt_src(lt, g->guilty)->function;

	f->balance = ALLOC(a, lt->uses.len, struct rt_balance);
	for (size_t i = 0; f->balance && i < lt->uses.len; i++) {
		const struct lt_use *use = &lt->uses.data[i];
		const struct lt_point *point = &lt->points.data[use->point];
		const struct lt_src *src = lt_src(lt, lt_site(lt, use->site)->src[0]);
		struct rt_balance *row;
		bool made;
		uint64_t *at;

		if (point->type != g->type || point->op == RT_OP_USE || lt_point_silent(point))
			continue;
		at = rt_map_put(&rows, rt_key_make(src->function, 0), &made);
		if (!at)
			continue;
		if (made) {
			uint64_t *left = rt_map_get(&a->left, rt_key_make(g->type, src->function));

			*at = f->balance_count++;
			f->balance[*at].site = src->frame;
			f->balance[*at].left = left ? (int64_t)*left : 0;
			f->balance[*at].guilty = src->function == accused;
		}
		row = &f->balance[*at];
		add_line(row, src->frame.line);
		row->news += point->op == RT_OP_NEW ? use->events : 0;
		row->gets += point->op == RT_OP_GET || point->op == RT_OP_SINK ? use->events : 0;
		row->puts += point->op == RT_OP_PUT ? use->events : 0;
	}
	rt_map_deinit(&rows);
	return f->balance != NULL;
}

static bool say(const struct lt_answer *a, struct rt_finding *f, const char *text)
{
	if (!text)
		return false;
	f->evidence[f->evidence_count++] = text;
	return true;
}

static const char *name_of(const struct rt_frame *f)
{
	return f->function ? f->function : "an unnamed function";
}

static bool add_evidence(const struct lt_answer *a, const struct lt_group *g, const struct lt_member *first,
			 struct rt_finding *f)
{
	const char *guilty = name_of(&f->guilty), *s = f->objects == 1 ? "" : "s";
	bool ok = true;

	f->evidence = ALLOC(a, 8, const char *);
	if (!f->evidence)
		return false;
	if (g->kind == RT_LEAK && f->taken_count)
		ok &= say(a, f,
			  lt_printf(a->arena, "%llu references taken in %s, %llu closed", ULL(f->taken_count),
				    name_of(&f->taken_by), ULL(f->taken_closed)));
	f->lost = g->lost;
	if (g->lost)
		ok &= say(a, f,
			  lt_printf(a->arena, "nothing points to %llu of the %llu object%s any more", ULL(g->lost),
				    ULL(f->objects), s));
	if (g->role == RT_ROLE_EXTRA_GET)
		ok &= say(a, f, lt_printf(a->arena, "%s took more references than it gave back in one run", guilty));
	if (g->kind == RT_LEAK && f->taken_closed && g->role == RT_ROLE_MISSING_PUT && !g->why)
		ok &= say(a, f, lt_printf(a->arena, "references like these are closed in other objects"));
	if (g->kind == RT_EXTRA_PUT)
		ok &= say(a, f,
			  lt_printf(a->arena, "%s put a reference that it did not have%s", guilty,
				    g->members.data[0].ref.inc->post ? "; a later use met a dead object" : ""));
	if (g->kind == RT_USE_AFTER_PUT && (g->members.data[0].ref.inc->post || !g->why))
		ok &= say(a, f, lt_printf(a->arena, "%s used the object when its count was 0", guilty));
	if (g->why)
		ok &= say(a, f, g->why);
	if (f->incomplete)
		ok &= say(a, f, lt_printf(a->arena, "events are missing: this is a guess"));
	return ok;
}

/* where the guilty function stands in the stack that took the reference; NULL: it is not in that */
static const struct rt_frame *taken_through(const struct rt_finding *f)
{
	for (size_t i = 0; i < f->stack_count; i++) {
		const struct rt_trace_stack *t = &f->stacks[i];

		for (size_t k = 0; !strcmp(t->label, "taken") && k < t->count; k++) {
			if (f->guilty.entry && t->frames[k].entry == f->guilty.entry &&
			    t->frames[k].module_id == f->guilty.module_id)
				return &t->frames[k];
		}
	}
	return NULL;
}

/* A function that gives such references back itself has gone past that: by which of its branches it can. */
static bool add_skips(const struct lt_answer *a, const struct lt_group *g, struct rt_finding *f)
{
	enum { PUTS_MAX = 16, SKIPS_MAX = 4 };
	const struct rt_frame *taken = g->kind == RT_LEAK && g->role == RT_ROLE_MISSING_PUT ? taken_through(f) : NULL;
	uint32_t function = lt_src(a->lt, g->guilty)->function;
	uint64_t puts[PUTS_MAX];
	size_t nr = 0;

	if (!taken || !a->lt->namer->skips)
		return true;
	for (size_t i = 0; i < a->lt->uses.len; i++) {
		const struct lt_use *use = &a->lt->uses.data[i];
		const struct lt_point *point = &a->lt->points.data[use->point];
		const struct rt_frame *site = &lt_src(a->lt, lt_site(a->lt, use->site)->src[0])->frame;

		if (point->type != g->type || point->op != RT_OP_PUT || !use->events ||
		    lt_site_function(a->lt, use->site) != function)
			continue;
		/* a put that it jumped to, or too many of them: where they all are is not known */
		if (nr == PUTS_MAX || site->entry != taken->entry || site->address == site->entry)
			return true;
		puts[nr++] = site->address;
	}
	f->skips = nr ? ALLOC(a, SKIPS_MAX, struct rt_branch) : NULL;
	if (!nr || !f->skips)
		return !nr;
	f->skip_count = a->lt->namer->skips(a->lt->namer, taken, puts, nr, f->skips, SKIPS_MAX);
	return true;
}

static bool add_pids(const struct lt_answer *a, const struct lt_group *g, struct rt_finding *f)
{
	f->pids = ALLOC(a, a->lt->processes.len, uint32_t);
	for (size_t i = 0; f->pids && i < g->members.len; i++) {
		uint32_t pid = g->members.data[i].ref.inc->pid;
		size_t j = 0;

		while (j < f->pid_count && f->pids[j] != pid)
			j++;
		if (j == f->pid_count && f->pid_count < a->lt->processes.len)
			f->pids[f->pid_count++] = pid;
	}
	return f->pids != NULL;
}

static bool add_choices(const struct lt_answer *a, const struct lt_group *g, struct rt_finding *f)
{
	f->alternatives = ALLOC(a, g->choices.len, struct rt_place_name);
	for (size_t i = 0; f->alternatives && i < g->choices.len; i++) {
		struct rt_place_name *p = &f->alternatives[f->alternative_count++];

		p->frame = lt_src(a->lt, g->choices.data[i].src)->frame;
		p->confidence = g->choices.data[i].weight / (double)g->members.len;
	}
	return f->alternatives != NULL;
}

/* how often the site took references, and how many of them were closed */
static void count_taken(const struct lt_answer *a, const struct lt_group *g, const struct lt_ref *ref,
			struct rt_finding *f)
{
	const struct lt_src *src = lt_src(a->lt, lt_site(a->lt, ref->site)->src[0]);
	uint64_t *left = rt_map_get(&a->left, rt_key_make(g->type, src->function));

	f->taken_by = src->frame;
	for (size_t i = 0; i < a->lt->uses.len; i++) {
		const struct lt_use *use = &a->lt->uses.data[i];
		const struct lt_point *point = &a->lt->points.data[use->point];

		if (point->type == g->type && lt_site_function(a->lt, use->site) == src->function &&
		    (point->op == RT_OP_GET || point->op == RT_OP_NEW || point->op == RT_OP_SINK))
			f->taken_count += use->events;
	}
	f->taken_closed = f->taken_count - (left && *left < f->taken_count ? *left : f->taken_count * !!left);
}

bool lt_finding(struct lt_answer *a, const struct lt_group *g, struct rt_finding *f)
{
	const struct lt_type *type = &a->lt->types.data[g->type];
	const struct lt_class *klass = g->klass ? &a->lt->classes.data[g->klass - 1] : NULL;
	const struct lt_member *first = first_member(g);
	const struct lt_inc *last = NULL;

	*f = (struct rt_finding){ .kind = g->kind, .role = g->role, .type = type->name };
	f->klass = klass ? klass->name : NULL;
	f->of = klass ? klass->objects : lt_type_objects(type);
	f->confidence = lt_group_claims(g);
	f->guilty = lt_src(a->lt, g->guilty)->frame;
	f->serials = ALLOC(a, g->members.len, uint64_t);
	if (!f->serials)
		return false;
	for (size_t i = 0; i < g->members.len; i++) {
		const struct lt_inc *inc = g->members.data[i].ref.inc;

		if (inc != last)
			f->serials[f->serial_count++] = inc->serial;
		f->objects += inc != last; /* references of one object follow each other */
		last = inc;
		f->references += 1 + g->members.data[i].ref.more;
		f->incomplete |= inc->incomplete;
	}
	f->incomplete |= lt_damaged(a->lt, type) || (type->unarmed && f->confidence < 0.5);
	f->bytes = g->kind == RT_LEAK ? f->objects * type->object_size : 0;
	f->first_object = first->ref.inc->serial;
	f->first_address = first->ref.inc->object;
	f->first_time_ns = first->ref.inc->birth_ns;
	if (first->ref.ev != LT_NO_EVENT)
		count_taken(a, g, &first->ref, f);
	make_id(f);
	return add_choices(a, g, f) && add_history(a, first->ref.inc, f) && add_balance(a, g, f) &&
	       add_stacks(a, g, &first->ref, f) && add_skips(a, g, f) && add_evidence(a, g, first, f) &&
	       add_pids(a, g, f) && lt_origins(a, g, f);
}
