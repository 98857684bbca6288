/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Passes a guarded marker once for each line that it reads, and says after each how often it was wanted and what its
 * counter holds. "ready" comes first. At the end, all that it did.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <sys/sdt.h>

__extension__ unsigned short guest_pass_semaphore __attribute__((unused)) __attribute__((section(".probes")));

int main(void)
{
	unsigned passed = 0;
	char line[64];

	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready 0");
	for (unsigned i = 0; fgets(line, sizeof(line), stdin); i++) {
		unsigned short counter = *(volatile unsigned short *)&guest_pass_semaphore;

		if (counter) {
			passed++;
			STAP_PROBE2(guest, pass, i, passed);
		}
		printf("counter %u passed %u\n", counter, passed);
	}
	return 0;
}
