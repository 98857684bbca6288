/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/stopped.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <linux/elf.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "maps/maps.h"

enum { MAPS_MAX = 64 << 20, GATE_BYTES = 256 << 10, TRIES = 16, RED_ZONE = 128, CALL_BYTES = 2, XSTATE_MAX = 16 << 10 };

/* syscall; mov $15 (rt_sigreturn), %eax; syscall */
static const uint8_t gate_code[] = { 0x0f, 0x05, 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

struct rt_error *rt_stopped_open(struct rt_stopped *r, uint32_t pid, uint32_t tid)
{
	char path[32];

	*r = (struct rt_stopped){ .pid = pid, .tid = tid, .memory = -1 };
	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	r->memory = open(path, O_RDWR | O_CLOEXEC);
	if (r->memory < 0 && errno == ENOENT)
		return rt_error_new(RT_E_NO_PROCESS, "no process %u", pid);
	if (r->memory < 0)
		return rt_error_errno(RT_E_PRIVILEGE, errno, "cannot open the memory of process %u", pid);
	return NULL;
}

bool rt_stopped_read(const struct rt_stopped *r, uint64_t at, void *data, size_t size)
{
	return pread(r->memory, data, size, (off_t)at) == (ssize_t)size;
}

bool rt_stopped_write(const struct rt_stopped *r, uint64_t at, const void *data, size_t size)
{
	return pwrite(r->memory, data, size, (off_t)at) == (ssize_t)size;
}

/* A syscall instruction in a mapping, if there is one. */
static void find(struct rt_stopped *r, const struct rt_maps_line *line)
{
	size_t size = line->end - line->start < GATE_BYTES ? line->end - line->start : GATE_BYTES;
	_cleanup_free_ uint8_t *code = malloc(size);
	const uint8_t *at;

	if (!code || !rt_stopped_read(r, line->start, code, size))
		return;
	at = memmem(code, size, "\x0f\x05", 2);
	if (at)
		r->gate = line->start + (uint64_t)(at - code);
}

/*
 * A system call, and rt_sigreturn(2), in what nobody uses at the end of the vdso. false: there is no such place, or
 * it cannot be written.
 */
static bool write_gate(struct rt_stopped *r, const struct rt_maps_line *vdso)
{
	static const uint8_t nothing[sizeof(gate_code)];
	uint64_t at = vdso->end - sizeof(gate_code);
	uint8_t now[sizeof(gate_code)];

	if (!rt_stopped_read(r, at, now, sizeof(now)))
		return false;
	if (memcmp(now, gate_code, sizeof(now)) != 0) {
		if (memcmp(now, nothing, sizeof(now)) != 0 || !rt_stopped_write(r, at, gate_code, sizeof(gate_code)))
			return false;
		r->written = at;
	}
	r->gate = at;
	r->heals = true;
	return true;
}

/* In the vdso alone, or in any code. */
static struct rt_error *search(struct rt_stopped *r, bool vdso)
{
	_cleanup_free_ char *text = NULL;
	struct rt_maps_line line;
	char path[32], *cursor;

	snprintf(path, sizeof(path), "/proc/%u/maps", r->pid);
	RT_TRY(rt_fs_read(AT_FDCWD, path, MAPS_MAX, &text, NULL));
	cursor = text;
	while (!r->gate && rt_maps_parse_line(&cursor, &line)) {
		if (vdso ? !strcmp(line.path, "[vdso]") && !write_gate(r, &line)
			 : line.executable && !strstr(line.path, "vsyscall"))
			find(r, &line);
	}
	return NULL;
}

/* Every process has the vdso, and it is small. */
static struct rt_error *find_gate(struct rt_stopped *r)
{
	RT_TRY(search(r, true));
	if (!r->gate)
		RT_TRY(search(r, false));
	return r->gate ? NULL
		       : rt_error_new(RT_E_UNSUPPORTED, "process %u has no instruction that calls the system", r->pid);
}

/* Waits for its next stop; its end is left to be waited for. */
static bool await(struct rt_stopped *r, int *ret_status)
{
	siginfo_t info;

	do {
		info.si_pid = 0;
	} while (waitid(P_PID, r->tid, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL) < 0 && errno == EINTR);
	r->gone = info.si_pid != (pid_t)r->tid || (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) ||
		  info.si_status >> 8 == PTRACE_EVENT_EXIT;
	if (r->gone)
		return false;
	return waitpid((pid_t)r->tid, ret_status, __WALL) == (pid_t)r->tid;
}

/* Lets it run until it enters or leaves a system call. */
static bool run(struct rt_stopped *r, uint8_t op)
{
	for (unsigned i = 0; i < TRIES; i++) {
		struct __ptrace_syscall_info info = { 0 };
		int status;

		if (ptrace(PTRACE_SYSCALL, r->tid, 0, 0) < 0 || !await(r, &status))
			return false;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) &&
		    ptrace(PTRACE_GET_SYSCALL_INFO, r->tid, sizeof(info), &info) > 0 && info.op == op)
			return true;
		/* all signals wait but this one, which cannot */
		r->stop_again |= WSTOPSIG(status) == SIGSTOP;
	}
	return false;
}

static bool is_at_exec(const struct rt_stopped *r)
{
	siginfo_t info;

	return !ptrace(PTRACE_GETSIGINFO, r->tid, 0, &info) && info.si_code == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
}

/* A system call that the stop has interrupted is begun anew afterwards, as the kernel would do it. Was there one? */
static bool restart(struct user_regs_struct *regs)
{
	enum { SYS = 512, NOINTR = 513, NOHAND = 514, BLOCK = 516 };
	int64_t result = (int64_t)regs->rax;

	if ((int64_t)regs->orig_rax < 0 ||
	    (result != -SYS && result != -NOINTR && result != -NOHAND && result != -BLOCK))
		return false;
	/* BLOCK: it waits for what is left of its time */
	regs->rax = result == -BLOCK ? SYS_restart_syscall : regs->orig_rax;
	regs->rip -= CALL_BYTES;
	return true;
}

static struct rt_error *gone(const struct rt_stopped *r)
{
	return rt_error_new(RT_E_NO_PROCESS, "process %u has ended", r->pid);
}

/* The frame on its stack: what it goes on with when we are gone. false: it cannot be. */
static bool write_frame(struct rt_stopped *r)
{
	_cleanup_free_ uint8_t *xstate = malloc(XSTATE_MAX);
	struct iovec regset = { xstate, XSTATE_MAX };

	r->frame = malloc(sizeof(*r->frame));
	r->below = malloc(RT_SIGFRAME_MAX);
	return xstate && r->frame && r->below && !ptrace(PTRACE_GETREGSET, r->tid, NT_X86_XSTATE, &regset) &&
	       rt_sigframe_make(&r->regs, r->mask, xstate, regset.iov_len, r->regs.rsp - RED_ZONE, r->frame) &&
	       rt_stopped_read(r, r->frame->start, r->below, r->frame->size) &&
	       rt_stopped_write(r, r->frame->start, r->frame->bytes, r->frame->size);
}

static void drop_frame(struct rt_stopped *r)
{
	free(r->frame);
	free(r->below);
	r->frame = NULL;
	r->below = NULL;
}

/* Registers with which it puts itself right. */
static struct user_regs_struct healing(const struct rt_stopped *r)
{
	struct user_regs_struct regs = r->regs;

	regs.orig_rax = UINT64_MAX;
	if (r->frame) {
		regs.rip = r->gate + CALL_BYTES;
		regs.rsp = r->frame->start;
	}
	return regs;
}

static struct rt_error *begin(struct rt_stopped *r)
{
	uint64_t all = ~(1ull << (SIGTRAP - 1));
	struct user_regs_struct regs;

	/* the kernel still has to write the result of exec */
	if (is_at_exec(r) && !run(r, PTRACE_SYSCALL_INFO_EXIT))
		return gone(r);
	if (ptrace(PTRACE_GETSIGMASK, r->tid, sizeof(r->mask), &r->mask) < 0 ||
	    ptrace(PTRACE_GETREGS, r->tid, 0, &r->regs) < 0)
		return gone(r);
	r->restarts = restart(&r->regs);
	if (!r->heals || !write_frame(r))
		drop_frame(r);
	r->begun = true;
	regs = healing(r);
	if (ptrace(PTRACE_SETREGS, r->tid, 0, &regs) < 0 || ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(all), &all) < 0)
		return gone(r);
	return NULL;
}

/* Has what calls need, and the thread's registers are ours to change. */
static struct rt_error *need(struct rt_stopped *r)
{
	if (!r->gate)
		RT_TRY(find_gate(r));
	return r->begun ? NULL : begin(r);
}

struct rt_error *rt_stopped_call(struct rt_stopped *r, long number, const uint64_t args[6], int64_t *ret)
{
	struct user_regs_struct regs;

	RT_TRY(need(r));
	regs = healing(r);
	regs.rip = r->gate;
	regs.rax = (uint64_t)number;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	if (ptrace(PTRACE_SETREGS, r->tid, 0, &regs) < 0 || !run(r, PTRACE_SYSCALL_INFO_ENTRY) ||
	    !run(r, PTRACE_SYSCALL_INFO_EXIT) || ptrace(PTRACE_GETREGS, r->tid, 0, &regs) < 0)
		return gone(r);
	*ret = (int64_t)regs.rax;
	return NULL;
}

/*
 * Not by single steps: a thread whose tracer dies after one is killed by the next. It stops as it calls
 * rt_sigreturn(2), and does not.
 */
struct rt_error *rt_stopped_do(struct rt_stopped *r, uint64_t at, uint64_t rdi, uint64_t rsi)
{
	struct user_regs_struct regs;

	RT_TRY(need(r));
	regs = healing(r);
	regs.rip = at;
	regs.rdi = rdi;
	regs.rsi = rsi;
	if (ptrace(PTRACE_SETREGS, r->tid, 0, &regs) < 0)
		return gone(r);
	if (!run(r, PTRACE_SYSCALL_INFO_ENTRY) && !r->gone)
		return rt_error_new(RT_E_UNSUPPORTED, "process %u cannot do what is to be done in its name", r->pid);
	regs = healing(r);
	if (r->gone || ptrace(PTRACE_SETREGS, r->tid, 0, &regs) < 0 || !run(r, PTRACE_SYSCALL_INFO_EXIT))
		return gone(r);
	return NULL;
}

bool rt_stopped_send(struct rt_stopped *r, uint32_t tid, uint64_t pc)
{
	struct user_regs_struct regs;

	if (!r->begun || tid != r->tid) {
		if (ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0)
			return false;
		regs.rip = pc;
		return !ptrace(PTRACE_SETREGS, tid, 0, &regs);
	}
	r->regs.rip = r->restarts ? pc - CALL_BYTES : pc;
	return !r->frame || rt_stopped_write(r, r->frame->start + RT_SIGFRAME_PC, &r->regs.rip, sizeof(r->regs.rip));
}

struct rt_error *rt_stopped_stack(struct rt_stopped *r, uint64_t *ret)
{
	RT_TRY(need(r));
	*ret = (r->frame ? r->frame->start : r->regs.rsp - RED_ZONE) & ~63ull;
	return NULL;
}

/* Its signal mask first: as long as it is to put itself right, that is right anyway. */
static void end(struct rt_stopped *r)
{
	struct user_regs_struct regs = r->regs;

	/* nothing is to be begun anew once more */
	regs.orig_rax = UINT64_MAX;
	if (ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(r->mask), &r->mask) < 0 ||
	    ptrace(PTRACE_SETREGS, r->tid, 0, &regs) < 0)
		rt_log_debug("engine", "cannot put the registers of %u back: %s", r->tid, strerror(errno));
	if (r->frame)
		(void)rt_stopped_write(r, r->frame->start, r->below, r->frame->size);
	if (r->stop_again)
		syscall(SYS_tgkill, r->pid, r->tid, SIGSTOP);
}

void rt_stopped_close(struct rt_stopped *r)
{
	static const uint8_t nothing[sizeof(gate_code)];

	if (r->begun && !r->gone)
		end(r);
	if (r->written && !r->gone)
		(void)rt_stopped_write(r, r->written, nothing, sizeof(nothing));
	if (r->memory >= 0)
		close(r->memory);
	drop_frame(r);
	*r = (struct rt_stopped){ .memory = -1 };
}
