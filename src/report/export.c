/* SPDX-License-Identifier: GPL-2.0-only */
/* Collects what the writers write. */
#include <string.h>

#include "base/glob.h"
#include "report/export_parts.h"
#include "report/words.h"

static const struct {
	struct rt_error *(*write)(struct rt_export *e);
	bool by_life, by_sample;
} writers[RT_EXPORT_NR] = {
	[RT_EXPORT_FOLDED] = { rt_ex_folded, false, false },
	[RT_EXPORT_PERFETTO] = { rt_ex_perfetto, true, true },
	[RT_EXPORT_SPEEDSCOPE] = { rt_ex_speedscope, false, false },
	[RT_EXPORT_FIREFOX] = { rt_ex_firefox, true, true },
	[RT_EXPORT_PPROF] = { rt_ex_pprof, false, false },
	[RT_EXPORT_REFCOUNT] = { rt_ex_refcount, true, false },
};

struct rt_error *rt_export_create(enum rt_export_format format, struct rt_namer *namer, struct rt_lifetime *lifetime,
				  const struct rt_export_options *options, struct rt_sink *sink, struct rt_export **ret)
{
	struct rt_export *e = calloc(1, sizeof(*e));

	if (!e)
		return rt_error_nomem();
	e->namer = namer;
	e->lifetime = lifetime;
	e->sink = sink;
	e->format = format;
	if (options)
		e->options = *options;
	e->options.limit = e->options.limit ? e->options.limit : RT_EXPORT_LIMIT;
	e->by_life = writers[format].by_life;
	e->by_sample = writers[format].by_sample;
	rt_ex_observe(e);
	*ret = e;
	return NULL;
}

void rt_export_destroy(struct rt_export *e)
{
	if (!e)
		return;
	rt_lifetime_observe(e->lifetime, NULL);
	rt_ex_lives_free(e);
	rt_intern_deinit(&e->strings);
	rt_intern_deinit(&e->frame_ids);
	rt_vec_deinit(&e->frames);
	rt_vec_deinit(&e->nodes);
	rt_map_deinit(&e->node_by_key);
	rt_vec_deinit(&e->node_of_place);
	rt_vec_deinit(&e->place_frames);
	rt_map_deinit(&e->place_by_ip);
	rt_vec_deinit(&e->classes);
	rt_map_deinit(&e->class_of_type);
	rt_map_deinit(&e->class_of_event);
	rt_map_deinit(&e->point_by_id);
	rt_vec_deinit(&e->points);
	rt_vec_deinit(&e->counts);
	rt_map_deinit(&e->count_by_key);
	rt_map_deinit(&e->comm_by_tid);
	rt_map_deinit(&e->epoch_by_pid);
	rt_vec_deinit(&e->samples);
	free(e);
}

struct rt_ex_count *rt_ex_count(struct rt_export *e, uint32_t class, uint32_t who, uint32_t node)
{
	bool made;
	uint64_t *slot = rt_map_put(&e->count_by_key, rt_key_make((uint64_t) class << 32 | who, node), &made);

	if (!slot)
		return NULL;
	if (made) {
		if (!rt_vec_push(&e->counts, ((struct rt_ex_count){ .class = class, .who = who, .node = node }))) {
			rt_map_remove(&e->count_by_key, rt_key_make((uint64_t) class << 32 | who, node), NULL);
			return NULL;
		}
		*slot = e->counts.len - 1;
	}
	return &e->counts.data[*slot];
}

const char *rt_ex_title(const struct rt_export *e, struct rt_arena *arena)
{
	const char *title = "";

	for (const char *const *word = e->command; word && *word; word++)
		title = rt_format(arena, "%s%s%s", title, *title ? " " : "", *word);
	return *title ? title : "reftrace";
}

static bool wanted(const struct rt_export *e, const char *type)
{
	if (!e->options.types)
		return true;
	for (const char *const *t = e->options.types; *t; t++) {
		if (rt_glob_match(*t, type))
			return true;
	}
	return false;
}

static struct rt_error *take_type(struct rt_export *e, const struct rt_wire_type *type)
{
	uint64_t *slot = rt_map_put(&e->class_of_type, rt_key_make(type->id, 0), NULL);
	struct rt_ex_class class = { .lives = true };

	class.name = rt_intern_string(&e->strings, type->name);
	if (!slot || !class.name)
		return rt_error_nomem();
	if (*slot || !wanted(e, type->name))
		return NULL;
	if (!rt_vec_push(&e->classes, class))
		return rt_error_nomem();
	*slot = e->classes.len;
	return NULL;
}

static struct rt_error *take_point(struct rt_export *e, const struct rt_wire_point *point)
{
	uint64_t *slot = rt_map_put(&e->point_by_id, rt_key_make(point->id, 0), NULL);
	uint32_t name = rt_intern_string(&e->strings, point->name);

	if (!slot || !name || !rt_vec_push(&e->points, ((struct rt_ex_point){ .name = name })))
		return rt_error_nomem();
	*slot = e->points.len - 1;
	return NULL;
}

struct rt_error *rt_export_wire(struct rt_export *e, const struct rt_wire_head *record)
{
	if (record->kind == RT_WIRE_TYPE)
		return take_type(e, (const struct rt_wire_type *)(const void *)record);
	if (record->kind == RT_WIRE_POINT)
		return take_point(e, (const struct rt_wire_point *)(const void *)record);
	return NULL;
}

static struct rt_error *take_comm(struct rt_export *e, const struct rt_perf_comm *c)
{
	uint64_t *slot = rt_map_put(&e->comm_by_tid, rt_key_make(c->tid, 0), NULL);
	uint64_t *epoch = rt_map_put(&e->epoch_by_pid, rt_key_make(c->pid, 0), NULL);

	if (!slot || !epoch)
		return rt_error_nomem();
	*slot = rt_intern_string(&e->strings, c->comm);
	*epoch += c->exec;
	return *slot ? NULL : rt_error_nomem();
}

static struct rt_error *take_fork(struct rt_export *e, const struct rt_perf_task *t)
{
	const uint64_t *parent = rt_map_get(&e->comm_by_tid, rt_key_make(t->ptid, 0));
	uint64_t comm = parent ? *parent : 0;
	uint64_t *slot = rt_map_put(&e->comm_by_tid, rt_key_make(t->tid, 0), NULL);
	uint64_t *epoch = rt_map_put(&e->epoch_by_pid, rt_key_make(t->pid, 0), NULL);

	if (!slot || !epoch)
		return rt_error_nomem();
	*slot = comm;
	*epoch += t->pid == t->tid;
	return NULL;
}

static uint32_t comm_of(struct rt_export *e, uint32_t tid)
{
	uint64_t *slot = rt_map_put(&e->comm_by_tid, rt_key_make(tid, 0), NULL);
	char text[16];

	if (slot && !*slot) {
		/* as perf writes a thread whose name it never saw */
		snprintf(text, sizeof(text), tid ? ":%u" : "swapper", tid);
		*slot = rt_intern_string(&e->strings, text);
	}
	return slot ? (uint32_t)*slot : 0;
}

static bool counts_ns(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* index + 1 of the event's class; 0: out of memory */
static uint64_t class_of_event(struct rt_export *e, unsigned number, const struct rt_perf_event *event)
{
	uint64_t *slot = rt_map_put(&e->class_of_event, rt_key_make(number, 0), NULL);
	struct rt_ex_class class = { .clock = counts_ns(&event->attr) };

	if (!slot || *slot)
		return slot ? *slot : 0;
	class.name = rt_intern_string(&e->strings, event->name ?: "event");
	if (!class.name || !rt_vec_push(&e->classes, class))
		return 0;
	*slot = e->classes.len;
	return *slot;
}

/* Does the format take samples of the class? */
static bool takes(struct rt_export *e, uint32_t class)
{
	const char *name = rt_ex_text(e, e->classes.data[class].name);

	if (e->options.event ? strcmp(e->options.event, name) != 0
			     : e->format == RT_EXPORT_FOLDED && e->only_event && e->only_event != class + 1) {
		e->result.other_samples++;
		e->result.other_event = name;
		return false;
	}
	if (!e->only_event)
		e->result.event = name;
	e->only_event = class + 1;
	return true;
}

static struct rt_error *take_sample(struct rt_export *e, const struct rt_perf_event *event,
				    const struct rt_perf_record *r)
{
	uint64_t class = class_of_event(e, r->event, event);
	struct rt_ex_sample s = { .time_ns = r->id.time_ns,
				  .period = rt_perf_period(&event->attr, &r->sample),
				  .pid = r->id.pid,
				  .tid = r->id.tid,
				  .cpu = r->id.cpu,
				  .comm = comm_of(e, r->id.tid) };
	struct rt_ex_count *count;
	bool ok = true;

	if (!class || !s.comm)
		return rt_error_nomem();
	s.class = (uint32_t) class - 1;
	if (!takes(e, s.class))
		return NULL;
	s.node = rt_ex_chain(e, r->id.pid, r->id.time_ns, r->sample.ip, r->sample.chain, r->sample.chain_count, &ok);
	count = ok ? rt_ex_count(e, s.class, s.comm, s.node) : NULL;
	if (!count)
		return rt_error_nomem();
	count->value[RT_EX_SAMPLES]++;
	count->value[RT_EX_PERIOD] += (int64_t)s.period;
	e->classes.data[s.class].samples++;
	e->result.samples++;
	if (!e->by_sample || !s.time_ns)
		return NULL;
	e->first_ns = !e->first_ns || s.time_ns < e->first_ns ? s.time_ns : e->first_ns;
	e->last_ns = s.time_ns > e->last_ns ? s.time_ns : e->last_ns;
	if (e->samples.len >= RT_EXPORT_SAMPLES) {
		e->result.samples_left_out++;
		return NULL;
	}
	return rt_vec_push(&e->samples, s) ? NULL : rt_error_nomem();
}

struct rt_error *rt_export_perf(struct rt_export *e, const struct rt_perf_event *events, const struct rt_perf_record *r)
{
	switch (r->type) {
	case RT_PERF_SAMPLE:
		return take_sample(e, &events[r->event], r);
	case RT_PERF_COMM:
		return take_comm(e, &r->comm);
	case RT_PERF_FORK:
		return take_fork(e, &r->task);
	default:
		return NULL;
	}
}

struct rt_error *rt_export_end(struct rt_export *e, const char *const *command, struct rt_export_result *ret)
{
	e->command = command;
	RT_TRY(rt_ex_lives_end(e));
	RT_TRY(writers[e->format].write(e));
	RT_TRY(rt_sink_end(e->sink));
	*ret = e->result;
	return NULL;
}
