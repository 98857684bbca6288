/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The verdict: counts, findings, suspects, what is alive, and trust. Made anew
 * each time from the state of the stream, which it only reads, but for what is
 * known once and for all: dead objects are counted in the model, and what
 * nobody will tell any more of those that live is an operation not seen.
 */
#include <string.h>

#include "base/glob.h"
#include "lifetime/answer.h"
#include "lifetime/life.h"
#include "lifetime/order.h"

#define ALLOC(a, n, type) ((type *)rt_arena_alloc((a)->arena, (n) * sizeof(type) + 1))

static bool wanted(const struct rt_lifetime *lt, const struct lt_type *type, const struct lt_class *klass)
{
	if (!lt->only)
		return true;
	for (size_t i = 0; lt->only[i]; i++) {
		if (rt_glob_match(lt->only[i], type->name) || (klass && rt_glob_match(lt->only[i], klass->name)))
			return true;
	}
	return false;
}

static void running(struct lt_answer *a)
{
	const struct rt_map_slot *s;
	size_t pos = 0;

	while ((s = rt_map_next(&a->lt->thread_by_id, &pos))) {
		const struct lt_thread *t = (const struct lt_thread *)(uintptr_t)s->value;

		for (uint32_t i = 0; t && !t->ended && i < t->nr; i++) {
			struct rt_key act = rt_key_make(t->act[i] + i, 0);
			uint64_t *depth = t->stood ? rt_map_put(&a->standing, act, NULL) : NULL;

			if (!rt_map_put(&a->running, act, NULL) || (t->stood && !depth))
				a->nomem = true;
			if (depth)
				*depth = i + 1;
		}
	}
}

/* an event is counted at its stack and point: what each point got follows */
static void count_points(struct rt_lifetime *lt)
{
	for (size_t i = 0; i < lt->points.len; i++) {
		lt->points.data[i].events = lt->points.data[i].outside;
		lt->points.data[i].elsewhere = 0;
	}
	for (size_t i = 0; i < lt->uses.len; i++) {
		const struct lt_use *use = &lt->uses.data[i];
		struct lt_point *p = &lt->points.data[use->point];

		p->events += use->events;
		if (p->of)
			lt->points.data[p->of - 1].elsewhere += use->events;
	}
}

/*
 * Whose healthy objects tell how references of this kind are closed: those of the class, where it has enough; else
 * those of all classes of the type, which have the same functions.
 */
static const struct lt_learnt *taught(struct lt_answer *a, uint32_t type, uint32_t klass)
{
	enum { ENOUGH = 8 };
	struct rt_lifetime *lt = a->lt;
	const struct lt_learnt *own = lt_learnt(lt, type, klass);

	if (own->healthy >= ENOUGH || lt_type_healthy(lt, type) == own->healthy)
		return own;
	if (a->pooled_type == type + 1)
		return &a->pooled;
	lt_learnt_deinit(&a->pooled);
	a->pooled = (struct lt_learnt){ .healthy = 0 };
	a->pooled_type = type + 1;
	a->nomem |= !lt_learnt_add(&a->pooled, &lt->types.data[type].learnt);
	for (size_t i = 0; i < lt->classes.len; i++) {
		if (lt->classes.data[i].type == type)
			a->nomem |= !lt_learnt_add(&a->pooled, &lt->classes.data[i].learnt);
	}
	return &a->pooled;
}

/* the objects of a type, of the class of this number (index + 1) or of none */
static void judge_kind(struct lt_answer *a, uint32_t type, uint32_t klass)
{
	struct lt_model model;

	if (!wanted(a->lt, &a->lt->types.data[type], klass ? &a->lt->classes.data[klass - 1] : NULL))
		return;
	if (lt_model_init(&model, a->lt, type, klass, taught(a, type, klass))) {
		lt_extras(a, type, &model);
		lt_leaks(a, type, &model);
	} else {
		a->nomem = true;
	}
	lt_model_deinit(&model);
}

/* what may still come for a process that runs comes no more for one that has ended */
static void audit_ended(struct rt_lifetime *lt)
{
	uint32_t newest = UINT32_MAX;
	struct lt_inc *inc;

	while ((inc = lt_row_older(&lt->live, &newest))) {
		const struct lt_process *p = lt_process(lt, inc->pid);

		if (p && p->ended)
			lt_life_audit_end(lt, inc);
	}
}

static void judge(struct lt_answer *a)
{
	struct rt_lifetime *lt = a->lt;
	uint32_t oldest = 0;
	struct lt_inc *inc;

	while ((inc = lt_row_newer(&lt->graves, &oldest)))
		lt_shape_count(lt, inc);
	lt_census(lt);
	running(a);
	for (uint32_t i = 0; i < lt->types.len; i++)
		judge_kind(a, i, 0);
	for (uint32_t i = 0; i < lt->classes.len; i++)
		judge_kind(a, lt->classes.data[i].type, i + 1);
	lt_settle(a);
}

static int worse(const void *x, const void *y)
{
	const struct rt_finding *a = x, *b = y;
	double sa = a->confidence >= 0.9 ? 0.9 : a->confidence, sb = b->confidence >= 0.9 ? 0.9 : b->confidence;

	if (sa - sb > 0.05 || sb - sa > 0.05)
		return sa < sb ? 1 : -1;
	if (a->objects != b->objects)
		return a->objects < b->objects ? 1 : -1;
	return strcmp(a->id, b->id);
}

/* suspects of a function that is accused anyway add nothing */
static bool said_already(const struct lt_answer *a, const struct lt_group *g)
{
	for (size_t i = 0; i < a->groups.len; i++) {
		const struct lt_group *o = &a->groups.data[i];

		if (!o->suspect && o->type == g->type && o->klass == g->klass &&
		    lt_src(a->lt, o->guilty)->function == lt_src(a->lt, g->guilty)->function)
			return true;
	}
	return false;
}

static bool fill_findings(struct lt_answer *a, struct rt_verdict *v)
{
	v->findings = ALLOC(a, a->groups.len, struct rt_finding);
	v->suspects = ALLOC(a, a->groups.len, struct rt_finding);
	if (!v->findings || !v->suspects)
		return false;
	for (size_t i = 0; i < a->groups.len; i++) {
		struct lt_group *g = &a->groups.data[i];
		struct rt_finding *f;

		if (!g->members.len || (g->suspect && said_already(a, g)))
			continue;
		f = g->suspect ? &v->suspects[v->suspect_count++] : &v->findings[v->finding_count++];
		if (!lt_finding(a, g, f))
			return false;
		memcpy(g->id, f->id, sizeof(g->id));
	}
	qsort(v->findings, v->finding_count, sizeof(*v->findings), worse);
	qsort(v->suspects, v->suspect_count, sizeof(*v->suspects), worse);
	return true;
}

static bool fill_types(struct lt_answer *a, struct rt_verdict *v)
{
	uint32_t newest = UINT32_MAX;
	const struct lt_inc *inc;

	v->types = ALLOC(a, a->lt->types.len, struct rt_type_count);
	v->classes = ALLOC(a, a->lt->classes.len, struct rt_class_count);
	v->alive = ALLOC(a, a->alive.len, struct rt_alive);
	if (!v->types || !v->classes || !v->alive)
		return false;
	for (size_t i = 0; i < a->lt->types.len; i++) {
		const struct lt_type *t = &a->lt->types.data[i];
		struct rt_type_count *c = &v->types[v->type_count++];

		*c = (struct rt_type_count){ .name = t->name,
					     .incarnations = lt_type_objects(t),
					     .news = t->op[RT_OP_NEW] };
		c->gets = t->op[RT_OP_GET] + t->op[RT_OP_SINK];
		c->puts = t->op[RT_OP_PUT];
		c->frees = t->op[RT_OP_FREE];
		c->uses = t->op[RT_OP_USE];
		c->swept = t->forced;
		for (size_t j = 0; j < v->finding_count; j++) {
			if (v->findings[j].type == t->name && v->findings[j].kind == RT_LEAK)
				c->leaked += v->findings[j].objects;
		}
	}
	for (size_t i = 0; i < a->lt->classes.len; i++) {
		const struct lt_class *c = &a->lt->classes.data[i];

		v->classes[v->class_count++] =
			(struct rt_class_count){ a->lt->types.data[c->type].name, c->name, c->objects, 0 };
	}
	while ((inc = lt_row_older(&a->lt->live, &newest))) {
		v->types[inc->type].live++;
		if (inc->klass)
			v->classes[inc->klass - 1].live++;
	}
	for (size_t i = 0; i < a->alive.len; i++) {
		const struct lt_alive *from = &a->alive.data[i];

		v->alive[v->alive_count++] =
			(struct rt_alive){ a->lt->types.data[from->type].name,
					   from->klass ? a->lt->classes.data[from->klass - 1].name : NULL,
					   from->objects, from->reason };
	}
	return true;
}

static bool fill_points(struct lt_answer *a, struct rt_verdict *v)
{
	struct rt_lifetime *lt = a->lt;

	v->points = ALLOC(a, lt->points.len, struct rt_point_count);
	v->processes = ALLOC(a, lt->processes.len, struct rt_process_end);
	if (!v->points || !v->processes)
		return false;
	for (size_t i = 0; i < lt->points.len; i++) {
		const struct lt_point *p = &lt->points.data[i];
		struct rt_point_count *c = &v->points[v->point_count++];

		*c = (struct rt_point_count){ .point = p->id, .type = lt->types.data[p->type].name, .op = p->op };
		c->function = rt_intern_text(&lt->names, p->name);
		c->events = p->events;
		c->hits = p->hits;
		c->dropped = lt_point_lost(p);
	}
	for (size_t i = 0; i < lt->processes.len; i++) {
		const struct lt_process *p = &lt->processes.data[i];

		if (p->execed)
			continue; /* the same process goes on as its next generation */
		v->processes[v->process_count++] =
			(struct rt_process_end){ p->pid, p->exe ? p->exe : "", p->status, p->ended };
	}
	return true;
}

static bool fill_sites(struct lt_answer *a, struct rt_verdict *v)
{
	struct rt_lifetime *lt = a->lt;
	struct rt_map rows = { 0 };
	bool ok = true;

	v->sites = ALLOC(a, lt->uses.len, struct rt_site_count);
	for (size_t i = 0; v->sites && i < lt->uses.len; i++) {
		const struct lt_use *use = &lt->uses.data[i];
		const struct lt_point *p = &lt->points.data[use->point];
		uint32_t src = lt_site(lt, use->site)->src[0];
		bool made;
		uint64_t *at = lt_point_silent(p) ? NULL : rt_map_put(&rows, rt_key_make(src, use->point), &made);
		struct rt_site_count *c;

		if (lt_point_silent(p))
			continue;
		if (!at) {
			ok = false;
			continue;
		}
		if (made)
			*at = v->site_count++;
		c = &v->sites[*at];
		c->site = lt_src(lt, src)->frame;
		c->type = lt->types.data[p->type].name;
		c->api = rt_intern_text(&lt->names, p->name);
		c->op = p->op;
		c->events += use->events;
	}
	rt_map_deinit(&rows);
	return ok && v->sites;
}

static void answer_deinit(struct lt_answer *a)
{
	for (size_t i = 0; i < a->groups.len; i++) {
		rt_vec_deinit(&a->groups.data[i].members);
		rt_vec_deinit(&a->groups.data[i].choices);
	}
	rt_vec_deinit(&a->groups);
	rt_vec_deinit(&a->alive);
	rt_vec_deinit(&a->kept);
	rt_map_deinit(&a->along_asked);
	rt_vec_deinit(&a->along_refs);
	rt_vec_deinit(&a->along);
	rt_map_deinit(&a->kept_by);
	rt_map_deinit(&a->left_here);
	rt_map_deinit(&a->owner_left);
	rt_map_deinit(&a->owner_from);
	rt_map_deinit(&a->owners);
	rt_map_deinit(&a->group_of);
	rt_map_deinit(&a->running);
	rt_map_deinit(&a->standing);
	rt_map_deinit(&a->runs);
	rt_map_deinit(&a->left);
	rt_map_deinit(&a->dropped_left);
	rt_map_deinit(&a->dropped_healthy);
	rt_map_deinit(&a->freed_left);
	rt_map_deinit(&a->freed_healthy);
	rt_map_deinit(&a->several_left);
	rt_map_deinit(&a->several_healthy);
	rt_map_deinit(&a->taken_apart);
	rt_map_deinit(&a->puts_made);
	rt_map_deinit(&a->put_behind);
	rt_map_deinit(&a->ended);
	rt_map_deinit(&a->left_alone);
	rt_map_deinit(&a->received_acted);
	rt_map_deinit(&a->received_idle);
	rt_map_deinit(&a->given_on);
	rt_map_deinit(&a->given_kept);
	lt_learnt_deinit(&a->pooled);
}

struct rt_error *rt_lifetime_verdict(struct rt_lifetime *lt, const struct rt_verdict **ret)
{
	struct lt_answer a = { .lt = lt, .arena = &lt->answer };
	struct rt_verdict *v;
	bool ok;

	lt_order_flush(lt);
	audit_ended(lt);
	count_points(lt);
	rt_arena_deinit(&lt->answer);
	v = rt_arena_alloc(&lt->answer, sizeof(*v));
	/* trust first: what is missing decides what may be said */
	ok = v && lt_trust(lt, &v->trust);
	if (ok) {
		v->start_ns = lt->first_ns;
		v->end_ns = lt->last_ns;
		judge(&a);
		ok = !a.nomem && lt_trust_alive(&a, &v->trust) && fill_findings(&a, v) && fill_types(&a, v) &&
		     fill_points(&a, v) && fill_sites(&a, v) && lt_watch_fill(&a, v) && lt_tally_fill(&a, v);
	}
	answer_deinit(&a);
	if (!ok)
		return rt_error_nomem();
	*ret = v;
	return NULL;
}
