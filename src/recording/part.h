/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lifetimes in several files (wire/event.h, struct rt_wire_part): who writes them keeps what a later file has to say
 * again; who reads them one after the other gets the stream as it would be in one file. Not for two threads at once.
 */
#pragma once

#include "event/stream.h"
#include "maps/maps.h"

struct rt_part_writer;

/* maps: fed with every record before it comes here; outlives the writer. recording: a number that no other one has. */
RT_CHECK struct rt_error *rt_part_writer_create(const struct rt_maps *maps, uint64_t recording,
						struct rt_part_writer **ret);
void rt_part_writer_destroy(struct rt_part_writer *writer);
RT_CLEANUP(struct rt_part_writer *, rt_part_writer_destroy);

/* Before each record goes to file: remembers it, and says again what it needs that stands in an earlier file. */
RT_CHECK struct rt_error *rt_part_writer_record(struct rt_part_writer *writer, const struct rt_wire_head *record,
						struct rt_event_sink *file);
/* The file ends, the stream goes on. now_ns: of the stream (CLOCK_MONOTONIC). */
RT_CHECK struct rt_error *rt_part_writer_end(struct rt_part_writer *writer, uint64_t now_ns,
					     struct rt_event_sink *file);
/* The next file, which is empty. earlier: names of those before it, oldest first. */
RT_CHECK struct rt_error *rt_part_writer_begin(struct rt_part_writer *writer, uint64_t now_ns,
					       const char *const *earlier, size_t count, struct rt_event_sink *file);

/* All zeroes: before the first file. */
struct rt_part_join {
	uint64_t recording;
	uint32_t number; /* of the file that is read, 0 = it has not said */
	uint32_t last;   /* of the file before */
	bool dropping;
	bool more; /* another file follows the one that is read */
	uint64_t records;
};

/* A file begins; more: it is not the last one. RT_E_FORMAT when the one before it is no part of a recording. */
RT_CHECK struct rt_error *rt_part_join_file(struct rt_part_join *join, bool more);
/*
 * true: the record belongs to the joined stream. RT_E_FORMAT when the file does not go on where the one before it
 * ended; in any case before its first event.
 */
RT_CHECK struct rt_error *rt_part_join_record(struct rt_part_join *join, const struct rt_wire_head *record, bool *ret);
