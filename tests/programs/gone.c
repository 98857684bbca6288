// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program whose files vanish while it runs. Words are done in order:
 *
 *     say TEXT      prints a line
 *     unlink FILE   deletes FILE
 *     hot SECONDS   burns so much CPU time in gone_hot()
 *     lib FILE      loads FILE
 *     libhot S      burns in the library's lib_hot()
 *     leak N        N items, of which lose_item() keeps a reference each
 *     wait FILE     waits until FILE is there
 *     quit STATUS   ends at once, without what libraries do at the end
 *     exec PROG...  goes on as PROG
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long work;

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void gone_hot(void)
{
	for (unsigned i = 0; i < 1000000; i++)
		work += i;
}

__attribute__((noinline)) static void burn(double seconds, void (*hot)(void))
{
	for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
		hot();
}

struct item {
	int refs;
};

__attribute__((noinline)) struct item *item_new(void)
{
	struct item *item = calloc(1, sizeof(*item));

	item->refs = 1;
	return item;
}

__attribute__((noinline)) struct item *item_ref(struct item *item)
{
	item->refs++;
	return item;
}

__attribute__((noinline)) void item_unref(struct item *item)
{
	if (!--item->refs)
		free(item);
}

__attribute__((noinline)) static void use_item(struct item *item)
{
	item_ref(item);
	work++;
	item_unref(item);
}

__attribute__((noinline)) static void lose_item(struct item *item)
{
	item_ref(item);
	work++;
}

static void leak(int n)
{
	for (int i = 0; i < n; i++) {
		struct item *item = item_new();

		use_item(item);
		if (i % 2)
			lose_item(item);
		item_unref(item);
	}
}

int main(int argc, char **argv)
{
	void *lib = NULL;

	for (int i = 1; i + 1 < argc; i += 2) {
		const char *word = argv[i], *arg = argv[i + 1];

		if (!strcmp(word, "say")) {
			printf("%s %d\n", arg, getpid());
			fflush(stdout);
		} else if (!strcmp(word, "unlink")) {
			if (unlink(arg))
				return 10;
		} else if (!strcmp(word, "hot")) {
			burn(strtod(arg, NULL), gone_hot);
		} else if (!strcmp(word, "lib")) {
			lib = dlopen(arg, RTLD_NOW);
			if (!lib)
				return 11;
		} else if (!strcmp(word, "libhot")) {
			burn(strtod(arg, NULL), (void (*)(void))dlsym(lib, "lib_hot"));
		} else if (!strcmp(word, "leak")) {
			leak(atoi(arg));
		} else if (!strcmp(word, "wait")) {
			while (access(arg, F_OK))
				usleep(1000);
		} else if (!strcmp(word, "quit")) {
			_exit(atoi(arg));
		} else if (!strcmp(word, "exec")) {
			execv(arg, &argv[i + 1]);
			return 12;
		}
	}
	return 0;
}
