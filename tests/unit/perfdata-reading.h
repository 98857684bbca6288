/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading what perfdata-file.h builds: one file at a time, and the records that many tests put into it. */
#pragma once

#include "perfdata-file.h"
#include "perfdata/reader.h"

#define EACH_ORDER(big) for (int big = 0; big < 2; big++)

static struct perf_file file;

static inline struct rt_perf_reader *opened(void)
{
	struct rt_perf_reader *reader = NULL;

	assert_ok(rt_perf_reader_create(rt_bytes_make(file.data, file.len), "test", &reader));
	return reader;
}

static inline bool next(struct rt_perf_reader *reader, struct rt_perf_record *r)
{
	bool more;

	assert_ok(rt_perf_reader_next(reader, r, &more));
	return more;
}

static const struct perf_event_spec simple = { .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME, .id = 7 };

/* What stands behind records that are no samples, for simple. */
static inline void put_trailer(uint64_t time)
{
	put4(&file, 11);
	put4(&file, 12);
	put8(&file, time);
}

static inline void put_comm(const char *name, uint64_t time)
{
	begin(&file, RT_PERF_COMM, 0);
	put4(&file, 11);
	put4(&file, 12);
	put_text(&file, name, 8);
	put_trailer(time);
	end(&file);
}
static inline void put_mmap2(bool with_id)
{
	begin(&file, RT_PERF_MMAP2, RT_PERF_USER | (with_id ? RT_PERF_MISC_MMAP_BUILD_ID : 0));
	put4(&file, 11);
	put4(&file, 12);
	put8(&file, 0x7f0000001000);
	put8(&file, 0x2000);
	put8(&file, 0x1000);
	if (with_id) {
		put(&file, 8, 1);
		put(&file, 0, 3);
		put_bytes(&file, "\1\2\3\4\5\6\7\10\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	} else {
		put4(&file, 0xfe);
		put4(&file, 1);
		put8(&file, 4711);
		put8(&file, 3);
	}
	put4(&file, 5);
	put4(&file, 2);
	put_text(&file, "/usr/lib/libx.so", 8);
	put_trailer(20);
	end(&file);
}

/* Offsets of the records of a file, and whether it was whole. */
static inline size_t walk(struct rt_bytes bytes, uint64_t *ends, size_t max, bool *ret_damaged)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	struct rt_error *err = rt_perf_reader_create(bytes, "test", &reader);
	struct rt_perf_record r;
	size_t count = 0;

	*ret_damaged = true;
	if (err) {
		rt_error_free(err);
		return 0;
	}
	while (next(reader, &r)) {
		if (count < max)
			ends[count] = r.offset + r.bytes.size;
		count++;
	}
	*ret_damaged = rt_perf_reader_damage(reader) != NULL;
	return count;
}
