/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/census_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/fs.h"
#include "maps/maps.h"
#include "wire/agent.h"

#define WINDOW 65536u
#define WINDOWS_MIN 16u
#define WINDOWS_MAX 1024u
#define MAPS_MAX (256u << 20)
#define TLS_BELOW (64u << 10) /* thread-local storage lies below the thread pointer */
#define TLS_ABOVE 0xa00u      /* and the thread's descriptor above it */

static bool add(struct rt_census_memory *m, uint64_t start, uint64_t end, enum rt_region_kind kind)
{
	struct rt_region *r;

	if (start >= end)
		return true;
	r = rt_vec_add(&m->regions);
	if (!r)
		return false;
	r->start = start;
	r->end = end;
	r->kind = kind;
	m->bytes += end - start;
	return true;
}

/*
 * Large blocks are mappings of their own, which the kernel joins with what lies above
 * them (thread-local storage, for one): where the run of such blocks at the start of a mapping ends.
 */
static uint64_t blocks_end(const struct rt_census_memory *m, const struct rt_maps_line *line)
{
	uint64_t at = line->start, head[2];

	while (at + 4096 <= line->end && rt_census_read_long(m, at, head, sizeof(head)) == sizeof(head) && !head[0] &&
	       (head[1] & 7) == 2 && (head[1] & ~7ull) % 4096 == 0 && (head[1] & ~7ull) &&
	       (head[1] & ~7ull) <= line->end - at)
		at += head[1] & ~7ull;
	return at;
}

/* Anonymous memory: a stack from sp on, thread-local storage, or heap. */
static bool add_anonymous(struct rt_census_memory *m, const struct rt_maps_line *line,
			  const struct rt_census_thread *threads, size_t count)
{
	uint64_t start = line->path[0] ? line->start : blocks_end(m, line);

	for (size_t i = 0; i < count; i++) {
		if (threads[i].sp >= line->start && threads[i].sp < line->end)
			return add(m, (threads[i].sp + 7) & ~7ull, line->end, RT_REGION_STACK);
	}
	if (!add(m, line->start, start, RT_REGION_HEAP))
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t from, to;

		if (threads[i].tls < start || threads[i].tls >= line->end)
			continue;
		/* small: the loader's own mapping */
		if (line->end - start <= 1 << 20 && !line->path[0])
			return add(m, start, line->end, RT_REGION_GLOBAL);
		/* in a static program it lies at the start of the heap */
		from = threads[i].tls - start > TLS_BELOW ? threads[i].tls - TLS_BELOW : start;
		to = line->end - threads[i].tls > TLS_ABOVE ? threads[i].tls + TLS_ABOVE : line->end;
		if (!add(m, start, from, RT_REGION_HEAP) || !add(m, from, to, RT_REGION_GLOBAL))
			return false;
		start = to;
	}
	return add(m, start, line->end, RT_REGION_HEAP);
}

static bool is_device(const char *path)
{
	/* memory of devices may change or act when it is read */
	return !strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9) != 0 && strncmp(path, "/dev/zero", 9) != 0;
}

/* What the agent shares with us holds objects' addresses, too. */
static bool is_ours(const char *path)
{
	return !strncmp(path, "/memfd:" RT_AGENT_POOL_NAME, sizeof("/memfd:" RT_AGENT_POOL_NAME) - 1);
}

static bool is_anonymous(const struct rt_maps_line *line)
{
	return !line->path[0] || !strcmp(line->path, "[heap]") || !strncmp(line->path, "[stack", 6) ||
	       !strncmp(line->path, "[anon", 5);
}

static struct rt_error *make_windows(struct rt_census_memory *m)
{
	uint64_t n = m->bytes / 16 / WINDOW;

	m->window_count = n < WINDOWS_MIN ? WINDOWS_MIN : n > WINDOWS_MAX ? WINDOWS_MAX : (size_t)n;
	m->windows = calloc(m->window_count, sizeof(m->windows[0]));
	m->cache = malloc(m->window_count * WINDOW);
	if (!m->windows || !m->cache)
		return rt_error_nomem();
	for (size_t i = 0; i < m->window_count; i++)
		m->windows[i].start = UINT64_MAX;
	return NULL;
}

struct rt_error *rt_census_memory_init(struct rt_census_memory *m, pid_t pid, const struct rt_census_thread *threads,
				       size_t thread_count, uint64_t max_bytes)
{
	_cleanup_free_ char *text = NULL;
	struct rt_maps_line line;
	uint64_t data_end = 0; /* where the last writable file mapping ended: .bss follows there */
	char path[64], *cursor;

	m->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	RT_TRY(rt_fs_read(AT_FDCWD, path, MAPS_MAX, &text, NULL));
	cursor = text;
	while (rt_maps_parse_line(&cursor, &line)) {
		bool ok = true;

		if (!line.readable || !line.writable)
			continue;
		if (line.inode || line.path[0] == '/') {
			if (is_device(line.path) || is_ours(line.path))
				continue;
			ok = add(m, line.start, line.end, RT_REGION_GLOBAL);
			data_end = line.end;
		} else if (!is_anonymous(&line)) {
			continue;
		} else if (line.start == data_end && !line.path[0]) {
			ok = add(m, line.start, line.end, RT_REGION_GLOBAL);
		} else {
			ok = add_anonymous(m, &line, threads, thread_count);
		}
		if (!ok)
			return rt_error_nomem();
		if (m->bytes > max_bytes)
			return rt_error_new(RT_E_LIMIT, "process %d has more memory than a census looks at", (int)pid);
	}
	if (m->regions.len) {
		m->low = m->regions.data[0].start;
		m->high = m->regions.data[m->regions.len - 1].end;
	}
	return make_windows(m);
}

void rt_census_memory_deinit(struct rt_census_memory *m)
{
	for (size_t i = 0; i < m->regions.len; i++) {
		free(m->regions.data[i].seen);
		free(m->regions.data[i].first);
		free(m->regions.data[i].dead);
	}
	rt_vec_deinit(&m->regions);
	free(m->windows);
	free(m->cache);
	*m = (struct rt_census_memory){ 0 };
}

struct rt_region *rt_census_region(const struct rt_census_memory *m, uint64_t addr)
{
	size_t lo = 0, hi = m->regions.len;

	if (addr < m->low || addr >= m->high)
		return NULL;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		struct rt_region *r = &m->regions.data[mid];

		if (addr < r->start)
			hi = mid;
		else if (addr >= r->end)
			lo = mid + 1;
		else
			return r;
	}
	return NULL;
}

size_t rt_census_read_long(const struct rt_census_memory *m, uint64_t addr, void *buffer, size_t size)
{
	struct iovec local = { buffer, size };
	struct iovec remote = { (void *)(uintptr_t)addr, size };
	ssize_t n = process_vm_readv(m->pid, &local, 1, &remote, 1, 0);

	return n > 0 ? (size_t)n : 0;
}

/* The window of addr: read whole where that is possible, else from addr's page on. */
static const struct rt_window *window(struct rt_census_memory *m, uint64_t addr, const uint8_t **ret)
{
	uint64_t start = addr & ~(uint64_t)(WINDOW - 1);
	size_t n = (size_t)(start / WINDOW * 0x9e3779b97f4a7c15u >> 32) % m->window_count;
	uint32_t offset = (uint32_t)(addr - start), from = offset & ~4095u;
	struct rt_window *w = &m->windows[n];

	*ret = m->cache + n * WINDOW;
	if (w->start == start && offset >= w->lo && offset < w->hi)
		return w;
	w->start = start;
	w->lo = 0;
	w->hi = (uint32_t)rt_census_read_long(m, start, m->cache + n * WINDOW, WINDOW);
	if (offset < w->hi)
		return w;
	w->lo = from;
	w->hi = from + (uint32_t)rt_census_read_long(m, start + from, m->cache + n * WINDOW + from, WINDOW - from);
	if (offset < w->hi)
		return w;
	w->start = UINT64_MAX;
	return NULL;
}

bool rt_census_read(struct rt_census_memory *m, uint64_t addr, void *buffer, size_t size)
{
	while (size) {
		uint64_t offset = addr & (WINDOW - 1);
		const struct rt_window *w;
		const uint8_t *data;
		size_t n = WINDOW - (size_t)offset;

		w = window(m, addr, &data);
		if (!w)
			return false;
		if (n > size)
			n = size;
		if (offset + n > w->hi)
			return false;
		memcpy(buffer, data + offset, n);
		buffer = (uint8_t *)buffer + n;
		addr += n;
		size -= n;
	}
	return true;
}

bool rt_census_word(struct rt_census_memory *m, uint64_t addr, uint64_t *ret)
{
	return rt_census_read(m, addr, ret, sizeof(*ret));
}
