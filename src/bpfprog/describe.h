/* SPDX-License-Identifier: GPL-2.0-only */
/* From bpf_prog_info to a catalog entry. */
#pragma once

#include "bpfprog/catalog.h"
#include "bpfprog/copy.h"

/*
 * Fills what info (with its arrays) tells. btf may be empty: then the kernel is asked where
 * it is needed. copy: where map names come from; NULL: the kernel is asked.
 */
void rt_bpf_entry_describe(struct rt_bpf_entry *entry, const struct bpf_prog_info *info, struct rt_bytes btf,
			   const struct rt_bpf_copy *copy);
