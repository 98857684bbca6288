// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into a program whose sites are marked: the marks count at a fixed address, which is a file here. Behind
 * it lie the objects that are being put: a free() of the memory around one takes it out, so that the mark behind the
 * put sees that it was the last.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HITS_ADDRESS 0x200000000000
#define HITS_BYTES (1 << 20)
#define SLOTS 4096
#define GRAIN 16
#define FAR 1024 /* an object does not begin further inside of its block */

void __libc_free(void *block);

static uintptr_t *slots;

__attribute__((constructor)) static void hits_map(void)
{
	const char *path = getenv("RT_MUTATE_HITS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *behind = (void *)(HITS_ADDRESS + HITS_BYTES);

	mmap((void *)HITS_ADDRESS, HITS_BYTES, PROT_READ | PROT_WRITE,
	     MAP_FIXED_NOREPLACE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), fd, 0);
	if (fd >= 0)
		close(fd);
	if (mmap(behind, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE,
		 MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == behind)
		slots = behind;
}

void free(void *block)
{
	uintptr_t begin = (uintptr_t)block, end = begin;

	if (slots && block)
		end += malloc_usable_size(block);
	for (uintptr_t at = begin; at < end && at < begin + FAR; at += GRAIN) {
		uintptr_t *slot = &slots[at / GRAIN % SLOTS];

		if (*slot >= begin && *slot < end)
			*slot = 0;
	}
	__libc_free(block);
}
