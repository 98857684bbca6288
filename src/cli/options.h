/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of all commands: one struct, filled by argp tables. Groups that
 * several commands share (target, trace, output, common) are argp children,
 * so that an option means the same everywhere.
 */
#pragma once

#include <argp.h>

#include "base/error.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "report/script.h"

enum rt_format { RT_FORMAT_TEXT, RT_FORMAT_JSON };
enum rt_color { RT_COLOR_AUTO, RT_COLOR_ALWAYS, RT_COLOR_NEVER };

/* Strings point into argv; the vectors are owned. */
struct rt_options {
	const char *verb;
	struct rt_error *err; /* first fault of an argument; owned */
	bool help;
	/* target */
	const char *const *command; /* NULL-terminated rest of argv, NULL = none */
	RT_VEC(uint32_t) pids;
	uint64_t duration_ns;
	bool no_follow, as_root;
	const char *user;
	RT_VEC(const char *) env; /* VAR=VAL */
	/* trace */
	RT_VEC(const char *) types, pairs;
	const struct rt_engine_ops *engine; /* NULL: whichever works */
	bool no_presets, no_census, first_insn;
	enum rt_attach_path attach;
	enum rt_semaphore_way semaphore;
	size_t ring_bytes; /* 0 = default */
	unsigned frames;   /* of a stack; 0 = default */
	bool inject;       /* engine agent for running programs */
	bool counts;       /* no events: counts by object */
	double sample;     /* which part of the objects is traced; 0 = not told */
	double overhead;   /* what hooks may cost of the program's own time; 0 = not told */
	/* samples (record) */
	RT_VEC(const char *) events;
	uint64_t frequency, period; /* 0 = not told; frequency UINT64_MAX = max */
	uint64_t delay_ns;
	uint32_t stack_bytes; /* --call-graph dwarf; 0 = frame pointers */
	bool call_graph, all_cpus, no_lifetimes, delay_forever;
	size_t max_bytes; /* 0 = no limit */
	bool switch_output;
	size_t switch_bytes; /* both 0: at a signal */
	uint64_t switch_ns;
	const char *control;
	bool debuginfod;                       /* ask servers for debug information */
	const char *debuginfod_urls;           /* NULL: those of the environment */
	uint64_t debuginfod_timeout_ns;        /* 0 = default */
	bool allow_unverified, allow_mismatch; /* use definitions of the build-id cache on other files */
	bool no_cache, cache_all;              /* which of the mapped files go into the build-id cache: none, all */
	/* output */
	enum rt_format format;
	enum rt_color color;
	const char *output;               /* -o */
	const char *json;                 /* --json=FILE */
	const char *recording;            /* -w */
	const char *input;                /* -i */
	RT_VEC(const char *) more_inputs; /* of commands that read a recording in several files: those behind input */
	const char *write;                /* --write */
	const char *symfs;
	const char *directory; /* -C */
	size_t max_size;       /* --max-size; 0 = default */
	bool quiet, verbose, strict, build_options, samples_only;
	struct {
		bool exit, main_return;
		int signal; /* of reftrace; 0 = none */
		uint64_t interval_ns;
	} at;                          /* run: when to judge; all 0: at exit */
	bool narrow;                   /* run: once more where the evidence is thin */
	bool verify;                   /* scan --verify */
	bool events_text;              /* script --events */
	struct rt_script_options show; /* script */
	struct {
		bool xlated, bytes, no_source, all;
	} annotate;
	struct {
		int of;       /* enum rt_export_of */
		size_t limit; /* 0 = default */
	} export;
	struct {
		const char *object; /* --object */
		bool stacks, all, inverted;
	} view; /* object, tree */
	struct {
		const char *file;    /* -x */
		const char *sources; /* --source-dir */
		uint32_t target_ns;  /* 0 = our own */
		bool no_demangle, externs;
	} list;                            /* probe funcs, lines, vars */
	RT_VEC(const char *) suppressions; /* files */
	RT_VEC(const char *) models;       /* files */
	const char *save_models;           /* file, or folder with a slash at its end; NULL */
	bool no_models;                    /* none that nobody named */
	bool gen_suppressions;
	int error_exitcode;            /* 0 = findings do not change the exit status */
	RT_VEC(const char *) operands; /* arguments of commands that start no program */
};

/* Option keys without a letter. */
enum {
	RT_OPT_DURATION = 0x100,
	RT_OPT_NO_FOLLOW,
	RT_OPT_AS_ROOT,
	RT_OPT_NO_PRESETS,
	RT_OPT_NARROW,
	RT_OPT_ENGINE,
	RT_OPT_ATTACH,
	RT_OPT_FRAMES,
	RT_OPT_NO_CENSUS,
	RT_OPT_FIRST_INSN,
	RT_OPT_FORMAT,
	RT_OPT_JSON,
	RT_OPT_COLOR,
	RT_OPT_ERROR_EXITCODE,
	RT_OPT_STRICT,
	RT_OPT_SYMFS,
	RT_OPT_DEBUG,
	RT_OPT_WRITE,
	RT_OPT_BUILD_OPTIONS,
	RT_OPT_SAMPLES,
	RT_OPT_CALL_GRAPH,
	RT_OPT_NO_LIFETIMES,
	RT_OPT_MAX_SIZE,
	RT_OPT_SWITCH_OUTPUT,
	RT_OPT_CONTROL,
	RT_OPT_BUILDID_ALL,
	RT_OPT_TARGET_NS,
	RT_OPT_NO_DEMANGLE,
	RT_OPT_SOURCE_DIR,
	RT_OPT_EXTERNS,
	RT_OPT_UNVERIFIED,
	RT_OPT_MISMATCH,
	RT_OPT_DEBUGINFOD,
	RT_OPT_DEBUGINFOD_TIMEOUT,
	RT_OPT_SEMAPHORE,
	RT_OPT_AT,
	RT_OPT_SUPPRESSIONS,
	RT_OPT_MODELS,
	RT_OPT_SAVE_MODELS,
	RT_OPT_NO_MODELS,
	RT_OPT_GEN_SUPPRESSIONS,
	RT_OPT_INJECT,
	RT_OPT_SAMPLE,
	RT_OPT_MAX_OVERHEAD,
	RT_OPT_COUNTS,
};

/* Groups. */
extern const struct argp rt_target_argp, rt_trace_argp, rt_sample_argp, rt_output_argp, rt_common_argp;
extern const struct argp rt_debuginfod_argp; /* of commands that read debug information */
extern const struct argp rt_root_argp; /* --symfs, --target-ns of commands that read named files; see cli/root.h */

/* What record takes: samples, lifetimes, or both. */
bool rt_options_sample(const struct rt_options *options);
bool rt_options_lifetimes(const struct rt_options *options);
/* RT_E_USAGE for options of record that contradict each other. */
RT_CHECK struct rt_error *rt_options_check_sample(const struct rt_options *options);

/*
 * Parses argv (argv[0] = the command's name) by argp. With program true the
 * first word that is no option starts the program's own arguments; else words are operands.
 * RT_E_USAGE names the fault and the nearest option. *ret is to be freed by rt_options_deinit() in any case.
 */
RT_CHECK struct rt_error *rt_options_parse(const struct argp *argp, int argc, char **argv, struct rt_options *ret);
void rt_options_deinit(struct rt_options *options);

/* An argp parser for commands that take a program; one for operands. Use as argp.parser. */
error_t rt_parse_program(int key, char *arg, struct argp_state *state);
error_t rt_parse_operands(int key, char *arg, struct argp_state *state);

/* Notes a fault of an argument (takes err) and returns what a parser returns then. */
error_t rt_option_fault(struct rt_options *options, struct rt_error *err);

/* "30s", "100ms", "1.5m", "2h", "10" (seconds). */
RT_CHECK struct rt_error *rt_parse_duration(const char *text, uint64_t *ret_ns);
/* "4096", "64K", "16M", "1G". */
RT_CHECK struct rt_error *rt_parse_size(const char *text, size_t *ret);
/* "1/100", "1%", "0.01": more than 0, at most `most`. what: of which option. */
RT_CHECK struct rt_error *rt_parse_part(const char *text, const char *what, double most, double *ret);
/* "12,34". */
RT_CHECK struct rt_error *rt_parse_pids(const char *text, struct rt_options *options);

/* Prints the help of a command. */
void rt_options_help(const struct argp *argp, const char *verb, FILE *out);
