/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "engine/agent_priv.h"

_Static_assert(!offsetof(pthread_mutex_t, __data.__lock), "the agent reads the lock itself");

/* A lock that is never waited for: when we are killed, the kernel itself says so there, before it lets the tracees go.
 */
static void own(pthread_mutex_t *owner)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(owner, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_lock(owner);
}

void rt_agent_pool_leave(struct rt_agent_pool *pool)
{
	if (!pool || --pool->users)
		return;
	if (pool->owner) {
		pthread_mutex_unlock(pool->owner);
		munmap(pool->owner, RT_AGENT_OWNER);
	}
	if (pool->base)
		munmap(pool->base, pool->bytes);
	close(pool->fd);
	rt_map_deinit(&pool->rows);
	rt_vec_deinit(&pool->placed);
	free(pool);
}

/* A whole file in memory, of that size for good: the program could cut it short, and end us by that. */
static struct rt_error *map(int fd, size_t size, void **ret)
{
	void *base;

	if (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make shared memory");
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot map shared memory");
	(void)madvise(base, size, MADV_DONTFORK);
	*ret = base;
	return NULL;
}

static struct rt_error *fill(struct rt_agent_pool *pool, int owner_fd)
{
	void *base = NULL, *owner = NULL;

	RT_TRY(map(pool->fd, pool->bytes, &base));
	pool->base = base;
	RT_TRY(map(owner_fd, RT_AGENT_OWNER, &owner));
	if (!owner)
		return rt_error_nomem();
	own(owner);
	pool->owner = owner;
	/* what follows the lock's list of ours must be ours alone: whoever maps the page now can only read it */
	if (fcntl(owner_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) ||
	    fcntl(pool->fd, F_ADD_SEALS, F_SEAL_SEAL))
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot seal shared memory");
	memset(pool->used, 1, RT_AGENT_SHARED_CHUNKS);
	pool->site_end = pool->generation = 1;
	return NULL;
}

struct rt_error *rt_agent_pool_create(int fd, int owner_fd, uint64_t bytes, struct rt_agent_pool **ret)
{
	struct rt_agent_pool *pool = calloc(1, sizeof(*pool));
	struct rt_error *err;

	if (!pool) {
		close(fd);
		return rt_error_nomem();
	}
	pool->fd = fd;
	pool->bytes = bytes;
	pool->users = 1;
	err = fill(pool, owner_fd);
	if (err) {
		rt_agent_pool_leave(pool);
		return err;
	}
	*ret = pool;
	return NULL;
}

void rt_agent_pool_write(struct rt_agent_pool *pool, void *to, const void *from, size_t size)
{
	const off_t at = (off_t)((const uint8_t *)to - pool->base);

	if (pwrite(pool->fd, from, size, at) != (ssize_t)size)
		memcpy(to, from, size);
}

bool rt_agent_pool_has(const struct rt_agent_pool *pool, uint64_t offset)
{
	return offset && offset % RT_AGENT_CHUNK == 0 && offset < pool->bytes && pool->used[offset / RT_AGENT_CHUNK] &&
	       offset >= RT_AGENT_SHARED_CHUNKS * RT_AGENT_CHUNK;
}

uint64_t rt_agent_pool_take(struct rt_agent_pool *pool, uint32_t chunks)
{
	uint32_t free = 0;

	for (uint32_t i = RT_AGENT_SHARED_CHUNKS; i < pool->bytes / RT_AGENT_CHUNK; i++) {
		free = pool->used[i] ? 0 : free + 1;
		if (free < chunks)
			continue;
		memset(&pool->used[i + 1 - chunks], 1, chunks);
		return (uint64_t)(i + 1 - chunks) * RT_AGENT_CHUNK;
	}
	return 0;
}

void rt_agent_pool_give(struct rt_agent_pool *pool, uint64_t offset, uint32_t chunks)
{
	if (!rt_agent_pool_has(pool, offset))
		return;
	/* gives the memory back, and makes it zeroes; all of it goes with its last user */
	if (!pool->ends)
		(void)fallocate(pool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				(off_t)(chunks * RT_AGENT_CHUNK));
	memset(&pool->used[offset / RT_AGENT_CHUNK], 0, chunks);
}
