/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Engine U inside the program: what a stub calls for each hit, and what a hooked function returns to. It looks, writes
 * a record and goes; what is where was decided by the tool. What it says of a hit is what engine K's BPF programs
 * (bpf/reftrace.bpf.c) say.
 */
#include "pending.h"
#include "tally.h"
#include "thread.h"

/* ---- what the registers say ---- */

static inline uint64_t read_reg(const struct hit *h, uint8_t reg)
{
	if (reg < RIP)
		return h->regs->reg[reg];
	return reg == RIP ? h->ip : 0;
}

/* What cannot be read tells of no class. */
static inline void read_class(uint64_t object, uint32_t class_at, uint64_t *ret)
{
	if (object && !load_u64(object + class_at - 1, ret))
		*ret = 0;
}

static void read_object(struct hit *h)
{
	const struct rt_probe *p = h->probe;
	uint64_t v = read_reg(h, p->reg) + (uint64_t)p->reg_offset, at = 0;

	if (p->scale)
		v += read_reg(h, p->index) * p->scale;
	if (__builtin_expect(p->stored != 0, 0)) {
		h->object = read_reg(h, p->stored - 1);
		h->aux = v;
		return;
	}
	/* a pointer on the way that is NULL leads to no object: put(&p) where p is NULL does nothing */
	for (uint32_t n = 0; n < p->deref && (!n || v); n++) {
		/* what is narrow may end where the memory ends */
		uint32_t size = n + 1 == p->deref && p->width ? (uint32_t)(p->width < 0 ? -p->width : p->width) : 8;

		at = v;
		if (!load_size(at, size, &v)) {
			h->flags |= RT_EV_NO_OBJECT;
			break;
		}
	}
	h->object = p->width ? rt_probe_narrow(v, p->width) : v;
	h->aux = p->kind & RT_PROBE_SLOT ? at : 0;
	if (p->class_at)
		read_class(h->object, p->class_at, &h->aux);
}

static inline uint64_t counter_at(const struct hit *h)
{
	return h->object + (uint64_t)(int64_t)h->probe->counter_offset;
}

/* The program is about to change it: its line comes while the stack is looked at. What is no address does no harm. */
static inline void fetch_counter(uint64_t at)
{
	asm volatile("prefetchw (%0)" : : "r"(at));
}

/*
 * A signal's handler has told of something since the hook began, or since this was asked: what the hook has of the time
 * may be older.
 */
static inline bool was_interrupted(struct rt_agent_thread *t, bool nested)
{
	if (__builtin_expect(load(t->entered) != 2, 1) || nested)
		return false;
	store(t->entered, (uint64_t)1);
	return true;
}

/*
 * The time of an event is that at which its count was read. A thread may lose its processor anywhere in here: the count
 * that is the same on both sides of the time was that one at the time. false: it cannot be read.
 */
static inline __attribute__((always_inline)) bool read_count(struct rt_agent_thread *t, bool nested, uint64_t at,
							     uint32_t size, uint64_t *ret_time, uint64_t *ret)
{
	enum { TRIES = 4 }; /* where others never stop counting, an almost right time does */
	bool known = load_size(at, size, ret);
	uint64_t again;

	for (int i = 0; i < TRIES; i++) {
		*ret_time = now();
		known &= load_size(at, size, &again);
		if (__builtin_expect(again == *ret, 1) && !was_interrupted(t, nested))
			break;
		*ret = again;
	}
	return known;
}

static void read_counter(struct hit *h)
{
	const struct rt_probe *p = h->probe;
	uint64_t v;
	bool known;

	if (!p->counter_size || !h->object)
		return;
	known = read_count(h->thread, h->nested, counter_at(h), p->counter_size, &h->time, &v);
	h->flags |= known ? RT_EV_COUNT_READ : RT_EV_COUNT_FAULT;
	h->counter = (uint32_t)v + (uint32_t)(int32_t)p->counter_bias;
}

static __attribute__((noinline)) bool is_in_sample(struct hit *h)
{
	struct rt_sample_set *sample = h->process->sample;
	enum rt_sample_answer answer;
	uint32_t hash;
	uint64_t key;

	if (h->flags & RT_EV_NO_OBJECT)
		return true;
	key = rt_sample_key(0, h->probe->type, h->object);
	answer = rt_sample(&sample[key & (RT_AGENT_SAMPLE_SETS - 1)], key, h->probe, h->object,
			   __atomic_load_n(&h->pool->sample_rate, __ATOMIC_RELAXED), &hash);
	h->passed = answer == RT_SAMPLE_PASS;
	if (h->passed)
		return false;
	if (answer == RT_SAMPLE_TELL_OUTSIDE)
		h->flags |= RT_EV_OUTSIDE;
	if (h->pool->sampling & RT_SAMPLE_GOVERNED)
		h->flags |= rt_sample_rank(hash);
	return true;
}

/* false: its object is not in the sample. */
static inline bool is_traced(struct hit *h)
{
	return __builtin_expect(!(h->probe->kind & RT_PROBE_SAMPLED), 1) || is_in_sample(h);
}

static inline bool is_counting(const struct hit *h)
{
	return __builtin_expect(h->pool->counting, 0);
}

/* ---- its stack ---- */

/* h->sp and h->stack, which is the place in counting mode. false: the stack could not be sent. */
static bool capture(struct hit *h)
{
	uint64_t sp = h->regs->reg[RSP], code = load(h->process->code);
	struct rt_wire_frame few[RT_AGENT_FRAMES];
	struct memo_search s;
	struct walk w;

	h->sp = h->probe->kind & RT_PROBE_SITE ? sp : sp + (uint64_t)(int64_t)h->probe->cfa_delta;
	search_init(&s, sp, h->regs->reg[RBP], h->spot, code);
	h->stack = find_memo(h, &s);
	if (h->stack)
		return true;
	w.code = code;
	w.memo = s.place;
	walk_init(h, &w, few);
	if (code)
		while (step(h, &w, sp))
			;
	if (!code || w.skip)
		walk_first(h, &w);
	h->stack = stack_id(h, &w);
	if (h->stack && is_counting(h))
		h->stack = place_of(tallies_of(h->process), h->stack, h->point);
	if (h->stack && h->stack != NO_PLACE && w.plain && code)
		keep_memo(&s, &w, h->stack);
	return h->stack;
}

/* In place of an event. */
static void count_event(struct hit *h)
{
	struct tallying y;

	if (h->flags & RT_EV_NO_OBJECT) {
		count(&h->count->faults);
		count(&h->count->passed);
		return;
	}
	tallying_init(&y, h->process, h->thread, h->object, h->probe->type);
	y.part = part_of(h->stack, h->thread);
	h->count->hits--;
	tally(&y, h->probe, h->count);
}

/* ---- returns ---- */

/* Whether the processor keeps return addresses as well, and ends the thread where the stack has others. */
static inline bool has_shadow_stack(void)
{
	uint64_t top = 0;

	asm volatile("rdsspq %0" : "+r"(top)); /* else it does nothing */
	return top;
}

/* Entry of a function whose return is the event: its return address becomes a thunk's. */
static void on_enter(struct hit *h)
{
	uint64_t slot = h->regs->reg[RSP], ra;
	struct rt_agent_pending *wait;
	uint32_t thunk;
	uint16_t level;
	bool hooked;

	count(&h->count->entries);
	if (has_shadow_stack() || !load_u64(slot, &ra))
		return; /* an entry without an end: said as missed */
	hooked = is_thunk(ra, &thunk);
	level = pending_levels(h, slot, hooked);
	if (!hooked)
		thunk = thunk_for(h->pool, ra);
	if (thunk == RT_AGENT_RETURNS || !(wait = pending_take(h->process, slot)))
		return;
	if (!capture(h))
		h->stack = 0;
	read_object(h);
	if (!rt_probe_counts_late(h->probe))
		read_counter(h); /* the event's time will be that of the return */
	wait->object = h->object;
	wait->aux = h->aux;
	wait->count = h->counter;
	wait->stack = h->stack;
	wait->point = h->point;
	wait->flags = h->flags;
	wait->level = level;
	wait->inherited = wait->lifted = 0;
	wait->thread = h->thread->number;
	h->thread->waiting++;
	if (!hooked)
		*(uint64_t *)slot = (uint64_t)(uintptr_t)rt_agent_thunks + thunk * THUNK_BYTES;
}

/* Object of a return point whose object only shows now. */
static void read_result(struct hit *h, uint64_t result)
{
	uint8_t from = h->probe->result;

	if (from == RT_PROBE_AT_ENTRY)
		return;
	h->flags &= (uint16_t) ~(RT_EV_NO_OBJECT | RT_EV_COUNT_READ | RT_EV_COUNT_FAULT);
	if (from == RT_PROBE_RESULT) {
		h->object = result;
		h->aux = 0;
	} else {
		/* OUT: what was found at entry is the slot */
		h->aux = from == RT_PROBE_RESULT_PTR ? result : h->object;
		h->object = 0;
		if (h->aux && !load_u64(h->aux, &h->object))
			h->flags |= RT_EV_NO_OBJECT;
	}
	if (h->probe->class_at)
		read_class(h->object, h->probe->class_at, &h->aux);
}

static void on_leave(struct hit *h, const struct rt_agent_pending *wait, uint64_t result)
{
	h->point = wait->point;
	h->probe = &h->pool->probe[h->point];
	h->count = &h->thread->count[h->point];
	h->object = wait->object;
	h->aux = wait->aux;
	h->counter = wait->count;
	h->stack = wait->stack;
	h->flags = wait->flags;
	h->time = 0;
	/* numbers of places are the process' own, and its parent's stack is not among its stacks */
	if (is_counting(h) && wait->inherited)
		h->stack = place_of(tallies_of(h->process), 0, h->point);
	count(&h->count->hits);
	if (!rt_probe_holds(h->probe, result)) {
		count(&h->count->unmet);
		return;
	}
	if (!has_room(h))
		return;
	read_result(h, result);
	if (rt_probe_counts_late(h->probe))
		read_counter(h);
	if (!h->object && !(h->flags & RT_EV_NO_OBJECT))
		count(&h->count->unmet);
	else if (!is_traced(h))
		count(&h->count->passed);
	else if (!h->stack)
		count(&h->count->ring);
	else if (is_counting(h))
		count_event(h);
	else
		send_event(h);
}

static void leave_all(struct hit *h, uint64_t slot, uint64_t result)
{
	/* inner ones first: they have returned first */
	for (;;) {
		struct rt_agent_pending *last = NULL, copy;

		for (uint32_t n = 0; n < RT_AGENT_PENDING_WAYS; n++) {
			struct rt_agent_pending *at = pending_place(h->process, slot, n);

			if (load(at->slot) == slot && (!last || at->level > last->level))
				last = at;
		}
		if (!last)
			return;
		copy = *last;
		waits_no_more(h, last);
		on_leave(h, &copy, result);
	}
}

/* ---- what entry.S calls ---- */

static bool begin(struct hit *h, const struct hit_regs *regs)
{
	if (is_off())
		return false;
	h->pool = (void *)rt_agent_head.pool;
	h->process = (void *)rt_agent_head.process;
	h->regs = regs;
	h->thread = current(h->process);
	h->began = 0;
	return h->thread;
}

/*
 * Says that a hook runs, before it reads the time: nothing that it tells is older than what its thread has told, or
 * than the last look at it that found it in none. A signal's handler that comes into a hook says that it did.
 */
static void enter(struct hit *h)
{
	h->nested = h->thread->entered;
	store(h->thread->entered, (uint64_t)h->nested + 1);
}

static void leave(const struct hit *h)
{
	if (!h->nested)
		store(h->thread->entered, 0);
}

static void on_hit(struct hit *h)
{
	count(&h->count->hits);
	read_object(h);
	if (!h->object && !(h->flags & RT_EV_NO_OBJECT)) {
		count(&h->count->unmet);
		return;
	}
	if (!is_traced(h)) {
		count(&h->count->passed);
		return;
	}
	if (!is_counting(h))
		fetch_counter(counter_at(h));
	if (!capture(h)) {
		count(&h->count->ring);
		return;
	}
	if (is_counting(h)) {
		count_event(h);
		return;
	}
	if (!has_room(h))
		return;
	read_counter(h);
	send_event(h);
}

/* The slot may have the pointer that was stored there. What lies in the block itself is over, too. */
static void tell_slot(struct hit *h, uint64_t slot, uint64_t start, uint64_t end)
{
	if (!load_u64(slot, &h->object) || !h->object || (h->object >= start && h->object < end) || !capture(h) ||
	    !has_room(h))
		return;
	count(&h->count->hits);
	h->aux = slot;
	send_event(h);
}

/* An object that lies where the block begins ends with it. aux says so: no slot is where the object itself is. */
static void tell_object(struct hit *h, uint64_t start)
{
	if (!take_object(h->process, start))
		return;
	if (h->probe->look != RT_LOOK_TELL || !capture(h) || !has_room(h))
		return;
	count(&h->count->hits);
	h->object = h->aux = start;
	send_event(h);
}

/*
 * A block of the C library is freed, or may get another place, and the slots in it go as well. The word before it says
 * how long it is (malloc_chunk in glibc's malloc.c: its last three bits are flags).
 */
static void on_freed(struct hit *h)
{
	enum { OVERHEAD = 8, MOST = 1 << 20 };
	const uint64_t start = read_reg(h, h->probe->reg) + (uint64_t)h->probe->reg_offset;
	uint64_t at = start, size, end;

	if (!start || !load_u64(start - OVERHEAD, &size) || size < OVERHEAD)
		return;
	end = start + (size < MOST ? (size & ~7ull) : MOST) - OVERHEAD;
	tell_object(h, start);
	while (at < end) {
		uint32_t first = rt_agent_slot(at);
		uint64_t in_word = 64 - first % 64, left = (end - at) / 8, n = left < in_word ? left : in_word;
		uint64_t *word = &h->process->slots[first / 64];
		uint64_t mask = (n == 64 ? ~0ull : (1ull << n) - 1) << first % 64, bits = load(*word) & mask;

		if (__builtin_expect(bits != 0, 0))
			__atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
		for (; bits && h->probe->look == RT_LOOK_TELL; bits &= bits - 1)
			tell_slot(h, at + 8 * ((uint64_t)__builtin_ctzll(bits) - first % 64), start, end);
		at += 8 * n;
	}
}

/* What a hook takes, but for its wait for the reader: of one in so many, by whether its last point told of an event. */
static __attribute__((noinline)) void take_time(const struct hit *h)
{
	bool told = !h->passed;

	h->thread->timed[told]++;
	h->thread->cycles[told] += now() - h->began;
}

void rt_agent_hit(const struct hit_regs *regs, uint32_t number);
void rt_agent_hit(const struct hit_regs *regs, uint32_t number)
{
	const struct rt_agent_site *site;
	struct hit h;

	if (!begin(&h, regs))
		return;
	site = &h.pool->site[number];
	h.probe = &h.pool->probe[site->point[0]];
	h.ip = site->address;
	h.passed = false;
	enter(&h);
	if (__builtin_expect(h.probe->kind & RT_PROBE_SAMPLED, 0) && !h.nested &&
	    h.thread->turn++ % RT_AGENT_TIMED == 0)
		h.began = now();
	for (uint32_t i = 0; i < RT_AGENT_SITE_POINTS && site->point[i]; i++) {
		h.point = site->point[i];
		h.spot = RT_AGENT_SPOT(number, i);
		h.probe = &h.pool->probe[h.point];
		h.count = &h.thread->count[h.point];
		h.time = 0;
		h.counter = 0;
		h.flags = 0;
		h.passed = false;
		if (h.probe->kind & RT_PROBE_RETURN)
			on_enter(&h);
		else if (h.probe->look)
			on_freed(&h);
		else
			on_hit(&h);
	}
	if (__builtin_expect(h.began != 0, 0))
		take_time(&h);
	leave(&h);
}

/* For who asks for all registers: of these, no more than is here. */
static SELDOM void hit_in_full(const struct plain_hit *hit)
{
	const struct rt_agent_shared *pool = (void *)rt_agent_head.pool;
	struct hit_regs regs;

	regs.reg[RSP] = (uint64_t)(uintptr_t)(hit + 1);
	regs.reg[RBP] = hit->rbp;
	regs.reg[pool->probe[pool->site[hit->number].point[0]].reg] = hit->object;
	rt_agent_hit(&regs, (uint32_t)hit->number);
}

/* The stack of a plain hit, if it is known at once; 0: it is not. */
static inline uint32_t find_plain(struct rt_agent_thread *t, const struct memo_search *s)
{
	const struct rt_agent_forks *f = forks_of(t, s);
	const struct rt_agent_memo *m;

	if (!are_here(f, s))
		return 0;
	/* to most spots all ways are the same as long as none else was seen */
	m = memo_of(t, memo_key(s, f->nr ? turns(f, s->sp) : 0));
	HOLD(m);
	return is_same(m, s) ? m->id : 0;
}

/*
 * A hit at a plain site. Nearly all are as the last ones were: all that could be odd is looked at before anything is
 * told. Whatever is odd is told by rt_agent_hit(), which says the same of a usual hit.
 */
FROM_PLAIN_STUB void rt_agent_plain(void);
FROM_PLAIN_STUB void rt_agent_plain(void)
{
	const struct plain_hit *hit = PLAIN_HIT;
	const struct rt_agent_shared *pool = (void *)rt_agent_head.pool;
	struct rt_agent_process *process = (void *)rt_agent_head.process;
	const struct rt_agent_site *site = &pool->site[(uint32_t)hit->number];
	const struct rt_agent_plain *p = &site->plain;
	const uint64_t sp = (uint64_t)(uintptr_t)(hit + 1);
	const uint64_t object = hit->object + (uint64_t)p->object, at = object + (uint64_t)(int64_t)p->counter;
	const uint32_t point = site->point[0];
	uint64_t v = 0, time = 0, aux = 0;
	uint32_t stack, tail = p->tail;
	struct rt_agent_thread *t;
	struct memo_search s;

	if (is_off())
		return;
	t = known(process, thread_pointer() | 1);
	if (!t || t->entered || !object || !sees_room(t)) {
		hit_in_full(hit);
		return;
	}
	fetch_counter(at);
	store(t->entered, (uint64_t)1);
	search_init(&s, sp, hit->rbp, RT_AGENT_SPOT(hit->number, 0), load(process->code));
	stack = find_plain(t, &s);
	if (!stack) {
		store(t->entered, (uint64_t)0);
		hit_in_full(hit);
		return;
	}
	count(&t->count[point].hits);
	if (__builtin_expect(p->class_at, 0))
		read_class(object, p->class_at, &aux);
	if (p->counter_size) {
		/* nearly all are so wide, and what is known here is not asked for on the way */
		bool read = __builtin_expect(p->counter_size == 4, 1)
				    ? read_count(t, false, at, 4, &time, &v)
				    : read_count(t, false, at, p->counter_size, &time, &v);

		tail |= RT_AGENT_EVENT_TAIL(0, read ? RT_EV_COUNT_READ : RT_EV_COUNT_FAULT);
		if (__builtin_expect(!read, 0))
			count(&t->count[point].faults);
	}
	put_event(t, p->head, tail,
		  &(const struct rt_wire_event){
			  .head.time_ns = time,
			  .object = object,
			  .aux = aux,
			  .sp = sp + (uint64_t)(int64_t)p->sp,
			  .count = (uint32_t)v + (uint32_t)(int32_t)p->counter_bias,
			  .point = point,
			  .stack = stack,
		  });
	store(t->entered, (uint64_t)0);
}

/* The last walk from this site and depth, which the next is mostly the same as. */
static inline uint32_t *front_of(struct rt_agent_thread *t, uint64_t number, uint64_t sp)
{
	return &t->front[(number + (sp >> 4)) & ((1u << RT_AGENT_FRONT_BITS) - 1)];
}

/* Whose stack is the one of a plain hit, if that is known at once; or NULL. */
static inline struct rt_agent_memo *find_front(struct rt_agent_thread *t, uint32_t *front, const struct memo_search *s)
{
	struct rt_agent_memo *m = (void *)((char *)t->memo + *front);
	const struct rt_agent_forks *f;

	if (__builtin_expect(m->id && is_same(m, s), 1))
		return m;
	f = forks_of(t, s);
	if (!are_here(f, s))
		return NULL;
	m = memo_of(t, memo_key(s, turns(f, s->sp)));
	if (!m->id || !is_same(m, s))
		return NULL;
	*front = (uint32_t)((char *)m - (char *)t->memo);
	return m;
}

/* A plain hit at which something is not as at the last ones from there; its thread says that it is in a hook. */
static SELDOM void count_in_full(const struct plain_hit *hit, struct rt_agent_thread *t)
{
	const struct rt_agent_shared *pool = (void *)rt_agent_head.pool;
	const struct rt_agent_site *site = &pool->site[(uint32_t)hit->number];
	const struct rt_probe *probe = &pool->probe[site->point[0]];
	struct rt_agent_process *process = (void *)rt_agent_head.process;
	const uint64_t sp = (uint64_t)(uintptr_t)(hit + 1), object = hit->object + (uint64_t)site->count.object;
	struct rt_agent_memo *m;
	struct memo_search s;
	struct tallying y;

	search_init(&s, sp, hit->rbp, RT_AGENT_SPOT(hit->number, 0), load(process->code));
	m = object ? find_front(t, front_of(t, hit->number, sp), &s) : NULL;
	if (m) {
		tallying_init(&y, process, t, object, probe->type);
		y.part = part_of(m->id, t);
		tally(&y, probe, &t->count[site->point[0]]);
		m->part = (uint16_t)(y.used * sizeof(struct rt_agent_tally_part));
	}
	store(t->entered, (uint64_t)0);
	if (!m)
		hit_in_full(hit);
}

/* rt_agent_plain() of counting mode: nearly all hits are of an object that is known, at a place that did that before.
 */
FROM_PLAIN_STUB void rt_agent_plain_count(void);
FROM_PLAIN_STUB void rt_agent_plain_count(void)
{
	const struct plain_hit *hit = PLAIN_HIT;
	const uint64_t sp = (uint64_t)(uintptr_t)(hit + 1);
	const struct rt_agent_shared *pool;
	struct rt_agent_process *process;
	const struct rt_agent_plain_count *p;
	struct rt_agent_tallies *table;
	const struct rt_agent_thread_key *home;
	struct rt_agent_tally_part *part;
	struct rt_agent_thread *t;
	struct rt_agent_tally *e;
	struct rt_agent_memo *m;
	uint64_t key, object, was, next;

	if (__builtin_expect(is_off(), 0))
		return;
	process = (void *)rt_agent_head.process;
	key = thread_pointer() | 1;
	home = PLACE(process, key, 0);
	HOLD(home);
	if (__builtin_expect(load(home->key) != key, 0))
		goto unknown;
	t = (void *)(rt_agent_head.pool + home->thread);
	if (__builtin_expect(t->entered != 0, 0))
		goto unknown;
	HOLD(t);
	store(t->entered, (uint64_t)1);
	m = (void *)((char *)t->memo + *front_of(t, hit->number, sp));
	HOLD(m);
	if (__builtin_expect(m->chained, 0))
		goto odd;
	if (__builtin_expect(!is_from(m, sp, hit->rbp, RT_AGENT_SPOT(hit->number, 0), process->code), 0))
		goto odd;
	if (__builtin_expect(!are_words(m, 0, sp), 0))
		goto odd;
	pool = (void *)rt_agent_head.pool;
	p = &pool->site[hit->number].count;
	HOLD(p);
	process = (void *)rt_agent_head.process;
	table = tallies_of(process);
	object = hit->object + (uint64_t)p->object;
	e = &rt_agent_tally_entries(table)[RT_AGENT_TALLY_HASH(object, p->mark) >> 32 & table->mask];
	HOLD(e);
	was = load(e->state);
	next = was + p->change;
	if (__builtin_expect(RT_AGENT_TALLY_KIND(next) != RT_AGENT_TALLY_LIVE, 0) ||
	    __builtin_expect(e->object != object, 0))
		goto odd;
	part = (void *)((char *)e->part + m->part);
	HOLD(part);
	/* a place is of one type: it is the object's if the place is */
	if (__builtin_expect(part->place != (t->part | m->id), 0) || __builtin_expect(!(next >> 32), 0))
		goto odd;
	add_own(part);
	e->last_ns = pool->clock_ns;
	if (__builtin_expect(!exchange(e->state, &was, next), 0)) {
		/* not counted yet: it will be, where it belongs by now */
		asm volatile("decl %0" : "+m"(part->own));
		goto odd;
	}
	count(&t->sums.all[m->id]);
	store(t->entered, (uint64_t)0);
	return;
odd:
	count_in_full(hit, t);
	return;
unknown:
	hit_in_full(hit);
}

/* An unwinder is about to walk the stack of this thread. */
void rt_agent_unwind(const struct hit_regs *regs, uint32_t number);
void rt_agent_unwind(const struct hit_regs *regs, uint32_t number)
{
	struct hit h;

	if (begin(&h, regs))
		lift_returns(&h, number);
	else
		lift_all();
}

/* It has come to its end: all frames above this one live on. */
void rt_agent_unwound(const struct hit_regs *regs, uint32_t number);
void rt_agent_unwound(const struct hit_regs *regs, uint32_t number)
{
	struct hit h;

	if (begin(&h, regs))
		put_returns_back(&h);
}

/* The return address of the call whose thunk is `number`. */
uint64_t rt_agent_returned(const struct hit_regs *regs, uint32_t number);
uint64_t rt_agent_returned(const struct hit_regs *regs, uint32_t number)
{
	const struct rt_agent_shared *pool = (void *)rt_agent_head.pool;
	uint64_t slot = regs->reg[RSP] - 8;
	struct hit h;

	if (begin(&h, regs)) {
		h.ip = 0;
		h.sp = regs->reg[RSP];
		enter(&h);
		leave_all(&h, slot, regs->reg[RAX]);
		leave(&h);
	}
	return pool->return_address[number - THUNK_NUMBER];
}

/* The dynamic linker has changed what is mapped, or is about to: the tracer wants to look while the thread stands. */
void rt_agent_stop(const struct hit_regs *regs, uint32_t number);
void rt_agent_stop(const struct hit_regs *regs, uint32_t number)
{
	struct rt_agent_process *p = (void *)rt_agent_head.process;
	const struct rt_agent_thread *t;
	uint64_t mine, state, start = now();

	if (is_off())
		return;
	t = known(p, thread_pointer() | 1);
	if (p->r_state && load_u32(p->r_state, &state) && state)
		return;               /* in the middle of its work */
	p->stop_tid = t ? t->tid : 0; /* one at a time: the linker has a lock */
	mine = __atomic_add_fetch(&p->stop_asked, 1, __ATOMIC_ACQ_REL);
	while (load(p->stop_done) < mine && !is_off() && now() - start < PATIENCE)
		relax();
}
