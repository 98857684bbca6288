/* SPDX-License-Identifier: GPL-2.0-only */
/* What a command reads: a recording (spool or perf.data), or an .events text. */
#pragma once

#include "base/bytes.h"
#include "cli/options.h"
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
	struct rt_input *more; /* a recording in several files: those behind this one; owned */
	size_t more_count;
};

/* path NULL: the default recording; "-": standard input, whole before anything is read. Close it also after a failure.
 */
RT_CHECK struct rt_error *rt_input_open(const char *path, struct rt_input *ret);
/* The same for what options name: one file, or the files of one recording in their order. */
RT_CHECK struct rt_error *rt_input_open_all(const struct rt_options *options, struct rt_input *ret);
/* For parsers: one more file that is named. */
error_t rt_input_name(struct rt_options *options, const char *path);
/*
 * rt_recording_drain(); of several files one after the other, as if they were one. These have lifetimes only: side
 * and perf of sink are to be NULL then.
 */
RT_CHECK struct rt_error *rt_input_drain(struct rt_input *input, struct rt_recording_sink *sink);
/* The first damage of any of the files; NULL = none, as far as they were read. */
const char *rt_input_damage(const struct rt_input *input);
/* rt_recording_status() of the last file. */
bool rt_input_status(const struct rt_input *input, int *ret);
/* Gives pipeline the names of code that is in no file: kernel functions, BPF programs. Of a recording. */
RT_CHECK struct rt_error *rt_input_code(struct rt_input *input, struct rt_pipeline *pipeline);
/* Says on standard error where callers out of copied stacks end early. */
void rt_input_say_stacks(const struct rt_input *input);
void rt_input_close(struct rt_input *input);
