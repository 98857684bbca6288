/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One record of perf.data, decoded, whatever the byte order it was written in.
 * Pointers go into the bytes that were decoded or, where bytes had to be
 * swapped, into the decoder's own memory; both are valid until its next record.
 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/format.h"

/* What sample_id_all puts behind each record, and samples carry themselves. Absent fields are 0. */
struct rt_perf_id {
	uint64_t time_ns, id, stream;
	uint32_t pid, tid, cpu;
	bool has_time;
};

struct rt_perf_mmap { /* MMAP and MMAP2 */
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint8_t build_id[20];
	uint8_t build_id_size; /* 0 = the record has none: maj..ino_gen are valid */
	uint32_t maj, min;
	uint64_t ino, ino_gen;
	uint32_t prot, flags; /* 0 in MMAP */
	const char *filename;
};

struct rt_perf_task { /* FORK, EXIT */
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

struct rt_perf_comm {
	uint32_t pid, tid;
	bool exec;
	const char *comm;
};

struct rt_perf_ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t type; /* 1 BPF, 2 out-of-line code */
	bool unregister;
	const char *name;
};

struct rt_perf_bpf_event {
	uint16_t type; /* 1 load, 2 unload */
	uint16_t flags;
	uint32_t id;
	uint8_t tag[8];
};

struct rt_perf_text_poke {
	uint64_t addr;
	struct rt_bytes old, new;
};

struct rt_perf_sample {
	uint64_t ip, addr, period, weight;
	bool moved;            /* period is what the event's counter moved by, whatever the attr says */
	bool unwound;          /* the callers in user space are rt_chain_unwind()'s: addresses behind the calls */
	const uint64_t *chain; /* callchain with its PERF_CONTEXT_* marks */
	uint64_t chain_count;
	struct rt_bytes raw;  /* PERF_SAMPLE_RAW, in the file's own byte order */
	struct rt_bytes read; /* PERF_SAMPLE_READ, the same */
	uint64_t user_abi;
	const uint64_t *user_regs; /* in the order of sample_regs_user's bits */
	unsigned user_reg_count;
	struct rt_bytes user_stack;
	uint64_t user_stack_size; /* what of it is valid (dyn_size) */
	uint64_t cgroup, phys_addr, data_page_size, code_page_size, data_src, transaction;
};

struct rt_perf_record {
	uint32_t type; /* enum rt_perf_type, or one that we do not know */
	uint16_t misc;
	uint64_t offset;       /* of the record in the file; in COMPRESSED data: of the compressed record */
	struct rt_bytes bytes; /* the whole record as it is in the file, header included */
	struct rt_perf_id id;
	unsigned event; /* index of the event (rt_perf_event) that id belongs to */
	union {
		struct rt_perf_mmap mmap;
		struct rt_perf_task task;
		struct rt_perf_comm comm;
		struct rt_perf_ksymbol ksymbol;
		struct rt_perf_bpf_event bpf;
		struct rt_perf_text_poke poke;
		struct rt_perf_sample sample;
		struct {
			uint64_t id, count;
		} lost; /* LOST, LOST_SAMPLES (id 0) */
	};
};

/* An event of the file: what was opened, under which ids, and what it is called. */
struct rt_perf_event {
	struct perf_event_attr attr; /* in our byte order; size = what the file says */
	uint64_t *ids;               /* owned */
	size_t id_count;
	char *name; /* "cycles"; owned; NULL where the file does not tell */
};

/* What a sample counts for; 1 where only the frequency of samples is told. */
static inline uint64_t rt_perf_period(const struct perf_event_attr *attr, const struct rt_perf_sample *sample)
{
	uint64_t period = sample->period;

	if (!sample->moved && !(attr->sample_type & PERF_SAMPLE_PERIOD))
		period = attr->freq ? 1 : attr->sample_period;
	return period || attr->type != PERF_TYPE_TRACEPOINT ? period : 1;
}

/* Decodes records of a stream with these events. One user at a time. */
struct rt_perf_decoder;

/* events must outlive the decoder and may grow meanwhile only through rt_perf_decoder_events(). */
RT_CHECK struct rt_error *rt_perf_decoder_create(const struct rt_perf_event *events, size_t count, bool big_endian,
						 struct rt_perf_decoder **ret);
RT_CHECK struct rt_error *rt_perf_decoder_events(struct rt_perf_decoder *decoder, const struct rt_perf_event *events,
						 size_t count);
void rt_perf_decoder_destroy(struct rt_perf_decoder *decoder);
RT_CLEANUP(struct rt_perf_decoder *, rt_perf_decoder_destroy);

/*
 * Decodes the record at the start of bytes (which may be longer: the record
 * says its own size). Unknown types are whole records with no fields; bytes
 * behind the known fields are ignored. RT_E_FORMAT says what does not fit.
 */
RT_CHECK struct rt_error *rt_perf_decode(struct rt_perf_decoder *decoder, struct rt_bytes bytes,
					 struct rt_perf_record *ret);

/* "SAMPLE" for RT_PERF_SAMPLE; "?" for unknown types. Static string. */
const char *rt_perf_type_name(uint32_t type);
