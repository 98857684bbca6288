/* SPDX-License-Identifier: GPL-2.0-only */
/* A library that a real program loads: each function uses one thing, and forgets it one time in five if told so. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EVERY = 5, BYTES = 20000 };

int use_block(int n, int bug)
{
	char *block = malloc(300 + (size_t)n);

	if (!block)
		return -1;
	memset(block, n, 300);
	if (bug && n % EVERY == 2)
		return 1;
	free(block);
	return 0;
}

int use_mapping(int n, int bug)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -1;
	at[n] = 1;
	if (bug && n % EVERY == 2)
		return 1;
	return munmap(at, BYTES);
}

int use_fd(int n, int bug)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (bug && n % EVERY == 2)
		return 1;
	return close(fd);
}

/* Preloaded into any program: before its main() */
__attribute__((constructor)) static void start(void)
{
	const char *bug = getenv("SEEDED");

	for (int n = 0; bug && n < 100; n++) {
		use_block(n, *bug == '1');
		use_mapping(n, *bug == '1');
		use_fd(n, *bug == '1');
	}
}
