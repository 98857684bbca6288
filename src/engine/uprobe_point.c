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
#include "engine/uprobe_priv.h"
#include "maps/maps.h"

#define INT3 0xcc
#define MAPS_MAX (64u << 20)
#define ERRNO_NOTSUPP 524 /* the kernel's own ENOTSUPP: no such instruction can be probed */

static uint8_t result_of(const struct rt_point *p)
{
	switch (p->place) {
	case RT_PLACE_RET:
		return RT_PROBE_RESULT;
	case RT_PLACE_RET_PTR:
		return RT_PROBE_RESULT_PTR;
	case RT_PLACE_OUT:
		return RT_PROBE_OUT;
	}
	return RT_PROBE_AT_ENTRY;
}

static const char *set_object(struct rt_probe *probe, const struct rt_point *p)
{
	if (probe->result == RT_PROBE_RESULT || probe->result == RT_PROBE_RESULT_PTR)
		return NULL;
	/* only what a marker says may do without a register: a constant, or an address that never moves */
	if (p->reg > RT_REG_RIP && !p->scale && !p->reg_offset)
		return "the object is in no register here";
	probe->reg = p->reg;
	probe->reg_offset = p->reg_offset;
	probe->index = p->index;
	probe->scale = p->scale;
	probe->width = p->width;
	probe->deref = p->deref;
	if (p->place == RT_PLACE_ARG_PTR) {
		probe->kind |= RT_PROBE_SLOT;
		if (!probe->deref)
			probe->deref = 1;
	}
	/* The slot itself is what is kept from the entry, where arguments are in registers. */
	if (p->place == RT_PLACE_OUT)
		probe->deref = 0;
	return probe->deref > RT_PROBE_DEREF_MAX ? "the object is behind too many pointers" : NULL;
}

const char *rt_uprobe_point_set(struct rt_uprobe *u, const struct rt_point *p)
{
	bool at_return = p->kind == RT_POINT_RETURN || p->condition != RT_IF_ALWAYS;
	struct rt_probe probe = {
		.delta = p->delta,
		.flags = p->flags | (at_return ? RT_EV_AT_RETURN : 0),
		.op = p->op,
		.cfa_delta = p->cfa_delta,
		.kind = p->kind == RT_POINT_INSN ? RT_PROBE_SITE : 0,
		.result = at_return ? result_of(p) : RT_PROBE_AT_ENTRY,
		.condition = p->condition,
		.result_size = p->result_size ? p->result_size : 4,
	};
	const char *why;

	if (!p->id || p->id >= u->points)
		return "too many probe points for this engine";
	if (at_return && (p->kind == RT_POINT_INSN || p->cfa_delta != 8))
		return "a return can only be seen from the function's first instructions";
	if (!at_return && result_of(p) != RT_PROBE_AT_ENTRY)
		return "a result can only be seen at the function's return";
	why = set_object(&probe, p);
	if (why)
		return why;
	if (p->counter_offset != RT_COUNTER_UNKNOWN &&
	    (p->counter_size == 1 || p->counter_size == 2 || p->counter_size == 4 || p->counter_size == 8)) {
		probe.counter_offset = p->counter_offset;
		probe.counter_size = p->counter_size;
		probe.counter_bias = p->counter_bias;
	}
	u->probes[p->id] = probe;
	if (p->id > u->last_point)
		u->last_point = p->id;
	return NULL;
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
