/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ptrace tells, one wait status at a time. A program must behave as
 * without us: signals go on with the information they came with, group stops
 * stay group stops, and nothing stays stopped that we do not need.
 *
 * A new child may report its first stop before its parent's event names it:
 * it waits in the table without a process until then.
 */
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/log.h"
#include "session/internal.h"

#define ORPHAN_NS 100000000u /* a child whose parent died before its event */
#define EXIT_NS 100000000u   /* how long a thread at its exit waits for the others */

/* The thread stands, or runs no more. */
static struct rt_error *engine_thread(struct rt_session *s, const struct rt_thread *t, bool ends)
{
	return s->ops->thread && t->process ? s->ops->thread(s->engine, t->process->tgid, t->tid, ends) : NULL;
}

static bool is_group_stop(int status)
{
	int sig = WSTOPSIG(status);

	return status >> 16 == PTRACE_EVENT_STOP &&
	       (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU);
}

void rt_thread_continue(struct rt_thread *t, int signal)
{
	t->stopped = false;
	t->listening = false;
	t->saved = false;
	/* ESRCH: killed meanwhile; wait() will tell */
	if (ptrace(PTRACE_CONT, t->tid, 0, (unsigned long)signal) < 0 && errno != ESRCH)
		rt_log_debug("session", "cannot continue %u: %s", t->tid, strerror(errno));
}

bool rt_tracee_is_engine_stop(uint32_t tid, int status)
{
	siginfo_t info = { 0 };

	if (status >> 16 || WSTOPSIG(status) != SIGSTOP)
		return false;
	return ptrace(PTRACE_GETSIGINFO, tid, 0, &info) == 0 && rt_engine_is_stop(info.si_code);
}

static struct rt_error *on_signal(struct rt_session *s, struct rt_thread *t, int status)
{
	int sig = WSTOPSIG(status);

	if ((sig == SIGSEGV || sig == SIGBUS) && s->ops->fault && s->ops->fault(s->engine, t->process->tgid, t->tid)) {
		rt_thread_continue(t, 0);
		return NULL;
	}
	if (rt_tracee_is_engine_stop(t->tid, status)) {
		int exit_status;

		if (s->ops->unwinds && s->ops->unwinds(s->engine, t->process->tgid, t->tid)) {
			rt_thread_continue(t, 0);
			return NULL;
		}
		if (rt_session_is_exit(t->process, t, &exit_status))
			return rt_session_main_returned(s, t, exit_status);
		RT_TRY(rt_session_look(s, t->process));
		rt_thread_continue(t, 0);
		return NULL;
	}
	if ((sig == SIGINT || sig == SIGTERM || sig == SIGQUIT || sig == SIGHUP) && t->process->tgid == s->root) {
		siginfo_t info = { 0 };

		if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) == 0 && info.si_code == SI_KERNEL) {
			s->tty_signal = sig;
			s->tty_ns = rt_now_ns();
		}
	}
	t->signal = sig;
	rt_thread_continue(t, sig);
	return NULL;
}

/* ---- new threads and processes ---- */

bool rt_tracee_is_ours(uint32_t tid)
{
	siginfo_t info;

	return !waitid(P_PID, tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) || errno != ECHILD;
}

/*
 * One that is killed in its stop goes on to the next, at its exit, where the message is its status: the number is a
 * child's only if it stood at the event after it was read.
 */
bool rt_tracee_child(uint32_t tid, int event, uint32_t *ret)
{
	unsigned long message = 0;
	siginfo_t info = { 0 };

	if (ptrace(PTRACE_GETEVENTMSG, tid, 0, &message) < 0 || ptrace(PTRACE_GETSIGINFO, tid, 0, &info) < 0 ||
	    info.si_code != (SIGTRAP | event << 8))
		return false;
	*ret = (uint32_t)message;
	return true;
}

static bool is_thread_of(uint32_t tgid, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u", tgid, tid);
	return access(path, F_OK) == 0;
}

static struct rt_error *copy_process(struct rt_session *s, const struct rt_process *parent, uint32_t tgid,
				     struct rt_process **ret)
{
	struct rt_process *p = rt_process_add(s, tgid);

	if (!p)
		return rt_error_nomem();
	p->attached = parent->attached;
	p->main_module = parent->main_module;
	p->loader = parent->loader;
	p->debug_state = parent->debug_state;
	p->looked = parent->looked;
	p->loaded = parent->loaded;
	p->foreign = parent->foreign;
	p->bystander = parent->bystander;
	for (size_t i = 0; i < parent->maps.len; i++) {
		if (!rt_vec_push(&p->maps, parent->maps.data[i]))
			return rt_error_nomem();
	}
	*ret = p;
	return NULL;
}

/* The thread goes on if it already stands at its first stop. */
static struct rt_error *first_step(struct rt_session *s, struct rt_thread *t)
{
	return t->saved ? rt_tracee_replay(s, t) : NULL;
}

/* Its birth is told before it runs: its number may have been that of a thread that ended. */
static struct rt_error *new_thread(struct rt_session *s, struct rt_process *p, uint32_t by, uint32_t tid)
{
	struct rt_thread *t = rt_session_thread(s, tid);
	bool known = t && t->process == p; /* adopted, or there when its process was attached to */

	t = rt_thread_add(s, p, tid);
	if (!t)
		return rt_error_nomem();
	if (!known)
		RT_TRY(rt_emit_task(s, RT_WIRE_THREAD, rt_process_wire(p), by, tid, 0));
	return first_step(s, t);
}

/* What the engine put into the parent is in the child, too. */
static struct rt_error *copy_engine(struct rt_session *s, const struct rt_process *parent, const struct rt_process *p)
{
	struct rt_error *err = s->ops->fork ? s->ops->fork(s->engine, parent->tgid, p->tgid, rt_process_wire(p)) : NULL;

	if (!err || err->code == RT_E_NOMEM)
		return err;
	if (err->code != RT_E_NO_PROCESS) /* else it is dead already */
		RT_TRY(rt_emit_loss(s, RT_LOSS_UNTRACED, rt_process_wire(p), 0, "%s", err->message));
	rt_error_free(err);
	return NULL;
}

/* A child that is not followed: the engine takes out of it what came with its parent's memory. */
static struct rt_error *leave(struct rt_session *s, const struct rt_process *parent, uint32_t tgid)
{
	struct rt_error *err = s->ops->leave ? s->ops->leave(s->engine, parent->tgid, tgid) : NULL;

	if (!err || err->code == RT_E_NOMEM)
		return err;
	if (err->code != RT_E_NO_PROCESS) /* else it is dead already */
		RT_TRY(rt_emit_loss(s, RT_LOSS_DOUBT, rt_process_wire(parent), 0,
				    "child %u, which is not followed, keeps what was written into its parent: %s", tgid,
				    err->message));
	rt_error_free(err);
	return NULL;
}

static struct rt_error *new_process(struct rt_session *s, struct rt_thread *by, uint32_t tgid, bool vfork)
{
	struct rt_process *parent = by->process, *p = rt_session_process(s, tgid);
	struct rt_thread *t;

	RT_TRY(rt_session_drain(s));
	if (p) {
		/* the pid came again, and the end of its last owner was not seen */
		s->ops->forget(s->engine, tgid);
		t = rt_session_thread(s, tgid);
		if (t)
			t->process = NULL;
		for (size_t i = 0; t && i < p->threads.len; i++) {
			if (p->threads.data[i] == t)
				p->threads.data[i] = p->threads.data[--p->threads.len];
		}
		rt_process_remove(s, p);
	}
	RT_TRY(copy_process(s, parent, tgid, &p));
	p->shares_mm = vfork;
	t = rt_thread_add(s, p, tgid);
	if (!t)
		return rt_error_nomem();
	RT_TRY(rt_emit_task(s, RT_WIRE_FORK, rt_process_wire(parent), by->tid, rt_process_wire(p), 0));
	RT_TRY(copy_engine(s, parent, p));
	RT_TRY(rt_session_arm_child(s, p));
	return first_step(s, t);
}

static struct rt_error *on_child(struct rt_session *s, struct rt_thread *t, int event)
{
	uint32_t tid;

	if (!rt_tracee_child(t->tid, event, &tid))
		return NULL; /* killed */
	if (!rt_tracee_is_ours(tid)) {
		/* adopted, and ended since: all of it was told, and no end would come for a second entry */
		rt_log_debug("session", "%u is told of after its end", tid);
		rt_thread_continue(t, 0);
		return NULL;
	}
	if (event == PTRACE_EVENT_CLONE && is_thread_of(t->process->tgid, tid)) {
		RT_TRY(new_thread(s, t->process, t->tid, tid));
	} else if (s->options.no_follow || t->process->left) {
		/* it is let go at its first stop, see let_go() */
		struct rt_thread *made;

		RT_TRY(leave(s, t->process, tid));
		made = rt_thread_add(s, NULL, tid);
		if (!made)
			return rt_error_nomem();
		made->let_go = true;
		if (made->saved)
			RT_TRY(rt_tracee_replay(s, made));
	} else {
		RT_TRY(new_process(s, t, tid, event == PTRACE_EVENT_VFORK));
	}
	rt_thread_continue(t, 0);
	return NULL;
}

/* ---- exec ---- */

/* It runs on as it would without us; the kernel's breakpoints of what it was before would stop it. */
static struct rt_error *leave_untraced(struct rt_session *s, struct rt_thread *t)
{
	struct rt_process *p = t->process;
	uint32_t wire = rt_process_wire(p), tgid = p->tgid;

	if (s->ops->settle)
		s->ops->settle(s->engine);
	s->root_let_go |= tgid == s->root && !s->options.pid_count;
	ptrace(PTRACE_DETACH, t->tid, 0, 0);
	rt_process_remove(s, p);
	return rt_emit_task(s, RT_WIRE_MARK, wire, tgid, 0, RT_MARK_DETACH);
}

static struct rt_error *on_exec(struct rt_session *s, struct rt_thread *t)
{
	struct rt_process *p = t->process;
	bool first = p->tgid == s->root && !s->root_started && !s->options.pid_count;

	for (size_t i = 0; i < p->threads.len; i++)
		RT_TRY(engine_thread(s, p->threads.data[i], true));
	RT_TRY(rt_session_drain(s));
	/* the other threads are gone; the one that called exec has the leader's id now */
	for (size_t i = p->threads.len; i-- > 0;) {
		if (p->threads.data[i] != t)
			rt_thread_remove(s, p->threads.data[i]);
	}
	s->ops->forget(s->engine, p->tgid);
	if (first) {
		s->root_started = true;
	} else {
		uint64_t *gen = rt_map_put(&s->generations, rt_key_make(p->tgid, 0), NULL);

		if (!gen)
			return rt_error_nomem();
		p->gen = (uint32_t)++ * gen;
		s->last_tgid = 0;
		RT_TRY(rt_emit_task(s, RT_WIRE_EXEC, rt_process_wire(p), t->tid, 0, 0));
		if (s->call_nr)
			RT_TRY(rt_session_tell_open(s, p));
	}
	rt_vec_clear(&p->maps);
	rt_vec_clear(&p->armed);
	rt_vec_clear(&p->hooked);
	p->main_module = p->loader = 0;
	p->debug_state = 0;
	p->code_told = 0;
	p->attached = p->shares_mm = p->looked = p->loaded = p->stop_armed = p->calls_armed = false;
	p->freed_armed = p->foreign = p->bystander = false;
	p->unfit = NULL;
	p->dying = p->census_done = p->left = false;
	p->exit_at = 0;
	t->exiting = t->exit_held = false;
	RT_TRY(rt_session_look(s, p));
	if (p->let_go)
		return leave_untraced(s, t);
	rt_thread_continue(t, 0);
	return NULL;
}

/* ---- exit ---- */

/* Lets the threads go on that wait at their exit; after the census, if everybody is there. */
static struct rt_error *release_dying(struct rt_session *s, struct rt_process *p, bool look)
{
	if (look && !p->census_done) {
		p->census_done = true;
		RT_TRY(rt_session_census(s, p));
	}
	for (size_t i = 0; i < p->threads.len; i++) {
		if (p->threads.data[i]->exit_held) {
			p->threads.data[i]->exit_held = false;
			rt_thread_continue(p->threads.data[i], 0);
		}
	}
	return NULL;
}

static struct rt_error *process_ended(struct rt_session *s, struct rt_process *p, int status);

/*
 * All of its threads wait at their exit. A process that is not our child is let go there: its parent hears of its end
 * as it would without us. A zombie that a tracer has to take first is seen by who polls a pidfd, and cannot be waited
 * for.
 */
static struct rt_error *bury(struct rt_session *s, struct rt_process *p)
{
	const struct rt_thread *leader = rt_session_thread(s, p->tgid);
	bool gone = true;

	if ((p->tgid == s->root && !s->options.pid_count) || !leader || leader->process != p || !leader->exit_held)
		return release_dying(s, p, true);
	if (!p->census_done) {
		p->census_done = true;
		RT_TRY(rt_session_census(s, p));
	}
	for (size_t i = 0; i < p->threads.len; i++) {
		struct rt_thread *t = p->threads.data[i];

		if (!t->exit_held)
			continue;
		t->exit_held = false;
		if (ptrace(PTRACE_DETACH, t->tid, 0, 0) < 0 && t == leader)
			gone = false;
	}
	/* killed while it waited: its end is told to us */
	return gone ? process_ended(s, p, p->exit_status) : NULL;
}

static struct rt_error *check_dying(struct rt_session *s, struct rt_process *p)
{
	size_t out = 0;

	if (!p->dying)
		return NULL;
	for (size_t i = 0; i < p->threads.len; i++)
		out += !p->threads.data[i]->exiting;
	if (!out)
		return bury(s, p);
	/* exec ends the other threads too, and waits for them: nothing dies then */
	for (size_t i = 0; i < p->threads.len; i++) {
		const struct rt_thread *t = p->threads.data[i];

		if (!t->exiting && rt_proc_in_exec(p->tgid, t->tid)) {
			p->dying = false;
			return release_dying(s, p, false);
		}
	}
	if (rt_now_ns() - p->dying_ns > EXIT_NS)
		return release_dying(s, p, true);
	return NULL;
}

/* true when only this thread ends: pthread_exit() or the return of its function. */
static bool ends_alone(const struct rt_thread *t, unsigned long code)
{
	struct user_regs_struct regs;

	if (code & 0x7f) /* killed, and the whole process with it */
		return false;
	return ptrace(PTRACE_GETREGS, t->tid, 0, &regs) == 0 && regs.orig_rax == SYS_exit;
}

/*
 * At its exit event a thread runs no code of the program any more, and whoever joins it still waits: its last event
 * is before now, and what follows from its end is after. One that is killed, by the end of its process or by an exec,
 * stood in the middle of something: that is told by what killed it (EXIT, EXEC).
 */
static struct rt_error *tell_end(struct rt_session *s, const struct rt_thread *t)
{
	if (t->process->left)
		return NULL;
	return rt_emit_task(s, RT_WIRE_THREAD, rt_process_wire(t->process), t->tid, t->tid, 1);
}

static struct rt_error *on_exit_event(struct rt_session *s, struct rt_thread *t)
{
	struct rt_process *p = t->process;
	unsigned long code = 0;
	bool last = true, gone;

	t->exiting = true;
	rt_governor_process(s, p);
	RT_TRY(engine_thread(s, t, true));
	for (size_t i = 0; i < p->threads.len; i++)
		last = last && p->threads.data[i]->exiting;
	gone = ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &code) < 0;
	if (!gone && !last && ends_alone(t, code)) {
		RT_TRY(tell_end(s, t));
		gone = true;
	}
	if (gone) {
		rt_thread_continue(t, 0);
		return NULL;
	}
	RT_TRY(rt_session_stands(s, t, (int)code));
	if (!p->dying) {
		p->dying = true;
		p->dying_ns = rt_now_ns();
		RT_TRY(rt_session_check_bystander(s, p));
	}
	t->exit_held = true;
	p->exit_status = (int)code;
	return check_dying(s, p);
}

static struct rt_error *process_ended(struct rt_session *s, struct rt_process *p, int status)
{
	uint32_t wire = rt_process_wire(p), tgid = p->tgid;
	bool left = p->left;

	RT_TRY(rt_session_drain(s));
	if (tgid == s->root) {
		s->root_ended = true;
		s->root_known = !s->options.pid_count;
		s->root_status = status;
	}
	rt_process_remove(s, p);
	s->ops->forget(s->engine, tgid);
	if (tgid == s->root && !s->root_started && !s->options.pid_count)
		return NULL; /* never was the program */
	if (left)
		return NULL; /* it was told that it ended */
	return rt_emit_task(s, RT_WIRE_EXIT, wire, tgid, 0, status);
}

static struct rt_error *on_end(struct rt_session *s, struct rt_thread *t, int status)
{
	struct rt_process *p = t->process;

	RT_TRY(engine_thread(s, t, true));
	/* the leader's end is told when every other thread is gone: it is the end of the process */
	if (p && t->tid == p->tgid)
		return process_ended(s, p, status);
	rt_thread_remove(s, t);
	/* its leader never was told of, or is let go already */
	if (p && !p->threads.len)
		return process_ended(s, p, status);
	return p ? check_dying(s, p) : NULL;
}

/* ---- one status ---- */

static void let_go(struct rt_session *s, struct rt_thread *t)
{
	ptrace(PTRACE_DETACH, t->tid, 0, 0);
	rt_thread_remove(s, t);
}

/* The dynamic linker has changed what is mapped, and the thread stands at its hook. */
static struct rt_error *look(struct rt_session *s, struct rt_thread *t)
{
	t->look = false;
	RT_TRY(rt_session_look(s, t->process));
	s->ops->answer(s->engine, t->process->tgid);
	return NULL;
}

static struct rt_error *on_stop(struct rt_session *s, struct rt_thread *t, int status)
{
	struct rt_process *p = t->process;
	bool group;

	t->saved = false;
	if (t->let_go) {
		let_go(s, t);
		return NULL;
	}
	RT_TRY(engine_thread(s, t, false));
	group = is_group_stop(status);
	rt_guardian_mark(&s->guardian, p->guard_slot, group);
	if (group) {
		/* stays stopped, but hears when it is continued */
		t->listening = true;
		t->stopped = false;
		if (ptrace(PTRACE_LISTEN, t->tid, 0, 0) < 0 && errno != ESRCH)
			rt_log_debug("session", "cannot listen to %u: %s", t->tid, strerror(errno));
		return NULL;
	}
	switch (status >> 16) {
	case 0:
		return on_signal(s, t, status);
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		return on_child(s, t, status >> 16);
	case PTRACE_EVENT_EXEC:
		return on_exec(s, t);
	case PTRACE_EVENT_EXIT:
		return on_exit_event(s, t);
	default:
		if (t->look)
			RT_TRY(look(s, t));
		rt_thread_continue(t, 0);
		return NULL;
	}
}

struct rt_error *rt_tracee_look(struct rt_session *s, struct rt_process *p)
{
	struct rt_thread *t;
	uint32_t tid;

	if (!s->ops->asks(s->engine, p->tgid, &tid))
		return NULL;
	t = rt_session_thread(s, tid);
	if (!t || t->process != p) {
		s->ops->answer(s->engine, p->tgid);
		return NULL;
	}
	if (!t->look && !t->stopped && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0)
		t->look = true;
	return NULL;
}

struct rt_error *rt_tracee_replay(struct rt_session *s, struct rt_thread *t)
{
	return t->saved ? on_stop(s, t, t->status) : NULL;
}

/*
 * A thread that nobody has told of stands at its exit: it was killed with the one that made it, and never ran. No event
 * will name it, and the end of its process would wait for one.
 */
static bool is_stillborn(uint32_t tid, int status)
{
	uint64_t tgid;

	return status >> 16 == PTRACE_EVENT_EXIT && rt_proc_status(tid, "Tgid", 10, &tgid) && tgid != tid;
}

struct rt_error *rt_tracee_status(struct rt_session *s, uint32_t tid, int status)
{
	struct rt_thread *t = rt_session_thread(s, tid);

	if (!WIFSTOPPED(status) && !t && tid == s->root && s->root_let_go) {
		s->root_ended = s->root_known = true;
		s->root_status = status;
		return NULL;
	}
	if (!WIFSTOPPED(status))
		return t ? on_end(s, t, status) : NULL;
	if (!t) {
		t = rt_thread_add(s, NULL, tid);
		if (!t)
			return rt_error_nomem();
	}
	t->stopped = true;
	t->listening = false;
	t->status = status;
	t->saved = true;
	/* an exec is told under the leader's id, whoever called it; that entry may be gone */
	if (!t->process && !t->let_go && status >> 16 == PTRACE_EVENT_EXEC && rt_session_process(s, tid)) {
		t = rt_thread_add(s, rt_session_process(s, tid), tid);
		if (!t)
			return rt_error_nomem();
	}
	if (!t->process && is_stillborn(tid, status))
		t->let_go = true;
	if (s->collecting || (!t->process && !t->let_go))
		return NULL;
	return on_stop(s, t, status);
}

struct rt_error *rt_tracee_reap(struct rt_session *s)
{
	for (;;) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (tid < 0 && errno == EINTR)
			continue;
		if (tid <= 0)
			return NULL;
		if (tid == s->guardian.pid) {
			s->guardian.pid = 0;
			continue;
		}
		RT_TRY(rt_tracee_status(s, (uint32_t)tid, status));
	}
}

/* ---- what waits for too long ---- */

/* Its parent was killed before it could tell about the child: the child is followed all the same. */
static struct rt_error *adopt(struct rt_session *s, struct rt_thread *t)
{
	struct rt_process *p;
	uint64_t tgid;

	if (!rt_proc_status(t->tid, "Tgid", 10, &tgid))
		return NULL;
	p = rt_session_process(s, (uint32_t)tgid);
	/* a process made by plain clone(), as in on_child(); or what made it ended with its process, which is buried */
	if (!p && (s->options.no_follow || tgid != t->tid)) {
		t->let_go = true;
		return rt_tracee_replay(s, t);
	}
	if (p)
		return new_thread(s, p, p->tgid, t->tid);
	p = rt_process_add(s, (uint32_t)tgid);
	if (!p)
		return rt_error_nomem();
	p->attached = true; /* in the middle of its life */
	if (!rt_thread_add(s, p, t->tid))
		return rt_error_nomem();
	/* nobody knows what it inherited */
	RT_TRY(rt_emit_task(s, RT_WIRE_MARK, rt_process_wire(p), p->tgid, 0, RT_MARK_ATTACH));
	RT_TRY(rt_session_look(s, p));
	return rt_tracee_replay(s, t);
}

struct rt_error *rt_tracee_overdue(struct rt_session *s)
{
	uint64_t now = rt_now_ns();
	struct rt_map_slot *slot;
	size_t pos = 0;

	while ((slot = rt_map_next(&s->threads, &pos)) != NULL) {
		struct rt_thread *t = (struct rt_thread *)(uintptr_t)slot->value;

		if (!t->process && !t->let_go && t->saved && now - t->since_ns > ORPHAN_NS) {
			RT_TRY(adopt(s, t));
			pos = 0;
		}
	}
	return rt_process_each(s, check_dying);
}
