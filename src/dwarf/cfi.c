/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call frame information: one unwind row per question from libdw, and an index
 * of the FDEs (libdw does not tell their bounds and landing pads).
 */
#include "dwarf/pointer.h"
#include "dwarf/unit.h"

#include <elf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define RT_FDES_MAX (4u << 20)

enum { X86_64_RBP = 6, X86_64_RSP = 7, X86_64_RA = 16 };

/* The register of the caller is at CFA + *ret. */
static bool saved_at(const Dwarf_Op *ops, size_t nops, int64_t *ret)
{
	if (nops < 1 || nops > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (nops == 2 && ops[1].atom != DW_OP_plus_uconst)
		return false;
	*ret = nops == 2 ? (int64_t)ops[1].number : 0;
	return true;
}

static bool read_row(Dwarf_Frame *frame, struct rt_cfi_row *ret)
{
	struct rt_cfi_row row = { 0 };
	Dwarf_Op memory[3], *ops;
	int64_t offset;
	size_t nops;

	if (dwarf_frame_cfa(frame, &ops, &nops) != 0 || nops != 1)
		return false;
	if (ops[0].atom == DW_OP_bregx) {
		if (ops[0].number > X86_64_RSP)
			return false;
		row.cfa_reg = ops[0].number;
		row.cfa_offset = (int64_t)ops[0].number2;
	} else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		row.cfa_reg = ops[0].atom - DW_OP_breg0;
		row.cfa_offset = (int64_t)ops[0].number;
	} else {
		return false;
	}
	if (row.cfa_reg != X86_64_RBP && row.cfa_reg != X86_64_RSP)
		return false;
	if (dwarf_frame_register(frame, X86_64_RBP, memory, &ops, &nops) != 0)
		return false;
	if (nops == 0)
		row.rbp_same = ops == NULL;
	else if (saved_at(ops, nops, &row.rbp_offset))
		row.rbp_saved = true;
	else
		return false;
	if (dwarf_frame_register(frame, X86_64_RA, memory, &ops, &nops) != 0)
		return false;
	if (nops == 0)
		row.ra_undefined = true;
	else if (!saved_at(ops, nops, &offset) || offset != -8)
		return false;
	*ret = row;
	return true;
}

bool rt_dwarf_cfi(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_cfi_row *ret)
{
	Dwarf_Frame *frame = NULL;
	bool ok;

	if (dwarf->image->machine != RT_MACHINE_X86_64)
		return false;
	if (!(dwarf->eh && dwarf_cfi_addrframe(dwarf->eh, addr.v, &frame) == 0) &&
	    !(dwarf->frame && dwarf_cfi_addrframe(dwarf->frame, addr.v, &frame) == 0))
		return false;
	ok = read_row(frame, ret);
	free(frame);
	return ok;
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

static void read_section(struct rt_dwarf *dwarf, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr, bool eh)
{
	Elf_Data *data = shdr->sh_flags & SHF_COMPRESSED ? NULL : elf_rawdata(scn, NULL);
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	bool big = dwarf->image->big_endian, have_cie = false;
	Dwarf_Off off = 0, next, cie_off = 0;
	struct cie cie = { 0 };
	int rc;

	if (!data || !data->d_buf || !ident)
		return;
	for (; off < data->d_size; off = next) {
		Dwarf_CFI_Entry entry;
		struct rt_fde fde;

		next = off;
		rc = dwarf_next_cfi(ident, data, eh, off, &next, &entry);
		if (rc == 1 || next <= off)
			return;
		if (rc != 0 || dwarf_cfi_cie_p(&entry))
			continue;
		/* neighbours mostly share their CIE */
		if (!have_cie || cie_off != entry.fde.CIE_pointer) {
			Dwarf_CFI_Entry parent;
			Dwarf_Off behind;

			have_cie = entry.fde.CIE_pointer < data->d_size &&
				   dwarf_next_cfi(ident, data, eh, entry.fde.CIE_pointer, &behind, &parent) == 0 &&
				   dwarf_cfi_cie_p(&parent) && read_cie(&parent.cie, big, &cie);
			cie_off = entry.fde.CIE_pointer;
		}
		if (!have_cie || !read_fde(&entry.fde, &cie, data, shdr->sh_addr, big, &fde))
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
	Elf *elf = dwarf->image->elf;
	Elf_Scn *scn = NULL;
	size_t names;

	dwarf->fdes_read = true;
	if (!elf || !dwarf->image->is_64 || elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		GElf_Shdr shdr;
		const char *name;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (name && strcmp(name, ".eh_frame") == 0)
			read_section(dwarf, elf, scn, &shdr, true);
		else if (name && strcmp(name, ".debug_frame") == 0)
			read_section(dwarf, elf, scn, &shdr, false);
	}
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
