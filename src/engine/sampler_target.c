// SPDX-License-Identifier: GPL-2.0-only
/*
 * One file per event, thread and CPU, as perf does it: only events of one CPU may share a buffer, and the kernel maps
 * no inherited event that follows its thread over all CPUs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "base/fs.h"
#include "base/text.h"
#include "engine/sampler_priv.h"

struct rt_error *rt_sampler_cpus(struct rt_sampler *s)
{
	_cleanup_free_ char *text = NULL;
	char path[64];

	snprintf(path, sizeof(path), "%ssys/devices/system/cpu/online", s->options.root_fd == AT_FDCWD ? "/" : "");
	RT_TRY(rt_fs_read(s->options.root_fd, path, 1 << 16, &text, NULL));
	for (const char *p = text; *p && *p != '\n';) {
		size_t len = strspn(p, "0123456789");
		uint64_t first, last;

		if (!rt_parse_u64(p, len, 10, &first))
			break;
		last = first;
		p += len;
		if (*p == '-') {
			len = strspn(++p, "0123456789");
			if (!rt_parse_u64(p, len, 10, &last))
				break;
			p += len;
		}
		for (; first <= last && s->cpus.len < 65536; first++) {
			if (!rt_vec_push(&s->cpus, (uint32_t)first))
				return rt_error_nomem();
		}
		p += *p == ',';
	}
	return s->cpus.len ? NULL : rt_error_new(RT_E_FORMAT, "%s names no CPU", path);
}

/* Files are many: up to the hard limit without asking; programs that we start get back what they had. */
static void more_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static struct rt_sampler_ring *ring_of(struct rt_sampler *s, uint32_t cpu, bool sideband)
{
	for (size_t i = s->rings.len; i--;) {
		if (s->rings.data[i].cpu == cpu && s->rings.data[i].sideband == sideband)
			return &s->rings.data[i];
	}
	return NULL;
}

/* The buffer of this CPU takes fd's records; the first one makes it. */
static struct rt_error *join_ring(struct rt_sampler *s, const struct rt_sampler_event *event, uint32_t cpu, int fd)
{
	struct epoll_event poll = { .events = EPOLLIN };
	bool sideband = !event->desc;
	struct rt_sampler_ring *ring = ring_of(s, cpu, sideband), *samples = ring_of(s, cpu, false);

	if (!ring) {
		struct rt_error *err = rt_sampler_ring_map(s, cpu, sideband, fd);

		/* no memory may be locked for a second one: then they share */
		if (err && samples) {
			ring = samples;
			rt_error_free(rt_take(err));
		}
		RT_TRY(err);
	}
	if (!ring) {
		if (epoll_ctl(s->source.fd, EPOLL_CTL_ADD, fd, &poll))
			return rt_error_errno(RT_E_SYSTEM, errno, "cannot watch a perf ring");
		return NULL;
	}
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
		return rt_error_errno(RT_E_KERNEL, errno, "the kernel does not send %s into the ring of CPU %u",
				      event->name, cpu);
	return NULL;
}

/* *ret_gone: there is no such thread (or CPU) any more. */
static struct rt_error *open_one(struct rt_sampler *s, size_t index, int pid, uint32_t cpu, bool *ret_gone)
{
	struct rt_sampler_event *event = &s->events.data[index];
	_cleanup_close_ int fd = -1;
	struct rt_sampler_fd kept = { 0 };
	uint64_t *slot;

	/* a watermark of a quarter: the timer comes first unless there is much; each side-band record counts */
	event->attr.wakeup_watermark = event->desc ? (uint32_t)(s->options.ring_bytes / 4) : 1;
	fd = rt_sampler_perf_open(&event->attr, pid, (int)cpu);
	if (fd < 0 && (errno == ESRCH || errno == ENODEV)) {
		*ret_gone = true;
		return NULL;
	}
	if (fd < 0)
		return rt_sampler_refused(s, event, errno);
	if (ioctl(fd, PERF_EVENT_IOC_ID, &kept.id))
		return rt_error_errno(RT_E_KERNEL, errno, "the kernel gives no id of %s", event->name);
	RT_TRY(join_ring(s, event, cpu, fd));
	slot = rt_map_put(&s->by_id, rt_key_make(kept.id, 0), NULL);
	kept.fd = fd;
	if (!slot || !rt_vec_push(&event->fds, kept)) {
		/* a ring may live in it: it stays open as long as the ring */
		rt_take_fd(&fd);
		return rt_error_nomem();
	}
	*slot = index;
	rt_take_fd(&fd);
	if (index == s->sideband && !s->sideband_id)
		s->sideband_id = kept.id;
	return NULL;
}

static struct rt_error *open_on_cpus(struct rt_sampler *s, int pid, enum rt_sampler_scope scope, bool *ret_some)
{
	for (size_t c = 0; c < s->cpus.len; c++) {
		for (size_t i = 0; i < s->events.len; i++) {
			bool gone = false;

			if (s->events.data[i].scope != scope)
				continue;
			RT_TRY(open_one(s, i, pid, s->cpus.data[c], &gone));
			if (gone)
				break; /* of a thread that is gone, the next CPU says so at once */
			*ret_some = true;
		}
	}
	return NULL;
}

static struct rt_error *open_process(struct rt_sampler *s, uint32_t pid, bool *ret_some)
{
	char path[64];
	DIR *dir;
	struct rt_error *err = NULL;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	if (!dir)
		return NULL;
	for (struct dirent *e; !err && (e = readdir(dir));) {
		uint64_t tid;

		if (rt_parse_u64(e->d_name, strlen(e->d_name), 10, &tid) && tid <= INT32_MAX)
			err = open_on_cpus(s, (int)tid, RT_SCOPE_TARGET, ret_some);
	}
	closedir(dir);
	return err;
}

struct rt_error *rt_sampler_arm(struct rt_sampler *s, const struct rt_side_target *target)
{
	bool some = false;

	more_files();
	if (!s->options.ring_bytes)
		s->options.ring_bytes = geteuid() ? 512 * 1024 : 2 * 1024 * 1024;
	if (s->options.system_wide) {
		RT_TRY(open_on_cpus(s, -1, RT_SCOPE_TARGET, &some));
	} else {
		for (size_t i = 0; i < target->count; i++)
			RT_TRY(open_process(s, target->pids[i], &some));
		if (!some)
			return rt_error_new(RT_E_NO_PROCESS, "no process to record is left");
		RT_TRY(open_on_cpus(s, -1, RT_SCOPE_SYSTEM, &some));
	}
	return some ? NULL : rt_error_new(RT_E_SYSTEM, "no CPU takes an event");
}
