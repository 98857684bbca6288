// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the plan's points to entries of the BPF program's table; and what lies
 * in a process's memory where a point goes: nobody else's breakpoint before,
 * ours afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "engine/point_probe.h"
#include "engine/uprobe_priv.h"
#include "maps/maps.h"

#define INT3 0xcc
#define MAPS_MAX (64u << 20)
#define ERRNO_NOTSUPP 524 /* the kernel's own ENOTSUPP: no such instruction can be probed */

const char *rt_uprobe_point_set(struct rt_uprobe *u, const struct rt_point *p)
{
	if (!p->id || p->id >= u->points)
		return "too many probe points for this engine";
	if (p->id > u->last_point)
		u->last_point = p->id;
	u->steps[p->id] = p->cost == RT_COST_STEP;
	return rt_point_probe(p, &u->probes[p->id]);
}

const char *rt_uprobe_site_refused(const struct rt_uprobe_site *site, int errnum)
{
	if (errnum == ERRNO_NOTSUPP)
		return "the kernel cannot probe this instruction";
	if (errnum == EINVAL && site->semaphore)
		return "another tracer has it armed with another semaphore, or none: end that one (bpftool link)";
	return errnum == EINVAL ? "the kernel refuses this offset of the file" : NULL;
}

/* The memory of a stopped process, or -1: then nothing can be checked. */
static int open_memory(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static struct rt_key armed_key(const struct stat *st, uint64_t offset)
{
	return rt_key_make(st->st_dev * 0x9e3779b97f4a7c15ull ^ st->st_ino, offset);
}

/* Whether any of the process's counters at this offset of the file is raised; they are in a writable mapping of it. */
static bool is_raised(const struct rt_arm *arm, int mem, const struct stat *file, uint64_t offset)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_error_ struct rt_error *err = NULL;
	struct rt_maps_line line;
	uint16_t counter;
	char path[32], *at;

	snprintf(path, sizeof(path), "/proc/%u/maps", arm->pid);
	err = rt_fs_read(AT_FDCWD, path, MAPS_MAX, &text, NULL);
	at = text;
	while (!err && rt_maps_parse_line(&at, &line))
		if (line.inode == file->st_ino && line.writable && offset >= line.offset &&
		    offset - line.offset < line.end - line.start &&
		    pread(mem, &counter, sizeof(counter), (off_t)(line.start + (offset - line.offset))) ==
			    sizeof(counter) &&
		    counter)
			return true;
	return false;
}

/*
 * A breakpoint that is not ours is left alone, unless it has raised the counter of the marker: then it is a uprobe, of
 * which the kernel takes any number. Else the kernel would not raise the counter for us either, and lower it when we
 * go.
 */
void rt_uprobe_check_before(struct rt_uprobe *u, const struct rt_arm *arm, struct rt_uprobe_sites *sites,
			    const struct rt_uprobe_report *report)
{
	_cleanup_close_ int mem = open_memory(arm->pid), file = open(arm->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t now, original;

	if (mem < 0 || file < 0 || fstat(file, &st))
		return;
	for (size_t i = 0; i < sites->list.len; i++) {
		struct rt_uprobe_site *s = &sites->list.data[i];
		struct rt_key key = armed_key(&st, s->offset);

		if (s->bad)
			continue;
		/* A forked child has inherited the breakpoints of its parent. */
		if (!rt_map_get(&u->armed, key) && pread(mem, &now, 1, (off_t)s->address) == 1 && now == INT3 &&
		    pread(file, &original, 1, (off_t)s->offset) == 1 && original != INT3 &&
		    !(s->semaphore && is_raised(arm, mem, &st, s->semaphore)))
			rt_uprobe_fail(report, s, 0,
				       s->semaphore ? "end the other tracer or debugger: its breakpoint does not raise "
						      "the semaphore"
						    : "another tracer or debugger has a breakpoint there");
		else
			(void)rt_map_put(&u->armed, key, NULL);
	}
}

void rt_uprobe_check_after(struct rt_uprobe *u, const struct rt_arm *arm, struct rt_uprobe_sites *sites,
			   const struct rt_uprobe_report *report)
{
	_cleanup_close_ int mem = open_memory(arm->pid);
	uint8_t now;

	if (mem < 0)
		return;
	for (size_t i = 0; i < sites->list.len; i++) {
		struct rt_uprobe_site *s = &sites->list.data[i];

		if (!s->bad && pread(mem, &now, 1, (off_t)s->address) == 1 && now != INT3)
			rt_uprobe_fail(report, s, 0, "the kernel did not place the breakpoint");
	}
}
