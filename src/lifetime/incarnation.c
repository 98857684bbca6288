/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One life of one object: from new, or from first sight, until the count is 0
 * or the memory is freed; the next event at the address starts the next life.
 *
 * A dead object stays in the graveyard with its ledger: a put or use that hits
 * it there is evidence.
 */
#include <string.h>

#include "lifetime/life.h"
#include "lifetime/order.h"
#include "lifetime/slot.h"
#include "lifetime/watch.h"

enum { LIVED_FADES = 16 }; /* a long life is remembered about this many ones */

struct lt_inc *lt_inc_find(const struct rt_lifetime *lt, uint32_t pid, uint32_t type, uint64_t object)
{
	uint32_t ref = lt_index_find(lt, lt_index_hash(object, pid, type), object, pid, type);

	/* nobody can see whether it was packed */
	if (ref & LT_PACKED)
		return lt_unpack((struct rt_lifetime *)(uintptr_t)lt, ref);
	return ref ? rt_slab_at(&lt->slabs, ref) : NULL;
}

/* the life that an event is about; the hint is one that was looked up a few events before */
static struct lt_inc *find_hinted(struct rt_lifetime *lt, const struct lt_seen *seen)
{
	const struct lt_inc *h = lt->hint;

	if (h && lt_inc_is(h, seen->e->head.pid, seen->type, seen->e->object))
		return (struct lt_inc *)(uintptr_t)h;
	return lt_inc_find(lt, seen->e->head.pid, seen->type, seen->e->object);
}

/* events that the ledgers of a dead object have room for */
static size_t grave_events(const struct lt_inc *inc)
{
	return inc->cap + (size_t)inc->before_cap;
}

static void grave_add(struct rt_lifetime *lt, struct lt_inc *inc)
{
	lt_row_add(lt, &lt->graves, inc);
	lt->grave_events += grave_events(inc);
}

static void grave_remove(struct rt_lifetime *lt, struct lt_inc *inc)
{
	lt_row_remove(&lt->graves, inc);
	lt->grave_events -= grave_events(inc);
}

static bool graves_exceed(const struct rt_lifetime *lt, unsigned times)
{
	return lt->graves.nr > times * LT_GRAVES || lt->grave_events > times * (size_t)LT_GRAVE_EVENTS;
}

struct lt_inc *lt_inc_take(struct rt_lifetime *lt)
{
	struct lt_inc *inc = lt->spare;

	if (inc) {
		lt->spare = inc->before;
		return inc;
	}
	inc = rt_slab_alloc(&lt->slabs, sizeof(*inc));
	if (!inc)
		return NULL;
	if (rt_vec_push(&lt->incs, inc))
		return inc;
	rt_slab_free(&lt->slabs, inc);
	return NULL;
}

void lt_inc_spare(struct rt_lifetime *lt, struct lt_inc *inc)
{
	if (inc->watched)
		lt_watch_forget(lt, inc);
	lt_ledger_free(lt, inc);
	inc->current = false;
	inc->before = lt->spare;
	lt->spare = inc;
}

static void recycle(struct rt_lifetime *lt, struct lt_inc *inc)
{
	struct lt_inc *before = inc->before;

	lt_inc_spare(lt, inc);
	if (before)
		lt_inc_spare(lt, before);
}

/* forgets a dead object: counted in the model, its ledger goes */
static void bury(struct rt_lifetime *lt, struct lt_inc *inc)
{
	grave_remove(lt, inc);
	lt_shape_count(lt, inc);
	recycle(lt, inc);
}

/* takes a dead object out of the graveyard, as the past of the next one at its address */
static struct lt_inc *exhume(struct rt_lifetime *lt, struct lt_inc *inc)
{
	struct lt_inc *before = inc->before;

	grave_remove(lt, inc);
	lt_shape_count(lt, inc);
	inc->before = NULL;
	if (before)
		recycle(lt, before);
	return inc;
}

static void trim_graves(struct rt_lifetime *lt)
{
	uint32_t at = 0;
	struct lt_inc *inc;

	/* what was used after its death is evidence and stays */
	for (unsigned tries = 0; graves_exceed(lt, 1) && tries < 64 && (inc = lt_row_newer(&lt->graves, &at));
	     tries++) {
		if (inc->post && !graves_exceed(lt, 2))
			continue;
		if (lt_inc_find(lt, inc->pid, inc->type, inc->object) == inc)
			lt_index_remove(lt, inc);
		bury(lt, inc);
	}
}

void lt_life_end(struct rt_lifetime *lt, struct lt_inc *inc, enum lt_life how, uint64_t time_ns)
{
	struct lt_type *type = lt_inc_type(lt, inc);

	if (inc->life != LT_LIVE)
		return;
	inc->life = how;
	inc->end_ns = time_ns;
	type->lived -= type->lived / LIVED_FADES;
	type->lived = inc->nr > type->lived ? inc->nr : type->lived;
	lt_observe_end(lt, inc);
	if (how == LT_DEAD)
		lt_type_death(type, time_ns);
	lt_row_remove(&lt->live, inc);
	grave_add(lt, inc);
	trim_graves(lt);
}

void lt_life_put_down(struct rt_lifetime *lt, struct lt_inc *inc, uint64_t time_ns)
{
	lt_inc_type(lt, inc)->put_deaths++;
	lt_counter_end(lt, inc);
	lt_life_end(lt, inc, LT_DEAD, time_ns);
}

void lt_life_drop(struct rt_lifetime *lt, struct lt_inc *inc)
{
	if (inc->life == LT_LIVE) {
		inc->life = LT_LOST;
		lt_observe_end(lt, inc);
		lt_row_remove(&lt->live, inc);
	} else {
		grave_remove(lt, inc);
	}
	if (inc->incomplete)
		lt_inc_type(lt, inc)->incomplete--;
	if (lt_inc_find(lt, inc->pid, inc->type, inc->object) == inc)
		lt_index_remove(lt, inc);
	recycle(lt, inc);
}

/* the balance had said that it is dead, and it is not, as this thread tells */
static void resurrect(struct rt_lifetime *lt, struct lt_inc *inc, uint32_t tid)
{
	struct lt_type *type = lt_inc_type(lt, inc);

	grave_remove(lt, inc);
	lt_row_add(lt, &lt->live, inc);
	inc->life = LT_LIVE;
	inc->soft = false;
	type->died--;
	/*
	 * Where the counter had said so, this is what was yet to be told; by another thread: where one thread tells
	 * both, they came in the wrong order.
	 */
	if (!inc->disputed)
		lt_life_incomplete(lt, inc);
	else if (inc->last_tid == tid)
		inc->shaky = true;
	inc->disputed = false;
}

void lt_life_incomplete(struct rt_lifetime *lt, struct lt_inc *inc)
{
	if (!inc->incomplete)
		lt_inc_type(lt, inc)->incomplete++;
	inc->incomplete = true;
}

/* an event that was told at a wrong time leaves lives behind that do not fit, all at one address */
static bool does_not_fit(const struct lt_inc *inc, bool births_seen)
{
	return inc->shaky || inc->guessed || inc->incomplete || inc->life == LT_LOST ||
	       (births_seen && !inc->has_new && !inc->attached && !inc->inherited);
}

struct lt_inc *lt_life_begin(struct rt_lifetime *lt, const struct lt_seen *seen, bool has_new)
{
	const struct rt_wire_event *e = seen->e;
	struct lt_type *type = &lt->types.data[seen->type];
	struct lt_inc *inc = find_hinted(lt, seen), *past = NULL;
	bool shaky;

	if (inc && inc->life == LT_LIVE) {
		/* its end was not seen: memory is not handed out twice */
		if (has_new) {
			lt_counter_end(lt, inc);
			lt_shape_replaced(lt, inc);
		}
		/* who ended what has one owner does not matter to any other reference */
		if (!(type->flags & RT_TYPE_OWNED))
			lt_life_incomplete(lt, inc);
		lt_life_end(lt, inc, LT_LOST, e->head.time_ns);
		inc = lt_inc_find(lt, e->head.pid, seen->type, e->object);
	}
	shaky = inc && does_not_fit(inc, has_new);
	if (inc)
		inc->current = false;
	if (inc && !inc->post && !inc->forced && !lt_silent_fault(lt, inc)) /* evidence stays in the graveyard */
		past = exhume(lt, inc);
	inc = lt_inc_take(lt);
	if (!inc) {
		lt->nomem = true;
		return NULL;
	}
	*inc = (struct lt_inc){ .object = e->object, .pid = e->head.pid, .type = seen->type };
	if (!lt_index_put(lt, inc)) {
		lt->nomem = true;
		return NULL;
	}
	inc->current = true;
	inc->before = past;
	inc->before_cap = past ? past->cap : 0;
	lt_ledger_begin(lt, inc, past ? past->nr : 0);
	inc->serial = ++type->objects;
	inc->birth_ns = e->head.time_ns;
	inc->has_new = has_new;
	inc->born = INT32_MIN;
	inc->rank = RT_RANK_OF(e->flags);
	inc->shaky = shaky;
	inc->inherited = !has_new && (seen->process->forked || (e->flags & RT_EV_INHERITED));
	inc->attached = !has_new && (seen->process->attached || lt_sample_began(lt, e));
	lt_row_add(lt, &lt->live, inc);
	if (seen->raw == 1 && (seen->ev.flags & LT_EV_RETURN))
		lt_slots_born(lt, inc, seen->ev.tid);
	if (lt->watch)
		lt_watch_begin(lt, inc);
	return inc;
}

/* the operation is valid on a living object: ledger, balance, death */
static void apply(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	bool audited;

	lt_floating_settle(lt, inc, seen->raw);
	lt_counter_step(lt, inc, seen);
	audited = lt_life_audit(lt, inc, seen);
	lt_life_forget_census(inc);
	if (!inc->nr && lt_event_takes(&seen->ev) && !(seen->ev.flags & LT_EV_RETURN))
		lt_slots_begin(lt, inc, &seen->ev);
	if (!lt_ledger_add(lt, inc, &seen->ev)) {
		lt_life_incomplete(lt, inc);
		return;
	}
	if (lt_slot_takes(&seen->ev))
		inc->slotted |= lt_slot_note(lt, inc, &seen->ev);
	lt_life_moved(lt_inc_type(lt, inc), inc, &seen->ev);
	if (!lt_life_ends(inc, inc->balance, seen->ev.delta))
		return;
	inc->soft = !audited;
	inc->disputed = !audited && seen->ev.count != INT32_MIN && seen->ev.count + seen->ev.delta > 0;
	lt_life_put_down(lt, inc, seen->ev.time_ns);
}

static void life_free(struct rt_lifetime *lt, struct lt_inc *inc, struct lt_seen *seen)
{
	struct lt_type *type = lt_inc_type(lt, inc);
	bool heap = type->flags & RT_TYPE_HEAP_ONLY;

	inc->freed = true;
	/* where objects die of their last put, free does not stand for one */
	inc->forced = inc->known && !heap && (inc->balance > 1 || (inc->balance == 1 && type->put_deaths));
	if (!inc->forced && (heap || !inc->known || inc->balance == 1))
		seen->ev.flags |= LT_EV_CLOSES;
	if (inc->forced)
		type->forced++;
	lt_ledger_add(lt, inc, &seen->ev);
	lt_counter_end(lt, inc);
	lt_life_end(lt, inc, LT_DEAD, seen->ev.time_ns);
}

/* Nothing takes references of such objects, and no function is known that frees them: who does so ends them. */
static bool has_one_owner(const struct lt_type *type)
{
	return type->objects && (type->flags & RT_TYPE_OWNED ||
				 (!(type->flags & (RT_TYPE_FREE_KNOWN | RT_TYPE_HEAP_ONLY | RT_TYPE_KERNEL)) &&
				  !type->op[RT_OP_GET] && !type->op[RT_OP_SWAP] && !type->op[RT_OP_SINK]));
}

void lt_life_freed(struct rt_lifetime *lt, const struct lt_seen *seen)
{
	struct lt_event ev = seen->ev;

	ev.op = RT_OP_FREE;
	ev.slot = 0;
	ev.delta = 0;
	ev.count = INT32_MIN;
	ev.flags |= LT_EV_CLOSES;
	for (uint32_t t = 0; t < lt->types.len; t++) {
		const struct lt_type *type = &lt->types.data[t];
		struct lt_inc *inc =
			has_one_owner(type) ? lt_inc_find(lt, seen->e->head.pid, t, seen->e->object) : NULL;

		if (!inc || inc->life != LT_LIVE ||
		    !(type->flags & RT_TYPE_OWNED || (inc->has_new && inc->balance == 1)))
			continue;
		inc->freed = true;
		lt_ledger_add(lt, inc, &ev);
		lt_life_end(lt, inc, LT_DEAD, ev.time_ns);
	}
}

/*
 * A hidden get is only seen at return: the get inside it, or the birth, or one of its own. By the counter it is one of
 * its own beside these: a cache made the object, and keeps a reference while it hands out another.
 */
static void life_hidden(struct rt_lifetime *lt, struct lt_inc *inc, struct lt_seen *seen)
{
	int32_t count = seen->ev.count;
	bool own = count != INT32_MIN && inc->known && !inc->assumed && !inc->shared &&
		   count == inc->balance + seen->ev.delta;

	if (!own && lt_nest_hidden(lt, inc, &seen->ev))
		return;
	if (count != INT32_MIN && inc->known && count == inc->balance) {
		seen->ev.delta = 0; /* it hands out a pointer, not a reference */
		seen->ev.op = RT_OP_USE;
	}
	if (count != INT32_MIN && !inc->known) {
		seen->ev.count = count - seen->ev.delta;
		lt_life_audit(lt, inc, seen);
		seen->ev.count = count;
	}
	apply(lt, inc, seen);
}

/*
 * A last put may take the object once more on its way to the end (a dispose, an
 * invalidate), and put it again, before it counts down: no use of a dead object.
 * Where stacks do not tell, the counter does: it has not moved since that put.
 */
static bool in_last_put(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	const struct lt_event *last = inc->nr ? &inc->ledger[inc->nr - 1] : NULL, *ev = &seen->ev;
	bool still = last && ev->count != INT32_MIN && ev->count == last->count;

	if (!last || last->op != RT_OP_PUT || last->tid != ev->tid || inc->freed || inc->life != LT_DEAD)
		return false;
	if (ev->op == RT_OP_PUT && inc->within) {
		inc->within--;
		return true;
	}
	if (ev->op != RT_OP_GET || inc->within == UINT8_MAX || (seen->e->flags & RT_EV_HIDDEN))
		return false;
	if (!lt_nested(lt, ev, last)) {
		if (!still || !last->sp || ev->sp >= last->sp || lt_has_returned(lt, last, ev))
			return false;
		inc->guessed = true; /* a life whose birth is told late looks the same */
	}
	inc->within++;
	return true;
}

/*
 * Functions that end an object call each other, and are inlined into the put and into one another so that the compiler
 * shares their code: which calls which cannot be told any more. What happens inside the last put is one end.
 */
static bool ends_within_last_put(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	uint32_t i = inc->nr;

	if (ev->op != RT_OP_FREE || !inc->freed)
		return false;
	while (i > 0 && inc->ledger[i - 1].op == RT_OP_FREE)
		i--;
	return i > 0 && inc->ledger[i - 1].op == RT_OP_PUT && lt_nested(lt, ev, &inc->ledger[i - 1]);
}

/*
 * Nobody tells of births of the type, and this may be what is done first to another object at the address: counts are
 * where they begin, or it ends before anybody has counted.
 */
static bool is_born_unseen(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_seen *seen)
{
	const struct lt_type *type = lt_inc_type(lt, inc);
	enum rt_op op = seen->ev.op;

	if (type->makers || inc->has_new || lt_put_again(lt, inc, &seen->ev))
		return false;
	if (op == RT_OP_FREE)
		return inc->freed;
	return (op == RT_OP_GET || op == RT_OP_PUT) && type->start == 0 && seen->ev.count == 0;
}

static void begin_unseen(struct rt_lifetime *lt, struct lt_seen *seen)
{
	struct lt_inc *inc = lt_life_begin(lt, seen, false);

	if (inc && seen->ev.op == RT_OP_FREE)
		life_free(lt, inc, seen);
	else if (inc)
		apply(lt, inc, seen);
}

/* an event on a dead object: evidence, or a life that began unseen */
static void life_after_death(struct rt_lifetime *lt, struct lt_inc *inc, struct lt_seen *seen)
{
	int32_t count = seen->ev.count;
	const struct lt_type *type = lt_inc_type(lt, inc);
	/* what the allocator leaves in freed memory is mostly far above any count */
	bool sane = count > 0 && count <= 2 * type->max_count + 8;
	bool frees = type->has_free || type->op[RT_OP_FREE];

	if (seen->ev.op == RT_OP_FREE && !inc->freed) {
		inc->freed = true;
		lt_ledger_add(lt, inc, &seen->ev);
		return;
	}
	if (in_last_put(lt, inc, seen) || ends_within_last_put(lt, inc, &seen->ev))
		return;
	/* the put that a wrapper calls, after the wrapper's own event */
	if (lt_nest_merge(lt, inc, &seen->ev))
		return;
	/* a thread that ends gives the allocator back what it has kept of freed blocks */
	if (seen->ev.op == RT_OP_FREE && (type->flags & RT_TYPE_HEAP_ONLY) &&
	    lt_library_alone(lt, &lt->uses.data[seen->ev.use]))
		return;
	if (is_born_unseen(lt, inc, seen)) {
		begin_unseen(lt, seen);
		return;
	}
	if (inc->life == LT_DEAD && !inc->freed && inc->soft && (sane || (count == INT32_MIN && frees))) {
		resurrect(lt, inc, seen->ev.tid);
		apply(lt, inc, seen);
		return;
	}
	/* memory that is in use again, or an object whose constructor is not seen */
	if ((sane && !lt_put_unwritten(lt, inc, &seen->ev)) || inc->life == LT_LOST ||
	    (!inc->has_new && count == INT32_MIN && seen->ev.op != RT_OP_USE)) {
		/* a find that made what it hands out: its reference is the only one */
		bool made = (seen->e->flags & RT_EV_HIDDEN) && count != INT32_MIN && count == seen->ev.delta;
		bool had_new = inc->has_new && !made;

		inc = lt_life_begin(lt, seen, false);
		if (!inc)
			return;
		if (had_new)
			lt_life_incomplete(lt, inc);
		inc->unborn = had_new;
		if (seen->e->flags & RT_EV_HIDDEN)
			life_hidden(lt, inc, seen);
		else
			apply(lt, inc, seen);
		return;
	}
	if (seen->ev.op == RT_OP_GET && type->start == 0 && count == 0 && !inc->freed) {
		int32_t born = inc->born;

		inc = lt_life_begin(lt, seen, false); /* counts start at 0: this is a birth */
		if (inc) {
			inc->born = born;
			apply(lt, inc, seen);
		}
		return;
	}
	lt_counter_after(lt, inc, seen);
	seen->ev.flags |= LT_EV_POST | (seen->ev.op == RT_OP_FREE ? LT_EV_CLOSES : 0);
	inc->post = true;
	lt_ledger_add(lt, inc, &seen->ev);
}

/*
 * The constructor whose return ev is has called the one that made the object, by
 * what is known without its frames (libraries without frame pointers): all that
 * happened to the object was done by this thread below that frame, and the counter is what it was counted to be.
 */
static bool handed_up(const struct lt_inc *inc, const struct lt_event *ev)
{
	if (!(ev->flags & LT_EV_RETURN) || !inc->known || ev->count == INT32_MIN || ev->count != inc->balance)
		return false;
	for (uint32_t i = 0; i < inc->nr; i++) {
		if (inc->ledger[i].op == RT_OP_MOVE)
			continue;
		if (inc->ledger[i].tid != ev->tid || !inc->ledger[i].sp || inc->ledger[i].sp >= ev->sp)
			return false;
	}
	return true;
}

/* the constructor itself used the object before it returned */
static bool began_inside(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	return inc->ledger[0].tid == ev->tid && lt_nested(lt, &inc->ledger[0], ev);
}

/* another thread did (a new thread gives its own reference back): by the counter, it began with what new gives */
static bool began_elsewhere(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	const struct lt_type *type = &lt->types.data[inc->type];

	return inc->ledger[0].tid != ev->tid && inc->known && !inc->assumed && type->start > 0 &&
	       inc->base == type->start && ev->count != INT32_MIN && ev->count == inc->balance;
}

/* a second new of a living object: a constructor inside a constructor, or first sight came before the return */
static bool life_adopt(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	const struct lt_event *ev = &seen->ev;
	int64_t moved = 0;

	if (inc->has_new) {
		const struct lt_event *old = inc->nr ? &inc->ledger[0] : NULL;

		if (!old || old->op != RT_OP_NEW)
			return false;
		if (lt_nested(lt, ev, old))
			return true;
		/* what the outer one does to the object on its way is its own business, puts included */
		if (!lt_nested(lt, old, ev) && !(inc->nr == 1 && lt_tail_called(lt, old, ev)) && !handed_up(inc, ev))
			return false;
		lt_observe_moved(lt, inc, &inc->ledger[0], ev);
		if (inc->watched)
			lt_watch_site(lt, inc, &inc->ledger[0], ev);
		inc->ledger[0].use = ev->use;
		inc->ledger[0].act = ev->act;
		inc->ledger[0].up = ev->up;
		inc->ledger[0].sp = ev->sp;
		return true;
	}
	if (inc->inherited || !inc->nr || (!began_inside(lt, inc, ev) && !began_elsewhere(lt, inc, ev)))
		return false;
	for (uint32_t i = 0; i < inc->nr; i++)
		moved += inc->ledger[i].delta;
	if (!lt_ledger_insert_front(lt, inc, ev))
		return false;
	if (inc->unborn && inc->incomplete && !inc->gap) {
		inc->incomplete = false;
		lt_inc_type(lt, inc)->incomplete--;
	}
	lt_life_audit_start(lt, inc);
	inc->has_new = true;
	inc->attached = false;
	inc->rank = RT_RANK_OF(seen->e->flags);
	inc->start = inc->known ? inc->base : lt_type_start(lt_inc_type(lt, inc));
	inc->base = 0;
	if (!inc->known) {
		inc->balance = lt_type_start(lt_inc_type(lt, inc)) + moved;
		inc->known = true;
		inc->assumed = lt_inc_type(lt, inc)->start < 0;
	}
	lt_observe_step(lt, inc, ev);
	if (inc->watched)
		lt_watch_birth(lt, inc, ev);
	return true;
}

/*
 * Nobody has an object before its constructor returns, so its birth is told before all that others do to it, and what
 * the constructor did to it is older. It is told late in a stream whose order was changed: lives are cut in two.
 */
static bool born_late(const struct lt_inc *inc, const struct lt_event *ev)
{
	return inc->nr && ev->time_ns + LT_RACE_NS < inc->ledger[inc->nr - 1].time_ns;
}

/* A constructor that looks whether there is one already: by the counter, which goes on, it handed out another one's. */
static bool found(const struct lt_type *type, const struct lt_inc *inc, const struct lt_seen *seen)
{
	int64_t more = (int64_t)seen->ev.count - inc->balance;

	return seen->ev.count != INT32_MIN && (seen->e->flags & RT_EV_AT_RETURN) && inc->known && !inc->assumed &&
	       inc->counted && seen->ev.count > (type->start < 0 ? 1 : type->start) && (more == 0 || more == 1);
}

static void life_new(struct rt_lifetime *lt, struct lt_inc *inc, struct lt_seen *seen)
{
	struct lt_type *type = &lt->types.data[seen->type];
	int32_t count = seen->ev.count;

	seen->ev.delta = 0; /* what new gives is the start of the life */
	lt->late_birth |= inc && born_late(inc, &seen->ev);
	if (inc && inc->life == LT_LIVE && life_adopt(lt, inc, seen))
		return;
	if (inc && inc->life == LT_LIVE && found(type, inc, seen)) {
		seen->ev.op = RT_OP_GET;
		seen->ev.delta = 1;
		seen->ev.flags |= LT_EV_HIDDEN;
		life_hidden(lt, inc, seen);
		return;
	}
	inc = lt_life_begin(lt, seen, true);
	if (!inc)
		return;
	if (seen->raw != INT32_MIN && (seen->e->flags & RT_EV_AT_RETURN)) {
		lt_counter_birth(lt, inc, seen);
		inc->due = seen->raw;
		inc->counts = true;
	}
	inc->floating = (type->flags & RT_TYPE_FLOATING) != 0;
	if (type->flags & RT_TYPE_HEAP_ONLY)
		type->start = 1;
	if (count != INT32_MIN && (seen->e->flags & RT_EV_AT_RETURN) && count >= 0 && count < LT_COUNT_SANE) {
		if (type->start < 0) {
			type->start = count;
			type->start_learnt = true;
		}
		inc->counted = true;
		inc->start = count; /* constructors of one type may differ, where nobody said what they give */
		if (count != type->start && !type->start_learnt) {
			inc->start = type->start;
			lt_life_incomplete(lt, inc);
			inc->gap = count - type->start;
		}
		inc->balance = count;
		inc->known = true;
	} else {
		inc->balance = inc->start = lt_type_start(type); /* 1 is what nearly all types do */
		inc->known = true;
		inc->assumed = type->start < 0;
	}
	inc->last_tid = seen->ev.tid;
	inc->last_ns = seen->ev.time_ns;
	lt_ledger_add(lt, inc, &seen->ev);
}

/*
 * Singletons and constants that all share have a number in their counter that no counting leads to (-1, 0 where others
 * start at 1), and gets and puts leave it as it is.
 */
static bool looks_inert(const struct lt_type *type, const struct lt_seen *seen)
{
	if (seen->raw == INT32_MIN || type->counting.off || (seen->e->flags & (RT_EV_HIDDEN | RT_EV_AT_RETURN)))
		return false;
	if (seen->ev.op != RT_OP_GET && seen->ev.op != RT_OP_PUT)
		return false;
	return seen->raw < 0 || seen->raw >= LT_COUNT_SANE || (seen->raw == 0 && type->start > 0);
}

/*
 * A get that reads 0, in an object that nobody has seen: counts of its type start at 0, with the object's first get.
 * Its constructor gives no reference, and where references come and go the object waits without one in between (a pool,
 * a cache of pages). Where constructors are probed, one get is too little to say so.
 */
static bool counts_from_zero(struct lt_type *type, const struct lt_seen *seen)
{
	enum { SURE = 4 };

	if (seen->ev.op != RT_OP_GET || seen->raw != 0 || type->counting.off || type->start > 0 ||
	    type->op[RT_OP_NEW] || (seen->e->flags & (RT_EV_HIDDEN | RT_EV_AT_RETURN)))
		return false;
	type->counting.first_zero++;
	return !type->makers || type->counting.first_zero >= SURE;
}

/*
 * The same in an object that has references still: its memory was freed with these, and given out again, or the pool
 * that it lies in was swept. Other threads may be on their way where it is shared.
 */
static bool starts_over(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_seen *seen)
{
	const struct lt_type *type = lt_inc_type(lt, inc);

	return inc->life == LT_LIVE && type->start == 0 && !type->counting.off && !type->op[RT_OP_NEW] &&
	       seen->raw == 0 && seen->ev.op == RT_OP_GET && !(seen->e->flags & (RT_EV_HIDDEN | RT_EV_AT_RETURN)) &&
	       inc->known && inc->counted && !inc->assumed && inc->balance > 0 && !inc->shared &&
	       inc->last_tid == seen->ev.tid;
}

/* the next life of such an object: its first get is all the birth that it has */
static struct lt_inc *start_over(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	inc->forced = true;
	lt_inc_type(lt, inc)->forced++;
	lt_life_end(lt, inc, LT_DEAD, seen->ev.time_ns);
	return lt_life_begin(lt, seen, false);
}

/* all bits of a counter that was followed up to here are set: no operation that was missed leads there */
static bool turns_inert(const struct lt_inc *inc, const struct lt_seen *seen)
{
	return seen->raw == -1 && inc->known && inc->counted && inc->balance > 0;
}

/*
 * An object at first sight, or one that never moved, or that is made a constant for a while: true, it is inert, and
 * nothing happens to it.
 */
static bool stays_inert(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	bool first = !inc->nr && !inc->has_new;

	if (!inc->inert && (first || turns_inert(inc, seen)) && looks_inert(lt_inc_type(lt, inc), seen)) {
		inc->inert = true;
		inc->due = seen->raw;
		inc->counts = false;
	}
	inc->inert = inc->inert && (seen->raw == inc->due || seen->raw == INT32_MIN);
	return inc->inert;
}

void lt_life_operation(struct rt_lifetime *lt, struct lt_seen *seen)
{
	struct lt_inc *inc = find_hinted(lt, seen);
	enum rt_op op = seen->ev.op;

	if (op == RT_OP_NEW) {
		life_new(lt, inc, seen);
		return;
	}
	if (inc && inc->life != LT_LIVE) {
		life_after_death(lt, inc, seen);
		return;
	}
	if (!inc) {
		struct lt_type *type = &lt->types.data[seen->type];

		if (type->start < 0 && counts_from_zero(type, seen)) {
			type->start = 0;
			type->start_learnt = true;
		}
		inc = lt_life_begin(lt, seen, false);
	} else if (starts_over(lt, inc, seen)) {
		inc = start_over(lt, inc, seen);
	}
	if (!inc)
		return;
	if (stays_inert(lt, inc, seen))
		return;
	if (op == RT_OP_FREE) {
		life_free(lt, inc, seen);
		return;
	}
	if (op == RT_OP_SINK)
		lt_floating_sink(inc, seen);
	if (op == RT_OP_STEAL || op == RT_OP_MOVE)
		seen->ev.flags |= LT_EV_TRANSFER;
	if (seen->e->flags & RT_EV_HIDDEN) {
		life_hidden(lt, inc, seen);
		return;
	}
	if (lt_life_late(lt, inc, seen) || lt_nest_merge(lt, inc, &seen->ev))
		return;
	if ((seen->e->flags & RT_EV_COUNT_EXACT) && inc->known && !inc->assumed &&
	    !lt_inc_type(lt, inc)->counting.off && (inc->shared || seen->ev.count != inc->balance)) {
		const struct rt_wire_event *first = lt_linear_first(lt, seen->e, inc->type, inc->balance);

		/* another thread's operation came before this one, by the counter */
		if (first) {
			struct rt_wire_event copy = *first;

			lt_order_done(lt, first);
			lt_incarnation_event(lt, &copy);
			lt_life_operation(lt, seen);
			return;
		}
	}
	apply(lt, inc, seen);
}
