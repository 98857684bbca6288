/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/recorder.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>

#include "cli/convert.h"
#include "cli/converter.h"
#include "cli/failure.h"
#include "cli/file.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/kernel.h"
#include "report/words.h"

#define OWNER(self, member) \
	((struct rt_recorder *)(void *)((char *)(self) - __builtin_offsetof(struct rt_recorder, member)))

/* ---- -D: a timer that switches the sampler on ---- */

static struct rt_error *delay_start(struct rt_side_source *self, const struct rt_side_target *target,
				    struct rt_event_sink *sink)
{
	uint64_t ns = OWNER(self, delay)->options->delay_ns;
	struct itimerspec when = { .it_value = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) } };

	if (timerfd_settime(self->fd, 0, &when, NULL))
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot set a timer");
	return NULL;
}

static struct rt_error *delay_drain(struct rt_side_source *self, struct rt_event_sink *sink)
{
	uint64_t times;

	if (read(self->fd, &times, sizeof(times)) == sizeof(times))
		rt_sampler_enable(OWNER(self, delay)->sampler, true);
	return NULL;
}

/* ---- the keeper: --max-size, --switch-output ---- */

/* perf's way to tell files apart: the local time to a hundredth of a second. */
static char *timestamp(char *text, size_t size)
{
	struct timespec now;
	struct tm tm;
	char day[32];

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(day, sizeof(day), "%Y%m%d%H%M%S", &tm);
	snprintf(text, size, "%s%02ld", day, now.tv_nsec / 10000000);
	return text;
}

/* Two files of one hundredth of a second must not become one. */
static struct rt_error *rename_by_time(const char *path, char **ret)
{
	char stamp[64];

	timestamp(stamp, sizeof(stamp));
	for (unsigned i = 1;; i++) {
		_cleanup_free_ char *name = NULL;
		int n = i == 1 ? asprintf(&name, "%s.%s", path, stamp) : asprintf(&name, "%s.%s-%u", path, stamp, i);

		if (n < 0) {
			name = NULL;
			return rt_error_nomem();
		}
		if (!renameat2(AT_FDCWD, path, AT_FDCWD, name, RENAME_NOREPLACE)) {
			*ret = rt_take(name);
			return NULL;
		}
		if (errno != EEXIST || i == 99)
			return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot rename %s to %s", path, name);
	}
}

struct rt_error *rt_recorder_hand_over(struct rt_recorder *r)
{
	const char *path = r->pipeline->recording;
	_cleanup_free_ char *name = NULL;

	if (!r->options->switch_output)
		name = strdup(path);
	else
		RT_TRY(rename_by_time(path, &name));
	if (!name || !rt_vec_push(&r->finished, name))
		return rt_error_nomem();
	r->last = rt_take(name);
	return r->aside ? NULL : rt_converter_add(r->converter, r->last);
}

static struct rt_error *send(struct rt_recorder *r)
{
	struct rt_to_perf_result result = { 0 };
	struct rt_error *err;

	err = rt_convert_to(r->aside, r->pipe_fd, "standard output", true, &result, &r->perf_bytes);
	free(result.damage);
	r->bpf_lost += result.bpf_lost;
	return err;
}

/* The files that are perf.data by now, but for one. */
static void say_made(struct rt_recorder *r, const char *but)
{
	for (;;) {
		_cleanup_free_ char *path = rt_converter_take(r->converter);

		if (!path)
			return;
		if (r->options->quiet || (but && !strcmp(path, but)))
			continue;
		rt_progress_clear(&r->progress);
		fprintf(stderr, "reftrace: wrote %s\n", path);
	}
}

struct rt_error *rt_recorder_convert(struct rt_recorder *r)
{
	struct rt_converted all = { 0 };
	struct rt_error *err;

	if (r->aside)
		return send(r);
	err = rt_converter_end(r->converter, &all);
	/* the last one has a line of its own */
	say_made(r, r->last);
	r->perf_bytes = all.bytes;
	r->bpf_lost = all.bpf_lost;
	return err;
}

/* Ends the current file and goes on in a new one, which says everything again that its reader needs. */
static struct rt_error *switch_file(struct rt_recorder *r)
{
	r->all_bytes += r->pipeline->file.written;
	RT_TRY(rt_pipeline_close_recording(r->pipeline));
	RT_TRY(rt_recorder_hand_over(r));
	r->switched++;
	RT_TRY(rt_pipeline_open_recording(r->pipeline, (const char *const *)r->finished.data, r->finished.len));
	r->file_began_ns = rt_now_ns();
	for (size_t i = 0; i < r->source_count; i++) {
		if (r->sources[i]->restate)
			RT_TRY(r->sources[i]->restate(r->sources[i], &r->pipeline->sink));
	}
	return NULL;
}

static bool is_due(const struct rt_recorder *r)
{
	const struct rt_options *o = r->options;

	if (!o->switch_output)
		return false;
	if (o->switch_bytes)
		return r->pipeline->file.written >= o->switch_bytes;
	if (o->switch_ns)
		return rt_now_ns() - r->file_began_ns >= o->switch_ns;
	return false;
}

static struct rt_error *keeper_start(struct rt_side_source *self, const struct rt_side_target *target,
				     struct rt_event_sink *sink)
{
	struct rt_recorder *r = OWNER(self, keeper);

	r->file_began_ns = rt_now_ns();
	return r->sampler ? NULL : rt_sampler_host(r->argv, RT_VERSION, sink);
}

static struct rt_error *keeper_drain(struct rt_side_source *self, struct rt_event_sink *sink)
{
	struct rt_recorder *r = OWNER(self, keeper);
	bool asked = rt_interrupt_take_switch();

	say_made(r, NULL);
	if (r->options->max_bytes && r->all_bytes + r->pipeline->file.written >= r->options->max_bytes) {
		r->ended = "the recording has reached --max-size";
		rt_session_end(r->session);
		return NULL;
	}
	return asked || is_due(r) ? switch_file(r) : NULL;
}

/* ---- --control ---- */

static struct rt_error *on_enable(void *arg, bool on)
{
	struct rt_recorder *r = arg;

	rt_sampler_enable(r->sampler, on);
	/* what was sampled until now is in the recording when the answer comes */
	return on ? NULL : rt_sampler_drain(r->sampler, &r->pipeline->sink);
}

static struct rt_error *on_snapshot(void *arg)
{
	struct rt_recorder *r = arg;

	if (r->sampler)
		RT_TRY(rt_sampler_drain(r->sampler, &r->pipeline->sink));
	if (r->options->switch_output)
		return switch_file(r);
	return rt_spool_writer_flush(r->pipeline->writer);
}

static struct rt_error *on_stop(void *arg)
{
	struct rt_recorder *r = arg;

	r->ended = "--control said stop";
	rt_session_end(r->session);
	return NULL;
}

/* ---- together ---- */

struct rt_error *rt_recorder_add(struct rt_recorder *r, struct rt_side_source *source)
{
	if (r->source_count >= RT_RECORDER_SOURCES)
		return rt_error_new(RT_E_INTERNAL, "too many side sources");
	r->sources[r->source_count++] = source;
	return NULL;
}

/* A variable as the program will have it. */
static const char *program_env(const struct rt_options *o, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = o->env.len; i--;)
		if (!strncmp(o->env.data[i], name, len) && o->env.data[i][len] == '=')
			return o->env.data[i] + len + 1;
	return getenv(name);
}

static struct rt_error *marker_target(struct rt_recorder *r)
{
	const struct rt_options *o = r->options;
	struct rt_error *err = rt_user_cache_root(&r->cache_root);

	if (err && err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	r->markers = (struct rt_marker_target){
		.command = o->command ? o->command[0] : NULL,
		.library_path = program_env(o, "LD_LIBRARY_PATH"),
		.preload = program_env(o, "LD_PRELOAD"),
		.pids = o->pids.data,
		.pid_count = o->pids.len,
		.every_process = o->all_cpus,
		.cache_root = r->cache_root,
		.semaphore = o->semaphore,
		.allow = { .unverified = o->allow_unverified, .mismatch = o->allow_mismatch },
	};
	return NULL;
}

static struct rt_error *open_sampler(struct rt_recorder *r)
{
	const struct rt_options *o = r->options;
	struct rt_sampler_options sampler = {
		.events = o->events.data,
		.event_count = o->events.len,
		.frequency = o->frequency,
		.period = o->period,
		.call_graph = o->call_graph,
		.stack_bytes = o->stack_bytes,
		.system_wide = o->all_cpus,
		.no_follow = o->no_follow,
		.delayed = o->delay_ns || o->delay_forever,
		.ring_bytes = o->ring_bytes,
		.command_line = r->argv,
		.version = RT_VERSION,
		.root_fd = AT_FDCWD,
		.markers = &r->markers,
	};

	RT_TRY(marker_target(r));
	RT_TRY(rt_sampler_open(&sampler, &r->sampler));
	if (rt_sampler_note(r->sampler) && !o->quiet)
		fprintf(stderr, "reftrace: %s\n", rt_sampler_note(r->sampler));
	if (rt_sampler_warning(r->sampler))
		fprintf(stderr, "reftrace: warning: %s\n", rt_sampler_warning(r->sampler));
	RT_TRY(rt_recorder_add(r, rt_sampler_source(r->sampler)));
	RT_TRY(rt_bpf_source_create(o->all_cpus, &r->bpf));
	RT_TRY(rt_recorder_add(r, rt_bpf_source_side(r->bpf)));
	if (!o->delay_ns)
		return NULL;
	r->delay = (struct rt_side_source){ .start = delay_start, .drain = delay_drain };
	r->delay.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->delay.fd < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make a timer");
	return rt_recorder_add(r, &r->delay);
}

/* A recording without the binaries is still one. err is used up. */
static void say_unkept(struct rt_error *err, const char *what)
{
	_cleanup_free_ char *fix = err->fix ? strdup(err->fix) : NULL;
	struct rt_error *said = rt_error_new(RT_E_KEEP, "%s: %s", what, err->message);

	rt_error_free(err);
	(void)rt_failure(rt_error_fix(said, "%s", fix ?: "-N: do not try; reftrace archive keeps what is still there"));
}

static struct rt_error *open_binaries(struct rt_recorder *r)
{
	/* whose code a copied stack goes through is known when it is unwound */
	struct rt_binaries_options options = { .all = r->options->cache_all || r->options->stack_bytes };
	_cleanup_free_ char *root = NULL;
	struct rt_error *err;

	RT_TRY(rt_user_cache_root(&root));
	options.root = root;
	options.as_user = rt_invoking_user(&options.uid, &options.gid);
	err = rt_binaries_create(&options, &r->binaries);
	if (err && err->code == RT_E_NOMEM)
		return err;
	if (err)
		say_unkept(err, "the binaries are not kept");
	return NULL;
}

/* As perf does: what samples hit. Without the privilege to see the kernel's names there are none in the recording. */
static struct rt_error *put_kernel(struct rt_cache *cache, const struct rt_binaries_result *hit)
{
	const bool wanted[] = { hit->kernel, hit->vdso };
	static const char *const names[] = { "[kernel.kallsyms]", "[vdso]" };

	for (size_t i = 0; i < 2; i++) {
		bool made;
		struct rt_error *err = wanted[i] ? rt_kernel_put(cache, names[i], &made) : NULL;

		if (err && err->code == RT_E_NOMEM)
			return err;
		if (err)
			rt_log_debug("record", "%s: %s", names[i], err->message);
		rt_error_free(err);
	}
	return NULL;
}

static void count_gone(const struct rt_cache_item *item, void *arg)
{
	size_t *count = arg;

	(void)item;
	++*count;
}

/* To the limit that its owner has set (reftrace cache gc --always). */
static struct rt_error *trim(const struct rt_recorder *r, struct rt_cache *cache)
{
	uint64_t max = rt_cache_limit(cache), left;
	size_t gone = 0;
	struct rt_error *err = max ? rt_cache_trim(cache, max, count_gone, &gone, &left) : NULL;

	if (gone && !r->options->quiet)
		fprintf(stderr, "reftrace: %zu build-id%s left the cache, by its limit (reftrace cache gc)\n", gone,
			rt_plural(gone));
	return err;
}

/* What else concerns the cache at the end. Nothing of it ends a recording, but memory. */
static struct rt_error *end_cache(struct rt_recorder *r, const struct rt_binaries_result *hit)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_free_ char *root = NULL;
	struct rt_error *err;
	bool as_user;
	gid_t gid;
	uid_t uid;

	RT_TRY(rt_user_cache_root(&root));
	as_user = rt_invoking_user(&uid, &gid);
	if (as_user)
		rt_fs_act_as(uid, gid);
	err = rt_cache_open(root, true, &cache);
	if (!err && r->sampler)
		err = put_kernel(cache, hit);
	if (!err)
		err = trim(r, cache);
	if (as_user)
		rt_fs_act_as(geteuid(), getegid());
	if (err && err->code == RT_E_NOMEM)
		return err;
	if (err)
		rt_log_debug("record", "%s", err->message);
	rt_error_free(err);
	return NULL;
}

struct rt_error *rt_recorder_keep(struct rt_recorder *r)
{
	struct rt_binaries_result result;
	char what[64];

	if (!r->binaries)
		return NULL;
	RT_TRY(rt_binaries_put(r->binaries, &result));
	RT_TRY(end_cache(r, &result));
	if (!result.missing)
		return NULL;
	snprintf(what, sizeof(what), "%zu of %zu binaries could not be kept", result.missing,
		 result.missing + result.kept + result.known);
	say_unkept(result.failure ?: rt_error_new(RT_E_NOT_FOUND, "they are gone"), what);
	return NULL;
}

struct rt_error *rt_recorder_init(struct rt_recorder *r, const struct rt_options *options, const char *const *argv)
{
	struct rt_control_hooks hooks = { .snapshot = on_snapshot, .stop = on_stop, .arg = r };

	*r = (struct rt_recorder){ .options = options, .argv = argv, .pipe_fd = -1 };
	r->delay.fd = -1;
	r->observe_only = !rt_options_lifetimes(options);
	rt_progress_init(&r->progress, options->quiet);
	RT_TRY(rt_converter_create(&r->converter));
	if (rt_options_sample(options))
		RT_TRY(open_sampler(r));
	if (!options->no_cache)
		RT_TRY(open_binaries(r));
	r->keeper = (struct rt_side_source){ .start = keeper_start, .drain = keeper_drain, .fd = -1 };
	RT_TRY(rt_recorder_add(r, &r->keeper));
	if (options->control) {
		hooks.enable = r->sampler ? on_enable : NULL;
		RT_TRY(rt_control_open(options->control, &hooks, &r->control));
		RT_TRY(rt_recorder_add(r, rt_control_source(r->control)));
	}
	if (options->switch_output)
		rt_interrupt_watch_switch();
	return NULL;
}

struct rt_error *rt_recorder_path(struct rt_recorder *r, const char **ret)
{
	const char *path = r->options->output ? r->options->output : RT_DEFAULT_RECORDING;
	const char *folder = getenv("TMPDIR");
	_cleanup_close_ int fd = -1;

	if (strcmp(path, "-") != 0) {
		*ret = path;
		return NULL;
	}
	if (isatty(STDOUT_FILENO))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "record: a recording is nothing for a terminal"),
				    "reftrace record -o - ... | perf report -i -");
	if (asprintf(&r->aside, "%s/reftrace-XXXXXX", folder && *folder ? folder : "/tmp") < 0) {
		r->aside = NULL;
		return rt_error_nomem();
	}
	fd = mkostemp(r->aside, O_CLOEXEC);
	if (fd < 0) {
		struct rt_error *err = rt_error_errno(RT_E_UNWRITABLE, errno, "cannot write %s", r->aside);

		free(rt_take(r->aside));
		return err;
	}
	r->pipe_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (r->pipe_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot write to standard output");
	*ret = r->aside;
	return NULL;
}

void rt_recorder_tick(void *arg)
{
	struct rt_recorder *r = arg;
	struct rt_pipeline *p = r->pipeline;

	rt_progress_show(&r->progress, p->events + p->samples, r->all_bytes + p->file.written, p->lost);
}

void rt_recorder_deinit(struct rt_recorder *r)
{
	rt_progress_clear(&r->progress);
	rt_converter_destroyp(&r->converter);
	rt_control_closep(&r->control);
	rt_sampler_closep(&r->sampler);
	rt_bpf_source_destroyp(&r->bpf);
	rt_binaries_destroyp(&r->binaries);
	free(r->cache_root);
	if (r->delay.fd >= 0)
		close(r->delay.fd);
	for (size_t i = 0; i < r->finished.len; i++)
		free(r->finished.data[i]);
	rt_vec_deinit(&r->finished);
	if (r->aside)
		unlink(r->aside);
	free(r->aside);
	if (r->pipe_fd >= 0)
		close(r->pipe_fd);
	*r = (struct rt_recorder){ .delay = { .fd = -1 }, .pipe_fd = -1 };
}
