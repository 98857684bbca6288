/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Descriptors and mappings in all the ways in which they come and go. At its end it says how many descriptors more than
 * at its beginning the kernel says it has ("fd N"), and how often one was forgotten ("lost N").
 *
 *     kernel ok|bug [ROUNDS]
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { PAGE = 4096, PAGES = 8, LEAKS_EVERY = 7 };

static int bug, descriptors_before;

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and dir's own */
}

static void must(int fine)
{
	if (!fine) {
		perror("kernel");
		exit(1);
	}
}

/* the reader that some errors leave open */
NOINLINE static int read_config(int round)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	must(fd >= 0);
	if (round % LEAKS_EVERY == 3 && bug)
		return -1;
	must(!close(fd));
	return 0;
}

/* a buffer that some errors leave mapped; what points to it is gone */
NOINLINE static int read_buffer(int round)
{
	char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED);
	at[0] = (char)round;
	if (round % LEAKS_EVERY == 5 && bug)
		return -1;
	return munmap(at, PAGES * PAGE);
}

NOINLINE static void all_kinds(void)
{
	int pair[2], fds[8], n = 0;
	FILE *file = fopen("/dev/null", "r");

	must(file && !pipe2(pair, O_CLOEXEC));
	must(!close(pair[0]) && !close(pair[1]));
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fds[n++] = pair[0];
	fds[n++] = pair[1];
	fds[n++] = dup(pair[0]);
	fds[n++] = fcntl(pair[0], F_DUPFD_CLOEXEC, 100);
	fds[n++] = eventfd(0, 0);
	fds[n++] = epoll_create1(0);
	fds[n++] = timerfd_create(CLOCK_MONOTONIC, 0);
	fds[n++] = (int)syscall(SYS_openat, AT_FDCWD, "/dev/zero", O_RDONLY);
	must(dup2(fds[4], fds[7]) == fds[7]); /* over an open one */
	must(dup2(fds[4], 200) == 200);       /* over none */
	must(close(1000) < 0 && open("/nowhere/at/all", O_RDONLY) < 0);
	for (int i = 0; i < n; i++)
		must(!close(fds[i]));
	must(!close_range(200, ~0u, 0));
	fclose(file);
}

NOINLINE static void pieces(void)
{
	char *at = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *moved;

	must(at != MAP_FAILED);
	/* filled, cut in the middle, at its start, grown elsewhere, and gone in pieces */
	must(mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	     at + PAGE);
	must(!munmap(at + 3 * PAGE, PAGE));
	must(!munmap(at, PAGE));
	must(!munmap(at + 4 * PAGE, (PAGES - 4) * PAGE) && !munmap(at + PAGE, 2 * PAGE));
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(at != MAP_FAILED);
	moved = mremap(at, PAGE, PAGES * PAGE, MREMAP_MAYMOVE);
	must(moved != MAP_FAILED);
	/* over the whole of it */
	must(mmap(moved, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == moved);
	must(!munmap(moved, PAGES * PAGE));
}

static void *work(void *arg)
{
	for (int i = 0; i < 50; i++)
		all_kinds();
	return arg;
}

NOINLINE static void by_a_child(void)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		all_kinds();
		must(!close_range(3, ~0u, 0)); /* its parent's, too */
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 70, lost = 0, kept[2];
	pthread_t threads[4];

	bug = argc > 1 && !strcmp(argv[1], "bug");
	must(!close_range(3, ~0u, 0)); /* what our parents left */
	descriptors_before = count_descriptors();
	/* kept to the end on purpose */
	must(!pipe(kept));
	for (int i = 0; i < rounds; i++) {
		lost += read_config(i) < 0;
		(void)read_buffer(i);
		all_kinds();
		pieces();
	}
	by_a_child();
	for (int i = 0; i < 4; i++)
		must(!pthread_create(&threads[i], NULL, work, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("fd %d\nlost %d\n", count_descriptors() - descriptors_before, lost);
	return 0;
}
