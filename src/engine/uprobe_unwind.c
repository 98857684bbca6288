// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions whose returns are waited for return to a trampoline of the kernel's, which no unwinder knows: an exception
 * through such a call would end the program. Where an unwinder begins in a thread that is in such calls, the BPF
 * program stops it (unwind_any), and the return addresses are put right here; where it is over, the trampolines of the
 * frames that live on come back. The kernel finds calls that were left as it does behind longjmp(). A forked child has
 * the trampolines of its parent, and returns by them.
 */
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <bpf/bpf.h>

#include "engine/uprobe_priv.h"

#define PAGE 4096u
#define INSN_BYTES 16          /* the thread may have done the instruction at which it was stopped */
#define STACK_BYTES (64 << 20) /* what lies farther away from the stack pointer is on another stack */

struct call {
	struct rt_pending_key key;
	struct rt_pending pending;
};

struct calls {
	RT_VEC(struct call) list;
};

/* Calls of a process that wait for their return: of one thread, of all for 0. */
static struct rt_error *list_calls(struct rt_uprobe *u, uint32_t entry, uint32_t tid, struct calls *ret)
{
	struct rt_pending_key key, next;
	void *from = NULL;
	int fd = rt_uprobe_map_pendings(u);

	while (!bpf_map_get_next_key(fd, from, &next)) {
		struct call c = { .key = next };

		key = next;
		from = &key;
		if ((tid && (uint32_t)next.pid_tgid != tid) || bpf_map_lookup_elem(fd, &next, &c.pending) ||
		    RT_COOKIE_PROCESS(c.pending.cookie) != entry)
			continue;
		if (!rt_vec_push(&ret->list, c))
			return rt_error_nomem();
	}
	return NULL;
}

static bool copy(uint32_t pid, uint64_t at, uint64_t *word, bool to)
{
	struct iovec local = { word, sizeof(*word) }, remote = { (void *)(uintptr_t)at, sizeof(*word) };
	ssize_t n = to ? process_vm_writev((pid_t)pid, &local, 1, &remote, 1, 0)
		       : process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);

	return n == sizeof(*word);
}

static bool is_trampoline(uint64_t at)
{
	return at && !(at & (PAGE - 1));
}

static void lift(struct rt_uprobe *u, uint32_t pid, struct call *c, bool forced)
{
	uint64_t now;

	if (c->pending.lifted || !copy(pid, c->key.slot, &now, false) || !is_trampoline(now) ||
	    !copy(pid, c->key.slot, &c->pending.ra, true))
		return;
	c->pending.lifted = now | (forced ? RT_PENDING_FORCED : 0);
	(void)bpf_map_update_elem(rt_uprobe_map_pendings(u), &c->key, &c->pending, BPF_EXIST);
}

/* The exception has ended that call. */
static void forget(struct rt_uprobe *u, const struct call *c)
{
	uint32_t point = RT_COOKIE_POINT(c->pending.cookie);

	if (!bpf_map_delete_elem(rt_uprobe_map_pendings(u), &c->key) && point <= u->last_point &&
	    c->pending.nested <= RT_PENDING_MAX)
		u->left[point]++;
}

/* Whether the slot has what a call that lives on would have there; tail calls share it. */
static bool is_there(uint32_t pid, const struct call *c, uint64_t trampoline)
{
	uint64_t now;

	return copy(pid, c->key.slot, &now, false) && (now == c->pending.ra || now == trampoline);
}

/*
 * The unwinder is over: what lies above sp lives on. Some instructions of that function may have been done: where its
 * own return address is, another call's was.
 */
static void settle(struct rt_uprobe *u, uint32_t pid, struct call *c, uint64_t sp)
{
	uint64_t trampoline = c->pending.lifted & ~(uint64_t)(PAGE - 1);

	if (!trampoline || (c->key.slot - sp >= STACK_BYTES && sp - c->key.slot >= STACK_BYTES))
		return;
	if (c->key.slot < sp || !is_there(pid, c, trampoline)) {
		forget(u, c);
	} else if (copy(pid, c->key.slot, &trampoline, true)) {
		c->pending.lifted = 0;
		(void)bpf_map_update_elem(rt_uprobe_map_pendings(u), &c->key, &c->pending, BPF_EXIST);
	}
}

/* The unwinder that the thread was stopped at. */
static const struct rt_uprobe_unwinder *find(const struct rt_uprobe_process *p, uint64_t pc)
{
	for (size_t i = 0; i < p->unwinders.len; i++)
		if (pc - p->unwinders.data[i].address < INSN_BYTES)
			return &p->unwinders.data[i];
	return NULL;
}

bool rt_uprobe_unwinds(struct rt_uprobe *u, uint32_t pid, uint32_t tid)
{
	const uint64_t *entry = rt_map_get(&u->by_pid, rt_key_make(pid, 0));
	const struct rt_uprobe_unwinder *at = NULL;
	struct user_regs_struct regs;
	struct calls calls = { 0 };

	if (entry && u->processes[*entry].unwinders.len && !ptrace(PTRACE_GETREGS, tid, 0, &regs))
		at = find(&u->processes[*entry], regs.rip);
	if (!at)
		return false;
	/* without memory the exception meets a trampoline: as bad as it would be without all this */
	rt_error_free(list_calls(u, (uint32_t)*entry, tid, &calls));
	for (size_t i = 0; i < calls.list.len; i++) {
		if (at->kind == RT_UNWINDER_OVER)
			settle(u, pid, &calls.list.data[i], regs.rsp);
		else
			lift(u, pid, &calls.list.data[i], at->kind == RT_UNWINDER_FORCED);
	}
	rt_vec_deinit(&calls.list);
	return true;
}

struct rt_error *rt_uprobe_inherit(struct rt_uprobe *u, uint32_t parent, uint32_t pid, uint32_t wire_pid)
{
	const uint64_t *entry = rt_map_get(&u->by_pid, rt_key_make(parent, 0));
	uint64_t thread = (uint64_t)pid << 32 | pid;
	struct calls calls = { 0 };
	uint32_t own = 0, nested = 0;
	struct rt_error *err = entry ? list_calls(u, (uint32_t)*entry, 0, &calls) : NULL;

	if (!err && calls.list.len)
		err = rt_uprobe_process(u, pid, wire_pid, &own);
	for (size_t i = 0; i < calls.list.len && !err; i++) {
		struct call *c = &calls.list.data[i];
		uint32_t point = RT_COOKIE_POINT(c->pending.cookie);

		/* numbers of another namespace: nobody knows the child's there */
		if (c->key.pid_tgid >> 32 != parent)
			continue;
		c->key.pid_tgid = thread;
		c->pending.cookie = RT_COOKIE_MAKE(point, own);
		if (bpf_map_update_elem(rt_uprobe_map_pendings(u), &c->key, &c->pending, BPF_NOEXIST))
			continue;
		__atomic_fetch_add(&u->counts[point].entries, 1, __ATOMIC_RELAXED);
		nested = c->pending.nested > nested ? c->pending.nested : nested;
	}
	if (nested)
		(void)bpf_map_update_elem(rt_uprobe_map_nesting(u), &thread, &nested, BPF_ANY);
	rt_vec_deinit(&calls.list);
	return err;
}

void rt_uprobe_unwind_all(struct rt_uprobe *u)
{
	for (uint32_t i = 1; i < u->process_end; i++) {
		struct calls calls = { 0 };

		if (!u->processes[i].pid || !u->processes[i].unwinders.len)
			continue;
		rt_error_free(list_calls(u, i, 0, &calls));
		for (size_t k = 0; k < calls.list.len; k++)
			lift(u, u->processes[i].pid, &calls.list.data[k], true);
		rt_vec_deinit(&calls.list);
	}
}
