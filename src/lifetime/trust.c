/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known about completeness. Every note takes something away from the
 * answer: without one, and with events, the answer is complete.
 */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "lifetime/answer.h"

char *lt_printf(struct rt_arena *arena, const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	text = rt_arena_vprintf(arena, format, ap);
	va_end(ap);
	return text;
}

struct notes {
	struct rt_arena *arena;
	RT_VEC(const char *) notes, unarmed;
	bool nomem;
};

static void note(struct notes *n, const char *text)
{
	if (!text || !rt_vec_push(&n->notes, text))
		n->nomem = true;
}

static const char *cause_text(uint32_t cause)
{
	static const char *const texts[RT_LOSS_NR] = {
		[RT_LOSS_RING] = "events were dropped because the ring was full",
		[RT_LOSS_FAULT] = "objects or slots could not be read",
		[RT_LOSS_RETURNS] = "returns of probed functions were not seen",
		[RT_LOSS_CUT] = "the input ends early or is damaged",
		[RT_LOSS_UNTRACED] = "a process could not be followed",
		[RT_LOSS_BALANCE] = "probe hits and records do not agree",
		[RT_LOSS_REFUSED] = "a function cannot be probed",
		[RT_LOSS_DOUBT] = "may hit wrong places",
		[RT_LOSS_RIGHTS] = "an ordinary user traced it, so that it ran without the rights that its file has",
	};

	return cause < RT_LOSS_NR && texts[cause] ? texts[cause] : "something is missing";
}

/* objects may be missed by it, but what is seen of one tells the truth: its counter, at the next event at the latest */
static bool harmless(const struct lt_type *type, bool makes, bool finds)
{
	return type->counter && (makes || finds);
}

/* the types that lack this function: the text starts with its name; any, where that is not known */
static void mark_unarmed(struct rt_lifetime *lt, const struct rt_wire_loss *r, const struct lt_point *p)
{
	size_t len = strcspn(r->text, ": ");
	uint32_t name = len ? rt_intern_bytes(&lt->names, r->text, len) : 0;
	const uint64_t *type = r->cause == RT_LOSS_REFUSED && r->value && r->value <= UINT32_MAX
				       ? rt_map_get(&lt->type_by_id, rt_key_make(r->value, 0))
				       : NULL;
	bool found = false;

	/* a type of which there is no point has no objects either */
	if (r->cause == RT_LOSS_REFUSED && r->value) {
		const uint64_t *api =
			type && name ? rt_map_get(&lt->types.data[*type].api, rt_key_make(name, 0)) : NULL;

		if (type && !(api && harmless(&lt->types.data[*type], *api == LT_API_NEW, *api == LT_API_FINDS)))
			lt->types.data[*type].unarmed = true;
		return;
	}
	if (p) {
		if (!harmless(&lt->types.data[p->type], p->op == RT_OP_NEW, p->flags & RT_EV_HIDDEN))
			lt->types.data[p->type].unarmed = true;
		return;
	}
	for (int all = 0; all < 2 && !found; all++) {
		for (size_t i = 0; i < lt->types.len; i++) {
			struct lt_type *t = &lt->types.data[i];
			const uint64_t *api = name ? rt_map_get(&t->api, rt_key_make(name, 0)) : NULL;

			if (!all && !api)
				continue;
			found = true;
			if (!api || !harmless(t, *api == LT_API_NEW, *api == LT_API_FINDS))
				t->unarmed = true;
		}
	}
}

static void add_loss(struct rt_lifetime *lt, struct notes *n, const struct rt_wire_loss *r)
{
	struct lt_point *p = r->point ? lt_point(lt, r->point) : NULL;
	const char *name = p ? rt_intern_text(&lt->names, p->name) : "", *colon = name[0] && r->text[0] ? ": " : "";

	if (r->cause == RT_LOSS_UNARMED || r->cause == RT_LOSS_REFUSED) {
		char *text = lt_printf(n->arena, "%s%s%s", name, colon, r->text);

		mark_unarmed(lt, r, p);
		if (!text || !rt_vec_push(&n->unarmed, (const char *)text))
			n->nomem = true;
		return;
	}
	colon = name[0] || r->text[0] ? ": " : "";
	if (r->value)
		note(n, lt_printf(n->arena, "%s (%llu)%s%s%s%s", cause_text(r->cause), (unsigned long long)r->value,
				  colon, name, name[0] && r->text[0] ? ": " : "", r->text));
	else
		note(n, lt_printf(n->arena, "%s%s%s%s%s", cause_text(r->cause), colon, name,
				  name[0] && r->text[0] ? ": " : "", r->text));
}

/* One file of several says what the others hold, and how all are read. */
static void check_part(const struct rt_lifetime *lt, struct notes *n)
{
	if (!lt->part || (!lt->began_earlier && !lt->goes_on))
		return;
	note(n, lt_printf(n->arena,
			  "this is part %u of a recording in several files; all together: reftrace report FILE...",
			  lt->part));
	if (lt->began_earlier)
		note(n, lt_printf(n->arena, "what came before is in %s", lt->earlier));
	if (lt->goes_on)
		note(n, lt_printf(n->arena, "it goes on in a later file"));
}

/* One object in how many, as people say it. */
static const char *rate_text(struct notes *n, double rate)
{
	double of = 1 / rate;

	if (of - (uint64_t)of < 0.005 || of >= 1000)
		return lt_printf(n->arena, "one object of %.0f", of);
	return lt_printf(n->arena, "%.3g %% of all objects", 100 * rate);
}

/* A leak of so many objects is in a sample of this rate with this probability or more. */
static double objects_for(double rate, double probability)
{
	return ceil(log1p(-probability) / log1p(-rate));
}

static void check_sample(const struct rt_lifetime *lt, struct notes *n, const struct rt_sampling *s)
{
	double seen10 = 100 * (1 - pow(1 - s->lowest, 10));

	if (!s->partial || s->lowest >= 1)
		return;
	note(n,
	     lt_printf(
		     n->arena,
		     "only %s was traced%s: a leak of 10 is seen with a probability of %.3g %%, one of %.0f with 95 %%",
		     rate_text(n, s->lowest), s->governed && s->rate != s->lowest ? " at times" : "", seen10,
		     objects_for(s->lowest, 0.95)));
}

static void check_tallies(const struct rt_lifetime *lt, struct notes *n)
{
	uint64_t objects = lt->tallies.ungrouped;

	for (size_t i = 0; i < lt->tallies.groups.len; i++)
		objects += lt->tallies.groups.data[i].objects;
	if (objects)
		note(n, lt_printf(n->arena,
				  "counted only: %llu object%s not balanced; whether a reference is kept on purpose, "
				  "and what "
				  "happened in which order, is not known",
				  (unsigned long long)objects, objects == 1 ? " is" : "s are"));
	if (lt->tallies.ungrouped)
		note(n, lt_printf(n->arena, "%llu of them differ too much to be told one by one",
				  (unsigned long long)lt->tallies.ungrouped));
}

/* hits that are accounted for */
static uint64_t told(const struct lt_point *p)
{
	return p->events + p->elsewhere + lt_point_lost(p) + p->passed;
}

static void check_points(struct rt_lifetime *lt, struct notes *n, struct rt_trust *ret)
{
	for (size_t i = 0; i < lt->points.len; i++) {
		struct lt_point *p = &lt->points.data[i];
		uint64_t faults;

		/* nothing is counted there: where its events are missing, that it tells all is not believed */
		if (lt_point_silent(p)) {
			p->unarmed |= p->hits != UINT64_MAX && p->hits != told(p);
			p->unarmed |= p->dropped != 0;
			continue;
		}
		/* nothing was armed for it */
		if (p->of)
			continue;
		ret->points++;
		ret->points_hit += p->events + p->elsewhere != 0;
		faults = lt_point_faults(p);
		ret->lost += faults;
		lt->types.data[p->type].damaged |= faults != 0;
		if (p->hits == UINT64_MAX || p->hits == told(p))
			continue;
		/* the counters of the engine count the earlier files as well */
		if (lt->began_earlier && p->hits > told(p))
			continue;
		lt->types.data[p->type].damaged = true;
		note(n, lt_printf(n->arena, "%s was hit %llu times, but %llu events and %llu losses arrived",
				  rt_intern_text(&lt->names, p->name), (unsigned long long)p->hits,
				  (unsigned long long)p->events, (unsigned long long)lt_point_lost(p)));
	}
}

static void check_gaps(struct rt_lifetime *lt, struct notes *n)
{
	uint64_t missing = 0;

	for (size_t i = 0; i < LT_PRODUCERS; i++)
		missing += lt->producers[i].missing;
	if (!missing)
		return;
	/* the engine has told of the same events where the numbers agree */
	if (missing > lt->lost)
		lt->lost = missing;
	lt->gaps = true;
	note(n, lt_printf(n->arena, "%llu record%s missing between those that arrived", (unsigned long long)missing,
			  missing == 1 ? " is" : "s are"));
}

static void check_counters(struct rt_lifetime *lt, struct notes *n)
{
	for (uint32_t i = 0; i < lt->types.len; i++) {
		const char *why = lt_counter_wrong(lt, i, n->arena);

		if (why)
			note(n,
			     lt_printf(n->arena,
				       "what was read as the counter of type %s is not its number of references: %s; "
				       "tell where it is (-P 'type=%s counter=STRUCT.FIELD')",
				       lt->types.data[i].name, why, lt->types.data[i].name));
		if (lt_counter_rests(&lt->types.data[i]))
			note(n, lt_printf(n->arena,
					  "%llu objects of type %s were taken up again when their count was 0: what "
					  "ends them "
					  "is not known; name it (-P 'type=%s free=FN')",
					  (unsigned long long)lt->types.data[i].counting.rose, lt->types.data[i].name,
					  lt->types.data[i].name));
	}
}

static void check_objects(struct rt_lifetime *lt, struct notes *n, struct rt_trust *ret)
{
	bool explained = n->notes.len || n->unarmed.len; /* what is lost is told already */

	for (size_t i = 0; i < lt->types.len; i++) {
		const struct lt_type *t = &lt->types.data[i];

		ret->incomplete_objects += t->incomplete;
		if (t->incomplete)
			note(n, lt_printf(n->arena, "%llu object%s of type %s %s operations that were not seen%s",
					  (unsigned long long)t->incomplete, t->incomplete == 1 ? "" : "s", t->name,
					  t->incomplete == 1 ? "has" : "have",
					  explained ? "" : ": name what else gets or puts (-P)"));
		if (lt_puts_unseen(t))
			note(n, lt_printf(n->arena,
					  "no put of type %s was seen, though its objects ended: name what puts (-P)",
					  t->name));
	}
	if (lt->inconsistent)
		note(n, lt_printf(n->arena, "%llu record%s not make sense", (unsigned long long)lt->inconsistent,
				  lt->inconsistent == 1 ? " does" : "s do"));
	if (lt->blind)
		note(n, lt_printf(n->arena, "%llu event%s without a readable object", (unsigned long long)lt->blind,
				  lt->blind == 1 ? "" : "s"));
}

static bool copy_list(struct rt_arena *arena, const char *const *from, size_t len, const char ***ret)
{
	*ret = rt_arena_alloc(arena, (len + 1) * sizeof(**ret));
	if (*ret && len)
		memcpy(*ret, from, len * sizeof(**ret));
	return *ret != NULL;
}

/* An operation on the object came from a place of which not even the function around it is known. */
static bool in_unknown_function(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_site *site = lt_site(lt, lt->uses.data[inc->ledger[i].use].site);
		const struct rt_frame *f = site->nr ? &lt_src(lt, site->src[0])->frame : NULL;

		if (f && !f->function && !f->entry && !lt_event_silent(lt, &inc->ledger[i]))
			return true;
	}
	return false;
}

/* A function that did not give back what it took is told by what else it gave back: functions have to be known. */
static void check_places(struct lt_answer *a, struct notes *n)
{
	for (uint32_t type = 0; type < a->lt->types.len; type++) {
		const struct lt_inc *inc;
		uint32_t at = UINT32_MAX;
		uint64_t objects = 0;

		while ((inc = lt_row_older(&a->lt->live, &at)))
			objects += inc->type == type && !inc->inert && !inc->inherited &&
				   !lt_kept_by_library(a->lt, inc) && in_unknown_function(a->lt, inc);
		if (objects)
			note(n,
			     lt_printf(n->arena,
				       "%llu object%s of type %s lived to the end, and functions that nobody knows had "
				       "to do with %s: what these forgot may look kept",
				       (unsigned long long)objects, objects == 1 ? "" : "s",
				       a->lt->types.data[type].name, objects == 1 ? "it" : "them"));
	}
}

/* What only lost objects point to is not their fault, but somebody's. */
static void check_children(struct lt_answer *a, struct notes *n)
{
	uint64_t objects = 0;

	for (size_t i = 0; i < a->groups.len; i++) {
		if (a->groups.data[i].kind == RT_LEAK && a->groups.data[i].members.len)
			return;
	}
	for (size_t i = 0; i < a->alive.len; i++)
		objects += strcmp(a->alive.data[i].reason, LT_CHILD) ? 0 : a->alive.data[i].objects;
	if (objects)
		note(n,
		     lt_printf(n->arena,
			       "%llu object%s %s lost, as nothing but such objects points to %s, and whose fault that "
			       "is is not known",
			       (unsigned long long)objects, objects == 1 ? "" : "s", objects == 1 ? "is" : "are",
			       objects == 1 ? "it" : "them"));
}

bool lt_trust_alive(struct lt_answer *a, struct rt_trust *trust)
{
	struct notes n = { .arena = a->arena };
	bool ok;

	for (size_t i = 0; i < trust->note_count; i++)
		note(&n, trust->notes[i]);
	check_places(a, &n);
	check_children(a, &n);
	for (size_t i = 0; i < a->alive.len; i++) {
		const struct lt_alive *alive = &a->alive.data[i];

		if (!strcmp(alive->reason, LT_UNTOLD))
			note(&n,
			     lt_printf(n.arena,
				       "%llu object%s of type %s %s lost, and had too many references to tell whose "
				       "is left",
				       (unsigned long long)alive->objects, alive->objects == 1 ? "" : "s",
				       a->lt->types.data[alive->type].name, alive->objects == 1 ? "is" : "are"));
		if (!strcmp(alive->reason, LT_CROWDED))
			note(&n,
			     lt_printf(
				     n.arena,
				     "%llu object%s of type %s %s more references than there are pointers, and had too "
				     "many to tell whose are left",
				     (unsigned long long)alive->objects, alive->objects == 1 ? "" : "s",
				     a->lt->types.data[alive->type].name, alive->objects == 1 ? "has" : "have"));
		if (strcmp(alive->reason, LT_UNBORN))
			continue;
		note(&n, lt_printf(n.arena,
				   "%llu object%s of type %s lived to the end, and who made %s was not seen: name "
				   "the constructor (-P '... new=FN:ret')",
				   (unsigned long long)alive->objects, alive->objects == 1 ? "" : "s",
				   a->lt->types.data[alive->type].name, alive->objects == 1 ? "it" : "them"));
	}
	for (size_t i = 0; i < a->groups.len; i++) {
		const struct lt_group *g = &a->groups.data[i];

		if (!g->shaky || !g->members.len)
			continue;
		note(&n,
		     lt_printf(
			     n.arena,
			     "objects of type %s that are suspected lie where earlier objects lack operations: events "
			     "may be missing or out of order",
			     a->lt->types.data[g->type].name));
	}
	trust->complete &= n.notes.len == trust->note_count;
	trust->note_count = n.notes.len;
	ok = !n.nomem && copy_list(a->arena, n.notes.data, n.notes.len, &trust->notes);
	rt_vec_deinit(&n.notes);
	return ok;
}

bool lt_trust(struct rt_lifetime *lt, struct rt_trust *ret)
{
	struct notes n = { .arena = &lt->answer };
	bool ok;

	*ret = (struct rt_trust){ .events = lt->events, .nothing_seen = !lt->events };
	for (size_t i = 0; i < lt->losses.len; i++)
		add_loss(lt, &n, lt->losses.data[i]);
	check_part(lt, &n);
	lt_sample_fill(lt, &ret->sampling);
	check_sample(lt, &n, &ret->sampling);
	check_tallies(lt, &n);
	check_points(lt, &n, ret);
	check_gaps(lt, &n);
	if (lt->lifeless)
		note(&n, "events have times at which their thread or process did not live: the order of the events "
			 "cannot be trusted");
	if (lt->late_birth)
		note(&n, "an object was made before the operations on it that were told first: the order of the events "
			 "cannot be trusted");
	check_counters(lt, &n);
	check_objects(lt, &n, ret);
	if (!lt->events)
		note(&n, lt_printf(n.arena, "no get or put was seen: this is not a clean result"));
	/* what is known of an event without an object helps nobody */
	ret->lost += lt->lost + lt->blind;
	ret->unwind = lt->given ? "given" : lt->by_rows ? "unwind tables" : "frame pointers";
	ret->complete = !n.notes.len && !n.unarmed.len && lt->events;
	ret->note_count = n.notes.len;
	ret->unarmed_count = n.unarmed.len;
	ret->limit_count = lt->limits.len;
	ok = !n.nomem && copy_list(&lt->answer, n.notes.data, n.notes.len, &ret->notes) &&
	     copy_list(&lt->answer, n.unarmed.data, n.unarmed.len, &ret->unarmed) &&
	     copy_list(&lt->answer, lt->limits.data, lt->limits.len, &ret->limits);
	rt_vec_deinit(&n.notes);
	rt_vec_deinit(&n.unarmed);
	return ok;
}
