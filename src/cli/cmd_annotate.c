/* SPDX-License-Identifier: GPL-2.0-only */
/* annotate: one function, instruction by instruction, with what was sampled there. */
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/input.h"
#include "cli/output.h"
#include "perfdata/reftrace_events.h"
#include "report/annotate.h"
#include "report/profile_report.h"
#include "report/words.h"

enum { OPT_XLATED = 0x1000, OPT_BYTES, OPT_NO_SOURCE, OPT_ALL };

static const struct argp_option own[] = {
	{ "input", 'i', "FILE", 0, "recording of reftrace or of perf (default " RT_DEFAULT_RECORDING ")", 1 },
	{ "xlated", OPT_XLATED, NULL, 0, "BPF: the eBPF instructions instead of the machine's", 1 },
	{ "bytes", OPT_BYTES, NULL, 0, "the bytes of each instruction, too", 1 },
	{ "no-source", OPT_NO_SOURCE, NULL, 0, "instructions only", 1 },
	{ "all", OPT_ALL, NULL, 0, "instructions without hits, too", 1 },
	{ "output", 'o', "FILE", 0, "write to FILE", 4 },
	{ "color", RT_OPT_COLOR, "WHEN", 0, "auto, always or never", 4 },
	{ "symfs", RT_OPT_SYMFS, "DIR", 0, "look for binaries and sources below DIR", 4 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'i':
		options->input = arg;
		return 0;
	case OPT_XLATED:
		options->annotate.xlated = true;
		return 0;
	case OPT_BYTES:
		options->annotate.bytes = true;
		return 0;
	case OPT_NO_SOURCE:
		options->annotate.no_source = true;
		return 0;
	case OPT_ALL:
		options->annotate.all = true;
		return 0;
	default:
		return rt_output_argp.parser(key, arg, state);
	}
}

static const struct argp annotate_argp = { own, parse };
static const struct argp_child children[] = { { &annotate_argp }, { &rt_debuginfod_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_annotate_argp = { NULL, rt_parse_operands, "[-i FILE] [FUNCTION]",
				       "Shows the hottest function, or FUNCTION, instruction by instruction with its "
				       "source lines: ELF code, and BPF programs also after they were unloaded.",
				       children };

struct taker {
	struct rt_recording_sink sink;
	struct rt_pipeline *pipeline;
	struct rt_samples samples;
	bool big_endian;
};

static struct rt_error *take_perf(struct rt_recording_sink *self, const struct rt_perf_event *events,
				  const struct rt_perf_record *record)
{
	struct taker *t = (struct taker *)(void *)self;
	struct rt_perf_record at_call;
	struct rt_wire_event event;

	/* what has no place in the code (the recording's own notes) has nothing to show */
	if (record->type == RT_PERF_SAMPLE && !record->sample.ip)
		return NULL;
	if (record->type != RT_PERF_SAMPLE || !events[record->event].name ||
	    rt_reftrace_name(events[record->event].name, NULL, NULL, NULL) != RT_REFTRACE_OP ||
	    !rt_reftrace_op_read(record, t->big_endian, &event, NULL) || event.flags & RT_EV_INLINE)
		return rt_samples_record(&t->samples, events, record);
	/* a get or put is where it was called, not where it returned to */
	at_call = *record;
	at_call.sample.ip--;
	return rt_samples_record(&t->samples, events, &at_call);
}

/* "mix_hash" is also what the kernel calls bpf_prog_0123456789abcdef_mix_hash. */
static bool is_named(const struct rt_profile_symbol *s, const char *name)
{
	static const char prefix[] = "bpf_prog_";

	if (!s->function)
		return false;
	if (!strcmp(s->function, name))
		return true;
	return !strncmp(s->function, prefix, sizeof(prefix) - 1) && strlen(s->function) > sizeof(prefix) + 16 &&
	       s->function[sizeof(prefix) + 15] == '_' && !strcmp(s->function + sizeof(prefix) + 16, name);
}

/* The function of a BPF program that a kernel's symbol is; NULL: it is another, or its code was not kept. */
static const struct rt_bpf_function *
bpf_function(struct rt_recording *recording, const struct rt_profile_symbol *symbol, const struct rt_bpf_image **ret)
{
	const struct rt_bpf_function *found = NULL;
	size_t count;
	const struct rt_bpf_image *const *images = rt_recording_bpf(recording, &count);

	for (size_t i = 0; i < count; i++) {
		const struct rt_bpf_function *f = rt_bpf_function_find(images[i], symbol->function);

		if (!f || (found && f->address != symbol->entry))
			continue;
		found = f;
		*ret = images[i];
	}
	return found;
}

/*
 * The hottest function, or the hottest of this name, over all events. *ret_unnamed: samples in no function.
 * *ret_passed: where none was named, the hottest whose code is nowhere, if no other is as hot: most of the kernel's.
 */
static const struct rt_profile_row *choose(struct rt_recording *recording, const struct rt_profile_part *parts,
					   size_t count, const char *name, uint64_t *ret_unnamed,
					   const struct rt_profile_row **ret_passed)
{
	const struct rt_profile_row *best = NULL, *passed = NULL;
	const struct rt_bpf_image *image;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < parts[i].table->row_count; k++) {
			const struct rt_profile_row *row = &parts[i].table->rows[k];

			*ret_unnamed += row->symbol.function ? 0 : row->samples;
			if (!row->samples || !(name ? is_named(&row->symbol, name) : row->symbol.function != NULL))
				continue;
			if (!name && row->symbol.kernel && !bpf_function(recording, &row->symbol, &image))
				passed = passed && passed->samples >= row->samples ? passed : row;
			else if (!best || row->samples > best->samples)
				best = row;
		}
	}
	*ret_passed = best && passed && passed->samples > best->samples ? passed : NULL;
	return best ?: passed;
}

struct hits {
	RT_VEC(struct rt_annotate_hit) all;
	const char *names[RT_ANNOTATE_EVENTS];
	uint64_t totals[RT_ANNOTATE_EVENTS];
	struct rt_annotate_hits out;
};

static struct rt_error *collect(struct rt_samples *samples, const struct rt_profile_symbol *symbol, struct hits *ret)
{
	for (size_t e = 0; e < samples->events.len && ret->out.event_count < RT_ANNOTATE_EVENTS; e++) {
		const struct rt_profile_hit *hit;
		size_t count;

		if (!samples->events.data[e].samples)
			continue;
		RT_TRY(rt_profile_hits(samples->profile, (unsigned)e, symbol, &hit, &count));
		if (!count)
			continue;
		for (size_t i = 0; i < count; i++) {
			struct rt_annotate_hit h = { hit[i].address, hit[i].samples, (uint32_t)ret->out.event_count };

			if (!rt_vec_push(&ret->all, h))
				return rt_error_nomem();
		}
		ret->names[ret->out.event_count] = samples->events.data[e].name;
		ret->totals[ret->out.event_count++] = samples->events.data[e].samples;
	}
	ret->out.events = ret->names;
	ret->out.totals = ret->totals;
	ret->out.hits = ret->all.data;
	ret->out.count = ret->all.len;
	return NULL;
}

static struct rt_error *annotate_elf(struct rt_pipeline *pipeline, const struct rt_profile_symbol *symbol,
				     const struct hits *hits, struct rt_annotation **ret)
{
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	struct rt_annotate_elf what = { .image = rt_chain_image(pipeline->chain, symbol->module_id, &what.path),
					.namer = pipeline->namer,
					.module = symbol->module_id,
					.address = { symbol->address } };

	if (what.image) {
		RT_TRY(rt_symtab_create(what.image, &symtab));
		RT_TRY(rt_dwarf_create(what.image, &dwarf));
		what.symtab = symtab;
		what.dwarf = rt_dwarf_present(dwarf) ? dwarf : NULL;
	}
	return rt_annotate_elf(&what, &hits->out, ret);
}

static uint16_t machine_of(const struct rt_recording *recording)
{
	const char *arch = rt_recording_info(recording).header->arch;

	return arch && (!strcmp(arch, "aarch64") || !strcmp(arch, "arm64")) ? RT_MACHINE_AARCH64 : RT_MACHINE_X86_64;
}

static struct rt_error *annotate_kernel(struct rt_recording *recording, struct rt_namer *namer,
					const struct rt_profile_symbol *symbol, const struct rt_options *options,
					struct hits *hits, struct rt_annotation **ret)
{
	struct rt_annotate_bpf what = { .machine = machine_of(recording),
					.xlated = options->annotate.xlated,
					.namer = namer };
	const struct rt_bpf_function *found = bpf_function(recording, symbol, &what.image);

	if (!found)
		return rt_annotate_no_code(symbol->function);
	/* another load of the same program lies elsewhere, and is the same code */
	for (size_t i = 0; i < hits->all.len; i++)
		hits->all.data[i].address += found->address - symbol->entry;
	what.address = found->address;
	what.function = found->symbol;
	return rt_annotate_bpf(&what, &hits->out, ret);
}

static struct rt_error *show(const struct rt_options *options, const struct rt_annotation *annotation)
{
	struct rt_output output;
	struct rt_annotate_options how = { .bytes = options->annotate.bytes,
					   .no_source = options->annotate.no_source,
					   .hide_cold = !options->annotate.all };
	struct rt_error *err;
	struct rt_sink sink;
	int fd;

	RT_TRY(rt_output_open(options, STDOUT_FILENO, &output));
	fd = output.file_fd >= 0 ? output.file_fd : output.fd;
	how.width = rt_output_width(fd);
	how.color = rt_output_color(options->color, fd);
	rt_sink_init_fd(&sink, fd, options->output ?: "standard output");
	err = rt_annotate_text(annotation, &how, &sink);
	if (!err)
		err = rt_sink_end(&sink);
	rt_sink_deinit(&sink);
	rt_output_close(&output);
	return err;
}

/* Why samples have no function, and what helps; NULL: that is not known. */
static const char *why_unnamed(const struct rt_pipeline *pipeline, const struct rt_profile_part *parts, size_t count,
			       struct rt_arena *arena, const char **ret_fix)
{
	const char *const *notes;
	size_t note_count = rt_chain_notes(pipeline->chain, &notes);
	struct rt_profile_stripped stripped;

	*ret_fix = RT_NAMES_FIX;
	if (note_count)
		return rt_clean(arena, notes[0]);
	stripped = rt_profile_stripped(parts, count, NULL, 0);
	if (!stripped.module)
		return NULL;
	*ret_fix = RT_SYMBOLS_FIX;
	return rt_format(arena, "%llu in %s: it has no symbols there", (unsigned long long)stripped.samples,
			 rt_basename(rt_clean(arena, stripped.module)));
}

/* What is hottest may well be among them. */
static void say_unnamed(uint64_t samples, const char *why, const char *fix)
{
	fprintf(stderr, "reftrace: %llu sample%s, more than in any function, are where no function is known%s%s\n",
		(unsigned long long)samples, rt_plural(samples), why ? ": " : "", why ?: "");
	if (why)
		fprintf(stderr, "  fix: %s\n", fix);
}

/* No sample is in a function of that name (NULL: of any). */
static struct rt_error *none(const struct rt_input *input, const char *name, uint64_t unnamed, const char *why,
			     const char *fix)
{
	if (why)
		return rt_error_fix(rt_error_new(RT_E_NO_FUNCTION,
						 "no sample of %s is in a function called %s, but for %llu where no "
						 "function is known: %s",
						 input->path, name ?: "anything", (unsigned long long)unnamed, why),
				    "%s", fix);
	return rt_error_fix(rt_error_new(RT_E_NO_FUNCTION, "no sample of %s is in a function called %s", input->path,
					 name ?: "anything"),
			    "which functions have samples: reftrace report --samples -v -i %s", input->path);
}

static struct rt_error *pick(const struct rt_options *options, const struct rt_input *input,
			     const struct rt_pipeline *pipeline, struct rt_samples *samples,
			     const struct rt_profile_symbol **ret)
{
	const char *name = options->operands.len ? options->operands.data[0] : NULL, *why = NULL, *fix = NULL;
	_cleanup_free_ struct rt_profile_part *parts = NULL;
	struct rt_arena arena = { 0 };
	struct rt_error *err = NULL;
	const struct rt_profile_row *row, *passed;
	uint64_t unnamed = 0;
	size_t count;

	if (!samples->samples)
		return rt_error_fix(rt_error_new(RT_E_NO_EVENT, "%s holds no sample", input->path),
				    "record some: reftrace record -F 999 -- PROG ARGS");
	RT_TRY(rt_samples_parts(samples, &parts, &count));
	row = choose(input->recording, parts, count, name, &unnamed, &passed);
	if (unnamed)
		why = why_unnamed(pipeline, parts, count, &arena, &fix);
	if (row && !name && row->samples < unnamed)
		say_unnamed(unnamed, why, fix);
	if (passed)
		fprintf(stderr, "reftrace: %llu samples, more than in the function shown, are in the kernel's %s\n",
			(unsigned long long)passed->samples, rt_clean(&arena, passed->symbol.function));
	*ret = row ? &row->symbol : NULL;
	if (!row)
		err = none(input, name, unnamed, why, fix);
	rt_arena_deinit(&arena);
	return err;
}

static struct rt_error *annotate(const struct rt_options *options, struct rt_input *input, struct taker *t, int *ret)
{
	const struct rt_pipeline_options how = { .symfs = options->symfs, .fetch = options, .input = input->path };
	_cleanup_(rt_annotation_destroyp) struct rt_annotation *annotation = NULL;
	const struct rt_profile_symbol *symbol = NULL;
	struct hits hits = { 0 };
	struct rt_error *err;

	RT_TRY(rt_pipeline_init(t->pipeline, &how));
	RT_TRY(rt_input_code(input, t->pipeline));
	t->big_endian = rt_recording_info(input->recording).header->big_endian;
	RT_TRY(rt_samples_init(t->pipeline->namer, &t->samples));
	RT_TRY(rt_recording_drain(input->recording, &t->sink));
	RT_TRY(pick(options, input, t->pipeline, &t->samples, &symbol));
	err = collect(&t->samples, symbol, &hits);
	if (!err)
		err = symbol->kernel ? annotate_kernel(input->recording, t->pipeline->namer, symbol, options, &hits,
						       &annotation)
				     : annotate_elf(t->pipeline, symbol, &hits, &annotation);
	rt_vec_deinit(&hits.all);
	if (!err)
		err = show(options, annotation);
	if (rt_recording_damage(input->recording)) {
		fprintf(stderr, "reftrace: %s %s: %s; counted is what came before\n", rt_code_text(RT_E_TRUNCATED),
			input->path, rt_recording_damage(input->recording));
		*ret = RT_EXIT_TRUST;
	}
	return err;
}

int cmd_annotate(int argc, char **argv)
{
	struct rt_pipeline pipeline = { .fd = -1 };
	struct taker t = { .sink = { .side = &pipeline.names, .perf = take_perf, .all = true }, .pipeline = &pipeline };
	struct rt_input input = { 0 };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_annotate_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help) {
		rt_options_help(&rt_annotate_argp, "annotate", stdout);
	} else {
		if (!err && options.operands.len > 1)
			err = rt_error_fix(rt_error_new(RT_E_USAGE, "annotate: one function at a time"),
					   "reftrace annotate [-i FILE] [FUNCTION]");
		if (!err)
			err = rt_input_open(options.input, &input);
		if (!err && input.text)
			err = rt_error_new(RT_E_FORMAT, "%s is a text of events: it names no instructions", input.path);
		if (!err)
			err = annotate(&options, &input, &t, &status);
		if (err)
			status = rt_failure(err);
	}
	rt_samples_deinit(&t.samples);
	rt_pipeline_deinit(&pipeline);
	rt_input_close(&input);
	rt_options_deinit(&options);
	return status;
}
