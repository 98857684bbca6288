/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of recording/. */
#pragma once

#include "base/sink.h"
#include "base/vec.h"
#include "capture/spool.h"
#include "recording/recording.h"
#include "recording/translate.h"

enum { RT_PERF_KSYMBOL_BPF = 1, RT_PERF_KSYMBOL_OOL = 2 };

/* A function of a kept BPF program, and its lines once they are asked for. */
struct rt_recording_function {
	const struct rt_bpf_image *image;
	const struct rt_bpf_function *function;
	struct rt_code_line *lines; /* owned */
	size_t line_count;
	bool placed; /* a KSYMBOL said where and when it was */
};

struct rt_recording {
	struct rt_bytes bytes;
	const char *name;
	bool is_spool, has_perf, has_wire;
	struct rt_spool_reader *spool;
	struct rt_perf_reader *perf; /* of the file, or of the spool's perf part, converted */
	struct rt_sink converted;    /* a spool's perf part as perf.data, in memory */
	struct rt_perf_header no_header;
	RT_VEC(char *) command; /* NULL-terminated once it is known */
	char *damage;
	int status;
	bool has_status;
	struct rt_recording_kernel kernel;
	RT_VEC(struct rt_bpf_image *) images;
	RT_VEC(struct rt_recording_function) functions; /* by address */
	RT_VEC(char *) bpf_lost;
	uint64_t bpf_call_base; /* address that calls of eBPF instructions count from, 0 = unknown */
	struct rt_chain *chain; /* of rt_recording_code(); not owned, NULL before */
	struct rt_unwound unwound;
};

enum { RT_USER_FRAMES_MAX = 127 /* as perf has it by default */, RT_USER_CHAIN_MAX = 512 };

/* Where sample holds a copied stack instead of callers, makes them: chain is room for them, and outlives the use. */
void rt_recording_unwind(struct rt_recording *recording, const struct rt_perf_event *event,
			 struct rt_perf_record *sample, uint64_t chain[RT_USER_CHAIN_MAX]);

/* What it holds, learnt at the opening. */
RT_CHECK struct rt_error *rt_recording_peek(struct rt_recording *recording);
RT_CHECK struct rt_error *rt_recording_learn(struct rt_recording *recording);

/* Notes the first damage; NULL is none. */
RT_CHECK struct rt_error *rt_recording_note_damage(struct rt_recording *recording, const char *text);

RT_CHECK struct rt_error *rt_recording_drain_wire(struct rt_recording *recording, struct rt_recording_sink *sink);
RT_CHECK struct rt_error *rt_recording_drain_perf(struct rt_recording *recording, struct rt_recording_sink *sink);
