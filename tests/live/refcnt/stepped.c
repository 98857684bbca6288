/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A signal that comes at any instruction of a get and a put: `stepped exit|work|fork[-cold] FIRST EVERY`. The
 * processor's single step is that signal; from instruction FIRST on, each EVERY instructions (0: once), its handler
 * exits, gets and puts, or forks a child that does; in the second such pair, or, cold, in the first. Prints how many
 * instructions there were. x86-64.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <refcnt/refcnt.h>

#define NOINLINE __attribute__((noinline))
#define END() __asm__ volatile("" ::: "memory")
#define SINGLE_STEP 0x100

#define CONN_FIELDS(field, array) field(conn, int, number)
REFCNT_STRUCT(conn, CONN_FIELDS);
static void conn_release(struct conn *c)
{
	conn_dealloc(c);
}
REFCNT_STRUCT_DEFINE(conn, conn_release);

static struct conn *shared;
static long steps, first, every;
static void (*act)(void);

NOINLINE static struct conn *make(void)
{
	struct conn *c = conn_alloc();

	if (!c)
		abort();
	conn_set_number(c, 7);
	return c;
}

NOINLINE static struct conn *take(struct conn *c)
{
	struct conn *mine = conn_get(c);

	END();
	return mine;
}

NOINLINE static void give(struct conn *c)
{
	conn_put(c);
	END();
}

static void on_step(int number, siginfo_t *info, void *context)
{
	if (++steps == first) {
		act();
		first = every ? first + every : 0;
	}
}

static void act_exit(void)
{
	exit(0);
}

static void act_work(void)
{
	give(take(shared));
}

static void act_fork(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(20); /* if it waits for what no thread of this process holds */
#if REFCNT_MODE != REFCNT_ALIAS
		give(take(shared));
#endif
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status) {
		static const char text[] = "the child did not end\n";

		(void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
		_exit(3);
	}
}

static inline __attribute__((always_inline)) void step(int on)
{
	__asm__ volatile("sub $128, %%rsp\n\t"
			 "pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "orq %0, (%%rsp)\n\t"
			 "popfq\n\t"
			 "add $128, %%rsp"
			 :
			 : "r"((long)(on ? SINGLE_STEP : 0))
			 : "memory", "cc");
}

NOINLINE static void stepped(struct conn *c, int on)
{
	struct conn *mine;

	step(on);
	mine = take(c);
	give(mine);
	step(0);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	const char *how = argc > 3 ? argv[1] : "";

	act = !strncmp(how, "exit", 4) ? act_exit : !strncmp(how, "work", 4) ? act_work : act_fork;
	shared = make();
	sigaction(SIGTRAP, &action, NULL);
	/* once before: much is done but once */
	for (int round = !!strchr(how, '-'); round < 2; round++) {
		first = argc > 3 ? atol(argv[2]) : 0;
		every = argc > 3 ? atol(argv[3]) : 0;
		stepped(shared, round);
	}
	printf("steps %ld, count %u\n", steps, conn_count(shared));
	return 0;
}
