/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Passes its own markers and, where a library is named, those of that: sdt-host [LIBRARY] [wait]. Says how often; with
 * wait it says "ready" first and goes on, a line of standard input for each round.
 */
#define SDT_USE_VARIADIC
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/sdt.h>

/* one name, arguments of two types: two formats */
static void twice(int number, const char *name)
{
	DTRACE_PROBE2(host, both, number, name);
	DTRACE_PROBE2(host, both, (long)number << 40, name);
}

static int serve(int (*plug)(int))
{
	int sum = 0;

	for (int i = 0; i < 5; i++) {
		DTRACE_PROBE1(shared, pass, i);
		twice(i, i % 2 ? "odd" : "even");
		if (plug)
			sum += plug(i);
	}
	return sum;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 && *argv[1] ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*plug)(int) = library ? (int (*)(int))dlsym(library, "plug") : NULL;
	char line[64];

	if (argc > 2 && !strcmp(argv[2], "wait")) {
		puts("ready");
		fflush(stdout);
		while (fgets(line, sizeof(line), stdin)) {
			serve(plug);
			puts("round");
			fflush(stdout);
		}
		return 0;
	}
	printf("sum %d\n", serve(plug));
	return 0;
}
