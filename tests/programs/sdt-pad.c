/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Markers in a file whose parts lie where the linker puts them, moved by PAD bytes in each of them: sections of notes,
 * code and data keep another distance in the file than in memory. Prints what it did; a breakpoint anywhere else than
 * at a marker would change that, or end it.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>

__extension__ unsigned short pad_guarded_semaphore __attribute__((unused)) __attribute__((section(".probes")));
#define pad_plain_semaphore none
static unsigned short none __attribute__((unused)) __attribute__((section(".probes")));

__attribute__((used)) static const char read_only[PAD * 33 + 1] = { 1 };
__attribute__((used)) static char data[PAD * 17 + 1] = { 1 };

__asm__(".text\n.skip " PAD_TEXT ", 0x90\n");

static volatile unsigned sink;

__attribute__((noinline)) static unsigned mix(unsigned n)
{
	for (int i = 0; i < 50; i++)
		n = n * 1664525u + 1013904223u;
	STAP_PROBE1(pad, plain, n);
	sink = n;
	return n;
}

int main(int argc, char **argv)
{
	unsigned sum = 0, guarded = 0;

	/* "wait": until somebody wants the guarded one, ten seconds at most */
	for (unsigned i = 0; argc > 1 && i < 10000 && !*(volatile unsigned short *)&pad_guarded_semaphore; i++)
		usleep(1000);
	for (unsigned i = 0; i < 7; i++) {
		unsigned n = mix(i);

		printf("plain %u\n", n);
		sum += n ^ (unsigned)read_only[0] ^ (unsigned)data[0];
		if (__builtin_expect(*(volatile unsigned short *)&pad_guarded_semaphore, 0)) {
			guarded++;
			STAP_PROBE2(pad, guarded, i, sum);
			printf("guarded %u %u\n", i, sum);
		}
	}
	printf("passed %u\nsum %u\n", guarded, sum);
	return 0;
}
