/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's memory as an ELF file (/proc/kcore), and what of it is code: the kernel's own text and that of its
 * modules, which is all that perf keeps in its cache. The file itself is too large to be read, and cannot be mapped.
 */
#pragma once

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"

#define RT_KCORE_HEAD_MAX (64u << 10) /* bytes at the start of a kcore that tell all about it */
#define RT_KCORE_PIECES_MAX 8

/* Memory in [start, start + size) of the running kernel. */
struct rt_kcore_piece {
	struct rt_elfaddr start;
	uint64_t size;
	struct rt_foff from; /* in the kcore */
	struct rt_foff to;   /* in the copy */
};

/* How a copy is made: its head at 0, then each piece at its place. */
struct rt_kcore {
	struct rt_kcore_piece pieces[RT_KCORE_PIECES_MAX];
	size_t count;
	uint8_t head[64 + 56 * RT_KCORE_PIECES_MAX];
	size_t head_size;
};

/*
 * head: the first bytes of the kcore, up to RT_KCORE_HEAD_MAX. kallsyms, modules: those of /proc beside it; text from
 * _stext to _etext (else from the first to the last function), modules from the first one's start to the last function
 * in a module and a page more. page: bytes, what all is rounded to. RT_E_FORMAT: it is no kcore of 64 bits and this
 * byte order, or the names do not say where code is; RT_E_PRIVILEGE: the names have no addresses.
 */
RT_CHECK struct rt_error *rt_kcore_plan(struct rt_bytes head, struct rt_bytes kallsyms, struct rt_bytes modules,
					uint64_t page, struct rt_kcore *ret);

/* Same modules at the same addresses, by two texts of /proc/modules, and the same place of the kernel, by kallsyms. */
bool rt_kcore_is_same(struct rt_bytes kallsyms, struct rt_bytes modules, struct rt_bytes other_kallsyms,
		      struct rt_bytes other_modules);
