/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names of code addresses, from .symtab or .dynsym of the file: static functions have no other. */
#ifndef RC_SYMBOL_H
#define RC_SYMBOL_H

#include "stack.h"
#include "text.h"

/* One line a frame: "    #0 name+0x1c (file+0x11c4)". The address in the file is for addr2line. */
void rc_symbol_print(struct rc_text *t, uint32_t stack);

#endif
