/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes perf.data that perf 5.x and newer read: attributes of at most 128
 * bytes, build-ids both in MMAP2 and in the BUILD_ID section, features in
 * ascending order, optional zstd compression of the data, file or pipe mode.
 *
 *     create -> event... -> begin -> record... -> feature... -> end
 *
 * Our byte order. The header holds sizes that are known only at the end: the
 * owner of the file writes the bytes of rt_perf_writer_header() at offset 0
 * then; until that, readers see an unfinished file and read what is there.
 */
#pragma once

#include "base/sink.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"

struct rt_perf_writer_options {
	bool pipe;           /* one-way stream: header-less, features as records */
	unsigned zstd_level; /* 0 = do not compress */
};

struct rt_perf_writer;

/* The sink outlives the writer. options may be NULL. */
RT_CHECK struct rt_error *rt_perf_writer_create(struct rt_sink *sink, const struct rt_perf_writer_options *options,
						struct rt_perf_writer **ret);
void rt_perf_writer_destroy(struct rt_perf_writer *writer);
RT_CLEANUP(struct rt_perf_writer *, rt_perf_writer_destroy);

/* Declares an event (copied); all of them before rt_perf_writer_begin(). Its attr is cut to
 * 128 bytes and to the flags that perf 6.1 knows; RT_E_UNSUPPORTED for sample fields that it does not know. */
RT_CHECK struct rt_error *rt_perf_writer_event(struct rt_perf_writer *writer, const struct rt_perf_event *event);
/* Writes what stands before the data. */
RT_CHECK struct rt_error *rt_perf_writer_begin(struct rt_perf_writer *writer);

/* A record in our byte order, header included; its size field must be bytes.size, a multiple of 8. */
RT_CHECK struct rt_error *rt_perf_writer_raw(struct rt_perf_writer *writer, struct rt_bytes record);
/*
 * Encodes record for event record->event by its attr: kernel record types, and FINISHED_ROUND.
 * MMAP2 gets its build-id where it has one. id.id 0: the event's first id. The fields count,
 * record->bytes does not. RT_E_LIMIT: larger than a record can be.
 */
RT_CHECK struct rt_error *rt_perf_writer_record(struct rt_perf_writer *writer, const struct rt_perf_record *record);

/*
 * What goes into the feature sections; set fields of header are written (copied
 * at once; a later value replaces the earlier one). EVENT_DESC and COMPRESSED
 * come from the writer itself. May be called at any time before the end, and more
 * than once. Pipe mode writes what it knows at begin, the rest at the end; perf
 * shows raw fields only when tracing_data came before the records. clockid is what
 * perf keeps there: the clock's resolution in ns. BPF entries: what perf 6.1 does
 * not know of bpf_prog_info is cut, and what follows the arrays.
 */
RT_CHECK struct rt_error *rt_perf_writer_features(struct rt_perf_writer *writer, const struct rt_perf_header *header);
/* Whether the entry of a BPF program has all that it says; rt_perf_writer_features() refuses one that has not. */
bool rt_perf_bpf_entry_is_whole(struct rt_bytes entry);
/* Ends the data, writes the features. The sink is not flushed: that is its owner's rt_sink_end(). */
RT_CHECK struct rt_error *rt_perf_writer_end(struct rt_perf_writer *writer);
/* The final file header, to be written at offset 0 of the file; empty in pipe mode. */
struct rt_bytes rt_perf_writer_header(const struct rt_perf_writer *writer);
/* Pipe mode: features (each BPF program and BTF counts) that were left out because they are larger than a record. */
unsigned rt_perf_writer_lost(const struct rt_perf_writer *writer);
