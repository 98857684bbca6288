/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls obj_get() from every kind of place that a stack can lead through: frames of any size, alloca, recursion,
 * aligned frames, the C library calling back, signals, other stacks, threads, exceptions, code that nothing tells of, a
 * library that was loaded late (when the name of one is given). Built without frame pointers; test_rows.py.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdexcept>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define NOINLINE __attribute__((noinline))
#define KEEP __asm__ volatile("" ::: "memory") /* no tail call */

struct obj {
	int refs;
};

typedef double wide __attribute__((vector_size(32)));

static struct obj object = { 1 };
static volatile long sum;
static ucontext_t here, there;

extern "C" NOINLINE struct obj *obj_get(struct obj *o)
{
	o->refs++;
	KEEP;
	return o;
}

NOINLINE static void get()
{
	sum += obj_get(&object)->refs;
}

NOINLINE static void recursion(int n)
{
	if (n)
		recursion(n - 1);
	else
		get();
	sum++;
}

NOINLINE static void variable(size_t n)
{
	char *p = (char *)alloca(n);

	memset(p, 1, n);
	get();
	sum += p[n / 2];
}

NOINLINE static void large()
{
	char b[20000];

	memset(b, 2, sizeof(b));
	recursion(2);
	sum += b[sum % sizeof(b)];
}

NOINLINE static void aligned(size_t n)
{
	volatile wide v[4] = { { (double)n } };
	char *p = (char *)alloca(n);

	memset(p, 3, n);
	get();
	sum += (long)v[n % 4][0] + p[0];
}

/* The same frame sizes and the same caller of get(): only a return address further out tells them apart. */
NOINLINE static void twin()
{
	recursion(3);
	sum++;
}

NOINLINE static void first_twin()
{
	twin();
	sum++;
}

NOINLINE static void second_twin()
{
	twin();
	sum += 2;
}

static int compare(const void *a, const void *b)
{
	get();
	return *(const int *)a - *(const int *)b;
}

static void handler(int)
{
	recursion(1);
}

static void *thread(void *)
{
	variable(500);
	return NULL;
}

static void coroutine()
{
	recursion(2);
	swapcontext(&there, &here);
}

struct guard {
	~guard()
	{
		get();
	}
};

NOINLINE static void thrower(int n)
{
	guard g;

	if (n > 2)
		throw std::runtime_error("thrown");
	sum++;
}

NOINLINE static void exceptions(int n)
{
	try {
		thrower(n);
	} catch (const std::exception &e) {
		get();
		sum += e.what()[0];
	}
}

/* sub $8, %rsp; call *%rdi; add $8, %rsp; ret */
NOINLINE static void generated()
{
	static const unsigned char code[] = { 0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3 };
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	memcpy(p, code, sizeof(code));
	((void (*)(void (*)()))p)(get);
	sum++;
}

static void signals()
{
	static char other[65536];
	stack_t alternate = {};
	struct sigaction action = {};

	action.sa_handler = handler;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	alternate.ss_sp = other;
	alternate.ss_size = sizeof(other);
	sigaltstack(&alternate, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR2);
}

static void coroutines()
{
	static char stack[65536];

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, coroutine, 0);
	swapcontext(&here, &there);
}

int main(int argc, char **argv)
{
	int v[] = { 5, 2, 4, 1, 3 };
	pthread_t t;

	for (int i = 0; i < 3; i++) {
		get();
		recursion(i * 5);
		recursion(40);
		variable(100 + (size_t)i * 1000);
		large();
		aligned(64);
		for (int k = 0; k < 3; k++) {
			first_twin();
			second_twin();
		}
		qsort(v, 5, sizeof(v[0]), compare);
		exceptions(i + 2);
	}
	signals();
	coroutines();
	generated();
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	if (argc > 1) {
		void *library = dlopen(argv[1], RTLD_NOW);
		void (*call)(void (*)()) = library ? (void (*)(void (*)()))dlsym(library, "call_back") : NULL;

		if (!call)
			abort();
		for (int i = 0; i < 3; i++)
			call(get);
		dlclose(library);
		get();
	}
	printf("%d gets\n", object.refs - 1);
	return 0;
}
