/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counting mode under engine agent: the tables that agent/tally.h fills, as the records that engine uprobe makes of its
 * maps. What a thread has counted by place is added up when it ends; the objects are read when the process does, or
 * when the run ends.
 */
#include "engine/agent_priv.h"

static uint32_t bits_of(const struct rt_agent *a)
{
	uint32_t bits = RT_AGENT_TALLY_LEAST;

	if (!a->options.ring_bytes)
		return RT_AGENT_TALLY_BITS;
	while (bits < RT_AGENT_TALLY_MOST && (sizeof(struct rt_agent_tally) << (bits + 1)) <= a->options.ring_bytes)
		bits++;
	return bits;
}

static uint32_t mask_of(const struct rt_agent *a)
{
	return (1u << bits_of(a)) - 1;
}

static uint32_t chunks_of(const struct rt_agent *a)
{
	return (uint32_t)((rt_agent_tallies_size(bits_of(a)) + RT_AGENT_CHUNK - 1) / RT_AGENT_CHUNK);
}

static struct rt_agent_tallies *table_of(const struct rt_agent_task *task)
{
	return (void *)(task->pool->base + task->tallies);
}

bool rt_agent_tallies_make(struct rt_agent *a, struct rt_agent_task *task)
{
	if (!a->options.counting)
		return true;
	task->sums = calloc(1, sizeof(*task->sums));
	task->tallies = task->sums ? rt_agent_pool_take(task->pool, chunks_of(a)) : 0;
	if (!task->tallies)
		return false;
	table_of(task)->mask = mask_of(a);
	rt_agent_process(task)->tallies = task->pool->at + task->tallies;
	return true;
}

/* Numbers of places go up to here. What the program may have written there is none by that. */
static uint32_t last_place(struct rt_agent_tallies *table)
{
	uint32_t last = __atomic_load_n(&table->places, __ATOMIC_ACQUIRE);

	return last < RT_AGENT_PLACES ? last : RT_AGENT_PLACES - 1;
}

/* false: there is no such place. */
static bool place_of(const struct rt_agent *a, struct rt_agent_tallies *table, uint32_t number,
		     struct rt_wire_counted *ret)
{
	uint64_t place = number <= last_place(table) ? table->place[number] : 0;

	*ret = (struct rt_wire_counted){ .stack = (uint32_t)(place >> 32), .point = (uint32_t)place };
	return ret->point && ret->point <= a->last_point && a->probe[ret->point].op;
}

void rt_agent_tallies_thread(struct rt_agent *a, struct rt_agent_task *task, struct rt_agent_thread *t)
{
	struct rt_agent_tallies *table;
	struct rt_wire_counted place;

	if (!task->tallies)
		return;
	table = table_of(task);
	for (uint32_t i = 1; i <= last_place(table); i++) {
		uint64_t all = t->sums.all[i], stray = t->sums.stray[i];

		if ((!all && !stray) || !place_of(a, table, i, &place))
			continue;
		task->sums->all[i] += all;
		task->sums->stray[i] += stray;
		/* the agent has not counted them at the point */
		a->gone[place.point].sum.hits += all;
		a->gone[place.point].sum.passed += all;
		t->sums.all[i] = t->sums.stray[i] = 0;
	}
}

static struct rt_error *take_sites(struct rt_agent *a, const struct rt_agent_task *task)
{
	struct rt_agent_tallies *table = table_of(task);
	struct rt_wire_counted place;

	for (uint32_t i = 1; i <= last_place(table); i++) {
		const uint64_t n[] = { [RT_SITE_ALL] = task->sums->all[i], [RT_SITE_STRAY] = task->sums->stray[i] };

		if (!place_of(a, table, i, &place))
			continue;
		for (uint32_t what = 0; what < 2; what++) {
			place.n = n[what];
			if (place.n)
				RT_TRY(rt_counted_site(&a->counted, task->wire_pid, place, what));
		}
	}
	return NULL;
}

/* So many operations at a place, or at none that is known. */
static void add_part(const struct rt_agent *a, struct rt_wire_tally *r, const struct rt_wire_counted *part)
{
	const struct rt_probe *p = &a->probe[part->point];

	if (p->op != RT_OP_NEW) {
		r->gets += p->delta > 0 ? (uint32_t)part->n : 0;
		r->puts += p->delta < 0 ? (uint32_t)part->n : 0;
	}
	for (uint32_t i = 0; i < r->nr; i++) {
		if (r->site[i].stack == part->stack && r->site[i].point == part->point) {
			r->site[i].n += part->n;
			return;
		}
	}
	if (r->nr < RT_TALLY_SITES)
		rt_counted_tally_site(r, *part);
	else
		r->others += (uint32_t)part->n;
}

static void add_entry(const struct rt_agent *a, struct rt_agent_tallies *table, const struct rt_agent_tally *e,
		      struct rt_wire_tally *r)
{
	struct rt_wire_counted part;

	if (!r->first_ns || e->first_ns < r->first_ns)
		r->first_ns = e->first_ns;
	if (e->last_ns > r->last_ns)
		r->last_ns = e->last_ns;
	r->news += RT_AGENT_TALLY_NEWS(e->state);
	r->gets += e->gets;
	r->puts += e->puts;
	r->others += e->gets + e->puts;
	for (uint32_t i = 0; i < RT_TALLY_SITES && e->part[i].place; i++) {
		if (!place_of(a, table, (uint32_t)e->part[i].place, &part))
			continue;
		part.n = (uint64_t)e->part[i].own + e->part[i].others;
		add_part(a, r, &part);
	}
}

static bool is_same(const struct rt_agent_tally *e, const struct rt_agent_tally *other)
{
	return RT_AGENT_TALLY_KIND(other->state) == RT_AGENT_TALLY_LIVE && other->object == e->object &&
	       other->type == e->type;
}

/* An object, of all of its entries; the first of which is way[at]. */
static struct rt_error *take_object(struct rt_agent *a, const struct rt_agent_task *task,
				    const struct rt_agent_tally *way, uint32_t at)
{
	const struct rt_agent_tally *e = &way[at];
	struct rt_wire_tally *r;
	int64_t balance = 0;

	if (!is_same(e, e))
		return NULL;
	for (uint32_t i = 0; i < at; i++)
		if (is_same(e, &way[i]))
			return NULL;
	for (uint32_t i = at; i < RT_AGENT_TALLY_WAYS; i++)
		balance += is_same(e, &way[i]) ? RT_AGENT_TALLY_BALANCE(way[i].state) : 0;
	if (!balance)
		return NULL;
	r = rt_counted_tally(&a->counted, task->wire_pid, e->object, e->type);
	if (!r)
		return rt_error_nomem();
	r->balance = balance;
	for (uint32_t i = at; i < RT_AGENT_TALLY_WAYS; i++)
		if (is_same(e, &way[i]))
			add_entry(a, table_of(task), &way[i], r);
	return NULL;
}

static struct rt_error *take_objects(struct rt_agent *a, struct rt_agent_task *task)
{
	const struct rt_agent_tally *entries = rt_agent_tally_entries(table_of(task));
	const uint32_t *tags = rt_agent_tally_tags(table_of(task), mask_of(a));

	for (uint64_t i = 0; i <= mask_of(a); i++)
		if (tags[i])
			RT_TRY(take_object(a, task, &entries[i & ~(uint64_t)(RT_AGENT_TALLY_WAYS - 1)],
					   (uint32_t)i % RT_AGENT_TALLY_WAYS));
	return NULL;
}

struct rt_error *rt_agent_tallies_take(struct rt_agent *a, struct rt_agent_task *task)
{
	struct rt_error *err;

	if (!task->tallies)
		return NULL;
	/* sites first: an object is told where they are known */
	err = take_sites(a, task);
	if (!err)
		err = take_objects(a, task);
	rt_agent_pool_give(task->pool, task->tallies, chunks_of(a));
	task->tallies = 0;
	return err;
}
