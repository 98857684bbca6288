/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SDT markers with each form of operand, written by hand so that compiler and optimisation change nothing. Says of each
 * what its argument is: `operand NAME VALUE`, in hex; and where its semaphore is. With a first argument it then
 * passes `guarded` again and again while the semaphore is raised, for as many seconds, and says `passed N`.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOTE(name, args, semaphore) \
	".pushsection .note.stapsdt,\"?\",%%note\n" \
	".balign 4\n" \
	".4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n" \
	"992: .balign 4\n" \
	"993: .8byte 990b, _.stapsdt.base, " semaphore "\n" \
	".asciz \"op\"\n" \
	".asciz \"" name "\"\n" \
	".asciz \"" args "\"\n" \
	"994: .balign 4\n" \
	".popsection\n"

/* r11 = p, r10 = n, and eight bytes of stack below what the compiler uses */
#define MARK(name, args) \
	__asm__ volatile( \
		"movq %0, %%r11\n movq %1, %%r10\n movq %0, -192(%%rsp)\n 990: nop\n" NOTE(name, args, "0")::"r"(p), \
		"r"(n) \
		: "r10", "r11", "memory")

__asm__(".pushsection .stapsdt.base,\"aG\",%progbits,.stapsdt.base,comdat\n"
	".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base, "
	"1\n.popsection\n");

uint64_t table[4] = { 0x1111222233334444, 0xf5556666f7778888, 0x9999aaaabbbbcccc, 0x1234 };
__attribute__((section(".probes"))) volatile unsigned short op_guarded_semaphore;

#define SAY(name, value) printf("operand " name " %llx\n", (unsigned long long)(value))

static void all(uint64_t p, uint64_t n)
{
	MARK("reg", "8@%%r11");
	SAY("reg", p);
	MARK("reg32", "4@%%r11d");
	SAY("reg32", (uint32_t)p);
	MARK("reg16", "2@%%r11w");
	SAY("reg16", (uint16_t)p);
	MARK("reg8", "1@%%r11b");
	SAY("reg8", (uint8_t)p);
	MARK("signed", "-4@%%r10d");
	SAY("signed", (int64_t)(int32_t)n);
	p = (uintptr_t)table;
	n = 2;
	MARK("constant", "-4@$-77");
	SAY("constant", -77);
	MARK("memory", "8@(%%r11)");
	SAY("memory", table[0]);
	MARK("offset", "8@8(%%r11)");
	SAY("offset", table[1]);
	MARK("index", "8@(%%r11,%%r10,8)");
	SAY("index", table[2]);
	MARK("whole", "8@8(%%r11,%%r10,8)");
	SAY("whole", table[3]);
	MARK("rip", "8@table(%%rip)");
	SAY("rip", table[0]);
	MARK("rip32", "-4@table+12(%%rip)");
	SAY("rip32", (int64_t)(int32_t)(table[1] >> 32));
	MARK("stack", "8@-192(%%rsp)");
	SAY("stack", p);
	MARK("second", "4@$1 8@%%r11");
	SAY("second", p);
}

int main(int argc, char **argv)
{
	unsigned long passed = 0;
	time_t end;

	setvbuf(stdout, NULL, _IOLBF, 0);
	all(0x1122334455667788, (uint64_t)-1234567);
	printf("semaphore %llx\n", (unsigned long long)(uintptr_t)&op_guarded_semaphore);
	if (argc < 2)
		return 0;
	end = time(NULL) + strtol(argv[1], NULL, 10);
	while (time(NULL) < end) {
		if (!op_guarded_semaphore)
			continue;
		__asm__ volatile("movq %0, %%rdi\n 990: nop\n" NOTE("guarded", "8@%%rdi",
								    "op_guarded_semaphore")::"r"((uintptr_t)table)
				 : "rdi", "memory");
		passed++;
	}
	printf("passed %lu\n", passed);
	return 0;
}
