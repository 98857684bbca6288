/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/unwinder.h"

#include "insn/insn.h"
#include "probe/room.h"

enum { FUNCTION_BYTES = 64 << 10 /* longer ones are none of these */ };

static const struct {
	const char *name;
	int kind;
	bool returns; /* to the frame that called it, with all above */
} functions[] = {
	{ "_Unwind_RaiseException", RT_UNWINDER_BEGINS, false },
	{ "_Unwind_Resume", RT_UNWINDER_BEGINS, false },
	{ "_Unwind_Resume_or_Rethrow", RT_UNWINDER_BEGINS, false },
	{ "_Unwind_ForcedUnwind", RT_UNWINDER_FORCED, false },
	{ "_Unwind_Backtrace", RT_UNWINDER_BEGINS, true },
	{ "__cxa_begin_catch", RT_UNWINDER_OVER, false },
};
enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

struct search {
	const struct rt_image *image;
	struct rt_decoder *decoder;
	const struct rt_symbol *symbol;
	uint8_t room;
	struct rt_unwinders *found;
};

static struct rt_error *add(struct search *s, int kind, struct rt_elfaddr at)
{
	struct rt_unwinder u = { .kind = kind, .address = at };
	struct rt_site_request request = { .image = s->image,
					   .decoder = s->decoder,
					   .entry = at,
					   .start = s->symbol->addr,
					   .end = { s->symbol->addr.v + s->symbol->size },
					   .room = s->room };
	struct rt_labels labels;

	if (!rt_image_offset(s->image, at, &u.offset))
		return NULL;
	if (s->room) {
		rt_labels_read(&request, &labels);
		/* their jumps through registers lead to who catches */
		labels.tables = labels.jumps;
		u.no_room = !rt_has_room(&request, &labels, 0, &u.before);
	}
	return rt_vec_push(&s->found->list, u) ? NULL : rt_error_nomem();
}

/* The instruction before each by which it returns: a thread that is stopped for one that was stepped over stands behind
 * it. */
static struct rt_error *add_ends(struct search *s)
{
	struct rt_elfaddr at = s->symbol->addr, last = at;
	struct rt_bytes code;
	struct rt_insn insn;

	if (s->symbol->size > FUNCTION_BYTES)
		return NULL;
	code = rt_image_at(s->image, at, s->symbol->size);
	for (; code.size && rt_decode(s->decoder, code, at, &insn); at.v += insn.length) {
		if (insn.ret)
			RT_TRY(add(s, RT_UNWINDER_OVER, last));
		last = at;
		code.data += insn.length;
		code.size -= insn.length;
	}
	return NULL;
}

struct rt_error *rt_unwinders_find(const struct rt_image *image, const struct rt_symtab *symtab, uint8_t room,
				   struct rt_unwinders *ret)
{
	_cleanup_(rt_decoder_destroyp) struct rt_decoder *decoder = NULL;

	for (size_t i = 0; i < FUNCTIONS; i++) {
		struct search s = { image, decoder, rt_symtab_find(symtab, functions[i].name), room, ret };

		if (!s.symbol || !s.symbol->function)
			continue;
		if (!decoder)
			RT_TRY(rt_decoder_create(RT_MACHINE_X86_64, &decoder));
		s.decoder = decoder;
		RT_TRY(add(&s, functions[i].kind, s.symbol->addr));
		if (functions[i].returns)
			RT_TRY(add_ends(&s));
	}
	return NULL;
}
