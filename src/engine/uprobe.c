// SPDX-License-Identifier: GPL-2.0-only
/*
 * Engine K: BPF programs behind uprobes. This file holds the ops table and the
 * processes; see uprobe_priv.h for the rest.
 */
#include <errno.h>
#include <fcntl.h>

#include <bpf/bpf.h>

#include "base/log.h"
#include "engine/point_count.h"
#include "engine/point_probe.h"
#include "engine/tracefs_own.h"
#include "engine/uprobe_priv.h"

static struct rt_uprobe *uprobe_of(struct rt_engine *engine)
{
	return (struct rt_uprobe *)(void *)engine; /* base is its first member */
}

bool rt_uprobe_avoid_nop5(void)
{
	return true;
}

void rt_uprobe_fail(const struct rt_uprobe_report *report, struct rt_uprobe_site *site, int errnum, const char *why)
{
	struct rt_arm_failure failure = { .point = site->point, .errnum = errnum, .why = why };

	site->bad = true;
	if (report->failed)
		report->failed(&failure, report->arg);
}

/* Entries whose last link is closed may be used again. */
static void collect_entries(struct rt_uprobe *u)
{
	uint32_t entry;

	while (rt_reaper_done(u->reaper, &entry))
		(void)rt_vec_push(&u->free_processes, entry);
}

struct rt_error *rt_uprobe_process(struct rt_uprobe *u, uint32_t pid, uint32_t wire_pid, uint32_t *ret)
{
	uint64_t *known = rt_map_get(&u->by_pid, rt_key_make(pid, 0));
	uint32_t entry;

	collect_entries(u);
	if (known) {
		entry = *known;
	} else {
		uint64_t *slot;

		if (u->free_processes.len)
			entry = u->free_processes.data[--u->free_processes.len];
		else if (u->process_end < RT_UPROBE_PROCESSES)
			entry = u->process_end++;
		else
			return rt_error_new(RT_E_LIMIT, "more than %d processes are traced", RT_UPROBE_PROCESSES);
		slot = rt_map_put(&u->by_pid, rt_key_make(pid, 0), NULL);
		if (!slot) {
			(void)rt_vec_push(&u->free_processes, entry);
			return rt_error_nomem();
		}
		*slot = entry;
		u->processes[entry].pid = pid;
		u->process_table[entry].salt = ++u->salt;
	}
	u->process_table[entry].wire_pid = wire_pid ? wire_pid : pid;
	*ret = entry;
	return NULL;
}

/* Two return points at one instruction of one process would take each other's returns. */
static bool return_is_taken(struct rt_uprobe *u, struct rt_uprobe_process *process, const struct rt_point *point)
{
	bool fresh = false;
	uint64_t *owner =
		rt_map_put(&process->armed, rt_key_make(point->offset.v, 1 + (uint64_t)point->module), &fresh);

	if (owner && fresh)
		*owner = point->id;
	return owner && *owner != point->id;
}

static bool kernel_raises(const struct rt_uprobe *u)
{
	return u->options.semaphore == RT_SEMAPHORE_AUTO || u->options.semaphore == RT_SEMAPHORE_KERNEL;
}

/* What was armed before as well: a module that came again has counters of its own. */
static struct rt_error *raise_semaphores(struct rt_uprobe *u, const struct rt_arm *arm)
{
	for (size_t i = 0; i < arm->point_count; i++) {
		const struct rt_point *p = arm->points[i];
		struct rt_semaphore_place place = { .pid = arm->pid,
						    .tag = p->id,
						    .code = arm->bias + p->address.v,
						    .counter = arm->bias + p->counter.v,
						    .offset = p->semaphore.v };

		if (!p->semaphore.v)
			continue;
		if (!u->semaphores)
			RT_TRY(rt_semaphores_create(&u->semaphores));
		RT_TRY(rt_semaphores_raise(u->semaphores, &place));
	}
	return NULL;
}

/* What is armed already in its place is told of again. */
static struct rt_error *choose_unwinder(struct rt_uprobe_process *process, const struct rt_arm *arm,
					const struct rt_unwinder *unwinder, struct rt_uprobe_sites *sites)
{
	struct rt_uprobe_unwinder place = { arm->bias + unwinder->address.v, unwinder->kind };
	struct rt_uprobe_site *s;

	for (size_t i = 0; i < process->unwinders.len; i++)
		if (process->unwinders.data[i].address == place.address)
			return NULL;
	s = rt_vec_add(&sites->unwinders);
	if (!s || !rt_vec_push(&process->unwinders, place))
		return rt_error_nomem();
	s->offset = unwinder->offset.v;
	s->address = place.address;
	return NULL;
}

/* Those points of the request that are not armed yet, with their table entries filled. */
static struct rt_error *choose_sites(struct rt_uprobe *u, uint32_t entry, const struct rt_arm *arm,
				     struct rt_uprobe_sites *sites, const struct rt_uprobe_report *report)
{
	struct rt_uprobe_process *process = &u->processes[entry];

	for (size_t i = 0; i < arm->point_count; i++) {
		const struct rt_point *p = arm->points[i];
		struct rt_uprobe_site *s;
		const char *why;
		bool fresh = false;

		if (!rt_map_put(&process->armed, rt_key_make(p->id, 0), &fresh))
			return rt_error_nomem();
		if (!fresh)
			continue;
		s = rt_vec_add(&sites->list);
		if (!s)
			return rt_error_nomem();
		s->offset = p->offset.v;
		s->semaphore = kernel_raises(u) ? p->semaphore.v : 0;
		s->address = arm->bias + p->address.v;
		s->point = p->id;
		s->at_return = rt_point_at_return(p);
		if (s->at_return)
			rt_uprobe_expect_returns(u, true);
		why = rt_uprobe_point_set(u, p);
		if (!why && s->at_return && return_is_taken(u, process, p))
			why = "another point waits for the same function's return";
		if (why)
			rt_uprobe_fail(report, s, 0, why);
	}
	for (size_t i = 0; i < arm->unwinder_count; i++)
		RT_TRY(choose_unwinder(process, arm, &arm->unwinders[i], sites));
	if (arm->stop_at.v) {
		sites->stop.offset = arm->stop_offset.v;
		sites->stop.address = arm->bias + arm->stop_at.v;
	}
	return NULL;
}

struct rt_error *rt_uprobe_extend(struct rt_uprobe *u, const struct rt_arm *arm, const struct rt_uprobe_report *report)
{
	struct rt_uprobe_sites sites = { 0 };
	struct rt_error *err;
	uint32_t entry = 0;

	if (u->stopped)
		return rt_error_new(RT_E_INTERNAL, "engine uprobe: extend after stop");
	RT_TRY(rt_uprobe_process(u, arm->pid, arm->wire_pid, &entry));
	if (arm->point_count && arm->points[0]->kind == RT_POINT_CALL)
		return rt_uprobe_call_arm(u, entry, arm, report);
	err = choose_sites(u, entry, arm, &sites, report);
	if (!err) {
		rt_uprobe_check_before(u, arm, &sites, report);
		err = u->path == RT_ATTACH_MULTI ? rt_multi_arm(u, entry, arm, &sites, report)
						 : rt_tracefs_arm(u, entry, arm, &sites, report);
	}
	if (!err)
		rt_uprobe_check_after(u, arm, &sites, report);
	if (!err && u->options.semaphore == RT_SEMAPHORE_WRITE)
		err = raise_semaphores(u, arm);
	rt_vec_deinit(&sites.list);
	rt_vec_deinit(&sites.unwinders);
	return err;
}

static struct rt_error *uprobe_extend(struct rt_engine *engine, const struct rt_arm *arm,
				      void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg)
{
	struct rt_uprobe_report report = { failed, arg };

	return rt_uprobe_extend(uprobe_of(engine), arm, &report);
}

static struct rt_error *uprobe_code(struct rt_engine *engine, const struct rt_arm *arm,
				    const struct rt_engine_code *list, size_t count)
{
	struct rt_uprobe *u = uprobe_of(engine);
	uint32_t entry = 0;

	if (u->stopped)
		return rt_error_new(RT_E_INTERNAL, "engine uprobe: code after stop");
	if (!u->by_rows)
		return NULL;
	RT_TRY(rt_uprobe_process(u, arm->pid, arm->wire_pid, &entry));
	return rt_uprobe_code(u, entry, list, count);
}

static struct rt_error *uprobe_drain(struct rt_engine *engine, struct rt_event_sink *sink)
{
	struct rt_uprobe *u = uprobe_of(engine);

	if (u->semaphores)
		RT_TRY(rt_semaphores_settle(u->semaphores));
	RT_TRY(rt_ring_drain(u, sink));
	return rt_counted_say(&u->counted, sink);
}

/* Breakpoints belong to a process; what was written into the parent is in the child, too. */
static struct rt_error *uprobe_fork(struct rt_engine *engine, uint32_t parent, uint32_t pid, uint32_t wire_pid)
{
	struct rt_uprobe *u = uprobe_of(engine);

	RT_TRY(rt_uprobe_inherit(u, parent, pid, wire_pid));
	return u->semaphores ? rt_semaphores_fork(u->semaphores, parent, pid) : NULL;
}

static struct rt_error *uprobe_leave(struct rt_engine *engine, uint32_t parent, uint32_t pid)
{
	const struct rt_uprobe *u = uprobe_of(engine);

	return u->semaphores ? rt_semaphores_leave(u->semaphores, parent, pid) : NULL;
}

/* Hands the links of a process to the reaper. silent: its hits do not count from now on. */
static void release_process(struct rt_uprobe *u, uint32_t entry, bool silent)
{
	struct rt_uprobe_process *process = &u->processes[entry];

	if (silent)
		__atomic_store_n(&u->process_table[entry].wire_pid, 0, __ATOMIC_SEQ_CST);
	rt_uprobe_code_forget(u, entry);
	if (u->tracefs)
		rt_tracefs_forget(u, process->pid);
	rt_uprobe_call_forget(u, process->pid);
	rt_map_remove(&u->by_pid, rt_key_make(process->pid, 0), NULL);
	rt_reaper_close(u->reaper, process->links.data, process->links.len, entry);
	rt_vec_deinit(&process->links);
	rt_vec_deinit(&process->unwinders);
	rt_map_deinit(&process->armed);
	process->armed = (struct rt_map){ 0 };
	process->pid = 0;
}

/* What cannot be kept is said when it is asked for. */
static void take_tally(struct rt_uprobe *u, uint32_t entry)
{
	struct rt_error *err = rt_uprobe_tally_take(u, entry, u->process_table[entry].wire_pid);

	u->counted.nomem |= err != NULL;
	rt_error_free(err);
}

static void uprobe_forget(struct rt_engine *engine, uint32_t pid)
{
	struct rt_uprobe *u = uprobe_of(engine);
	uint64_t *entry = rt_map_get(&u->by_pid, rt_key_make(pid, 0));

	/* a keeper that has ended is told of where something is asked of it */
	if (u->semaphores)
		rt_error_free(rt_semaphores_forget(u->semaphores, pid));
	if (entry)
		take_tally(u, (uint32_t)*entry);
	if (entry)
		release_process(u, *entry, true);
	collect_entries(u);
}

static bool uprobe_unwinds(struct rt_engine *engine, uint32_t pid, uint32_t tid)
{
	return rt_uprobe_unwinds(uprobe_of(engine), pid, tid);
}

static void uprobe_settle(struct rt_engine *engine)
{
	struct rt_uprobe *u = uprobe_of(engine);

	if (u->reaper)
		rt_reaper_wait(u->reaper);
}

/* Closes every link and waits for it: afterwards no program runs any more. */
static void disarm(struct rt_uprobe *u)
{
	_cleanup_free_ bool *gone = calloc(u->process_end + 1, sizeof(*gone));

	if (!u->stopped)
		rt_uprobe_unwind_all(u);
	rt_uprobe_call_stop(u);
	if (!u->reaper || !gone)
		return;
	for (uint32_t i = 1; i < u->process_end; i++) {
		gone[i] = u->processes[i].pid != 0;
		if (gone[i])
			release_process(u, i, false);
	}
	rt_reaper_wait(u->reaper);
	for (uint32_t i = 1; i < u->process_end; i++)
		if (gone[i])
			take_tally(u, i);
	collect_entries(u);
	rt_tracefs_destroy(u->tracefs);
	u->tracefs = NULL;
	u->stopped = true;
}

static void sum_point(const struct rt_uprobe *u, uint32_t point, struct rt_point_count *ret)
{
	*ret = (struct rt_point_count){ .records = u->records[point] };
	for (uint32_t cpu = 0; cpu < u->cpus; cpu++)
		rt_point_count_add(ret, &u->counts[(size_t)cpu * u->points + point]);
}

/*
 * Entries of each point that wait for a return which the kernel will show, or
 * would have shown had the function returned: it runs, the program ended in it, or it was left by a jump.
 */
static void count_waiting(struct rt_uprobe *u, uint64_t *waiting)
{
	struct rt_pending_key key, next;
	struct rt_pending pending;
	void *from = NULL;
	int fd = rt_uprobe_map_pendings(u);

	while (!bpf_map_get_next_key(fd, from, &next)) {
		key = next;
		from = &key;
		if (!bpf_map_lookup_elem(fd, &key, &pending) && RT_COOKIE_POINT(pending.cookie) <= u->last_point &&
		    pending.nested <= RT_PENDING_MAX && (!pending.lifted || pending.lifted & RT_PENDING_FORCED))
			waiting[RT_COOKIE_POINT(pending.cookie)]++;
	}
}

struct missing {
	struct rt_event_sink *sink;
	struct rt_error *err;
};

static void tell_missing(const struct rt_semaphore_place *place, void *arg)
{
	struct missing *m = arg;

	if (!m->err)
		m->err = rt_point_say_loss(m->sink, RT_LOSS_UNARMED, place->tag, 1,
					   "its semaphore could not be raised: it was in no writable memory");
}

/* Semaphores are lowered while the processes stand; those that never could be raised are a gap. */
static struct rt_error *lower_semaphores(struct rt_uprobe *u, struct rt_event_sink *sink)
{
	struct missing missing = { sink, NULL };

	if (!u->semaphores)
		return NULL;
	rt_semaphores_missing(u->semaphores, tell_missing, &missing);
	rt_semaphores_destroy(rt_take(u->semaphores));
	return missing.err;
}

static struct rt_error *uprobe_stop(struct rt_engine *engine, struct rt_event_sink *sink)
{
	struct rt_uprobe *u = uprobe_of(engine);
	_cleanup_free_ uint64_t *waiting = calloc(u->last_point + 1, sizeof(*waiting));

	if (u->stopped)
		return NULL;
	RT_TRY(lower_semaphores(u, sink));
	disarm(u);
	if (!waiting)
		return rt_error_nomem();
	RT_TRY(rt_ring_drain(u, sink));
	RT_TRY(rt_counted_say(&u->counted, sink));
	count_waiting(u, waiting);
	for (uint32_t point = 1; point <= u->last_point; point++) {
		struct rt_point_count count;

		if (!u->probes[point].op)
			continue;
		sum_point(u, point, &count);
		count.waiting = waiting[point] + u->left[point];
		u->returns_missed += rt_point_count_missed(&count);
		RT_TRY(rt_point_say(sink, point, &count,
				    u->options.counting ? "the table of objects was full" : "the ring buffer was full",
				    "returns not seen: an unwinder was there, or calls nested more than 64 deep"));
	}
	return NULL;
}

static void uprobe_stats(struct rt_engine *engine, struct rt_engine_stats *ret)
{
	struct rt_uprobe *u = uprobe_of(engine);
	struct rt_engine_stats stats = { .balanced = true, .returns_missed = u->returns_missed };

	for (uint32_t point = 1; point <= u->last_point; point++) {
		struct rt_point_count count;

		sum_point(u, point, &count);
		stats.records += count.records;
		stats.hits += count.sum.hits;
		stats.dropped += count.sum.ring + count.sum.busy;
		stats.faults += count.sum.faults;
		stats.stack_resent += count.sum.resent;
		stats.passed += count.sum.passed;
		stats.returns += count.sum.entries;
		if (u->steps[point])
			stats.steps += count.sum.entries ?: count.sum.hits;
		stats.balanced = stats.balanced && rt_point_count_balances(&count);
	}
	*ret = stats;
}

static void uprobe_sample(struct rt_engine *engine, uint32_t rate)
{
	rt_uprobe_sample(uprobe_of(engine), rate);
}

static struct rt_error *uprobe_cost(struct rt_engine *engine, struct rt_engine_cost *ret)
{
	return rt_uprobe_cost(uprobe_of(engine), ret);
}

static void uprobe_close(struct rt_engine *engine)
{
	struct rt_uprobe *u = uprobe_of(engine);

	if (!u)
		return;
	rt_semaphores_destroyp(&u->semaphores); /* where it was not stopped */
	if (u->processes)
		disarm(u);
	rt_reaper_destroy(u->reaper);
	rt_tracefs_destroy(u->tracefs); /* where there was no reaper yet */
	rt_uprobe_unload(u);
	rt_uprobe_code_deinit(&u->code);
	rt_map_deinit(&u->by_pid);
	rt_map_deinit(&u->armed);
	rt_vec_deinit(&u->free_processes);
	free(u->processes);
	rt_counted_drop(&u->counted);
	free(u->records);
	free(u->left);
	free(u->steps);
	free(u);
}

static void uprobe_closep(struct rt_uprobe **u)
{
	if (*u)
		uprobe_close(&(*u)->base);
}

/* One attempt: this path, with or without sessions. */
static struct rt_error *open_path(const struct rt_engine_options *options, enum rt_attach_path path, bool session,
				  struct rt_uprobe **ret)
{
	_cleanup_(uprobe_closep) struct rt_uprobe *u = calloc(1, sizeof(*u));

	if (!u)
		return rt_error_nomem();
	u->base.ops = &rt_engine_uprobe;
	u->options = *options;
	u->path = path;
	u->session = session;
	u->process_end = 1;
	u->call_links[0] = u->call_links[1] = -1;
	u->processes = calloc(RT_UPROBE_PROCESSES, sizeof(*u->processes));
	if (!u->processes)
		return rt_error_nomem();
	RT_TRY(rt_uprobe_load(u));
	u->records = calloc(u->points, sizeof(*u->records));
	u->left = calloc(u->points, sizeof(*u->left));
	u->steps = calloc(u->points, sizeof(*u->steps));
	if (!u->records || !u->left || !u->steps)
		return rt_error_nomem();
	if (path == RT_ATTACH_TRACEFS)
		RT_TRY(rt_tracefs_create(options->root_fd, &u->tracefs));
	RT_TRY(rt_reaper_create(&u->reaper));
	RT_TRY(rt_uprobe_selftest(u));
	if (options->counting)
		rt_uprobe_count(u);
	if (options->sample.governed)
		RT_TRY(rt_uprobe_cost(u, &(struct rt_engine_cost){ 0 }));
	*ret = rt_take(u);
	return NULL;
}

static struct rt_error *uprobe_open(const struct rt_engine_options *options, struct rt_engine **ret)
{
	static const struct {
		enum rt_attach_path path;
		bool session;
	} ways[] = { { RT_ATTACH_MULTI, true }, { RT_ATTACH_MULTI, false }, { RT_ATTACH_TRACEFS, false } };
	struct rt_error *err = NULL;
	size_t busy;

	rt_error_free(rt_tracefs_cleanup_stale(options->root_fd, &busy));
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct rt_uprobe *u = NULL;
		struct rt_error *now;

		if (options->attach != RT_ATTACH_AUTO && options->attach != ways[i].path)
			continue;
		now = open_path(options, ways[i].path, ways[i].session, &u);
		if (!now) {
			rt_error_free(err);
			*ret = &u->base;
			return NULL;
		}
		rt_log_debug("engine", "path %d session %d: %s", ways[i].path, ways[i].session, now->message);
		if (err && err->code == RT_E_PRIVILEGE) {
			rt_error_free(now);
		} else {
			rt_error_free(err);
			err = now;
		}
	}
	return err;
}

const struct rt_engine_ops rt_engine_uprobe = {
	.name = "uprobe",
	.probe = rt_uprobe_try,
	.open = uprobe_open,
	.extend = uprobe_extend,
	.code = uprobe_code,
	.fork = uprobe_fork,
	.leave = uprobe_leave,
	.sample = uprobe_sample,
	.cost = uprobe_cost,
	.drain = uprobe_drain,
	.forget = uprobe_forget,
	.settle = uprobe_settle,
	.unwinds = uprobe_unwinds,
	.stop = uprobe_stop,
	.stats = uprobe_stats,
	.close = uprobe_close,
};
