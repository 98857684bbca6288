/* SPDX-License-Identifier: GPL-2.0-only */
/* Healthy programs that do what is rare: `odd NAME`. Each prints what it saw. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <refcnt/refcnt.h>

#define NOINLINE __attribute__((noinline))
#define END() __asm__ volatile("" ::: "memory")

/* an object with an object in it, which has a counter of its own, and begins where it begins */
struct part {
	struct refcnt refs;
	int number;
};
struct whole {
	struct part first;
	struct refcnt refs;
	struct part last;
	char large[];
};

static int parts, wholes;

static void part_release(struct part *p)
{
	__atomic_add_fetch(&parts, 1, __ATOMIC_RELAXED);
}
REFCNT_DEFINE(part, struct part, refs, part_release);

REFCNT_DECLARE(whole, struct whole);
static void whole_release(struct whole *w)
{
	wholes++;
	whole_dealloc(w);
}
REFCNT_DEFINE(whole, struct whole, refs, whole_release);

NOINLINE static struct whole *make(size_t extra)
{
	struct whole *w = whole_alloc_more(extra);

	if (!w)
		abort();
	return w;
}

NOINLINE static void inner(void)
{
	struct whole *w = make(0), *v = whole_get(w);
	struct part *first = part_init(&w->first), *last = part_init(&w->last);
	struct part *mine = part_get(&v->first), *yours = part_get(last), *known;

	mine->number = 1;
	yours->number = 2;
	whole_put(v);
	known = part_get_not_zero(part_home(last));
	printf("numbers %d %d, counts %u %u %u\n", w->first.number, w->last.number, part_count(first), part_count(last),
	       whole_count(w));
	part_put(known);
	part_put(mine);
	part_put(yours);
	part_put(first);
	part_put(last);
	printf("parts %d, wholes %d\n", parts, wholes);
	whole_put(w);
	printf("parts %d, wholes %d\n", parts, wholes);
}

/* what a daemon does; the next file has the number that something else had */
NOINLINE static void closed(void)
{
	static const char text[] = "the program's own file";
	struct whole *w = make(0), *v;
	char path[] = "/tmp/refcnt-odd-XXXXXX", have[64] = "";
	int fd;

	for (fd = 3; fd < 1024; fd++)
		close(fd);
	fd = mkstemp(path);
	unlink(path);
	if (fd < 0 || write(fd, text, sizeof(text)) < 0)
		abort();
	w->first.number = 5;
	v = whole_get(w);
	v->last.number = 6;
	printf("numbers %d %d, other address %d\n", v->first.number, w->last.number, v != w);
	(void)!pread(fd, have, sizeof(have), 0);
	printf("%s\n", have);
	whole_put(v);
	whole_put(w);
}

/* a large object is given back, and another has its memory: of zeroes */
NOINLINE static void large(void)
{
	enum { SIZE = 2 << 20, ROUNDS = 40 };
	long used = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct whole *w = make(SIZE - (i % 2) * 5000), *v = whole_get(w);

		for (int k = 0; k < SIZE - 5000; k += 1000) {
			used += w->large[k];
			v->large[k] = 'x';
		}
		used += w->large[0] != 'x';
		whole_put(w);
		whole_put(v);
	}
	printf("wholes %d, not zero %ld\n", wholes, used);
}

NOINLINE static void too_large(void)
{
	volatile size_t most = SIZE_MAX;

	printf("none %d %d %d\n", !whole_alloc_more(most), !whole_alloc_more(most - sizeof(struct whole) + 1),
	       !whole_alloc_more(most / 2));
}

/* nothing of it is the program's failure */
NOINLINE static void keeps_errno(void)
{
	struct whole *w, *v;

	errno = 77;
	w = make(0);
	v = whole_get(w);
	whole_put(v);
	whole_put(w);
	printf("errno %d\n", errno);
}

/* on a stack that is not the thread's, by code that has something else where frame pointers are */
static ucontext_t back, there;

static void on_other_stack(void)
{
	struct whole *w = make(0), *v = whole_get(w);

	whole_put(v);
	whole_put(w);
}

NOINLINE static void coroutine(void)
{
	size_t size = 64 << 10;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = size;
	there.uc_link = &back;
	makecontext(&there, on_other_stack, 0);
#ifdef __x86_64__
	/* above that stack, below the thread's, and nothing is there */
	there.uc_mcontext.gregs[REG_RBP] = ((long)&size - (3L << 30)) & -16;
#endif
	swapcontext(&back, &there);
	printf("wholes %d\n", wholes);
}

/* the program's own limits */
NOINLINE static void limited(void)
{
	struct rlimit limit = { 1 << 20, 1 << 20 };
	struct whole *w, *v;

	setrlimit(RLIMIT_FSIZE, &limit);
	w = make(0);
	v = whole_get(w);
	w->first.number = 3;
	printf("number %d, other address %d\n", v->first.number, v != w);
	whole_put(v);
	whole_put(w);
	w = make(2 << 20);
	whole_put(w);
	printf("wholes %d\n", wholes);
}

/* addresses come round while threads take and give */
static struct whole *shared;

static void *take_and_give(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		struct whole *w = whole_get(shared);

		if (w->first.number != 9)
			abort();
		whole_put(w);
	}
	return NULL;
}

NOINLINE static void around(void)
{
	pthread_t threads[4];

	shared = make(0);
	shared->first.number = 9;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, take_and_give, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("count %u\n", whole_count(shared));
	whole_put(shared);
}

/* asked while others work, who ask as well; no order of locks is wrong */
static void *ask(void *arg)
{
	for (int i = 0; i < 300; i++) {
		struct whole *w = whole_get(shared);

		refcnt_print_holders(w);
		(void)refcnt_report();
		whole_put(w);
	}
	return NULL;
}

static void *fault(void *arg)
{
	for (int i = 0; i < 300; i++) {
		struct part *p = part_init(malloc(sizeof(*p)));

		part_put(p);
		part_put(p); /* reported, with the lock of its shard */
		free(p);
	}
	return NULL;
}

NOINLINE static void asked(void)
{
	pthread_t threads[4];

	shared = make(0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i % 2 ? ask : fault, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	whole_put(shared);
	printf("answered\n");
}

/* with counters behind, and before, what C++ would call a base */
NOINLINE static void steal(void)
{
	struct whole *w = make(0), *v = NULL;

	v = whole_steal(&w);
	printf("none %d, count %u\n", !w, whole_count(v));
	whole_swap(&w, &v);
	whole_put_at(&v);
	whole_put_at(&w);
	printf("wholes %d\n", wholes);
}

/* a daemon that leaks */
NOINLINE static void moved(void)
{
	(void)!make(0);
	if (chdir("/"))
		abort();
}

static const struct {
	const char *name;
	void (*fn)(void);
} odd[] = {
	{ "inner", inner },       { "closed", closed },       { "large", large },     { "too-large", too_large },
	{ "errno", keeps_errno }, { "coroutine", coroutine }, { "limited", limited }, { "around", around },
	{ "asked", asked },       { "steal", steal },         { "moved", moved },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc > 1 && i < sizeof(odd) / sizeof(*odd); i++)
		if (!strcmp(argv[1], odd[i].name))
			odd[i].fn();
	return 0;
}
