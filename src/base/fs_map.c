/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files in memory. Somebody who overwrites a file in place (cp onto it, a compiler's output) cuts it first; the reader
 * of a mapping would die of SIGBUS, and with it a recording of everybody else. So the handler puts zeroes where the
 * file has ended, and notes which file it was; whoever draws conclusions from a file asks afterwards.
 *
 * The list is behind a lock that the handler takes, too: whoever holds it reads no mapped file, so a thread never waits
 * for itself.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

struct mapping {
	struct mapping *next;
	uintptr_t begin, end; /* of the bytes; both 0: free for the next file */
	bool cut;
	char *name;
};

/* A handler has no argument of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;
static char *first_cut; /* never freed: an error message at the end */

static struct mapping *find(uintptr_t address)
{
	for (struct mapping *m = mappings; m; m = m->next)
		if (address >= m->begin && address < m->end)
			return m;
	return NULL;
}

/* NULL: no memory */
static struct mapping *add(struct rt_bytes bytes, const char *name)
{
	struct mapping *m = mappings;
	char *copy = strdup(name);

	while (m && m->end)
		m = m->next;
	if (!m && copy && (m = calloc(1, sizeof(*m)))) {
		m->next = mappings;
		mappings = m;
	}
	if (!m || !copy) {
		free(copy);
		return NULL;
	}
	m->begin = (uintptr_t)bytes.data;
	m->end = m->begin + bytes.size;
	m->cut = false;
	m->name = copy;
	return m;
}

struct rt_error *rt_fs_map(int fd, const char *name, struct rt_bytes *ret)
{
	struct rt_bytes bytes;
	struct mapping *m;
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot read %s", name);
	if (!st.st_size) {
		*ret = rt_bytes_make(NULL, 0);
		return NULL;
	}
	/* shared: into a private view of a program the kernel writes everybody's uprobes, and we would read those */
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot map %s", name);
	bytes = rt_bytes_make(p, (size_t)st.st_size);
	pthread_mutex_lock(&lock);
	m = add(bytes, name);
	pthread_mutex_unlock(&lock);
	if (!m) {
		munmap(p, bytes.size);
		return rt_error_nomem();
	}
	*ret = bytes;
	return NULL;
}

void rt_fs_unmap(struct rt_bytes bytes)
{
	struct mapping *m;

	if (!bytes.size)
		return;
	pthread_mutex_lock(&lock);
	m = find((uintptr_t)bytes.data);
	if (m) {
		free(m->name);
		m->name = NULL;
		m->begin = m->end = 0;
	}
	pthread_mutex_unlock(&lock);
	munmap((void *)(uintptr_t)bytes.data, bytes.size);
}

/* From the page of the address to the end of the mapping. */
static bool put_zeroes(struct mapping *m, uintptr_t address)
{
	uintptr_t from = address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	if (mmap((void *)from, m->end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	m->cut = true;
	/* taken over when the first one is cut: nothing is allocated here */
	if (!first_cut) {
		first_cut = m->name;
		m->name = NULL;
	}
	return true;
}

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	bool done = false;
	int saved = errno;

	/* what the kernel did not raise may come at any time, and hold the lock */
	if (info->si_code == BUS_ADRERR) {
		struct mapping *m;

		pthread_mutex_lock(&lock);
		m = find((uintptr_t)info->si_addr);
		done = m && put_zeroes(m, (uintptr_t)info->si_addr);
		pthread_mutex_unlock(&lock);
	}
	if (!done) {
		sigaction(signal, &action, NULL);
		/* one that was sent does not come again by itself */
		if (info->si_code <= 0)
			raise(signal);
	}
	errno = saved;
}

void rt_fs_survive_cuts(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

static struct rt_error *was_cut(const char *name)
{
	return rt_error_fix(rt_error_new(RT_E_TRUNCATED, "%s became shorter while it was read", name),
			    "do it again when nobody writes that file");
}

struct rt_error *rt_fs_whole(struct rt_bytes bytes)
{
	struct rt_error *err = NULL;
	struct mapping *m;

	pthread_mutex_lock(&lock);
	m = bytes.size ? find((uintptr_t)bytes.data) : NULL;
	if (m && m->cut)
		err = was_cut(m->name ?: first_cut);
	pthread_mutex_unlock(&lock);
	return err;
}

struct rt_error *rt_fs_all_whole(void)
{
	struct rt_error *err = NULL;

	pthread_mutex_lock(&lock);
	if (first_cut)
		err = was_cut(first_cut);
	pthread_mutex_unlock(&lock);
	return err;
}
