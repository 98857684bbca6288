/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread that does something in our name, and whose tracer is killed: it goes on as if nothing had been. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/stopped.h"

/* Shared by test, target and tracer. */
struct shared {
	volatile int ready, done, called;
	uint64_t counter;
};

/* Vector and general registers hold what they are to hold when done is set; 0: they do not. */
static int spin(struct shared *s)
{
	uint64_t ok;

	__asm__ volatile(
		"movl $0x1f80 | 0x6000, -8(%%rsp)\n ldmxcsr -8(%%rsp)\n"
		"mov $0x1234567890abcdef, %%rax\n movq %%rax, %%xmm5\n movq %%rax, %%xmm15\n"
		"mov %%rax, %%rbx\n mov %%rax, %%r8\n mov %%rax, %%r11\n mov %%rax, %%r15\n mov %%rax, %%rcx\n"
		"mov %%rsp, %%r14\n movq $77, -128(%%rsp)\n"
		"movl $1, %c[ready](%[s])\n"
		"1: cmpl $0, %c[done](%[s])\n je 1b\n"
		"xor %%edx, %%edx\n"
		"cmp %%rax, %%rbx\n jne 2f\n cmp %%rax, %%r8\n jne 2f\n cmp %%rax, %%r11\n jne 2f\n"
		"cmp %%rax, %%r15\n jne 2f\n cmp %%rax, %%rcx\n jne 2f\n cmp %%rsp, %%r14\n jne 2f\n"
		"mov $0x1234567890abcdef, %%rbx\n cmp %%rax, %%rbx\n jne 2f\n"
		"movq %%xmm5, %%rax\n cmp %%rax, %%rbx\n jne 2f\n movq %%xmm15, %%rax\n cmp %%rax, %%rbx\n jne 2f\n"
		"cmpq $77, -128(%%rsp)\n jne 2f\n"
		"stmxcsr -8(%%rsp)\n mov -8(%%rsp), %%eax\n and $0x6000, %%eax\n cmp $0x6000, %%eax\n jne 2f\n"
		"inc %%edx\n"
		"2:\n"
		: "=d"(ok)
		: [s] "D"(s), [ready] "i"(__builtin_offsetof(struct shared, ready)),
		  [done] "i"(__builtin_offsetof(struct shared, done))
		: "rax", "rbx", "rcx", "r8", "r11", "r14", "r15", "xmm5", "xmm15", "memory", "cc");
	return (int)ok;
}

/* Exits with 0 when registers, mask and alternate stack are what they were. */
static void target(struct shared *s)
{
	static char other[1 << 16];
	stack_t stack = { .ss_sp = other, .ss_size = sizeof(other) }, after;
	sigset_t mask, now;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGRTMAX);
	if (sigaltstack(&stack, NULL) || sigprocmask(SIG_SETMASK, &mask, NULL) || !spin(s))
		_exit(1);
	if (sigprocmask(SIG_SETMASK, NULL, &now) || memcmp(&now, &mask, 8) != 0)
		_exit(2);
	if (sigaltstack(NULL, &after) || after.ss_sp != stack.ss_sp || after.ss_size != stack.ss_size || after.ss_flags)
		_exit(3);
	_exit(0);
}

enum way { IN_NO_CALL, IN_A_CALL, AFTER_CODE, CLOSED };

/* lock addw %si, (%rdi); mov $15, %eax; syscall */
static const uint8_t some_code[] = { 0xf0, 0x66, 0x01, 0x37, 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

/* Ends, or is killed by the test, in the middle. */
static void tracer(struct shared *s, const uint8_t *code, pid_t pid, enum way way)
{
	const uint64_t none[6] = { 0 };
	const struct timespec second = { .tv_sec = 1 };
	struct rt_stopped r;
	int64_t result = 0;
	uint64_t at;

	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) || ptrace(PTRACE_INTERRUPT, pid, 0, 0) ||
	    waitpid(pid, NULL, __WALL) != pid || rt_stopped_open(&r, (uint32_t)pid, (uint32_t)pid) ||
	    rt_stopped_call(&r, SYS_getpid, none, &result) || result != pid)
		_exit(1);
	switch (way) {
	case CLOSED:
		rt_stopped_close(&r);
		break;
	case IN_A_CALL:
		if (rt_stopped_stack(&r, &at))
			_exit(2);
		at -= sizeof(second);
		if (!rt_stopped_write(&r, at, &second, sizeof(second)))
			_exit(2);
		s->called = 1;
		(void)!rt_stopped_call(&r, SYS_nanosleep, (uint64_t[6]){ at }, &result);
		break;
	case AFTER_CODE:
		if (rt_stopped_do(&r, (uintptr_t)code, (uintptr_t)&s->counter, 5))
			_exit(3);
		break;
	default:
		break;
	}
	_exit(0);
}

static long call_of(pid_t pid)
{
	char path[32], text[64] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 ? strtol(text, NULL, 10) : -1;
}

static int check(enum way way)
{
	struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t traced, by;
	int status = -1;

	assert_true(s != MAP_FAILED && code != MAP_FAILED);
	memcpy(code, some_code, sizeof(some_code));
	assert_int_equal(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
	traced = fork();
	if (!traced) {
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
		target(s);
	}
	while (!s->ready)
		sched_yield();
	by = fork();
	if (!by)
		tracer(s, code, traced, way);
	if (way == IN_A_CALL) {
		while (!s->called || call_of(traced) != SYS_nanosleep)
			sched_yield();
		kill(by, SIGKILL);
	}
	assert_int_equal(waitpid(by, &status, 0), by);
	assert_int_equal(status, way == IN_A_CALL ? SIGKILL : 0);
	s->done = 1;
	assert_int_equal(waitpid(traced, &status, 0), traced);
	assert_int_equal(s->counter, way == AFTER_CODE ? 5 : 0);
	munmap(s, 4096);
	munmap(code, 4096);
	return status;
}

static void test_closed(void **state)
{
	(void)state;
	assert_int_equal(check(CLOSED), 0);
}

static void test_between_calls(void **state)
{
	(void)state;
	assert_int_equal(check(IN_NO_CALL), 0);
}

static void test_in_a_call(void **state)
{
	(void)state;
	assert_int_equal(check(IN_A_CALL), 0);
}

static void test_after_code(void **state)
{
	(void)state;
	assert_int_equal(check(AFTER_CODE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_between_calls),
		cmocka_unit_test(test_in_a_call),
		cmocka_unit_test(test_after_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
