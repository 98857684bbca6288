/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: the FDE of a place. */
#pragma once

#include "dwarf/entry.h"
#include "dwarf/unit.h"

/* The FDE around addr and the section that it lies in; both valid as long as dwarf. NULL: none. */
const struct rt_fde *rt_fde_find(struct rt_dwarf *dwarf, struct rt_elfaddr addr,
				 const struct rt_frame_section **ret_section);
