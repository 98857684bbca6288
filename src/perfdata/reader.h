/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads perf.data: file mode and pipe mode, both byte orders, zstd-compressed
 * records, files that were never finished. Damage ends the reading where it
 * is; the records before it are good, and rt_perf_reader_damage() says so.
 */
#pragma once

#include "perfdata/record.h"

struct rt_perf_build_id {
	uint32_t pid; /* UINT32_MAX: the host */
	uint16_t misc;
	uint8_t id[20];
	uint8_t size;
	char *path;
};

/* A BPF program or a BTF as the feature has it, in the file's byte order (src/bpfimage decodes). */
struct rt_perf_blob {
	uint32_t id; /* BTF: its id; program: 0 */
	struct rt_bytes bytes;
};

/* What the header tells; strings NULL and numbers 0 where it does not. Owned by the reader. */
struct rt_perf_header {
	bool big_endian, pipe, compressed;
	bool unfinished; /* data size 0 in a file: the recorder was killed; read to the end of the file, no features */
	char *hostname, *osrelease, *version, *arch, *cpudesc, *cpuid;
	uint32_t cpus_available, cpus_online;
	uint64_t total_mem_kib;
	char **command; /* perf's path, then its arguments */
	size_t command_count;
	uint64_t first_ns, last_ns; /* SAMPLE_TIME */
	uint64_t
		clockid; /* CLOCKID: what perf stores there is the resolution in ns; the clock itself is in the attrs */
	bool has_clockid;
	uint32_t clock_data_id; /* CLOCK_DATA: clockid, and the same moment on both clocks */
	uint64_t wall_clock_ns, clockid_time_ns;
	struct rt_perf_build_id *build_ids;
	size_t build_id_count;
	struct rt_perf_blob *bpf_progs, *btfs;
	size_t bpf_prog_count, btf_count;
	struct rt_bytes tracing_data;
	uint64_t features[4]; /* bits that the file has */
};

struct rt_perf_reader;

/*
 * bytes outlive the reader and do not change meanwhile; name is for messages. RT_E_FORMAT when it is no
 * perf.data (says what it looks like), RT_E_TRUNCATED when the header itself or the list of events is cut,
 * RT_E_UNSUPPORTED for the head of a perf.data folder.
 */
RT_CHECK struct rt_error *rt_perf_reader_create(struct rt_bytes bytes, const char *name, struct rt_perf_reader **ret);
void rt_perf_reader_destroy(struct rt_perf_reader *reader);
RT_CLEANUP(struct rt_perf_reader *, rt_perf_reader_destroy);

/* Complete in file mode at once (but compressed: maybe only later); in pipe mode after the last record. */
const struct rt_perf_header *rt_perf_reader_header(const struct rt_perf_reader *reader);
/* The events; grows while a pipe is read, and may move then: ask again after each record. */
const struct rt_perf_event *rt_perf_reader_events(const struct rt_perf_reader *reader, size_t *ret_count);
/* Index of the event that has this id; false: none has. */
bool rt_perf_reader_find(const struct rt_perf_reader *reader, uint64_t id, unsigned *ret);

/*
 * The next record in the file's order, decompressed; *ret_more false at the end (or at the
 * damage). *ret is valid until the next call. Records of perf itself (type 64 and above) are given as well,
 * only not the compressed ones: what is in them comes instead. Errors: RT_E_NOMEM.
 */
RT_CHECK struct rt_error *rt_perf_reader_next(struct rt_perf_reader *reader, struct rt_perf_record *ret,
					      bool *ret_more);

/*
 * What was damaged, with the offset ("at 0x1f8: a record says 65535 bytes, 120 are left"), several joined by "; ";
 * NULL when all so far was whole. A damaged feature costs that feature, a damaged record all that follow.
 * A pipe does not say how long it is: one that ends behind a record counts as whole.
 */
const char *rt_perf_reader_damage(const struct rt_perf_reader *reader);

/*
 * The records by time: as perf does, a FINISHED_ROUND allows everything up to
 * the latest time of the round before; equal times keep the file's order. Records without time (or with time 0:
 * what perf made up at the start) and perf's own come at once, a FINISHED_ROUND behind what it allowed.
 * Where more than 128 MiB would have to wait, the earlier half goes out: then order holds only within such parts.
 * A record is valid until the next call. The reader must outlive it and is read only through it.
 */
struct rt_perf_order;
RT_CHECK struct rt_error *rt_perf_order_create(struct rt_perf_reader *reader, struct rt_perf_order **ret);
void rt_perf_order_destroy(struct rt_perf_order *order);
RT_CLEANUP(struct rt_perf_order *, rt_perf_order_destroy);
RT_CHECK struct rt_error *rt_perf_order_next(struct rt_perf_order *order, struct rt_perf_record *ret, bool *ret_more);
