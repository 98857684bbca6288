/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * passed-on MODE [ROUNDS]: descriptors that come with messages, and those that outlive an exec.
 *
 *     ok     all are closed, or closed by the exec, or kept on purpose across it
 *     bug    `take_over` keeps every fourth descriptor that it was sent
 *     many   several at once, by recvmsg() and recvmmsg(), some cut off for lack of room, with credentials before them
 *     exec   half of what is open has O_CLOEXEC; the next image says how many it has ("fd N"), and closes two
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { AT_ONCE = 5, ROOM = 3, OPENED = 6 };

static void must(int fine)
{
	if (!fine) {
		perror("passed-on");
		exit(1);
	}
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and dir's own */
}

static void send_all(int socket, const int *fds, int n)
{
	char control[CMSG_SPACE(sizeof(int) * AT_ONCE)] = { 0 }, byte = 0;
	struct iovec io = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof(int) * n)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	must(sendmsg(socket, &m, 0) == 1);
}

/* what came with a message; room for so many, beside the credentials */
static int gather(struct msghdr *m, int *ret)
{
	int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(ret, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
		n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	}
	return n;
}

struct letter {
	char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int) * AT_ONCE)], byte;
	struct iovec io;
};

static struct msghdr empty(struct letter *l, int room)
{
	l->io = (struct iovec){ &l->byte, 1 };
	return (struct msghdr){ .msg_iov = &l->io,
				.msg_iovlen = 1,
				.msg_control = l->control,
				.msg_controllen = CMSG_SPACE(sizeof(struct ucred)) + CMSG_LEN(sizeof(int) * room) };
}

NOINLINE static int receive(int socket, int *ret, int room)
{
	struct letter l;
	struct msghdr m = empty(&l, room);

	must(recvmsg(socket, &m, MSG_CMSG_CLOEXEC) == 1);
	return gather(&m, ret);
}

NOINLINE static void take_over(int socket, int round, int bug)
{
	struct letter l;
	struct msghdr m = empty(&l, 1);
	int fd;

	must(recvmsg(socket, &m, 0) == 1 && gather(&m, &fd) == 1);
	if (bug && round % 4 == 1)
		return;
	must(!close(fd));
}

NOINLINE static void many(const int pair[2])
{
	int fds[AT_ONCE] = { 0, 1, 2, 1, 0 }, got[AT_ONCE], n;
	struct mmsghdr v[2] = { 0 };
	struct letter l[2];

	send_all(pair[0], fds, AT_ONCE);
	must((n = receive(pair[1], got, AT_ONCE)) == AT_ONCE);
	while (n--)
		must(!close(got[n]));
	send_all(pair[0], fds, AT_ONCE);
	must((n = receive(pair[1], got, ROOM)) == ROOM);
	while (n--)
		must(!close(got[n]));
	for (int i = 0; i < 2; i++) {
		send_all(pair[0], fds, AT_ONCE);
		v[i].msg_hdr = empty(&l[i], AT_ONCE);
	}
	must(recvmmsg(pair[1], v, 2, 0, NULL) == 2);
	for (int i = 0; i < 2; i++) {
		must((n = gather(&v[i].msg_hdr, got)) == AT_ONCE);
		while (n--)
			must(!close(got[n]));
	}
}

NOINLINE static void open_some(int n)
{
	for (int i = 0; i < n; i++)
		must(open("/dev/null", O_RDONLY | (i % 2 ? O_CLOEXEC : 0)) >= 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "ok";
	int rounds = argc > 2 ? atoi(argv[2]) : 40, pair[2], fd = 0, lost = 0, before, on = 1;

	if (!strcmp(mode, "again")) {
		/* two of those that live on: 3 is the first that was opened */
		must(!close(3) && !close(5));
		open_some(2);
		printf("fd %d\n", count_descriptors());
		return 0;
	}
	must(!close_range(3, ~0u, 0)); /* what our parents left */
	if (!strcmp(mode, "exec")) {
		open_some(OPENED);
		execl("/proc/self/exe", argv[0], "again", NULL);
		return 1;
	}
	before = count_descriptors();
	must(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) &&
	     !setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	for (int i = 0; i < rounds; i++) {
		if (!strcmp(mode, "many"))
			many(pair);
		send_all(pair[0], &fd, 1);
		take_over(pair[1], i, !strcmp(mode, "bug"));
		lost += !strcmp(mode, "bug") && i % 4 == 1;
	}
	must(!close_range(200, 300, CLOSE_RANGE_CLOEXEC)); /* closes nothing */
	must(!close_range(3, 4, CLOSE_RANGE_CLOEXEC));
	printf("fd %d\nlost %d\n", count_descriptors() - before, lost);
	return 0;
}
