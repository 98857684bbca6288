/* SPDX-License-Identifier: GPL-2.0-only */
/* What a command reads: a recording (spool or perf.data), or an .events text. */
#pragma once

#include "base/bytes.h"
#include "cli/pipeline.h"
#include "engine/text.h"
#include "recording/recording.h"

/* What record writes and the others read when no file is named. */
#define RT_DEFAULT_RECORDING "reftrace.data"

/* One of recording and text is set. */
struct rt_input {
	const char *path;
	struct rt_bytes bytes;
	struct rt_recording *recording;
	struct rt_text *text;
};

/* path NULL: the default recording. Close it also after a failure. */
RT_CHECK struct rt_error *rt_input_open(const char *path, struct rt_input *ret);
/* Gives pipeline the names of code that is in no file: kernel functions, BPF programs. Of a recording. */
RT_CHECK struct rt_error *rt_input_code(struct rt_input *input, struct rt_pipeline *pipeline);
void rt_input_close(struct rt_input *input);
