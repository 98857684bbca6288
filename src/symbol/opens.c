/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every place in the module that leads to the stub of dlopen() has to be a call, and what is known of the code before
 * it has to say which text it is given. Places are found by their distance to the stub, in all bytes of all code: what
 * looks like one and is none is no call whose argument is known.
 */
#include "symbol/opens.h"

#include <string.h>

#include "symbol/values.h"

enum { CALL = 0xe8, DISTANCE = 4, NAME_MAX_BYTES = 4096, STUBS = 4, NAMES = 64 };

struct search {
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_decoder *decoder;
	struct rt_opens *to;
	uint64_t stub[STUBS];
	unsigned stub_count;
};

void rt_opens_deinit(struct rt_opens *opens)
{
	rt_vec_deinit(&opens->names);
}

/* The text at address, which nobody writes; NULL: there is none. */
static const char *text_at(const struct rt_image *image, uint64_t address)
{
	enum { WRITABLE = 2 /* PF_W */ };
	struct rt_bytes bytes;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];

		if (address < s->start.v || address >= s->end.v || s->flags & WRITABLE)
			continue;
		bytes = rt_image_at(image, (struct rt_elfaddr){ address }, NAME_MAX_BYTES);
		return bytes.size && memchr(bytes.data, 0, bytes.size) ? (const char *)bytes.data : NULL;
	}
	return NULL;
}

/* The name that the call which returns to `after` gives; NULL: not known. */
static const char *name_given(const struct search *s, uint64_t after)
{
	const struct rt_symbol *f = rt_symtab_at(s->symtab, (struct rt_elfaddr){ after - 1 });
	struct rt_values values;
	struct rt_insn call;
	uint64_t address;

	if (!f || !f->size || f->plt)
		return NULL;
	struct rt_values_code code = {
		.image = s->image, .decoder = s->decoder, .start = f->addr, .end = { f->addr.v + f->size }
	};
	if (!rt_values_before(&code, (struct rt_elfaddr){ after }, &values, &call, NULL, NULL))
		return NULL;
	address = rt_values_address(&values, values.reg[RT_REG_RDI]);
	return address && address != RT_VALUES_ELSEWHERE ? text_at(s->image, address) : NULL;
}

/* Where the stubs are. false: there are none, or more than any linker makes. */
static bool find_stubs(struct search *s)
{
	for (size_t i = 0; i < s->symtab->count; i++) {
		const struct rt_symbol *symbol = &s->symtab->symbols[i];

		if (!symbol->plt || strcmp(symbol->name, "dlopen") != 0)
			continue;
		if (s->stub_count == STUBS)
			return false;
		s->stub[s->stub_count++] = symbol->addr.v;
	}
	return s->stub_count;
}

static bool is_stub(const struct search *s, uint64_t address)
{
	for (unsigned i = 0; i < s->stub_count; i++)
		if (s->stub[i] == address)
			return true;
	return false;
}

static struct rt_error *look_through(struct search *s, const struct rt_segment *segment)
{
	struct rt_bytes code = rt_image_at(s->image, segment->start, SIZE_MAX);

	for (size_t i = 0; s->to->all && i + DISTANCE <= code.size; i++) {
		const uint64_t after = segment->start.v + i + DISTANCE;
		int32_t distance;
		struct rt_elfaddr section;
		const char *name;
		uint64_t target;

		memcpy(&distance, code.data + i, sizeof(distance));
		target = after + (uint64_t)(int64_t)distance;
		/* the end of one stub and the beginning of the next look like a jump into themselves */
		if (!is_stub(s, target) || (distance < 0 && distance >= -DISTANCE) ||
		    !rt_image_code_start(s->image, (struct rt_elfaddr){ after - 1 }, &section))
			continue;
		name = i && code.data[i - 1] == CALL ? name_given(s, after) : NULL;
		s->to->all = name && s->to->names.len < NAMES;
		if (name && !rt_vec_push(&s->to->names, name))
			return rt_error_nomem();
	}
	return NULL;
}

/* How the module comes by a function that it has not itself. */
static enum rt_import import_of(const struct search *s, const char *function)
{
	if (!rt_image_has_name(s->image, function) || rt_symtab_find(s->symtab, function))
		return RT_IMPORT_NONE;
	return rt_image_import(s->image, function);
}

struct rt_error *rt_opens_find(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_opens *ret)
{
	enum { EXECUTABLE = 1 /* PF_X */ };
	struct search s = { .image = image, .symtab = symtab, .to = ret };
	const enum rt_import import = import_of(&s, "dlopen");
	struct rt_error *err = NULL;

	*ret = (struct rt_opens){ .all = import == RT_IMPORT_NONE };
	/* dlmopen(3) makes a world of its own */
	if (import_of(&s, "dlmopen") != RT_IMPORT_NONE)
		ret->all = false;
	else if (import == RT_IMPORT_CALLED)
		ret->all = find_stubs(&s);
	if (import != RT_IMPORT_CALLED || !ret->all)
		return NULL;
	RT_TRY(rt_decoder_create(RT_MACHINE_X86_64, &s.decoder));
	for (size_t i = 0; i < image->segment_count && !err; i++)
		if (image->segments[i].flags & EXECUTABLE)
			err = look_through(&s, &image->segments[i]);
	rt_decoder_destroy(s.decoder);
	return err;
}
