/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of a program. The kernel lays their JITed code end to end, so a
 * function's code begins behind the lengths of those before it. Names come
 * from func_info and BTF, symbols are spelt as the kernel's bpf_get_prog_name()
 * does: the program's own tag for the main function, a function's own tag else.
 */
#include "bpfimage/parts.h"

enum { CALL = BPF_JMP | BPF_CALL, INSN_BYTES = 8 };

bool rt_bpf_call_read(const struct rt_bpf_image *image, size_t index, struct rt_bpf_call *ret)
{
	struct rt_cursor c = rt_cursor_make(image->xlated, image->big_endian);
	uint8_t registers;
	uint16_t offset;
	uint32_t imm;

	if (index >= image->xlated.size / INSN_BYTES || !rt_cursor_skip(&c, index * INSN_BYTES) ||
	    !rt_cursor_u8(&c, &ret->code) || !rt_cursor_u8(&c, &registers) || !rt_cursor_u16(&c, &offset) ||
	    !rt_cursor_u32(&c, &imm))
		return false;
	ret->source = image->big_endian ? registers & 15 : registers >> 4;
	ret->offset = (int16_t)offset;
	ret->imm = (int32_t)imm;
	return true;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t total_insns(const struct rt_bpf_image *image)
{
	return image->info.xlated_prog_len / INSN_BYTES;
}

static struct rt_error *place_code(struct rt_bpf_image *image, const struct rt_bpf_array *parts)
{
	unsigned long long at = 0;
	struct rt_cursor c;

	for (uint32_t i = 0; i < image->function_count; i++) {
		struct rt_bpf_function *f = &image->functions[i];
		uint32_t len;

		if (rt_bpf_array_at(&parts[RT_BPF_JITED_KSYMS], i, image->big_endian, &c))
			(void)rt_cursor_u64(&c, &f->address);
		if (!rt_bpf_array_at(&parts[RT_BPF_JITED_FUNC_LENS], i, image->big_endian, &c) ||
		    !rt_cursor_u32(&c, &len))
			continue;
		f->size = len;
		if (image->jit.size && !rt_bytes_sub(image->jit, at, len, &f->jit))
			return rt_error_new(RT_E_FORMAT,
					    "bpf program %u: function %u ends %llu bytes into code of %zu bytes",
					    image->info.id, i, at + len, image->jit.size);
		at += len;
	}
	if (image->function_count == 1 && !parts[RT_BPF_JITED_FUNC_LENS].count) {
		image->functions[0].jit = image->jit;
		image->functions[0].size = image->jit.size;
	}
	return NULL;
}

/* Without func_info: the kernel leaves the number of the called function and its distance in each call. */
static void starts_by_calls(struct rt_bpf_image *image, bool *known)
{
	struct rt_bpf_call call;

	for (uint32_t i = 0; rt_bpf_call_read(image, i, &call); i++) {
		int64_t to = (int64_t)i + 1 + call.offset;

		if (call.code != CALL || call.source != BPF_PSEUDO_CALL || call.imm <= 0 ||
		    (uint32_t)call.imm >= image->function_count || to < 0 || to >= total_insns(image))
			continue;
		image->functions[call.imm].insn = (uint32_t)to;
		known[call.imm] = true;
	}
}

static struct rt_error *place_insns(struct rt_bpf_image *image, const struct rt_bpf_array *parts)
{
	_cleanup_free_ bool *known = calloc(image->function_count, sizeof(*known));
	struct rt_cursor c;

	if (!known)
		return rt_error_nomem();
	known[0] = true;
	for (uint32_t i = 0; i < image->function_count; i++) {
		if (rt_bpf_array_at(&parts[RT_BPF_FUNC_INFO], i, image->big_endian, &c) &&
		    rt_cursor_u32(&c, &image->functions[i].insn))
			known[i] = true;
	}
	if (!parts[RT_BPF_FUNC_INFO].count && image->function_count > 1)
		starts_by_calls(image, known);
	for (uint32_t i = 0; i < image->function_count; i++) {
		uint32_t start = image->functions[i].insn, end = total_insns(image);

		if (i + 1 < image->function_count)
			end = known[i + 1] ? image->functions[i + 1].insn : start;
		if (known[i] && end > start && end <= total_insns(image))
			image->functions[i].insns = end - start;
	}
	return NULL;
}

/* Foreign names in a symbol: as they are. The arena's copy ends where the kernel's does. */
static const char *make_symbol(struct rt_bpf_image *image, const uint8_t *tag, const char *name)
{
	struct rt_bpf_storage *storage = image->storage;
	char text[RT_BPF_SYMBOL_BYTES];
	int n = snprintf(text, sizeof(text), "bpf_prog_%02x%02x%02x%02x%02x%02x%02x%02x%s%s", tag[0], tag[1], tag[2],
			 tag[3], tag[4], tag[5], tag[6], tag[7], *name ? "_" : "", name);

	return rt_arena_strndup(&storage->arena, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static struct rt_error *name_function(struct rt_bpf_image *image, const struct rt_bpf_array *parts, uint32_t i)
{
	struct rt_bpf_storage *storage = image->storage;
	struct rt_bpf_function *f = &image->functions[i];
	const char *in_symbol;
	struct rt_bytes tag;
	struct rt_cursor c;
	uint32_t insn, type = 0;

	memcpy(f->tag, image->info.tag, sizeof(f->tag));
	if (rt_bpf_array_at(&parts[RT_BPF_PROG_TAGS], i, image->big_endian, &c) &&
	    rt_cursor_bytes(&c, sizeof(f->tag), &tag))
		memcpy(f->tag, tag.data, sizeof(f->tag));
	if (rt_bpf_array_at(&parts[RT_BPF_FUNC_INFO], i, image->big_endian, &c) && rt_cursor_u32(&c, &insn))
		(void)rt_cursor_u32(&c, &type);
	f->name = storage->btf ? rt_btf_function(storage->btf, type) : NULL;
	/* nameless functions of a program are called F by the kernel */
	in_symbol = f->name ?: i ? "F" : image->info.name;
	if (!f->name)
		f->name = i ? "" : image->info.name;
	f->symbol = make_symbol(image, i ? f->tag : image->info.tag, in_symbol);
	return f->symbol ? NULL : rt_error_nomem();
}

struct rt_error *rt_bpf_functions_make(struct rt_bpf_image *image, const struct rt_bpf_array *parts)
{
	uint32_t count = 1;

	count = max_u32(count, parts[RT_BPF_JITED_KSYMS].count);
	count = max_u32(count, parts[RT_BPF_JITED_FUNC_LENS].count);
	count = max_u32(count, parts[RT_BPF_FUNC_INFO].count);
	count = max_u32(count, parts[RT_BPF_PROG_TAGS].count);
	if (count > RT_BPF_FUNCTIONS_MAX)
		return rt_error_new(RT_E_LIMIT, "bpf program %u says %u functions", image->info.id, count);
	image->functions = calloc(count, sizeof(*image->functions));
	if (!image->functions)
		return rt_error_nomem();
	image->function_count = count;
	RT_TRY(place_code(image, parts));
	RT_TRY(place_insns(image, parts));
	for (uint32_t i = 0; i < count; i++)
		RT_TRY(name_function(image, parts, i));
	return NULL;
}

static const char *line_text(const struct rt_bpf_image *image, uint32_t offset)
{
	const struct rt_btf *btf = rt_bpf_image_btf(image);

	return (btf ? rt_btf_string(btf, offset) : NULL) ?: "";
}

static int compare_lines(const void *a, const void *b)
{
	const struct rt_bpf_line *x = a, *y = b;

	if (x->insn != y->insn)
		return x->insn < y->insn ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

struct rt_error *rt_bpf_lines_make(struct rt_bpf_image *image, const struct rt_bpf_array *parts)
{
	const struct rt_bpf_array *lines = &parts[RT_BPF_LINE_INFO], *jited = &parts[RT_BPF_JITED_LINE_INFO];
	bool sorted = true;

	if (!lines->count)
		return NULL;
	image->lines = calloc(lines->count, sizeof(*image->lines));
	if (!image->lines)
		return rt_error_nomem();
	for (uint32_t i = 0; i < lines->count; i++) {
		struct rt_bpf_line *l = &image->lines[i];
		uint32_t file = 0, text = 0, place = 0;
		struct rt_cursor c;

		if (rt_bpf_array_at(lines, i, image->big_endian, &c))
			(void)(rt_cursor_u32(&c, &l->insn) && rt_cursor_u32(&c, &file) && rt_cursor_u32(&c, &text) &&
			       rt_cursor_u32(&c, &place));
		l->file = line_text(image, file);
		l->text = line_text(image, text);
		l->line = place >> 10;
		l->column = place & 0x3ff;
		if (rt_bpf_array_at(jited, i, image->big_endian, &c))
			(void)rt_cursor_u64(&c, &l->address);
		sorted = sorted && (!i || l[-1].insn <= l->insn);
	}
	image->line_count = lines->count;
	if (!sorted)
		qsort(image->lines, image->line_count, sizeof(*image->lines), compare_lines);
	return NULL;
}
