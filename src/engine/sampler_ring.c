// SPDX-License-Identifier: GPL-2.0-only
/* The rings: mapped, read, counted. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/mapped.h"
#include "engine/sampler_priv.h"

#define RING_MIN (16 * 1024)
#define SIDEBAND_MIN (128 * 1024)       /* some hundred mappings, as long as a pass over all rings may take */
#define SIDEBAND_ROOT (2 * 1024 * 1024) /* what the kernel loads as well: 500 BPF programs in a row are a megabyte */

static struct rt_error *no_ring(const struct rt_sampler *s, int errnum)
{
	struct rt_error *err = rt_error_errno(errnum == EPERM ? RT_E_LIMIT : RT_E_SYSTEM, errnum,
					      "cannot map a perf ring of %zu bytes", s->options.ring_bytes);

	return rt_error_fix(err, "a smaller ring: -m 64K; or: ulimit -l unlimited; or: sudo sysctl "
				 "kernel.perf_event_mlock_kb=4096");
}

/* Only who may lock as much memory as he likes gets more than the least, and then no less than for his samples. */
static size_t sideband_bytes(const struct rt_sampler *s)
{
	if (geteuid())
		return SIDEBAND_MIN;
	return s->options.ring_bytes > SIDEBAND_ROOT ? s->options.ring_bytes : SIDEBAND_ROOT;
}

struct rt_error *rt_sampler_ring_map(struct rt_sampler *s, uint32_t cpu, bool sideband, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page;
	size_t want = sideband ? sideband_bytes(s) : s->options.ring_bytes;
	struct rt_sampler_ring ring = { .cpu = cpu, .sideband = sideband, .fd = fd };
	void *map;

	while (bytes < want && bytes < (size_t)1 << 30)
		bytes *= 2;
	for (;;) {
		map = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map != MAP_FAILED)
			break;
		if ((errno != EPERM && errno != ENOMEM) || bytes <= RING_MIN)
			return no_ring(s, errno);
		bytes /= 2;
		if (!sideband)
			s->options.ring_bytes = bytes;
	}
	ring.page = map;
	ring.data = (uint8_t *)map + page;
	ring.bytes = bytes;
	if (!rt_vec_push(&s->rings, ring)) {
		munmap(map, page + bytes);
		return rt_error_nomem();
	}
	return NULL;
}

void rt_sampler_rings_unmap(struct rt_sampler *s)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < s->rings.len; i++)
		munmap(s->rings.data[i].page, page + s->rings.data[i].bytes);
	rt_vec_deinit(&s->rings);
}

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Which processes of the target live: a new file says their mappings again. */
static struct rt_error *note_task(struct rt_sampler *s, uint32_t type, const uint8_t *body)
{
	uint32_t pid = u32_at(body), ppid = u32_at(body + 4), tid = u32_at(body + 8);

	if (type == PERF_RECORD_FORK && pid != ppid) {
		uint64_t *slot = rt_map_put(&s->tasks, rt_key_make(pid, 0), NULL);

		if (!slot)
			return rt_error_nomem();
		*slot = 1;
	} else if (type == PERF_RECORD_EXIT && pid == tid) {
		rt_map_remove(&s->tasks, rt_key_make(pid, 0), NULL);
	}
	return NULL;
}

/* A file that was mapped for the first time may hold markers that were asked for. */
static struct rt_error *note_mapping(struct rt_sampler *s, const uint8_t *body, size_t size)
{
	enum { NAME = 64, TRAILER = RT_TRAILER_BYTES };
	struct rt_maps_line line = { .start = u64_at(body + 8), .executable = u32_at(body + 56) & PROT_EXEC };
	const char *path = (const char *)body + NAME;
	bool fresh;

	if (size <= NAME + TRAILER || !line.executable || *path != '/' || !memchr(path, 0, size - NAME - TRAILER))
		return NULL;
	if (!rt_map_put(&s->mapped, rt_key_text(path), &fresh))
		return rt_error_nomem();
	line.end = line.start + u64_at(body + 16);
	line.offset = u64_at(body + 24);
	line.path = path;
	RT_TRY(rt_markers_began(s->markers, u32_at(body), &line));
	return fresh ? rt_markers_mapped(s->markers, u32_at(body), &line) : NULL;
}

/* Of the side-band, only the tracepoints that tell of modules have samples. */
static bool is_module_event(const struct rt_sampler *s, const uint8_t *bytes, size_t size)
{
	const uint64_t *index = size >= 40 ? rt_map_get(&s->by_id, rt_key_make(u64_at(bytes + 8), 0)) : NULL;

	return index && *index >= s->sideband;
}

/* What the sampler itself keeps of a record; size was checked to hold the fixed part of each. */
static struct rt_error *count(struct rt_sampler *s, const struct perf_event_header *header, const uint8_t *bytes)
{
	const uint8_t *body = bytes + sizeof(*header);
	size_t size = header->size - sizeof(*header);

	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		if (is_module_event(s, bytes, header->size))
			s->kernel.module_ns = u64_at(bytes + 32);
		else
			s->stats.samples++;
		return NULL;
	case PERF_RECORD_LOST:
		if (size >= 16) {
			s->stats.lost += u64_at(body + 8);
			s->lost_told += u64_at(body + 8);
		}
		return NULL;
	case PERF_RECORD_THROTTLE:
		s->stats.throttled++;
		return NULL;
	case PERF_RECORD_MMAP2:
		return s->markers && size >= 64 ? note_mapping(s, body, size) : NULL;
	case PERF_RECORD_FORK:
		/* before, they are ours, of processes that are looked at one by one */
		if (size >= 24 && s->markers && s->started && u32_at(body) != u32_at(body + 4))
			RT_TRY(rt_markers_forked(s->markers, u32_at(body + 4), u32_at(body), s->options.no_follow));
		__attribute__((fallthrough));
	case PERF_RECORD_EXIT:
		return size >= 24 && !s->options.system_wide ? note_task(s, header->type, body) : NULL;
	default:
		return NULL;
	}
}

/* Who and when, from where the layout of every event has it. */
static void fill_head(const struct rt_sampler *s, const struct perf_event_header *header, const uint8_t *bytes,
		      struct rt_wire_perf *record)
{
	const uint8_t *who = NULL;
	uint64_t id = s->sideband_id, *index;
	uint32_t pid;

	if (header->type == PERF_RECORD_SAMPLE && header->size >= 40) {
		/* identifier, ip, pid tid, time */
		id = u64_at(bytes + 8);
		who = bytes + 24;
	} else if (header->type < 64 && header->size >= sizeof(*header) + RT_TRAILER_BYTES) {
		id = u64_at(bytes + header->size - 8);
		who = bytes + header->size - RT_TRAILER_BYTES;
	}
	index = rt_map_get(&s->by_id, rt_key_make(id, 0));
	record->attr = (uint32_t)(index ? *index : s->sideband) + 1;
	if (!who)
		return;
	pid = u32_at(who);
	record->head.pid = pid == UINT32_MAX ? 0 : RT_PID_OF(pid);
	record->head.tid = u32_at(who + 4) == UINT32_MAX ? 0 : u32_at(who + 4);
	record->head.time_ns = u64_at(who + 8);
}

/*
 * The kernel adds each listener's trailer to the size of the same KSYMBOL or
 * BPF_EVENT record and never takes it off again (kernel/events/core.c,
 * perf_event_bpf_output), so whoever comes second gets a record with stale bytes behind its trailer.
 */
static uint16_t true_size(const struct perf_event_header *header, const uint8_t *bytes)
{
	enum { FIXED = 24 }; /* of either type: the name or the trailer begins there */
	size_t size = header->size;

	if (header->type == PERF_RECORD_BPF_EVENT)
		size = FIXED + RT_TRAILER_BYTES;
	else if (header->type == PERF_RECORD_KSYMBOL && header->size > FIXED)
		size = FIXED + RT_WIRE_ALIGN(strnlen((const char *)bytes + FIXED, header->size - FIXED) + 1) +
		       RT_TRAILER_BYTES;
	return size < header->size ? (uint16_t)size : header->size;
}

/*
 * The kernel tells no build-id that is longer than its records hold, and none at all before Linux 5.12: it is read from
 * the file, as long as the process lives that has it mapped. record: an MMAP2, which says the file in the place of its
 * build-id.
 */
static void say_build_id(uint8_t *record, size_t size)
{
	enum { NAME = 72 };
	struct perf_event_header header;
	struct rt_maps_line line = { .path = (const char *)record + NAME };
	struct rt_build_id id = { .size = 0 };
	uint8_t told[24] = { 0 };
	int fd;

	memcpy(&header, record, sizeof(header));
	if (size <= NAME + RT_TRAILER_BYTES || header.misc & (RT_MISC_BUILD_ID | PERF_RECORD_MISC_MMAP_DATA) ||
	    (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER || *line.path != '/' ||
	    !memchr(line.path, 0, size - NAME - RT_TRAILER_BYTES))
		return;
	line.start = u64_at(record + 16);
	line.end = line.start + u64_at(record + 24);
	line.dev_major = u32_at(record + 40);
	line.dev_minor = u32_at(record + 44);
	line.inode = u64_at(record + 48);
	fd = line.inode ? rt_mapped_file(u32_at(record + 8), &line) : -1;
	if (fd < 0)
		return;
	if (rt_build_id_of_file(fd, &id)) {
		told[0] = id.size < RT_BUILD_ID_MAX ? id.size : RT_BUILD_ID_MAX;
		memcpy(told + 4, id.id, told[0]);
		memcpy(record + 40, told, sizeof(told));
		header.misc |= RT_MISC_BUILD_ID;
		memcpy(record, &header, sizeof(header));
	}
	close(fd);
}

struct rt_error *rt_sampler_emit(struct rt_sampler *s, struct rt_event_sink *sink, const void *bytes)
{
	struct rt_wire_perf *record = (struct rt_wire_perf *)(void *)s->record;
	struct perf_event_header header;
	size_t size;

	memcpy(&header, bytes, sizeof(header));
	header.size = true_size(&header, bytes);
	size = sizeof(*record) + RT_WIRE_ALIGN(header.size);
	if (size > UINT16_MAX) {
		s->stats.unreadable++;
		return NULL;
	}
	*record = (struct rt_wire_perf){ .head = { .size = (uint16_t)size, .kind = RT_WIRE_PERF } };
	fill_head(s, &header, bytes, record);
	memset(record->data + size - sizeof(*record) - 8, 0, 8);
	memcpy(record->data, bytes, header.size);
	memcpy(record->data, &header, sizeof(header));
	if (header.type == PERF_RECORD_MMAP2)
		say_build_id(record->data, header.size);
	s->stats.records++;
	RT_TRY(count(s, &header, bytes));
	return sink->record(sink, &record->head);
}

/* The record at position at; one that goes over the end of the ring is put together in wrap. */
static const uint8_t *record_at(const struct rt_sampler_ring *ring, uint64_t at, size_t size, uint8_t *wrap)
{
	size_t start = at & (ring->bytes - 1), first = ring->bytes - start;

	if (size <= first)
		return ring->data + start;
	memcpy(wrap, ring->data + start, first);
	memcpy(wrap + first, ring->data, size - first);
	return wrap;
}

static struct rt_error *read_ring(struct rt_sampler *s, struct rt_sampler_ring *ring, struct rt_event_sink *sink,
				  uint8_t *wrap, bool *ret_some)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE), tail = ring->page->data_tail;
	struct rt_error *err = NULL;

	while (tail != head && !err) {
		struct perf_event_header header;

		/* the header never wraps: records are multiples of 8 */
		memcpy(&header, record_at(ring, tail, sizeof(header), wrap), sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail || header.size > ring->bytes) {
			s->stats.unreadable++;
			tail = head;
			break;
		}
		err = rt_sampler_emit(s, sink, record_at(ring, tail, header.size, wrap));
		tail += header.size;
		*ret_some = true;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
	return err;
}

struct rt_error *rt_sampler_rings_read(struct rt_sampler *s, struct rt_event_sink *sink, bool *ret_some)
{
	_cleanup_free_ uint8_t *wrap = malloc(1 << 16);

	if (!wrap)
		return rt_error_nomem();
	for (size_t i = 0; i < s->rings.len; i++)
		RT_TRY(read_ring(s, &s->rings.data[i], sink, wrap, ret_some));
	return NULL;
}
