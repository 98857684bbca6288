/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "memory.h"
#include "option.h"
#include "stack.h"
#include "thread.h"

/* 1 M stacks at most, in addresses that only count as they are used */
#define SLOTS (1u << 20)
#define UNWOUND_FRAMES 48
/* _start and what libc has between that and main, or before a thread's function */
#define ROOT_FRAMES 3

static uint32_t *slots;
static struct rc_stack *stacks;
static uint32_t n_stacks; /* number 0 is none */
static uint32_t limit;
static bool can_unwind;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void rc_stack_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rc_stack_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* In a static program the unwinder knows no tables before the constructors without priority. What it loads, it loads
 * here, out of signal handlers' way.
 */
__attribute__((constructor)) static void warm_up(void)
{
	void *frames[2];

	(void)backtrace(frames, 2);
	can_unwind = true;
}

bool rc_stack_init(void)
{
	/* a quarter of the memory is theirs */
	limit = (uint32_t)(rc_option()->memory_bytes / 4 / sizeof(*stacks));
	limit = limit < SLOTS / 2 ? limit : SLOTS / 2;
	slots = rc_memory_reserve(SLOTS * sizeof(*slots));
	stacks = rc_memory_reserve((limit + 1) * sizeof(*stacks));
	if (!stacks)
		slots = NULL;
	return slots;
}

/* A sum whose terms do not wait for each other: a walk is as long as the chain of what waits. */
static uint64_t term(unsigned i, const void *p)
{
	return (uintptr_t)p * (UINT64_C(0x9e3779b97f4a7c15) + 2 * UINT64_C(0x632be59bd9b4e019) * i);
}

static uint64_t finish(uint64_t sum)
{
	return (sum ^ sum >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

static bool same_frames(void *const *a, void *const *b, unsigned n)
{
	uintptr_t differ = 0;

	for (unsigned i = 0; i < n; i++)
		differ |= (uintptr_t)a[i] ^ (uintptr_t)b[i];
	return !differ;
}

/* -> number of what has the key, 0 */
static uint32_t find(uint64_t hash, void *const *key, unsigned n, bool walked)
{
	for (uint32_t i = (uint32_t)(hash >> 20);; i++) {
		uint32_t number = __atomic_load_n(&slots[i % SLOTS], __ATOMIC_ACQUIRE);
		const struct rc_stack *s = &stacks[number];

		if (!number)
			return 0;
		if (s->hash == hash && s->n_key == n && (s->kind < RC_STACK_UNWOUND) == walked &&
		    same_frames(s->frames, key, n))
			return number;
	}
}

static uint32_t add(const struct rc_stack *stack)
{
	uint32_t number = 0;

	rc_stack_lock();
	number = find(stack->hash, stack->frames, stack->n_key, stack->kind < RC_STACK_UNWOUND);
	if (!number && n_stacks < limit) {
		uint32_t i = (uint32_t)(stack->hash >> 20);

		number = ++n_stacks;
		stacks[number] = *stack;
		while (slots[i % SLOTS])
			i++;
		__atomic_store_n(&slots[i % SLOTS], number, __ATOMIC_RELEASE);
	}
	rc_stack_unlock();
	return number;
}

static uint64_t hash_of(void *const *frames, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += term(i, frames[i]);
	return finish(sum);
}

static void set_frames(struct rc_stack *s, void *const *frames, unsigned n)
{
	s->cut = n > RC_FRAMES;
	s->n = (uint8_t)(n < RC_FRAMES ? n : RC_FRAMES);
	memcpy(s->frames, frames, s->n * sizeof(*frames));
	s->outer = hash_of(frames + 1, s->n ? s->n - 1u : 0);
}

/* By the tables, from ra on. -> number of frames, 0 when ra is not met */
static unsigned unwind(void *ra, void **frames)
{
	void *all[UNWOUND_FRAMES];
	int error = errno;
	int n = can_unwind ? backtrace(all, UNWOUND_FRAMES) : 0, from = 0;

	errno = error;
	while (from < n && all[from] != ra)
		from++;
	for (int i = from; i < n; i++)
		frames[i - from] = all[i];
	/* the address above the outermost frame of a thread */
	while (n > from && !all[n - 1])
		n--;
	return (unsigned)(n - from);
}

static uint32_t keep(void *const *frames, unsigned n, enum rc_stack_kind kind)
{
	struct rc_stack s = { .kind = (uint8_t)kind };
	uint32_t number;

	set_frames(&s, frames, n);
	s.n_key = s.n;
	s.hash = hash_of(s.frames, s.n);
	s.hash += kind == RC_STACK_AT_FAULT; /* the same addresses mean another thing */
	number = find(s.hash, s.frames, s.n, false);
	return number ? number : add(&s);
}

static uint32_t keep_unwound(void *const *frames, unsigned n)
{
	return keep(frames, n, RC_STACK_UNWOUND);
}

/* Seen for the first time: what do the tables say? */
static uint32_t judge(uint64_t hash, void *const *walked, unsigned n)
{
	struct rc_stack s = { .hash = hash, .n_key = (uint8_t)n, .kind = RC_STACK_WALKED };
	void *frames[UNWOUND_FRAMES];
	unsigned truth = unwind(walked[0], frames);
	bool same = truth >= n && !memcmp(frames, walked, n * sizeof(*frames));

	if (same && (n == RC_FRAMES || truth - n <= ROOT_FRAMES)) {
		set_frames(&s, frames, truth);
		return add(&s);
	}
	memcpy(s.frames, walked, n * sizeof(*frames));
	s.kind = RC_STACK_DENIED;
	(void)add(&s);
	return truth ? keep_unwound(frames, truth) : keep_unwound(walked, 1);
}

__attribute__((no_sanitize("address", "thread", "undefined"))) uint32_t rc_stack_capture(void *ra, void *frame)
{
	void *frames[UNWOUND_FRAMES];
	uintptr_t fp = *(uintptr_t *)frame, before = (uintptr_t)frame, top = rc_thread.stack_top;
	/* of another stack (a coroutine's, a signal handler's) nobody knows the bounds: no pointer is followed there */
	bool known = before >= rc_thread.stack_low && before < top;
	enum rc_stacks how = rc_option()->stacks;
	uint64_t hash = term(0, ra);
	uint32_t number;
	unsigned n = 1;

	if (!slots)
		return 0;
	frames[0] = ra;
	if (how == RC_STACKS_NONE)
		return keep_unwound(frames, 1);
	if (how == RC_STACKS_UNWIND || (how == RC_STACKS_AUTO && !known)) {
		n = unwind(ra, frames);
		return n ? keep_unwound(frames, n) : 0;
	}
	while (known && n < RC_FRAMES && fp > before && fp + 2 * sizeof(fp) <= top && !(fp % sizeof(fp))) {
		void *const *link = (void *const *)fp;

		if (!link[1])
			break;
		frames[n] = link[1];
		hash += term(n++, link[1]);
		before = fp;
		fp = (uintptr_t)link[0];
	}
	hash = finish(hash);
	number = find(hash, frames, n, true);
	if (number && stacks[number].kind == RC_STACK_WALKED)
		return number;
	if (how == RC_STACKS_FRAME_POINTERS) {
		struct rc_stack s = { .hash = hash, .n_key = (uint8_t)n, .kind = RC_STACK_WALKED };

		set_frames(&s, frames, n);
		s.cut = n == RC_FRAMES;
		return add(&s);
	}
	if (!number)
		return judge(hash, frames, n);
	n = unwind(ra, frames);
	return n ? keep_unwound(frames, n) : 0;
}

uint32_t rc_stack_capture_at(void *pc)
{
	void *frames[UNWOUND_FRAMES];
	unsigned n = unwind(pc, frames);

	if (!slots)
		return 0;
	frames[0] = pc;
	return keep(frames, n ? n : 1, RC_STACK_AT_FAULT);
}

const struct rc_stack *rc_stack_of(uint32_t number)
{
	return number ? &stacks[number] : NULL;
}
