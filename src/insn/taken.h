/* SPDX-License-Identifier: GPL-2.0-only */
/* What callers do with a result, where no declaration says what it is. */
#pragma once

#include "elf/image.h"
#include "insn/insn.h"

/*
 * Does the code behind a call (after: where it returns to) take what was returned for an address: copies or compares
 * all of the register, reads what it points to, or returns it in turn? false: it does not, or more than some
 * instructions further on.
 */
bool rt_result_is_taken(const struct rt_image *image, struct rt_decoder *decoder, struct rt_elfaddr after);
