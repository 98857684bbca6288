/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tiny child that outlives us by a moment. The kernel lets tracees go when we
 * are killed, but a thread that stands at a stop the engine asked for would
 * then take the SIGSTOP for real. The guardian wakes when its pipe closes,
 * continues such processes, removes what the kernel keeps for us, and ends.
 *
 * It holds nothing of the user's: no terminal, no pipe, no directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "engine/tracefs_own.h"
#include "session/internal.h"

#define GUARD_BYTES (RT_GUARD_SLOTS * sizeof(uint32_t))

/* Only async-signal-safe calls: it was forked from a program that may have threads. */
static char state_of(uint32_t pid, bool *ret_traced)
{
	char path[32], text[4096];
	char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strstr(text, "\nTracerPid:\t");
	*ret_traced = at && at[12] != '0';
	at = strstr(text, "\nState:\t");
	return at ? at[8] : 0;
}

/* The kernel lets the tracees go one after the other: look for a while. */
static void continue_stopped(const uint32_t *tgid)
{
	for (int round = 0; round < 25; round++) {
		struct timespec pause = { 0, 20 * 1000 * 1000 };
		bool any = false;

		for (size_t i = 0; i < RT_GUARD_SLOTS; i++) {
			uint32_t pid = __atomic_load_n(&tgid[i], __ATOMIC_RELAXED);
			bool traced = false;
			char state;

			if (!pid || (pid & RT_GUARD_STOPPED_BY_USER))
				continue;
			any = true;
			state = state_of(pid, &traced);
			if (state == 'T' && !traced)
				kill((pid_t)pid, SIGCONT);
		}
		if (!any)
			return;
		nanosleep(&pause, NULL);
	}
}

/* Definitions in tracefs outlive us, and can be removed once our perf events are closed: when we are gone. */
static void remove_definitions(pid_t parent)
{
	for (int round = 0; round < 200; round++) {
		struct timespec pause = { 0, 50 * 1000 * 1000 };

		if (getppid() != parent) {
			size_t busy;
			struct rt_error *err = rt_tracefs_cleanup_stale(AT_FDCWD, &busy);

			if (!err && !busy)
				return;
			rt_error_free(err);
		}
		nanosleep(&pause, NULL);
	}
}

static void guard(int fd, pid_t parent, const uint32_t *tgid)
{
	char byte;
	ssize_t n;

	rt_proc_stand_alone(fd, "reftrace-guard");
	do {
		n = read(0, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 0) {
		continue_stopped(tgid);
		remove_definitions(parent);
	}
	_exit(0);
}

struct rt_error *rt_guardian_start(struct rt_guardian *g)
{
	int fds[2];
	pid_t parent = getpid();
	void *page = mmap(NULL, GUARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return rt_error_nomem();
	if (pipe2(fds, O_CLOEXEC) < 0) {
		int errnum = errno;

		munmap(page, GUARD_BYTES);
		return rt_error_errno(RT_E_SYSTEM, errnum, "cannot make a pipe");
	}
	g->pid = fork();
	if (g->pid < 0) {
		int errnum = errno;

		close(fds[0]);
		close(fds[1]);
		munmap(page, GUARD_BYTES);
		g->pid = 0;
		return rt_error_errno(RT_E_SYSTEM, errnum, "cannot start the guardian process");
	}
	if (g->pid == 0) {
		close(fds[1]);
		guard(fds[0], parent, page);
	}
	close(fds[0]);
	g->pipe = fds[1];
	g->tgid = page;
	return NULL;
}

size_t rt_guardian_add(struct rt_guardian *g, uint32_t tgid)
{
	for (size_t n = 0; g->tgid && n < RT_GUARD_SLOTS; n++) {
		size_t slot = (g->hint + n) % RT_GUARD_SLOTS;

		if (!g->tgid[slot]) {
			__atomic_store_n(&g->tgid[slot], tgid, __ATOMIC_RELAXED);
			g->hint = slot + 1;
			return slot;
		}
	}
	return RT_GUARD_SLOTS;
}

void rt_guardian_mark(struct rt_guardian *g, size_t slot, bool stopped_by_user)
{
	uint32_t value;

	if (!g->tgid || slot >= RT_GUARD_SLOTS)
		return;
	value = g->tgid[slot] & ~RT_GUARD_STOPPED_BY_USER;
	__atomic_store_n(&g->tgid[slot], value | (stopped_by_user ? RT_GUARD_STOPPED_BY_USER : 0), __ATOMIC_RELAXED);
}

void rt_guardian_remove(struct rt_guardian *g, size_t slot)
{
	if (g->tgid && slot < RT_GUARD_SLOTS) {
		__atomic_store_n(&g->tgid[slot], 0, __ATOMIC_RELAXED);
		g->hint = slot;
	}
}

void rt_guardian_stop(struct rt_guardian *g)
{
	if (g->pid > 0) {
		/* if nobody reads, it is gone already; SIGPIPE must not end us for that */
		struct sigaction ignore = { .sa_handler = SIG_IGN }, old;

		sigaction(SIGPIPE, &ignore, &old);
		if (write(g->pipe, "q", 1) < 0)
			kill(g->pid, SIGKILL);
		sigaction(SIGPIPE, &old, NULL);
		while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (g->tgid) {
		close(g->pipe);
		munmap(g->tgid, GUARD_BYTES);
	}
	*g = (struct rt_guardian){ 0 };
}
