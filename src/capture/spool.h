/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The spool: a recording that survives any crash. A file header, then chunks of wire records, each with its
 * length, time range, record count and CRC-32; readable up to the last full chunk.
 * Layout: docs/spool.md.
 */
#pragma once

#include "base/bytes.h"
#include "base/sink.h"
#include "event/stream.h"

struct rt_spool_writer;

/*
 * Writes to sink (must outlive it). command (NULL-terminated; may be NULL) goes into the header.
 * A failed write (RT_E_DISK_FULL, RT_E_UNWRITABLE) is final: every later call returns it again.
 */
RT_CHECK struct rt_error *rt_spool_writer_create(struct rt_sink *sink, const char *const *command,
						 struct rt_spool_writer **ret);
/* The writer as event sink: buffers records into the current chunk. RT_E_INTERNAL for a malformed record. */
struct rt_event_sink *rt_spool_writer_sink(struct rt_spool_writer *writer);
/* Closes the current chunk and hands it to the kernel. Call it by timer, too (<= 100 ms old data at risk). */
RT_CHECK struct rt_error *rt_spool_writer_flush(struct rt_spool_writer *writer);
/* Flushes and writes the end chunk: a spool without it was cut. program_status: wait status, -1 = not known. */
RT_CHECK struct rt_error *rt_spool_writer_end(struct rt_spool_writer *writer, int program_status);
void rt_spool_writer_destroy(struct rt_spool_writer *writer);
RT_CLEANUP(struct rt_spool_writer *, rt_spool_writer_destroy);

struct rt_spool_reader;

/*
 * Reads from bytes that outlive it. RT_E_FORMAT when it is no spool (names what it looks like), RT_E_TRUNCATED when
 * already the header is cut or damaged, RT_E_UNSUPPORTED for another byte order, word size or version. name is for
 * messages.
 */
RT_CHECK struct rt_error *rt_spool_reader_create(struct rt_bytes bytes, const char *name, struct rt_spool_reader **ret);
void rt_spool_reader_destroy(struct rt_spool_reader *reader);
RT_CLEANUP(struct rt_spool_reader *, rt_spool_reader_destroy);
/* Engine replay: yields the records; damage or a missing end gives a LOSS record (RT_LOSS_CUT, text names the byte
 * offset), then the end. The reader owns the source; destroying the source does nothing. */
struct rt_source *rt_spool_reader_source(struct rt_spool_reader *reader);
/*
 * The same stream for who takes many at once: *ret is *ret_n events, one behind the other, or one record of any kind;
 * NULL and 0 at the end. Valid until the next call.
 */
RT_CHECK struct rt_error *rt_spool_reader_next(struct rt_spool_reader *reader, const struct rt_wire_head **ret,
					       size_t *ret_n);
/* NULL-terminated; owned by the reader. */
const char *const *rt_spool_reader_command(const struct rt_spool_reader *reader);
/* Where and when it was recorded. */
struct rt_spool_origin {
	const char *machine; /* "Linux 6.1.0 x86_64"; owned by the reader */
	uint64_t start_monotonic_ns, start_realtime_ns;
};
struct rt_spool_origin rt_spool_reader_origin(const struct rt_spool_reader *reader);
/* Wait status of the program, known after the source came to its end; false: cut before, or attached to. */
bool rt_spool_reader_status(const struct rt_spool_reader *reader, int *ret);
