/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: what .eh_frame and .debug_frame consist of, CIEs and FDEs (DWARF 5, 6.4.1; .eh_frame: LSB). */
#pragma once

#include "dwarf/frame.h"

struct rt_frame_section {
	struct rt_bytes bytes; /* addresses are of 8 bytes */
	uint64_t address;
	bool eh, big_endian;
};

/* One CIE or FDE, with what it points back to. */
struct rt_frame_entry {
	struct rt_bytes body; /* behind the CIE pointer; data NULL: a terminator */
	size_t at;            /* offset of body */
	bool is_cie;
	uint64_t cie; /* offset of the CIE of an FDE; it may lie anywhere */
	size_t next;  /* where the next entry starts, behind this one */
};
/* The entry at this offset. false: the end, or nothing that could be read on from. */
bool rt_frame_entry_read(const struct rt_frame_section *section, size_t at, struct rt_frame_entry *ret);

/* The CIE at this offset, its own program not yet run. false: none, or of a kind that is not known. */
bool rt_frame_cie_read(const struct rt_frame_section *section, uint64_t at, struct rt_frame_cie *ret);

struct rt_frame_fde {
	uint64_t start, end; /* of its code: [start, end), not empty */
	bool lsda;           /* it has exception landing pads */
	size_t program_at;   /* offset of program in the section */
	struct rt_bytes program;
};
bool rt_frame_fde_read(const struct rt_frame_section *section, const struct rt_frame_entry *entry,
		       const struct rt_frame_cie *cie, struct rt_frame_fde *ret);
