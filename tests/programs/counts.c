/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nothing leaks; everything is counted. Threads at work in the parent, in forked children and in the image that a child
 * becomes by exec; each of them also loads plugin.so, uses it and unloads it. The counts at the end are the sums over
 * all processes.
 */
#include "truth.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>

struct obj {
	atomic_int refs;
	int number;
	char data[40];
};

enum { THREADS = 3, OBJECTS = 25 };

NOINLINE struct obj *obj_new(int number)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	atomic_init(&o->refs, 1);
	o->number = number;
	return o;
}

NOINLINE struct obj *obj_get(struct obj *o)
{
	atomic_fetch_add(&o->refs, 1);
	return o;
}

NOINLINE void obj_put(struct obj *o)
{
	if (atomic_fetch_sub(&o->refs, 1) == 1)
		free(o);
}

NOINLINE static void check(struct obj *o)
{
	obj_get(o);
	DID("get");
	obj_put(o);
	DID("put");
}

NOINLINE static void handle(struct obj *o)
{
	obj_get(o);
	DID("get");
	check(o);
	if (o->number % 2)
		check(o);
	obj_put(o);
	DID("put");
}

static void *serve(void *arg)
{
	for (int i = 0; i < OBJECTS; i++) {
		struct obj *o = obj_new(i);

		DID("new");
		handle(o);
		obj_put(o);
		DID("put");
	}
	return arg;
}

static void use_plugin(void)
{
	char self[PATH_MAX] = "", path[PATH_MAX + 16];
	int (*run)(int, bool);
	void *plugin;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		exit(1);
	snprintf(path, sizeof(path), "%s/plugin.so", dirname(self));
	plugin = dlopen(path, RTLD_NOW);
	if (!plugin || !(*(void **)&run = dlsym(plugin, "plug_run")))
		exit(1);
	run(10, true);
	dlclose(plugin);
}

static void work(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, serve, NULL))
			exit(1);
	}
	use_plugin();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	int failed = 0;

	work();
	if (argc > 1) /* the exec'ed image */
		return 0;
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();
		int status;

		if (pid < 0)
			return 1;
		if (pid == 0) {
			work();
			if (i % 2)
				execl("/proc/self/exe", argv[0], "again", NULL);
			_exit(i % 2);
		}
		if (waitpid(pid, &status, 0) < 0 || status)
			failed = 1;
	}
	truth_print("type=obj new=obj_new get=obj_get put=obj_put", NULL, NULL);
	printf("spec type=plug new=plug_new get=plug_ref put=plug_unref\n");
	return failed;
}
