/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/converter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/convert.h"

enum { NICE = 5 }; /* of what must not disturb */

struct rt_converter {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	pid_t tid;
	bool started, end;
	bool hurry; /* nothing is recorded any more */
	/* under lock */
	RT_VEC(char *) paths; /* all that were added; owned */
	size_t made, told;    /* of them */
	struct rt_error *err; /* of paths.data[made] */
	struct rt_converted sum;
};

struct rt_error *rt_converter_create(struct rt_converter **ret)
{
	struct rt_converter *c = calloc(1, sizeof(*c));

	if (!c)
		return rt_error_nomem();
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->more, NULL);
	*ret = c;
	return NULL;
}

/* One file, with the lock held at the beginning and at the end. */
static void make(struct rt_converter *c)
{
	const char *path = c->paths.data[c->made];
	struct rt_to_perf_result result = { 0 };
	struct rt_error *err;
	uint64_t bytes = 0;

	pthread_mutex_unlock(&c->lock);
	err = rt_convert_in_place(path, &result, &bytes);
	free(result.damage);
	pthread_mutex_lock(&c->lock);
	c->err = err;
	if (err)
		return;
	c->sum.bytes += bytes;
	c->sum.bpf_lost += result.bpf_lost;
	c->made++;
}

static void *work(void *arg)
{
	struct rt_converter *c = arg;

	pthread_mutex_lock(&c->lock);
	/* of this thread alone */
	c->tid = gettid();
	if (!c->hurry)
		setpriority(PRIO_PROCESS, (id_t)c->tid, NICE);
	for (;;) {
		while (!c->end && !c->hurry && c->made == c->paths.len)
			pthread_cond_wait(&c->more, &c->lock);
		if (c->end || c->hurry || c->err)
			break;
		make(c);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static struct rt_error *start(struct rt_converter *c)
{
	sigset_t all, old;
	int errnum;

	/* signals are the first thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	errnum = pthread_create(&c->thread, NULL, work, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (errnum)
		return rt_error_errno(RT_E_SYSTEM, errnum, "cannot start a thread");
	c->started = true;
	return NULL;
}

struct rt_error *rt_converter_add(struct rt_converter *c, const char *path)
{
	char *copy = strdup(path);
	bool added;

	pthread_mutex_lock(&c->lock);
	added = copy && rt_vec_push(&c->paths, copy);
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
	if (!added) {
		free(copy);
		return rt_error_nomem();
	}
	return c->started ? NULL : start(c);
}

char *rt_converter_take(struct rt_converter *c)
{
	char *ret = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->told < c->made)
		ret = strdup(c->paths.data[c->told++]);
	pthread_mutex_unlock(&c->lock);
	return ret;
}

static void join(struct rt_converter *c, bool *why)
{
	pthread_mutex_lock(&c->lock);
	*why = true;
	/* it is waited for now; who is not privileged waits a little longer */
	if (c->tid)
		setpriority(PRIO_PROCESS, (id_t)c->tid, getpriority(PRIO_PROCESS, 0));
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	c->started = false;
}

struct rt_error *rt_converter_end(struct rt_converter *c, struct rt_converted *ret)
{
	join(c, &c->hurry);
	pthread_mutex_lock(&c->lock);
	while (!c->err && c->made < c->paths.len)
		make(c);
	*ret = c->sum;
	pthread_mutex_unlock(&c->lock);
	return rt_take(c->err);
}

void rt_converter_destroy(struct rt_converter *c)
{
	if (!c)
		return;
	join(c, &c->end);
	for (size_t i = 0; i < c->paths.len; i++)
		free(c->paths.data[i]);
	rt_vec_deinit(&c->paths);
	rt_error_free(c->err);
	pthread_cond_destroy(&c->more);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
