/* SPDX-License-Identifier: GPL-2.0-only */
/* From addresses, instructions and names to functions and lines. */
#include "bpfimage/parts.h"

const struct rt_bpf_function *rt_bpf_function_at(const struct rt_bpf_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->function_count; i++) {
		const struct rt_bpf_function *f = &image->functions[i];

		if (f->address && address >= f->address && address - f->address < f->size)
			return f;
	}
	return NULL;
}

/* perf spells the symbol of a program that was loaded before it started with the main function's own tag. */
static bool perf_calls_it(const struct rt_bpf_image *image, const struct rt_bpf_function *f, const char *name)
{
	static const char prefix[] = "bpf_prog_";
	enum { TAG_AT = sizeof(prefix) - 1, TAG_DIGITS = 16 };
	char tag[TAG_DIGITS + 1];

	if (f != image->functions || strlen(f->symbol) < TAG_AT + TAG_DIGITS || strlen(name) < TAG_AT + TAG_DIGITS)
		return false;
	for (unsigned i = 0; i < sizeof(f->tag); i++)
		snprintf(tag + 2 * i, sizeof(tag) - 2 * i, "%02x", f->tag[i]);
	return !strncmp(name, prefix, TAG_AT) && !strncmp(name + TAG_AT, tag, TAG_DIGITS) &&
	       !strcmp(name + TAG_AT + TAG_DIGITS, f->symbol + TAG_AT + TAG_DIGITS);
}

const struct rt_bpf_function *rt_bpf_function_find(const struct rt_bpf_image *image, const char *name)
{
	const struct rt_bpf_function *found = NULL;

	for (size_t i = 0; i < image->function_count; i++) {
		if (!strcmp(image->functions[i].symbol, name) || perf_calls_it(image, &image->functions[i], name))
			return &image->functions[i];
	}
	for (size_t i = 0; i < image->function_count && *name; i++) {
		if (strcmp(image->functions[i].name, name) != 0)
			continue;
		if (found)
			return NULL;
		found = &image->functions[i];
	}
	return found;
}

const struct rt_bpf_function *rt_bpf_function_of_insn(const struct rt_bpf_image *image, uint32_t insn)
{
	for (size_t i = 0; i < image->function_count; i++) {
		const struct rt_bpf_function *f = &image->functions[i];

		if (insn >= f->insn && insn - f->insn < f->insns)
			return f;
	}
	return NULL;
}

/* Index of the first line at or behind insn. */
static size_t line_index(const struct rt_bpf_image *image, uint64_t insn)
{
	size_t low = 0, high = image->line_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (image->lines[mid].insn < insn)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct rt_bpf_line *rt_bpf_line_of_insn(const struct rt_bpf_image *image, uint32_t insn)
{
	const struct rt_bpf_function *f = rt_bpf_function_of_insn(image, insn);
	size_t at = line_index(image, (uint64_t)insn + 1);

	/* a line of the function before says nothing about this one */
	if (!at || (f && image->lines[at - 1].insn < f->insn))
		return NULL;
	return &image->lines[at - 1];
}

const struct rt_bpf_line *rt_bpf_line_at(const struct rt_bpf_image *image, uint64_t address)
{
	const struct rt_bpf_function *f = rt_bpf_function_at(image, address);
	const struct rt_bpf_line *found = NULL;
	size_t from = 0, to = image->line_count;

	if (!f)
		return NULL;
	if (f->insns) {
		from = line_index(image, f->insn);
		to = line_index(image, (uint64_t)f->insn + f->insns);
	}
	for (size_t i = from; i < to; i++) {
		const struct rt_bpf_line *l = &image->lines[i];

		if (l->address >= f->address && l->address <= address && (!found || l->address >= found->address))
			found = l;
	}
	return found;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct rt_error *rt_bpf_image_calls(const struct rt_bpf_image *image, uint64_t **ret, size_t *ret_count)
{
	size_t count = image->xlated.size / sizeof(struct bpf_insn), n = 0, unique = 0;
	_cleanup_free_ uint64_t *calls = calloc(count + 1, sizeof(*calls));
	struct rt_bpf_call call;

	if (!calls)
		return rt_error_nomem();
	for (size_t i = 0; i < count && image->call_base && rt_bpf_call_read(image, i, &call); i++) {
		if (call.code == (BPF_JMP | BPF_CALL) && call.source != BPF_PSEUDO_CALL && call.imm)
			calls[n++] = image->call_base + (uint64_t)(int64_t)call.imm;
	}
	qsort(calls, n, sizeof(*calls), compare_u64);
	for (size_t i = 0; i < n; i++) {
		if (!i || calls[i] != calls[i - 1])
			calls[unique++] = calls[i];
	}
	*ret = rt_take(calls);
	*ret_count = unique;
	return NULL;
}
