// SPDX-License-Identifier: GPL-2.0-only
/*
 * Closing a link takes 12 to 50 ms, most of it waiting for the kernel's grace
 * periods, which several closers share. So links are closed by a few threads,
 * started when there is something to close.
 */
#include <pthread.h>
#include <signal.h>

#include "engine/uprobe_priv.h"

#define THREADS 16

struct job {
	int fd;
	uint32_t key;
};

struct rt_reaper {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	pthread_t threads[THREADS];
	unsigned thread_count, waiting;
	size_t open; /* jobs queued or at work */
	bool end;
	RT_VEC(struct job) queue;
	RT_VEC(uint32_t) done;
	uint32_t pending[RT_UPROBE_PROCESSES]; /* fds not closed yet, for each key */
};

static void finish(struct rt_reaper *r, uint32_t key)
{
	r->open--;
	/* room was reserved when the job was queued */
	if (!--r->pending[key] && key)
		(void)rt_vec_push(&r->done, key);
	if (!r->open)
		pthread_cond_broadcast(&r->idle);
}

static void *reap(void *arg)
{
	struct rt_reaper *r = arg;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct job job;

		while (!r->queue.len && !r->end) {
			r->waiting++;
			pthread_cond_wait(&r->work, &r->lock);
			r->waiting--;
		}
		if (!r->queue.len)
			break;
		job = r->queue.data[--r->queue.len];
		pthread_mutex_unlock(&r->lock);
		close(job.fd);
		pthread_mutex_lock(&r->lock);
		finish(r, job.key);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

struct rt_error *rt_reaper_create(struct rt_reaper **ret)
{
	struct rt_reaper *r = calloc(1, sizeof(*r));

	if (!r)
		return rt_error_nomem();
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	pthread_cond_init(&r->idle, NULL);
	*ret = r;
	return NULL;
}

/* Signals are the session's business: the threads take none. */
static void start_thread(struct rt_reaper *r)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!pthread_create(&r->threads[r->thread_count], NULL, reap, r))
		r->thread_count++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void rt_reaper_close(struct rt_reaper *r, const int *fds, size_t count, uint32_t key)
{
	pthread_mutex_lock(&r->lock);
	if (!count && key)
		(void)rt_vec_push(&r->done, key);
	for (size_t i = 0; i < count; i++) {
		r->pending[key]++;
		r->open++;
		if (r->queue.len >= r->waiting && r->thread_count < THREADS)
			start_thread(r);
		if (!r->thread_count || !rt_vec_reserve(&r->done, r->done.len + r->open) ||
		    !rt_vec_push(&r->queue, ((struct job){ fds[i], key }))) {
			close(fds[i]);
			finish(r, key);
			continue;
		}
		pthread_cond_signal(&r->work);
	}
	pthread_mutex_unlock(&r->lock);
}

bool rt_reaper_done(struct rt_reaper *r, uint32_t *ret_key)
{
	bool any;

	pthread_mutex_lock(&r->lock);
	any = r->done.len != 0;
	if (any)
		*ret_key = r->done.data[--r->done.len];
	pthread_mutex_unlock(&r->lock);
	return any;
}

void rt_reaper_wait(struct rt_reaper *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->open)
		pthread_cond_wait(&r->idle, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

void rt_reaper_destroy(struct rt_reaper *r)
{
	if (!r)
		return;
	rt_reaper_wait(r);
	pthread_mutex_lock(&r->lock);
	r->end = true;
	pthread_cond_broadcast(&r->work);
	pthread_mutex_unlock(&r->lock);
	for (unsigned i = 0; i < r->thread_count; i++)
		pthread_join(r->threads[i], NULL);
	pthread_cond_destroy(&r->idle);
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
	rt_vec_deinit(&r->queue);
	rt_vec_deinit(&r->done);
	free(r);
}
