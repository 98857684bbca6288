/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One record as bytes of perf.data, in our byte order: the opposite of
 * rt_perf_decode(). What a sample holds beyond struct rt_perf_sample (branch
 * stack, registers at the interrupt, AUX snapshots) is written as absent, the
 * way the kernel does when it has none.
 */
#pragma once

#include "perfdata/record.h"

/* Largest record: the size field has 16 bits, and records are multiples of 8. */
#define RT_PERF_RECORD_MAX 65528

/* Bytes that are put one behind the other into a buffer of fixed size. */
struct rt_perf_put {
	uint8_t *data;
	size_t size, len;
	bool full; /* something did not fit; nothing was put from there on */
};

void rt_perf_put(struct rt_perf_put *put, const void *data, size_t size);
void rt_perf_put_u16(struct rt_perf_put *put, uint16_t value);
void rt_perf_put_u32(struct rt_perf_put *put, uint32_t value);
void rt_perf_put_u64(struct rt_perf_put *put, uint64_t value);
/* Zeroes up to the next multiple of align (a power of two). */
void rt_perf_put_align(struct rt_perf_put *put, size_t align);

/*
 * record by attr into buffer of size bytes (RT_PERF_RECORD_MAX is always
 * enough); header.size is set. RT_E_LIMIT when it is larger than a record can
 * be, RT_E_UNSUPPORTED for types that have no fields in struct rt_perf_record,
 * RT_E_FORMAT when a sample lacks what attr demands.
 */
RT_CHECK struct rt_error *rt_perf_encode(const struct perf_event_attr *attr, const struct rt_perf_record *record,
					 uint8_t *buffer, size_t size, size_t *ret_size);
