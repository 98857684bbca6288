/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine U's ops table and its processes; see agent_priv.h for the rest. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/proc.h"
#include "elf/image.h"
#include "engine/agent_priv.h"
#include "insn/move.h"

#define LAST_HOOKS_NS 500000000ull
#define HWCAP2_FSGSBASE (1 << 1) /* arch/x86/include/uapi/asm/hwcap2.h */

static struct rt_agent *agent_of(struct rt_engine *engine)
{
	return (struct rt_agent *)(void *)engine; /* base is its first member */
}

struct rt_agent_task *rt_agent_task(const struct rt_agent *a, uint32_t pid)
{
	for (size_t i = 0; i < a->tasks.len; i++)
		if (a->tasks.data[i]->pid == pid)
			return a->tasks.data[i];
	return NULL;
}

static struct rt_agent_task *add_task(struct rt_agent *a, uint32_t pid, uint32_t wire_pid)
{
	struct rt_agent_task *task = calloc(1, sizeof(*task));

	if (!task || !rt_vec_push(&a->tasks, task)) {
		free(task);
		return NULL;
	}
	task->pid = pid;
	task->wire_pid = wire_pid;
	return task;
}

static bool returns_unseen(const struct rt_agent_pending *w)
{
	return w->lifted && w->lifted != RT_AGENT_SIGHT_FORCED;
}

/* Calls that have not returned: the program ended in them, or it was left by a jump. */
static void count_waiting(const struct rt_agent *a, const struct rt_agent_task *task, struct rt_point_count *counts)
{
	const struct rt_agent_process *process = rt_agent_process(task);

	RT_AGENT_EACH_PENDING (i, process) {
		const struct rt_agent_pending *w = &process->pending[i];

		if (w->slot && !w->inherited && !returns_unseen(w) && w->point <= a->last_point)
			counts[w->point].waiting++;
	}
}

/* What cannot be kept is said when it is asked for. */
static void take_tallies(struct rt_agent *a, struct rt_agent_task *task)
{
	struct rt_error *err = rt_agent_tallies_take(a, task);

	a->counted.nomem |= err != NULL;
	rt_error_free(err);
}

static void remove_task(struct rt_agent *a, struct rt_agent_task *task)
{
	for (size_t i = 0; i < a->tasks.len; i++) {
		if (a->tasks.data[i] == task) {
			a->tasks.data[i] = a->tasks.data[--a->tasks.len];
			break;
		}
	}
	/* a keeper that has ended is told of where something is asked of it */
	if (a->semaphores)
		rt_error_free(rt_semaphores_forget(a->semaphores, task->pid));
	if (task->pool) {
		task->pool->ends = task->pool->users == 1;
		a->strangers += rt_agent_process(task)->strangers;
		count_waiting(a, task, a->gone);
		rt_agent_threads_leave(a, task);
		take_tallies(a, task);
		rt_agent_pool_give(task->pool, task->offset, 1);
		rt_agent_pool_leave(task->pool);
	}
	rt_vec_deinit(&task->members);
	rt_vec_deinit(&task->jumps);
	rt_vec_deinit(&task->areas);
	rt_vec_deinit(&task->semaphores);
	rt_map_deinit(&task->armed);
	free(task->sums);
	free(task);
}

/* The task with the agent in it, as far as the process allows that. */
static struct rt_error *task_for(struct rt_agent *a, uint32_t pid, uint32_t wire_pid, uint32_t tid,
				 struct rt_agent_task **ret)
{
	struct rt_agent_task *task = rt_agent_task(a, pid);
	struct rt_error *err;

	if (!task) {
		task = add_task(a, pid, wire_pid);
		if (!task)
			return rt_error_nomem();
		err = rt_agent_inject(a, task, tid);
		if (err) {
			remove_task(a, task);
			return err;
		}
		if (!task->pool)
			rt_log_debug("engine", "process %u: %s", pid, task->why);
		else
			RT_TRY(rt_agent_threads_look(a, task));
		if (task->pool && tid)
			RT_TRY(rt_agent_thread_stands(a, task, tid));
	}
	*ret = task;
	return NULL;
}

static struct rt_error *cannot_have(uint32_t pid, const char *why, const char *what)
{
	return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "process %u cannot have the agent: %s%s", pid, why, what),
			    "as root: --engine uprobe");
}

static struct rt_error *agent_extend(struct rt_engine *engine, const struct rt_arm *arm,
				     void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg)
{
	struct rt_agent *a = agent_of(engine);
	struct rt_agent_task *task = NULL;

	if (a->stopped)
		return rt_error_new(RT_E_INTERNAL, "engine agent: extend after stop");
	if (arm->unfit)
		return cannot_have(arm->pid, "its memory is laid out by ", arm->unfit);
	RT_TRY(task_for(a, arm->pid, arm->wire_pid, arm->tid, &task));
	if (task->lodger)
		return NULL;
	if (!task->pool)
		return cannot_have(arm->pid, task->why, "");
	return rt_agent_patch(a, task, arm, failed, arg);
}

static struct rt_error *agent_code(struct rt_engine *engine, const struct rt_arm *arm,
				   const struct rt_engine_code *list, size_t count)
{
	struct rt_agent *a = agent_of(engine);
	struct rt_agent_task *task = NULL;

	if (arm->unfit)
		return NULL;
	RT_TRY(task_for(a, arm->pid, arm->wire_pid, arm->tid, &task));
	return task->pool ? rt_agent_tell_code(a, task, list, count) : NULL;
}

/* The agent that came with the memory is silent from now on: it must not write into its parent's rings. */
static void silence(struct rt_stopped *child, const struct rt_agent_pool *pool)
{
	uint64_t silent = RT_AGENT_SILENT;

	(void)rt_stopped_write(child, pool->code + offsetof(struct rt_agent_head, off), &silent, sizeof(silent));
}

static struct rt_error *agent_leave(struct rt_engine *engine, uint32_t parent, uint32_t pid)
{
	struct rt_agent *a = agent_of(engine);
	const struct rt_agent_task *from = rt_agent_task(a, parent);
	struct rt_stopped r;

	if (!from || !from->pool || rt_proc_same_memory(parent, pid))
		return NULL;
	RT_TRY(rt_stopped_open(&r, pid, 0));
	silence(&r, from->pool);
	rt_stopped_close(&r);
	return from->semaphores.len ? rt_semaphores_leave(a->semaphores, parent, pid) : NULL;
}

/* Calls of the parent that the child will return from, too. */
static void inherit_waiting(struct rt_agent_process *process, const struct rt_agent_process *from)
{
	memcpy(process->pending_parts, from->pending_parts, sizeof(process->pending_parts));
	RT_AGENT_EACH_PENDING (i, process) {
		process->pending[i] = from->pending[i];
		process->pending[i].inherited = 1;
		process->astray |= process->pending[i].slot != 0;
	}
}

/* A forked child has what its parent has: the agent, the jumps, the pool. It gets its own rings. */
static struct rt_error *agent_fork(struct rt_engine *engine, uint32_t parent, uint32_t pid, uint32_t wire_pid)
{
	struct rt_agent *a = agent_of(engine);
	const struct rt_agent_task *from = rt_agent_task(a, parent);
	struct rt_agent_process *process;
	struct rt_agent_task *task;
	struct rt_stopped r;
	struct rt_map_slot *slot;
	uint64_t address;
	size_t pos = 0;

	if (!from || !from->pool)
		return NULL;
	task = add_task(a, pid, wire_pid);
	if (!task)
		return rt_error_nomem();
	task->lodger = rt_proc_same_memory(parent, pid);
	if (task->lodger)
		return NULL;
	task->offset = rt_agent_pool_take(from->pool, 1);
	task->stop_armed = from->stop_armed;
	for (size_t i = 0; i < from->jumps.len; i++)
		if (!rt_vec_push(&task->jumps, from->jumps.data[i]))
			return rt_error_nomem();
	for (size_t i = 0; i < from->areas.len; i++)
		if (!rt_vec_push(&task->areas, from->areas.data[i]))
			return rt_error_nomem();
	while ((slot = rt_map_next(&from->armed, &pos)) != NULL) {
		uint64_t *value = rt_map_put(&task->armed, slot->key, NULL);

		if (!value)
			return rt_error_nomem();
		*value = slot->value;
	}
	task->pool = from->pool;
	task->pool->users++;
	if (task->offset && !rt_agent_tallies_make(a, task)) {
		rt_agent_pool_give(task->pool, task->offset, 1);
		task->offset = 0;
	}
	RT_TRY(rt_agent_semaphores_fork(a, from, task));
	RT_TRY(rt_stopped_open(&r, pid, 0));
	if (!task->offset) {
		silence(&r, task->pool);
		rt_stopped_close(&r);
		task->pool->users--;
		task->pool = NULL;
		task->why = "more processes and threads than there is memory for";
		return rt_error_new(RT_E_LIMIT, "process %u is not traced: %s", pid, task->why);
	}
	process = rt_agent_process(task);
	process->wire_pid = wire_pid;
	process->next_stack = 1;
	process->r_state = rt_agent_process(from)->r_state;
	process->code = rt_agent_process(from)->code;
	process->looks = rt_agent_process(from)->looks;
	if (process->looks) {
		memcpy(process->slots, rt_agent_process(from)->slots, sizeof(process->slots));
		memcpy(process->objects, rt_agent_process(from)->objects, sizeof(process->objects));
	}
	inherit_waiting(process, rt_agent_process(from));
	address = task->pool->at + task->offset;
	(void)rt_stopped_write(&r, task->pool->code, &address, sizeof(address));
	rt_stopped_close(&r);
	return NULL;
}

static struct rt_error *agent_thread(struct rt_engine *engine, uint32_t pid, uint32_t tid, bool ends)
{
	struct rt_agent *a = agent_of(engine);
	struct rt_agent_task *task = rt_agent_task(a, pid);

	if (!task || !task->pool)
		return NULL;
	if (!ends)
		return rt_agent_thread_stands(a, task, tid);
	rt_agent_thread_ends(task, tid);
	return NULL;
}

/* A load of the agent that found nothing goes on behind it. */
static bool agent_fault(struct rt_engine *engine, uint32_t pid, uint32_t tid)
{
	const struct rt_agent_task *task = rt_agent_task(agent_of(engine), pid);
	const struct rt_agent_head *head = rt_agent_blob_head();
	struct user_regs_struct regs;
	siginfo_t info;
	uint64_t at;

	/* one that somebody has sent is the program's */
	if (ptrace(PTRACE_GETSIGINFO, tid, 0, &info) < 0 || info.si_code <= 0)
		return false;
	if (!task || !task->pool || ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0 || regs.rip < task->pool->code)
		return false;
	at = regs.rip - task->pool->code;
	for (uint32_t i = head->fixup; i + sizeof(struct rt_agent_fixup) <= head->fixup_end;
	     i += sizeof(struct rt_agent_fixup)) {
		const struct rt_agent_fixup *f = (const void *)(rt_agent_blob + i);

		if (i + (uint64_t)(int64_t)f->load != at)
			continue;
		regs.rip =
			task->pool->code + i + offsetof(struct rt_agent_fixup, resume) + (uint64_t)(int64_t)f->resume;
		return ptrace(PTRACE_SETREGS, tid, 0, &regs) == 0;
	}
	return false;
}

static bool agent_is_in(struct rt_engine *engine, uint32_t pid, uint64_t pc)
{
	const struct rt_agent_task *task = rt_agent_task(agent_of(engine), pid);

	if (!task || !task->pool)
		return false;
	for (size_t i = 0; i < task->areas.len; i++)
		if (pc - task->areas.data[i].start < RT_AGENT_AREA)
			return true;
	return pc - task->pool->code < rt_agent_blob_bytes;
}

static bool agent_asks(struct rt_engine *engine, uint32_t pid, uint32_t *ret_tid)
{
	const struct rt_agent_task *task = rt_agent_task(agent_of(engine), pid);
	const struct rt_agent_process *p;

	if (!task || !task->pool)
		return false;
	p = rt_agent_process(task);
	if (__atomic_load_n(&p->stop_asked, __ATOMIC_ACQUIRE) == p->stop_done)
		return false;
	*ret_tid = p->stop_tid ?: pid;
	return true;
}

static void agent_answer(struct rt_engine *engine, uint32_t pid)
{
	const struct rt_agent_task *task = rt_agent_task(agent_of(engine), pid);
	struct rt_agent_process *p;

	if (!task || !task->pool)
		return;
	p = rt_agent_process(task);
	__atomic_store_n(&p->stop_done, p->stop_asked, __ATOMIC_RELEASE);
}

/* By which objects are counted: looks at a clock of their own cost threads too much. */
static void set_clocks(const struct rt_agent *a)
{
	for (size_t i = 0; a->options.counting && i < a->tasks.len; i++)
		if (a->tasks.data[i]->pool)
			__atomic_store_n(&rt_agent_shared(a->tasks.data[i]->pool)->clock_ns, rt_now_ns(),
					 __ATOMIC_RELAXED);
}

static struct rt_error *agent_drain(struct rt_engine *engine, struct rt_event_sink *sink)
{
	struct rt_agent *a = agent_of(engine);

	set_clocks(a);
	RT_TRY(rt_agent_drain(a, sink));
	return rt_counted_say(&a->counted, sink);
}

static void agent_forget(struct rt_engine *engine, uint32_t pid)
{
	struct rt_agent_task *task = rt_agent_task(agent_of(engine), pid);

	if (task)
		remove_task(agent_of(engine), task);
}

/* Of point, over all threads that are and were. */
static void sum_point(const struct rt_agent *a, uint32_t point, struct rt_point_count *ret)
{
	*ret = a->gone[point];
	ret->records = a->records[point];
	for (size_t i = 0; i < a->tasks.len; i++) {
		const struct rt_agent_task *task = a->tasks.data[i];

		for (size_t k = 0; task->pool && k < task->members.len; k++)
			rt_point_count_add(ret, &rt_agent_thread(task, task->members.data[k].offset)->count[point]);
	}
}

/* Counters first: nobody shall come to a marker for us when it is none any more. */
static void let_go_all(struct rt_agent *a)
{
	for (size_t i = 0; i < a->tasks.len; i++) {
		if (!a->tasks.data[i]->pool)
			continue;
		rt_agent_lower(a, a->tasks.data[i]);
		rt_agent_unpatch(a->tasks.data[i]);
	}
	rt_semaphores_destroyp(&a->semaphores);
	a->semaphores = NULL;
}

static void agent_disarm(struct rt_engine *engine)
{
	struct rt_agent *a = agent_of(engine);

	if (!a->disarmed)
		let_go_all(a);
	a->disarmed = true;
}

static bool is_hooked(const struct rt_agent *a)
{
	for (size_t i = 0; i < a->tasks.len; i++) {
		const struct rt_agent_task *task = a->tasks.data[i];

		for (size_t k = 0; task->pool && k < task->members.len; k++) {
			const struct rt_agent_member *m = &task->members.data[k];

			if (!m->gone && __atomic_load_n(&rt_agent_thread(task, m->offset)->entered, __ATOMIC_ACQUIRE))
				return true;
		}
	}
	return false;
}

/* Threads that were in a hook when they were let go come out of it, or have ended; what was told meanwhile is taken. */
static struct rt_error *drain_last(struct rt_agent *a, struct rt_event_sink *sink)
{
	const uint64_t until = rt_now_ns() + LAST_HOOKS_NS;

	while (is_hooked(a) && rt_now_ns() < until) {
		RT_TRY(rt_agent_drain(a, sink));
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	return rt_agent_drain(a, sink);
}

static struct rt_error *agent_stop(struct rt_engine *engine, struct rt_event_sink *sink)
{
	struct rt_agent *a = agent_of(engine);
	uint64_t struck;

	if (a->stopped)
		return NULL;
	a->stopped = true;
	agent_disarm(engine);
	RT_TRY(drain_last(a, sink));
	for (size_t i = 0; i < a->tasks.len; i++) {
		struct rt_agent_task *task = a->tasks.data[i];

		if (!task->pool)
			continue;
		count_waiting(a, task, a->gone);
		for (size_t k = 0; k < task->members.len; k++)
			rt_agent_tallies_thread(a, task, rt_agent_thread(task, task->members.data[k].offset));
		take_tallies(a, task);
	}
	RT_TRY(rt_counted_say(&a->counted, sink));
	struck = a->struck;
	for (uint32_t point = 1; point <= a->last_point; point++) {
		struct rt_point_count count;

		if (!a->probe[point].op)
			continue;
		sum_point(a, point, &count);
		rt_point_count_struck(&count, &struck);
		RT_TRY(rt_point_say(sink, point, &count,
				    a->options.counting ? "the table of objects was full" : "the ring buffer was full",
				    "returns not seen: an exception or a jump has left the call, the "
				    "processor keeps a shadow stack, or too many wait"));
	}
	return rt_point_say_loss(sink, RT_LOSS_RING, 0, a->strangers, "too many threads for the agent's memory");
}

static void agent_stats(struct rt_engine *engine, struct rt_engine_stats *ret)
{
	const struct rt_agent *a = agent_of(engine);
	struct rt_engine_stats stats = { .balanced = true };
	uint64_t struck = a->struck;

	for (uint32_t point = 1; point <= a->last_point; point++) {
		struct rt_point_count count;

		sum_point(a, point, &count);
		rt_point_count_struck(&count, &struck);
		stats.records += count.records;
		stats.hits += count.sum.hits;
		stats.dropped += count.sum.ring + count.sum.busy;
		stats.faults += count.sum.faults;
		stats.stack_resent += count.sum.resent;
		stats.passed += count.sum.passed;
		stats.returns += count.sum.entries;
		stats.returns_missed += rt_point_count_missed(&count);
		stats.balanced = stats.balanced && rt_point_count_balances(&count);
	}
	stats.dropped += a->strangers;
	*ret = stats;
}

/* What the agent has measured so far, and what leads there: a jump, the registers, a look who runs. */
static struct rt_error *agent_cost(struct rt_engine *engine, struct rt_engine_cost *ret)
{
	enum { LEAD_NS = 4, GUESS_NS = 30, GUESS_PASSED_NS = 12 };
	const struct rt_agent *a = agent_of(engine);
	uint64_t timed[2] = { a->timed[0], a->timed[1] };
	double cycles[2] = { a->cycles[0], a->cycles[1] };
	double ns[2];

	for (size_t i = 0; i < a->tasks.len; i++) {
		const struct rt_agent_task *task = a->tasks.data[i];

		for (size_t k = 0; task->pool && k < task->members.len; k++) {
			const struct rt_agent_thread *t = rt_agent_thread(task, task->members.data[k].offset);

			for (unsigned told = 0; told < 2; told++) {
				timed[told] += t->timed[told];
				cycles[told] += (double)t->cycles[told];
			}
		}
	}
	ns[0] = timed[0] ? cycles[0] / (double)timed[0] * a->clock.slope : GUESS_PASSED_NS;
	ns[1] = timed[1] ? cycles[1] / (double)timed[1] * a->clock.slope : GUESS_NS;
	ret->passed_ns = (uint32_t)ns[0] + LEAD_NS;
	ret->event_ns = (uint32_t)ns[1] + LEAD_NS;
	/* the way through a thunk is a second hook, without a stack */
	ret->return_ns = ret->passed_ns;
	return NULL;
}

static void agent_sample(struct rt_engine *engine, uint32_t rate)
{
	struct rt_agent *a = agent_of(engine);

	a->options.sample.rate = rate;
	for (size_t i = 0; i < a->tasks.len; i++)
		if (a->tasks.data[i]->pool)
			__atomic_store_n(&rt_agent_shared(a->tasks.data[i]->pool)->sample_rate, rate, __ATOMIC_SEQ_CST);
}

static void agent_close(struct rt_engine *engine)
{
	struct rt_agent *a = agent_of(engine);

	if (!a)
		return;
	agent_disarm(engine);
	while (a->tasks.len)
		remove_task(a, a->tasks.data[0]);
	for (size_t i = 0; i < a->kept.len; i++)
		free(a->kept.data[i].row);
	rt_vec_deinit(&a->kept);
	rt_vec_deinit(&a->tasks);
	rt_map_deinit(&a->rows);
	rt_agent_held_deinit(&a->held_pool);
	rt_counted_drop(&a->counted);
	rt_decoder_destroy(a->decoder);
	free(a->gone);
	free(a);
}

/*
 * Whether programs here may use rdfsbase. The kernel says so where it uses it itself; a guest's kernel that knows
 * nothing of it may run under a hypervisor that allows it (CR4.FSGSBASE is the processor's, and one for all), so a
 * child tries.
 */
static bool has_rdfsbase(void)
{
	int status;
	pid_t pid;

	if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)
		return true;
	pid = fork();
	if (pid < 0)
		return false;
	if (!pid) {
		uint64_t base, self;

		signal(SIGILL, SIG_DFL);
		prctl(PR_SET_DUMPABLE, 0);
		asm volatile("rdfsbase %0\n"
			     "mov %%fs:0, %1"
			     : "=r"(base), "=r"(self));
		_exit(base != self);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* The agent tells threads by their thread pointer and time by the time stamp counter. */
static struct rt_error *agent_probe(const struct rt_engine_options *options)
{
	_cleanup_free_ char *source = NULL;
	size_t len;

	if (!has_rdfsbase())
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
						 "engine agent needs the instruction rdfsbase, which this processor or "
						 "kernel (before 5.9) does not let programs use"),
				    "as root: --engine uprobe");
	RT_TRY(rt_fs_read(options->root_fd, "/sys/devices/system/clocksource/clocksource0/current_clocksource", 256,
			  &source, NULL));
	len = strcspn(source, "\n");
	if (strncmp(source, "tsc", len) != 0 && strncmp(source, "kvm-clock", len) != 0)
		return rt_error_fix(
			rt_error_new(RT_E_UNSUPPORTED,
				     "engine agent needs a reliable time stamp counter, and this kernel's clock "
				     "is %.*s",
				     (int)len, source),
			"as root: --engine uprobe");
	return NULL;
}

static void agent_closep(struct rt_agent **a)
{
	if (*a)
		agent_close(&(*a)->base);
}

static struct rt_error *agent_open(const struct rt_engine_options *options, struct rt_engine **ret)
{
	_cleanup_(agent_closep) struct rt_agent *a = calloc(1, sizeof(*a));

	if (!a)
		return rt_error_nomem();
	a->base.ops = &rt_engine_agent;
	a->options = *options;
	a->gone = calloc(RT_AGENT_POINTS, sizeof(a->gone[0]));
	if (!a->gone)
		return rt_error_nomem();
	RT_TRY(rt_decoder_create(RT_MACHINE_X86_64, &a->decoder));
	rt_agent_clock_init(&a->clock);
	*ret = &rt_take(a)->base;
	return NULL;
}

const struct rt_engine_ops rt_engine_agent = {
	.name = "agent",
	.room = RT_MOVE_JUMP,
	.probe = agent_probe,
	.open = agent_open,
	.extend = agent_extend,
	.code = agent_code,
	.fork = agent_fork,
	.leave = agent_leave,
	.thread = agent_thread,
	.fault = agent_fault,
	.is_in = agent_is_in,
	.asks = agent_asks,
	.answer = agent_answer,
	.sample = agent_sample,
	.cost = agent_cost,
	.drain = agent_drain,
	.forget = agent_forget,
	.disarm = agent_disarm,
	.stop = agent_stop,
	.stats = agent_stats,
	.close = agent_close,
};
