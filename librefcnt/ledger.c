/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <string.h>

#include "ledger.h"
#include "report.h"
#include "stack.h"
#include "thread.h"

/* so far back an obvious get is looked for before the next full fold */
#define GLANCE 8

static struct rc_shard shards[RC_SHARDS];
static uint64_t last_id;
uint64_t rc_unkept, rc_unseen;
uint16_t rc_generation;

void rc_ledger_init(void)
{
	for (unsigned i = 0; i < RC_SHARDS; i++)
		pthread_mutex_init(&shards[i].lock, NULL);
}

static uint64_t hash_of(uintptr_t address)
{
	return (uint64_t)(address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static struct rc_shard *shard_of(uintptr_t address)
{
	return &shards[hash_of(address) % RC_SHARDS];
}

static struct rc_object **bucket_of(const struct rc_shard *s, uintptr_t address)
{
	return &s->buckets[hash_of(address) / RC_SHARDS & (s->n_buckets - 1)];
}

static struct rc_object *look_up(const struct rc_shard *s, uintptr_t address)
{
	struct rc_object *o = s->n_buckets ? *bucket_of(s, address) : NULL;

	while (o && o->address != address)
		o = o->next;
	return o;
}

static size_t power_of_two(size_t size)
{
	size_t power = 32;

	while (power < size)
		power *= 2;
	return power;
}

static bool grow_buckets(struct rc_shard *s)
{
	struct rc_object **old = s->buckets, **now;
	size_t n = s->n_buckets, more = n ? 2 * n : 64;

	now = rc_pool_take(&s->pool, more * sizeof(*now));
	if (!now)
		return n != 0; /* longer chains, then */
	memset(now, 0, more * sizeof(*now));
	s->buckets = now;
	s->n_buckets = more;
	for (size_t i = 0; i < n; i++) {
		for (struct rc_object *o = old[i], *next; o; o = next) {
			struct rc_object **b = bucket_of(s, o->address);

			next = o->next;
			o->next = *b;
			*b = o;
		}
	}
	if (old)
		rc_pool_give(&s->pool, old, n * sizeof(*old));
	return true;
}

static void forget(struct rc_shard *s, struct rc_object *o)
{
	struct rc_object **at = bucket_of(s, o->address);

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	s->n_objects--;
	if (o->ops)
		rc_pool_give(&s->pool, o->ops, power_of_two(o->room * sizeof(*o->ops)));
	rc_pool_give(&s->pool, o, power_of_two(sizeof(*o)));
}

static void bury(struct rc_shard *s, struct rc_object *o)
{
	struct rc_object **place = &s->dead[s->next_dead++ % RC_DEAD];

	if (*place)
		forget(s, *place);
	*place = o;
	o->dead = true;
}

static void exhume(struct rc_shard *s, const struct rc_object *o)
{
	for (unsigned i = 0; i < RC_DEAD; i++)
		if (s->dead[i] == o)
			s->dead[i] = NULL;
}

/* Drops the older half of what is paired. -> operations that went */
static uint32_t fold(struct rc_object *o)
{
	uint32_t paired = 0, gone = 0, n = 0;

	rc_ledger_match(o);
	for (uint32_t i = 0; i < o->n; i++)
		paired += o->ops[i].closed;
	for (uint32_t i = 0; i < o->n; i++) {
		if (o->ops[i].closed && gone < paired / 2)
			gone++;
		else
			o->ops[n++] = o->ops[i];
	}
	o->n = n;
	o->folded += gone;
	return gone;
}

static bool grow(struct rc_shard *s, struct rc_object *o)
{
	uint32_t room = o->room ? 2 * o->room : RC_LOG_FIRST;
	struct rc_op *ops;

	if (room > RC_LOG_MOST)
		return false;
	ops = rc_pool_take(&s->pool, power_of_two(room * sizeof(*ops)));
	if (!ops)
		return false;
	if (o->ops) {
		memcpy(ops, o->ops, o->n * sizeof(*ops));
		rc_pool_give(&s->pool, o->ops, power_of_two(o->room * sizeof(*ops)));
	}
	o->ops = ops;
	o->room = room;
	return true;
}

/* The get that this put gives back, where it is certain or plain to see. */
static struct rc_op *obvious_get(struct rc_object *o, const struct rc_op *put)
{
	const struct rc_stack *stack = rc_stack_of(put->stack);
	uint32_t looked = 0;

	for (uint32_t i = o->n; i-- > 0;) {
		struct rc_op *get = &o->ops[i];
		const struct rc_stack *other;

		if (get->kind == RC_PUT || get->closed)
			continue;
		if (put->key) {
			if (get->key == put->key)
				return get;
			continue;
		}
		if (get->key || ++looked > GLANCE)
			continue;
		other = rc_stack_of(get->stack);
		if (stack && other && get->tid == put->tid && stack->n == other->n && stack->outer == other->outer &&
		    stack->n > 1)
			return get;
	}
	return NULL;
}

static void note(struct rc_shard *s, struct rc_object *o, const struct rc_call *c, enum rc_kind kind, uint32_t count)
{
	struct rc_op op = { .key = c->key,
			    .dir = c->dir,
			    .stack = c->stack,
			    .tid = rc_thread.tid,
			    .count = count,
			    .generation = rc_generation,
			    .kind = kind };
	struct rc_op *get;

	o->expected = count;
	o->without_cookie += c->wants_cookie && !c->key && kind != RC_NEW;
	if (o->n == o->room && (o->room < RC_LOG_FOLD || fold(o) < o->room / 4))
		grow(s, o);
	get = kind == RC_PUT ? obvious_get(o, &op) : NULL;
	if (o->n == o->room) { /* only counted; a put may be of a reference that is kept */
		if (kind == RC_PUT && !get && !c->key)
			get = rc_ledger_likeliest(o, &op, o->n);
		o->folded++;
		if (kind != RC_PUT)
			o->uncounted++;
		else if (get)
			get->closed = 1;
		else if (o->uncounted)
			o->uncounted--;
		return;
	}
	if (get) {
		get->closed = op.closed = 1;
	} else if (kind == RC_PUT && c->key) { /* of one that is only counted: why_not_held() */
		op.closed = 1;
		o->uncounted -= o->uncounted > 0;
	}
	o->ops[o->n++] = op;
}

void rc_ledger_new(const struct rc_call *c)
{
	uintptr_t address = (uintptr_t)c->r;
	struct rc_shard *s = shard_of(address);
	struct rc_object *o;

	refcnt_count_init(c->r);
	pthread_mutex_lock(&s->lock);
	o = look_up(s, address);
	if (o) { /* the address again: what was is over */
		if (!o->dead && !__atomic_load_n(&rc_unseen, __ATOMIC_RELAXED))
			rc_report_wrong(o, c, "MADE AGAIN",
					"held, and a new object begins there: freed, or begun twice");
		exhume(s, o);
		forget(s, o);
	}
	o = NULL;
	if (s->n_objects < 2 * s->n_buckets || grow_buckets(s))
		o = rc_pool_take(&s->pool, power_of_two(sizeof(*o)));
	if (o) {
		struct rc_object **b = bucket_of(s, address);

		*o = (struct rc_object){ .next = *b,
					 .address = address,
					 .object = c->object,
					 .cls = c->cls->kept,
					 .id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED) };
		*b = o;
		s->n_objects++;
		note(s, o, c, RC_NEW, 1);
	} else {
		__atomic_add_fetch(&rc_unkept, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&s->lock);
}

/* An object that was not kept is not accused of being foreign. */
static bool may_be_ours(void)
{
	return __atomic_load_n(&rc_unkept, __ATOMIC_RELAXED) != 0;
}

/* What must be so before the operation; the shard is locked. -> may it go on? */
static bool audit(struct rc_object *o, const struct rc_call *c, enum rc_kind kind)
{
	uint32_t now;

	if (!o && may_be_ours())
		return true;
	if (!o) {
		rc_report_foreign(c, kind);
		return false;
	}
	if (o->dead) {
		rc_report_wrong(o, c, kind == RC_PUT ? "EXTRA PUT" : "GET ON ZERO",
				kind == RC_PUT ? "put after the last reference was given back"
					       : "get after the last reference was given back");
		return false;
	}
	if (o->cls != c->cls->kept) {
		rc_report_wrong(o, c, "WRONG CLASS", "used as an object of another class");
		return false;
	}
	now = refcnt_count_read(c->r);
	if (now != o->expected && !o->accused && !__atomic_load_n(&rc_unseen, __ATOMIC_RELAXED)) {
		o->accused = true;
		rc_report_count(o, c, now);
	}
	return true;
}

/* Why is it no reference that the put gives back? NULL: it may be one. */
static const char *why_not_held(const struct rc_object *o, const struct rc_call *c)
{
	uint32_t gets = 0, puts = 0;

	if (!c->key && !c->at_home)
		return NULL;
	for (uint32_t i = o->n; i-- > 0;) {
		const struct rc_op *op = &o->ops[i];

		if (c->key && op->kind != RC_PUT && op->key == c->key)
			return op->closed ? "this reference was given back before" : NULL;
		gets += op->kind != RC_PUT && !op->key && !op->closed;
		puts += op->kind == RC_PUT && !op->key && !op->closed;
	}
	if (o->uncounted || __atomic_load_n(&rc_unseen, __ATOMIC_RELAXED))
		return NULL;
	if (c->key)
		return c->key == RC_EMPTY_COOKIE ? "its cookie is empty: nothing was taken with it"
						 : "nothing was taken by this handle or cookie";
	return gets > puts ? NULL : "by the address that all holders have in common (home), which is no reference";
}

static enum rc_outcome get_locked(struct rc_shard *s, const struct rc_call *c, bool not_zero)
{
	struct rc_object *o = look_up(s, (uintptr_t)c->r);
	uint32_t old;

	if (not_zero && o && o->dead)
		return RC_REFUSED;
	if (!audit(o, c, RC_GET))
		return RC_REFUSED;
	if (not_zero) {
		if (!refcnt_count_more_not_zero(c->r))
			return RC_REFUSED;
		old = refcnt_count_read(c->r) - 1;
	} else {
		old = refcnt_count_more(c->r);
	}
	if (!o)
		return RC_DONE;
	if (old == REFCNT_MAX)
		rc_report_wrong(o, c, "OVERFLOW", "the count saturates; this object is never released");
	note(s, o, c, RC_GET, refcnt_count_read(c->r));
	return RC_DONE;
}

enum rc_outcome rc_ledger_get(const struct rc_call *c, bool not_zero)
{
	struct rc_shard *s = shard_of((uintptr_t)c->r);
	enum rc_outcome outcome;

	pthread_mutex_lock(&s->lock);
	outcome = get_locked(s, c, not_zero);
	pthread_mutex_unlock(&s->lock);
	return outcome;
}

static enum rc_outcome put_locked(struct rc_shard *s, const struct rc_call *c)
{
	struct rc_object *o = look_up(s, (uintptr_t)c->r);
	const char *why;
	bool last;

	if (!audit(o, c, RC_PUT))
		return RC_REFUSED;
	why = o ? why_not_held(o, c) : NULL;
	if (why) {
		rc_report_wrong(o, c, "EXTRA PUT", why);
		return RC_REFUSED;
	}
	last = refcnt_count_less(c->r);
	if (!o)
		return last ? RC_LAST : RC_DONE;
	note(s, o, c, RC_PUT, refcnt_count_read(c->r));
	if (!last)
		return RC_DONE;
	bury(s, o);
	return RC_LAST;
}

enum rc_outcome rc_ledger_put(const struct rc_call *c)
{
	struct rc_shard *s = shard_of((uintptr_t)c->r);
	enum rc_outcome outcome;

	pthread_mutex_lock(&s->lock);
	outcome = put_locked(s, c);
	pthread_mutex_unlock(&s->lock);
	return outcome;
}

void rc_ledger_free(const struct rc_call *c)
{
	struct rc_shard *s = shard_of((uintptr_t)c->r);
	struct rc_object *o;

	pthread_mutex_lock(&s->lock);
	o = look_up(s, (uintptr_t)c->r);
	if (o && !o->dead) {
		rc_report_wrong(o, c, "FREED WHILE HELD", "its memory is given back before its last reference");
		bury(s, o);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Is it a handle of the object, that is held? */
static bool holds(const struct rc_object *o, uint64_t key)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (o->ops[i].key == key && o->ops[i].kind != RC_PUT && !o->ops[i].closed)
			return true;
	return false;
}

/* By the object's address, not its counter's, or by a handle: all shards are asked. */
struct rc_object *rc_ledger_find(const void *object)
{
	for (unsigned i = 0; i < RC_SHARDS; i++) {
		struct rc_shard *s = &shards[i];

		pthread_mutex_lock(&s->lock);
		for (size_t b = 0; b < s->n_buckets; b++)
			for (struct rc_object *o = s->buckets[b]; o; o = o->next)
				if (!o->dead && (o->object == object || holds(o, (uintptr_t)object)))
					return o;
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

void rc_ledger_unlock(const struct rc_object *o)
{
	pthread_mutex_unlock(&shard_of(o->address)->lock);
}

bool rc_ledger_each(bool waits, void (*fn)(struct rc_object *o, void *arg), void *arg)
{
	bool whole = true;

	for (unsigned i = 0; i < RC_SHARDS; i++) {
		struct rc_shard *s = &shards[i];

		if (waits) {
			pthread_mutex_lock(&s->lock);
		} else if (pthread_mutex_trylock(&s->lock)) {
			whole = false;
			continue;
		}
		for (size_t b = 0; b < s->n_buckets; b++)
			for (struct rc_object *o = s->buckets[b]; o; o = o->next)
				if (!o->dead)
					fn(o, arg);
		pthread_mutex_unlock(&s->lock);
	}
	return whole;
}

void rc_ledger_learn(bool waits)
{
	for (unsigned i = 0; i < RC_SHARDS; i++) {
		struct rc_shard *s = &shards[i];

		if (waits)
			pthread_mutex_lock(&s->lock);
		else if (pthread_mutex_trylock(&s->lock))
			continue;
		for (unsigned k = 0; k < RC_DEAD; k++)
			if (s->dead[k])
				rc_ledger_match(s->dead[k]);
		pthread_mutex_unlock(&s->lock);
	}
}

void rc_ledger_lock_all(void)
{
	for (unsigned i = 0; i < RC_SHARDS; i++)
		pthread_mutex_lock(&shards[i].lock);
}

void rc_ledger_unlock_all(void)
{
	for (unsigned i = RC_SHARDS; i-- > 0;)
		pthread_mutex_unlock(&shards[i].lock);
}

void rc_ledger_forked(void)
{
	rc_generation++;
	rc_unseen = 0;
}
