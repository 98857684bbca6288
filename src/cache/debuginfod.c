/* SPDX-License-Identifier: GPL-2.0-only */
#include "cache/debuginfod.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/cache.h"
#include "elf/image.h"

#define LIBRARY "libdebuginfod.so.1"

struct library {
	debuginfod_client *(*begin)(void);
	void (*end)(debuginfod_client *client);
	int (*find)(debuginfod_client *client, const unsigned char *id, int size, char **path);
	void (*set_progress)(debuginfod_client *client, debuginfod_progressfn_t fn);
	void (*set_data)(debuginfod_client *client, void *data);
	void *(*get_data)(debuginfod_client *client);
};

/* What the progress function is told. */
struct fetch {
	const struct rt_debuginfod_options *options;
	uint64_t told, bytes, since_ns; /* of the last change */
	bool stopped, late;
};

/* The library's function gets no data of ours in the version of Debian 12 but through the client. */
static void *(*get_data)(debuginfod_client *client);

static int on_progress(debuginfod_client *client, long a, long b)
{
	struct fetch *f = get_data(client);
	const struct rt_debuginfod_options *o = f->options;
	uint64_t told = a > 0 ? (uint64_t)a : 0, now = rt_now_ns();

	/* until a server answers it counts its own rounds instead of bytes */
	if (told != f->told && (b > 0 || told != f->told + 1)) {
		f->bytes = told;
		f->since_ns = now;
	}
	f->told = told;
	f->late = o->timeout_ns && now - f->since_ns > o->timeout_ns;
	f->stopped = o->progress && !o->progress(o->arg, f->bytes, b > 0 ? (uint64_t)b : 0);
	return f->late || f->stopped;
}

static bool load(struct library *ret)
{
	/* stays open: libcurl does not like to be loaded twice */
	void *handle = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);

	if (!handle)
		return false;
	*(void **)&ret->begin = dlsym(handle, "debuginfod_begin");
	*(void **)&ret->end = dlsym(handle, "debuginfod_end");
	*(void **)&ret->find = dlsym(handle, "debuginfod_find_debuginfo");
	*(void **)&ret->set_progress = dlsym(handle, "debuginfod_set_progressfn");
	*(void **)&ret->set_data = dlsym(handle, "debuginfod_set_user_data");
	*(void **)&ret->get_data = dlsym(handle, "debuginfod_get_user_data");
	return ret->begin && ret->end && ret->find && ret->set_progress && ret->set_data && ret->get_data;
}

/* The library notes a fetch that was ended as "no server has it", and says so for ten minutes. */
static void forget_miss(const char *id)
{
	const char *told = getenv(DEBUGINFOD_CACHE_PATH_ENV_VAR), *cache = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	_cleanup_free_ char *path = NULL;
	struct stat st;
	int n;

	if (told && *told)
		n = asprintf(&path, "%s/%s/debuginfo", told, id);
	else if (cache && *cache)
		n = asprintf(&path, "%s/debuginfod_client/%s/debuginfo", cache, id);
	else
		n = asprintf(&path, "%s/.cache/debuginfod_client/%s/debuginfo", home ?: "", id);
	if (n < 0)
		path = NULL;
	else if (!lstat(path, &st) && S_ISREG(st.st_mode) && !st.st_size)
		unlink(path);
}

static struct rt_error *failed(const struct fetch *f, int errnum, const char *id, const char *urls)
{
	if (f->late || f->stopped)
		forget_miss(id);
	if (f->late)
		return rt_error_fix(rt_error_new(RT_E_UNREADABLE, "debuginfod: no byte of %s came for %u s from %s", id,
						 (unsigned)(f->options->timeout_ns / 1000000000), urls),
				    "try another server: --debuginfod=URL; a longer time: --debuginfod-timeout=5m");
	if (f->stopped)
		return rt_error_new(RT_E_UNREADABLE, "debuginfod: stopped");
	if (errnum == ENOENT)
		return rt_error_fix(
			rt_error_new(RT_E_NOT_FOUND, "debuginfod: no debug information for build-id %s at %s", id,
				     urls),
			"a server of the distribution that built the file: --debuginfod=URL (it is asked again "
			"after ten minutes: ~/.cache/debuginfod_client)");
	return rt_error_fix(rt_error_errno(RT_E_UNREADABLE, errnum, "debuginfod: cannot fetch %s from %s", id, urls),
			    "is the server there? curl %s/metrics", urls);
}

/* Servers may send anything. */
static struct rt_error *check(int fd, const char *path, const uint8_t *id, size_t size, const char *text)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct rt_error *err = rt_image_open_fd(fd, path, &image);

	if (!err && rt_image_is_build(image, id, size))
		return NULL;
	if (err && err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	/* or it would be handed out again and again */
	unlink(path);
	return rt_error_fix(
		rt_error_new(RT_E_BUILD_ID, "debuginfod: what the server sent is not the debug file of %s", text),
		"try another server: --debuginfod=URL");
}

static struct rt_error *find(const struct library *library, const uint8_t *id, size_t size, struct fetch *f, int *ret)
{
	debuginfod_client *client = library->begin();
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
	_cleanup_free_ char *path = NULL;
	char text[2 * RT_CACHE_ID_MAX + 1];
	_cleanup_close_ int fd = -1;

	if (!client)
		return rt_error_nomem();
	get_data = library->get_data;
	f->since_ns = rt_now_ns();
	library->set_data(client, f);
	library->set_progress(client, on_progress);
	fd = library->find(client, id, (int)size, &path);
	library->end(client);
	rt_build_id_text(id, size, text);
	if (fd < 0)
		return failed(f, -fd, text, urls);
	RT_TRY(check(fd, path ?: "", id, size, text));
	*ret = rt_take_fd(&fd);
	return NULL;
}

struct rt_error *rt_debuginfod_fetch(const uint8_t *id, size_t id_size, const struct rt_debuginfod_options *options,
				     int *ret)
{
	const char *told = getenv(DEBUGINFOD_URLS_ENV_VAR);
	_cleanup_free_ char *before = told ? strdup(told) : NULL;
	struct fetch f = { .options = options };
	struct library library = { 0 };
	struct rt_error *err;

	if (id_size < RT_CACHE_ID_MIN || id_size > RT_CACHE_ID_MAX)
		return rt_error_new(RT_E_FORMAT, "debuginfod: a file without build-id cannot be asked for");
	if (!options->urls && !(told && *told))
		return rt_error_fix(
			rt_error_new(RT_E_USAGE, "debuginfod: which server?"),
			"--debuginfod=https://debuginfod.debian.net, or DEBUGINFOD_URLS in the environment");
	if (!load(&library))
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "debuginfod: %s is not installed", LIBRARY),
				    "apt-get install libdebuginfod1 (Fedora: elfutils-debuginfod-client)");
	if (told && !before)
		return rt_error_nomem();
	/* the library knows no other way to be told */
	if (options->urls && setenv(DEBUGINFOD_URLS_ENV_VAR, options->urls, 1))
		return rt_error_nomem();
	err = find(&library, id, id_size, &f, ret);
	if (before)
		setenv(DEBUGINFOD_URLS_ENV_VAR, before, 1);
	else
		unsetenv(DEBUGINFOD_URLS_ENV_VAR);
	return err;
}
