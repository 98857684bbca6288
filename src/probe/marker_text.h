/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which arguments of a marker are texts. Its note says sizes and signs alone, so a `char *` looks like any pointer. It
 * is one where debug information says that a variable of that type is just where the operand is, or where the marker is
 * one whose arguments everybody knows.
 */
#pragma once

#include "dwarf/variable.h"
#include "elf/sdt.h"

/* Bit n - 1: argument n is a text, for n up to 32. dwarf: of the image; NULL without debug information. */
uint32_t rt_marker_texts(const struct rt_image *image, struct rt_dwarf *dwarf, const struct rt_sdt_marker *marker);
