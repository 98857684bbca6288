/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call frame information: where the frame is at an address, from the rows of the whole image (libdw takes memory by the
 * largest register number that a damaged file names), and an index of the FDEs with their landing pads.
 */
#include "dwarf/cfi.h"

#include <stdlib.h>

#include "dwarf/rows.h"

#define RT_FDES_MAX (4u << 20)

/* Of the file itself, else of its debug file; decompressed. Empty: there is none. */
static struct rt_bytes debug_frame(const struct rt_dwarf *dwarf)
{
	const struct rt_image *debug = dwarf->image->debug;
	struct rt_bytes bytes;

	if (rt_source_section(dwarf->image, &dwarf->own, ".debug_frame", &bytes) ||
	    (debug && rt_source_section(debug, &dwarf->companion, ".debug_frame", &bytes)))
		return bytes;
	return rt_bytes_make(NULL, 0);
}

/* NULL: out of memory */
static const struct rt_unwind_rows *rows_of(struct rt_dwarf *dwarf)
{
	if (!dwarf->rows_tried) {
		dwarf->rows_tried = true;
		rt_error_free(rt_unwind_rows_create_with(dwarf->image, debug_frame(dwarf), &dwarf->rows));
	}
	return dwarf->rows;
}

bool rt_dwarf_cfi(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_cfi_row *ret)
{
	const struct rt_unwind_rows *rows = rows_of(dwarf);

	return rows && rt_rows_cfi(rows, addr, ret);
}

bool rt_rows_cfi(const struct rt_unwind_rows *rows, struct rt_elfaddr addr, struct rt_cfi_row *ret)
{
	uint32_t rule = rt_unwind_rule(rows, addr);
	struct rt_cfi_row row = { 0 };

	switch (rt_unwind_kind(rule)) {
	case RT_UNWIND_SP:
		row.cfa_reg = RT_DWARF_RSP;
		row.cfa_offset = 8 * (int64_t)rt_unwind_sp_offset(rule);
		break;
	case RT_UNWIND_BP:
		row.cfa_reg = RT_DWARF_RBP;
		row.cfa_offset = 8 * (int64_t)rt_unwind_bp_offset(rule);
		break;
	case RT_UNWIND_ROOT:
		row.ra_undefined = true;
		*ret = row;
		return true;
	default:
		return false;
	}
	row.rbp_same = rt_unwind_bp(rule) == RT_UNWIND_BP_SAME;
	row.rbp_saved = rt_unwind_bp(rule) == RT_UNWIND_BP_SAVED;
	if (row.rbp_saved)
		row.rbp_offset = -8 * (int64_t)rt_unwind_slot(rule);
	if (!row.rbp_same && !row.rbp_saved)
		return false;
	*ret = row;
	return true;
}

static bool read_section(struct rt_dwarf *dwarf, struct rt_fdes *fdes)
{
	uint64_t cie_at = UINT64_MAX;
	struct rt_frame_cie cie = { 0 };
	struct rt_frame_entry e;
	bool known = false;

	for (size_t at = 0; rt_frame_entry_read(&fdes->section, at, &e); at = e.next) {
		struct rt_frame_fde f;
		struct rt_fde fde;

		if (!e.body.data || e.is_cie)
			continue;
		/* neighbours mostly share their CIE */
		if (e.cie != cie_at)
			known = rt_frame_cie_read(&fdes->section, e.cie, &cie);
		cie_at = e.cie;
		if (!known || !rt_frame_fde_read(&fdes->section, &e, &cie, &f) || !rt_dwarf_in_code(dwarf, f.start))
			continue;
		fde = (struct rt_fde){ .start = f.start, .end = f.end, .at = at, .lsda = f.lsda };
		if (fdes->list.len >= RT_FDES_MAX)
			break;
		if (!rt_vec_push(&fdes->list, fde))
			return false;
	}
	return true;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct rt_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void read_fdes(struct rt_dwarf *dwarf)
{
	struct rt_fdes *eh = &dwarf->fdes[0], *frame = &dwarf->fdes[1];
	struct rt_elfaddr at;

	dwarf->fdes_read = true;
	if (!dwarf->image->is_64)
		return;
	eh->section.eh = true;
	if (rt_image_section(dwarf->image, ".eh_frame", &eh->section.bytes, &at))
		eh->section.address = at.v;
	else
		eh->section.bytes = rt_bytes_make(NULL, 0);
	frame->section.bytes = debug_frame(dwarf);
	for (size_t i = 0; i < 2; i++) {
		struct rt_fdes *fdes = &dwarf->fdes[i];

		fdes->section.big_endian = dwarf->image->big_endian;
		if (!read_section(dwarf, fdes))
			rt_vec_deinit(&fdes->list);
		else if (fdes->list.len)
			qsort(fdes->list.data, fdes->list.len, sizeof(*fdes->list.data), compare_fdes);
	}
}

/* The first one that starts behind addr: its index, or the number of all. */
static size_t first_behind(const struct rt_fdes *fdes, uint64_t addr)
{
	size_t lo = 0, hi = fdes->list.len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (fdes->list.data[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The one that starts last before addr, or there. */
static const struct rt_fde *find(const struct rt_fdes *fdes, uint64_t addr)
{
	size_t behind = first_behind(fdes, addr);

	return behind && addr < fdes->list.data[behind - 1].end ? &fdes->list.data[behind - 1] : NULL;
}

const struct rt_fde *rt_fde_find(struct rt_dwarf *dwarf, struct rt_elfaddr addr,
				 const struct rt_frame_section **ret_section)
{
	if (!dwarf->fdes_read)
		read_fdes(dwarf);
	/* .eh_frame first: what the program itself unwinds by, and what tells of landing pads */
	for (size_t i = 0; i < 2; i++) {
		const struct rt_fde *fde = find(&dwarf->fdes[i], addr.v);

		if (fde) {
			*ret_section = &dwarf->fdes[i].section;
			return fde;
		}
	}
	return NULL;
}

bool rt_dwarf_next_fde(struct rt_dwarf *dwarf, struct rt_elfaddr from, struct rt_elfaddr *ret_start,
		       struct rt_elfaddr *ret_end)
{
	const struct rt_fde *first = NULL;

	if (!dwarf->fdes_read)
		read_fdes(dwarf);
	for (size_t i = 0; i < 2; i++) {
		const struct rt_fdes *fdes = &dwarf->fdes[i];
		size_t at = first_behind(fdes, from.v - 1);
		const struct rt_fde *fde = at < fdes->list.len ? &fdes->list.data[at] : NULL;

		if (fde && (!first || fde->start < first->start))
			first = fde;
	}
	if (!first)
		return false;
	ret_start->v = first->start;
	ret_end->v = first->end;
	return true;
}

bool rt_dwarf_fde(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_elfaddr *ret_start,
		  struct rt_elfaddr *ret_end, bool *ret_lsda)
{
	const struct rt_frame_section *section;
	const struct rt_fde *fde = rt_fde_find(dwarf, addr, &section);

	if (!fde)
		return false;
	ret_start->v = fde->start;
	ret_end->v = fde->end;
	*ret_lsda = fde->lsda;
	return true;
}
