/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as a module: what its code says of values before calls neither faults nor hangs, and names lie in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/opens.h"
#include "symbol/parts.h"
#include "symbol/values.h"

enum { FUNCTIONS = 8, INSNS = 200 };

/* Asks before each call of the function, with and without knowing the functions that are called. */
static void ask_calls(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      const struct rt_symbol *f)
{
	const struct rt_elfaddr end = { f->addr.v + f->size };
	struct rt_elfaddr at = f->addr;

	if (end.v < at.v)
		return;
	for (unsigned n = 0; n < INSNS && at.v < end.v; n++) {
		struct rt_values_code code = { .image = image, .decoder = decoder, .start = f->addr, .end = end };
		struct rt_insn insn, call;
		struct rt_values values;

		if (!rt_values_decode(&code, at, &insn))
			return;
		at.v += insn.length;
		if (!insn.call)
			continue;
		for (unsigned known = 0; known < 2; known++) {
			code.leaves = known ? symtab : NULL;
			if (!rt_values_before(&code, at, &values, &call, NULL, NULL))
				continue;
			if (!call.call)
				abort();
			(void)rt_values_address(&values, values.reg[RT_REG_RDI]);
			(void)rt_values_top(&values);
			rt_values_call(&values, &code, &call);
		}
		(void)rt_chain_goes_on(image, symtab, decoder, f->addr, end, at);
	}
}

/* the place by which it leaves is one in it */
static void ask_leaves(const struct rt_image *image, struct rt_decoder *decoder, const struct rt_symbol *f)
{
	const struct rt_elfaddr end = { f->addr.v + f->size };
	const struct rt_elfaddr at = rt_chain_leaves(image, NULL, decoder, f->addr, end);

	if (at.v && (at.v < f->addr.v || at.v >= end.v))
		abort();
}

/* branches are in it, and lead somewhere in it */
static void ask_skips(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      const struct rt_symbol *f)
{
	const struct rt_elfaddr end = { f->addr.v + f->size };
	const uint64_t places[] = { f->addr.v + f->size / 2, f->addr.v + f->size / 3 };
	struct rt_elfaddr found[4][2];
	const size_t n =
		rt_chain_skips(image, symtab, decoder, f->addr, end, f->addr.v, places, f->size & 1 ? 1 : 2, found, 4);

	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < 2; k++)
			if (found[i][k].v < f->addr.v || found[i][k].v >= end.v)
				abort();
}

static void ask_names(const struct rt_image *image, const struct rt_symtab *symtab)
{
	struct rt_opens opens;

	rt_error_free(rt_opens_find(image, symtab, &opens));
	for (size_t i = 0; i < opens.names.len; i++) {
		const uint8_t *name = (const uint8_t *)opens.names.data[i];

		if (name < image->bytes.data ||
		    name + strlen(opens.names.data[i]) >= image->bytes.data + image->bytes.size)
			abort();
	}
	rt_opens_deinit(&opens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* one decoder stays, so that its library is not loaded for each input */
	static struct rt_decoder *decoder;
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	_cleanup_error_ struct rt_error *err = decoder ? NULL : rt_decoder_create(RT_MACHINE_X86_64, &decoder);

	if (err)
		abort();
	err = rt_image_from_bytes(rt_bytes_make(data, size), "fuzz", &image);
	if (err)
		return 0;
	err = rt_symtab_create(image, &symtab);
	if (err)
		return 0;
	ask_names(image, symtab);
	for (size_t i = 0, n = 0; i < symtab->count && n < FUNCTIONS && image->machine == RT_MACHINE_X86_64; i++) {
		if (!symtab->symbols[i].function || symtab->symbols[i].plt || !symtab->symbols[i].size)
			continue;
		ask_calls(image, symtab, decoder, &symtab->symbols[i]);
		ask_leaves(image, decoder, &symtab->symbols[i]);
		ask_skips(image, symtab, decoder, &symtab->symbols[i]);
		n++;
	}
	return 0;
}
