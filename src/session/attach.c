/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attaching to running processes and letting go of them. What was there before
 * is there after: no stopped thread, no pending stop of ours, no tracer.
 */
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/log.h"
#include "session/internal.h"

#define STOP_NS 2000000000u   /* a thread in uninterruptible sleep stops when it can: not waited for longer */
#define DETACH_NS 3000000000u /* the same for letting go; the kernel does the rest when we end */
#define LEADER_NS 1000000000u /* exec replaces a dead main thread much sooner */

static void doze(void)
{
	struct timespec ms = { 0, 500 * 1000 };

	nanosleep(&ms, NULL);
}

/* ---- may it be traced? ---- */

static struct rt_error *gone(uint32_t pid)
{
	return rt_error_new(RT_E_NO_PROCESS, "no process %u", pid);
}

static bool leader_has_ended(uint32_t pid)
{
	char state = rt_proc_state(pid);

	return state == 'Z' || state == 'X';
}

/*
 * A thread that calls exec takes the place of the main thread, which is dead for a moment; where the main thread
 * called pthread_exit(), it stays dead, and with it what /proc says of the process.
 */
static struct rt_error *await_leader(uint32_t pid)
{
	uint64_t until = rt_now_ns() + LEADER_NS;
	char comm[64];

	while (leader_has_ended(pid)) {
		_cleanup_free_ uint32_t *tids = NULL;
		size_t count = 0;

		rt_proc_comm(pid, comm, sizeof(comm));
		if (rt_proc_tasks(pid, &tids, &count) && count < 2)
			return rt_error_new(RT_E_NO_PROCESS, "process %u (%s) has ended", pid, comm);
		if (rt_now_ns() > until)
			return rt_error_new(RT_E_UNSUPPORTED,
					    "the main thread of process %u (%s) has ended, and what its other threads "
					    "run cannot be seen",
					    pid, comm);
		doze();
	}
	return NULL;
}

static struct rt_error *check_target(uint32_t pid, uint32_t *ret)
{
	uint64_t tgid, kernel = 0;
	char comm[64];

	if (!pid || !rt_proc_status(pid, "Tgid", 10, &tgid) || !tgid)
		return gone(pid);
	*ret = (uint32_t)tgid;
	RT_TRY(await_leader(*ret));
	rt_proc_comm(*ret, comm, sizeof(comm));
	if (!rt_proc_state(*ret))
		return rt_error_new(RT_E_NO_PROCESS, "process %u (%s) has ended", *ret, comm);
	if (tgid == (uint64_t)getpid())
		return rt_error_new(RT_E_USAGE, "process %u is reftrace itself", *ret);
	if (rt_proc_status(*ret, "Kthread", 10, &kernel) && kernel)
		return rt_error_new(RT_E_UNSUPPORTED, "process %u (%s) is a kernel thread", *ret, comm);
	return rt_proc_check_untraced(*ret);
}

/* Kernels before 6.8 do not mark kernel threads in status: they have no program. */
static struct rt_error *check_program(uint32_t pid)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	char path[64], comm[64], link[8];
	struct rt_error *err;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	rt_proc_comm(pid, comm, sizeof(comm));
	if (readlink(path, link, sizeof(link)) < 0 && errno == ENOENT && leader_has_ended(pid))
		RT_TRY(await_leader(pid));
	if (readlink(path, link, sizeof(link)) < 0 && errno == ENOENT)
		return rt_error_new(RT_E_UNSUPPORTED, "process %u (%s) is a kernel thread", pid, comm);
	err = rt_image_open(path, &image);
	if (err && (err->errnum == EACCES || err->errnum == EPERM)) {
		rt_error_free(err);
		return rt_error_fix(rt_error_new(RT_E_PRIVILEGE, "not permitted to trace process %u (%s)", pid, comm),
				    "sudo reftrace -p %u ...", pid);
	}
	RT_TRY(err);
	if (!image->is_64 || image->machine != RT_MACHINE_X86_64)
		return rt_error_new(RT_E_ARCH, "process %u (%s) runs a program that is not for x86-64", pid, comm);
	return NULL;
}

static struct rt_error *refused(uint32_t pid, int errnum)
{
	_cleanup_free_ char *yama = NULL;
	struct rt_error *err, *ignored;
	char comm[64];

	if (errnum == ESRCH)
		return gone(pid);
	err = rt_error_errno(RT_E_PRIVILEGE, errnum, "not permitted to trace process %u (%s)", pid,
			     rt_proc_comm(pid, comm, sizeof(comm)));
	ignored = rt_fs_read(-100, "/proc/sys/kernel/yama/ptrace_scope", 16, &yama, NULL);
	rt_error_free(ignored);
	if (yama && yama[0] != '0' && geteuid() != 0)
		return rt_error_fix(err, "sudo reftrace -p %u ...  (kernel.yama.ptrace_scope=%c)", pid, yama[0]);
	return geteuid() == 0 ? err : rt_error_fix(err, "sudo reftrace -p %u ...", pid);
}

/* ---- attach ---- */

/* Threads may appear while we look: until a look finds no new one. */
static struct rt_error *seize(struct rt_session *s, struct rt_process *p)
{
	int refusals = 0;

	for (bool again = true; again;) {
		_cleanup_free_ uint32_t *tids = NULL;
		size_t count = 0;

		again = false;
		if (!rt_proc_tasks(p->tgid, &tids, &count))
			return gone(p->tgid);
		for (size_t i = 0; i < count; i++) {
			struct rt_thread *known = rt_session_thread(s, tids[i]);

			if (known && rt_tracee_is_ours(known->tid))
				continue;
			/*
			 * A thread that was not seized yet called exec: it has the leader's id now, and the leader that
			 * was seized is gone without a word.
			 */
			if (known)
				rt_thread_remove(s, known);
			if (ptrace(PTRACE_SEIZE, tids[i], 0, rt_session_ptrace_flags(s)) < 0) {
				uint64_t tracer = 0;

				/* it is ours already when its creator was seized before it was made */
				if (errno == EPERM && rt_proc_status(tids[i], "TracerPid", 10, &tracer) &&
				    tracer != (uint64_t)getpid() && tids[i] == p->tgid) {
					if (!leader_has_ended(p->tgid) && refusals++)
						return refused(p->tgid, EPERM);
					RT_TRY(await_leader(p->tgid));
					again = true;
					break;
				}
				if (errno != EPERM && errno != ESRCH)
					return refused(p->tgid, errno);
				if (errno == ESRCH || tracer != (uint64_t)getpid())
					continue; /* ended meanwhile */
			}
			if (!rt_thread_add(s, p, tids[i]))
				return rt_error_nomem();
			again = true;
		}
	}
	return p->threads.len ? NULL : gone(p->tgid);
}

static struct rt_error *seize_pid(struct rt_session *s, uint32_t pid)
{
	struct rt_process *p;
	uint32_t tgid = 0;

	RT_TRY(check_target(pid, &tgid));
	if (rt_session_process(s, tgid))
		return NULL; /* named twice */
	RT_TRY(check_program(tgid));
	p = rt_process_add(s, tgid);
	if (!p)
		return rt_error_nomem();
	p->attached = true;
	if (!s->root)
		s->root = tgid;
	return seize(s, p);
}

/* Is t one of those that are to stop? tgid 0: everybody. */
static bool is_meant(const struct rt_thread *t, uint32_t tgid)
{
	return !tgid || (t->process && t->process->tgid == tgid);
}

static size_t not_stopped(const struct rt_session *s, uint32_t tgid)
{
	const struct rt_map_slot *slot;
	size_t pos = 0, n = 0;

	while ((slot = rt_map_next(&s->threads, &pos)) != NULL) {
		const struct rt_thread *t = (const struct rt_thread *)(uintptr_t)slot->value;

		n += is_meant(t, tgid) && !t->stopped;
	}
	return n;
}

struct rt_error *rt_session_stop(struct rt_session *s, uint32_t tgid)
{
	uint64_t until = rt_now_ns() + STOP_NS;
	struct rt_map_slot *slot;
	size_t pos = 0;

	s->collecting = true;
	while ((slot = rt_map_next(&s->threads, &pos)) != NULL) {
		const struct rt_thread *t = (const struct rt_thread *)(uintptr_t)slot->value;

		if (is_meant(t, tgid) && !t->stopped)
			ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	}
	for (;;) {
		RT_TRY(rt_tracee_reap(s));
		if (!not_stopped(s, tgid) || rt_now_ns() > until)
			return NULL;
		doze();
	}
}

struct rt_error *rt_session_stop_all(struct rt_session *s)
{
	return rt_session_stop(s, 0);
}

static struct rt_error *take_in(struct rt_session *s, struct rt_process *p)
{
	RT_TRY(rt_emit_task(s, RT_WIRE_MARK, rt_process_wire(p), p->tgid, 0, RT_MARK_ATTACH));
	return rt_session_look(s, p);
}

static struct rt_error *replay(struct rt_session *s, struct rt_process *p)
{
	/* the list may change under a replay: one thread at a time */
	for (size_t i = 0; i < p->threads.len; i++) {
		uint32_t tgid = p->tgid;

		if (!p->threads.data[i]->saved)
			continue;
		RT_TRY(rt_tracee_replay(s, p->threads.data[i]));
		if (rt_session_process(s, tgid) != p)
			return NULL;
		i = (size_t)-1;
	}
	return NULL;
}

struct rt_error *rt_session_go_on(struct rt_session *s)
{
	s->collecting = false;
	return rt_process_each(s, replay);
}

struct rt_error *rt_session_attach(struct rt_session *s)
{
	for (size_t i = 0; i < s->options.pid_count; i++)
		RT_TRY(seize_pid(s, s->options.pids[i]));
	RT_TRY(rt_session_stop_all(s));
	s->attaching = true;
	RT_TRY(rt_process_each(s, take_in));
	s->attaching = false;
	return rt_session_go_on(s);
}

/* ---- letting go ---- */

/* A stop that the engine asked for and that is still to come would stop the process for good. */
static bool stop_is_pending(uint32_t tid)
{
	for (uint32_t flags = 0; flags <= PTRACE_PEEKSIGINFO_SHARED; flags++) {
		struct __ptrace_peeksiginfo_args args = { .off = 0, .flags = flags, .nr = 1 };
		siginfo_t info;

		for (; ptrace(PTRACE_PEEKSIGINFO, tid, &args, &info) == 1; args.off++) {
			if (info.si_signo == SIGSTOP && rt_engine_is_stop(info.si_code))
				return true;
		}
	}
	return false;
}

/* Children that a thread was just making are ours as well. */
static void note_child(struct rt_session *s, const struct rt_thread *t)
{
	int event = t->status >> 16;
	uint32_t tid;

	if (event != PTRACE_EVENT_FORK && event != PTRACE_EVENT_VFORK && event != PTRACE_EVENT_CLONE)
		return;
	if (rt_tracee_child(t->tid, event, &tid) && !rt_thread_add(s, NULL, tid))
		rt_log_debug("session", "out of memory: child %u stays for the kernel to detach", tid);
}

static void let_go(struct rt_session *s, struct rt_thread *t)
{
	bool delivery = !(t->status >> 16);
	int sig = delivery ? WSTOPSIG(t->status) : 0;

	if (delivery && rt_tracee_is_engine_stop(t->tid, t->status))
		sig = 0;
	note_child(s, t);
	if (stop_is_pending(t->tid)) {
		rt_thread_continue(t, sig); /* up to that stop, which comes before any code of the program */
		return;
	}
	ptrace(PTRACE_DETACH, t->tid, 0, (unsigned long)sig);
	rt_thread_remove(s, t);
}

void rt_session_detach_all(struct rt_session *s)
{
	uint64_t until = rt_now_ns() + DETACH_NS;

	s->collecting = true;
	while (s->threads.len && rt_now_ns() < until) {
		struct rt_map_slot *slot;
		struct rt_error *err;
		size_t pos = 0;
		bool any = false;

		while ((slot = rt_map_next(&s->threads, &pos)) != NULL) {
			struct rt_thread *t = (struct rt_thread *)(uintptr_t)slot->value;

			if (!t->stopped)
				continue;
			let_go(s, t);
			any = true;
			pos = 0;
		}
		err = rt_tracee_reap(s);
		if (err) {
			rt_log_debug("session", "while detaching: %s", err->message);
			rt_error_free(err);
		}
		if (!any && s->threads.len)
			doze();
	}
	rt_process_remove_all(s);
	s->collecting = false;
}
