/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for code that is in no file. KSYMBOL records say what lay where and
 * when; the kept images of BPF programs add the source lines. A KSYMBOL of another
 * kind than BPF is a kernel function whose name a sample needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/parts.h"

enum { BPF_PROGRAMS_MAX = 1 << 17, LOST_MAX = 1000 };

static struct rt_error *note_lost(struct rt_recording *r, uint32_t id, const char *why)
{
	char *text;

	if (r->bpf_lost.len >= LOST_MAX)
		return NULL;
	if (asprintf(&text, "program %u: %s", id, why) < 0 || !rt_vec_push(&r->bpf_lost, text))
		return rt_error_nomem();
	return NULL;
}

static struct rt_bytes btf_of(const struct rt_perf_header *header, uint32_t id)
{
	for (size_t i = 0; id && i < header->btf_count; i++) {
		if (header->btfs[i].id == id)
			return header->btfs[i].bytes;
	}
	return (struct rt_bytes){ 0 };
}

/* The BTF id of an entry is known only after it is decoded: once without, then with it. */
static struct rt_error *decode(const struct rt_perf_header *header, struct rt_bytes entry, struct rt_bpf_image **ret)
{
	_cleanup_(rt_bpf_image_destroyp) struct rt_bpf_image *plain = NULL;
	struct rt_bytes btf;

	RT_TRY(rt_bpf_image_decode(entry, (struct rt_bytes){ 0 }, header->big_endian, &plain));
	btf = btf_of(header, plain->info.btf_id);
	if (btf.size)
		return rt_bpf_image_decode(entry, btf, header->big_endian, ret);
	*ret = rt_take(plain);
	return NULL;
}

static struct rt_error *decode_images(struct rt_recording *r, const struct rt_perf_header *header)
{
	for (size_t i = 0; i < header->bpf_prog_count && i < BPF_PROGRAMS_MAX; i++) {
		struct rt_bpf_image *image = NULL;
		struct rt_error *err = decode(header, header->bpf_progs[i].bytes, &image);

		if (err) {
			struct rt_error *more = note_lost(r, header->bpf_progs[i].id, err->message);

			rt_error_free(err);
			RT_TRY(more);
			continue;
		}
		if (!rt_vec_push(&r->images, image)) {
			rt_bpf_image_destroy(image);
			return rt_error_nomem();
		}
	}
	return NULL;
}

static int by_address(const void *x, const void *y)
{
	const struct rt_recording_function *a = x, *b = y;

	return (a->function->address > b->function->address) - (a->function->address < b->function->address);
}

static struct rt_error *index_functions(struct rt_recording *r)
{
	for (size_t i = 0; i < r->images.len; i++) {
		for (size_t k = 0; k < r->images.data[i]->function_count; k++) {
			struct rt_recording_function f = { .image = r->images.data[i],
							   .function = &r->images.data[i]->functions[k] };

			if (f.function->address && !rt_vec_push(&r->functions, f))
				return rt_error_nomem();
		}
	}
	if (r->functions.len)
		qsort(r->functions.data, r->functions.len, sizeof(*r->functions.data), by_address);
	return NULL;
}

static struct rt_recording_function *find_function(struct rt_recording *r, uint64_t address, const char *symbol)
{
	size_t low = 0, high = r->functions.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->functions.data[mid].function->address < address)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < r->functions.len && r->functions.data[low].function->address == address; low++) {
		if (!strcmp(r->functions.data[low].function->symbol, symbol))
			return &r->functions.data[low];
	}
	return NULL;
}

/* The lines of one function, as the chain wants them; owned by the recording. */
static struct rt_error *lines_of(struct rt_recording *r, struct rt_recording_function *f)
{
	uint64_t start = f->function->address, end = start + f->function->jit.size;

	if (f->lines)
		return NULL;
	f->lines = calloc(f->image->line_count + 1, sizeof(*f->lines));
	if (!f->lines)
		return rt_error_nomem();
	for (size_t i = 0; i < f->image->line_count; i++) {
		const struct rt_bpf_line *l = &f->image->lines[i];

		if (l->address >= start && l->address < end)
			f->lines[f->line_count++] =
				(struct rt_code_line){ .address = l->address, .file = l->file, .line = l->line };
	}
	return NULL;
}

static struct rt_error *add(struct rt_recording *r, struct rt_chain *chain, uint64_t start, uint64_t size,
			    uint64_t from_ns, const char *name)
{
	struct rt_recording_function *f = find_function(r, start, name);
	struct rt_chain_code code = { .start = start,
				      .end = start + size,
				      .from_ns = from_ns ? from_ns : 1,
				      .to_ns = UINT64_MAX,
				      .name = name,
				      .module = name };

	if (f) {
		RT_TRY(lines_of(r, f));
		f->placed = true;
		code.lines = f->lines;
		code.line_count = f->line_count;
	}
	return rt_chain_add_code(chain, &code);
}

static struct rt_error *ksymbol(struct rt_recording *r, struct rt_chain *chain, const struct rt_perf_record *record)
{
	const struct rt_perf_ksymbol *k = &record->ksymbol;

	if (k->unregister) {
		rt_chain_end_code(chain, k->addr, record->id.time_ns);
		return NULL;
	}
	if (k->type == RT_PERF_KSYMBOL_BPF)
		return add(r, chain, k->addr, k->len, record->id.time_ns, k->name);
	return rt_chain_add_code(chain, &(struct rt_chain_code){ .start = k->addr,
								 .end = k->addr + k->len,
								 .name = k->name,
								 .module = "[kernel.kallsyms]" });
}

struct taker {
	struct rt_recording_sink sink;
	struct rt_recording *recording;
	struct rt_chain *chain;
};

static struct rt_error *take(struct rt_recording_sink *self, const struct rt_perf_event *events,
			     const struct rt_perf_record *record)
{
	struct taker *t = (struct taker *)(void *)self;

	return record->type == RT_PERF_KSYMBOL ? ksymbol(t->recording, t->chain, record) : NULL;
}

struct rt_error *rt_recording_code(struct rt_recording *r, struct rt_chain *chain)
{
	struct taker taker = { .sink = { .perf = take }, .recording = r, .chain = chain };
	struct rt_recording_info info;

	if (!r->has_perf)
		return NULL;
	RT_TRY(rt_recording_prepare(r));
	info = rt_recording_info(r);
	RT_TRY(decode_images(r, info.header));
	RT_TRY(index_functions(r));
	RT_TRY(rt_recording_drain(r, &taker.sink));
	/* programs that were there without a KSYMBOL record */
	for (size_t i = 0; i < r->functions.len; i++) {
		const struct rt_bpf_function *f = r->functions.data[i].function;

		if (!r->functions.data[i].placed && f->jit.size)
			RT_TRY(add(r, chain, f->address, f->jit.size, 0, f->symbol));
	}
	return NULL;
}

const struct rt_bpf_image *const *rt_recording_bpf(const struct rt_recording *r, size_t *ret_count)
{
	*ret_count = r->images.len;
	return (const struct rt_bpf_image *const *)r->images.data;
}

size_t rt_recording_bpf_lost(const struct rt_recording *r, const char *const **ret)
{
	*ret = (const char *const *)r->bpf_lost.data;
	return r->bpf_lost.len;
}
