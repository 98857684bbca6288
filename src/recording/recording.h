/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording, whichever format it is in: our spool or perf.data (ours or
 * perf's own). Both hold up to three things, and each has its taker:
 *
 *   wire   the event stream of lifetimes, as the session yielded it
 *   side   MODULE, MAP, FORK and EXEC records made from perf's side-band: for
 *          names only; their pid has the generation RT_GEN_SIDE
 *   perf   perf's records (samples, comms, ...), by time
 */
#pragma once

#include "bpfimage/bpfimage.h"
#include "event/stream.h"
#include "perfdata/reader.h"
#include "symbol/chain.h"

/* Generation of processes as perf's side-band tells them; the session's own generations are far below. */
#define RT_GEN_SIDE 1023u
#define RT_SIDE_PID(pid) RT_PID_MAKE((pid), RT_GEN_SIDE)

/* The same for those who ask by pointer. */
static inline uint32_t rt_side_pid(uint32_t pid)
{
	return RT_SIDE_PID(pid);
}

struct rt_recording;

/*
 * Opens either format; bytes outlive it. Errors: as of the two readers; when
 * it is neither, RT_E_FORMAT says what it looks like.
 */
RT_CHECK struct rt_error *rt_recording_open(struct rt_bytes bytes, const char *name, struct rt_recording **ret);
void rt_recording_close(struct rt_recording *recording);
RT_CLEANUP(struct rt_recording *, rt_recording_close);

/* Which kernel ran, as the mapping of its text says; complete after rt_recording_code(). */
struct rt_recording_kernel {
	uint64_t text; /* address of _text or _stext; 0 = unknown */
	uint8_t build_id[20];
	uint8_t build_id_size; /* 0 = not told */
};

struct rt_recording_info {
	const char *format;         /* "spool", "perf.data": static */
	const char *const *command; /* NULL-terminated; NULL = unknown */
	bool has_perf;              /* samples or other records of perf's */
	bool has_wire;              /* lifetimes */
	struct rt_recording_kernel kernel;
	const struct rt_perf_header *header; /* what is known of the machine; fields NULL or 0 where not */
};
/* Makes the header known before a drain: of a spool, too, by converting it. */
RT_CHECK struct rt_error *rt_recording_prepare(struct rt_recording *recording);
/* Valid until the next drain; complete after the first one. */
struct rt_recording_info rt_recording_info(const struct rt_recording *recording);

/* Wait status of the program; false: not known (yet: after the drain). */
bool rt_recording_status(const struct rt_recording *recording, int *ret);

/* Each taker may be NULL. A record is valid during the call. */
struct rt_recording_sink {
	struct rt_error *(*wire)(struct rt_recording_sink *self, const struct rt_wire_head *record);
	/* n records of kind EVENT, one behind the other, instead of as many calls of wire; NULL: wire takes each */
	struct rt_error *(*events)(struct rt_recording_sink *self, const struct rt_wire_event *events, size_t n);
	struct rt_event_sink *side;
	struct rt_error *(*perf)(struct rt_recording_sink *self, const struct rt_perf_event *events,
				 const struct rt_perf_record *record);
	bool all; /* perf takes the samples of reftrace:* events, too: lifetimes as perf sees them */
};

/*
 * Reads it to its end; may be called again. Damage is a LOSS record (RT_LOSS_CUT, with the offset) for wire,
 * and rt_recording_damage().
 */
RT_CHECK struct rt_error *rt_recording_drain(struct rt_recording *recording, struct rt_recording_sink *sink);

/* What is missing: one sentence with the offset; NULL = the recording was whole, as far as it was read. */
const char *rt_recording_damage(const struct rt_recording *recording);

/*
 * Gives chain the names of code without a file: kernel symbols and BPF functions
 * with their source lines. To be called once, before samples are named; reads the recording.
 */
RT_CHECK struct rt_error *rt_recording_code(struct rt_recording *recording, struct rt_chain *chain);

/*
 * Samples that hold registers and a copy of the stack instead of the callers (record --call-graph dwarf): after
 * rt_recording_code() their callchain is made from these, by the chain that was given there. What came of it in the
 * last drain.
 */
struct rt_unwound rt_recording_unwound(const struct rt_recording *recording);

/* The BPF programs that were kept, by id; owned by the recording. After rt_recording_code(). */
const struct rt_bpf_image *const *rt_recording_bpf(const struct rt_recording *recording, size_t *ret_count);
/* What of a program is missing and why ("program 12: ..."), one line each. */
size_t rt_recording_bpf_lost(const struct rt_recording *recording, const char *const **ret);
