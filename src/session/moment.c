/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks at a program that lives: at moments that the owner asks for, all processes stand, are looked through like at
 * their end, and go on; and where main has returned, a process ends for us before its own tidying up.
 */
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#include "session/internal.h"

static struct rt_error *census(struct rt_session *s, struct rt_process *p)
{
	/* one that dies is looked through at its end */
	return p->dying || p->left ? NULL : rt_session_census(s, p);
}

static struct rt_error *look(struct rt_session *s)
{
	RT_TRY(rt_session_stop_all(s));
	RT_TRY(rt_session_drain(s));
	RT_TRY(rt_process_each(s, census));
	return s->hooks.moment(s->hooks.arg);
}

static bool lives(const struct rt_session *s)
{
	const struct rt_map_slot *slot;
	size_t pos = 0;

	while ((slot = rt_map_next(&s->processes, &pos)) != NULL) {
		const struct rt_process *p = (const struct rt_process *)(uintptr_t)slot->value;

		if (!p->dying && !p->left)
			return true;
	}
	return false;
}

struct rt_error *rt_session_on_moment(struct rt_session *s)
{
	uint64_t now = rt_now_ns(), interval = s->options.interval_ns;
	int asked = s->moments;
	struct rt_error *err, *go_on;

	if (!s->hooks.moment || (asked == s->moments_seen && (!interval || now < s->moment_ns)))
		return NULL;
	/* before the program has run there is nothing to see, and behind its tidying up nothing that lives */
	if (!lives(s) || (!s->root_running && !s->options.pid_count))
		return NULL;
	s->moments_seen = asked;
	err = look(s);
	/* from now on: a look may take longer than the interval */
	s->moment_ns = rt_now_ns() + interval;
	go_on = rt_session_go_on(s);
	if (!err)
		return go_on;
	rt_error_free(go_on);
	return err;
}

void rt_session_moment(struct rt_session *s)
{
	uint64_t one = 1;
	int errnum = errno;

	s->moments++;
	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		errno = 0; /* full: it is awake already */
	errno = errnum;
}

/* ---- main's return ---- */

enum { EXIT_BYTES = 16 }; /* the signal comes with the first instruction of exit(), or behind it */

/* exit() of the C library, or of a static program; NULL: there is none. */
static const struct rt_symbol *find_exit(struct rt_session *s, struct rt_process *p, const struct rt_session_map **ret)
{
	for (size_t i = 0; i < p->maps.len; i++) {
		struct rt_module *m = rt_session_module(s, p->maps.data[i].module);
		const char *name = m ? rt_module_basename(m) : "";
		const struct rt_symtab *symtab;
		const struct rt_symbol *symbol;
		struct rt_error *err;

		if (!p->maps.data[i].executable || !m ||
		    (strncmp(name, "libc.so", 7) != 0 && strncmp(name, "libc-", 5) != 0 &&
		     strncmp(name, "ld-musl", 7) != 0 && (p->loader || m->id != p->main_module)))
			continue;
		err = rt_module_symtab(m, &symtab);
		symbol = err ? NULL : rt_symtab_find(symtab, "exit");
		rt_error_free(err);
		*ret = &p->maps.data[i];
		if (symbol)
			return symbol;
	}
	return NULL;
}

struct rt_error *rt_session_arm_exit(struct rt_session *s, struct rt_process *p)
{
	const struct rt_session_map *map;
	const struct rt_symbol *symbol;
	uint64_t bias;

	if (!s->options.at_main_return || p->exit_at || p->foreign || p->shares_mm)
		return NULL;
	symbol = find_exit(s, p, &map);
	if (!symbol || !rt_session_map_bias(s, map, &bias)) {
		p->exit_at = 1;
		return rt_emit_loss(s, RT_LOSS_UNARMED, rt_process_wire(p), 0,
				    "exit of process %u: no such function: it is judged at its end", p->tgid);
	}
	p->exit_at = symbol->addr.v + bias;
	return rt_session_arm_stop(s, p, rt_session_module(s, map->module), symbol->addr);
}

bool rt_session_is_exit(const struct rt_process *p, const struct rt_thread *t, int *ret_status)
{
	struct user_regs_struct regs;

	if (p->exit_at <= 1 || p->left || ptrace(PTRACE_GETREGS, t->tid, 0, &regs) || regs.rip < p->exit_at ||
	    regs.rip - p->exit_at >= EXIT_BYTES)
		return false;
	*ret_status = (int)(regs.rdi & 0xff) << 8;
	return true;
}

struct rt_error *rt_session_main_returned(struct rt_session *s, struct rt_thread *t, int status)
{
	uint32_t tid = t->tid, tgid = t->process->tgid;
	struct rt_process *p;

	/* nobody else: a vfork parent would wait for a child that stands */
	RT_TRY(rt_session_stop(s, tgid));
	/* it may have been killed meanwhile */
	p = rt_session_process(s, tgid);
	if (p && rt_session_thread(s, tid)) {
		RT_TRY(rt_session_drain(s));
		RT_TRY(rt_session_census(s, p));
		p->census_done = p->left = true;
		RT_TRY(rt_emit_task(s, RT_WIRE_EXIT, rt_process_wire(p), tgid, 0, status));
		s->ops->forget(s->engine, tgid);
	}
	t = rt_session_thread(s, tid);
	if (t)
		rt_thread_continue(t, 0);
	return rt_session_go_on(s);
}
