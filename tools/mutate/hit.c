// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into a program whose sites are marked. A mark counts at a fixed address, which is a file here: for each
 * site how often it was passed, and for how many objects that it was passed with a free() of the memory around them
 * followed. In what a build itself runs there is no file, and nothing is counted.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HITS_ADDRESS 0x200000000000
#define HITS_BYTES (1 << 20)
#define PASSES (1 << 20)
#define HEADS (1 << 16)
#define GRAIN 16
#define FAR 1024 /* an object does not begin further inside of its block */
#define TRIES 100000

struct site {
	unsigned passed, ended;
};

/* An object has passed a site. */
struct pass {
	uintptr_t object;
	unsigned site, next; /* index + 1 */
};

struct table {
	void (*pass)(const void *object, unsigned site); /* what marks call: first behind the hits */
	unsigned heads[HEADS];
	unsigned used, spare; /* spare: index + 1 */
	struct pass passes[PASSES];
};

void __libc_free(void *block);

static struct site *const sites = (struct site *)HITS_ADDRESS;
static struct table *table;
static bool busy;

static unsigned *head(uintptr_t object)
{
	return &table->heads[object / GRAIN % HEADS];
}

/* false: who has it may be a thread that this process was forked without */
static bool lock(void)
{
	for (int i = 0; i < TRIES; i++) {
		if (!__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE))
			return true;
		sched_yield();
	}
	return false;
}

static void unlock(void)
{
	__atomic_clear(&busy, __ATOMIC_RELEASE);
}

static void pass(const void *object, unsigned site)
{
	uintptr_t at = (uintptr_t)object;
	unsigned one;

	__atomic_add_fetch(&sites[site].passed, 1, __ATOMIC_RELAXED);
	if (!table || !object || !lock())
		return;
	for (one = *head(at); one; one = table->passes[one - 1].next)
		if (table->passes[one - 1].object == at && table->passes[one - 1].site == site)
			break;
	if (!one && (table->spare || table->used < PASSES)) {
		one = table->spare ? table->spare : ++table->used;
		if (one == table->spare)
			table->spare = table->passes[one - 1].next;
		table->passes[one - 1] = (struct pass){ at, site, *head(at) };
		*head(at) = one;
	}
	unlock();
}

/* Objects in one grain of a block that is freed have ended. */
static void end(unsigned *link, uintptr_t begin, uintptr_t behind)
{
	while (*link) {
		struct pass *p = &table->passes[*link - 1];
		unsigned one = *link;

		if (p->object < begin || p->object >= behind) {
			link = &p->next;
			continue;
		}
		__atomic_add_fetch(&sites[p->site].ended, 1, __ATOMIC_RELAXED);
		*link = p->next;
		p->next = table->spare;
		table->spare = one;
	}
}

void free(void *block)
{
	uintptr_t begin = (uintptr_t)block, behind;

	if (table && block) {
		behind = begin + malloc_usable_size(block);
		for (uintptr_t at = begin; at < behind && at < begin + FAR; at += GRAIN) {
			if (!*head(at) || !lock())
				continue;
			end(head(at), at, behind < at + GRAIN ? behind : at + GRAIN);
			unlock();
		}
	}
	__libc_free(block);
}

__attribute__((constructor)) static void hits_map(void)
{
	const char *path = getenv("RT_MUTATE_HITS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *behind = (void *)(HITS_ADDRESS + HITS_BYTES);

	mmap((void *)HITS_ADDRESS, HITS_BYTES, PROT_READ | PROT_WRITE,
	     MAP_FIXED_NOREPLACE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), fd, 0);
	if (fd >= 0)
		close(fd);
	if (mmap(behind, sizeof(*table), PROT_READ | PROT_WRITE,
		 MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != behind)
		_exit(127);
	((struct table *)behind)->pass = pass;
	if (path)
		table = behind;
}
