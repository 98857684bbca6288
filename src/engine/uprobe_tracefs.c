// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaching by tracefs, for kernels without uprobe_multi: all sites of a file
 * become one trace event (further probes are appended under the same name; a
 * perf uprobe for each site would take 100 ms each to close). A perf event
 * bound to a process arms them there. The BPF program hangs on the trace event
 * as a whole, through a perf event on a child of ours that only sleeps: one
 * on a traced process would take the program with it when that process ends.
 *
 * An enabled event takes no further probes, so each extend() with new sites
 * makes a new event, and a process uses every event whose sites it wants.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <bpf/bpf.h>

#include "base/fs.h"
#include "base/text.h"
#include "engine/uprobe_tracefs.h"

enum kind { KIND_ENTRY, KIND_ENTER, KIND_LEAVE, KIND_STOP, KIND_UNWIND };

struct event {
	dev_t dev;
	ino_t ino;
	enum kind kind;
	unsigned number; /* its name is "e<number>" */
	uint64_t id;     /* of the trace event */
	int keeper;      /* perf event that holds the BPF program */
	RT_VEC(uint64_t) offsets;
};

struct armed_ip {
	uint32_t pid;
	struct rt_ip_key key;
};

struct rt_tracefs {
	int dir;
	char group[RT_TRACEFS_GROUP_MAX];
	unsigned next;
	pid_t sleeper;
	RT_VEC(struct event) events;
	RT_VEC(struct armed_ip) ips;
};

/* The process that the keepers are bound to. Runs nothing, ends with us. */
static pid_t start_sleeper(void)
{
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		syscall(__NR_close_range, 0, ~0u, 0);
		for (;;)
			pause();
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

struct rt_error *rt_tracefs_create(int root_fd, struct rt_tracefs **ret)
{
	_cleanup_close_ int dir = -1, events = -1;
	char group[RT_TRACEFS_GROUP_MAX];
	struct rt_tracefs *t;

	RT_TRY(rt_tracefs_open(root_fd, true, &dir));
	events = openat(dir, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	if (events < 0 && (errno == EACCES || errno == EPERM))
		return rt_uprobe_denied(RT_ATTACH_TRACEFS, errno, "cannot place uprobes");
	if (events < 0)
		return rt_error_errno(RT_E_KERNEL, errno, "this kernel offers no uprobes (tracefs uprobe_events)");
	if (!rt_tracefs_own_group(group))
		return rt_error_new(RT_E_SYSTEM, "cannot read our own start time");
	t = calloc(1, sizeof(*t));
	if (!t)
		return rt_error_nomem();
	memcpy(t->group, group, sizeof(t->group));
	t->sleeper = start_sleeper();
	if (t->sleeper < 0) {
		free(t);
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot fork");
	}
	t->dir = rt_take_fd(&dir);
	*ret = t;
	return NULL;
}

static void undefine(struct rt_tracefs *t, unsigned number)
{
	char line[96];

	snprintf(line, sizeof(line), "-:%s/e%u", t->group, number);
	(void)rt_tracefs_write(t->dir, line);
}

/* Perf event of trace event id in pid, or a negative errno. */
static int open_perf(uint64_t id, pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
		.sample_period = 1,
	};
	long fd = syscall(__NR_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* What one call of rt_tracefs_arm() works on. */
struct job {
	struct rt_uprobe *u;
	struct rt_tracefs *t;
	struct rt_uprobe_process *process;
	const struct rt_arm *arm;
	const struct rt_uprobe_report *report;
	struct stat st;
	int file;
	enum kind kind;
	struct rt_uprobe_site **sites; /* wanted and not armed yet */
	size_t count;
};

static struct rt_error *job_error(const struct job *j, int errnum, const char *what)
{
	if (errnum == ESRCH)
		return rt_error_new(RT_E_NO_PROCESS, "process %u is gone", j->arm->pid);
	if (errnum == EPERM || errnum == EACCES)
		return rt_uprobe_denied(RT_ATTACH_TRACEFS, errnum, what);
	return rt_error_errno(RT_E_SYSTEM, errnum, "%s in %s", what, j->arm->path);
}

static int program(const struct job *j)
{
	switch (j->kind) {
	case KIND_ENTRY:
		return rt_uprobe_prog_entry(j->u);
	case KIND_ENTER:
		return rt_uprobe_prog_enter(j->u);
	case KIND_LEAVE:
		return rt_uprobe_prog_leave(j->u);
	case KIND_UNWIND:
		return rt_uprobe_prog_unwind(j->u);
	case KIND_STOP:
		break;
	}
	return rt_uprobe_prog_stop(j->u);
}

static struct rt_error *arm_event(struct job *j, const struct event *e, int *ret_errnum)
{
	int fd;

	if (!rt_vec_reserve(&j->process->links, j->process->links.len + 1))
		return rt_error_nomem();
	fd = open_perf(e->id, (pid_t)j->arm->pid);
	*ret_errnum = fd < 0 ? -fd : 0;
	if (fd >= 0)
		(void)rt_vec_push(&j->process->links, fd);
	return NULL;
}

static bool has_offset(const struct event *e, uint64_t offset)
{
	for (size_t i = 0; i < e->offsets.len; i++)
		if (e->offsets.data[i] == offset)
			return true;
	return false;
}

/* Events made earlier whose sites are all wanted here; their sites leave the list. */
static struct rt_error *use_known_events(struct job *j)
{
	for (size_t i = 0; i < j->t->events.len; i++) {
		struct event *e = &j->t->events.data[i];
		size_t found = 0, left = 0;
		int errnum = 0;

		if (e->dev != j->st.st_dev || e->ino != j->st.st_ino || e->kind != j->kind)
			continue;
		for (size_t k = 0; k < j->count; k++)
			found += has_offset(e, j->sites[k]->offset);
		if (found < e->offsets.len)
			continue;
		RT_TRY(arm_event(j, e, &errnum));
		if (errnum)
			return job_error(j, errnum, "cannot place uprobes");
		for (size_t k = 0; k < j->count; k++)
			if (!has_offset(e, j->sites[k]->offset))
				j->sites[left++] = j->sites[k];
		j->count = left;
	}
	return NULL;
}

/* Defines sites [first, first + count) as event e, with its BPF program. 0 or an errno. */
static int make_event(struct job *j, struct event *e, size_t first, size_t count)
{
	char line[160], path[96];
	_cleanup_free_ char *text = NULL;
	int errnum = 0;

	for (size_t i = first; i < first + count && !errnum; i++) {
		/* through our fd: a path may hold blanks, and may change */
		const struct rt_uprobe_site *s = j->sites[i];
		int n = snprintf(line, sizeof(line), "%c:%s/e%u /proc/self/fd/%d:0x%llx",
				 j->kind == KIND_LEAVE ? 'r' : 'p', j->t->group, e->number, j->file,
				 (unsigned long long)s->offset);

		if (s->semaphore)
			snprintf(line + n, sizeof(line) - (size_t)n, "(0x%llx)", (unsigned long long)s->semaphore);
		errnum = rt_tracefs_write(j->t->dir, line);
		if (!errnum && !rt_vec_push(&e->offsets, j->sites[i]->offset))
			errnum = ENOMEM;
	}
	if (errnum)
		return errnum;
	snprintf(path, sizeof(path), "events/%s/e%u/id", j->t->group, e->number);
	rt_error_free(rt_fs_read(j->t->dir, path, 64, &text, NULL));
	if (!text || !rt_parse_u64(text, strcspn(text, "\n"), 10, &e->id))
		return EIO;
	e->keeper = open_perf(e->id, j->t->sleeper);
	if (e->keeper < 0)
		return -e->keeper;
	return ioctl(e->keeper, PERF_EVENT_IOC_SET_BPF, program(j)) ? errno : 0;
}

static void event_destroy(struct rt_tracefs *t, struct event *e)
{
	if (e->keeper >= 0)
		close(e->keeper);
	undefine(t, e->number);
	rt_vec_deinit(&e->offsets);
}

/* New event for sites [first, first + count), halving where the kernel refuses one of them. */
static struct rt_error *arm_range(struct job *j, size_t first, size_t count)
{
	struct event e = { .dev = j->st.st_dev, .ino = j->st.st_ino, .kind = j->kind, .keeper = -1 };
	const char *why;
	int errnum;

	if (!count)
		return NULL;
	e.number = j->t->next++;
	errnum = make_event(j, &e, first, count);
	if (!errnum) {
		struct rt_error *err = arm_event(j, &e, &errnum);

		if (!err && !errnum && !rt_vec_push(&j->t->events, e))
			err = rt_error_nomem();
		if (err)
			event_destroy(j->t, &e);
		if (err || !errnum)
			return err;
	}
	event_destroy(j->t, &e);
	why = rt_uprobe_site_refused(j->sites[first], errnum);
	if (!why)
		return job_error(j, errnum, "cannot place uprobes");
	if (count > 1) {
		RT_TRY(arm_range(j, first, count / 2));
		return arm_range(j, first + count / 2, count - count / 2);
	}
	if (!j->sites[first]->bad)
		rt_uprobe_fail(j->report, j->sites[first], errnum, why);
	return NULL;
}

static struct rt_error *arm_kind(struct job *j, enum kind kind, struct rt_uprobe_sites *sites)
{
	j->kind = kind;
	j->count = 0;
	for (size_t i = 0; i < sites->list.len; i++) {
		struct rt_uprobe_site *s = &sites->list.data[i];

		if (!s->bad && s->at_return == (kind != KIND_ENTRY))
			j->sites[j->count++] = s;
	}
	RT_TRY(use_known_events(j));
	return arm_range(j, 0, j->count);
}

/* Tells the program which point an address stands for; there is one for each address only. */
static struct rt_error *name_sites(struct job *j, uint32_t entry, struct rt_uprobe_sites *sites)
{
	for (size_t i = 0; i < sites->list.len; i++) {
		struct rt_uprobe_site *s = &sites->list.data[i];
		struct armed_ip ip = { j->arm->pid, { s->address, j->arm->pid, s->at_return } };
		uint64_t cookie = RT_COOKIE_MAKE(s->point, entry);

		if (s->bad)
			continue;
		if (!rt_vec_reserve(&j->t->ips, j->t->ips.len + 1))
			return rt_error_nomem();
		if (!bpf_map_update_elem(rt_uprobe_map_ips(j->u), &ip.key, &cookie, BPF_NOEXIST))
			(void)rt_vec_push(&j->t->ips, ip);
		else
			rt_uprobe_fail(j->report, s, 0,
				       errno == EEXIST ? "another point is armed at this instruction (path tracefs)"
						       : "too many probed addresses");
	}
	return NULL;
}

static struct rt_error *arm_stop(struct job *j, struct rt_uprobe_sites *sites)
{
	j->kind = KIND_STOP;
	j->sites[0] = &sites->stop;
	j->count = 1;
	RT_TRY(use_known_events(j));
	return arm_range(j, 0, j->count);
}

static struct rt_error *arm_unwinders(struct job *j, struct rt_uprobe_sites *sites)
{
	j->kind = KIND_UNWIND;
	for (j->count = 0; j->count < sites->unwinders.len; j->count++)
		j->sites[j->count] = &sites->unwinders.data[j->count];
	RT_TRY(use_known_events(j));
	return arm_range(j, 0, j->count);
}

struct rt_error *rt_tracefs_arm(struct rt_uprobe *u, uint32_t entry, const struct rt_arm *arm,
				struct rt_uprobe_sites *sites, const struct rt_uprobe_report *report)
{
	_cleanup_close_ int file = open(arm->path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ struct rt_uprobe_site **list =
		calloc(sites->list.len + sites->unwinders.len + 1, sizeof(struct rt_uprobe_site *));
	struct job j = { .u = u,
			 .t = u->tracefs,
			 .process = &u->processes[entry],
			 .arm = arm,
			 .report = report,
			 .file = file,
			 .sites = list };

	if (!list)
		return rt_error_nomem();
	if (file < 0 || fstat(file, &j.st))
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot open %s", arm->path);
	if (sites->stop.address)
		RT_TRY(arm_stop(&j, sites));
	RT_TRY(arm_unwinders(&j, sites));
	if (!sites->list.len)
		return NULL;
	RT_TRY(name_sites(&j, entry, sites));
	RT_TRY(arm_kind(&j, KIND_ENTRY, sites));
	RT_TRY(arm_kind(&j, KIND_LEAVE, sites));
	return arm_kind(&j, KIND_ENTER, sites);
}

void rt_tracefs_forget(struct rt_uprobe *u, uint32_t pid)
{
	struct rt_tracefs *t = u->tracefs;
	size_t left = 0;

	for (size_t i = 0; i < t->ips.len; i++) {
		if (t->ips.data[i].pid == pid)
			bpf_map_delete_elem(rt_uprobe_map_ips(u), &t->ips.data[i].key);
		else
			t->ips.data[left++] = t->ips.data[i];
	}
	t->ips.len = left;
}

void rt_tracefs_destroy(struct rt_tracefs *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->events.len; i++)
		event_destroy(t, &t->events.data[i]);
	kill(t->sleeper, SIGKILL);
	while (waitpid(t->sleeper, NULL, 0) < 0 && errno == EINTR)
		;
	close(t->dir);
	rt_vec_deinit(&t->events);
	rt_vec_deinit(&t->ips);
	free(t);
}
