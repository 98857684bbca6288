/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent in a new program: by system calls that one of its threads makes while it stands. The program sees neither
 * files nor variables of ours: a piece of memory that it shares with us, and one of code.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/proc.h"
#include "engine/agent_priv.h"

#define FAR_AWAY 0x200000000000ull /* where programs have nothing: what they map lies as it would without us */

/* Makes a call that must succeed. NULL: it did; else why not, static text, or *ret_err. */
static const char *call(struct rt_stopped *r, long number, const uint64_t args[6], int64_t *ret,
			struct rt_error **ret_err)
{
	*ret_err = rt_stopped_call(r, number, args, ret);
	if (*ret_err)
		return "";
	if (*ret >= 0)
		return NULL;
	return *ret == -ENOMEM ? "it may not have more memory (ulimit -v)" : "the system refuses it the agent's memory";
}

/* A file in memory, made by the process and opened by us; *ret_fd is its number there, *ret ours. */
static const char *make_file(struct rt_stopped *r, int64_t *ret_fd, int *ret, struct rt_error **err)
{
	char path[64], name[sizeof(RT_AGENT_POOL_NAME)];
	const char *why;
	uint64_t at;

	*err = rt_stopped_stack(r, &at);
	if (*err)
		return "";
	at -= sizeof(name);
	if (!rt_stopped_read(r, at, name, sizeof(name)) || !rt_stopped_write(r, at, RT_AGENT_POOL_NAME, sizeof(name)))
		return "its stack cannot be written";
	why = call(r, SYS_memfd_create, (uint64_t[6]){ at, MFD_CLOEXEC | MFD_ALLOW_SEALING }, ret_fd, err);
	(void)rt_stopped_write(r, at, name, sizeof(name));
	if (why)
		return why;
	snprintf(path, sizeof(path), "/proc/%u/fd/%lld", r->pid, (long long)*ret_fd);
	*ret = open(path, O_RDWR | O_CLOEXEC);
	return *ret < 0 ? "its files cannot be opened" : NULL;
}

static const char *map_file(struct rt_stopped *r, uint64_t at, uint64_t size, uint64_t protection, int64_t fd,
			    uint64_t *ret, struct rt_error **err)
{
	const uint64_t flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_NORESERVE;
	int64_t got = 0;
	const char *why = call(r, SYS_mmap, (uint64_t[6]){ at, size, protection, flags, (uint64_t)fd }, &got, err);

	*ret = (uint64_t)got;
	return why;
}

/* Pool, owner's page and code, in this order and in one place. */
static const char *map_all(struct rt_stopped *r, const int64_t fd[2], struct rt_agent_pool *pool, uint64_t *ret_owner,
			   struct rt_error **err)
{
	const char *why;

	why = map_file(r, FAR_AWAY, pool->bytes, PROT_READ | PROT_WRITE, fd[0], &pool->at, err);
	if (!why)
		why = map_file(r, pool->at + pool->bytes, RT_AGENT_OWNER, PROT_READ, fd[1], ret_owner, err);
	if (!why)
		why = map_file(r, *ret_owner + RT_AGENT_OWNER, rt_agent_blob_bytes, PROT_READ | PROT_EXEC, -1,
			       &pool->code, err);
	if (why)
		return why;
	return rt_stopped_write(r, pool->code, rt_agent_blob, rt_agent_blob_bytes) ? NULL
										   : "its memory cannot be written";
}

/* Whether filters decide what calls it may make. */
static bool is_confined(uint32_t pid)
{
	uint64_t seccomp;

	return rt_proc_status(pid, "Seccomp", 10, &seccomp) && seccomp;
}

/* Numbers that follow each other, as they mostly do, by one call where the system has it. */
static const char *give_back(struct rt_stopped *r, const int64_t fd[2], struct rt_error **err)
{
	const char *why = NULL, *other;
	int64_t got = -ENOSYS;

	if (!*err && fd[0] >= 0 && fd[1] == fd[0] + 1)
		*err = rt_stopped_call(r, SYS_close_range, (uint64_t[6]){ (uint64_t)fd[0], (uint64_t)fd[1] }, &got);
	if (!got)
		return NULL;
	for (int i = 0; i < 2 && !*err; i++) {
		other = fd[i] < 0 ? NULL : call(r, SYS_close, (uint64_t[6]){ (uint64_t)fd[i] }, &got, err);
		why = why ?: other;
	}
	return why;
}

/* Two files, what is made of them, and their numbers given back. */
static const char *make_pool(struct rt_stopped *r, uint64_t bytes, struct rt_agent_pool **ret, uint64_t *ret_owner,
			     struct rt_error **err)
{
	_cleanup_close_ int owner = -1;
	int64_t fd[2] = { -1, -1 };
	int own = -1;
	const char *why = make_file(r, &fd[0], &own, err), *other;

	if (!why)
		why = make_file(r, &fd[1], &owner, err);
	if (!why) {
		*err = rt_agent_pool_create(own, owner, bytes, ret);
		own = -1;
		why = *err ? "" : map_all(r, fd, *ret, ret_owner, err);
	}
	if (own >= 0)
		close(own);
	other = give_back(r, fd, err);
	return why ?: other;
}

static const char *inject(struct rt_agent *a, struct rt_agent_task *task, struct rt_stopped *r, struct rt_error **err)
{
	struct rt_agent_head head = *rt_agent_blob_head();
	struct rt_agent_pool *pool = NULL;
	const char *why =
		make_pool(r, a->options.counting ? RT_AGENT_POOL_COUNTING : RT_AGENT_POOL, &pool, &head.owner, err);

	if (why) {
		rt_agent_pool_leave(pool);
		return why;
	}
	rt_agent_pool_write(pool, rt_agent_shared(pool)->probe, a->probe, (a->last_point + 1) * sizeof(a->probe[0]));
	rt_agent_shared(pool)->frames = a->options.frames ?: RT_AGENT_FRAMES;
	rt_agent_shared(pool)->sample_rate = a->options.sample.rate;
	rt_agent_shared(pool)->counting = a->options.counting;
	rt_agent_shared(pool)->clock_ns = rt_now_ns();
	if (a->options.sample.on)
		rt_agent_shared(pool)->sampling =
			RT_AGENT_SAMPLING | (a->options.sample.governed ? RT_SAMPLE_GOVERNED : 0);
	task->pool = pool;
	task->offset = rt_agent_pool_take(pool, 1);
	head.pool = pool->at;
	head.process = pool->at + task->offset;
	rt_agent_process(task)->wire_pid = task->wire_pid;
	rt_agent_process(task)->next_stack = 1;
	if (!rt_agent_tallies_make(a, task))
		return "there is no memory for its table of objects";
	return rt_stopped_write(r, pool->code, &head, sizeof(head)) ? NULL : "its memory cannot be written";
}

struct rt_error *rt_agent_inject(struct rt_agent *a, struct rt_agent_task *task, uint32_t tid)
{
	struct rt_error *err = NULL;
	struct rt_stopped r;

	if (!tid) {
		task->why = "it did not stand when it was to get the agent";
		return NULL;
	}
	if (is_confined(task->pid)) {
		task->why = "it runs under seccomp, which may kill it for the calls that bring the agent in";
		return NULL;
	}
	err = rt_stopped_open(&r, task->pid, tid);
	if (rt_error_catch(&err, RT_E_PRIVILEGE)) {
		task->why =
			"its memory may not be opened: it has other rights than reftrace, or its file may not be read";
		return NULL;
	}
	RT_TRY(err);
	task->why = inject(a, task, &r, &err);
	rt_stopped_close(&r);
	return err;
}
