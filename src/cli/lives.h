/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lifetimes of an input, for views that ask more than the report: read once, and again where what is
 * asked for is only known after the first reading.
 */
#pragma once

#include "cli/input.h"
#include "cli/output.h"
#include "report/view.h"

struct rt_lives {
	struct rt_input input;
	struct rt_pipeline pipeline;
	struct rt_lifetime *again;
	const char *path; /* for messages: as named, or the default */
};

/*
 * Reads the input of options (one operand may name it, where operand is true). watch may be NULL. RT_E_NO_EVENT
 * when it holds no lifetimes. The verdict is valid until close; close also after a failure.
 */
RT_CHECK struct rt_error *rt_lives_read(const struct rt_options *options, const struct rt_watch *watch,
					struct rt_lives *lives, const struct rt_verdict **ret);
/* Reads it once more, with another watch: types and serials are the same. */
RT_CHECK struct rt_error *rt_lives_read_again(struct rt_lives *lives, const struct rt_watch *watch,
					      const struct rt_verdict **ret);
void rt_lives_close(struct rt_lives *lives);

/* Says what is missing on standard error. Exit status: 0, or RT_EXIT_TRUST. */
int rt_lives_status(const struct rt_lives *lives, const struct rt_verdict *verdict);

struct rt_view_head rt_lives_head(const struct rt_lives *lives);

/* What prints a view into sink, as text or as JSON. */
struct rt_lives_view {
	struct rt_error *(*print)(const struct rt_lives_view *self, enum rt_format format,
				  const struct rt_view_options *how, struct rt_sink *sink);
};
/* Prints to where options say: standard output, -o FILE, --json=FILE. */
RT_CHECK struct rt_error *rt_lives_print(const struct rt_options *options, const struct rt_lives_view *view);

/* Options that both views have: parse them by this. */
error_t rt_lives_parse(int key, char *arg, struct argp_state *state);
#define RT_LIVES_OPTIONS \
	{ "input", \
	  'i', \
	  "FILE", \
	  0, \
	  "recording of reftrace, or an .events file (default " RT_DEFAULT_RECORDING \
	  "); repeated: the files of --switch-output", \
	  1 }, \
		{ "output", 'o', "FILE", 0, "write to FILE", 4 }, \
		{ "format", RT_OPT_FORMAT, "NAME", 0, "text or json", 4 }, \
		{ "json", \
		  RT_OPT_JSON, \
		  "FILE", \
		  OPTION_ARG_OPTIONAL, \
		  "as --format json; with =FILE: JSON there, and the text as well", \
		  4 }, \
		{ "color", RT_OPT_COLOR, "WHEN", 0, "auto, always or never", 4 }, \
	{ \
		"symfs", RT_OPT_SYMFS, "DIR", 0, "look for binaries and sources below DIR", 4 \
	}
