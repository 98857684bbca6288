/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Functions by the sorted table of .eh_frame_hdr, which stripped files have as well (LSB, "Exception Frames"). */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "stack.h"

#define ENCODED_UDATA4 0x03
#define ENCODED_SDATA4_RELATIVE 0x3b
#define ENCODED_PCREL_SDATA4 0x1b

struct search {
	uintptr_t pc;
	uintptr_t start;
};

struct entry {
	int32_t start; /* both from the header's own address */
	int32_t fde;
};

static uintptr_t look_up(const char *header, size_t size, uintptr_t pc)
{
	const struct entry *entries = (const struct entry *)(header + 12);
	size_t low = 0, high;
	uint32_t count;

	if (size < 12 || header[0] != 1 || header[1] != ENCODED_PCREL_SDATA4 || header[2] != ENCODED_UDATA4 ||
	    header[3] != ENCODED_SDATA4_RELATIVE)
		return 0;
	memcpy(&count, header + 8, sizeof(count));
	if (count > (size - 12) / sizeof(*entries))
		return 0;
	for (high = count; low < high;) {
		size_t middle = (low + high) / 2;

		if ((uintptr_t)header + (uintptr_t)(intptr_t)entries[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? (uintptr_t)header + (uintptr_t)(intptr_t)entries[low - 1].start : 0;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	const ElfW(Phdr) *header = NULL;
	bool inside = false;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && s->pc - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			inside = true;
		if (p->p_type == PT_GNU_EH_FRAME)
			header = p;
	}
	if (inside && header)
		s->start = look_up((const char *)(info->dlpi_addr + header->p_vaddr), header->p_memsz, s->pc);
	return inside;
}

uintptr_t rc_function_start(uintptr_t pc)
{
	struct search s = { .pc = pc };

	dl_iterate_phdr(visit, &s);
	return s.start;
}

/* the code around an address */
struct range {
	uintptr_t inside, begin, end;
};

static int find_range(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct range *r = arg;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || r->inside - info->dlpi_addr - p->p_vaddr >= p->p_memsz)
			continue;
		r->begin = info->dlpi_addr + p->p_vaddr;
		r->end = r->begin + p->p_memsz;
		return 1;
	}
	return 0;
}

bool rc_function_in_libc(uintptr_t pc)
{
	static struct range libc;
	struct range found = { .inside = (uintptr_t)abort }, self = { .inside = (uintptr_t)rc_function_start };

	if (!__atomic_load_n(&libc.end, __ATOMIC_ACQUIRE)) {
		dl_iterate_phdr(find_range, &found);
		dl_iterate_phdr(find_range, &self);
		if (found.begin == self.begin) /* a static program: all in one */
			found.begin = found.end = UINTPTR_MAX;
		__atomic_store_n(&libc.begin, found.begin, __ATOMIC_RELAXED);
		__atomic_store_n(&libc.end, found.end, __ATOMIC_RELEASE);
	}
	return pc >= __atomic_load_n(&libc.begin, __ATOMIC_RELAXED) && pc < libc.end;
}
