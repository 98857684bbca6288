/* SPDX-License-Identifier: GPL-2.0-only */
/* The aarch64 decoder, as fuzz-insn does it for x86-64. */
#define MACHINE RT_MACHINE_AARCH64
#include "fuzz-insn.c"
