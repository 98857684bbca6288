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
	if (p->look)
		return "blocks are looked through by the agent alone";
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
static bool is_rewritten(struct rt_bytes file, struct rt_bytes memory)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0, 0 };
	size_t length = rt_x86_length(file);

	if (!length)
		length = 1; /* of a kind that is not known: the first byte tells */
	if (length > file.size || length > memory.size)
		return false;
	if (length == sizeof(nop5) && !memcmp(file.data, nop5, length) && memory.data[0] == CALL)
		return false;
	return (memory.data[0] != file.data[0] && memory.data[0] != INT3) ||
	       memcmp(memory.data + 1, file.data + 1, length - 1) != 0;
}

/*
 * Bytes of a file, or of a stopped process's memory, read by the page: points lie beside each other, and the kernel
 * takes microseconds for each look into the memory of another process.
 */
struct window {
	int fd;
	uint64_t start; /* of bytes, in the file */
	size_t size;    /* of these; 0: nothing was read yet */
	uint8_t bytes[4096 + INSN_MAX];
};

/* What there is at `at`, up to an instruction. */
static struct rt_bytes window_look(struct window *w, uint64_t at)
{
	enum { PAGE = 4096 };
	size_t left;

	if (!w->size || at < w->start || at - w->start >= PAGE) {
		ssize_t n = pread(w->fd, w->bytes, sizeof(w->bytes), (off_t)(at & ~(uint64_t)(PAGE - 1)));

		w->start = at & ~(uint64_t)(PAGE - 1);
		w->size = n < 0 ? 0 : (size_t)n;
	}
	if (at - w->start >= w->size)
		return (struct rt_bytes){ 0 };
	left = w->size - (at - w->start);
	return rt_bytes_make(w->bytes + (at - w->start), left < INSN_MAX ? left : INSN_MAX);
}

/* Why the instruction of s is not to be armed, as it lies in memory; NULL: nothing speaks against it. */
static const char *check_memory(const struct rt_arm *arm, struct window *memory, struct window *file,
				const struct stat *st, const struct rt_uprobe_site *s)
{
	struct rt_bytes now = window_look(memory, s->address), original = window_look(file, s->offset);

	if (!now.size || !original.size)
		return NULL;
	if (is_rewritten(original, now))
		return "its code was changed in memory: the kernel would run that of the file";
	if (now.data[0] != INT3 || original.data[0] == INT3 ||
	    (s->semaphore && is_raised(arm, memory->fd, st, s->semaphore)))
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
	struct window memory = { .fd = mem }, contents = { .fd = file };
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
		why = rt_map_get(&u->armed, key) ? NULL : check_memory(arm, &memory, &contents, &st, s);
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
	struct window memory = { .fd = mem };

	if (mem < 0)
		return;
	for (size_t i = 0; i < sites->list.len; i++) {
		struct rt_uprobe_site *s = &sites->list.data[i];
		struct rt_bytes now = s->bad ? (struct rt_bytes){ 0 } : window_look(&memory, s->address);

		if (now.size && now.data[0] != INT3)
			rt_uprobe_fail(report, s, 0, "the kernel did not place the breakpoint");
	}
}
