/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/part.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/vec.h"

enum {
	LEAD_NS = 10000000,   /* events come out of order by at most that much */
	WAIT_NS = 1000000000, /* and have waited in a ring for at most that */
	NAMES_MAX = 2048,     /* bytes of names of earlier files */
	GENERATION = 1 << RT_PID_BITS,
};

struct stack {
	struct rt_wire_stack *record; /* owned */
	uint32_t file;                /* the last one that has it */
};

struct process {
	uint32_t pid; /* RT_PID_MAKE */
	struct rt_map stack_by_id;
	RT_VEC(struct stack) stacks;
	RT_VEC(uint32_t) threads;
};

struct rt_part_writer {
	const struct rt_maps *maps;
	uint64_t recording;
	uint32_t file;
	uint64_t event_ns;                    /* latest time of an event */
	struct rt_wire_sample sample;         /* the last one; head.size 0: there was none */
	RT_VEC(struct rt_wire_head *) tables; /* types, points, modules, lasting losses, as they came; owned */
	struct rt_map process_by_pid;         /* pid -> struct process */
};

struct rt_error *rt_part_writer_create(const struct rt_maps *maps, uint64_t recording, struct rt_part_writer **ret)
{
	struct rt_part_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return rt_error_nomem();
	w->maps = maps;
	w->recording = recording;
	w->file = 1;
	*ret = w;
	return NULL;
}

static void process_destroy(struct process *p)
{
	for (size_t i = 0; i < p->stacks.len; i++)
		free(p->stacks.data[i].record);
	rt_vec_deinit(&p->stacks);
	rt_vec_deinit(&p->threads);
	rt_map_deinit(&p->stack_by_id);
	free(p);
}

void rt_part_writer_destroy(struct rt_part_writer *w)
{
	struct rt_map_slot *slot;
	size_t pos = 0;

	if (!w)
		return;
	while ((slot = rt_map_next(&w->process_by_pid, &pos)) != NULL)
		process_destroy((struct process *)(uintptr_t)slot->value);
	rt_map_deinit(&w->process_by_pid);
	for (size_t i = 0; i < w->tables.len; i++)
		free(w->tables.data[i]);
	rt_vec_deinit(&w->tables);
	free(w);
}

static struct rt_error *process_of(struct rt_part_writer *w, uint32_t pid, struct process **ret)
{
	uint64_t *slot = rt_map_put(&w->process_by_pid, rt_key_make(pid, 0), NULL);
	struct process *p;

	if (!slot)
		return rt_error_nomem();
	if (!*slot) {
		p = calloc(1, sizeof(*p));
		if (!p) {
			rt_map_remove(&w->process_by_pid, rt_key_make(pid, 0), NULL);
			return rt_error_nomem();
		}
		p->pid = pid;
		*slot = (uintptr_t)p;
	}
	*ret = (struct process *)(uintptr_t)*slot;
	return NULL;
}

static void forget(struct rt_part_writer *w, uint32_t pid)
{
	uint64_t old;

	if (rt_map_remove(&w->process_by_pid, rt_key_make(pid, 0), &old))
		process_destroy((struct process *)(uintptr_t)old);
}

static void *copy_of(const struct rt_wire_head *record)
{
	void *copy = malloc(record->size);

	if (copy)
		memcpy(copy, record, record->size);
	return copy;
}

static struct rt_error *keep_table(struct rt_part_writer *w, const struct rt_wire_head *record)
{
	struct rt_wire_head *copy = copy_of(record);

	if (copy && rt_vec_push(&w->tables, copy))
		return NULL;
	free(copy);
	return rt_error_nomem();
}

static struct rt_error *keep_stack(struct rt_part_writer *w, const struct rt_wire_stack *record)
{
	struct rt_wire_stack *copy;
	struct process *p = NULL;
	uint64_t *slot;
	bool made;

	RT_TRY(process_of(w, record->head.pid, &p));
	slot = rt_map_put(&p->stack_by_id, rt_key_make(record->id, 0), &made);
	copy = copy_of(&record->head);
	if (!slot || !copy || (made && !rt_vec_push(&p->stacks, ((struct stack){ copy, w->file })))) {
		free(copy);
		return rt_error_nomem();
	}
	if (made) {
		*slot = p->stacks.len;
		return NULL;
	}
	free(rt_take(p->stacks.data[*slot - 1].record));
	p->stacks.data[*slot - 1] = (struct stack){ copy, w->file };
	return NULL;
}

/* The stack of a record may stand in an earlier file. */
static struct rt_error *need_stack(struct rt_part_writer *w, uint32_t pid, uint32_t id, struct rt_event_sink *file)
{
	const uint64_t *at = id ? rt_map_get(&w->process_by_pid, rt_key_make(pid, 0)) : NULL;
	const struct process *p = at ? (const struct process *)(uintptr_t)*at : NULL;
	const uint64_t *slot = p ? rt_map_get(&p->stack_by_id, rt_key_make(id, 0)) : NULL;
	struct stack *stack = slot ? &p->stacks.data[*slot - 1] : NULL;

	if (!stack || stack->file == w->file)
		return NULL;
	stack->file = w->file;
	/* a number of the first time would look as if records were missing */
	stack->record->head.seq = 0;
	return file->record(file, &stack->record->head);
}

static struct rt_error *keep_thread(struct rt_part_writer *w, const struct rt_wire_task *task)
{
	struct process *p;

	/* the end of a thread may come behind that of its process, which stays ended */
	if (task->value && !rt_map_get(&w->process_by_pid, rt_key_make(task->head.pid, 0)))
		return NULL;
	RT_TRY(process_of(w, task->head.pid, &p));
	for (size_t i = 0; i < p->threads.len; i++) {
		if (p->threads.data[i] != task->other)
			continue;
		if (task->value)
			p->threads.data[i] = p->threads.data[--p->threads.len];
		return NULL;
	}
	return task->value || rt_vec_push(&p->threads, task->other) ? NULL : rt_error_nomem();
}

static struct rt_error *keep_task(struct rt_part_writer *w, const struct rt_wire_task *task)
{
	struct process *p;

	switch (task->head.kind) {
	case RT_WIRE_FORK:
		return process_of(w, task->other, &p);
	case RT_WIRE_EXEC:
		if (RT_GEN_OF(task->head.pid))
			forget(w, task->head.pid - GENERATION);
		return process_of(w, task->head.pid, &p);
	case RT_WIRE_EXIT:
		forget(w, task->head.pid);
		return NULL;
	case RT_WIRE_THREAD:
		return keep_thread(w, task);
	default:
		return task->value == RT_MARK_ATTACH ? process_of(w, task->head.pid, &p) : NULL;
	}
}

/* What stays true of the whole recording; other losses happened at their time. */
static bool lasts(const struct rt_wire_loss *loss)
{
	return loss->cause == RT_LOSS_UNARMED || loss->cause == RT_LOSS_REFUSED || loss->cause == RT_LOSS_UNTRACED ||
	       loss->cause == RT_LOSS_DOUBT || loss->cause == RT_LOSS_LIMIT;
}

struct rt_error *rt_part_writer_record(struct rt_part_writer *w, const struct rt_wire_head *record,
				       struct rt_event_sink *file)
{
	const void *r = record;
	struct process *p;

	switch (record->kind) {
	case RT_WIRE_EVENT:
		w->event_ns = record->time_ns > w->event_ns ? record->time_ns : w->event_ns;
		return need_stack(w, record->pid, ((const struct rt_wire_event *)r)->stack, file);
	case RT_WIRE_STAND:
		return need_stack(w, record->pid, ((const struct rt_wire_stand *)r)->stack, file);
	case RT_WIRE_STACK:
		return keep_stack(w, r);
	case RT_WIRE_TYPE:
	case RT_WIRE_POINT:
	case RT_WIRE_MODULE:
	case RT_WIRE_CLASS:
		return keep_table(w, record);
	case RT_WIRE_LOSS:
		return lasts(r) ? keep_table(w, record) : NULL;
	case RT_WIRE_SAMPLE:
		memcpy(&w->sample, record, sizeof(w->sample));
		return NULL;
	case RT_WIRE_MAP:
		return process_of(w, record->pid, &p);
	case RT_WIRE_FORK:
	case RT_WIRE_EXEC:
	case RT_WIRE_EXIT:
	case RT_WIRE_THREAD:
	case RT_WIRE_MARK:
		return keep_task(w, r);
	default:
		return NULL;
	}
}

static struct rt_error *seam(const struct rt_part_writer *w, enum rt_part where, uint64_t time_ns, const char *text,
			     struct rt_event_sink *file)
{
	size_t fixed = __builtin_offsetof(struct rt_wire_part, text), size = RT_WIRE_ALIGN(fixed + strlen(text) + 1);
	_cleanup_free_ struct rt_wire_part *part = calloc(1, size);

	if (!part)
		return rt_error_nomem();
	part->head = (struct rt_wire_head){ .size = (uint16_t)size, .kind = RT_WIRE_PART, .time_ns = time_ns };
	part->recording = w->recording;
	part->number = w->file;
	part->where = where;
	memcpy(part->text, text, strlen(text) + 1);
	return file->record(file, &part->head);
}

static struct rt_error *mark(uint32_t pid, enum rt_mark what, uint64_t time_ns, struct rt_event_sink *file)
{
	const struct rt_wire_task task = { .head = { .size = sizeof(task),
						     .kind = RT_WIRE_MARK,
						     .time_ns = time_ns,
						     .pid = pid,
						     .tid = RT_PID_OF(pid) },
					   .value = (int32_t)what };

	return file->record(file, &task.head);
}

struct rt_error *rt_part_writer_end(struct rt_part_writer *w, uint64_t now_ns, struct rt_event_sink *file)
{
	struct rt_map_slot *slot;
	size_t pos = 0;

	RT_TRY(seam(w, RT_PART_END, now_ns, "", file));
	while ((slot = rt_map_next(&w->process_by_pid, &pos)) != NULL)
		RT_TRY(mark(((const struct process *)(uintptr_t)slot->value)->pid, RT_MARK_DETACH, now_ns, file));
	return NULL;
}

/* The newest names count most: they are what is to be read with this file at least. All lie in one folder. */
static struct rt_error *names_text(const char *const *names, size_t count, char **ret)
{
	size_t first = count, bytes = 0;
	_cleanup_free_ char *text = NULL;
	char left_out[32] = "", *more;

	while (first && bytes + strlen(rt_basename(names[first - 1])) + 2 < NAMES_MAX)
		bytes += strlen(rt_basename(names[--first])) + 2;
	if (first)
		snprintf(left_out, sizeof(left_out), "%zu more", first);
	text = strdup(left_out);
	if (!text)
		return rt_error_nomem();
	for (size_t i = first; i < count; i++) {
		if (asprintf(&more, "%s%s%s", text, *text ? ", " : "", rt_basename(names[i])) < 0)
			return rt_error_nomem();
		free(text);
		text = more;
	}
	*ret = rt_take(text);
	return NULL;
}

struct restated {
	struct rt_event_sink *file;
	uint32_t pid;
	uint64_t time_ns;
	struct rt_error *err;
};

static bool restate_mapping(const struct rt_mapping *mapping, void *arg)
{
	struct restated *r = arg;
	const struct rt_wire_map map = {
		.head = { .size = sizeof(map), .kind = RT_WIRE_MAP, .time_ns = r->time_ns, .pid = r->pid },
		.start = mapping->start,
		.end = mapping->end,
		.file_offset = mapping->offset.v,
		.module = mapping->module
	};

	r->err = r->file->record(r->file, &map.head);
	return !r->err;
}

/* What is said again stands before every event that is still to come: these are later than those that came. */
static uint64_t begin_ns(const struct rt_part_writer *w, uint64_t now_ns)
{
	uint64_t ns = w->event_ns < now_ns ? w->event_ns : now_ns;

	return (ns > now_ns - WAIT_NS ? ns : now_ns - WAIT_NS) - LEAD_NS;
}

static struct rt_error *restate_process(const struct rt_part_writer *w, const struct process *p, uint64_t now_ns,
					struct rt_event_sink *file)
{
	struct restated r = { .file = file, .pid = p->pid, .time_ns = begin_ns(w, now_ns) };

	RT_TRY(mark(p->pid, RT_MARK_ATTACH, r.time_ns, file));
	rt_maps_each(w->maps, p->pid, now_ns, restate_mapping, &r);
	RT_TRY(r.err);
	for (size_t i = 0; i < p->threads.len; i++) {
		const struct rt_wire_task task = { .head = { .size = sizeof(task),
							     .kind = RT_WIRE_THREAD,
							     .time_ns = r.time_ns,
							     .pid = p->pid,
							     .tid = RT_PID_OF(p->pid) },
						   .other = p->threads.data[i] };

		RT_TRY(file->record(file, &task.head));
	}
	return NULL;
}

struct rt_error *rt_part_writer_begin(struct rt_part_writer *w, uint64_t now_ns, const char *const *earlier,
				      size_t count, struct rt_event_sink *file)
{
	_cleanup_free_ char *names = NULL;
	struct rt_map_slot *slot;
	size_t pos = 0;

	RT_TRY(names_text(earlier, count, &names));
	w->file++;
	RT_TRY(seam(w, RT_PART_BEGIN, begin_ns(w, now_ns), names ? names : "", file));
	for (size_t i = 0; i < w->tables.len; i++)
		RT_TRY(file->record(file, w->tables.data[i]));
	if (w->sample.head.size) {
		w->sample.head.time_ns = begin_ns(w, now_ns);
		RT_TRY(file->record(file, &w->sample.head));
	}
	while ((slot = rt_map_next(&w->process_by_pid, &pos)) != NULL)
		RT_TRY(restate_process(w, (const struct process *)(uintptr_t)slot->value, now_ns, file));
	return seam(w, RT_PART_STATED, begin_ns(w, now_ns), "", file);
}

/* ---- reading ---- */

struct rt_error *rt_part_join_file(struct rt_part_join *join, bool more)
{
	if (join->more && !join->number)
		return rt_error_new(RT_E_FORMAT, "the file before it does not say that another one follows");
	join->last = join->number;
	join->number = 0;
	join->records = 0;
	join->more = more;
	join->dropping = false;
	return NULL;
}

static struct rt_error *check_seam(struct rt_part_join *join, const struct rt_wire_part *part)
{
	if (join->recording && part->recording != join->recording)
		return rt_error_new(RT_E_FORMAT, "it is of another recording than the file before it");
	if (part->where == RT_PART_BEGIN && join->last && part->number != join->last + 1)
		return rt_error_new(RT_E_FORMAT, "it is part %u, and the file before it part %u", part->number,
				    join->last);
	join->recording = part->recording;
	join->number = part->number;
	return NULL;
}

/* What a damaged file lacks is nothing that is said again. */
static bool is_cut(const struct rt_wire_head *record)
{
	return record->kind == RT_WIRE_LOSS &&
	       ((const struct rt_wire_loss *)(const void *)record)->cause == RT_LOSS_CUT;
}

struct rt_error *rt_part_join_record(struct rt_part_join *join, const struct rt_wire_head *record, bool *ret)
{
	const struct rt_wire_part *part = (const struct rt_wire_part *)(const void *)record;
	bool first = !join->records++;

	*ret = !join->dropping || is_cut(record);
	/* a later file says first which one it is */
	if (first && join->last && (record->kind != RT_WIRE_PART || part->where != RT_PART_BEGIN))
		return rt_error_new(RT_E_FORMAT, "it does not go on with the file before it");
	if (record->kind != RT_WIRE_PART)
		return NULL;
	RT_TRY(check_seam(join, part));
	if (part->where == RT_PART_BEGIN) {
		/* the first file that is read may well be a later part: then it speaks for itself */
		join->dropping = join->last != 0;
		*ret = !join->dropping;
	} else if (part->where == RT_PART_STATED) {
		join->dropping = false;
		*ret = false;
	} else {
		join->dropping = join->more;
		*ret = !join->more;
	}
	return NULL;
}
