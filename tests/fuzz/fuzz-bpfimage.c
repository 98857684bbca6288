/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An entry of a BPF program, its BTF and its extra part from foreign bytes: the
 * first byte says the byte order, the next two how long the entry is, then entry and
 * BTF. Every answer is asked for, and what decoded is encoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "bpfimage/bpfimage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t seen;

static void read_btf(struct rt_bytes bytes)
{
	_cleanup_(rt_btf_destroyp) struct rt_btf *btf = NULL;
	struct rt_error *err = rt_btf_create(bytes, &btf);
	struct rt_btf_member member;
	struct rt_btf_type type;

	if (err) {
		rt_error_free(err);
		return;
	}
	for (uint32_t id = 0; id <= rt_btf_count(btf) && id < 512; id++) {
		if (!rt_btf_type(btf, id, &type) || !type.name)
			abort();
		seen += strlen(type.name);
		for (uint32_t i = 0; i < type.vlen && i < 64; i++) {
			if (rt_btf_member(btf, id, i, &member))
				seen += strlen(member.name);
		}
		seen += rt_btf_function(btf, id) != NULL;
	}
	seen += rt_btf_find(btf, RT_BTF_FUNC, "x");
}

static void ask(const struct rt_bpf_image *image)
{
	if (!image->function_count)
		abort();
	for (size_t i = 0; i < image->function_count; i++) {
		const struct rt_bpf_function *f = &image->functions[i];

		seen += strlen(f->name) + strlen(f->symbol);
		for (size_t at = 0; at < f->jit.size; at++)
			seen += f->jit.data[at];
		seen += rt_bpf_function_find(image, f->symbol) != NULL;
		seen += rt_bpf_line_at(image, f->address + f->size / 2) != NULL;
		if (f->insns && f->insn + f->insns - 1 < f->insn)
			abort();
		seen += rt_bpf_line_of_insn(image, f->insn) != NULL;
	}
	for (size_t i = 0; i < image->line_count; i++) {
		const struct rt_bpf_line *l = &image->lines[i];

		seen += strlen(l->file) + strlen(l->text);
		if (i && l[-1].insn > l->insn)
			abort();
	}
	for (size_t i = 0; i < image->map_count; i++)
		seen += rt_bpf_map_name(image, image->map_ids[i]) != NULL;
}

static void again(struct rt_bpf_image *image, struct rt_bytes extra)
{
	uint8_t *blob = NULL;
	uint64_t *calls = NULL;
	size_t size = 0, count = 0;

	image->call_base = 0x1000;
	rt_error_free(rt_bpf_image_calls(image, &calls, &count));
	free(calls);
	rt_error_free(rt_bpf_extra_decode(extra, image));
	rt_error_free(rt_bpf_extra_encode(image, &blob, &size));
	/* what we wrote ourselves must be whole */
	if (blob) {
		struct rt_error *err = rt_bpf_extra_decode(rt_bytes_make(blob, size), image);

		if (err && err->code != RT_E_NOMEM && err->code != RT_E_LIMIT)
			abort();
		rt_error_free(err);
	}
	free(blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(rt_bpf_image_destroyp) struct rt_bpf_image *image = NULL;
	struct rt_bytes entry, btf;
	size_t len;
	struct rt_error *err;

	if (size < 3)
		return 0;
	len = data[1] | data[2] << 8;
	len = len < size - 3 ? len : size - 3;
	entry = rt_bytes_make(data + 3, len);
	btf = rt_bytes_make(data + 3 + len, size - 3 - len);
	read_btf(btf);
	err = rt_bpf_image_decode(entry, btf, data[0] & 1, &image);
	if (err) {
		rt_error_free(err);
		return 0;
	}
	ask(image);
	again(image, btf);
	return 0;
}
