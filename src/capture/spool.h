/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The spool: a recording that survives any crash. A file header, then chunks of wire records, each with its
 * length, time range, record count and CRC-32C; readable up to the last full chunk.
 * Layout: doc/spool.md.
 */
#pragma once

#include "base/bytes.h"
#include "base/sink.h"
#include "event/stream.h"

struct rt_spool_writer;

/* Writes to sink (must outlive it). command and so on go into the header. */
RT_CHECK struct rt_error *rt_spool_writer_create(struct rt_sink *sink, const char *const *command,
						 struct rt_spool_writer **ret);
/* The writer as event sink: buffers records into the current chunk. */
struct rt_event_sink *rt_spool_writer_sink(struct rt_spool_writer *writer);
/* Closes the current chunk and hands it to the kernel. Call it by timer, too (<= 100 ms old data at risk). */
RT_CHECK struct rt_error *rt_spool_writer_flush(struct rt_spool_writer *writer);
/* Flushes and writes the end chunk: a spool without it was cut. */
RT_CHECK struct rt_error *rt_spool_writer_end(struct rt_spool_writer *writer, int program_status);
void rt_spool_writer_destroy(struct rt_spool_writer *writer);
RT_CLEANUP(struct rt_spool_writer *, rt_spool_writer_destroy);

struct rt_spool_reader;

/* Reads from bytes that outlive it. RT_E_FORMAT when it is no spool (names what it looks like). name is for messages.
 */
RT_CHECK struct rt_error *rt_spool_reader_create(struct rt_bytes bytes, const char *name, struct rt_spool_reader **ret);
void rt_spool_reader_destroy(struct rt_spool_reader *reader);
RT_CLEANUP(struct rt_spool_reader *, rt_spool_reader_destroy);
/* Engine replay: yields the records; damage or a missing end gives a LOSS record (RT_LOSS_CUT, text names the byte
 * offset), then the end. */
struct rt_source *rt_spool_reader_source(struct rt_spool_reader *reader);
/* NULL-terminated; owned by the reader. */
const char *const *rt_spool_reader_command(const struct rt_spool_reader *reader);
/* Wait status of the program; false when the spool was cut before it was known. */
bool rt_spool_reader_status(const struct rt_spool_reader *reader, int *ret);
