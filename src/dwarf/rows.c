/* SPDX-License-Identifier: GPL-2.0-only */
/* The FDEs of an image, in the order of their code, each run once. */
#include "dwarf/rows.h"

#include <elf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vec.h"
#include "dwarf/entry.h"

#define FUNCTIONS_MAX (2u << 20)
#define CIES_MAX (1u << 20)

struct section {
	struct rt_frame_section frame;
	struct rt_map cies; /* (offset, 0) -> index of cies + 1; 0: damaged, or of a kind that is not known */
};

/* A CIE whose program was run. */
struct cie {
	struct rt_frame_cie head;
	struct rt_frame_state initial;
};

struct function {
	uint64_t start, end; /* [start, end) */
	uint32_t cie;        /* index of cies */
	uint8_t section;
	size_t program; /* offset of its program in the section, and its size */
	size_t size;
};

struct compiler {
	struct section section[2];
	RT_VEC(struct cie) cies;
	RT_VEC(struct function) functions;
	RT_VEC(struct rt_unwind_row) rows;
	uint64_t base, limit; /* code lies in [base, limit) */
	uint64_t entry;
	bool full, nomem;
};

/* Index of the CIE at this offset; false: none that can be used. */
static bool get_cie(struct compiler *k, struct section *s, uint64_t at, uint32_t *ret)
{
	bool fresh = false;
	uint64_t *known;

	if (at >= s->frame.bytes.size)
		return false;
	known = rt_map_put(&s->cies, rt_key_make(at, 0), &fresh);
	if (!known) {
		k->nomem = true;
		return false;
	}
	if (fresh) {
		struct cie cie;

		*known = 0;
		if (k->cies.len < CIES_MAX && rt_frame_cie_read(&s->frame, at, &cie.head) &&
		    cie.head.ra == RT_FRAME_RA && rt_frame_initial(&cie.head, &cie.initial)) {
			k->nomem |= !rt_vec_push(&k->cies, cie);
			*known = k->nomem ? 0 : k->cies.len;
		}
	}
	*ret = (uint32_t)(*known - 1);
	return *known;
}

static void read_function(struct compiler *k, struct section *s, const struct rt_frame_entry *e)
{
	struct function f = { .section = !s->frame.eh };
	struct rt_frame_fde fde;

	if (!get_cie(k, s, e->cie, &f.cie) || !rt_frame_fde_read(&s->frame, e, &k->cies.data[f.cie].head, &fde) ||
	    fde.start < k->base || fde.end > k->limit)
		return;
	f.start = fde.start;
	f.end = fde.end;
	f.program = fde.program_at;
	f.size = fde.program.size;
	if (k->functions.len >= FUNCTIONS_MAX)
		k->full = true;
	else if (!rt_vec_push(&k->functions, f))
		k->nomem = true;
}

static void read_section(struct compiler *k, struct section *s)
{
	struct rt_frame_entry e;

	for (size_t at = 0; at < s->frame.bytes.size && !k->full && !k->nomem; at = e.next) {
		if (!rt_frame_entry_read(&s->frame, at, &e))
			break;
		if (e.body.data && !e.is_cie)
			read_function(k, s, &e);
	}
}

static int compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* .eh_frame first: what the program itself unwinds by */
	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	return x->program < y->program ? -1 : x->program > y->program;
}

static bool add(struct compiler *k, uint64_t pc, uint32_t rule)
{
	struct rt_unwind_row row = { (uint32_t)(pc - k->base), rule };

	/* told once more about the same place */
	if (k->rows.len && k->rows.data[k->rows.len - 1].pc == row.pc)
		k->rows.len--;
	if ((k->rows.len ? k->rows.data[k->rows.len - 1].rule : RT_UNWIND_NONE) == rule)
		return true;
	if (k->rows.len >= RT_UNWIND_ROWS_MAX)
		k->full = true;
	else if (!rt_vec_push(&k->rows, row))
		k->nomem = true;
	return !k->full && !k->nomem;
}

struct taker {
	struct compiler *k;
	uint64_t from; /* code before it belongs to another function */
	bool signal;
};

static bool take(void *arg, uint64_t start, uint64_t end, const struct rt_frame_state *state)
{
	struct taker *t = arg;

	if (end <= t->from)
		return true;
	return add(t->k, start > t->from ? start : t->from, rt_frame_rule(state, t->signal));
}

/* Code in [start, end), of which no frame tells. */
static void add_gap(struct compiler *k, uint64_t start, uint64_t end)
{
	uint64_t behind = k->entry + RT_UNWIND_ENTRY_BYTES;

	if (!k->entry || k->entry < start || k->entry >= end) {
		(void)add(k, start, RT_UNWIND_NONE);
		return;
	}
	if (k->entry > start)
		(void)add(k, start, RT_UNWIND_NONE);
	(void)add(k, k->entry, RT_UNWIND_ROOT);
	if (behind < end)
		(void)add(k, behind, RT_UNWIND_NONE);
}

/* Code that two claim belongs to the one that starts first. */
static void compile(struct compiler *k)
{
	uint64_t end = k->base;

	for (size_t i = 0; i < k->functions.len && !k->full && !k->nomem; i++) {
		const struct function *f = &k->functions.data[i];
		const struct cie *cie = &k->cies.data[f->cie];
		const struct rt_frame_section *section = &k->section[f->section].frame;
		struct rt_frame_state state = cie->initial;
		struct taker taker = { k, f->start > end ? f->start : end, cie->head.signal };
		struct rt_frame_run run = { .cie = &cie->head,
					    .initial = &cie->initial,
					    .here = section->address + f->program,
					    .start = f->start,
					    .end = f->end,
					    .emit = take,
					    .arg = &taker };
		struct rt_bytes program = rt_bytes_make(section->bytes.data + f->program, f->size);
		size_t rows = k->rows.len;

		if (f->end <= end)
			continue;
		if (f->start > end)
			add_gap(k, end, f->start);
		if (!rt_frame_program(&run, program, &state) && !k->full && !k->nomem) {
			/* as if nothing had been told */
			if (rows < k->rows.len)
				k->rows.len = rows;
			(void)add(k, taker.from, RT_UNWIND_OTHER);
		}
		end = f->end;
	}
	if (!k->full) {
		if (end < k->limit)
			add_gap(k, end, k->limit);
		(void)add(k, k->limit, RT_UNWIND_NONE);
	}
	if (k->full && k->rows.len) /* what the last one would tell about all code behind it */
		(void)add(k, k->base + k->rows.data[k->rows.len - 1].pc, RT_UNWIND_NONE);
}

static void deinit(struct compiler *k)
{
	for (size_t i = 0; i < 2; i++)
		rt_map_deinit(&k->section[i].cies);
	rt_vec_deinit(&k->cies);
	rt_vec_deinit(&k->functions);
	rt_vec_deinit(&k->rows);
}

struct rt_error *rt_unwind_rows_compile(const struct rt_unwind_sections *sections, struct rt_unwind_rows **ret)
{
	_cleanup_(rt_unwind_rows_destroyp) struct rt_unwind_rows *rows = calloc(1, sizeof(*rows));
	struct compiler k = {
		.section = { { .frame = { .bytes = sections->eh_frame,
					  .address = sections->eh_frame_at.v,
					  .eh = true } },
			     { .frame = { .bytes = sections->debug_frame } } },
		.base = sections->start.v,
		.limit = sections->end.v,
		.entry = sections->entry.v >= sections->start.v && sections->entry.v < sections->end.v
				 ? sections->entry.v
				 : 0,
	};

	if (!rows)
		return rt_error_nomem();
	if (k.base < k.limit && k.limit - k.base < UINT32_MAX) {
		read_section(&k, &k.section[0]);
		read_section(&k, &k.section[1]);
		if (k.functions.len)
			qsort(k.functions.data, k.functions.len, sizeof(*k.functions.data), compare);
		compile(&k);
	}
	if (!k.nomem) {
		rows->base.v = k.base;
		rows->row = k.rows.data;
		rows->count = k.rows.len;
		rows->functions = k.functions.len;
		rows->limited = k.full;
		k.rows.data = NULL;
	}
	deinit(&k);
	if (k.nomem)
		return rt_error_nomem();
	*ret = rt_take(rows);
	return NULL;
}

/* Where code may be. false: nowhere, or in more than four GiB. */
static bool find_code(const struct rt_image *image, struct rt_unwind_sections *ret)
{
	ret->start.v = UINT64_MAX;
	ret->end.v = 0;
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];

		if (!(s->flags & PF_X) || s->start.v >= s->end.v)
			continue;
		if (s->start.v < ret->start.v)
			ret->start = s->start;
		if (s->end.v > ret->end.v)
			ret->end = s->end;
	}
	return ret->start.v < ret->end.v && ret->end.v - ret->start.v < UINT32_MAX;
}

struct rt_error *rt_unwind_rows_create_with(const struct rt_image *image, struct rt_bytes debug_frame,
					    struct rt_unwind_rows **ret)
{
	struct rt_unwind_sections s = { .end = { 0 } };

	if (image->machine == RT_MACHINE_X86_64 && image->is_64 && !image->big_endian && find_code(image, &s)) {
		if (!rt_image_section(image, ".eh_frame", &s.eh_frame, &s.eh_frame_at))
			s.eh_frame = rt_bytes_make(NULL, 0);
		s.entry = image->entry;
		s.debug_frame = debug_frame;
	}
	return rt_unwind_rows_compile(&s, ret);
}

struct rt_error *rt_unwind_rows_create(const struct rt_image *image, struct rt_unwind_rows **ret)
{
	struct rt_bytes frame = { NULL, 0 };

	/* a compressed one is damaged to us, and so has nothing */
	if (!rt_image_section(image, ".debug_frame", &frame, NULL) &&
	    !(image->debug && rt_image_section(image->debug, ".debug_frame", &frame, NULL)))
		frame = rt_bytes_make(NULL, 0);
	return rt_unwind_rows_create_with(image, frame, ret);
}

void rt_unwind_rows_destroy(struct rt_unwind_rows *rows)
{
	if (!rows)
		return;
	free(rows->row);
	free(rows);
}

uint32_t rt_unwind_rule(const struct rt_unwind_rows *rows, struct rt_elfaddr addr)
{
	size_t lo = 0, hi = rows->count;
	uint64_t pc = addr.v - rows->base.v;

	if (addr.v < rows->base.v)
		return RT_UNWIND_NONE;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (rows->row[mid].pc <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? rows->row[lo - 1].rule : RT_UNWIND_NONE;
}
