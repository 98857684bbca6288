/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alias.h"
#include "fault.h"
#include "memory.h"
#include "option.h"
#include "report.h"
#include "thread.h"

/* of what alias addresses there are, so many objects' pages */
#define HOME_PART 4
#define NO_PAGE UINT32_MAX

struct arena {
	char *aliases, *homes; /* NULL: none */
	struct rc_alias *table;
	uint32_t *home_pages; /* for each page of homes: how many the object has that begins there */
	uint32_t *free_next;  /* free objects of n pages, by their first page + 1 */
	uint32_t free_first[64];
	uint32_t n_pages, n_home;
	uint32_t next, used, next_home; /* used: pages of aliases that were ever given */
	uint32_t live, live_limit;
	size_t page_size;
	int fd;
	int copy; /* for the child of a fork */
	bool failed, said_full;
};

static struct arena arena = { .fd = -1, .copy = -1 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long fallbacks;

unsigned long rc_alias_fallbacks(void)
{
	return __atomic_load_n(&fallbacks, __ATOMIC_RELAXED);
}

/* Each alias may cost two mappings, itself and the gap beside it; a third is left to the program. */
static uint32_t mappings_allowed(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned n = 65530;

	if (f) {
		if (fscanf(f, "%u", &n) != 1)
			n = 65530;
		fclose(f);
	}
	return n / 3;
}

static bool map_arena(void)
{
	struct arena *a = &arena;
	void *aliases, *homes;

	a->page_size = (size_t)sysconf(_SC_PAGESIZE);
	a->n_pages = rc_option()->alias_pages;
	a->n_home = a->n_pages / HOME_PART;
	a->fd = memfd_create("refcnt objects", MFD_CLOEXEC);
	if (a->fd < 0 || ftruncate(a->fd, (off_t)(a->n_home * a->page_size)))
		return false;
	aliases = mmap(NULL, a->n_pages * a->page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	homes = mmap(NULL, a->n_home * a->page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a->fd, 0);
	a->table = rc_memory_reserve(a->n_pages * sizeof(*a->table));
	a->home_pages = rc_memory_reserve(a->n_home * sizeof(*a->home_pages));
	a->free_next = rc_memory_reserve(a->n_home * sizeof(*a->free_next));
	if (aliases == MAP_FAILED || homes == MAP_FAILED || !a->table || !a->home_pages || !a->free_next)
		return false;
	a->homes = homes;
	a->live_limit = mappings_allowed();
	__atomic_store_n(&a->aliases, aliases, __ATOMIC_RELEASE);
	return true;
}

static bool have_arena(void)
{
	if (arena.aliases || arena.failed)
		return !arena.failed;
	if (map_arena()) {
		rc_fault_watch();
		return true;
	}
	arena.failed = true;
	rc_report_note("no alias handles: %s; objects are tracked only", strerror(errno));
	return false;
}

struct rc_alias *rc_alias_of(const void *p)
{
	const char *aliases = __atomic_load_n(&arena.aliases, __ATOMIC_ACQUIRE);
	size_t page;
	struct rc_alias *a;

	if (!aliases || (const char *)p < aliases)
		return NULL;
	page = (size_t)((const char *)p - aliases) / arena.page_size;
	if (page >= arena.n_pages)
		return NULL;
	a = &arena.table[page];
	if (__atomic_load_n(&a->state, __ATOMIC_ACQUIRE) == RC_ALIAS_INNER)
		a -= a->pages;
	return a;
}

void *rc_alias_start(const struct rc_alias *a)
{
	return arena.aliases + (size_t)(a - arena.table) * arena.page_size;
}

bool rc_alias_is_home(const void *p)
{
	return arena.homes && (uintptr_t)p - (uintptr_t)arena.homes < arena.n_home * arena.page_size;
}

static uint32_t home_page(const void *home)
{
	return (uint32_t)((size_t)((const char *)home - arena.homes) / arena.page_size);
}

static uint32_t pages_for(size_t size)
{
	return (uint32_t)((size + arena.page_size - 1) / arena.page_size);
}

void *rc_alias_make(size_t size)
{
	void *home = NULL;
	uint32_t n, page = NO_PAGE;

	pthread_mutex_lock(&lock);
	if (have_arena()) {
		n = pages_for(size);
		if (n < 64 && arena.free_first[n]) {
			page = arena.free_first[n] - 1;
			arena.free_first[n] = arena.free_next[page];
		} else if (n <= arena.n_home - arena.next_home) {
			page = arena.next_home;
			arena.next_home += n;
		} else if (!arena.said_full) {
			arena.said_full = true;
			rc_report_note(
				"no room for more objects with alias handles (REFCNT_ALIAS_PAGES): tracked only");
		}
		if (page != NO_PAGE) {
			arena.home_pages[page] = n;
			home = arena.homes + page * arena.page_size;
		}
	}
	pthread_mutex_unlock(&lock);
	return home;
}

bool rc_alias_free(const void *home)
{
	uint32_t page, n = 0;

	if (!rc_alias_is_home(home))
		return false;
	pthread_mutex_lock(&lock);
	page = home_page(home);
	n = arena.home_pages[page];
	if (n) {
		arena.home_pages[page] = 0;
		/* the next object finds zeroes */
		if (fallocate(arena.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(page * arena.page_size),
			      (off_t)(n * arena.page_size)))
			memset(arena.homes + page * arena.page_size, 0, n * arena.page_size);
		if (n < 64) {
			arena.free_next[page] = arena.free_first[n];
			arena.free_first[n] = page + 1;
		}
	}
	pthread_mutex_unlock(&lock);
	return true;
}

static bool is_free(uint32_t page, uint32_t n)
{
	for (uint32_t i = page; i < page + n; i++) {
		const struct rc_alias *a = &arena.table[i];

		if (a->state == RC_ALIAS_INNER)
			a -= a->pages;
		if (a->state == RC_ALIAS_LIVE)
			return false;
	}
	return true;
}

/* Addresses that were used longest ago, if ever. -> page */
static uint32_t find_pages(uint32_t n)
{
	uint32_t page = arena.next;

	if (n > arena.n_pages)
		return NO_PAGE;
	for (uint32_t tried = 0; tried <= arena.n_pages; tried++, page++) {
		if (page + n > arena.n_pages)
			page = 0;
		if (page >= arena.used || is_free(page, n))
			return page;
	}
	return NO_PAGE;
}

static void set_pages(uint32_t page, uint32_t n, const struct rc_alias *first)
{
	/* what is cut of an older, larger alias is nobody's then */
	for (uint32_t i = page + n;
	     i < arena.used && arena.table[i].state == RC_ALIAS_INNER && i - arena.table[i].pages < page + n; i++)
		arena.table[i].state = RC_ALIAS_NONE;
	arena.table[page] = *first;
	for (uint32_t i = 1; i < n; i++)
		arena.table[page + i] = (struct rc_alias){ .state = RC_ALIAS_INNER, .pages = i };
	arena.next = page + n;
	if (arena.used < arena.next)
		arena.used = arena.next;
}

static bool map_alias(uint32_t page, uint32_t n, const char *home, int fd)
{
	return mmap(arena.aliases + page * arena.page_size, n * arena.page_size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, fd, home - arena.homes) != MAP_FAILED;
}

void *rc_alias_take(const struct refcnt_class *cls, void *home, uint32_t stack)
{
	struct rc_alias first = { .state = RC_ALIAS_LIVE,
				  .pages = arena.home_pages[home_page(home)],
				  .get_stack = stack,
				  .get_tid = rc_thread.tid,
				  .home = home,
				  .cls = cls->kept };
	void *alias = NULL;
	uint32_t page = NO_PAGE;

	pthread_mutex_lock(&lock);
	if (arena.live < arena.live_limit)
		page = find_pages(first.pages);
	if (page != NO_PAGE && map_alias(page, first.pages, home, arena.fd)) {
		set_pages(page, first.pages, &first);
		alias = arena.aliases + page * arena.page_size;
		arena.live++;
	} else {
		if (!fallbacks)
			rc_report_note(
				"no more alias handles beside %u (vm.max_map_count, REFCNT_ALIAS_PAGES): references "
				"from here on are tracked only",
				arena.live);
		fallbacks++;
	}
	pthread_mutex_unlock(&lock);
	return alias ? alias : home;
}

bool rc_alias_give(struct rc_alias *a, uint32_t stack)
{
	uint32_t live = RC_ALIAS_LIVE;

	if (!__atomic_compare_exchange_n(&a->state, &live, RC_ALIAS_DEAD, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return false;
	a->put_stack = stack;
	a->put_tid = rc_thread.tid;
	return true;
}

void rc_alias_unmap(const struct rc_alias *a)
{
	pthread_mutex_lock(&lock);
	/* nothing else may come to lie there */
	mmap(rc_alias_start(a), a->pages * arena.page_size, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	arena.live--;
	pthread_mutex_unlock(&lock);
}

/* Memory files are shared with a child: it gets a copy of its own, of the moment before the fork. */
void rc_alias_before_fork(void)
{
	pthread_mutex_lock(&lock);
	if (!arena.aliases)
		return;
	arena.copy = memfd_create("refcnt objects", MFD_CLOEXEC);
	if (arena.copy < 0 || ftruncate(arena.copy, (off_t)(arena.n_home * arena.page_size)))
		return;
	for (uint32_t page = 0; page < arena.next_home; page++) {
		size_t bytes = arena.home_pages[page] * arena.page_size, done = 0;

		while (done < bytes) {
			size_t at = page * arena.page_size + done;
			ssize_t n = pwrite(arena.copy, arena.homes + at, bytes - done, (off_t)at);

			if (n <= 0)
				break;
			done += (size_t)n;
		}
	}
}

void rc_alias_in_parent(void)
{
	if (arena.copy >= 0)
		close(arena.copy);
	arena.copy = -1;
	pthread_mutex_unlock(&lock);
}

void rc_alias_in_child(void)
{
	bool good = arena.copy >= 0;

	pthread_mutex_unlock(&lock);
	if (!arena.aliases)
		return;
	good = good && mmap(arena.homes, arena.n_home * arena.page_size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_NORESERVE | MAP_FIXED, arena.copy, 0) != MAP_FAILED;
	for (uint32_t i = 0; good && i < arena.used; i++)
		if (arena.table[i].state == RC_ALIAS_LIVE)
			good = map_alias(i, arena.table[i].pages, arena.table[i].home, arena.copy);
	if (!good) {
		rc_report_note("no copy of the objects for the forked process %d (%s): it would change its parent's",
			       getpid(), strerror(errno));
		abort();
	}
	close(arena.fd);
	arena.fd = arena.copy;
	arena.copy = -1;
}
