// SPDX-License-Identifier: GPL-2.0-only
#include "bpfprog/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "bpfprog/kernel.h"

#define PAGES 32 /* per CPU: some thousand records */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_cpu(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.bpf_event = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static struct rt_error *add_cpu(struct rt_bpf_sideband *band, int cpu)
{
	struct rt_bpf_sideband_cpu c = { .fd = open_cpu(cpu) };

	if (c.fd == -ENODEV)
		return NULL; /* the CPU is off */
	if (c.fd < 0)
		return rt_bpf_refused(-c.fd, "cannot open the perf side band");
	c.page = mmap(NULL, (PAGES + 1) * page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, 0);
	if (c.page == MAP_FAILED || !rt_vec_push(&band->cpus, c)) {
		int errnum = errno;

		close(c.fd);
		return rt_error_errno(RT_E_SYSTEM, errnum, "cannot map the perf side band");
	}
	return NULL;
}

struct rt_error *rt_bpf_sideband_open(struct rt_bpf_sideband *ret)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	*ret = (struct rt_bpf_sideband){ 0 };
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct rt_error *err = add_cpu(ret, cpu);

		if (err) {
			rt_bpf_sideband_close(ret);
			return err;
		}
	}
	return NULL;
}

void rt_bpf_sideband_close(struct rt_bpf_sideband *band)
{
	for (size_t i = 0; i < band->cpus.len; i++) {
		munmap(band->cpus.data[i].page, (PAGES + 1) * page_size());
		close(band->cpus.data[i].fd);
	}
	rt_vec_deinit(&band->cpus);
}

/* Bytes [pos, pos + size) of the ring, which may wrap. */
static void ring_copy(const struct perf_event_mmap_page *page, uint64_t pos, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)page + page_size();
	uint64_t mask = PAGES * page_size() - 1, at = pos & mask;
	size_t first = size < mask + 1 - at ? size : mask + 1 - at;

	memcpy(to, data + at, first);
	memcpy((uint8_t *)to + first, data, size - first);
}

struct bpf_record {
	struct perf_event_header head;
	uint16_t type, flags;
	uint32_t id;
	uint8_t tag[8];
	uint32_t pid, tid; /* sample_id */
	uint64_t time;
};

struct lost_record {
	struct perf_event_header head;
	uint64_t id, lost;
};

static void take(struct rt_bpf_sideband *band, size_t size, void (*event)(void *arg, const struct rt_bpf_event *event),
		 void *arg)
{
	struct perf_event_header head;
	struct bpf_record r;
	struct lost_record l;

	memcpy(&head, band->record, sizeof(head));
	if (head.type == PERF_RECORD_LOST && size >= sizeof(l)) {
		memcpy(&l, band->record, sizeof(l));
		band->lost += l.lost;
	} else if (head.type == PERF_RECORD_BPF_EVENT && size >= sizeof(r)) {
		struct rt_bpf_event e;

		memcpy(&r, band->record, sizeof(r));
		if (r.type != PERF_BPF_EVENT_PROG_LOAD && r.type != PERF_BPF_EVENT_PROG_UNLOAD)
			return;
		e = (struct rt_bpf_event){
			.load = r.type == PERF_BPF_EVENT_PROG_LOAD, .id = r.id, .pid = r.pid, .time_ns = r.time
		};
		memcpy(e.tag, r.tag, sizeof(e.tag));
		event(arg, &e);
	}
}

void rt_bpf_sideband_drain(struct rt_bpf_sideband *band, void (*event)(void *arg, const struct rt_bpf_event *event),
			   void *arg)
{
	for (size_t i = 0; i < band->cpus.len; i++) {
		struct perf_event_mmap_page *page = band->cpus.data[i].page;
		uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;

		while (tail < head) {
			struct perf_event_header h;

			ring_copy(page, tail, &h, sizeof(h));
			if (h.size < sizeof(h) || h.size > head - tail)
				break;
			if (h.size <= sizeof(band->record)) {
				ring_copy(page, tail, band->record, h.size);
				take(band, h.size, event, arg);
			}
			tail += h.size;
		}
		/* what cannot be a record is left behind as a whole */
		__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	}
}
