/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits for children as GLib does: polls a pidfd, and does not wait any more then. Prints how many of 100 were not
 * there when the pidfd said so, or had another status.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { CHILDREN = 100 };

static int was_missed(int status)
{
	siginfo_t info = { 0 };
	pid_t pid = fork();
	struct pollfd end = { .events = POLLIN };
	int missed;

	if (!pid) {
		free(malloc(16));
		_exit(status);
	}
	end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (end.fd < 0 || poll(&end, 1, -1) != 1)
		abort();
	missed = waitid((idtype_t)P_PIDFD, (id_t)end.fd, &info, WEXITED | WNOHANG) || info.si_pid != pid ||
		 info.si_status != status;
	waitpid(pid, NULL, 0);
	close(end.fd);
	return missed;
}

int main(void)
{
	int missed = 0;

	for (int i = 0; i < CHILDREN; i++)
		missed += was_missed(i);
	printf("missed %d\n", missed);
	return 0;
}
