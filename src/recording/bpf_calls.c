/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/bpf_calls.h"

#include "bpfimage/bpfimage.h"
#include "insn/insn.h"

/* Not the program's own code. */
static bool is_outside(const struct rt_bpf_image *image, uint64_t address)
{
	return address >> 63 && !rt_bpf_function_at(image, address);
}

static struct rt_error *add(struct rt_map *addresses, uint64_t address)
{
	return rt_map_put(addresses, rt_key_make(address, 0), NULL) ? NULL : rt_error_nomem();
}

static struct rt_error *of_machine_code(const struct rt_bpf_image *image, struct rt_decoder *decoder,
					struct rt_map *addresses)
{
	for (size_t i = 0; i < image->function_count; i++) {
		const struct rt_bpf_function *f = &image->functions[i];
		struct rt_insn insn;

		for (size_t at = 0; f->address && at < f->jit.size; at += insn.length ? insn.length : 1) {
			struct rt_bytes rest = rt_bytes_make(f->jit.data + at, f->jit.size - at);

			insn.length = 0;
			if (!rt_decode(decoder, rest, (struct rt_elfaddr){ f->address + at }, &insn)) {
				insn.length = 0;
				continue;
			}
			if ((insn.call || insn.jump) && insn.has_target && is_outside(image, insn.target.v))
				RT_TRY(add(addresses, insn.target.v));
		}
	}
	return NULL;
}

static struct rt_error *of_instructions(struct rt_bpf_image *image, uint64_t call_base, struct rt_map *addresses)
{
	_cleanup_free_ uint64_t *calls = NULL;
	size_t count;

	image->call_base = call_base;
	RT_TRY(rt_bpf_image_calls(image, &calls, &count));
	for (size_t i = 0; i < count; i++) {
		if (is_outside(image, calls[i]))
			RT_TRY(add(addresses, calls[i]));
	}
	return NULL;
}

struct rt_error *rt_bpf_calls(struct rt_bytes entry, uint16_t machine, uint64_t call_base, struct rt_map *addresses)
{
	_cleanup_(rt_bpf_image_destroyp) struct rt_bpf_image *image = NULL;
	_cleanup_(rt_decoder_destroyp) struct rt_decoder *decoder = NULL;
	struct rt_error *err = rt_bpf_image_decode(entry, (struct rt_bytes){ 0 }, false, &image);

	if (err && err->code == RT_E_NOMEM)
		return err;
	if (err) {
		rt_error_free(err);
		return NULL;
	}
	err = rt_decoder_create(machine, &decoder);
	if (!err)
		err = of_machine_code(image, decoder, addresses);
	else
		rt_error_catch(&err, RT_E_UNSUPPORTED);
	RT_TRY(err);
	return call_base ? of_instructions(image, call_base, addresses) : NULL;
}
