/* SPDX-License-Identifier: GPL-2.0-only */
/* Opens a file that is not there so many times, in the same way each time: what probes of the kernel are held to. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct open_how how = { .flags = O_RDWR | O_NOFOLLOW };
	int times = argc > 2 ? atoi(argv[2]) : 0, missing = 0;

	for (int i = 0; i < times; i++)
		missing += syscall(SYS_openat2, AT_FDCWD, argv[1], &how, sizeof(how)) < 0 && errno == ENOENT;
	printf("opens %d missing %d flags 0x%llx\n", times, missing, (unsigned long long)how.flags);
	return 0;
}
