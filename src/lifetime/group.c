/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Accusations that name the same function for the same fault of the same type
 * are one finding; below half confidence they are suspects of their own.
 */
#include <math.h>

#include "lifetime/answer.h"
#include "lifetime/extra.h"

static struct lt_group *group_of(struct lt_answer *a, const struct lt_ref *ref, const struct lt_blame *b)
{
	bool suspect = b->confidence < 0.5, made;
	uint32_t function = lt_src(a->lt, b->guilty)->function;
	uint64_t kind =
		(uint64_t)ref->inc->type << 32 | (uint64_t)ref->inc->klass << 8 | (uint64_t)b->kind << 1 | suspect;
	uint64_t *index = rt_map_put(&a->group_of, rt_key_make(kind, function), &made);
	struct lt_group *g;

	if (!index)
		return NULL;
	if (!made)
		return &a->groups.data[*index];
	*index = a->groups.len;
	g = rt_vec_add(&a->groups);
	if (!g) {
		rt_map_remove(&a->group_of, rt_key_make(kind, function), NULL);
		return NULL;
	}
	g->kind = b->kind;
	g->role = b->role;
	g->type = ref->inc->type;
	g->klass = ref->inc->klass;
	g->guilty = b->guilty;
	g->suspect = suspect;
	return g;
}

void lt_accuse(struct lt_answer *a, const struct lt_ref *ref, const struct lt_blame *b)
{
	struct lt_group *g = group_of(a, ref, b);
	struct lt_member *member = g ? rt_vec_add(&g->members) : NULL;

	if (!member) {
		a->nomem = true;
		return;
	}
	member->ref = *ref;
	member->confidence = b->confidence;
	g->confidence += b->confidence;
	g->lost += b->lost;
	g->seen += b->seen;
	g->seen_sum += b->seen ? b->confidence : 0;
	if (b->why)
		g->why = b->why;
	if (!b->alternative || lt_src(a->lt, b->alternative)->function == lt_src(a->lt, g->guilty)->function)
		return;
	for (size_t i = 0; i < g->choices.len; i++) {
		if (g->choices.data[i].src == b->alternative) {
			g->choices.data[i].weight += b->alternative_confidence;
			return;
		}
	}
	if (g->choices.len < 8) {
		struct lt_choice choice = { b->alternative, b->alternative_confidence };

		a->nomem |= !rt_vec_push(&g->choices, choice);
	}
}

/* the suspects that name the same function for the same fault, if any */
static struct lt_group *same_suspects(struct lt_answer *a, const struct lt_group *g)
{
	uint32_t function = lt_src(a->lt, g->guilty)->function;

	for (size_t i = 0; i < a->groups.len; i++) {
		struct lt_group *o = &a->groups.data[i];

		if (o != g && o->suspect && o->members.len && o->kind == g->kind && o->type == g->type &&
		    o->klass == g->klass && lt_src(a->lt, o->guilty)->function == function)
			return o;
	}
	return NULL;
}

/* o takes what g has; g is empty then */
static void merge(struct lt_answer *a, struct lt_group *o, struct lt_group *g)
{
	for (size_t i = 0; i < g->members.len; i++)
		a->nomem |= !rt_vec_push(&o->members, g->members.data[i]);
	for (size_t i = 0; i < g->choices.len && o->choices.len < 8; i++) {
		if (lt_src(a->lt, g->choices.data[i].src)->function != lt_src(a->lt, o->guilty)->function)
			a->nomem |= !rt_vec_push(&o->choices, g->choices.data[i]);
	}
	o->confidence += g->confidence;
	o->lost += g->lost;
	o->shaky |= g->shaky;
	o->seen = 0;
	g->members.len = g->choices.len = 0;
}

static bool is_shaky(const struct lt_group *g)
{
	const struct lt_inc *first = g->members.data[0].ref.inc, *other = first;

	for (size_t i = 0; i < g->members.len; i++) {
		const struct lt_inc *inc = g->members.data[i].ref.inc;

		if (!inc->shaky || g->members.data[i].ref.shown || (inc != first && inc != other && other != first))
			return false;
		other = inc != first ? inc : other;
	}
	return true;
}

/* inc is in another group that is no suspicion, or was settled before group number i */
static bool told_before(const struct lt_answer *a, size_t i, const struct lt_inc *inc)
{
	for (size_t j = 0; j < a->groups.len; j++) {
		const struct lt_group *g = &a->groups.data[j];

		for (size_t k = 0; k < g->members.len && j != i && (!g->suspect || g->shaky); k++) {
			if (g->members.data[k].ref.inc == inc)
				return true;
		}
	}
	return false;
}

/* a suspicion from here on; its objects, which had been accused, are among the living again */
static void soften(struct lt_answer *a, size_t i, bool shaky)
{
	static const double MOST = 0.45;
	struct lt_group *g = &a->groups.data[i];
	const struct lt_inc *last = NULL;

	g->suspect = true;
	g->shaky = shaky;
	g->confidence = 0;
	g->seen = 0;
	for (size_t k = 0; k < g->members.len; k++) {
		struct lt_member *m = &g->members.data[k];

		m->confidence = m->confidence < MOST ? m->confidence : MOST;
		g->confidence += m->confidence;
		if (m->ref.inc != last && m->ref.inc->life == LT_LIVE && !told_before(a, i, m->ref.inc))
			lt_count_alive(a, m->ref.inc);
		last = m->ref.inc;
	}
}

static bool missing_put(const struct lt_group *g)
{
	return !g->suspect && g->members.len && g->kind == RT_LEAK && g->role == RT_ROLE_MISSING_PUT && g->lost;
}

/* what is claimed beyond least, by its share */
static double lessen(double confidence, double least, double share)
{
	return confidence > least ? least + (confidence - least) * share : confidence;
}

/*
 * Lost objects of one type, left by several functions: where the put that all of them share is missing, none of these
 * is guilty. Two faults at a time are rarer than that, so who has left the smaller part is less sure to be one.
 */
static void spread(struct lt_answer *a)
{
	enum { SEVERAL = 4 };
	static const double MOST = 0.75, LEAST = 0.55;

	for (size_t i = 0; i < a->groups.len; i++) {
		struct lt_group *g = &a->groups.data[i];
		double all = 0, share;
		unsigned functions = 0;

		if (!missing_put(g))
			continue;
		for (size_t k = 0; k < a->groups.len; k++) {
			const struct lt_group *o = &a->groups.data[k];

			if (missing_put(o) && o->type == g->type && o->klass == g->klass) {
				all += (double)o->members.len;
				functions++;
			}
		}
		if (functions < SEVERAL)
			continue;
		share = (double)g->members.len / all;
		for (size_t k = 0; share < MOST && k < g->members.len; k++)
			g->members.data[k].confidence = lessen(g->members.data[k].confidence, LEAST, share);
		if (share >= MOST)
			continue;
		g->confidence = lessen(g->confidence / (double)g->members.len, LEAST, share) * (double)g->members.len;
		g->seen_sum = g->seen ? lessen(g->seen_sum / (double)g->seen, LEAST, share) * (double)g->seen : 0;
	}
}

double lt_group_claims(const struct lt_group *g)
{
	/* what most of them show holds for the others of the same function, too */
	return 2 * g->seen >= g->members.len ? g->seen_sum / (double)g->seen : g->confidence / (double)g->members.len;
}

static void limit(struct lt_group *g, double most)
{
	g->confidence = 0;
	for (size_t k = 0; k < g->members.len; k++) {
		g->members.data[k].confidence = fmin(g->members.data[k].confidence, most);
		g->confidence += g->members.data[k].confidence;
	}
	if (g->seen)
		g->seen_sum = fmin(g->seen_sum, most * (double)g->seen);
}

/*
 * Where one function has lost many objects of a type, the few of them that another one has lost may be theirs: what the
 * many should have given back, when they ended. That other one is less sure to be at fault than the first, unless what
 * it did leaves no doubt.
 */
static void beside_many(struct lt_answer *a)
{
	enum { TIMES = 4 };
	static const double LEAST = 0.5, LESS = 0.05, SURE = 0.95;

	for (size_t i = 0; i < a->groups.len; i++) {
		struct lt_group *g = &a->groups.data[i];
		double most = 1;

		if (g->suspect || g->kind != RT_LEAK || !g->members.len)
			continue;
		for (size_t k = 0; k < a->groups.len; k++) {
			const struct lt_group *o = &a->groups.data[k];

			if (!o->suspect && o->kind == RT_LEAK && o->lost && o->type == g->type &&
			    o->klass == g->klass && o->members.len >= TIMES * g->members.len)
				most = fmin(most, lt_group_claims(o) - LESS);
		}
		if (most < lt_group_claims(g) && lt_group_claims(g) < SURE)
			limit(g, fmax(most, LEAST));
	}
}

/* the function, or what it called for that, took more references to the object than it gave back */
static bool owes_some(const struct lt_answer *a, const struct lt_inc *inc, uint32_t function)
{
	int64_t owed = 0;

	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (lt_site_passes(a->lt, a->lt->uses.data[e->use].site, function))
			owed += e->op == RT_OP_NEW ? 1 : e->delta;
	}
	return owed > 0;
}

/* whom o accuses may be at fault for all the objects of g, too */
static bool may_be_all(const struct lt_answer *a, const struct lt_group *o, const struct lt_group *g)
{
	uint32_t function = lt_src(a->lt, o->guilty)->function;

	for (size_t k = 0; k < g->members.len; k++) {
		if (!owes_some(a, g->members.data[k].ref.inc, function))
			return false;
	}
	return true;
}

/* who may be at fault for all that g is accused of as well, as one_for_all() has it; NULL: nobody */
static struct lt_group *rather_than(struct lt_answer *a, const struct lt_group *g)
{
	static const double GUESS = 0.7, SEEN = 0.92;
	const double claims = missing_put(g) ? lt_group_claims(g) : SEEN;
	struct lt_group *best = NULL;

	for (size_t k = 0; claims < SEEN && k < a->groups.len; k++) {
		struct lt_group *o = &a->groups.data[k];
		/* what was seen of the most is none */
		const bool guess = claims < GUESS && (g->seen < g->members.len || g->seen <= o->members.len);

		if (o != g && missing_put(o) && o->type == g->type && o->klass == g->klass &&
		    (guess || claims < lt_group_claims(o) || o->members.len > g->members.len) &&
		    (!best || o->members.len > best->members.len) && may_be_all(a, o, g) && !may_be_all(a, g, o))
			best = o;
	}
	return best;
}

/*
 * Two faults at a time are rare. Who is accused of some objects of a type, and owes references of all those as well
 * that another function has lost, which owes none of the former, is at fault for all of them: where it is no more than
 * a guess that it was the other one, or less sure than that it was this one for the others, or these are more.
 */
static void one_for_all(struct lt_answer *a)
{
	static const double LESS = 0.2;
	bool more = true;

	/* who has taken over one is accused of more than before */
	while (more) {
		more = false;
		for (size_t i = 0; i < a->groups.len; i++) {
			struct lt_group *g = &a->groups.data[i], *best = rather_than(a, g);
			struct lt_choice other = { g->guilty, LESS * (double)g->members.len };

			if (!best)
				continue;
			merge(a, best, g);
			more = true;
			if (best->choices.len < 8)
				a->nomem |= !rt_vec_push(&best->choices, other);
		}
	}
}

/* when what m is accused of happened, which is no leak; UINT64_MAX: that is not known */
static uint64_t happened(const struct lt_member *m)
{
	return m->ref.bad == LT_NO_EVENT ? UINT64_MAX : m->ref.inc->ledger[m->ref.bad].time_ns;
}

/* the first one of those that put too often; NULL: that is not what they are accused of, or it is a suspicion */
static const struct lt_member *first_extra(const struct lt_group *g)
{
	const struct lt_member *first = NULL;

	for (size_t k = 0; !g->suspect && g->kind == RT_EXTRA_PUT && k < g->members.len; k++) {
		if (!first || happened(&g->members.data[k]) < happened(first))
			first = &g->members.data[k];
	}
	return first;
}

/* what is claimed of those in the process of first that came behind it */
static void lessen_behind(struct lt_group *g, const struct lt_member *first)
{
	static const double MOST = 0.6;

	for (size_t k = 0; k < g->members.len; k++) {
		struct lt_member *m = &g->members.data[k];

		if (m->confidence <= MOST || m->ref.inc->pid != first->ref.inc->pid || happened(m) == UINT64_MAX ||
		    happened(m) <= happened(first))
			continue;
		g->confidence -= m->confidence - MOST;
		m->confidence = MOST;
	}
}

/* of its object some run put a reference for nothing, whatever became of it: twice in a row, or just taken */
static bool for_nothing(const struct lt_answer *a, const struct lt_member *m)
{
	return lt_extra_for_nothing(a, NULL, m->ref.inc) != LT_NO_EVENT;
}

/*
 * A process that died of a fault, and in which something was put too often: that memory was another one's then, and
 * what held the few objects of g may have been written over, or would have given them back later.
 */
static bool left_by_fault(const struct lt_answer *a, const struct lt_group *g, const struct lt_member *first)
{
	enum { FEW = 8 };
	const uint32_t pid = first->ref.inc->pid;

	if (g->kind != RT_LEAK || g->suspect || g->members.len > FEW || a->lt->strict || !lt_crashed(a->lt, pid, false))
		return false;
	for (size_t k = 0; k < g->members.len; k++) {
		if (g->members.data[k].ref.inc->pid != pid)
			return false;
	}
	return true;
}

/*
 * Where one reference is put too often, memory that is somebody's goes away, and what is put and used wrongly in the
 * same process from then on may follow from that; but for what is done wrongly to many more objects, where it is not
 * the first one alone that is seen to put for nothing.
 */
static void follow(struct lt_answer *a)
{
	for (size_t i = 0; i < a->groups.len; i++) {
		const struct lt_group *o = &a->groups.data[i];
		const struct lt_member *first = first_extra(o);

		for (size_t j = 0; first && j < a->groups.len; j++) {
			struct lt_group *g = &a->groups.data[j];

			if (g != o && !g->suspect && g->kind != RT_LEAK &&
			    (g->members.len <= 2 * o->members.len ||
			     (for_nothing(a, first) && !for_nothing(a, &g->members.data[0]))))
				lessen_behind(g, first);
			else if (left_by_fault(a, g, first))
				soften(a, j, false);
		}
	}
}

/* a program dies once: of what is accused for its death alone, in objects of several types, the last one was it */
static bool died_later(const struct lt_answer *a, const struct lt_group *g)
{
	const struct lt_ref *mine = &g->members.data[0].ref;

	for (size_t i = 0; mine->death && i < a->groups.len; i++) {
		const struct lt_group *o = &a->groups.data[i];
		const struct lt_ref *other = o->members.len ? &o->members.data[0].ref : NULL;

		if (other && other->death && !o->suspect && other->inc->pid == mine->inc->pid &&
		    other->inc->end_ns > mine->inc->end_ns)
			return true;
	}
	return false;
}

/* that the program died is explained: it used or put what was dead, as was seen, and g is accused for its death alone
 */
static bool died_of_another(const struct lt_answer *a, const struct lt_group *g)
{
	const struct lt_ref *mine = &g->members.data[0].ref;

	for (size_t i = 0; mine->death && i < a->groups.len; i++) {
		const struct lt_group *o = &a->groups.data[i];

		for (size_t k = 0; !o->suspect && o->kind != RT_LEAK && k < o->members.len; k++) {
			const struct lt_ref *other = &o->members.data[k].ref;

			if (!other->death && other->inc->post && other->inc->pid == mine->inc->pid)
				return true;
		}
	}
	return false;
}

/* inc is accused of another function, too, that has lost others of its type for sure */
static bool lost_by_another(const struct lt_answer *a, const struct lt_group *g, const struct lt_inc *inc)
{
	for (size_t i = 0; i < a->groups.len; i++) {
		const struct lt_group *o = &a->groups.data[i];

		for (size_t k = 0; o != g && o->lost && !o->suspect && k < o->members.len; k++) {
			if (o->members.data[k].ref.inc == inc)
				return true;
		}
	}
	return false;
}

/*
 * Nothing that it is accused of is lost, and each of these objects has references of a function that has lost others:
 * that one's are the ones that nobody holds.
 */
static bool outdone(const struct lt_answer *a, const struct lt_group *g)
{
	enum { FEW = 64 /* which are looked for one by one */ };

	if (g->kind != RT_LEAK || g->lost || g->members.len > FEW)
		return false;
	for (size_t k = 0; k < g->members.len; k++) {
		if (!lost_by_another(a, g, g->members.data[k].ref.inc))
			return false;
	}
	return true;
}

void lt_settle(struct lt_answer *a)
{
	for (size_t i = 0; i < a->groups.len; i++) {
		struct lt_group *g = &a->groups.data[i], *suspects;
		bool shaky = !g->suspect && is_shaky(g);

		if (g->suspect || !(shaky || died_later(a, g) || died_of_another(a, g) || outdone(a, g)))
			continue;
		soften(a, i, shaky);
		suspects = same_suspects(a, g);
		if (suspects)
			merge(a, suspects, g);
	}
	one_for_all(a);
	spread(a);
	beside_many(a);
	follow(a);
}

void lt_count_alive(struct lt_answer *a, const struct lt_inc *inc)
{
	const char *reason = lt_alive_reason(a->lt, inc);
	struct lt_alive *row;

	for (size_t i = 0; i < a->alive.len; i++) {
		if (a->alive.data[i].type == inc->type && a->alive.data[i].klass == inc->klass &&
		    a->alive.data[i].reason == reason) {
			a->alive.data[i].objects++;
			return;
		}
	}
	row = rt_vec_add(&a->alive);
	if (!row) {
		a->nomem = true;
		return;
	}
	*row = (struct lt_alive){ inc->type, inc->klass, reason, 1 };
}
