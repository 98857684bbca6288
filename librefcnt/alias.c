/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
/* free objects of fewer pages are kept by their number of pages, all others in one list, the first that fits is taken
 */
#define SIZES 64
/* of mappings that the kernel refused their addresses are not used again; after so many no more are tried */
#define LOST_MOST 4096

/* for each page of homes, if an object begins there */
struct home {
	uint32_t pages; /* 0: none does */
	uint32_t counter;
	uint32_t room;      /* pages that are kept for it, or are free from there on */
	uint32_t free_next; /* its page + 1 */
};

struct arena {
	char *aliases, *homes; /* NULL: none */
	struct rc_alias *table;
	struct home *home;
	uint32_t free_first[SIZES]; /* by pages; 0: the larger ones. Page + 1 */
	uint32_t n_pages, n_home;
	uint32_t next, used, next_home; /* used: pages of aliases that were ever given */
	uint32_t live, live_limit, lost;
	size_t page_size;
	int copy; /* for the child of a fork */
	bool failed, said_full, said_no_more;
};

static struct arena arena = { .copy = -1 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long fallbacks;

unsigned long rc_alias_fallbacks(void)
{
	return __atomic_load_n(&fallbacks, __ATOMIC_RELAXED);
}

static uint32_t state_of(const struct rc_alias *a)
{
	return __atomic_load_n(&a->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct rc_alias *a, enum rc_alias_state state)
{
	__atomic_store_n(&a->state, state, __ATOMIC_RELEASE);
}

bool rc_alias_is_live(const struct rc_alias *a)
{
	return state_of(a) == RC_ALIAS_LIVE;
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

/* A file larger than the user may have is ended by a signal. */
static uint32_t pages_allowed(const struct arena *a)
{
	uint64_t pages = a->n_pages / HOME_PART;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur / a->page_size < pages)
		pages = limit.rlim_cur / a->page_size;
	return (uint32_t)pages;
}

/* Memory that can be mapped more than once. -> descriptor, -1 */
static int shared_memory(void)
{
	int fd = memfd_create("refcnt objects", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)(arena.n_home * arena.page_size))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void *map_homes(void *at, int fd)
{
	void *p = mmap(at, arena.n_home * arena.page_size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0), fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool map_arena(void)
{
	struct arena *a = &arena;
	void *aliases;
	int fd;

	a->page_size = (size_t)sysconf(_SC_PAGESIZE);
	a->n_pages = rc_option()->alias_pages;
	a->n_home = pages_allowed(a);
	fd = shared_memory();
	if (fd < 0)
		return false;
	a->homes = map_homes(NULL, fd);
	close(fd);
	aliases = mmap(NULL, a->n_pages * a->page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	a->table = rc_memory_reserve(a->n_pages * sizeof(*a->table));
	a->home = rc_memory_reserve(a->n_home * sizeof(*a->home));
	if (aliases == MAP_FAILED || !a->homes || !a->table || !a->home)
		return false;
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

static char *address_of(uint32_t page)
{
	return arena.aliases + page * arena.page_size;
}

static char *home_of(uint32_t page)
{
	return arena.homes + page * arena.page_size;
}

static uint32_t home_page(const char *home)
{
	return (uint32_t)((size_t)(home - arena.homes) / arena.page_size);
}

static uint32_t page_of(const struct rc_alias *a)
{
	return (uint32_t)(a - arena.table);
}

static bool in_homes(const char *p)
{
	return (uintptr_t)p - (uintptr_t)arena.homes < arena.n_home * arena.page_size;
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
	if (state_of(a) == RC_ALIAS_INNER)
		a -= a->pages;
	return a;
}

bool rc_alias_has(const void *p)
{
	return __atomic_load_n(&arena.aliases, __ATOMIC_ACQUIRE) && (rc_alias_of(p) || in_homes(p));
}

/* Does an object begin there, which is counted so far behind its begin? */
static bool is_whole(const char *home, ptrdiff_t counter)
{
	const struct home *h = &arena.home[home_page(home)];

	return home == home_of(home_page(home)) && __atomic_load_n(&h->pages, __ATOMIC_RELAXED) && counter >= 0 &&
	       (size_t)counter == h->counter;
}

struct rc_place rc_alias_place(const struct refcnt *r, const void *p)
{
	struct rc_place place = { .object = (char *)(uintptr_t)p, .counter = (struct refcnt *)(uintptr_t)r };
	struct rc_alias *a = rc_alias_of(p);
	ptrdiff_t counter = (const char *)r - (const char *)p;
	uint32_t state = a ? state_of(a) : RC_ALIAS_NONE;

	if (state == RC_ALIAS_LIVE || state == RC_ALIAS_LEAVING || state == RC_ALIAS_DEAD) {
		place.alias = a;
		place.object = home_of(a->home_page) + ((const char *)p - address_of(page_of(a)));
		place.counter = (struct refcnt *)(uintptr_t)(place.object + counter);
		place.whole = place.object == home_of(a->home_page) && counter >= 0 && (size_t)counter == a->counter;
	} else if (!a && arena.aliases && in_homes(p)) {
		place.whole = is_whole(p, counter);
	}
	return place;
}

static void give_free(uint32_t page, uint32_t n)
{
	uint32_t *first = &arena.free_first[n < SIZES ? n : 0];

	arena.home[page].room = n;
	arena.home[page].free_next = *first;
	*first = page + 1;
}

/* What was an object of as many pages before, or part of a large one. -> page */
static uint32_t take_free(uint32_t n)
{
	uint32_t *at = &arena.free_first[n < SIZES ? n : 0], page, more;

	while (*at && arena.home[*at - 1].room < n)
		at = &arena.home[*at - 1].free_next;
	if (!*at)
		return NO_PAGE;
	page = *at - 1;
	*at = arena.home[page].free_next;
	more = arena.home[page].room - n;
	if (more > n / 4) { /* what is small would be of no use to objects of that size */
		arena.home[page].room = n;
		give_free(page + n, more);
	}
	return page;
}

char *rc_alias_make(size_t size, size_t counter)
{
	char *home = NULL;
	uint32_t page = NO_PAGE;
	int error = errno;
	size_t n;

	pthread_mutex_lock(&lock);
	if (have_arena()) {
		n = size / arena.page_size + (size % arena.page_size != 0);
		if (n <= arena.n_home && counter <= UINT32_MAX)
			page = take_free((uint32_t)n);
		if (page == NO_PAGE && n <= arena.n_home - arena.next_home && counter <= UINT32_MAX) {
			page = arena.next_home;
			arena.home[page].room = (uint32_t)n;
			arena.next_home += (uint32_t)n;
		}
		if (page != NO_PAGE) {
			arena.home[page].counter = (uint32_t)counter;
			__atomic_store_n(&arena.home[page].pages, (uint32_t)n, __ATOMIC_RELAXED);
			home = home_of(page);
		} else if (!arena.said_full) {
			arena.said_full = true;
			rc_report_note("no room for an object of %zu bytes with alias handles (REFCNT_ALIAS_PAGES, "
				       "ulimit -f): "
				       "such ones are tracked only",
				       size);
		}
	}
	if (!home)
		__atomic_add_fetch(&fallbacks, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	errno = error;
	return home;
}

void rc_alias_free(const char *home)
{
	uint32_t page = home_page(home), n;
	int error = errno;

	pthread_mutex_lock(&lock);
	n = arena.home[page].pages;
	if (n) {
		__atomic_store_n(&arena.home[page].pages, 0, __ATOMIC_RELAXED);
		/* the next object finds zeroes */
		if (madvise(home_of(page), n * arena.page_size, MADV_REMOVE))
			memset(home_of(page), 0, n * arena.page_size);
		give_free(page, arena.home[page].room);
	}
	pthread_mutex_unlock(&lock);
	errno = error;
}

static bool is_free(uint32_t page, uint32_t n)
{
	for (uint32_t i = page; i < page + n; i++) {
		const struct rc_alias *a = &arena.table[i];
		uint32_t state = state_of(a);

		if (state == RC_ALIAS_INNER)
			state = state_of(a - a->pages);
		if (state == RC_ALIAS_LIVE || state == RC_ALIAS_LEAVING || state == RC_ALIAS_LOST)
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

/* first is what these pages are from now on; what is cut of an older, larger alias is nobody's then */
static void set_pages(uint32_t page, uint32_t n, const struct rc_alias *first)
{
	struct rc_alias *a = &arena.table[page];

	for (uint32_t i = page + n;
	     i < arena.used && state_of(&arena.table[i]) == RC_ALIAS_INNER && i - arena.table[i].pages < page + n; i++)
		set_state(&arena.table[i], RC_ALIAS_NONE);
	set_state(a, RC_ALIAS_NONE);
	*a = (struct rc_alias){ .pages = first->pages,
				.get_stack = first->get_stack,
				.get_tid = first->get_tid,
				.home_page = first->home_page,
				.counter = first->counter,
				.cls = first->cls };
	for (uint32_t i = 1; i < n; i++) {
		arena.table[page + i].pages = i;
		set_state(&arena.table[page + i], RC_ALIAS_INNER);
	}
	set_state(a, first->state);
	arena.next = page + n;
	if (arena.used < arena.next)
		arena.used = arena.next;
}

/* One mapping more of what is at home; an old size of 0 says that (mremap(2)). */
static bool map_alias(uint32_t page, uint32_t n, uint32_t home)
{
	return mremap(home_of(home), 0, n * arena.page_size, MREMAP_MAYMOVE | MREMAP_FIXED, address_of(page)) !=
	       MAP_FAILED;
}

static void say_no_more(void)
{
	if (!arena.said_no_more)
		rc_report_note("no more alias handles beside %u (vm.max_map_count, REFCNT_ALIAS_PAGES): references "
			       "from here on are tracked only",
			       __atomic_load_n(&arena.live, __ATOMIC_RELAXED));
	arena.said_no_more = true;
	__atomic_add_fetch(&fallbacks, 1, __ATOMIC_RELAXED);
}

char *rc_alias_take(const struct refcnt_class *cls, char *home, uint32_t stack)
{
	const struct home *h = &arena.home[home_page(home)];
	struct rc_alias first = { .state = RC_ALIAS_LIVE,
				  .pages = h->pages,
				  .get_stack = stack,
				  .get_tid = rc_thread.tid,
				  .home_page = home_page(home),
				  .counter = h->counter,
				  .cls = cls->kept };
	uint32_t page = NO_PAGE;
	char *alias = home;
	int error = errno;

	pthread_mutex_lock(&lock);
	if (__atomic_load_n(&arena.live, __ATOMIC_RELAXED) < arena.live_limit && arena.lost < LOST_MOST)
		page = find_pages(first.pages);
	if (page != NO_PAGE && !map_alias(page, first.pages, first.home_page)) {
		/* what is there now is not known, another's mapping it may be */
		first.state = RC_ALIAS_LOST;
		set_pages(page, first.pages, &first);
		arena.lost++;
		page = NO_PAGE;
	}
	if (page != NO_PAGE) {
		set_pages(page, first.pages, &first);
		alias = address_of(page);
		__atomic_add_fetch(&arena.live, 1, __ATOMIC_RELAXED);
	} else {
		say_no_more();
	}
	pthread_mutex_unlock(&lock);
	errno = error;
	return alias;
}

bool rc_alias_give(struct rc_alias *a, uint32_t stack)
{
	uint32_t live = RC_ALIAS_LIVE;

	if (!__atomic_compare_exchange_n(&a->state, &live, RC_ALIAS_LEAVING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return false;
	a->put_stack = stack;
	a->put_tid = rc_thread.tid;
	return true;
}

/* Nothing else may come to lie there. */
static bool close_pages(uint32_t page, uint32_t n)
{
	return mmap(address_of(page), n * arena.page_size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED ||
	       !mprotect(address_of(page), n * arena.page_size, PROT_NONE);
}

void rc_alias_unmap(struct rc_alias *a)
{
	int error = errno;

	if (!close_pages(page_of(a), a->pages))
		__atomic_add_fetch(&fallbacks, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&arena.live, 1, __ATOMIC_RELAXED);
	set_state(a, RC_ALIAS_DEAD);
	errno = error;
}

static bool copy_object(int to, uint32_t page)
{
	size_t bytes = arena.home[page].pages * arena.page_size;

	for (size_t done = 0; done < bytes;) {
		size_t at = page * arena.page_size + done;
		ssize_t n = pwrite(to, arena.homes + at, bytes - done, (off_t)at);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* Shared memory is shared with a child: it gets a copy of its own, of the moment before the fork. */
void rc_alias_before_fork(void)
{
	bool good;

	pthread_mutex_lock(&lock);
	if (!arena.aliases)
		return;
	arena.copy = shared_memory();
	good = arena.copy >= 0;
	for (uint32_t page = 0; good && page < arena.next_home; page++)
		good = copy_object(arena.copy, page);
	if (good || arena.copy < 0)
		return;
	close(arena.copy);
	arena.copy = -1;
}

void rc_alias_in_parent(void)
{
	if (arena.copy >= 0)
		close(arena.copy);
	arena.copy = -1;
	pthread_mutex_unlock(&lock);
}

/* A thread that was giving one back is not here to take its address away. */
static bool map_again(uint32_t page)
{
	struct rc_alias *a = &arena.table[page];
	uint32_t state = state_of(a);

	if (state == RC_ALIAS_LIVE)
		return map_alias(page, a->pages, a->home_page);
	if (state != RC_ALIAS_LEAVING)
		return true;
	set_state(a, RC_ALIAS_DEAD);
	arena.live--;
	return close_pages(page, a->pages);
}

void rc_alias_in_child(void)
{
	bool good = arena.copy >= 0;

	pthread_mutex_unlock(&lock);
	if (!arena.aliases)
		return;
	good = good && map_homes(arena.homes, arena.copy);
	for (uint32_t i = 0; good && i < arena.used; i++)
		good = map_again(i);
	if (!good) {
		rc_report_note("no copy of the objects for the forked process %d (%s): it would change its parent's",
			       getpid(), strerror(errno));
		abort();
	}
	close(arena.copy);
	arena.copy = -1;
}

void rc_alias_cut_off(void)
{
	if (!arena.aliases)
		return;
	(void)mmap(arena.homes, arena.n_home * arena.page_size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	(void)close_pages(0, arena.n_pages);
}
