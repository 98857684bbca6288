// SPDX-License-Identifier: GPL-2.0-only
/* Preloaded into a program whose sites are marked: the marks count at a fixed address, which is a file here. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HITS_ADDRESS ((void *)0x200000000000)
#define HITS_BYTES (1 << 20)

__attribute__((constructor)) static void hits_map(void)
{
	const char *path = getenv("RT_MUTATE_HITS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	mmap(HITS_ADDRESS, HITS_BYTES, PROT_READ | PROT_WRITE,
	     MAP_FIXED_NOREPLACE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), fd, 0);
	if (fd >= 0)
		close(fd);
}
