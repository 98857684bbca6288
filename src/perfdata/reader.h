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
	bool unfinished; /* data size 0 in a file: the recorder was killed; read to the end of the file */
	char *hostname, *osrelease, *version, *arch, *cpudesc, *cpuid;
	uint32_t cpus_available, cpus_online;
	uint64_t total_mem_kib;
	char **command; /* perf's path, then its arguments */
	size_t command_count;
	uint64_t first_ns, last_ns; /* SAMPLE_TIME */
	uint64_t clockid;
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
 * bytes outlive the reader; name is for messages. RT_E_FORMAT when it is no
 * perf.data (says what it looks like), RT_E_TRUNCATED when the header itself is cut.
 */
RT_CHECK struct rt_error *rt_perf_reader_create(struct rt_bytes bytes, const char *name, struct rt_perf_reader **ret);
void rt_perf_reader_destroy(struct rt_perf_reader *reader);
RT_CLEANUP(struct rt_perf_reader *, rt_perf_reader_destroy);

/* Complete in file mode at once; in pipe mode after the last record. */
const struct rt_perf_header *rt_perf_reader_header(const struct rt_perf_reader *reader);
/* The events; grows while a pipe is read. */
const struct rt_perf_event *rt_perf_reader_events(const struct rt_perf_reader *reader, size_t *ret_count);

/*
 * The next record in the file's order, decompressed; *ret_more false at the end (or at the
 * damage). *ret is valid until the next call.
 */
RT_CHECK struct rt_error *rt_perf_reader_next(struct rt_perf_reader *reader, struct rt_perf_record *ret,
					      bool *ret_more);

/* One sentence with the offset ("record at 0x1f8 says 65535 bytes, 120 are left"), NULL when all was whole. */
const char *rt_perf_reader_damage(const struct rt_perf_reader *reader);

/*
 * The records by time: as perf does, a FINISHED_ROUND allows everything up to
 * the latest time of the round before. Records without time keep their place.
 * A record is valid until the next call. The reader must outlive it and is read only through it.
 */
struct rt_perf_order;
RT_CHECK struct rt_error *rt_perf_order_create(struct rt_perf_reader *reader, struct rt_perf_order **ret);
void rt_perf_order_destroy(struct rt_perf_order *order);
RT_CLEANUP(struct rt_perf_order *, rt_perf_order_destroy);
RT_CHECK struct rt_error *rt_perf_order_next(struct rt_perf_order *order, struct rt_perf_record *ret, bool *ret_more);
