/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent in a new program: by system calls that one of its threads makes while it stands. The program sees neither
 * files nor variables of ours: a piece of memory that it shares with us, and one of code.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

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

	/* a first call, of no effect: the stack is known then */
	why = call(r, SYS_getpid, (uint64_t[6]){ 0 }, ret_fd, err);
	if (why)
		return why;
	at = rt_stopped_stack(r) - sizeof(name);
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

static const char *map_all(struct rt_stopped *r, int64_t fd, struct rt_agent_pool *pool, struct rt_error **err)
{
	const char *why;
	int64_t at;

	why = call(r, SYS_mmap,
		   (uint64_t[6]){ FAR_AWAY, RT_AGENT_POOL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
				  (uint64_t)fd },
		   &at, err);
	if (why)
		return why;
	pool->at = (uint64_t)at;
	why = call(r, SYS_mmap,
		   (uint64_t[6]){ pool->at + RT_AGENT_POOL, rt_agent_blob_bytes, PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX },
		   &at, err);
	if (why)
		return why;
	pool->code = (uint64_t)at;
	return rt_stopped_write(r, pool->code, rt_agent_blob, rt_agent_blob_bytes) ? NULL
										   : "its memory cannot be written";
}

/* Whether thread pointers can be read in the process: the agent knows its threads by them. */
static bool is_confined(uint32_t pid)
{
	uint64_t seccomp;

	return rt_proc_status(pid, "Seccomp", 10, &seccomp) && seccomp;
}

static const char *inject(struct rt_agent *a, struct rt_agent_task *task, struct rt_stopped *r, struct rt_error **err)
{
	struct rt_agent_head head = *rt_agent_blob_head();
	struct rt_agent_pool *pool = NULL;
	const char *why, *other;
	int64_t fd = -1, none;
	int own = -1;

	why = make_file(r, &fd, &own, err);
	if (!why) {
		*err = rt_agent_pool_create(own, &pool);
		why = *err ? "" : map_all(r, fd, pool, err);
	}
	if (fd >= 0 && !*err) {
		other = call(r, SYS_close, (uint64_t[6]){ (uint64_t)fd }, &none, err);
		why = why ?: other;
	}
	if (why) {
		rt_agent_pool_leave(pool);
		return why;
	}
	memcpy(rt_agent_shared(pool)->probe, a->probe, sizeof(a->probe));
	task->pool = pool;
	task->offset = rt_agent_pool_take(pool);
	head.pool = pool->at;
	head.process = pool->at + task->offset;
	rt_agent_process(task)->wire_pid = task->wire_pid;
	rt_agent_process(task)->next_stack = 1;
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
	RT_TRY(rt_stopped_open(&r, task->pid, tid));
	task->why = inject(a, task, &r, &err);
	rt_stopped_close(&r);
	return err;
}
