/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The closing model theta(g -> p), learnt by hard EM: match what every shape
 * has left as cheaply as the counts so far allow, count the pairs, again. The
 * first round has only the certain pairs and what names say; a few rounds settle it.
 *
 * Cost of closing g by p: -log of the smoothed share, a little for another
 * thread, and a concave cost of distance, so that last taken is first closed.
 */
#include "lifetime/model.h"
#include "lifetime/site.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lifetime/assign.h"
#include "lifetime/stem.h"

static const double FAR = 1e6, SMOOTH = 2, TWICE = 3, LOST_SLOT = 2, AGAIN = 1, OTHER_RUN = 0.3;
/* cells of a site that are no put sites */
static const uint32_t ANY = 0, LEFT = UINT32_MAX, LOST = UINT32_MAX - 2, HELD = UINT32_MAX - 3,
		      CROSSED = UINT32_MAX - 4, GONE = UINT32_MAX - 5;
enum { ROUNDS = 5 };

/* the cell (g, p) of the closings by the very run that took the reference has a key of its own */
static const uint64_t CERTAIN = UINT64_C(1) << 32;

static double *cell(struct lt_model *m, uint64_t g, uint32_t p)
{
	bool made;
	uint64_t *i = rt_map_put(&m->index, rt_key_make(g, p), &made);

	if (!i)
		return NULL;
	if (made) {
		*i = m->n.len;
		if (!rt_vec_push(&m->n, 0.0)) {
			rt_map_remove(&m->index, rt_key_make(g, p), NULL);
			return NULL;
		}
	}
	return &m->n.data[*i];
}

static double value(const struct lt_model *m, uint64_t g, uint32_t p)
{
	uint64_t *i = rt_map_get(&m->index, rt_key_make(g, p));

	return i ? m->n.data[*i] : 0;
}

static void bump(struct lt_model *m, uint64_t g, uint32_t p, double n)
{
	double *c = cell(m, g, p);

	if (c)
		*c += n;
}

void lt_model_learn(struct lt_model *m, uint32_t g, uint32_t p, double n)
{
	m->counted++;
	bump(m, g, p, n);
	bump(m, g, ANY, n);
	bump(m, ANY, p, n);
}

void lt_model_learn_certain(struct lt_model *m, uint32_t g, uint32_t p, double n)
{
	lt_model_learn(m, g, p, n);
	bump(m, g | CERTAIN, p, n);
}

void lt_model_left(struct lt_model *m, uint32_t g, double n)
{
	bump(m, g, LEFT, n);
}

double lt_model_left_open(const struct lt_model *m, uint32_t g)
{
	return value(m, g, LEFT);
}

void lt_model_fate(struct lt_model *m, uint32_t g, bool lost)
{
	bump(m, g, lost ? LOST : HELD, 1);
}

double lt_model_fates(const struct lt_model *m, uint32_t g, bool lost)
{
	return value(m, g, lost ? LOST : HELD);
}

void lt_model_gone(struct lt_model *m, uint32_t g)
{
	bump(m, g, GONE, 1);
}

double lt_model_ends_unseen(const struct lt_model *m, uint32_t g)
{
	return value(m, g, GONE);
}

double lt_model_crossed(const struct lt_model *m, uint32_t g)
{
	return value(m, g, CROSSED);
}

static bool is_site(uint64_t p)
{
	return p != ANY && p < GONE;
}

double lt_model_pair(const struct lt_model *m, uint32_t g, uint32_t p)
{
	return value(m, g, p);
}

double lt_model_certain(const struct lt_model *m, uint32_t g, uint32_t p)
{
	return value(m, g | CERTAIN, p);
}

double lt_model_closed(const struct lt_model *m, uint32_t g)
{
	return value(m, g, ANY);
}

double lt_model_closes(const struct lt_model *m, uint32_t p)
{
	return value(m, ANY, p);
}

static bool same_file(const struct lt_src *a, const struct lt_src *b)
{
	return a->frame.file && b->frame.file && !strcmp(a->frame.file, b->frame.file);
}

/* what the code itself says: 0..1 */
static double prior(const struct rt_lifetime *lt, uint32_t g, uint32_t p)
{
	const struct lt_site *sg = lt_site(lt, g), *sp = lt_site(lt, p);
	double best = 0.05;

	if (!sg->nr || !sp->nr)
		return best;
	if (lt_site_passes(lt, g, lt_site_function(lt, p)))
		return 1;
	/* who keeps references mostly has both ends of it in one file */
	if (same_file(lt_src(lt, sg->src[0]), lt_src(lt, sp->src[0])))
		best = 0.2;
	for (unsigned i = 0; i < sg->nr; i++) {
		double stem = lt_stem_match(lt_function_name(lt, g, i), lt_function_name(lt, p, 0));

		best = stem * 0.8 > best ? stem * 0.8 : best;
	}
	return best;
}

static bool is_maker(const struct lt_model *m, uint32_t g)
{
	return rt_map_get(&m->costs->makers, rt_key_make(g, 0));
}

void lt_model_learn_gets(struct lt_model *m)
{
	enum { ENOUGH = 8 };
	const struct rt_map_slot *s;
	double own = 0, all = 0;
	size_t pos = 0;

	while ((s = rt_map_next(&m->index, &pos))) {
		bool certain = s->key.a & CERTAIN, get = (uint32_t)s->key.a && !is_maker(m, (uint32_t)s->key.a);

		own += get && certain ? m->n.data[s->value] : 0;
		all += get && !certain && s->key.b == ANY ? m->n.data[s->value] : 0;
	}
	m->gets_own = all >= ENOUGH ? own / all : 0;
	m->counted++;
}

/* what it costs that p closes g, wherever the two are; runs: it is known which run of a function did either */
static double share_cost(const struct lt_model *m, uint32_t g, uint32_t p, double says, bool runs)
{
	static const double LEAST = 0.1;
	double n = value(m, g, p);

	/* nothing was seen of this site, but who takes by a get nearly always gives back himself */
	if (says < 1 && value(m, g, ANY) < 1 && !is_maker(m, g))
		says *= fmax(LEAST, 1 - m->gets_own);

	/* that the function which took the reference closes it holds for one run of it, and these are two */
	if (says >= 1 && runs) {
		n -= value(m, g | CERTAIN, p);
		says = OTHER_RUN;
	}
	return -log((n + SMOOTH * says) / (value(m, g, ANY) + SMOOTH));
}

static double known_cost(const struct lt_model *m, uint32_t g, uint32_t p, bool runs)
{
	struct lt_costs *costs = m->costs;
	bool made;
	uint64_t *at = rt_map_put(&costs->index, rt_key_make(g, p), &made);
	struct lt_cost *c;

	if (at && made) {
		*at = costs->of.len;
		if (!rt_vec_push(&costs->of, ((struct lt_cost){ .prior = prior(m->lt, g, p) }))) {
			rt_map_remove(&costs->index, rt_key_make(g, p), NULL);
			at = NULL;
		}
	}
	if (!at)
		return share_cost(m, g, p, prior(m->lt, g, p), runs);
	c = &costs->of.data[*at];
	if (c->counted[runs] != m->counted) {
		c->share[runs] = share_cost(m, g, p, c->prior, runs);
		c->counted[runs] = m->counted;
	}
	return c->share[runs];
}

static double pair_cost(const struct lt_model *m, const struct lt_mark *marks, unsigned o, unsigned c)
{
	bool runs = marks[o].act && marks[c].act;
	double cost = known_cost(m, marks[o].site, marks[c].site, runs) + m->costs->far[c - o];

	return cost + (marks[o].thread != marks[c].thread ? 0.3 : 0);
}

/* more than one reference taken by one run of a function at one place: a loop, or a find that calls another */
static bool taken_again(const struct lt_mark *marks, unsigned n, unsigned o)
{
	for (unsigned i = 0; i < n; i++) {
		if (i != o && marks[i].opens && marks[i].act && marks[i].act == marks[o].act &&
		    marks[i].site == marks[o].site)
			return true;
	}
	return false;
}

static double left_cost(const struct lt_model *m, const struct lt_mark *marks, unsigned n, unsigned o)
{
	double left = value(m, marks[o].site, LEFT), again;

	if (marks[o].how & LT_MARK_TWICE)
		again = TWICE;
	else if (marks[o].how & LT_MARK_LOST)
		again = LOST_SLOT;
	else
		again = taken_again(marks, n, o) ? AGAIN : 0;
	return -log((left + 0.5) / (value(m, marks[o].site, ANY) + left + 1)) - again;
}

/* of a put that nobody owed: sites that never put in health, and those that give back twice, come first */
static double extra_cost(const struct lt_model *m, const struct lt_mark *marks, unsigned n, unsigned c, uint8_t hints)
{
	double healthy = value(m, ANY, marks[c].site), cost = 1.5 + fmin(3, log1p(healthy));
	bool owns = false;
	uint32_t function = lt_site_function(m->lt, marks[c].site);

	if (!healthy && m->learnt->healthy >= 3)
		cost = 0.2;
	for (unsigned i = 0; i < n; i++)
		owns |= marks[i].opens && lt_site_passes(m->lt, marks[i].site, function);
	cost += owns ? 0.5 : 0;
	/* seen at work: worth more than what is usual where little has been seen; less than to leave a get open for it
	 */
	if (hints & LT_HINT_IN_ROW && hints & LT_HINT_TOO_MANY)
		return fmax(cost - 6, -3);
	cost -= hints & LT_HINT_IN_ROW ? 4.0 : hints & LT_HINT_TWICE ? 2.0 : 0;
	/* the last one is mostly the victim, whose own reference was gone */
	cost += (hints & ~LT_HINT_TOO_MANY) == LT_HINT_POST ? 0.7 : 0;
	return cost > 0.05 ? cost : 0.05;
}

void lt_model_match(const struct lt_model *m, const struct lt_mark *marks, unsigned n, int forbid, const uint8_t *hints,
		    struct lt_match *ret)
{
	double cost[LT_ASSIGN_MAX * LT_ASSIGN_MAX];
	unsigned opens[LT_UNITS], closes[LT_UNITS], no = 0, nc = 0, size;
	int column[LT_ASSIGN_MAX];

	for (unsigned i = 0; i < n; i++) {
		if (marks[i].opens)
			opens[no++] = i;
		else
			closes[nc++] = i;
		ret->mate[i] = -1;
	}
	size = no + nc;
	cost[0] = 0; /* of no marks at all */
	for (unsigned r = 0; r < size; r++) {
		double left = r >= no                   ? 0
			      : (int)opens[r] == forbid ? FAR
			      : hints                   ? 6
							: left_cost(m, marks, n, opens[r]);

		for (unsigned c = 0; c < size; c++) {
			double v = 0;

			if (r < no && c < nc)
				v = opens[r] < closes[c] ? pair_cost(m, marks, opens[r], closes[c]) : FAR;
			else if (r < no)
				v = left;
			else if (c < nc)
				v = (int)closes[c] == forbid ? FAR
				    : hints                  ? extra_cost(m, marks, n, closes[c], hints[closes[c]])
							     : 8;
			cost[r * size + c] = v;
		}
	}
	lt_assign(size, cost, column);
	ret->cost = 0;
	for (unsigned r = 0; r < size; r++) {
		unsigned c = (unsigned)column[r];

		ret->cost += cost[r * size + c];
		if (r < no && c < nc && cost[r * size + c] < FAR) {
			ret->mate[opens[r]] = (int8_t)closes[c];
			ret->mate[closes[c]] = (int8_t)opens[r];
		}
	}
}

static void model_exact(struct lt_model *m)
{
	const struct rt_map_slot *s;
	size_t pos = 0;

	while ((s = rt_map_next(&m->learnt->exact, &pos)))
		lt_model_learn_certain(m, (uint32_t)s->key.a, (uint32_t)s->key.b,
				       (double)m->learnt->pairs.data[s->value]);
}

static void model_round(struct lt_model *m)
{
	struct lt_model next = { .lt = m->lt,
				 .type = m->type,
				 .klass = m->klass,
				 .learnt = m->learnt,
				 .counted = m->counted + 1,
				 .gets_own = m->gets_own,
				 .costs = m->costs };

	model_exact(&next);
	for (size_t i = 0; i < m->learnt->shapes.len; i++) {
		const struct lt_shape *s = &m->learnt->shapes.data[i];
		struct rt_bytes bytes = rt_intern_get(&m->learnt->shape_ids, s->id);
		struct lt_mark marks[LT_UNITS];
		unsigned n = (unsigned)(bytes.size / sizeof(marks[0]));
		struct lt_match match;

		memcpy(marks, bytes.data, bytes.size);
		lt_model_match(m, marks, n, -1, NULL, &match);
		for (unsigned o = 0; o < n; o++) {
			if (!marks[o].opens || match.mate[o] < 0)
				continue;
			lt_model_learn(&next, marks[o].site, marks[match.mate[o]].site, (double)s->count);
			if (marks[o].thread != marks[match.mate[o]].thread)
				bump(&next, marks[o].site, CROSSED, (double)s->count);
		}
	}
	m->costs = NULL; /* next has them */
	lt_model_deinit(m);
	*m = next;
}

bool lt_model_settle(struct lt_model *m)
{
	const struct rt_map_slot *s;
	struct rt_map last = { 0 };
	bool ok = true;
	size_t pos = 0;

	rt_map_deinit(&m->first);
	rt_vec_clear(&m->cells);
	while (ok && (s = rt_map_next(&m->index, &pos))) {
		uint64_t *first = rt_map_put(&m->first, rt_key_make(s->key.a, 0), NULL);
		uint64_t *end = rt_map_put(&last, rt_key_make(s->key.a, 0), NULL);
		struct lt_cell *c = first && end ? rt_vec_add(&m->cells) : NULL;

		ok = c != NULL;
		if (!ok)
			break;
		*c = (struct lt_cell){ (uint32_t)s->key.b, (uint32_t)s->value, 0 };
		if (*end)
			m->cells.data[*end - 1].next = (uint32_t)m->cells.len;
		else
			*first = m->cells.len;
		*end = m->cells.len;
	}
	rt_map_deinit(&last);
	return ok;
}

const struct lt_cell *lt_model_next(const struct lt_model *m, uint32_t g, uint32_t *pos)
{
	const struct lt_cell *c;

	if (!*pos) {
		const uint64_t *first = rt_map_get(&m->first, rt_key_make(g, 0));

		*pos = first ? (uint32_t)*first : UINT32_MAX;
	}
	if (*pos == UINT32_MAX)
		return NULL;
	c = &m->cells.data[*pos - 1];
	*pos = c->next ? c->next : UINT32_MAX;
	return c;
}

static bool find_makers(struct lt_model *m)
{
	for (size_t i = 0; i < m->lt->uses.len; i++) {
		const struct lt_use *use = &m->lt->uses.data[i];
		const struct lt_point *p = &m->lt->points.data[use->point];

		if (p->op == RT_OP_NEW && &m->lt->types.data[p->type] == m->type && use->site &&
		    !rt_map_put(&m->costs->makers, rt_key_make(use->site, 0), NULL))
			return false;
	}
	return true;
}

bool lt_model_init(struct lt_model *m, const struct rt_lifetime *lt, uint32_t type, uint32_t klass,
		   const struct lt_learnt *learnt)
{
	*m = (struct lt_model){ .lt = lt,
				.type = &lt->types.data[type],
				.klass = klass,
				.learnt = learnt,
				.counted = 1,
				.costs = calloc(1, sizeof(*m->costs)) };
	if (!m->costs)
		return false;
	for (unsigned i = 0; i < LT_UNITS; i++)
		m->costs->far[i] = 0.1 * log1p(i);
	if (!find_makers(m))
		return false;
	model_exact(m);
	for (unsigned round = 0; round < ROUNDS; round++)
		model_round(m);
	lt_model_learn_gets(m);
	return lt_model_settle(m);
}

void lt_model_deinit(struct lt_model *m)
{
	rt_map_deinit(&m->index);
	rt_vec_deinit(&m->n);
	rt_vec_deinit(&m->cells);
	rt_map_deinit(&m->first);
	if (m->costs) {
		rt_map_deinit(&m->costs->index);
		rt_map_deinit(&m->costs->makers);
		rt_vec_deinit(&m->costs->of);
	}
	free(m->costs);
	m->costs = NULL;
}

double lt_model_own(const struct lt_model *m, uint32_t g)
{
	double own = 0, all = value(m, g, ANY);
	const struct lt_cell *c;
	uint32_t pos = 0;

	while (all > 0 && (c = lt_model_next(m, g, &pos))) {
		if (is_site(c->site) && lt_site_passes(m->lt, g, lt_site_function(m->lt, c->site)))
			own += m->n.data[c->n];
	}
	return all > 0 ? own / all : 0;
}

uint32_t lt_model_usual(const struct lt_model *m, uint32_t g, double *ret_share)
{
	double best = 0, all = value(m, g, ANY);
	const struct lt_cell *c;
	uint32_t site = 0, pos = 0;

	while ((c = lt_model_next(m, g, &pos))) {
		if (is_site(c->site) && m->n.data[c->n] > best) {
			best = m->n.data[c->n];
			site = c->site;
		}
	}
	*ret_share = all > 0 ? best / all : 0;
	return site;
}
