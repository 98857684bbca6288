/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/fetch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "cache/debuginfod.h"
#include "cli/file.h"
#include "cli/probe_cached.h"
#include "cli/progress.h"

enum { TIMEOUT_S = 30 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
	interrupted = signal;
}

struct download {
	struct rt_progress progress;
	const char *name;
};

static bool show(void *arg, uint64_t bytes, uint64_t total)
{
	struct download *d = arg;
	char have[16], all[16];

	if (d->progress.on) {
		d->progress.drawn = true;
		fprintf(stderr, "\rreftrace: debuginfod: %s: %sB of %sB\033[K", d->name,
			rt_progress_count(bytes, have, sizeof(have)),
			total ? rt_progress_count(total, all, sizeof(all)) : "? ");
		fflush(stderr);
	}
	return !interrupted;
}

static bool has_debug_info(const struct rt_image *image)
{
	struct rt_bytes bytes;

	return rt_image_section(image, ".debug_info", &bytes, NULL) ||
	       rt_image_section(image, ".zdebug_info", &bytes, NULL);
}

/* What was fetched once is in the cache. */
static struct rt_error *from_cache(struct rt_image *image)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err;

	RT_TRY(rt_probe_cache_open(false, &cache));
	if (!cache)
		return NULL;
	err = rt_cache_get(cache, image->build_id, image->build_id_size, RT_CACHE_DEBUG, &fd);
	if (!err)
		err = rt_image_give_debug(image, fd, image->name);
	if (err && err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	return NULL;
}

/* A cache that takes nothing is no reason to have no debug information. */
static void keep(const struct rt_image *image, int fd)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_free_ char *path = realpath(image->name, NULL);
	struct rt_error *err = path ? rt_probe_cache_open(true, &cache) : NULL;
	uid_t uid;
	gid_t gid;
	bool as_user = rt_invoking_user(&uid, &gid);

	if (as_user)
		rt_fs_act_as(uid, gid);
	if (!err && cache)
		err = rt_cache_put_fd(cache, image->build_id, image->build_id_size, path, RT_CACHE_DEBUG, fd, NULL);
	if (as_user)
		rt_fs_act_as(geteuid(), getegid());
	rt_error_free(err);
}

static struct rt_error *fetch(const struct rt_options *options, const struct rt_image *image, int *ret)
{
	struct sigaction old, action = { .sa_handler = on_interrupt };
	struct download d = { .name = rt_basename(image->name) };
	struct rt_debuginfod_options how = { .urls = options->debuginfod_urls,
					     .timeout_ns = options->debuginfod_timeout_ns ?: TIMEOUT_S * 1000000000ull,
					     .progress = show,
					     .arg = &d };
	struct rt_error *err;

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, &old);
	rt_progress_init(&d.progress, options->quiet);
	err = rt_debuginfod_fetch(image->build_id, image->build_id_size, &how, ret);
	rt_progress_clear(&d.progress);
	sigaction(SIGINT, &old, NULL);
	/* the library has taken its unfinished file away by now */
	if (interrupted && old.sa_handler != SIG_IGN)
		raise(SIGINT);
	return err;
}

struct rt_error *rt_fetch_debug(const struct rt_options *options, int root_fd, struct rt_image *image)
{
	RT_TRY(rt_image_find_debug(image, root_fd));
	return rt_fetch_missing(options, image);
}

struct rt_error *rt_fetch_missing(const struct rt_options *options, struct rt_image *image)
{
	_cleanup_close_ int fd = -1;
	struct rt_error *err;

	if (!options->debuginfod || image->debug || has_debug_info(image))
		return NULL;
	if (image->build_id_is_hash)
		return rt_error_fix(rt_error_new(RT_E_BUILD_ID, "%s has no build-id: debuginfod cannot be asked for it",
						 image->name),
				    "link it with -Wl,--build-id, or leave --debuginfod out");
	RT_TRY(from_cache(image));
	if (image->debug)
		return NULL;
	err = fetch(options, image, &fd);
	if (err && err->code == RT_E_NOT_FOUND) {
		fprintf(stderr, "reftrace: %s\n  fix: %s\n", err->message, err->fix ?: "");
		rt_error_free(err);
		return NULL;
	}
	RT_TRY(err);
	RT_TRY(rt_image_give_debug(image, fd, image->name));
	keep(image, fd);
	return NULL;
}
