/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call frame information: where the frame is at an address, from the rows of the whole image (libdw takes memory by the
 * largest register number that a damaged file names), and an index of the FDEs with their landing pads.
 */
#include "dwarf/pointer.h"
#include "dwarf/rows.h"
#include "dwarf/unit.h"

#include <elf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

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
	uint32_t rule = rows ? rt_unwind_rule(rows, addr) : RT_UNWIND_NONE;
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

/* How the FDEs of one CIE write their pointers. */
struct cie {
	uint8_t fde_encoding, lsda_encoding;
	bool augmented; /* 'z': the FDE has an augmentation block */
};

static bool read_cie(const Dwarf_CIE *in, bool big, struct cie *ret)
{
	struct cie cie = { .fde_encoding = 0, .lsda_encoding = RT_PE_OMIT };
	const char *a = in->augmentation;
	struct rt_cursor c;
	uint8_t byte;

	if (!a || a[0] == '\0') {
		*ret = cie;
		return true;
	}
	if (a[0] != 'z' || !in->augmentation_data)
		return false;
	cie.augmented = true;
	c = rt_cursor_make(rt_bytes_make(in->augmentation_data, in->augmentation_data_size), big);
	for (a++; *a; a++) {
		switch (*a) {
		case 'R':
			if (!rt_cursor_u8(&c, &cie.fde_encoding))
				return false;
			break;
		case 'L':
			if (!rt_cursor_u8(&c, &cie.lsda_encoding))
				return false;
			break;
		case 'P':
			if (!rt_cursor_u8(&c, &byte) || !rt_pointer_skip(&c, byte))
				return false;
			break;
		case 'S':
		case 'B':
			break;
		default:
			return false;
		}
	}
	*ret = cie;
	return true;
}

static bool read_fde(const Dwarf_FDE *in, const struct cie *cie, const Elf_Data *data, uint64_t base, bool big,
		     struct rt_fde *ret)
{
	struct rt_cursor c = rt_cursor_make(rt_bytes_make(in->start, in->end - in->start), big);
	uint64_t at = base + (in->start - (const uint8_t *)data->d_buf), length, size, lsda;

	if (!rt_pointer_read(&c, cie->fde_encoding, at, false, &ret->start) ||
	    !rt_pointer_read(&c, cie->fde_encoding, 0, true, &length))
		return false;
	ret->end = ret->start + length;
	ret->lsda = false;
	if (ret->end <= ret->start)
		return false;
	if (cie->augmented && cie->lsda_encoding != RT_PE_OMIT && rt_cursor_uleb(&c, &size) && size)
		/* written as 0 for functions without landing pads */
		ret->lsda = rt_pointer_read(&c, cie->lsda_encoding, 0, true, &lsda) && lsda != 0;
	return true;
}

static void read_section(struct rt_dwarf *dwarf, struct rt_bytes bytes, uint64_t address, bool eh)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(dwarf->image->elf, NULL);
	Elf_Data data = { .d_buf = (void *)(uintptr_t)bytes.data, .d_size = bytes.size, .d_version = EV_CURRENT };
	bool big = dwarf->image->big_endian, have_cie = false;
	Dwarf_Off off = 0, next, cie_off = 0;
	struct cie cie = { 0 };
	int rc;

	if (!ident)
		return;
	for (; off < data.d_size; off = next) {
		Dwarf_CFI_Entry entry;
		struct rt_fde fde;

		next = off;
		rc = dwarf_next_cfi(ident, &data, eh, off, &next, &entry);
		if (rc == 1 || next <= off)
			return;
		if (rc != 0 || dwarf_cfi_cie_p(&entry))
			continue;
		/* neighbours mostly share their CIE */
		if (!have_cie || cie_off != entry.fde.CIE_pointer) {
			Dwarf_CFI_Entry parent;
			Dwarf_Off behind;

			have_cie = entry.fde.CIE_pointer < data.d_size &&
				   dwarf_next_cfi(ident, &data, eh, entry.fde.CIE_pointer, &behind, &parent) == 0 &&
				   dwarf_cfi_cie_p(&parent) && read_cie(&parent.cie, big, &cie);
			cie_off = entry.fde.CIE_pointer;
		}
		if (!have_cie || !read_fde(&entry.fde, &cie, &data, address, big, &fde))
			continue;
		if (!rt_dwarf_in_code(dwarf, fde.start))
			continue;
		if (dwarf->fdes.len >= RT_FDES_MAX || !rt_vec_push(&dwarf->fdes, fde))
			return;
	}
}

static int compare_fdes(const void *a, const void *b)
{
	const struct rt_fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void read_fdes(struct rt_dwarf *dwarf)
{
	struct rt_elfaddr at;
	struct rt_bytes eh;

	dwarf->fdes_read = true;
	if (!dwarf->image->elf || !dwarf->image->is_64)
		return;
	if (rt_image_section(dwarf->image, ".eh_frame", &eh, &at))
		read_section(dwarf, eh, at.v, true);
	read_section(dwarf, debug_frame(dwarf), 0, false);
	if (dwarf->fdes.len)
		qsort(dwarf->fdes.data, dwarf->fdes.len, sizeof(*dwarf->fdes.data), compare_fdes);
}

bool rt_dwarf_fde(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_elfaddr *ret_start,
		  struct rt_elfaddr *ret_end, bool *ret_lsda)
{
	size_t lo = 0, hi;
	struct rt_fde *fde;

	if (!dwarf->fdes_read)
		read_fdes(dwarf);
	hi = dwarf->fdes.len;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (dwarf->fdes.data[mid].start <= addr.v)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return false;
	fde = &dwarf->fdes.data[lo - 1];
	if (addr.v >= fde->end)
		return false;
	ret_start->v = fde->start;
	ret_end->v = fde->end;
	*ret_lsda = fde->lsda;
	return true;
}
