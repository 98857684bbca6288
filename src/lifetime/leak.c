/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of one type that are alive at the end: which of their
 * references are open, and whether somebody may hold these.
 *
 * First all of them are matched with the closing model, in a few rounds: a
 * site that is left open often is left open more cheaply. Then each open
 * reference is judged (blame.c), and what nobody is blamed for is alive.
 */
#include <math.h>
#include <string.h>

#include "lifetime/answer.h"
#include "lifetime/slot.h"
#include "lifetime/thin.h"

enum { ROUNDS = 3 };
static const double PASSED = 0.45, PILED = 0.65, ANYONE = 0.4, TWICE = 0.65, USUAL = 0.2 /* doubt */;

/* All survivors with one and the same rest. */
struct solution {
	struct lt_mark marks[LT_UNITS];
	unsigned n;
	uint64_t count;
	struct lt_match match;
	uint32_t alternative[LT_UNITS];
	double doubt[LT_UNITS];
};

struct survivor {
	struct lt_inc *inc;
	uint32_t solution;          /* index + 1, 0 = too many units to match */
	struct lt_thinned *thinned; /* of a long life; in the arena; NULL: what can be paired for sure is enough */
	bool usual;                 /* some of that was paired as is usual */
};

/* References of the site `opens` that were given back at `closes`, as one life shows it. */
struct row {
	uint32_t opens, closes;
	double n;
};

struct survivors {
	RT_VEC(struct survivor) all;
	RT_VEC(struct solution) solutions;
	struct rt_intern ids;
	uint32_t keeper; /* as lt_invariant() says */
	RT_VEC(struct row) rows;
};

/* A long life is matched when what goes as it does in healthy objects is paired before. false: out of memory. */
static bool pair_long(struct lt_answer *a, const struct lt_model *m, struct survivor *v, struct lt_units *units)
{
	if ((units->left <= LT_UNITS && !v->inc->folded) || units->cut)
		return true;
	v->usual = lt_pair_usual(m, units);
	v->thinned = rt_arena_alloc(a->arena, sizeof(*v->thinned));
	if (!v->thinned)
		return false;
	lt_thin(m, v->inc, units, v->thinned->weight);
	v->thinned->units = *units;
	return true;
}

/* What can be paired: of a life that is not all in its ledger just for sure, since what is lost may belong to the rest.
 */
static void pair(const struct lt_answer *a, const struct lt_inc *inc, struct lt_units *ret)
{
	struct lt_inc kept = *inc;

	if (!inc->folded) {
		lt_pair(a->lt, inc, ret);
		return;
	}
	kept.folded = 0;
	lt_pair_certain(a->lt, &kept, ret);
}

/*
 * A life in which references of g were taken and given back by p at once, again and again, and p gave back nothing
 * else, shows that p closes g, though no other life does: what was open before stayed open. Asked of lost objects only:
 * what somebody points to may have that reference from before.
 */
static bool learn_rows(struct lt_model *m, struct survivors *s, const struct lt_mark *marks, unsigned n)
{
	static const double WORTH = 0.5;
	enum { OFTEN = 3 };

	for (unsigned first = 1; first < n; first++) {
		const struct lt_mark *g = &marks[first - 1], *p = &marks[first];
		unsigned rows = 0, others = 0;

		if (p->opens || !g->opens)
			continue;
		for (unsigned i = 0; i < n; i++) {
			bool row = i && marks[i].site == p->site && marks[i - 1].site == g->site &&
				   marks[i].thread == marks[i - 1].thread;

			others += !row && marks[i].site == p->site;
			if (row && ++rows == 1 && i < first)
				others++; /* was learnt there */
		}
		if (rows < OFTEN || others)
			continue;
		if (!rt_vec_push(&s->rows, ((struct row){ g->site, p->site, rows * WORTH })))
			return false;
		lt_model_learn(m, g->site, p->site, rows * WORTH);
	}
	return true;
}

/* What the lives themselves show says who closes what is left in them, and not how many others did so. */
static void forget_rows(struct lt_model *m, struct survivors *s)
{
	for (size_t i = 0; i < s->rows.len; i++)
		lt_model_learn(m, s->rows.data[i].opens, s->rows.data[i].closes, -s->rows.data[i].n);
	rt_vec_deinit(&s->rows);
}

static bool collect_one(struct lt_answer *a, struct survivors *s, struct lt_inc *inc, struct lt_model *m)
{
	struct lt_units units;
	struct solution *sol;
	struct lt_mark marks[LT_UNITS];
	struct survivor *v = rt_vec_add(&s->all);
	size_t known = s->ids.items.len;

	if (!v)
		return false;
	v->inc = inc;
	lt_slots_settle(a->lt, inc, inc->nr);
	pair(a, inc, &units);
	for (unsigned i = 0; i < units.nr; i++) {
		if (units.u[i].opens && units.u[i].mate >= 0 && !inc->incomplete)
			lt_model_learn_certain(m, units.u[i].site, units.u[units.u[i].mate].site, 1);
	}
	memset(marks, 0, sizeof(marks));
	if (!pair_long(a, m, v, &units))
		return false;
	if (units.cut)
		return true;
	unsigned n = lt_marks(a->lt, inc, &units, marks, NULL);

	if (!n || n > LT_UNITS)
		return true;
	v->solution = rt_intern_bytes(&s->ids, marks, n * sizeof(marks[0]));
	if (v->solution > known) {
		sol = rt_vec_add(&s->solutions);
		if (!sol || (inc->nobody && !learn_rows(m, s, marks, n)))
			return false;
		memcpy(sol->marks, marks, sizeof(marks));
		sol->n = n;
	}
	if (v->solution)
		s->solutions.data[v->solution - 1].count++;
	return v->solution != 0;
}

static void left(struct lt_model *m, const struct solution *s, double sign)
{
	for (unsigned i = 0; i < s->n; i++) {
		if (s->marks[i].opens && s->match.mate[i] < 0)
			lt_model_left(m, s->marks[i].site, sign * (double)s->count);
	}
}

/* how much dearer it is to leave another reference open instead of mark i */
static void doubt(struct lt_model *m, struct solution *s, unsigned i)
{
	uint32_t function = lt_site_function(m->lt, s->marks[i].site);
	struct lt_match other;
	double margin;

	lt_model_match(m, s->marks, s->n, (int)i, NULL, &other);
	margin = other.cost - s->match.cost;
	s->doubt[i] = margin > 20 ? 0 : exp(-margin) / (1 + exp(-margin));
	for (unsigned j = 0; j < s->n; j++) {
		/* another line of the same function names the same function */
		if (s->marks[j].opens && other.mate[j] < 0 && s->match.mate[j] >= 0 &&
		    lt_site_function(m->lt, s->marks[j].site) != function)
			s->alternative[i] = s->marks[j].site;
	}
	if (!s->alternative[i])
		s->doubt[i] = 0;
}

static void solve(struct survivors *s, struct lt_model *m)
{
	for (unsigned round = 0; round <= ROUNDS; round++) {
		for (size_t i = 0; i < s->solutions.len; i++) {
			struct solution *sol = &s->solutions.data[i];
			struct lt_match next;

			lt_model_match(m, sol->marks, sol->n, -1, NULL, &next);
			if (round)
				left(m, sol, -1);
			sol->match = next;
			left(m, sol, 1);
		}
	}
	for (size_t i = 0; i < s->solutions.len; i++) {
		struct solution *sol = &s->solutions.data[i];

		for (unsigned j = 0; j < sol->n; j++) {
			if (sol->marks[j].opens && sol->match.mate[j] < 0)
				doubt(m, sol, j);
		}
	}
}

static unsigned open_refs(const struct lt_answer *a, const struct survivor *v, const struct survivors *s,
			  struct lt_ref ret[LT_UNITS])
{
	const struct solution *sol = v->solution ? &s->solutions.data[v->solution - 1] : NULL;
	struct lt_units units;
	const struct lt_units *of = v->thinned ? &v->thinned->units : &units;
	struct lt_mark marks[LT_UNITS];
	uint16_t unit_of[LT_UNITS];
	unsigned n = lt_invariant_refs(a->lt, v->inc, s->keeper, ret);

	if (!sol || n)
		return n;
	if (!v->thinned)
		lt_pair(a->lt, v->inc, &units);
	lt_marks(a->lt, v->inc, of, marks, unit_of);
	for (unsigned i = 0; i < sol->n; i++) {
		if (!sol->marks[i].opens || sol->match.mate[i] >= 0)
			continue;
		ret[n] = (struct lt_ref){ .inc = v->inc, .site = sol->marks[i].site, .bad = LT_NO_EVENT };
		ret[n].ev = of->u[unit_of[i]].ev;
		ret[n].more = v->thinned ? v->thinned->weight[i] - 1 : 0;
		ret[n].alternative = sol->alternative[i];
		ret[n++].doubt = fmax(sol->doubt[i], v->usual ? USUAL : 0);
	}
	return n;
}

static void count_left(struct lt_answer *a, const struct lt_ref *ref)
{
	uint32_t function = lt_site_function(a->lt, ref->site);

	lt_count(&a->left, rt_key_make(ref->inc->type, function), 1 + ref->more);
}

static void count_run(struct lt_answer *a, const struct lt_ref *ref)
{
	uint32_t act = ref->ev == LT_NO_EVENT ? 0 : ref->inc->ledger[ref->ev].act;

	if (act)
		lt_count_one(&a->runs, rt_key_make(act, ref->inc->type));
}

static void count_here(struct lt_answer *a, const struct lt_ref *ref)
{
	if (lt_inc_type(a->lt, ref->inc)->flags & RT_TYPE_DESCRIPTOR)
		lt_count_one(&a->left_here, rt_key_make(ref->inc->pid, ref->site));
}

static void count_owner(struct lt_answer *a, const struct lt_ref *ref)
{
	bool learnt;
	uint32_t owner = ref->ev == LT_NO_EVENT ? 0 : lt_owner_beyond(a, ref, 0, &learnt), type = ref->inc->type;
	uint32_t function = lt_src(a->lt, owner)->function, taker = lt_site_function(a->lt, ref->site);
	struct rt_key key = rt_key_make((uint64_t)function << 32 | taker, type);

	if (!owner)
		return;
	lt_count_one(&a->owner_left, rt_key_make(function, type));
	if (ref->inc->census && !ref->inc->nobody)
		return;
	if (!rt_map_get(&a->owner_from, key))
		lt_count_one(&a->owners, rt_key_make(taker, type));
	lt_count_one(&a->owner_from, key);
}

/* what became of the objects that each site left open, and how many each run of a function left */
static void fates(struct lt_answer *a, struct lt_model *m, const struct survivors *s)
{
	for (size_t i = 0; i < s->all.len; i++) {
		struct lt_ref refs[LT_UNITS];
		const struct lt_inc *inc = s->all.data[i].inc;
		unsigned n = open_refs(a, &s->all.data[i], s, refs);

		if (n || (inc->life == LT_LIVE && inc->nobody))
			lt_several_left(a, inc);
		if (n)
			lt_overwrites_left(a, inc);
		for (unsigned j = 0; j < n; j++) {
			count_here(a, &refs[j]);
			count_run(a, &refs[j]);
			count_owner(a, &refs[j]);
			lt_kept_count(a, &refs[j]);
			lt_along_ask(a, &refs[j]);
			if (inc->census && inc->returned)
				lt_model_gone(m, refs[j].site);
			else if (inc->census)
				lt_model_fate(m, refs[j].site, inc->nobody);
		}
	}
}

const char *lt_alive_reason(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	const uint64_t *at = rt_map_get(&lt->process_by_pid, rt_key_make(inc->pid, 0));
	const struct lt_process *p = at ? &lt->processes.data[*at] : NULL;

	if (p && p->execed)
		return "exec";
	if (inc->inert)
		return "constant";
	if (inc->census && inc->returned)
		return "freed unseen";
	if (inc->inherited)
		return "inherited";
	if (lt_kept_by_library(lt, inc))
		return "the C library's own";
	if (inc->child)
		return LT_CHILD;
	if (inc->census && inc->rooted && inc->untold)
		return LT_CROWDED;
	if (inc->census && inc->rooted)
		return inc->held[RT_HOLDER_GLOBAL] || inc->held[RT_HOLDER_HEAP] ? "cache" : "held";
	if (inc->attached && p && !p->attached)
		return "born while fewer were traced";
	if (inc->attached)
		return lt->began_earlier ? "born in an earlier file" : "born before attach";
	if (p && p->ended && (p->status & 0x7f))
		return "killed";
	if (p && p->ended && !inc->has_new && !lt_born_bare(lt, inc))
		return LT_UNBORN;
	if (inc->untold)
		return LT_UNTOLD;
	return p && p->ended ? "unknown" : "in use";
}

/* how many of the open references the site of refs[i] took */
static uint64_t of_site(const struct lt_ref *refs, unsigned n, unsigned i)
{
	uint64_t same = 0;

	for (unsigned k = 0; k < n; k++)
		same += refs[k].site == refs[i].site ? 1 + refs[k].more : 0;
	return same;
}

/* the site of refs[i] left so many of the object's references open that all others do not matter */
static bool outnumbers(const struct lt_ref *refs, unsigned n, unsigned i)
{
	enum { MANY = 4 };
	uint64_t same = of_site(refs, n, i), all = 0;

	for (unsigned k = 0; k < n; k++)
		all += 1 + refs[k].more;
	return same >= MANY && same >= MANY * (all - same);
}

/* how surely an open reference is the one that is lost, by what was seen of just this one */
static int seen_lost(const struct lt_model *m, const struct lt_ref *refs, const struct lt_blame *blames, unsigned n,
		     unsigned i)
{
	if (outnumbers(refs, n, i))
		return 3;
	if (refs[i].ev != LT_NO_EVENT &&
	    (lt_twice_in_row(m->lt, refs[i].inc, refs[i].ev) || lt_twice_by_helper(m->lt, refs[i].inc, refs[i].ev)))
		return 2;
	return blames[i].own;
}

/* of several open references of a lost object: which one was seen to be lost, or is what most objects share */
static unsigned main_ref(const struct lt_model *m, const struct lt_ref *refs, const struct lt_blame *blames, unsigned n)
{
	int best_seen = seen_lost(m, refs, blames, n, 0);
	unsigned best = 0;

	for (unsigned i = 1; i < n; i++) {
		double d = blames[i].confidence - blames[best].confidence;
		int seen = seen_lost(m, refs, blames, n, i);

		if (seen < best_seen)
			continue;
		if (seen > best_seen || d > 0.01 ||
		    (d > -0.01 && lt_model_closed(m, refs[i].site) < lt_model_closed(m, refs[best].site))) {
			best = i;
			best_seen = seen;
		}
	}
	return best;
}

static uint64_t alive_of(const struct rt_lifetime *lt, const struct lt_type *type, uint32_t pid)
{
	const struct lt_inc *inc;
	uint32_t at = UINT32_MAX;
	uint64_t n = 0;

	while ((inc = lt_row_older(&lt->live, &at)))
		n += inc->pid == pid && &lt->types.data[inc->type] == type && !inc->inert;
	return n;
}

/*
 * All that is open was taken by constructors of other types for the objects that they made, and as many of these are
 * there still: whoever should have ended those is at fault, and they are judged themselves.
 */
static bool held_for_others(const struct lt_answer *a, const struct lt_ref *refs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct lt_src *src = lt_src(a->lt, lt_site(a->lt, refs[i].site)->src[0]);
		const struct lt_type *made = lt_made_by(a->lt, src->name, refs[i].inc->type);
		unsigned same = 0;

		for (unsigned k = 0; k < n; k++)
			same += lt_site_function(a->lt, refs[k].site) == src->function;
		if (!made || alive_of(a->lt, made, refs[i].inc->pid) < same)
			return false;
	}
	return n > 0;
}

/* objects of other types that are lost in the same process: what they held is open for their sake */
static unsigned lost_others(struct lt_answer *a, const struct lt_inc *inc)
{
	const struct lt_inc *other;
	uint32_t at = UINT32_MAX;

	if (a->lost_pid == inc->pid && a->lost_type == inc->type + 1)
		return a->lost_others;
	a->lost_pid = inc->pid;
	a->lost_type = inc->type + 1;
	a->lost_others = 0;
	while ((other = lt_row_older(&a->lt->live, &at)))
		a->lost_others += other->type != inc->type && other->pid == inc->pid && (other->nobody || other->child);
	return a->lost_others;
}

/*
 * Some hold the object, but more references are open than there are pointers, and one site took nearly all of these,
 * more than there are lost objects that they may be for: what it takes is given back by nobody, whoever holds it
 * besides.
 */
static bool piles_up(struct lt_answer *a, const struct lt_ref *refs, unsigned n, unsigned i)
{
	const struct lt_inc *inc = refs[i].inc;
	const struct lt_type *type = lt_inc_type(a->lt, inc);

	if (inc->life != LT_LIVE || !inc->census || inc->nobody || inc->child || !lt_has_more(inc) ||
	    (!lt_ended_well(a->lt, inc->pid) && !lt_crashed(a->lt, inc->pid, false)) || refs[i].ev == LT_NO_EVENT ||
	    !outnumbers(refs, n, i))
		return false;
	/* where no put of the type is seen, and not who made the object, what gives them back is not known */
	if (!type->op[RT_OP_PUT] && !inc->has_new)
		return false;
	return !lt_life_vague(a->lt, inc) && !lt_damaged(a->lt, type) &&
	       (!type->unarmed || (inc->final_known && inc->final == inc->balance)) &&
	       of_site(refs, n, i) > lost_others(a, inc);
}

/*
 * The first of two gets, of which event number i is the second, that some run did twice in one line, or (helped) a
 * helper that it called twice there; LT_NO_EVENT: it is none. The second one may have been done by a jump, and look
 * like the caller's; and both may be one addition of 2.
 */
static uint16_t first_of_twice(const struct lt_answer *a, struct lt_inc *inc, uint16_t i, bool helped)
{
	const struct lt_ref ref = { .inc = inc, .ev = i };
	uint16_t first;

	if (inc->ledger[i].op != RT_OP_GET)
		return LT_NO_EVENT;
	if (lt_twice_in_line(a->lt, inc, i) && lt_took_twice(a, &ref)) {
		first = lt_first_of_two(a->lt, inc, i);
		return first == i && !lt_event_several(&inc->ledger[i]) ? LT_NO_EVENT : first;
	}
	return helped && lt_took_twice_by_helper(a, &ref) ? lt_first_by_helper(a->lt, inc, i) : LT_NO_EVENT;
}

/*
 * The gets of which each two are one too many, since nobody takes two like that in healthy objects. Puts down the first
 * of each two in ret, the last ones first, LT_UNITS at most. Returns how many there are.
 */
static unsigned taken_twice(const struct lt_answer *a, struct lt_inc *inc, bool helped, uint16_t ret[LT_UNITS])
{
	unsigned n = 0;

	for (uint32_t i = inc->nr; i-- > 0;) {
		uint16_t first = first_of_twice(a, inc, (uint16_t)i, helped);

		if (first == LT_NO_EVENT)
			continue;
		if (n < LT_UNITS)
			ret[n] = first;
		n++;
	}
	return n;
}

/*
 * What is open is, by the matching, what others close, too, or what the object had before it was seen first: where runs
 * took two in one line as often as references are left, or just one is, the matching may have given away one of those.
 * Returns how many there are in refs then.
 */
static unsigned prefer_twice(const struct lt_answer *a, struct lt_ref *refs, unsigned n)
{
	const struct lt_inc *inc = n ? refs[0].inc : NULL;
	uint16_t first[LT_UNITS];
	unsigned twice = n ? taken_twice(a, refs[0].inc, true, first) : 0;
	bool known = true, all = inc && inc->known && inc->balance == (int64_t)twice && twice <= n;

	for (unsigned i = 0; i < n; i++)
		known &= refs[i].ev != LT_NO_EVENT &&
			 (lt_took_twice(a, &refs[i]) || lt_took_twice_by_helper(a, &refs[i]));
	if (known || !twice || (n > 1 && twice != n && !all))
		return n;
	/* of a life with gaps more seems to be open than is */
	n = all ? twice : n;
	for (unsigned i = 0; i < n; i++) {
		refs[i].alternative = refs[i].site;
		refs[i].ev = first[i];
		refs[i].site = a->lt->uses.data[inc->ledger[first[i]].use].site;
		refs[i].doubt = 0.2;
		refs[i].invariant = false;
	}
	return n;
}

/*
 * Nobody points to the object, and whose reference is left cannot be told: it had too many, or not all are kept. Who
 * took two in one line took one too many; else, that it is lost is said all the same, as far as its first reference
 * goes.
 */
static void accuse_anyone(struct lt_answer *a, struct lt_inc *inc)
{
	uint16_t twice[LT_UNITS];
	bool any = taken_twice(a, inc, false, twice) > 0;
	struct lt_ref ref = { .inc = inc, .ev = any ? twice[0] : LT_NO_EVENT, .bad = LT_NO_EVENT };
	struct lt_blame b = { .kind = RT_LEAK, .role = RT_ROLE_EXTRA_GET, .confidence = TWICE, .lost = true };

	if (!any) {
		b.role = RT_ROLE_MISSING_PUT;
		b.confidence = ANYONE;
		b.why = "it took the first reference; whose is left is not known: there were too many";
		inc->untold = true;
		for (ref.ev = 0; ref.ev < inc->nr && !lt_event_takes(&inc->ledger[ref.ev]);)
			ref.ev++;
		if (ref.ev == inc->nr)
			return;
	}
	ref.site = a->lt->uses.data[inc->ledger[ref.ev].use].site;
	b.guilty = lt_event_src(a->lt, &inc->ledger[ref.ev]);
	if (inc->attached || lt_counter_vague(a->lt, inc) || lt_damaged(a->lt, lt_inc_type(a->lt, inc)))
		b.confidence = ANYONE;
	if (b.guilty)
		lt_accuse(a, &ref, &b);
}

static void judge(struct lt_answer *a, const struct lt_model *m, const struct survivor *v, const struct survivors *s)
{
	struct lt_ref refs[LT_UNITS];
	struct lt_blame blames[LT_UNITS];
	unsigned n = open_refs(a, v, s, refs), accused = 0, only = LT_UNITS;
	bool skip = v->inc->inherited || v->inc->inert || (v->inc->final_known && v->inc->final == 0) ||
		    lt_kept_by_library(a->lt, v->inc);

	/* what its ledger lost is from so many places that nothing follows from it */
	v->inc->untold = v->inc->folded && !v->solution && v->inc->census && lt_has_more(v->inc);
	if (!n && !skip && v->inc->life == LT_LIVE && v->inc->nobody && lt_ended_well(a->lt, v->inc->pid))
		accuse_anyone(a, v->inc);
	n = prefer_twice(a, refs, n);
	if (v->inc->life == LT_LIVE && held_for_others(a, refs, n)) {
		v->inc->child |= !(v->inc->census && v->inc->rooted);
		skip = true;
	}

	for (unsigned i = 0; i < n; i++) {
		count_left(a, &refs[i]);
		blames[i] = lt_blame_leak(a, m, &refs[i]);
		if (piles_up(a, refs, n, i))
			blames[i].confidence = fmax(blames[i].confidence, PILED);
	}
	if (n > 1 && (v->inc->nobody || (v->inc->known && v->inc->balance == 1))) {
		only = main_ref(m, refs, blames, n);
		if (blames[only].confidence > 0.9)
			blames[only].confidence = 0.85;
	}
	for (unsigned i = 0; i < n && !skip; i++) {
		if ((only < LT_UNITS && i != only) || !blames[i].guilty || blames[i].confidence <= 0)
			continue;
		/* now that it is clear which of the open references it is */
		if (blames[i].passed)
			blames[i].confidence = fmin(blames[i].confidence, PASSED);
		lt_accuse(a, &refs[i], &blames[i]);
		accused += blames[i].confidence >= 0.5;
	}
	if (!accused && v->inc->life == LT_LIVE)
		lt_count_alive(a, v->inc);
}

/* what functions did with healthy objects of the class, by what they got and lost */
static void learn_healthy(struct lt_answer *a, uint32_t type, const struct lt_model *m)
{
	uint32_t at = 0, known = 0;
	struct lt_inc *inc;

	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		if (inc->type != type || inc->klass != m->klass || inc->forced)
			continue;
		lt_overwrites_healthy(a, inc);
		lt_several_healthy(a, inc);
		lt_given_healthy(a, inc);
		lt_received_healthy(a, inc);
		lt_ends_healthy(a, inc);
		known += inc->shaped;
	}
	/* the last life of each address stands for those before it */
	a->healthy_each = known ? fmax(1, (double)lt_learnt(a->lt, type, m->klass)->healthy / known) : 1;
}

void lt_leaks(struct lt_answer *a, uint32_t type, struct lt_model *m)
{
	struct survivors s = { 0 };
	uint32_t newest = UINT32_MAX, oldest = 0;
	struct lt_inc *inc;
	bool ok = true;

	while (ok && (inc = lt_row_older(&a->lt->live, &newest))) {
		if (inc->type == type && inc->klass == m->klass)
			ok = collect_one(a, &s, inc, m);
	}
	/* freed while references were open: a sweep at the end frees leaks, too */
	while (ok && (inc = lt_row_newer(&a->lt->graves, &oldest))) {
		if (inc->type == type && inc->klass == m->klass && inc->forced && !inc->post)
			ok = collect_one(a, &s, inc, m);
	}
	s.keeper = lt_invariant(a->lt, type, m->klass);
	lt_model_learn_gets(m);
	solve(&s, m);
	forget_rows(m, &s);
	fates(a, m, &s);
	lt_along_settle(a);
	if (s.all.len)
		learn_healthy(a, type, m);
	lt_overwrites_settle(a, type);
	ok = ok && lt_model_settle(m);
	lt_workers(a, type, m);
	a->nomem |= !ok;
	for (size_t i = s.all.len; ok && i-- > 0;)
		judge(a, m, &s.all.data[i], &s);
	rt_vec_deinit(&s.all);
	rt_vec_deinit(&s.solutions);
	rt_intern_deinit(&s.ids);
}
