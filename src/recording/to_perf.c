/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Second reading of the spool: each record becomes what perf.data has for it.
 * Nothing is reordered but gets and puts among themselves (batch.h); perf sorts by time itself.
 */
#include "recording/to_perf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "capture/spool.h"
#include "elf/image.h"
#include "recording/batch.h"
#include "recording/bpf_calls.h"
#include "recording/inventory.h"
#include "recording/kernel_names.h"

enum { CHAIN_MAX = RT_STACK_MAX + 1 };

struct frames {
	uint64_t chain[CHAIN_MAX]; /* PERF_CONTEXT_USER, then innermost first */
	unsigned count;
};

struct module {
	char *path;
	uint8_t build_id[20];
	uint8_t build_id_size;
	bool main;
};

struct conversion {
	const struct rt_to_perf_options *options;
	struct rt_inventory inventory;
	struct rt_perf_writer *writer;
	struct rt_map stack_by_id; /* (pid, id) -> index of stacks + 1 */
	RT_VEC(struct frames) stacks;
	struct rt_map module_by_id; /* id -> index of modules + 1 */
	RT_VEC(struct module) modules;
	struct rt_batch batch; /* gets and puts that are not written yet */
	struct rt_map named;   /* pid -> 1: its COMM was written */
	uint64_t now_ns;       /* of the latest record that had a time */
	unsigned first_ours;   /* index of our first event in the file */
	uint8_t meta[RT_REFTRACE_META_HEAD + RT_REFTRACE_META_MAX];
};

static struct rt_perf_record blank(const struct rt_wire_head *head, uint32_t type)
{
	return (struct rt_perf_record){
		.type = type,
		.misc = RT_PERF_USER,
		.id = { .time_ns = head->time_ns,
			.pid = RT_PID_OF(head->pid),
			.tid = head->tid ? head->tid : RT_PID_OF(head->pid),
			.has_time = true },
	};
}

static struct rt_error *op_sample(struct conversion *c, const struct rt_wire_event *event,
				  struct rt_reftrace_place place)
{
	struct rt_perf_record r = blank(&event->head, RT_PERF_SAMPLE);
	const uint64_t *slot = rt_map_get(&c->stack_by_id, rt_key_make(event->head.pid, event->stack));
	const struct frames *frames = event->stack && slot ? &c->stacks.data[*slot - 1] : NULL;
	uint8_t raw[RT_REFTRACE_OP_RAW];
	const struct rt_perf_event *list;
	unsigned index;
	size_t count;

	if (!rt_inventory_op_event(&c->inventory, event->point, event->head.op, &index))
		return rt_error_new(RT_E_FORMAT, "an event names point %u, which the recording does not have",
				    event->point);
	list = rt_reftrace_events_list(c->inventory.ours, &count);
	rt_reftrace_op_raw((uint16_t)list[index].attr.config, event, place, raw);
	r.event = c->first_ours + index;
	r.id.cpu = event->head.seq >> RT_SEQ_BITS;
	/* the ring of a thread: where it ran is not known, and perf warns of CPUs that the machine does not have */
	if (c->inventory.header.cpus_available && r.id.cpu >= c->inventory.header.cpus_available)
		r.id.cpu = 0;
	r.sample.period = 1;
	r.sample.raw = rt_bytes_make(raw, sizeof(raw));
	if (frames) {
		r.sample.ip = frames->count > 1 ? frames->chain[1] : 0;
		r.sample.chain = frames->chain;
		r.sample.chain_count = frames->count;
	}
	return rt_perf_writer_record(c->writer, &r);
}

static struct rt_error *write_batch(struct conversion *c)
{
	struct rt_batch *b = &c->batch;

	if (!b->events.len)
		return NULL;
	rt_batch_to_file(b);
	for (size_t i = 0; i < b->events.len; i++)
		RT_TRY(op_sample(c, &b->events.data[b->order[i]], (struct rt_reftrace_place){ b->number, b->turn[i] }));
	rt_batch_clear(b);
	b->number++;
	return NULL;
}

static struct rt_error *keep_op(struct conversion *c, const struct rt_wire_event *event)
{
	if (!rt_vec_push(&c->batch.events, *event))
		return rt_error_nomem();
	return rt_batch_full(&c->batch) ? write_batch(c) : NULL;
}

static struct rt_error *keep_stack(struct conversion *c, const struct rt_wire_stack *stack)
{
	uint64_t *slot = rt_map_put(&c->stack_by_id, rt_key_make(stack->head.pid, stack->id), NULL);
	struct frames *frames;

	if (!slot)
		return rt_error_nomem();
	if (!*slot) {
		if (!rt_vec_add(&c->stacks))
			return rt_error_nomem();
		*slot = c->stacks.len;
	}
	frames = &c->stacks.data[*slot - 1];
	frames->chain[0] = (uint64_t)PERF_CONTEXT_USER;
	frames->count = 1;
	for (unsigned i = 0; i < stack->nr && frames->count < CHAIN_MAX; i++)
		frames->chain[frames->count++] = stack->frame[i].pc;
	return NULL;
}

/* The record as it is, as a sample of reftrace:meta_<kind>. */
static struct rt_error *meta_sample(struct conversion *c, unsigned index, const struct rt_wire_head *head,
				    const char *text, struct rt_bytes data)
{
	struct rt_perf_record r = blank(head, RT_PERF_SAMPLE);
	const struct rt_perf_event *list;
	size_t count, size;

	list = rt_reftrace_events_list(c->inventory.ours, &count);
	RT_TRY(rt_reftrace_meta_raw((uint16_t)list[index].attr.config, text, data, c->meta, sizeof(c->meta), &size));
	r.event = c->first_ours + index;
	r.sample.period = 1;
	r.sample.raw = rt_bytes_make(c->meta, size);
	/* what has no time was said where it stands */
	r.id.time_ns = r.id.time_ns ?: c->now_ns ?: c->inventory.header.first_ns;
	return rt_perf_writer_record(c->writer, &r);
}

static const char *describe(const struct rt_wire_head *head)
{
	const void *r = head;

	switch (head->kind) {
	case RT_WIRE_TYPE:
		return ((const struct rt_wire_type *)r)->name;
	case RT_WIRE_POINT:
		return ((const struct rt_wire_point *)r)->name;
	case RT_WIRE_CLASS:
		return ((const struct rt_wire_class *)r)->name;
	case RT_WIRE_MODULE:
		return ((const struct rt_wire_module *)r)->path;
	case RT_WIRE_LOSS:
	case RT_WIRE_HITS:
		return ((const struct rt_wire_loss *)r)->text;
	case RT_WIRE_PART:
		return ((const struct rt_wire_part *)r)->text;
	default:
		return "";
	}
}

static struct rt_error *meta_record(struct conversion *c, const struct rt_wire_head *head)
{
	if (!c->inventory.meta[head->kind])
		return NULL;
	return meta_sample(c, c->inventory.meta[head->kind] - 1, head, describe(head), rt_bytes_make(head, head->size));
}

static struct rt_error *keep_module(struct conversion *c, const struct rt_wire_module *wire)
{
	uint64_t *slot = rt_map_put(&c->module_by_id, rt_key_make(wire->id, 0), NULL);
	struct module *m;

	if (!slot)
		return rt_error_nomem();
	if (!*slot) {
		if (!rt_vec_add(&c->modules))
			return rt_error_nomem();
		*slot = c->modules.len;
	}
	m = &c->modules.data[*slot - 1];
	free(m->path);
	*m = (struct module){ .path = strdup(wire->path), .main = wire->flags & RT_MODULE_MAIN };
	if (!wire->content_hash && wire->build_id_size <= sizeof(m->build_id)) {
		m->build_id_size = wire->build_id_size;
		memcpy(m->build_id, wire->build_id, m->build_id_size);
	}
	return m->path ? NULL : rt_error_nomem();
}

static struct rt_error *comm(struct conversion *c, const struct rt_wire_head *head, const char *path)
{
	struct rt_perf_record r = blank(head, RT_PERF_COMM);
	uint64_t *slot = rt_map_put(&c->named, rt_key_make(head->pid, 0), NULL);
	char name[16];

	if (!slot)
		return rt_error_nomem();
	if (*slot)
		return NULL;
	*slot = 1;
	snprintf(name, sizeof(name), "%s", rt_basename(path));
	r.misc |= RT_PERF_MISC_COMM_EXEC;
	r.event = c->first_ours;
	r.id.tid = RT_PID_OF(head->pid);
	r.comm.pid = r.comm.tid = RT_PID_OF(head->pid);
	r.comm.exec = true;
	r.comm.comm = name;
	return rt_perf_writer_record(c->writer, &r);
}

static struct rt_error *mapped(struct conversion *c, const struct rt_wire_map *map)
{
	const uint64_t *slot = rt_map_get(&c->module_by_id, rt_key_make(map->module, 0));
	const struct module *m = slot ? &c->modules.data[*slot - 1] : NULL;
	struct rt_perf_record r = blank(&map->head, RT_PERF_MMAP2);

	if (!m || !m->path)
		return NULL;
	if (m->main)
		RT_TRY(comm(c, &map->head, m->path));
	r.event = c->first_ours;
	r.mmap.pid = r.mmap.tid = RT_PID_OF(map->head.pid);
	r.mmap.addr = map->start;
	r.mmap.len = map->end - map->start;
	r.mmap.pgoff = map->file_offset;
	r.mmap.prot = 5;  /* PROT_READ | PROT_EXEC: only code is in our stream */
	r.mmap.flags = 2; /* MAP_PRIVATE */
	r.mmap.filename = m->path;
	r.mmap.build_id_size = m->build_id_size;
	memcpy(r.mmap.build_id, m->build_id, m->build_id_size);
	return rt_perf_writer_record(c->writer, &r);
}

static struct rt_error *task(struct conversion *c, const struct rt_wire_task *t)
{
	struct rt_perf_record r = blank(&t->head, t->head.kind == RT_WIRE_EXIT ? RT_PERF_EXIT : RT_PERF_FORK);
	uint32_t pid = RT_PID_OF(t->head.pid), tid = t->head.tid ? t->head.tid : pid;

	r.event = c->first_ours;
	r.task.time_ns = t->head.time_ns;
	if (t->head.kind == RT_WIRE_FORK) {
		r.task.pid = r.task.tid = RT_PID_OF(t->other);
		r.task.ppid = pid;
		r.task.ptid = tid;
	} else if (t->head.kind == RT_WIRE_THREAD) {
		if (t->value && t->other == pid)
			return NULL; /* perf takes the end of the first thread as that of the process, which goes on */
		if (t->value)
			r.type = RT_PERF_EXIT;
		r.task.pid = r.task.ppid = r.task.ptid = pid;
		r.task.tid = t->other;
	} else {
		r.task.pid = r.task.ppid = r.task.tid = r.task.ptid = pid;
	}
	return rt_perf_writer_record(c->writer, &r);
}

/* What perf knows a record of its own for; not where the recording has perf's own side-band beside it. */
static struct rt_error *side_band(struct conversion *c, const struct rt_wire_head *head)
{
	const void *r = head;

	if (head->kind == RT_WIRE_MODULE)
		return keep_module(c, r);
	if (c->inventory.attrs.len)
		return NULL;
	switch (head->kind) {
	case RT_WIRE_MAP:
		return mapped(c, r);
	case RT_WIRE_FORK:
	case RT_WIRE_EXIT:
	case RT_WIRE_THREAD:
		return task(c, r);
	default:
		return NULL;
	}
}

static struct rt_error *lost(struct conversion *c, const struct rt_wire_loss *loss)
{
	struct rt_perf_record r = blank(&loss->head, RT_PERF_LOST);

	if (loss->cause != RT_LOSS_RING)
		return NULL;
	r.event = c->first_ours;
	r.lost.count = loss->value ? loss->value : 1;
	return rt_perf_writer_record(c->writer, &r);
}

static bool in_features(const struct conversion *c, const struct rt_wire_blob *blob)
{
	/* a stream's features are cut to 64 KiB: there the blobs travel as they are */
	return !c->options->pipe && (blob->what == RT_BLOB_BPF_PROG || blob->what == RT_BLOB_BTF ||
				     blob->what == RT_BLOB_TRACING_DATA || blob->what == RT_BLOB_HOST);
}

static struct rt_error *convert(struct conversion *c, const struct rt_wire_head *head)
{
	const void *r = head;
	uint32_t type;

	c->now_ns = head->time_ns > c->now_ns ? head->time_ns : c->now_ns;
	/* the stream keeps its order: only perf's own records, which are read by time, may pass by */
	if (head->kind != RT_WIRE_EVENT && head->kind != RT_WIRE_ATTR && head->kind != RT_WIRE_PERF)
		RT_TRY(write_batch(c));
	switch (head->kind) {
	case RT_WIRE_EVENT:
		return keep_op(c, r);
	case RT_WIRE_ATTR:
		return NULL;
	case RT_WIRE_PERF:
		memcpy(&type, ((const struct rt_wire_perf *)r)->data, sizeof(type));
		/* rounds speak of perf's own records; ours beside them keep no such promise */
		if (type == RT_PERF_FINISHED_ROUND && c->inventory.has_wire)
			return NULL;
		return rt_perf_writer_raw(c->writer, rt_bytes_make(((const struct rt_wire_perf *)r)->data,
								   head->size - sizeof(struct rt_wire_perf)));
	case RT_WIRE_BLOB:
		if (in_features(c, r))
			return NULL;
		break;
	case RT_WIRE_STACK:
		RT_TRY(keep_stack(c, r));
		break;
	case RT_WIRE_LOSS:
		RT_TRY(lost(c, r));
		break;
	default:
		RT_TRY(side_band(c, head));
		break;
	}
	return meta_record(c, head);
}

/* What kept BPF programs call is named like what samples hit; and the place that their calls count from. */
static struct rt_error *bpf_calls(struct conversion *c)
{
	struct rt_perf_header *h = &c->inventory.header;
	bool arm = h->arch && !strcmp(h->arch, "aarch64");
	uint64_t base;

	if (!h->bpf_prog_count || !c->options->kallsyms.size)
		return NULL;
	base = rt_kernel_address(c->options->kallsyms, RT_BPF_CALL_BASE);
	if (base && !rt_map_put(&c->inventory.kernel, rt_key_make(base, 0), NULL))
		return rt_error_nomem();
	for (size_t i = 0; i < h->bpf_prog_count; i++)
		RT_TRY(rt_bpf_calls(h->bpf_progs[i].bytes, arm ? RT_MACHINE_AARCH64 : RT_MACHINE_X86_64, base,
				    &c->inventory.kernel));
	return NULL;
}

static struct rt_error *kernel_names(struct conversion *c)
{
	struct rt_perf_record r = { .type = RT_PERF_KSYMBOL, .misc = RT_PERF_KERNEL };
	struct rt_kernel_name *names = NULL;
	struct rt_error *err = NULL;
	size_t count = 0;

	RT_TRY(bpf_calls(c));
	RT_TRY(rt_kernel_names(c->options->kallsyms, &c->inventory.kernel, &names, &count));
	r.id.has_time = true;
	r.id.time_ns = c->inventory.header.first_ns;
	for (size_t i = 0; i < count && !err; i++) {
		r.ksymbol = (struct rt_perf_ksymbol){ .addr = names[i].start,
						      .len = names[i].size,
						      .type = RT_KSYMBOL_OUT_OF_LINE,
						      .name = names[i].name };
		err = rt_perf_writer_record(c->writer, &r);
	}
	rt_kernel_names_free(names, count);
	return err;
}

/* The spool's own header and end, which perf has no place for. */
static struct rt_error *declare_own(struct conversion *c)
{
	struct rt_inventory *s = &c->inventory;

	if (!s->ours)
		RT_TRY(rt_reftrace_events_create(&s->ours));
	RT_TRY(rt_reftrace_events_meta(s->ours, "command", &s->command));
	return rt_reftrace_events_meta(s->ours, "status", &s->status);
}

static struct rt_error *begin(struct conversion *c, struct rt_sink *sink)
{
	const struct rt_perf_writer_options how = { .pipe = c->options->pipe, .zstd_level = c->options->zstd_level };
	_cleanup_(rt_sink_deinit) struct rt_sink ours;
	struct rt_inventory *s = &c->inventory;
	/* borrows everything; its own tracing data must never become the inventory's, which frees them */
	struct rt_perf_header header = s->header;
	struct rt_bytes kernel = s->header.tracing_data;
	const struct rt_perf_event *list;
	size_t count;

	rt_sink_init_memory(&ours);
	RT_TRY(rt_perf_writer_create(sink, &how, &c->writer));
	for (size_t i = 0; i < s->attrs.len; i++)
		RT_TRY(rt_perf_writer_event(c->writer, &s->attrs.data[i]));
	c->first_ours = (unsigned)s->attrs.len;
	list = rt_reftrace_events_list(s->ours, &count);
	for (size_t i = 0; i < count; i++)
		RT_TRY(rt_perf_writer_event(c->writer, &list[i]));
	RT_TRY(rt_reftrace_events_tracing_data(s->ours, &ours));
	RT_TRY(rt_sink_end(&ours));
	if (kernel.size) {
		_cleanup_(rt_sink_deinit) struct rt_sink both;

		rt_sink_init_memory(&both);
		RT_TRY(rt_perf_tracing_data_merge(kernel, rt_bytes_make(ours.buffer, ours.len), &both));
		RT_TRY(rt_sink_end(&both));
		header.tracing_data = rt_bytes_make(both.buffer, both.len);
		RT_TRY(rt_error_wrap(rt_perf_writer_features(c->writer, &header), "the header"));
	} else {
		header.tracing_data = rt_bytes_make(ours.buffer, ours.len);
		RT_TRY(rt_perf_writer_features(c->writer, &header));
	}
	return rt_perf_writer_begin(c->writer);
}

static struct rt_error *write_command(struct conversion *c, const struct rt_spool_reader *reader)
{
	const char *const *words = rt_spool_reader_command(reader);
	const struct rt_wire_head head = { .time_ns = c->inventory.header.first_ns };
	_cleanup_(rt_sink_deinit) struct rt_sink text;
	struct rt_bytes data;

	rt_sink_init_memory(&text);
	for (; words && *words; words++)
		rt_sink_write(&text, *words, strlen(*words) + 1);
	RT_TRY(rt_sink_end(&text));
	data = rt_bytes_make(text.buffer, text.len < RT_REFTRACE_META_MAX - 64 ? text.len : RT_REFTRACE_META_MAX - 64);
	return meta_sample(c, c->inventory.command, &head, "", data);
}

static struct rt_error *write_status(struct conversion *c, const struct rt_spool_reader *reader, int *ret,
				     bool *ret_has)
{
	const struct rt_wire_head head = { .time_ns = c->inventory.header.last_ns };
	int32_t status;

	if (!rt_spool_reader_status(reader, ret))
		return NULL;
	*ret_has = true;
	status = *ret;
	return meta_sample(c, c->inventory.status, &head, "", rt_bytes_make(&status, sizeof(status)));
}

/* Reads the spool to its end, each record to step. */
static struct rt_error *each(struct rt_spool_reader *reader, struct conversion *c,
			     struct rt_error *(*step)(struct conversion *c, const struct rt_wire_head *record))
{
	struct rt_source *source = rt_spool_reader_source(reader);
	const struct rt_wire_head *record;

	for (;;) {
		RT_TRY(source->next(source, &record));
		if (!record)
			return NULL;
		RT_TRY(step(c, record));
	}
}

struct meta_sink {
	struct rt_event_sink sink;
	struct conversion *conversion;
};

static struct rt_error *to_meta(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	return meta_record(((struct meta_sink *)(void *)self)->conversion, record);
}

/* Programs that were left out of the features are said to be missing; a stream has their entries as they are. */
static struct rt_error *cut_programs(struct conversion *c)
{
	static const char text[] = "its entry is cut";
	struct meta_sink meta = { .sink = { to_meta }, .conversion = c };

	for (size_t i = 0; !c->options->pipe && i < c->inventory.bpf_cut.len; i++)
		RT_TRY(rt_blob_emit(&meta.sink, RT_BLOB_BPF_LOST, c->inventory.bpf_cut.data[i],
				    rt_bytes_make(text, strlen(text))));
	return NULL;
}

static struct rt_error *look(struct conversion *c, const struct rt_wire_head *record)
{
	return rt_inventory_record(&c->inventory, record);
}

static void fill_header(struct rt_perf_header *h, const struct rt_spool_reader *reader,
			const struct rt_to_perf_options *options)
{
	struct rt_spool_origin origin = rt_spool_reader_origin(reader);

	h->clockid = 1; /* its resolution: 1 ns */
	h->has_clockid = true;
	if (!h->wall_clock_ns) {
		h->clock_data_id = 1; /* CLOCK_MONOTONIC */
		h->wall_clock_ns = origin.start_realtime_ns;
		h->clockid_time_ns = origin.start_monotonic_ns;
	}
	if (!h->version && options->version)
		h->version = strdup(options->version);
}

static struct rt_error *finish(struct conversion *c, struct rt_bytes spool, const char *name, struct rt_sink *sink,
			       struct rt_to_perf_result *result)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;

	RT_TRY(rt_spool_reader_create(spool, name, &reader));
	fill_header(&c->inventory.header, reader, c->options);
	RT_TRY(begin(c, sink));
	RT_TRY(kernel_names(c));
	RT_TRY(write_command(c, reader));
	RT_TRY(cut_programs(c));
	RT_TRY(each(reader, c, convert));
	RT_TRY(write_batch(c));
	RT_TRY(write_status(c, reader, &result->program_status, &result->has_status));
	return rt_perf_writer_end(c->writer);
}

static void deinit(struct conversion *c)
{
	for (size_t i = 0; i < c->modules.len; i++)
		free(c->modules.data[i].path);
	rt_vec_deinit(&c->modules);
	rt_map_deinit(&c->module_by_id);
	rt_vec_deinit(&c->stacks);
	rt_map_deinit(&c->stack_by_id);
	rt_map_deinit(&c->named);
	rt_batch_deinit(&c->batch);
	rt_perf_writer_destroy(c->writer);
	rt_inventory_deinit(&c->inventory);
	free(c);
}

struct rt_error *rt_to_perf(struct rt_bytes spool, const char *name, const struct rt_to_perf_options *options,
			    struct rt_sink *sink, uint8_t ret_header[RT_PERF_HEADER_BYTES],
			    struct rt_to_perf_result *result)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	struct conversion *c = calloc(1, sizeof(*c));
	struct rt_to_perf_result none = { 0 };
	struct rt_bytes header;
	struct rt_error *err;

	if (!c)
		return rt_error_nomem();
	result = result ? result : &none;
	*result = (struct rt_to_perf_result){ 0 };
	c->options = options;
	err = rt_spool_reader_create(spool, name, &reader);
	if (!err)
		err = each(reader, c, look);
	if (!err)
		err = declare_own(c);
	if (!err)
		err = finish(c, spool, name, sink, result);
	if (!err) {
		header = rt_perf_writer_header(c->writer);
		if (header.size == RT_PERF_HEADER_BYTES)
			memcpy(ret_header, header.data, header.size);
		result->events = c->inventory.events;
		result->samples = c->inventory.samples;
		result->lost = c->inventory.lost;
		result->bpf_programs = c->inventory.header.bpf_prog_count;
		result->bpf_lost = c->inventory.bpf_lost;
	}
	deinit(c);
	return err;
}
