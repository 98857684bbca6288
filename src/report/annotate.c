/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/annotate_build.h"

#include <string.h>

struct rt_error *rt_annotation_begin(const struct rt_annotate_hits *hits, struct rt_annotation **ret)
{
	_cleanup_(rt_annotation_destroyp) struct rt_annotation *a = NULL;
	struct rt_annotation_storage *s;

	if (!hits->event_count || hits->event_count > RT_ANNOTATE_EVENTS)
		return rt_error_new(RT_E_USAGE, "cannot annotate %zu events at once, only 1 to %d", hits->event_count,
				    RT_ANNOTATE_EVENTS);
	a = calloc(1, sizeof(*a));
	if (!a)
		return rt_error_nomem();
	a->storage = s = calloc(1, sizeof(*s));
	a->totals = calloc(hits->event_count, sizeof(*a->totals));
	a->hits = calloc(hits->event_count, sizeof(*a->hits));
	if (!s || !a->totals || !a->hits)
		return rt_error_nomem();
	s->events = calloc(hits->event_count, sizeof(*s->events));
	if (!s->events)
		return rt_error_nomem();
	for (size_t i = 0; i < hits->event_count; i++) {
		s->events[i] = rt_annotation_keep(a, hits->events[i]);
		a->totals[i] = hits->totals ? hits->totals[i] : 0;
	}
	for (size_t i = 0; i < hits->count && !hits->totals; i++) {
		if (hits->hits[i].event < hits->event_count)
			a->totals[hits->hits[i].event] += hits->hits[i].count;
	}
	a->events = s->events;
	a->event_count = hits->event_count;
	*ret = rt_take(a);
	return NULL;
}

void rt_annotation_destroy(struct rt_annotation *a)
{
	struct rt_annotation_storage *s;

	if (!a)
		return;
	s = a->storage;
	if (s) {
		rt_vec_deinit(&s->lines);
		rt_vec_deinit(&s->targets);
		rt_intern_deinit(&s->strings);
		free(s->events);
	}
	free(s);
	free(a->totals);
	free(a->hits);
	free(a);
}

const char *rt_annotation_keep(struct rt_annotation *a, const char *text)
{
	struct rt_annotation_storage *s = a->storage;

	return text ? rt_intern_text(&s->strings, rt_intern_string(&s->strings, text)) : NULL;
}

void rt_annotation_note(struct rt_annotation *a, const char *note)
{
	if (!a->note)
		a->note = rt_annotation_keep(a, note);
}

struct rt_annotation_line *rt_annotation_add(struct rt_annotation *a, uint64_t address, struct rt_bytes bytes,
					     const char *text, uint64_t target)
{
	struct rt_annotation_storage *s = a->storage;
	uint64_t *hits = rt_arena_alloc(&s->strings.arena, a->event_count * sizeof(*hits));
	uint8_t *copy = rt_arena_alloc(&s->strings.arena, bytes.size + !bytes.size);
	struct rt_annotation_line *line;

	if (!hits || !copy || !rt_vec_push(&s->targets, target))
		return NULL;
	line = rt_vec_add(&s->lines);
	if (!line)
		return NULL;
	if (bytes.size)
		memcpy(copy, bytes.data, bytes.size);
	line->address = address;
	line->bytes = rt_bytes_make(copy, bytes.size);
	line->text = rt_annotation_keep(a, text);
	line->target = RT_NO_LINE;
	line->hits = hits;
	a->lines = s->lines.data;
	a->line_count = s->lines.len;
	return line;
}

/* Bytes of text before the address of a branch: "jne 0x10", "cbz x0, #0x10". 0: there is no address at its end. */
static size_t stem_of(const char *text)
{
	const char *last = strrchr(text, ' ');

	if (!last || strncmp(last + 1 + (last[1] == '#'), "0x", 2) != 0)
		return 0;
	return (size_t)(last + 1 - text);
}

struct rt_error *rt_annotation_machine_code(struct rt_annotation *a, uint16_t machine, struct rt_bytes code,
					    uint64_t address)
{
	_cleanup_(rt_decoder_destroyp) struct rt_decoder *decoder = NULL;
	size_t length;
	char text[192];

	RT_TRY(rt_error_wrap(rt_decoder_create(machine, &decoder), "cannot annotate %s", a->function));
	if (code.size > RT_ANNOTATE_CODE_MAX) {
		code.size = RT_ANNOTATE_CODE_MAX;
		rt_annotation_note(a, "only the first MiB of the function is shown");
	}
	for (size_t pos = 0; pos < code.size; pos += length) {
		struct rt_bytes rest = rt_bytes_make(code.data + pos, code.size - pos);
		struct rt_elfaddr at = { address + pos };
		struct rt_annotation_line *line;
		struct rt_insn insn;
		bool branch;

		RT_TRY(rt_disassemble(decoder, rest, at, text, sizeof(text), &length));
		branch = rt_decode(decoder, rest, at, &insn) && insn.has_target && (insn.call || insn.jump);
		line = rt_annotation_add(a, at.v, rt_bytes_make(rest.data, length), text,
					 branch ? insn.target.v : RT_NO_TARGET);
		if (!line)
			return rt_error_nomem();
		if (branch)
			line->stem = stem_of(text);
	}
	return NULL;
}

size_t rt_annotation_at(const struct rt_annotation *a, uint64_t address)
{
	size_t low = 0, high = a->line_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a->lines[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || (!a->xlated && address - a->lines[low - 1].address >= a->lines[low - 1].bytes.size))
		return RT_NO_LINE;
	return low - 1;
}

uint64_t rt_annotation_target(const struct rt_annotation *a, size_t index)
{
	const struct rt_annotation_storage *s = a->storage;

	return s->targets.data[index];
}

void rt_annotation_end(struct rt_annotation *a)
{
	uint32_t labels = 0;

	for (size_t i = 0; i < a->line_count; i++) {
		uint64_t to = rt_annotation_target(a, i);
		size_t target = to == RT_NO_TARGET || a->lines[i].target_name ? RT_NO_LINE : rt_annotation_at(a, to);

		if (target == RT_NO_LINE || a->lines[target].address != to)
			continue;
		a->lines[i].target = target;
		a->lines[target].label = 1;
	}
	/* numbered from top to bottom */
	for (size_t i = 0; i < a->line_count; i++) {
		if (a->lines[i].label)
			a->lines[i].label = ++labels;
	}
}

void rt_annotation_hit(struct rt_annotation *a, size_t line, const struct rt_annotate_hit *hit)
{
	if (line >= a->line_count || hit->event >= a->event_count)
		return;
	a->lines[line].hits[hit->event] += hit->count;
	a->hits[hit->event] += hit->count;
}

struct rt_error *rt_annotate_no_code(const char *symbol)
{
	static const struct {
		const char *prefix, *what, *fix;
	} kinds[] = {
		{ "bpf_trampoline_",
		  "this jump into BPF programs is made by the kernel, and its code is not kept by it",
		  "annotate the BPF programs that it calls: they are in the callers' list as bpf_prog_..." },
		{ "bpf_dispatcher_",
		  "this choice between BPF programs is made by the kernel, and its code is not kept by it",
		  "annotate the BPF programs that it calls: they are in the callers' list as bpf_prog_..." },
		{ "bpf_prog_", "the recording has nothing about this BPF program",
		  "record as root, and while the program is loaded" },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strncmp(symbol, kinds[i].prefix, strlen(kinds[i].prefix)))
			return rt_error_fix(
				rt_error_new(RT_E_NOT_FOUND, "cannot annotate %s: %s", symbol, kinds[i].what), "%s",
				kinds[i].fix);
	}
	return rt_error_fix(rt_error_new(RT_E_NOT_FOUND,
					 "cannot annotate %s: it lies in no file, and its code was not kept", symbol),
			    "annotate functions of programs and libraries, and BPF programs");
}
