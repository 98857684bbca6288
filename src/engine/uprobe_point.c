// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the plan's points to entries of the BPF program's table; and what lies
 * in a process's memory where a point goes: what the file says before, and nobody
 * else's breakpoint; ours afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "engine/point_probe.h"
#include "engine/uprobe_priv.h"
#include "insn/insn.h"
#include "maps/maps.h"

#define INT3 0xcc
#define CALL 0xe8
#define INSN_MAX 15
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
 * Whether the program has rewritten the instruction: the kernel would do the one of the file. Of its first byte another
 * one's breakpoint may be left, and a nop of five bytes may be what the kernel has made of its own.
 */
static bool is_rewritten(const uint8_t *file, size_t file_size, const uint8_t *memory, size_t memory_size)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0, 0 };
	size_t length = rt_x86_length(rt_bytes_make(file, file_size));

	if (!length)
		length = 1; /* of a kind that is not known: the first byte tells */
	if (length > file_size || length > memory_size)
		return false;
	if (length == sizeof(nop5) && !memcmp(file, nop5, length) && memory[0] == CALL)
		return false;
	return (memory[0] != file[0] && memory[0] != INT3) || memcmp(memory + 1, file + 1, length - 1) != 0;
}

/* Why the instruction of s is not to be armed, as it lies in memory; NULL: nothing speaks against it. */
static const char *check_memory(const struct rt_arm *arm, int mem, int file, const struct stat *st,
				const struct rt_uprobe_site *s)
{
	uint8_t now[INSN_MAX], original[INSN_MAX];
	ssize_t have = pread(mem, now, sizeof(now), (off_t)s->address);
	ssize_t want = pread(file, original, sizeof(original), (off_t)s->offset);

	if (have < 1 || want < 1)
		return NULL;
	if (is_rewritten(original, (size_t)want, now, (size_t)have))
		return "its code was changed in memory: the kernel would run that of the file";
	if (now[0] != INT3 || original[0] == INT3 || (s->semaphore && is_raised(arm, mem, st, s->semaphore)))
		return NULL;
	return s->semaphore ? "end the other tracer or debugger: its breakpoint does not raise the semaphore"
			    : "another tracer or debugger has a breakpoint there";
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

	if (mem < 0 || file < 0 || fstat(file, &st))
		return;
	for (size_t i = 0; i < sites->list.len; i++) {
		struct rt_uprobe_site *s = &sites->list.data[i];
		struct rt_key key = armed_key(&st, s->offset);
		const char *why;

		if (s->bad)
			continue;
		/* A forked child has inherited the breakpoints of its parent. */
		why = rt_map_get(&u->armed, key) ? NULL : check_memory(arm, mem, file, &st, s);
		if (why)
			rt_uprobe_fail(report, s, 0, why);
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
