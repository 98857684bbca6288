/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The census: a conservative mark phase, as of a garbage collector, that counts
 * pointers instead of freeing anything.
 *
 *   1. roots (globals, stacks, registers) -> everything reachable, counting
 *      each slot that holds a pointer to an object
 *   2. from each object that was not reached: what only it holds
 *
 * A slot inside a traced object counts as that object's, wherever it was found.
 */
#include "engine/census.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/vec.h"
#include "engine/census_memory.h"

#define DEFAULT_BYTES (4ull << 30)
#define CHUNK (1u << 20)
#define UNKNOWN_SIZE 64u
#define AROUND_BELOW 64u /* memory without blocks: how much around a pointer is taken for its block */
#define AROUND_ABOVE 256u
#define KINDS 3
#define NOBODY UINT32_MAX
#define HOLDINGS 16u /* of one object that are told apart: enough for who holds whom */

struct object {
	uint64_t lo, hi; /* pointers into [lo, hi) are pointers to it */
	uint64_t address;
	uint32_t index; /* in the caller's array */
	bool known;     /* pointers to it are looked for: it lies in memory of the process */
	bool range;     /* as the kernel hands it out: see is_container() */
	bool members;   /* it is a struct: see may_point() */
	bool reached;
	bool queued;           /* its memory is looked through, or waits for it */
	uint32_t count[KINDS]; /* RT_HOLDER_GLOBAL - 1 ... */
	uint64_t slot[KINDS];
	uint32_t holdings; /* index + 1 of the first of its list */
	uint32_t holding_count;
};

/* Pointers from one traced object to another. */
struct holding {
	uint64_t holder, slot;
	uint32_t count;
	uint32_t next; /* index + 1 */
};

/* Memory that waits to be looked through; owner: object that alone leads here, or NOBODY. */
struct work {
	uint64_t lo, hi;
	uint32_t owner;
};

struct census {
	struct rt_census_memory memory;
	struct object *objects; /* sorted by lo */
	size_t count;
	uint64_t low, high; /* of all objects */
	RT_VEC(struct work) work;
	RT_VEC(struct holding) holdings;
	RT_VEC(struct rt_census_thread) threads;
	uint8_t *buffer; /* CHUNK bytes */
	bool nomem;
};

static void census_deinit(struct census *c)
{
	rt_census_memory_deinit(&c->memory);
	free(c->objects);
	rt_vec_deinit(&c->work);
	rt_vec_deinit(&c->holdings);
	rt_vec_deinit(&c->threads);
	free(c->buffer);
}

/* ---- threads ---- */

/* A thread inside exit() holds nothing in its registers any more; one that ends holds nothing at all. */
static void take_registers(struct rt_census_thread *t, const struct user_regs_struct *r)
{
	const uint64_t values[] = { r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp, r->r8,
				    r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15 };

	if (r->orig_rax == SYS_exit)
		return;
	t->sp = r->rsp;
	t->tls = r->fs_base;
	if (r->orig_rax == SYS_exit_group)
		return;
	memcpy(t->registers, values, sizeof(values));
	t->register_count = sizeof(values) / sizeof(values[0]);
}

static struct rt_error *take_threads(struct census *c, const struct rt_census_options *options)
{
	for (size_t i = 0; i < options->tid_count; i++) {
		struct rt_census_thread *t = rt_vec_add(&c->threads);
		struct user_regs_struct regs = { 0 };
		struct iovec iov = { &regs, sizeof(regs) };

		if (!t)
			return rt_error_nomem();
		t->tid = options->tids[i];
		if (ptrace(PTRACE_GETREGSET, t->tid, (void *)1 /* NT_PRSTATUS */, &iov) == 0)
			take_registers(t, &regs);
		if (options->stack_from && options->stack_from[i] > t->sp && t->sp)
			t->sp = options->stack_from[i];
	}
	return NULL;
}

/* ---- objects ---- */

static int by_address(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/*
 * How far the object reaches. A block of about its size is its own, and pointers to
 * what an allocator of the program's put before it (GObject's private data) mean it too.
 */
static void find_extent(struct census *c, struct object *o, uint32_t size, bool alone)
{
	const struct rt_region *r = rt_census_region(&c->memory, o->address);
	uint64_t lo, hi, slack = size < 512 ? 512 : size;
	bool dead;

	o->known = r || (size && o->address >= c->memory.low && o->address < c->memory.high);
	/* in memory that is not read, as a mapped file is */
	if (o->known && !r)
		o->hi = o->address + size;
	if (!r)
		return;
	if (r->kind == RT_REGION_HEAP && rt_census_chunk(r, o->address, &lo, &hi, &dead)) {
		if (!size || (alone && hi - lo <= size + slack)) {
			/* a pointer to the next header is the allocator's: to what lies behind */
			o->hi = hi - 8;
			if (alone && hi - lo <= (size ? size : 4096) + slack)
				o->lo = lo;
			return;
		}
	}
	o->hi = o->address + (size ? size : UNKNOWN_SIZE);
}

static bool same_chunk(const struct census *c, uint64_t a, uint64_t b)
{
	const struct rt_region *r = rt_census_region(&c->memory, a);
	uint64_t lo, hi;
	bool dead;

	return r && r->kind == RT_REGION_HEAP && rt_census_chunk(r, a, &lo, &hi, &dead) && b >= lo && b < hi;
}

static struct rt_error *take_objects(struct census *c, const struct rt_census_object *objects, size_t count)
{
	c->objects = calloc(count + 1, sizeof(c->objects[0]));
	if (!c->objects)
		return rt_error_nomem();
	c->count = count;
	for (size_t i = 0; i < count; i++)
		c->objects[i] = (struct object){ .lo = objects[i].address,
						 .address = objects[i].address,
						 .range = objects[i].range,
						 .members = objects[i].size && !objects[i].range,
						 .index = (uint32_t)i };
	qsort(c->objects, count, sizeof(c->objects[0]), by_address);
	for (size_t i = 0; i < count; i++) {
		struct object *o = &c->objects[i];
		bool alone = (!i || !same_chunk(c, o->address, o[-1].address)) &&
			     (i + 1 >= count || !same_chunk(c, o->address, o[1].address));

		find_extent(c, o, objects[o->index].size, alone);
	}
	c->low = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		struct object *o = &c->objects[i];

		/* neighbours do not overlap */
		if (i + 1 < count && o->hi > o[1].lo)
			o->hi = o[1].lo > o->lo ? o[1].lo : o->hi;
		if (o->known && o->lo < c->low)
			c->low = o->lo;
		if (o->known && o->hi > c->high)
			c->high = o->hi;
	}
	return NULL;
}

static struct object *object_at(const struct census *c, uint64_t addr)
{
	size_t lo = 0, hi = c->count;

	if (addr < c->low || addr >= c->high)
		return NULL;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->objects[mid].lo <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && c->objects[lo - 1].known && addr < c->objects[lo - 1].hi ? &c->objects[lo - 1] : NULL;
}

/* ---- marking ---- */

static void push(struct census *c, uint64_t lo, uint64_t hi, uint32_t owner)
{
	struct work work = { lo, hi, owner };

	if (!rt_vec_push(&c->work, work))
		c->nomem = true;
}

/* Queues the block that addr points into, unless it was before. */
static void reach_block(struct census *c, uint64_t addr, struct object *o, uint32_t owner)
{
	struct rt_region *r = rt_census_region(&c->memory, addr);
	uint64_t lo, hi, unit;
	bool dead;

	if (!r || r->kind != RT_REGION_HEAP || (o && o->queued))
		return;
	if (o)
		o->queued = true;
	if (r->first && addr >= r->chunk_start && addr < r->chunk_end) {
		if (!rt_census_chunk(r, addr, &lo, &hi, &dead) || (dead && !o))
			return;
		unit = (lo - 16 - r->start) / RT_UNIT;
		if (rt_bit(r->seen, unit))
			return;
		rt_bit_set(r->seen, unit);
		push(c, lo, hi, owner);
		return;
	}
	if (r->first && addr < r->chunk_start)
		return; /* the head of an arena: the allocator's own */
	lo = o ? o->lo : addr - r->start > AROUND_BELOW ? addr - AROUND_BELOW : r->start;
	hi = o ? o->hi : r->end - addr > AROUND_ABOVE ? addr + AROUND_ABOVE : r->end;
	if (hi > r->end)
		hi = r->end;
	lo &= ~(uint64_t)(RT_UNIT - 1);
	/* runs of units that were not looked through */
	for (uint64_t at = lo; at < hi;) {
		uint64_t from;

		for (; at < hi && rt_bit(r->seen, (at - r->start) / RT_UNIT); at += RT_UNIT)
			;
		for (from = at; at < hi && !rt_bit(r->seen, (at - r->start) / RT_UNIT); at += RT_UNIT)
			rt_bit_set(r->seen, (at - r->start) / RT_UNIT);
		if (from < at)
			push(c, from, at < hi ? at : hi, owner);
	}
}

static void count_slot(struct object *o, enum rt_holder where, uint64_t slot)
{
	unsigned kind = (unsigned)where - 1;

	if (!o->count[kind]++)
		o->slot[kind] = slot;
}

static void count_holding(struct census *c, struct object *o, const struct object *holder, uint64_t slot)
{
	struct holding *h;

	for (uint32_t i = o->holdings; i; i = h->next) {
		h = &c->holdings.data[i - 1];
		if (h->holder == holder->address) {
			h->count++;
			return;
		}
	}
	if (o->holding_count == HOLDINGS) {
		c->holdings.data[o->holdings - 1].count++;
		return;
	}
	h = rt_vec_add(&c->holdings);
	if (!h) {
		c->nomem = true;
		return;
	}
	*h = (struct holding){ holder->address, slot, 1, o->holdings };
	o->holdings = (uint32_t)c->holdings.len;
	o->holding_count++;
}

/*
 * Is what lies in the object its own? A range of the kernel may be a module's data, or what the allocator cuts its
 * blocks from: then it is only where these are.
 */
static bool is_container(const struct census *c, const struct object *o, uint64_t addr)
{
	const struct rt_region *r;

	if (!o->range)
		return true;
	r = rt_census_region(&c->memory, addr);
	return r && r->kind == RT_REGION_HEAP && !r->first;
}

/*
 * Pointers into a struct are to what pointers lie in as well, a link of a list or a part; those to the struct itself
 * may have a flag in them. Others are what is left of an old pointer under a short string: "R" over one to near memory
 * gives one to 0x...0052.
 */
static bool may_point(const struct object *o, uint64_t value)
{
	return !o->members || value % 8 == 0 || value - o->address < 8;
}

/* One word of memory at `slot`; where: what it counts as when it lies in no traced object. */
static void visit_word(struct census *c, uint64_t slot, uint64_t value, enum rt_holder where, uint32_t owner)
{
	struct object *o, *in;

	if (value < c->memory.low || value >= c->memory.high)
		return;
	o = object_at(c, value);
	if (o) {
		if (!may_point(o, value))
			return;
		in = where == RT_HOLDER_STACK ? NULL : object_at(c, slot);
		if (in && !is_container(c, in, slot))
			in = NULL;
		if (!in && owner != NOBODY)
			in = &c->objects[owner];
		if (!in)
			count_slot(o, where, slot);
		else if (in != o)
			count_holding(c, o, in, slot);
		/* what a lost object holds is not reached by anybody; it is looked through in its own name */
		if (owner == NOBODY)
			o->reached = true;
		/* a range may begin with what cannot be read (a stack's guard), or hold the allocator's blocks */
		if (o->range)
			reach_block(c, value, NULL, owner);
		if (is_container(c, o, value))
			reach_block(c, o->address, o, owner == NOBODY ? NOBODY : (uint32_t)(o - c->objects));
		return;
	}
	if (where == RT_HOLDER_GLOBAL) {
		const struct rt_region *r = rt_census_region(&c->memory, value);

		/* the allocator's bins lead to free memory, and to what lies before it */
		if (r && r->first && rt_census_is_header(r, value))
			return;
	}
	reach_block(c, value, NULL, owner);
}

static void visit_range(struct census *c, uint64_t lo, uint64_t hi, enum rt_holder where, uint32_t owner)
{
	lo = (lo + 7) & ~7ull;
	while (lo + 8 <= hi) {
		size_t want = hi - lo < CHUNK ? (size_t)(hi - lo) & ~(size_t)7 : CHUNK;
		const uint64_t *words = (const uint64_t *)(const void *)c->buffer;
		size_t got;

		/* blocks go through the cache, long runs would only empty it */
		if (want <= 4096)
			got = rt_census_read(&c->memory, lo, c->buffer, want) ? want : 0;
		else
			got = rt_census_read_long(&c->memory, lo, c->buffer, want) & ~(size_t)7;
		if (!got) { /* a page that cannot be read */
			lo = (lo & ~4095ull) + 4096;
			continue;
		}
		for (size_t i = 0; i < got / 8; i++)
			visit_word(c, lo + 8 * i, words[i], where, owner);
		lo += got;
	}
}

static void drain(struct census *c)
{
	while (c->work.len && !c->nomem) {
		struct work work = c->work.data[--c->work.len];

		visit_range(c, work.lo, work.hi, RT_HOLDER_HEAP, work.owner);
	}
}

static void visit_roots(struct census *c)
{
	for (size_t i = 0; i < c->threads.len; i++) {
		for (unsigned n = 0; n < c->threads.data[i].register_count; n++)
			visit_word(c, 0, c->threads.data[i].registers[n], RT_HOLDER_STACK, NOBODY);
	}
	for (size_t i = 0; i < c->memory.regions.len; i++) {
		const struct rt_region *r = &c->memory.regions.data[i];

		if (r->kind != RT_REGION_HEAP)
			visit_range(c, r->start, r->end,
				    r->kind == RT_REGION_STACK ? RT_HOLDER_STACK : RT_HOLDER_GLOBAL, NOBODY);
		drain(c);
	}
}

static void visit_lost(struct census *c)
{
	for (size_t i = 0; i < c->count && !c->nomem; i++) {
		struct object *o = &c->objects[i];

		if (!o->known || o->reached)
			continue;
		reach_block(c, o->address, o, (uint32_t)i);
		drain(c);
	}
}

/* ---- answers ---- */

static struct rt_error *emit(struct rt_event_sink *sink, enum rt_wire_kind kind, uint32_t wire_pid, uint64_t time_ns,
			     const struct rt_wire_held *what)
{
	struct rt_wire_held held = *what;

	held.head = (struct rt_wire_head){
		.size = sizeof(held), .kind = (uint8_t)kind, .time_ns = time_ns, .pid = wire_pid
	};
	return sink->record(sink, &held.head);
}

static struct rt_error *emit_mark(struct rt_event_sink *sink, uint32_t wire_pid, uint64_t time_ns, enum rt_mark mark)
{
	struct rt_wire_task task = {
		.head = { .size = sizeof(task), .kind = RT_WIRE_MARK, .time_ns = time_ns, .pid = wire_pid },
		.value = (int32_t)mark,
	};

	return sink->record(sink, &task.head);
}

static bool read_counter(struct census *c, const struct rt_census_object *o, uint32_t *ret)
{
	uint64_t value = 0;

	if (o->counter_offset == RT_COUNTER_UNKNOWN || !o->counter_size || o->counter_size > 8)
		return false;
	/* the low bytes come first; a count beyond 32 bits is none */
	if (!rt_census_read(&c->memory, o->address + (uint64_t)(int64_t)o->counter_offset, &value, o->counter_size))
		return false;
	*ret = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
	return true;
}

/* the allocator has its memory back: its end was not seen */
static bool was_freed(const struct census *c, const struct object *o)
{
	const struct rt_region *r = rt_census_region(&c->memory, o->address);
	uint64_t lo, hi;
	bool dead = false;

	return r && r->kind == RT_REGION_HEAP && rt_census_chunk(r, o->address, &lo, &hi, &dead) && dead;
}

static struct rt_error *answer(struct census *c, struct object *o, const struct rt_census_object *asked,
			       uint32_t wire_pid, uint64_t time_ns, struct rt_event_sink *sink)
{
	struct rt_wire_held held = { .object = o->address };
	bool any = false;

	if (read_counter(c, asked, &held.value)) {
		held.where = asked->counter_size;
		RT_TRY(emit(sink, RT_WIRE_COUNT, wire_pid, time_ns, &held));
	}
	/* not an address of this process: nothing can be said about who holds it */
	if (!o->known)
		return NULL;
	if (was_freed(c, o)) {
		held = (struct rt_wire_held){ .object = o->address, .where = RT_HOLDER_FREED };
		return emit(sink, RT_WIRE_HELD, wire_pid, time_ns, &held);
	}
	for (unsigned kind = 0; kind < KINDS; kind++) {
		if (!o->count[kind])
			continue;
		held.where = kind + 1;
		held.value = o->count[kind];
		held.slot = o->slot[kind];
		RT_TRY(emit(sink, RT_WIRE_HELD, wire_pid, time_ns, &held));
		any = true;
	}
	for (uint32_t i = o->holdings; i; i = c->holdings.data[i - 1].next) {
		const struct holding *h = &c->holdings.data[i - 1];

		held = (struct rt_wire_held){ .object = o->address,
					      .where = RT_HOLDER_OBJECT,
					      .value = h->count,
					      .slot = h->slot,
					      .holder = h->holder };
		RT_TRY(emit(sink, RT_WIRE_HELD, wire_pid, time_ns, &held));
		any = true;
	}
	if (any)
		return NULL;
	held = (struct rt_wire_held){ .object = o->address, .where = RT_HOLDER_NONE };
	return emit(sink, RT_WIRE_HELD, wire_pid, time_ns, &held);
}

static struct rt_error *look(struct census *c, pid_t pid, const struct rt_census_object *objects, size_t count,
			     const struct rt_census_options *options)
{
	c->buffer = malloc(CHUNK);
	if (!c->buffer)
		return rt_error_nomem();
	RT_TRY(take_threads(c, options));
	RT_TRY(rt_census_memory_init(&c->memory, pid, c->threads.data, c->threads.len,
				     options->max_bytes ? options->max_bytes : DEFAULT_BYTES));
	if (!c->memory.regions.len)
		return rt_error_new(RT_E_NO_PROCESS, "process %d has no memory any more", (int)pid);
	RT_TRY(rt_census_heap(&c->memory));
	RT_TRY(take_objects(c, objects, count));
	visit_roots(c);
	visit_lost(c);
	return c->nomem ? rt_error_nomem() : NULL;
}

struct rt_error *rt_census(uint32_t pid, uint32_t wire_pid, uint64_t time_ns, const struct rt_census_object *objects,
			   size_t count, const struct rt_census_options *options, struct rt_event_sink *sink)
{
	_cleanup_(census_deinit) struct census c = { 0 };
	/* the first thread may be gone while others run: any stopped one shows the memory */
	pid_t at = options->tid_count ? options->tids[0] : (pid_t)pid;
	struct rt_error *err = look(&c, at, objects, count, options);

	if (err) {
		if (err->code == RT_E_NOMEM)
			return err;
		rt_error_free(err);
		return emit_mark(sink, wire_pid, time_ns, RT_MARK_CENSUS_SKIPPED);
	}
	for (size_t i = 0; i < count && c.objects; i++)
		RT_TRY(answer(&c, &c.objects[i], &objects[c.objects[i].index], wire_pid, time_ns, sink));
	return emit_mark(sink, wire_pid, time_ns, RT_MARK_CENSUS);
}
