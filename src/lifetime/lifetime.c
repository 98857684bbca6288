/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records in: tables at once, everything with a place in time through the
 * window of order.c. What is odd is counted, never fatal: the input is foreign.
 */
#include <string.h>

#include "lifetime/answer.h"
#include "lifetime/life.h"
#include "lifetime/order.h"
#include "lifetime/spill.h"
#include "lifetime/watch.h"

struct rt_error *rt_lifetime_create(const struct rt_lifetime_options *options, struct rt_namer *namer,
				    struct rt_lifetime **ret)
{
	_cleanup_(rt_lifetime_destroyp) struct rt_lifetime *lt = calloc(1, sizeof(*lt));
	size_t n = 0;

	if (!lt)
		return rt_error_nomem();
	lt->namer = namer;
	lt->newest_turn.newer = lt->newest_turn.older = &lt->newest_turn;
	lt->history = options && options->history ? options->history : 8;
	lt->strict = options && options->strict;
	lt->watch = options ? options->watch : NULL;
	if (options && options->types) {
		while (options->types[n])
			n++;
		lt->only = rt_arena_alloc(&lt->arena, (n + 1) * sizeof(*lt->only));
		for (size_t i = 0; lt->only && i < n; i++)
			lt->only[i] = rt_arena_strndup(&lt->arena, options->types[i], strlen(options->types[i]));
		if (!lt->only)
			return rt_error_nomem();
	}
	*ret = rt_take(lt);
	return NULL;
}

static void type_deinit(struct lt_type *t)
{
	rt_map_deinit(&t->api);
	rt_map_deinit(&t->owner_of);
	rt_vec_deinit(&t->owners);
	lt_learnt_deinit(&t->learnt);
}

void rt_lifetime_destroy(struct rt_lifetime *lt)
{
	for (size_t i = 0; i < lt->types.len; i++)
		type_deinit(&lt->types.data[i]);
	for (size_t i = 0; i < lt->classes.len; i++)
		lt_learnt_deinit(&lt->classes.data[i].learnt);
	for (size_t i = 0; i < lt->losses.len; i++)
		free(lt->losses.data[i]);
	rt_intern_deinit(&lt->names);
	rt_intern_deinit(&lt->functions);
	rt_intern_deinit(&lt->src_ids);
	rt_intern_deinit(&lt->stack_ids);
	rt_intern_deinit(&lt->site_ids);
	rt_intern_deinit(&lt->node_ids);
	rt_vec_deinit(&lt->srcs);
	rt_vec_deinit(&lt->machines);
	rt_vec_deinit(&lt->stack_srcs);
	rt_vec_deinit(&lt->nodes);
	rt_vec_deinit(&lt->stacks);
	rt_vec_deinit(&lt->sites);
	rt_vec_deinit(&lt->uses);
	rt_map_deinit(&lt->stack_by_wire);
	rt_map_deinit(&lt->use_by_key);
	rt_map_deinit(&lt->memo);
	rt_map_deinit(&lt->told_name);
	rt_vec_deinit(&lt->types);
	rt_vec_deinit(&lt->classes);
	rt_vec_deinit(&lt->points);
	rt_vec_deinit(&lt->processes);
	rt_vec_deinit(&lt->modules);
	rt_intern_deinit(&lt->builds);
	rt_vec_deinit(&lt->build_modules);
	rt_vec_deinit(&lt->losses);
	rt_vec_deinit(&lt->limits);
	rt_vec_deinit(&lt->holders);
	rt_vec_deinit(&lt->inside);
	rt_map_deinit(&lt->domain_by_key);
	rt_map_deinit(&lt->class_by_name);
	rt_map_deinit(&lt->class_by_word);
	rt_map_deinit(&lt->type_by_id);
	free(lt->strays);
	rt_map_deinit(&lt->point_by_id);
	rt_map_deinit(&lt->process_by_pid);
	rt_map_deinit(&lt->thread_by_id);
	lt_index_deinit(&lt->by_object);
	rt_map_deinit(&lt->slots);
	lt_packing_deinit(&lt->packing);
	rt_slabs_deinit(&lt->slabs);
	rt_vec_deinit(&lt->incs);
	lt_stored_deinit(&lt->stored);
	rt_vec_deinit(&lt->domains);
	free(lt->live.lives);
	free(lt->graves.lives);
	lt_watch_deinit(lt);
	lt_order_free(lt);
	lt_ranges_free(lt);
	lt_tally_free(lt);
	lt_spill_free(lt);
	rt_arena_deinit(&lt->answer);
	rt_arena_deinit(&lt->arena);
	free(lt);
}

/* the first record of a producer, or one that does not follow the one before; what came late was counted as missing */
static __attribute__((noinline)) void jump_seq(struct lt_producer *p, uint32_t id, uint32_t n)
{
	uint32_t ahead;

	if (!p->seen) {
		p->seen = true;
		p->next = (n + 1) & RT_SEQ_MASK;
		return;
	}
	if (!id && !p->next)
		p->next = 1; /* 0 of producer 0 would say "no number" */
	ahead = (n - p->next) & RT_SEQ_MASK;
	if (ahead < RT_SEQ_MASK / 2) {
		p->missing += ahead;
		p->next = (n + 1) & RT_SEQ_MASK;
	} else if (p->missing) {
		p->missing--;
	}
}

/* numbers of one producer follow each other */
static inline void check_seq(struct rt_lifetime *lt, uint32_t seq)
{
	uint32_t id = seq >> RT_SEQ_BITS, n = seq & RT_SEQ_MASK;
	struct lt_producer *p = &lt->producers[id];

	if (seq && p->seen && p->next == n)
		p->next = (n + 1) & RT_SEQ_MASK;
	else if (seq)
		jump_seq(p, id, n);
}

static bool take_loss(struct rt_lifetime *lt, const struct rt_wire_loss *r)
{
	struct lt_point *point = r->point ? lt_point(lt, r->point) : NULL;
	struct rt_wire_loss *copy;

	if (r->head.kind == RT_WIRE_HITS) {
		/* each engine tells its own */
		if (point)
			point->hits = r->value + (point->hits == UINT64_MAX ? 0 : point->hits);
		return true;
	}
	if (r->cause == RT_LOSS_STACKMAP)
		return true; /* nothing is missing */
	if (r->cause == RT_LOSS_LIMIT) {
		const char *text = rt_arena_strndup(&lt->arena, r->text, strlen(r->text));

		return text && rt_vec_push(&lt->limits, text);
	}
	if (r->cause == RT_LOSS_PASSED) {
		lt_sample_passed(lt, point, r->value);
		return true;
	}
	if (point && lt_point_silent(point)) {
		point->unarmed = true; /* nothing is counted there: what types say has to do */
		return true;
	}
	if (r->cause == RT_LOSS_UNARMED || r->cause == RT_LOSS_REFUSED) {
		if (point)
			point->unarmed = true; /* trust.c finds the types of the others by name */
	} else if (point && r->cause == RT_LOSS_FAULT) {
		point->faults += r->value; /* these are sent all the same */
	} else if (point) {
		lt->types.data[point->type].damaged = true;
		point->dropped += r->value;
	} else {
		lt->unbound_loss++; /* any type may be the one */
	}
	lt->cut |= r->cause == RT_LOSS_CUT;
	lt->untraced |= r->cause == RT_LOSS_UNTRACED;
	if (r->cause == RT_LOSS_RING || (r->cause == RT_LOSS_FAULT && !point) || r->cause == RT_LOSS_RETURNS ||
	    r->cause == RT_LOSS_BALANCE)
		lt->lost += r->value;
	if (lt->losses.len >= 256)
		return true;
	copy = malloc(r->head.size);
	if (!copy || !rt_vec_push(&lt->losses, copy)) {
		free(copy);
		return false;
	}
	memcpy(copy, r, r->head.size);
	return true;
}

static bool take_part(struct rt_lifetime *lt, const struct rt_wire_part *r)
{
	if (!lt->part)
		lt->part = r->number;
	if (r->where == RT_PART_BEGIN && !lt->began_earlier) {
		lt->began_earlier = true;
		lt->earlier = rt_arena_strndup(&lt->arena, r->text, strlen(r->text));
		return lt->earlier != NULL;
	}
	lt->goes_on |= r->where == RT_PART_END;
	return true;
}

static bool take_other(struct rt_lifetime *lt, const struct rt_wire_head *r)
{
	bool ok = true;

	switch (r->kind) {
	case RT_WIRE_TYPE:
		ok = lt_type_record(lt, (const struct rt_wire_type *)(const void *)r);
		break;
	case RT_WIRE_CLASS:
		ok = lt_class_record(lt, (const struct rt_wire_class *)(const void *)r);
		break;
	case RT_WIRE_POINT:
		ok = lt_point_record(lt, (const struct rt_wire_point *)(const void *)r);
		break;
	case RT_WIRE_MODULE:
		ok = lt_module_record(lt, (const struct rt_wire_module *)(const void *)r);
		break;
	case RT_WIRE_MAP:
		lt_map_record(lt, (const struct rt_wire_map *)(const void *)r);
		break;
	case RT_WIRE_STACK:
		ok = lt_stack_record(lt, (const struct rt_wire_stack *)(const void *)r);
		break;
	case RT_WIRE_LOSS:
	case RT_WIRE_HITS:
		ok = take_loss(lt, (const struct rt_wire_loss *)(const void *)r);
		break;
	case RT_WIRE_TALLY:
		ok = lt_tally_record(lt, (const struct rt_wire_tally *)(const void *)r);
		break;
	case RT_WIRE_SITE:
		ok = lt_tally_site(lt, (const struct rt_wire_site *)(const void *)r);
		break;
	case RT_WIRE_PART:
		ok = take_part(lt, (const struct rt_wire_part *)(const void *)r);
		break;
	case RT_WIRE_FORK:
	case RT_WIRE_EXEC:
	case RT_WIRE_EXIT:
	case RT_WIRE_THREAD:
	case RT_WIRE_MARK:
	case RT_WIRE_HELD:
	case RT_WIRE_COUNT:
	case RT_WIRE_SAMPLE:
	case RT_WIRE_STAND:
		ok = lt_order_push(lt, r);
		break;
	default:
		break;
	}
	return ok;
}

static inline void take_time(struct rt_lifetime *lt, const struct rt_wire_head *r)
{
	/* 0 is none, and the largest less 1 */
	if (r->time_ns - 1 < lt->first_ns - 1)
		lt->first_ns = r->time_ns;
	lt->last_ns = r->time_ns > lt->last_ns ? r->time_ns : lt->last_ns;
}

struct rt_error *rt_lifetime_events(struct rt_lifetime *lt, const struct rt_wire_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		check_seq(lt, events[i].head.seq);
		take_time(lt, &events[i].head);
	}
	lt->events += n;
	return lt_order_events(lt, events, n) && !lt->nomem ? NULL : rt_error_nomem();
}

struct rt_error *rt_lifetime_record(struct rt_lifetime *lt, const struct rt_wire_head *r)
{
	if (r->kind == RT_WIRE_EVENT)
		return rt_lifetime_events(lt, rt_record_event(r), 1);
	check_seq(lt, r->seq);
	take_time(lt, r);
	return take_other(lt, r) && !lt->nomem ? NULL : rt_error_nomem();
}

/* The thread stands in what it told of last. */
static void take_inside(struct rt_lifetime *lt, const struct rt_wire_task *r)
{
	struct lt_thread *t = lt_thread(lt, r->head.pid, r->head.tid);

	lt->nomem |= !t || !rt_vec_push(&lt->inside, t);
}

static void forget_inside(struct rt_lifetime *lt, uint32_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < lt->inside.len; i++) {
		if (lt->inside.data[i]->pid != pid)
			lt->inside.data[n++] = lt->inside.data[i];
	}
	lt->inside.len = n;
}

/* Do operations that threads stand in tell why the counter is off by that much? */
static bool under_way(const struct rt_lifetime *lt, const struct lt_inc *inc, int64_t off)
{
	int64_t least = 0, most = 0;

	for (size_t i = 0; i < lt->inside.len; i++) {
		const struct lt_thread *t = lt->inside.data[i];

		if (t->pid != inc->pid || t->last_object != inc->object || t->last_type != inc->type ||
		    t->last_ns < inc->birth_ns)
			continue;
		least -= t->last_delta > 0 ? t->last_delta : 0;
		most -= t->last_delta < 0 ? t->last_delta : 0;
	}
	return off >= least && off <= most;
}

static void take_task(struct rt_lifetime *lt, const struct rt_wire_task *r)
{
	struct lt_process *p = lt_process(lt, r->head.pid);

	if (!p)
		return;
	switch (r->head.kind) {
	case RT_WIRE_FORK:
		p = lt_process(lt, r->other);
		if (p) {
			p->forked = true;
			p->ended = false; /* the number of one that ended: a stream without generations */
		}
		break;
	case RT_WIRE_EXEC:
		if (RT_GEN_OF(r->head.pid))
			p = lt_process(lt, r->head.pid - (1u << RT_PID_BITS));
		if (p && p->pid != r->head.pid) {
			p->execed = p->ended = true;
			p->end_ns = r->head.time_ns;
		}
		break;
	case RT_WIRE_EXIT:
		p->ended = true;
		p->status = r->value;
		p->end_ns = r->head.time_ns;
		break;
	case RT_WIRE_THREAD:
		if (r->value)
			lt_thread_end(lt, r->head.pid, r->other, r->head.time_ns);
		else
			lt_thread_begin(lt, r->head.pid, r->other, r->head.time_ns);
		break;
	case RT_WIRE_MARK:
		p->attached |= r->value == RT_MARK_ATTACH;
		if (r->value == RT_MARK_DETACH)
			p->left_ns = r->head.time_ns;
		p->census |= r->value == RT_MARK_CENSUS;
		if (r->value == RT_MARK_EXECED)
			lt_range_execed(lt, r->head.pid);
		if (r->value == RT_MARK_INSIDE)
			take_inside(lt, r);
		else if (r->value == RT_MARK_CENSUS || r->value == RT_MARK_CENSUS_SKIPPED)
			forget_inside(lt, r->head.pid);
		p->epoch += r->value == RT_MARK_CENSUS || r->value == RT_MARK_CENSUS_SKIPPED;
		break;
	default:
		break;
	}
}

/* a later census replaces what an earlier one said */
static void begin_census(struct lt_inc *inc, uint32_t epoch)
{
	if (inc->census && inc->epoch == epoch)
		return;
	inc->epoch = epoch;
	inc->census = inc->nobody = inc->returned = false;
	memset(inc->held, 0, sizeof(inc->held));
}

static void take_held(struct rt_lifetime *lt, const struct rt_wire_held *r)
{
	const struct lt_process *p = lt_process(lt, r->head.pid);

	if (r->head.kind == RT_WIRE_HELD && r->where == RT_HOLDER_EXEC) {
		lt_range_goes_on(lt, r->head.pid, r->object);
		return;
	}
	for (uint32_t i = 0; i < lt->types.len; i++) {
		struct lt_inc *inc = lt_inc_find(lt, r->head.pid, i, r->object);
		struct lt_holder *h;

		if (!p || !inc || inc->life != LT_LIVE)
			continue;
		if (r->head.kind == RT_WIRE_COUNT) {
			inc->final_known = true;
			inc->final = r->where == 4 ? (int32_t)r->value : (int64_t)r->value;
			if (inc->final >= 0 && inc->final < LT_COUNT_SANE)
				lt_floating_settle(lt, inc, (int32_t)inc->final);
			if (inc->known && !inc->assumed && !inc->inert && inc->final != inc->balance &&
			    !under_way(lt, inc, inc->final - inc->balance)) {
				inc->gap += inc->final - inc->balance;
				lt_life_incomplete(lt, inc);
			}
			continue;
		}
		begin_census(inc, p->epoch);
		inc->census = true;
		if (r->where <= RT_HOLDER_OBJECT)
			inc->held[r->where] += r->value;
		inc->nobody |= r->where == RT_HOLDER_NONE;
		inc->returned |= r->where == RT_HOLDER_FREED;
		h = r->where == RT_HOLDER_OBJECT ? rt_vec_add(&lt->holders) : NULL;
		if (h)
			*h = (struct lt_holder){ inc, r->holder, p->epoch, (uint32_t)r->value };
	}
}

/* A thread stands there, and its process ends. */
static void take_stand(struct rt_lifetime *lt, const struct rt_wire_stand *r)
{
	struct lt_thread *t = lt_thread(lt, r->head.pid, r->head.tid);
	uint32_t stack = lt_stack_find(lt, r->head.pid, r->stack);

	/* names are dear, and one that did nothing stands in nothing that was seen */
	if (t && !t->nr && !t->stale)
		stack = 0;
	if (!t || (stack && !lt_stack_named(lt, stack, r->head.time_ns))) {
		lt->nomem = true;
		return;
	}
	t->struck = r->signal;
	if (stack)
		lt_thread_stand(lt, t, stack, r->sp);
}

void lt_dispatch(struct rt_lifetime *lt, const struct rt_wire_head *r)
{
	if (r->kind == RT_WIRE_EVENT)
		lt_incarnation_event(lt, rt_record_event(r));
	else if (r->kind == RT_WIRE_HELD || r->kind == RT_WIRE_COUNT)
		take_held(lt, (const struct rt_wire_held *)(const void *)r);
	else if (r->kind == RT_WIRE_SAMPLE)
		lt_sample_record(lt, (const struct rt_wire_sample *)(const void *)r);
	else if (r->kind == RT_WIRE_STAND)
		take_stand(lt, (const struct rt_wire_stand *)(const void *)r);
	else
		take_task(lt, (const struct rt_wire_task *)(const void *)r);
}

void rt_lifetime_live(struct rt_lifetime *lt, uint32_t pid, bool (*visit)(const struct rt_live *live, void *arg),
		      void *arg)
{
	const struct lt_inc *inc;
	uint32_t at = UINT32_MAX;

	lt_order_flush(lt);
	while ((inc = lt_row_older(&lt->live, &at))) {
		const struct lt_type *type = lt_inc_type(lt, inc);
		struct rt_live live = { inc->object,       type->id,    type->counter_offset, type->counter_size,
					type->object_size, inc->serial, type->name,           type->flags };

		if (type->flags & RT_TYPE_KERNEL)
			live.object_size = lt_range_size(lt, inc);
		if ((!pid || inc->pid == pid) && !visit(&live, arg))
			return;
	}
}
