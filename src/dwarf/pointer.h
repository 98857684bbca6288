/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: pointers as .eh_frame writes them. */
#pragma once

#include "base/bytes.h"

/* DW_EH_PE_* */
enum { RT_PE_OMIT = 0xff, RT_PE_FORMAT = 0x0f, RT_PE_PCREL = 0x10, RT_PE_APPLICATION = 0x70, RT_PE_INDIRECT = 0x80 };

/* Past a pointer of this encoding; false: it does not end, or the encoding is none. */
bool rt_pointer_skip(struct rt_cursor *c, uint8_t encoding);
/* A pointer that lies at address `here`; its raw bits where plain is set (lengths). false: not to be told. */
bool rt_pointer_read(struct rt_cursor *c, uint8_t encoding, uint64_t here, bool plain, uint64_t *ret);
