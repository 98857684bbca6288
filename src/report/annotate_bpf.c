/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A function of a BPF program: its own part of the JITed code, or its eBPF
 * instructions. The kernel tells the JITed address of each source line only, so
 * that in the second view a hit is placed at the first instruction of its line.
 */
#include <string.h>

#include "bpfimage/bpfimage.h"
#include "insn/bpf.h"
#include "report/annotate_build.h"

enum { LISTED = 8 };

static struct rt_error *no_function(const struct rt_annotate_bpf *what)
{
	const struct rt_bpf_image *image = what->image;
	struct rt_error *err;
	char list[512] = "";
	size_t len = 0;

	if (what->function)
		err = rt_error_new(RT_E_NO_FUNCTION, "bpf program %u (%s) has no function %s", image->info.id,
				   image->info.name, what->function);
	else
		err = rt_error_new(RT_E_NO_FUNCTION, "no function of bpf program %u (%s) covers %#llx", image->info.id,
				   image->info.name, (unsigned long long)what->address);
	for (size_t i = 0; i < image->function_count && i < LISTED; i++) {
		const struct rt_bpf_function *f = &image->functions[i];
		int n = snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", *f->name ? f->name : f->symbol);

		if (n < 0 || (size_t)n >= sizeof(list) - len)
			break;
		len += (size_t)n;
	}
	return rt_error_fix(err, "it has: %.*s", (int)len, list);
}

static struct rt_error *not_kept(const struct rt_bpf_image *image, const char *what, bool other)
{
	struct rt_error *err =
		rt_error_new(RT_E_NOT_FOUND, "cannot annotate bpf program %u (%s): its %s not kept%s%s", image->info.id,
			     image->info.name, what, image->lost ? ": " : "", image->lost ?: "");

	if (other)
		return rt_error_fix(
			err, "the other view can be shown: machine code and eBPF instructions are kept separately");
	return rt_error_fix(err, "record as root; the kernel shows no code when sysctl kernel.kptr_restrict is 2");
}

static void source_of(struct rt_annotation *a, struct rt_annotation_line *line, const struct rt_bpf_line *place)
{
	if (!place || (!place->line && !*place->text))
		return;
	line->file = *place->file ? rt_annotation_keep(a, place->file) : NULL;
	line->line = place->line;
	line->column = place->column;
	line->source = *place->text ? rt_annotation_keep(a, place->text) : NULL;
}

/* The kernel function that begins there; NULL: its name is not known. */
static const char *kernel_function(const struct rt_annotate_bpf *what, uint64_t address)
{
	const char *name = rt_bpf_symbol_at(what->image, address);
	struct rt_frame frame;

	if (name || !what->namer || !(address >> 63))
		return name;
	if (!what->namer->name(what->namer, 0, UINT64_MAX - 1, address, false, &frame, 1) || frame.entry != address)
		return NULL;
	return frame.function;
}

/* false: it goes to the kernel, and the name is not known. */
static bool name_target(const struct rt_annotate_bpf *what, struct rt_annotation *a, size_t index,
			const struct rt_bpf_function *own)
{
	uint64_t to = rt_annotation_target(a, index);
	const struct rt_bpf_function *f;
	const char *name;

	if (to == RT_NO_TARGET || (to > own->address && to - own->address < own->jit.size))
		return true;
	f = rt_bpf_function_at(what->image, to);
	name = f ? (*f->name ? f->name : f->symbol) : kernel_function(what, to);
	a->lines[index].target_name = rt_annotation_keep(a, name);
	return name != NULL;
}

static struct rt_error *machine_code(const struct rt_annotate_bpf *what, const struct rt_bpf_function *f,
				     const struct rt_annotate_hits *hits, struct rt_annotation *a)
{
	bool named = true;

	if (!f->jit.size)
		return not_kept(what->image, "machine code was", what->image->xlated.size);
	a->base = f->address;
	RT_TRY(rt_annotation_machine_code(a, what->machine, f->jit, f->address));
	for (size_t i = 0; i < a->line_count; i++) {
		source_of(a, &a->lines[i], rt_bpf_line_at(what->image, a->lines[i].address));
		named &= name_target(what, a, i, f);
	}
	if (!named)
		rt_annotation_note(
			a, "kernel functions that it calls have no names: /proc/kallsyms could not be read when it "
			   "was recorded (sysctl kernel.kptr_restrict)");
	for (size_t i = 0; i < hits->count; i++)
		rt_annotation_hit(a, rt_annotation_at(a, hits->hits[i].address), &hits->hits[i]);
	return NULL;
}

static const char *name_map(void *arg, uint32_t id)
{
	return rt_bpf_map_name(((const struct rt_annotate_bpf *)arg)->image, id);
}

static const char *name_helper(void *arg, int32_t imm)
{
	const struct rt_annotate_bpf *what = arg;
	uint64_t base = what->image->call_base;

	return base ? kernel_function(what, base + (uint64_t)(int64_t)imm) : NULL;
}

static const char *name_subcall(void *arg, int32_t number, int64_t position)
{
	const struct rt_bpf_image *image = ((const struct rt_annotate_bpf *)arg)->image;
	const struct rt_bpf_function *f = NULL;

	/* the position's 16 bits may have wrapped in a large program: the number is sure */
	if (image->function_count > 1 && number > 0 && (size_t)number < image->function_count)
		f = &image->functions[number];
	else if (position >= 0 && position <= UINT32_MAX)
		f = rt_bpf_function_of_insn(image, (uint32_t)position);
	return f && *f->name ? f->name : NULL;
}

/* Where the hits of a JITed address are shown. */
static uint64_t insn_of(const struct rt_bpf_image *image, const struct rt_bpf_function *f, uint64_t address)
{
	const struct rt_bpf_line *line = rt_bpf_line_at(image, address);

	return line && line->insn >= f->insn ? line->insn : f->insn;
}

static struct rt_error *xlated_code(const struct rt_annotate_bpf *what, const struct rt_bpf_function *f,
				    const struct rt_annotate_hits *hits, struct rt_annotation *a)
{
	const struct rt_bpf_image *image = what->image;
	struct rt_bpf_naming naming = { NULL, name_map, name_helper, name_subcall };
	struct rt_bpf_insn insn;
	char text[256];

	/* the callbacks only look */
	memcpy(&naming.arg, &what, sizeof(what));
	a->xlated = true;
	if (!image->xlated.size || !f->insns)
		return not_kept(image, "eBPF instructions were", f->jit.size);
	for (uint32_t i = 0; i < f->insns; i += insn.wide ? 2 : 1) {
		uint32_t at = f->insn + i;
		struct rt_annotation_line *line;
		struct rt_bytes bytes;
		int64_t target;
		bool jumps;

		if (!rt_bpf_decode(image->xlated, image->big_endian, at, &insn) ||
		    !rt_bytes_sub(image->xlated, (uint64_t)at * RT_BPF_INSN_BYTES,
				  RT_BPF_INSN_BYTES * (insn.wide ? 2 : 1), &bytes))
			break;
		rt_bpf_text(&insn, at, &naming, text, sizeof(text));
		jumps = rt_bpf_target(&insn, at, &target) && target >= 0 && !rt_bpf_is_subcall(&insn);
		line = rt_annotation_add(a, at, bytes, text, jumps ? (uint64_t)target : RT_NO_TARGET);
		if (!line)
			return rt_error_nomem();
		source_of(a, line, rt_bpf_line_of_insn(image, at));
	}
	for (size_t i = 0; i < hits->count; i++) {
		uint64_t address = hits->hits[i].address;

		if (rt_bpf_function_at(image, address) == f)
			rt_annotation_hit(a, rt_annotation_at(a, insn_of(image, f, address)), &hits->hits[i]);
	}
	rt_annotation_note(a, "hits are shown at the first instruction of their source line: the kernel tells no more");
	return NULL;
}

struct rt_error *rt_annotate_bpf(const struct rt_annotate_bpf *what, const struct rt_annotate_hits *hits,
				 struct rt_annotation **ret)
{
	_cleanup_(rt_annotation_destroyp) struct rt_annotation *a = NULL;
	const struct rt_bpf_image *image = what->image;
	const struct rt_bpf_function *f =
		what->function ? rt_bpf_function_find(image, what->function) : rt_bpf_function_at(image, what->address);
	char module[64];

	if (!f)
		return no_function(what);
	RT_TRY(rt_annotation_begin(hits, &a));
	snprintf(module, sizeof(module), "bpf program %u (%.16s)", image->info.id, image->info.name);
	a->function = rt_annotation_keep(a, *f->name ? f->name : f->symbol);
	a->module = rt_annotation_keep(a, module);
	RT_TRY(what->xlated ? xlated_code(what, f, hits, a) : machine_code(what, f, hits, a));
	if (!image->line_count)
		rt_annotation_note(a, "the program was loaded without BTF: no source lines");
	rt_annotation_end(a);
	*ret = rt_take(a);
	return NULL;
}
