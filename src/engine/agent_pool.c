/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "engine/agent_priv.h"

static pthread_mutex_t *owner(struct rt_agent_pool *pool)
{
	return (void *)rt_agent_shared(pool)->owner;
}

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(((struct rt_agent_shared *)0)->owner), "owner");
_Static_assert(!offsetof(pthread_mutex_t, __data.__lock), "the agent reads the lock itself");

/* A lock that is never waited for: when we are killed, the kernel itself says so there, before it lets the tracees go.
 */
static void own(struct rt_agent_pool *pool)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(owner(pool), &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_lock(owner(pool));
}

void rt_agent_pool_leave(struct rt_agent_pool *pool)
{
	if (!pool || --pool->users)
		return;
	if (pool->base) {
		pthread_mutex_unlock(owner(pool));
		munmap(pool->base, RT_AGENT_POOL);
	}
	close(pool->fd);
	rt_map_deinit(&pool->rows);
	rt_vec_deinit(&pool->placed);
	free(pool);
}

struct rt_error *rt_agent_pool_create(int fd, struct rt_agent_pool **ret)
{
	struct rt_agent_pool *pool = calloc(1, sizeof(*pool));
	void *base;

	if (!pool) {
		close(fd);
		return rt_error_nomem();
	}
	pool->fd = fd;
	pool->users = 1;
	/* the program could cut it short, and end us by that */
	if (ftruncate(fd, RT_AGENT_POOL) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int errnum = errno;

		rt_agent_pool_leave(pool);
		return rt_error_errno(RT_E_SYSTEM, errnum, "cannot make shared memory");
	}
	base = mmap(NULL, RT_AGENT_POOL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED) {
		int errnum = errno;

		rt_agent_pool_leave(pool);
		return rt_error_errno(RT_E_SYSTEM, errnum, "cannot map shared memory");
	}
	(void)madvise(base, RT_AGENT_POOL, MADV_DONTFORK);
	pool->base = base;
	own(pool);
	memset(pool->used, 1, RT_AGENT_SHARED_CHUNKS);
	pool->site_end = pool->generation = 1;
	*ret = pool;
	return NULL;
}

uint64_t rt_agent_pool_take(struct rt_agent_pool *pool)
{
	for (uint32_t i = RT_AGENT_SHARED_CHUNKS; i < RT_AGENT_CHUNKS; i++) {
		if (!pool->used[i]) {
			pool->used[i] = 1;
			return i * RT_AGENT_CHUNK;
		}
	}
	return 0;
}

void rt_agent_pool_give(struct rt_agent_pool *pool, uint64_t offset)
{
	if (!offset)
		return;
	/* gives the memory back, and makes it zeroes */
	(void)fallocate(pool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, RT_AGENT_CHUNK);
	pool->used[offset / RT_AGENT_CHUNK] = 0;
}
