/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for code that is in no file. KSYMBOL records say what lay where and
 * when; the kept images of BPF programs add the source lines. A KSYMBOL of another
 * kind than BPF is a kernel function whose name a sample needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "event/blob.h"
#include "recording/bpf_calls.h"
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

/* What travels as blobs in the stream: everything in a pipe, beyond perf's format in a file. */
struct blobs {
	struct rt_recording_sink sink;
	struct rt_recording *recording;
	struct rt_blob_join join;
	struct rt_map programs, btfs, extras; /* id -> index of parts + 1; a later one replaces an earlier one */
	RT_VEC(struct rt_bytes) parts;        /* owned */
};

static struct rt_error *keep(struct blobs *b, struct rt_map *map)
{
	uint64_t *slot = rt_map_put(map, rt_key_make(b->join.id, 0), NULL);
	uint8_t *copy = malloc(b->join.size + 1);

	if (!slot || !copy || (!*slot && !rt_vec_add(&b->parts))) {
		free(copy);
		return rt_error_nomem();
	}
	if (!*slot)
		*slot = b->parts.len;
	memcpy(copy, b->join.data, b->join.size);
	free((void *)(uintptr_t)b->parts.data[*slot - 1].data);
	b->parts.data[*slot - 1] = rt_bytes_make(copy, b->join.size);
	return NULL;
}

static struct rt_error *take_blob(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct blobs *b = (struct blobs *)(void *)self;
	_cleanup_free_ char *text = NULL;

	if (record->kind != RT_WIRE_BLOB ||
	    !rt_blob_join(&b->join, (const struct rt_wire_blob *)(const void *)record, RT_BPF_DATA_MAX, NULL))
		return NULL;
	switch (b->join.what) {
	case RT_BLOB_BPF_PROG:
		return keep(b, &b->programs);
	case RT_BLOB_BTF:
		return keep(b, &b->btfs);
	case RT_BLOB_BPF_EXTRA:
		return keep(b, &b->extras);
	case RT_BLOB_BPF_LOST:
		text = strndup((const char *)b->join.data, b->join.size);
		return text ? note_lost(b->recording, b->join.id, text) : rt_error_nomem();
	default:
		return NULL;
	}
}

static struct rt_bytes find(const struct blobs *b, const struct rt_map *map, uint32_t id)
{
	const uint64_t *slot = rt_map_get(map, rt_key_make(id, 0));

	return slot ? b->parts.data[*slot - 1] : (struct rt_bytes){ 0 };
}

static struct rt_bytes btf_of(const struct rt_perf_header *header, const struct blobs *b, uint32_t id)
{
	for (size_t i = 0; id && i < header->btf_count; i++) {
		if (header->btfs[i].id == id)
			return header->btfs[i].bytes;
	}
	return find(b, &b->btfs, id);
}

/* The BTF id of an entry is known only after it is decoded: once without, then with it. */
static struct rt_error *decode(const struct rt_perf_header *header, const struct blobs *b, struct rt_bytes entry,
			       struct rt_bpf_image **ret)
{
	_cleanup_(rt_bpf_image_destroyp) struct rt_bpf_image *image = NULL;
	struct rt_error *err;
	struct rt_bytes more;

	RT_TRY(rt_bpf_image_decode(entry, (struct rt_bytes){ 0 }, header->big_endian, &image));
	more = btf_of(header, b, image->info.btf_id);
	if (more.size) {
		rt_bpf_image_destroy(rt_take(image));
		RT_TRY(rt_bpf_image_decode(entry, more, header->big_endian, &image));
	}
	more = find(b, &b->extras, image->info.id);
	err = more.size ? rt_bpf_extra_decode(more, image) : NULL;
	/* half of it is better than nothing; it is about names, not about code */
	if (err && !rt_error_catch(&err, RT_E_TRUNCATED) && !rt_error_catch(&err, RT_E_FORMAT))
		return err;
	*ret = rt_take(image);
	return NULL;
}

static struct rt_error *add_image(struct rt_recording *r, const struct rt_perf_header *header, const struct blobs *b,
				  uint32_t id, struct rt_bytes entry)
{
	struct rt_bpf_image *image = NULL;
	struct rt_error *err = decode(header, b, entry, &image);

	if (err) {
		struct rt_error *more = note_lost(r, id, err->message);

		rt_error_free(err);
		return more;
	}
	if (!rt_vec_push(&r->images, image)) {
		rt_bpf_image_destroy(image);
		return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *add_images(struct rt_recording *r, const struct rt_perf_header *header, struct blobs *b)
{
	const struct rt_map_slot *slot;
	size_t pos = 0;

	if (r->has_wire)
		RT_TRY(rt_recording_drain(r, &b->sink));
	header = rt_recording_info(r).header;
	for (size_t i = 0; i < header->bpf_prog_count && i < BPF_PROGRAMS_MAX; i++)
		RT_TRY(add_image(r, header, b, header->bpf_progs[i].id, header->bpf_progs[i].bytes));
	while (!header->bpf_prog_count && (slot = rt_map_next(&b->programs, &pos)))
		RT_TRY(add_image(r, header, b, (uint32_t)slot->key.a, b->parts.data[slot->value - 1]));
	return NULL;
}

static struct rt_error *decode_images(struct rt_recording *r, const struct rt_perf_header *header)
{
	struct blobs b = { .sink = { .wire = take_blob }, .recording = r };
	struct rt_error *err = add_images(r, header, &b);

	for (size_t i = 0; i < b.parts.len; i++)
		free((void *)(uintptr_t)b.parts.data[i].data);
	rt_vec_deinit(&b.parts);
	rt_map_deinit(&b.programs);
	rt_map_deinit(&b.btfs);
	rt_map_deinit(&b.extras);
	rt_blob_join_deinit(&b.join);
	return err;
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
	if (k->type == RT_PERF_KSYMBOL_OOL && !strcmp(k->name, RT_BPF_CALL_BASE))
		r->bpf_call_base = k->addr;
	return rt_chain_add_code(chain, &(struct rt_chain_code){ .start = k->addr,
								 .end = k->addr + k->len,
								 .name = k->name,
								 .module = "[kernel.kallsyms]" });
}

/* "[kernel.kallsyms]_text": the mapping's offset is the address of that symbol. */
static void see_kernel(struct rt_recording *r, const struct rt_perf_mmap *m)
{
	static const char name[] = "[kernel.kallsyms]";

	if (m->pid != UINT32_MAX || r->kernel.text || strncmp(m->filename, name, sizeof(name) - 1) != 0)
		return;
	r->kernel.text = m->pgoff;
	if (m->build_id_size > sizeof(r->kernel.build_id))
		return;
	r->kernel.build_id_size = m->build_id_size;
	memcpy(r->kernel.build_id, m->build_id, m->build_id_size);
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

	if (record->type == RT_PERF_MMAP || record->type == RT_PERF_MMAP2)
		see_kernel(t->recording, &record->mmap);
	return record->type == RT_PERF_KSYMBOL ? ksymbol(t->recording, t->chain, record) : NULL;
}

struct rt_error *rt_recording_code(struct rt_recording *r, struct rt_chain *chain)
{
	struct taker taker = { .sink = { .perf = take }, .recording = r, .chain = chain };
	struct rt_recording_info info;

	r->chain = chain;
	if (!r->has_perf)
		return NULL;
	RT_TRY(rt_recording_prepare(r));
	info = rt_recording_info(r);
	RT_TRY(decode_images(r, info.header));
	RT_TRY(index_functions(r));
	RT_TRY(rt_recording_drain(r, &taker.sink));
	for (size_t i = 0; i < r->images.len; i++) {
		if (!r->images.data[i]->call_base)
			r->images.data[i]->call_base = r->bpf_call_base;
	}
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
