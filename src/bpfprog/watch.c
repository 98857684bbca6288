// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "bpfprog/links.h"
#include "bpfprog/watch_priv.h"

/* made by bpftool */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "bpfload.skel.h"
#pragma GCC diagnostic pop

#define DEFAULT_RING (16u << 20)
#define RING_MAX (1u << 30)
#define STATS_EVERY_NS 100000000ull
/* A load that the side band told and that was not copied by then is asked for: preempted loaders need a while. */
#define OVERDUE_NS 1000000000ull
#define UNLOADS_MAX 65536

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int libbpf_says(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[512];

	if (!rt_log_enabled("bpf"))
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	rt_log_debug("bpf", "libbpf: %.*s", (int)strcspn(text, "\n"), text);
	return 0;
}

static void note(struct rt_bpf_watch *w, struct rt_error *err)
{
	if (w->err)
		rt_error_free(err);
	else
		w->err = err;
}

/* ---- what the copying program says ---- */

static void take_attach(struct rt_bpf_watch *w, const struct rt_load_attach *a)
{
	struct rt_bpf_entry *e = rt_bpf_catalog_find(&w->catalog, a->head.id);
	char text[192];
	uint32_t prog;

	if (!e)
		return;
	if (a->group[0])
		snprintf(text, sizeof(text), "%s %.31s/%.63s",
			 !strcmp(a->group, "kprobes") || !strcmp(a->group, "uprobes") ? "probe" : "tracepoint",
			 a->group, a->name);
	else if (a->how == RT_ATTACHED_LINK && !a->name[0] && a->link &&
		 rt_bpf_link_describe(a->link, &prog, text, sizeof(text)) && prog == a->head.id)
		; /* the kernel's own words */
	else if (a->how == RT_ATTACHED_LINK)
		snprintf(text, sizeof(text), "%s%s%.63s", rt_bpf_link_name(a->link_type), a->name[0] ? " " : "",
			 a->name);
	else
		snprintf(text, sizeof(text), "%s",
			 a->how == RT_ATTACHED_PERF     ? "perf event"
			 : a->how == RT_ATTACHED_SOCKET ? "socket"
							: rt_bpf_attach_name(a->attach_type));
	rt_bpf_entry_attached(e, a->link, text);
}

/* Told before each descriptor is closed, so before the last one, too. */
static void take_stats(struct rt_bpf_watch *w, const struct rt_load_stats *s)
{
	struct rt_bpf_entry *e = rt_bpf_catalog_find(&w->catalog, s->head.id);

	if (!e || s->run_cnt < e->run_cnt)
		return;
	e->stats_known = true;
	e->run_cnt = s->run_cnt;
	e->run_time_ns = s->run_time_ns;
}

static int on_record(void *arg, void *data, size_t size)
{
	_cleanup_(rt_bpf_copy_destroyp) struct rt_bpf_copy *copy = NULL;
	struct rt_bpf_watch *w = arg;
	struct rt_load_head head;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	if (head.kind == RT_LOAD_ATTACH && size >= sizeof(struct rt_load_attach))
		take_attach(w, data);
	else if (head.kind == RT_LOAD_STATS && size >= sizeof(struct rt_load_stats))
		take_stats(w, data);
	else
		rt_bpf_copies_take(&w->copies, data, size, &copy);
	if (copy)
		note(w, rt_bpf_emit_copy(w, copy));
	return w->err ? -ECANCELED : 0;
}

/* ---- loads whose START or END found no room ---- */

struct loss {
	uint32_t id;
	struct rt_load_lost lost;
};

struct losses {
	RT_VEC(struct loss) list;
};

static void losses_deinit(struct losses *l)
{
	rt_vec_deinit(&l->list);
}

/*
 * Takes the table of losses before the ring is read: what the ring holds of
 * these loads was written before their loss was noted, so it will have been read afterwards.
 */
static struct rt_error *take_losses(struct rt_bpf_watch *w, struct losses *ret)
{
	int fd = bpf_map__fd(w->bpf->maps.losses);
	struct loss l;
	uint32_t id;

	while (!bpf_map_get_next_key(fd, NULL, &id)) {
		l.id = id;
		if (!bpf_map_lookup_elem(fd, &id, &l.lost) && !rt_vec_push(&ret->list, l))
			return rt_error_nomem();
		if (bpf_map_delete_elem(fd, &id))
			break;
	}
	return NULL;
}

static struct rt_error *settle_losses(struct rt_bpf_watch *w, const struct losses *losses)
{
	for (size_t i = 0; i < losses->list.len; i++) {
		const struct loss *l = &losses->list.data[i];
		_cleanup_(rt_bpf_copy_destroyp) struct rt_bpf_copy *copy = rt_bpf_copies_end(&w->copies, l->id);
		struct rt_error *err;

		if (copy) {
			copy->lost |= l->lost.mask & ~(1u << RT_ARRAY_START);
			RT_TRY(rt_bpf_emit_copy(w, copy));
			continue;
		}
		err = rt_bpf_emit_asked(w, l->id, l->lost.pid, l->lost.comm, rt_now_ns(), false);
		if (rt_error_catch(&err, RT_E_NOT_FOUND))
			err = rt_bpf_emit_lost(w, l->id, l->lost.pid, l->lost.comm, rt_now_ns(),
					       "the ring between kernel and reftrace was full");
		RT_TRY(err);
		rt_map_remove(&w->expected, rt_key_make(l->id, 0), NULL);
	}
	return NULL;
}

/* ---- what the side band says ---- */

static bool is_followed(const struct rt_bpf_watch *w, uint32_t pid)
{
	uint8_t value;

	if (pid == (uint32_t)getpid())
		return false;
	return w->all || !w->bpf || !bpf_map_lookup_elem(bpf_map__fd(w->bpf->maps.followed), &pid, &value);
}

static void on_load(struct rt_bpf_watch *w, const struct rt_bpf_event *event)
{
	const struct rt_bpf_entry *e = rt_bpf_catalog_find(&w->catalog, event->id);
	uint64_t *time, *pid;

	rt_map_remove(&w->unloads, rt_key_make(event->id, 0), NULL);
	/* the copy was made behind this event */
	if (event->time_ns < w->start_ns || (e && e->load_ns >= event->time_ns) || !is_followed(w, event->pid))
		return;
	time = rt_map_put(&w->expected, rt_key_make(event->id, 0), NULL);
	pid = rt_map_put(&w->loaders, rt_key_make(event->id, 0), NULL);
	if (!time || !pid) {
		note(w, rt_error_nomem());
		return;
	}
	*time = event->time_ns;
	*pid = event->pid;
}

static void on_event(void *arg, const struct rt_bpf_event *event)
{
	struct rt_bpf_watch *w = arg;
	struct rt_bpf_entry *e;
	uint64_t *time;

	if (event->load) {
		on_load(w, event);
		return;
	}
	e = rt_bpf_catalog_find(&w->catalog, event->id);
	if (e && !e->unload_ns && e->load_ns < event->time_ns) {
		e->unload_ns = event->time_ns;
		e->gone = true;
		e->extra_due = false;
		note(w, rt_bpf_emit_extra(w, e));
		return;
	}
	/* its copy is still under way; programs that nobody follows are forgotten now and then */
	if (w->unloads.len >= UNLOADS_MAX)
		rt_map_deinit(&w->unloads);
	time = rt_map_put(&w->unloads, rt_key_make(event->id, 0), NULL);
	if (time)
		*time = event->time_ns;
}

/* Loads before this time that the copying program did not see: made by loader programs inside the kernel. */
static struct rt_error *settle_expected(struct rt_bpf_watch *w, uint64_t before_ns)
{
	RT_VEC(uint32_t) due = { 0 };
	struct rt_error *err = NULL;
	size_t pos = 0;

	for (struct rt_map_slot *s; (s = rt_map_next(&w->expected, &pos));) {
		if ((!w->bpf || s->value < before_ns) && !rt_vec_push(&due, (uint32_t)s->key.a))
			err = rt_error_nomem();
	}
	for (size_t i = 0; i < due.len && !err; i++) {
		uint64_t time = 0, pid = 0;
		_cleanup_free_ char *comm = NULL;
		char path[48];

		rt_map_remove(&w->expected, rt_key_make(due.data[i], 0), &time);
		rt_map_remove(&w->loaders, rt_key_make(due.data[i], 0), &pid);
		snprintf(path, sizeof(path), "/proc/%u/comm", (unsigned)pid);
		rt_error_free(rt_fs_read(AT_FDCWD, path, 64, &comm, NULL));
		if (comm)
			comm[strcspn(comm, "\n")] = 0;
		err = rt_bpf_emit_asked(w, due.data[i], (uint32_t)pid, comm, time, false);
		if (rt_error_catch(&err, RT_E_NOT_FOUND))
			err = rt_bpf_emit_lost(w, due.data[i], (uint32_t)pid, comm, time,
					       "it was gone when the kernel was asked for it");
	}
	rt_vec_deinit(&due);
	return err;
}

/* ---- the watch ---- */

/* settle_ns: loads up to this time must have been copied by now; 0: those that are overdue. */
static struct rt_error *drain(struct rt_bpf_watch *w, uint64_t settle_ns)
{
	_cleanup_(losses_deinit) struct losses losses = { 0 };

	if (w->bpf) {
		RT_TRY(take_losses(w, &losses));
		ring_buffer__consume(w->ring);
		if (w->err)
			return rt_take(w->err);
		RT_TRY(settle_losses(w, &losses));
		w->catalog.lost_unnamed = w->bpf->bss->rt_counts.unnamed;
	}
	rt_bpf_sideband_drain(&w->band, on_event, w);
	w->catalog.lost_unloads = w->band.lost;
	if (w->err)
		return rt_take(w->err);
	RT_TRY(settle_expected(w, settle_ns ?: rt_now_ns() - OVERDUE_NS));
	if (w->stats && (settle_ns || rt_now_ns() - w->stats_ns > STATS_EVERY_NS)) {
		w->stats_ns = rt_now_ns();
		RT_TRY(rt_bpf_catalog_alive(&w->catalog));
	}
	return NULL;
}

struct rt_error *rt_bpf_watch_drain(struct rt_bpf_watch *w, struct rt_event_sink *sink)
{
	w->sink = sink;
	return drain(w, 0);
}

struct rt_error *rt_bpf_watch_existing(struct rt_bpf_watch *w, struct rt_event_sink *sink)
{
	uint32_t id = 0;

	w->sink = sink;
	while (!bpf_prog_get_next_id(id, &id)) {
		const struct rt_bpf_entry *e = rt_bpf_catalog_find(&w->catalog, id);
		struct rt_error *err;

		if ((e && !e->gone) || rt_map_get(&w->expected, rt_key_make(id, 0)))
			continue;
		err = rt_bpf_emit_asked(w, id, 0, NULL, 0, true);
		if (!rt_error_catch(&err, RT_E_NOT_FOUND) && err)
			return err;
	}
	return errno == ENOENT ? NULL : rt_bpf_refused(errno, "cannot ask for BPF programs");
}

struct rt_error *rt_bpf_watch_finish(struct rt_bpf_watch *w, struct rt_event_sink *sink)
{
	/* what is loaded from now on may be copied behind the last look at the ring */
	uint64_t end_ns = rt_now_ns();

	w->sink = sink;
	RT_TRY(drain(w, 0));
	RT_TRY(drain(w, end_ns));
	for (size_t i = 0; i < w->catalog.entries.len; i++) {
		struct rt_bpf_entry *e = w->catalog.entries.data[i];

		if (e->extra_due)
			RT_TRY(rt_bpf_emit_extra(w, e));
	}
	return NULL;
}

int rt_bpf_watch_fd(const struct rt_bpf_watch *w)
{
	return w->ring ? ring_buffer__epoll_fd(w->ring) : -1;
}

struct rt_bpf_catalog *rt_bpf_watch_catalog(struct rt_bpf_watch *w)
{
	return &w->catalog;
}

const char *rt_bpf_watch_limit(const struct rt_bpf_watch *w)
{
	return w->limit;
}

struct rt_error *rt_bpf_watch_follow(struct rt_bpf_watch *w, uint32_t pid)
{
	uint8_t one = 1;

	if (w->bpf && bpf_map_update_elem(bpf_map__fd(w->bpf->maps.followed), &pid, &one, BPF_ANY))
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot follow process %u", pid);
	return NULL;
}

static uint32_t ring_size(size_t wanted)
{
	uint32_t size = (uint32_t)sysconf(_SC_PAGESIZE);

	while (size < (wanted ?: DEFAULT_RING) && size < RING_MAX)
		size *= 2;
	return size;
}

/* 0 or a negative errno. stats: with the program that tells run times before descriptors are closed. */
static int try_load(struct rt_bpf_watch *w, const struct rt_bpf_watch_options *options, bool stats)
{
	int r;

	w->bpf = bpfload_bpf__open();
	if (!w->bpf)
		return -errno;
	w->bpf->rodata->rt_all = options->all;
	w->bpf->rodata->rt_own = (uint32_t)getpid();
	w->bpf->rodata->rt_since = clock_ns(CLOCK_BOOTTIME);
	w->bpf->rodata->rt_cpus = stats ? (uint32_t)libbpf_num_possible_cpus() : 0;
	bpf_program__set_autoload(w->bpf->progs.drop, stats);
	bpf_map__set_max_entries(w->bpf->maps.load_ring, ring_size(options->ring_bytes));
	r = bpfload_bpf__load(w->bpf);
	if (!r)
		r = bpfload_bpf__attach(w->bpf);
	if (!r) {
		w->ring = ring_buffer__new(bpf_map__fd(w->bpf->maps.load_ring), on_record, w, NULL);
		r = w->ring ? 0 : -errno;
	}
	if (r) {
		bpfload_bpf__destroy(w->bpf);
		w->bpf = NULL;
	}
	return r;
}

/* The copying program; what this kernel does not take is no error: then it is asked after each load. */
static struct rt_error *load(struct rt_bpf_watch *w, const struct rt_bpf_watch_options *options)
{
	int r = try_load(w, options, options->stats);

	/* lookups on other CPUs came with 5.19: without them, run times are those of the last question */
	if (r && r != -EPERM && options->stats)
		r = try_load(w, options, false);
	if (!r)
		return NULL;
	/* EACCES is the verifier's word */
	if (r == -EPERM)
		return rt_bpf_refused(-r, "cannot load BPF programs");
	if (asprintf(&w->limit,
		     "this kernel does not take the program that copies loads (%s): programs that are closed at once "
		     "are "
		     "missed",
		     strerror(-r)) < 0) {
		w->limit = NULL;
		return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *start(struct rt_bpf_watch *w, const struct rt_bpf_watch_options *options)
{
	libbpf_print_fn_t old = libbpf_set_print(libbpf_says);
	struct rt_error *err = rt_bpf_sideband_open(&w->band);

	if (!err)
		err = load(w, options);
	libbpf_set_print(old);
	w->start_ns = rt_now_ns();
	for (size_t i = 0; !err && i < options->pid_count; i++)
		err = rt_bpf_watch_follow(w, options->pids[i]);
	if (err || !options->stats)
		return err;
	w->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return w->stats_fd < 0 ? rt_bpf_refused(errno, "cannot let the kernel count run times") : NULL;
}

struct rt_error *rt_bpf_watch_create(const struct rt_bpf_watch_options *options, struct rt_bpf_watch **ret)
{
	_cleanup_(rt_bpf_watch_destroyp) struct rt_bpf_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return rt_error_nomem();
	w->stats_fd = -1;
	w->all = options->all;
	w->stats = options->stats;
	RT_TRY(start(w, options));
	*ret = rt_take(w);
	return NULL;
}

void rt_bpf_watch_destroy(struct rt_bpf_watch *w)
{
	if (!w)
		return;
	if (w->stats_fd >= 0)
		close(w->stats_fd);
	rt_bpf_sideband_close(&w->band);
	if (w->ring)
		ring_buffer__free(w->ring);
	if (w->bpf)
		bpfload_bpf__destroy(w->bpf);
	rt_bpf_copies_deinit(&w->copies);
	rt_bpf_catalog_deinit(&w->catalog);
	rt_map_deinit(&w->btfs);
	rt_map_deinit(&w->expected);
	rt_map_deinit(&w->loaders);
	rt_map_deinit(&w->unloads);
	rt_error_free(w->err);
	free(w->limit);
	free(w);
}
