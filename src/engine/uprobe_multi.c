// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaching by uprobe_multi links (Linux 6.6): one link arms any number of
 * offsets of one file in one process. libbpf 1.1 does not know them, so
 * bpf(2) is called directly. One offset that the kernel cannot probe makes
 * the whole link fail without saying which: then the range is halved until
 * it is found.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "engine/uprobe_priv.h"

#define LINK_CREATE 28
#define FLAG_RETURN 1u

/* The part of union bpf_attr that matters, in the layout of Linux 6.6. */
struct link_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t count, multi_flags, pid, pad;
};
_Static_assert(sizeof(struct link_attr) == 64, "kernel ABI");

int rt_multi_link(const struct rt_multi_request *r)
{
	struct link_attr attr = {
		.prog_fd = r->prog,
		.attach_type = r->type,
		.path = (uintptr_t)r->path,
		.offsets = (uintptr_t)r->offsets,
		.ref_ctr_offsets = (uintptr_t)r->semaphores,
		.cookies = (uintptr_t)r->cookies,
		.count = r->count,
		.multi_flags = r->returns ? FLAG_RETURN : 0,
		.pid = r->pid,
	};
	long fd = syscall(__NR_bpf, LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

/* One kind of link over some of the sites. */
struct batch {
	struct rt_uprobe *u;
	struct rt_uprobe_process *process;
	const struct rt_arm *arm;
	const struct rt_uprobe_report *report;
	int prog;
	uint32_t type;
	bool returns;
	uint64_t *offsets, *cookies, *semaphores;
	struct rt_uprobe_site **sites;
	size_t count;
};

static void batch_deinit(struct batch *b)
{
	free(b->offsets);
	free(b->cookies);
	free(b->semaphores);
	free(b->sites);
}

/*
 * Sites of one kind that are still good, the last one first: of points at one instruction the kernel runs the one first
 * that was armed last, and what a store writes over is told before what it stores. false: out of memory.
 */
static bool batch_fill(struct batch *b, struct rt_uprobe_sites *sites, bool at_return, uint32_t entry)
{
	size_t n = sites->list.len;

	b->offsets = calloc(n, sizeof(*b->offsets));
	b->cookies = calloc(n, sizeof(*b->cookies));
	b->semaphores = calloc(n, sizeof(*b->semaphores));
	b->sites = calloc(n, sizeof(struct rt_uprobe_site *));
	if (!b->offsets || !b->cookies || !b->semaphores || !b->sites)
		return false;
	b->count = 0;
	for (size_t i = n; i-- > 0;) {
		struct rt_uprobe_site *s = &sites->list.data[i];

		if (s->bad || s->at_return != at_return)
			continue;
		b->offsets[b->count] = s->offset;
		b->semaphores[b->count] = s->semaphore;
		b->cookies[b->count] = RT_COOKIE_MAKE(s->point, entry);
		b->sites[b->count++] = s;
	}
	return true;
}

static struct rt_error *link_error(const struct batch *b, int errnum)
{
	if (errnum == ESRCH)
		return rt_error_new(RT_E_NO_PROCESS, "process %u is gone", b->arm->pid);
	if (errnum == EPERM || errnum == EACCES)
		return rt_uprobe_denied(RT_ATTACH_MULTI, errnum, "cannot place uprobes");
	if (errnum == ENOENT)
		return rt_error_new(RT_E_NOT_FOUND, "cannot probe %s: no such file", b->arm->path);
	return rt_error_errno(RT_E_SYSTEM, errnum, "cannot place uprobes in %s", b->arm->path);
}

/* Arms sites [first, first + count), halving on failure. */
static struct rt_error *arm_range(struct batch *b, size_t first, size_t count)
{
	struct rt_multi_request request = { b->prog, b->type, b->arm->pid, b->returns, b->arm->path };
	const char *why;
	int fd;

	if (!count)
		return NULL;
	if (!rt_vec_reserve(&b->process->links, b->process->links.len + 1))
		return rt_error_nomem();
	request.offsets = b->offsets + first;
	request.cookies = b->cookies + first;
	request.semaphores = b->semaphores + first;
	request.count = count;
	fd = rt_multi_link(&request);
	if (fd >= 0) {
		(void)rt_vec_push(&b->process->links, fd);
		return NULL;
	}
	why = rt_uprobe_site_refused(b->sites[first], -fd);
	if (!why)
		return link_error(b, -fd);
	if (count > 1) {
		RT_TRY(arm_range(b, first, count / 2));
		return arm_range(b, first + count / 2, count - count / 2);
	}
	if (!b->sites[first]->bad)
		rt_uprobe_fail(b->report, b->sites[first], -fd, why);
	return NULL;
}

static struct rt_error *arm_kind(struct batch *b, struct rt_uprobe_sites *sites, bool at_return, uint32_t entry)
{
	if (!batch_fill(b, sites, at_return, entry))
		return rt_error_nomem();
	return arm_range(b, 0, b->count);
}

/* Arms unwinders [first, first + count) of the request, halving on failure. */
static struct rt_error *arm_unwinders(struct batch *b, struct rt_uprobe_sites *sites, size_t first, size_t count)
{
	_cleanup_free_ uint64_t *offsets = calloc(count + 1, sizeof(*offsets));
	_cleanup_free_ uint64_t *cookies = calloc(count + 1, sizeof(*cookies));
	struct rt_multi_request request = { b->prog, b->type, b->arm->pid, false, b->arm->path, offsets, cookies };
	int fd;

	if (!count)
		return NULL;
	if (!offsets || !cookies || !rt_vec_reserve(&b->process->links, b->process->links.len + 1))
		return rt_error_nomem();
	for (size_t i = 0; i < count; i++)
		offsets[i] = sites->unwinders.data[first + i].offset;
	request.count = count;
	fd = rt_multi_link(&request);
	if (fd >= 0) {
		(void)rt_vec_push(&b->process->links, fd);
		return NULL;
	}
	if (count > 1) {
		RT_TRY(arm_unwinders(b, sites, first, count / 2));
		return arm_unwinders(b, sites, first + count / 2, count - count / 2);
	}
	rt_uprobe_fail(b->report, &sites->unwinders.data[first], -fd,
		       "an exception through a call whose return is waited for ends the program");
	return NULL;
}

static struct rt_error *arm_stop(struct rt_uprobe *u, struct rt_uprobe_process *process, const struct rt_arm *arm,
				 struct rt_uprobe_sites *sites, const struct rt_uprobe_report *report)
{
	uint64_t cookie = 0;
	struct rt_multi_request request = { .prog = rt_uprobe_prog_stop(u),
					    .type = RT_ATTACH_TYPE_MULTI,
					    .pid = arm->pid,
					    .path = arm->path,
					    .offsets = &sites->stop.offset,
					    .cookies = &cookie,
					    .count = 1 };
	int fd;

	if (!rt_vec_reserve(&process->links, process->links.len + 1))
		return rt_error_nomem();
	fd = rt_multi_link(&request);
	if (fd >= 0)
		(void)rt_vec_push(&process->links, fd);
	else
		rt_uprobe_fail(report, &sites->stop, -fd, "the dynamic linker's hook cannot be probed");
	return NULL;
}

struct rt_error *rt_multi_arm(struct rt_uprobe *u, uint32_t entry, const struct rt_arm *arm,
			      struct rt_uprobe_sites *sites, const struct rt_uprobe_report *report)
{
	struct batch base = { .u = u, .process = &u->processes[entry], .arm = arm, .report = report };
	_cleanup_(batch_deinit) struct batch entries = base, enters = base, leaves = base, unwinders = base;

	if (sites->stop.address)
		RT_TRY(arm_stop(u, base.process, arm, sites, report));
	unwinders.prog = rt_uprobe_prog_unwind(u);
	unwinders.type = RT_ATTACH_TYPE_MULTI;
	RT_TRY(arm_unwinders(&unwinders, sites, 0, sites->unwinders.len));
	if (!sites->list.len)
		return NULL;
	entries.prog = rt_uprobe_prog_entry(u);
	entries.type = RT_ATTACH_TYPE_MULTI;
	RT_TRY(arm_kind(&entries, sites, false, entry));
	enters.prog = u->session ? rt_uprobe_prog_session(u) : rt_uprobe_prog_enter(u);
	enters.type = u->session ? RT_ATTACH_TYPE_SESSION : RT_ATTACH_TYPE_MULTI;
	if (!u->session) {
		/* Returns first: an entry whose return is not armed yet would be counted as lost. */
		leaves.prog = rt_uprobe_prog_leave(u);
		leaves.type = RT_ATTACH_TYPE_MULTI;
		leaves.returns = true;
		RT_TRY(arm_kind(&leaves, sites, true, entry));
	}
	return arm_kind(&enters, sites, true, entry);
}
