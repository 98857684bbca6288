// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls: two raw tracepoints that see those of every process, and tables that say whose and which ones matter.
 * They are there only if somebody asked for them: each system call of the machine passes them.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

#include "engine/uprobe_priv.h"
#include "probe/call.h"

static struct rt_error *attach(struct rt_uprobe *u)
{
	/* the end first: a call whose end is not seen would wait for it */
	static const char *const names[] = { "sys_exit", "sys_enter" };
	const int progs[] = { rt_uprobe_prog_call_leave(u), rt_uprobe_prog_call_enter(u) };

	for (int i = 0; i < 2; i++) {
		if (u->call_links[i] >= 0)
			continue;
		u->call_links[i] = bpf_raw_tracepoint_open(names[i], progs[i]);
		if (u->call_links[i] < 0)
			return rt_uprobe_denied(u->path, errno, "cannot watch system calls");
	}
	return NULL;
}

/* Which calls matter, for every process: told once, with the first one. */
static const char *add_point(struct rt_uprobe *u, const struct rt_point *p)
{
	struct rt_probe_call *call = &u->calls[p->address.v % RT_CALL_NR_MAX];
	const char *why = rt_uprobe_point_set(u, p);

	for (unsigned i = 0; !why && i < RT_PROBE_CALL_POINTS; i++) {
		if (call->point[i] && call->point[i] != p->id)
			continue;
		__atomic_store_n(&call->point[i], p->id, __ATOMIC_RELEASE);
		return NULL;
	}
	return why ?: "too many types ask for this system call";
}

struct rt_error *rt_uprobe_call_arm(struct rt_uprobe *u, uint32_t entry, const struct rt_arm *arm,
				    const struct rt_uprobe_report *report)
{
	if (!u->options.calls)
		return rt_error_new(RT_E_INTERNAL, "engine uprobe: nobody said that there would be system calls");
	for (size_t i = 0; i < arm->point_count; i++) {
		struct rt_uprobe_site site = { .point = arm->points[i]->id };
		const char *why = add_point(u, arm->points[i]);

		if (why)
			rt_uprobe_fail(report, &site, 0, why);
	}
	if (bpf_map_update_elem(rt_uprobe_map_callers(u), &arm->pid, &entry, BPF_ANY))
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot watch the system calls of process %u", arm->pid);
	return attach(u);
}

void rt_uprobe_call_forget(struct rt_uprobe *u, uint32_t pid)
{
	if (u->options.calls && u->bpf)
		(void)bpf_map_delete_elem(rt_uprobe_map_callers(u), &pid);
}

void rt_uprobe_call_stop(struct rt_uprobe *u)
{
	for (int i = 2; i-- > 0;) {
		if (u->call_links[i] >= 0)
			close(u->call_links[i]);
		u->call_links[i] = -1;
	}
}
