/* SPDX-License-Identifier: GPL-2.0-only */
/* Records become lines; events_stack.c has the frames. */
#include "report/events_build.h"

#include <inttypes.h>
#include <string.h>

#include "report/words.h"

struct rt_error *rt_events_create(struct rt_namer *namer, struct rt_events **ret)
{
	struct rt_events *w = calloc(1, sizeof(*w));

	if (!w)
		return rt_error_nomem();
	w->namer = namer;
	w->pid = w->tid = 1;
	*ret = w;
	return NULL;
}

void rt_events_destroy(struct rt_events *w)
{
	if (!w)
		return;
	rt_intern_deinit(&w->texts);
	rt_intern_deinit(&w->frames);
	rt_vec_deinit(&w->stacks);
	rt_map_deinit(&w->stack_by_id);
	rt_map_deinit(&w->machine_by_pc);
	rt_map_deinit(&w->types);
	rt_map_deinit(&w->points);
	rt_map_deinit(&w->programs);
	rt_map_deinit(&w->running);
	rt_map_deinit(&w->generations);
	rt_arena_deinit(&w->arena);
	free(w);
}

const char *rt_events_escape(struct rt_events *w, const char *text, const char *special)
{
	size_t len = strlen(text), n = 0;
	char *out = rt_arena_alloc(&w->arena, 3 * len + 1);

	if (!out)
		return "";
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= ' ' || c == 0x7f || strchr(special, c)) {
			out[n++] = '%';
			out[n++] = "0123456789abcdef"[c >> 4];
			out[n++] = "0123456789abcdef"[c & 15];
		} else {
			out[n++] = (char)c;
		}
	}
	return out;
}

/* a word of its own: no comment, no KEY=VALUE */
static const char *word(struct rt_events *w, const char *text)
{
	return *text ? rt_events_escape(w, text, "%#=") : "?";
}

/* words that go to the end of the line */
static const char *sentence(struct rt_events *w, const char *text)
{
	enum { MANY = 200 };
	const char *escaped = rt_events_escape(w, text, "%#=");
	char *out = rt_arena_strndup(&w->arena, escaped, strlen(escaped));
	size_t n = 0;

	/* blanks may stay where a line is short enough for them */
	if (!out || strlen(text) > MANY || *text == ' ')
		return escaped;
	for (const char *p = out; *p; n++) {
		bool blank = !strncmp(p, "%20", 3) && p[3] && strncmp(p + 3, "%20", 3) != 0;

		out[n] = blank ? ' ' : *p;
		p += blank ? 3 : 1;
	}
	out[n] = 0;
	return out;
}

static uint64_t generation(const struct rt_events *w, uint32_t pid)
{
	const uint64_t *gen = rt_map_get(&w->generations, rt_key_make(pid, 0));

	return gen ? *gen : 0;
}

static struct rt_error *set_generation(struct rt_events *w, uint32_t pid, uint32_t gen)
{
	uint64_t *slot = rt_map_put(&w->generations, rt_key_make(pid, 0), NULL);

	if (!slot)
		return rt_error_nomem();
	*slot = gen;
	return NULL;
}

/* "12", or "12/1" where the reader would take another generation; it is known then */
static struct rt_error *pid_text(struct rt_events *w, uint32_t wire, const char **ret)
{
	uint32_t pid = RT_PID_OF(wire), gen = RT_GEN_OF(wire);

	if (generation(w, pid) == gen) {
		*ret = rt_format(&w->arena, "%u", pid);
		return NULL;
	}
	*ret = rt_format(&w->arena, "%u/%u", pid, gen);
	return set_generation(w, pid, gen);
}

/* what every line with a time and a process ends with */
static struct rt_error *where(struct rt_events *w, const struct rt_wire_head *h, struct rt_sink *sink)
{
	uint32_t pid = RT_PID_OF(h->pid);
	const char *text;

	rt_sink_printf(sink, " t=%" PRIu64, h->time_ns);
	if (w->pid != pid || generation(w, pid) != RT_GEN_OF(h->pid)) {
		RT_TRY(pid_text(w, h->pid, &text));
		rt_sink_printf(sink, " pid=%s", text);
		w->pid = w->tid = pid;
	}
	return NULL;
}

static struct rt_error *type(struct rt_events *w, const struct rt_wire_type *r, struct rt_sink *sink)
{
	/* by bit of RT_TYPE_* */
	static const char *const words[] = { "floating", "heap", "free", "kernel", "descriptor", "sampled", "owned" };
	uint64_t *slot = rt_map_put(&w->types, rt_key_make(r->id, 0), NULL);
	uint32_t name = rt_intern_string(&w->texts, word(w, r->name));

	if (!slot || !name)
		return rt_error_nomem();
	*slot = name;
	rt_sink_printf(sink, "type %s", rt_intern_text(&w->texts, name));
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (r->flags & (1u << i))
			rt_sink_printf(sink, " %s", words[i]);
	}
	if (r->start >= 0 && r->start <= INT16_MAX)
		rt_sink_printf(sink, " start=%d", r->start);
	if (r->counter_offset != RT_COUNTER_UNKNOWN)
		rt_sink_printf(sink, " counter=%d bytes=%u", r->counter_offset, r->counter_size);
	if (r->object_size)
		rt_sink_printf(sink, " size=%u", r->object_size);
	if (rt_type_structure(r))
		rt_sink_printf(sink, " structure=%s", word(w, rt_type_structure(r)));
	rt_sink_puts(sink, "\n");
	return NULL;
}

static void flags(uint32_t bits, struct rt_sink *sink)
{
	static const char *const names[] = {
		[2] = "hidden",    [3] = "return",  [4] = "inline", [5] = "noobject", [6] = "fault",
		[7] = "inherited", [8] = "outside", [9] = "maybe",  [10] = "first"
	};
	const char *separator = " flags=";

	for (unsigned i = 2; i < sizeof(names) / sizeof(*names); i++) {
		if (!(bits & (1u << i)))
			continue;
		rt_sink_printf(sink, "%s%s", separator, names[i]);
		separator = ",";
	}
	if (RT_RANK_OF(bits))
		rt_sink_printf(sink, "%srank%u", separator, RT_RANK_OF(bits));
}

/* sample RATE [governed|total LIMIT COST EVENT PASSED] */
static struct rt_error *sample(struct rt_events *w, const struct rt_wire_sample *r, struct rt_sink *sink)
{
	rt_sink_printf(sink, "sample %u", r->rate);
	if (r->flags)
		rt_sink_printf(sink, " %s %u %u %u %u", r->flags & RT_SAMPLE_TOTAL ? "total" : "governed", r->limit_ppm,
			       r->cost_ppm, r->event_ns, r->passed_ns);
	RT_TRY(where(w, &r->head, sink));
	rt_sink_puts(sink, "\n");
	return NULL;
}

static const char *type_name(const struct rt_events *w, uint32_t id)
{
	const uint64_t *name = rt_map_get(&w->types, rt_key_make(id, 0));

	return name ? rt_intern_text(&w->texts, (uint32_t)*name) : "?";
}

static struct rt_error *point(struct rt_events *w, const struct rt_wire_point *r, struct rt_sink *sink)
{
	static const char *const kinds[] = {
		"", " slot", " object", " size", " result", " block", " class", " stored"
	};
	bool made;
	uint64_t *slot = rt_map_put(&w->points, rt_key_make(r->id, 0), &made);

	if (!slot)
		return rt_error_nomem();
	/* the first one counts, as in the analysis */
	if (!made)
		return NULL;
	*slot = r->type;
	rt_sink_printf(sink, "point %u %s %s %s%s", r->id, type_name(w, r->type), rt_op_name(r->head.op),
		       word(w, r->name), r->aux < sizeof(kinds) / sizeof(*kinds) ? kinds[r->aux] : "");
	flags(r->flags & (RT_EV_HIDDEN | RT_EV_AT_RETURN | RT_EV_INLINE | RT_EV_MAYBE | RT_EV_FIRST), sink);
	if (r->delta)
		rt_sink_printf(sink, " delta=%d", r->delta);
	if (r->function)
		rt_sink_printf(sink, " entry=0x%" PRIx64, r->function);
	if (rt_point_alias(r))
		rt_sink_printf(sink, " alias=%s", word(w, rt_point_alias(r)));
	if (rt_point_ender(r))
		rt_sink_printf(sink, " ender=%s", word(w, rt_point_ender(r)));
	rt_sink_puts(sink, "\n");
	return NULL;
}

static struct rt_error *klass(struct rt_events *w, const struct rt_wire_class *r, struct rt_sink *sink)
{
	rt_sink_printf(sink, "class %s 0x%" PRIx64 " %s", type_name(w, r->type), r->word, word(w, r->name));
	RT_TRY(where(w, &r->head, sink));
	rt_sink_puts(sink, "\n");
	return NULL;
}

static int default_delta(unsigned op)
{
	return op == RT_OP_GET || op == RT_OP_SWAP ? 1 : op == RT_OP_PUT ? -1 : 0;
}

static struct rt_error *event(struct rt_events *w, const struct rt_wire_event *e, struct rt_sink *sink)
{
	const uint64_t *of = rt_map_get(&w->points, rt_key_make(e->point, 0));
	uint32_t found = RT_EV_HIDDEN | RT_EV_AT_RETURN, bits = e->flags;
	bool find = e->head.op == RT_OP_GET && (bits & found) == found;
	const struct rt_events_stack *stack = NULL;

	if (!of) {
		rt_sink_printf(sink, "# an event of a point that is not known: %u\n", e->point);
		return NULL;
	}
	RT_TRY(rt_events_stack(w, e, sink, &stack));
	rt_sink_printf(sink, "%s %s 0x%" PRIx64, find ? "find" : rt_op_name(e->head.op), type_name(w, (uint32_t)*of),
		       e->object);
	if (stack)
		rt_sink_printf(sink, " %s", rt_intern_text(&w->texts, stack->text));
	if (bits & RT_EV_COUNT_EXACT)
		rt_sink_printf(sink, " count=%u", e->count);
	else if (bits & RT_EV_COUNT_READ)
		rt_sink_printf(sink, " read=%u", e->count);
	if (e->delta != default_delta(e->head.op))
		rt_sink_printf(sink, " delta=%d", e->delta);
	RT_TRY(where(w, &e->head, sink));
	/* every event says its thread: a line alone can be understood */
	rt_sink_printf(sink, " tid=%u via=:%u", e->head.tid, e->point);
	w->tid = e->head.tid;
	if (e->aux)
		rt_sink_printf(sink, " aux=0x%" PRIx64, e->aux);
	rt_sink_printf(sink, " sp=0x%" PRIx64, e->sp);
	if (stack && stack->cfa)
		rt_sink_printf(sink, " cfa=%s", rt_intern_text(&w->texts, stack->cfa));
	flags(find ? bits & ~found : bits, sink);
	rt_sink_printf(sink, " seq=0x%x\n", e->head.seq);
	return NULL;
}

static struct rt_error *stand(struct rt_events *w, const struct rt_wire_stand *r, struct rt_sink *sink)
{
	const struct rt_wire_event e = { .head = r->head, .sp = r->sp, .stack = r->stack };
	const struct rt_events_stack *stack;

	RT_TRY(rt_events_stack(w, &e, sink, &stack));
	if (!stack)
		return NULL;
	rt_sink_printf(sink, "stand %s", rt_intern_text(&w->texts, stack->text));
	if (r->signal)
		rt_sink_printf(sink, " signal=%u", r->signal);
	RT_TRY(where(w, &r->head, sink));
	rt_sink_printf(sink, " tid=%u sp=0x%" PRIx64, r->head.tid, r->sp);
	w->tid = r->head.tid;
	if (stack->cfa)
		rt_sink_printf(sink, " cfa=%s", rt_intern_text(&w->texts, stack->cfa));
	rt_sink_puts(sink, "\n");
	return NULL;
}

static struct rt_error *loss(struct rt_events *w, const struct rt_wire_loss *r, struct rt_sink *sink)
{
	const char *cause = rt_loss_name(r->cause);

	if (r->head.kind == RT_WIRE_HITS) {
		rt_sink_printf(sink, "hits :%u %" PRIu64, r->point, r->value);
	} else {
		if (!cause)
			return NULL;
		rt_sink_printf(sink, "loss %s %" PRIu64, cause, r->value);
		if (*r->text)
			rt_sink_printf(sink, " %s", sentence(w, r->text));
		if (r->point && rt_map_get(&w->points, rt_key_make(r->point, 0)))
			rt_sink_printf(sink, " point=:%u", r->point);
	}
	RT_TRY(where(w, &r->head, sink));
	rt_sink_puts(sink, "\n");
	return NULL;
}

static struct rt_error *held(struct rt_events *w, const struct rt_wire_held *r, struct rt_sink *sink)
{
	static const char *const places[] = { "none", "global", "stack", "heap", "object", "freed", "exec" };

	if (r->head.kind == RT_WIRE_COUNT) {
		rt_sink_printf(sink, "final 0x%" PRIx64 " count=%u bytes=%u", r->object, r->value, r->where);
	} else {
		if (r->where >= sizeof(places) / sizeof(*places))
			return NULL;
		rt_sink_printf(sink, "held 0x%" PRIx64 " %s %u", r->object, places[r->where], r->value);
		if (r->slot)
			rt_sink_printf(sink, " slot=0x%" PRIx64, r->slot);
		if (r->holder)
			rt_sink_printf(sink, " holder=0x%" PRIx64, r->holder);
	}
	RT_TRY(where(w, &r->head, sink));
	rt_sink_puts(sink, "\n");
	return NULL;
}

static struct rt_error *exec(struct rt_events *w, const struct rt_wire_head *h, struct rt_sink *sink)
{
	uint32_t pid = RT_PID_OF(h->pid), gen = RT_GEN_OF(h->pid);
	struct rt_wire_head before = *h;

	/* the line speaks of the process before, and makes it the next generation */
	before.pid = RT_PID_MAKE(pid, (gen - 1) & (UINT32_MAX >> RT_PID_BITS));
	rt_sink_puts(sink, "exec");
	RT_TRY(where(w, &before, sink));
	rt_sink_puts(sink, "\n");
	return set_generation(w, pid, gen);
}

static struct rt_error *task(struct rt_events *w, const struct rt_wire_task *r, struct rt_sink *sink)
{
	static const char *const marks[] = { "", "attach", "census", "detach", "census-skipped", "execed", "inside" };
	const char *child;

	switch (r->head.kind) {
	case RT_WIRE_FORK:
		RT_TRY(pid_text(w, r->other, &child));
		rt_sink_printf(sink, "fork %s", child);
		break;
	case RT_WIRE_EXEC:
		return exec(w, &r->head, sink);
	case RT_WIRE_EXIT:
		rt_sink_printf(sink, "exit %u", (uint32_t)r->value >> 8 & 0xff);
		if (r->value & 0xff)
			rt_sink_printf(sink, " signal=%u", (uint32_t)r->value & 0xff);
		break;
	case RT_WIRE_THREAD:
		rt_sink_printf(sink, "thread %u%s", RT_PID_OF(r->other), r->value ? " end" : "");
		break;
	default:
		if (r->value < 1 || r->value >= (int32_t)(sizeof(marks) / sizeof(*marks)))
			return NULL;
		rt_sink_printf(sink, "mark %s", marks[r->value]);
		break;
	}
	RT_TRY(where(w, &r->head, sink));
	rt_sink_puts(sink, "\n");
	return NULL;
}

/* who runs which program */
static struct rt_error *module(struct rt_events *w, const struct rt_wire_module *r)
{
	uint64_t *slot;

	if (!(r->flags & RT_MODULE_MAIN))
		return NULL;
	slot = rt_map_put(&w->programs, rt_key_make(r->id, 0), NULL);
	if (!slot)
		return rt_error_nomem();
	*slot = rt_intern_string(&w->texts, word(w, r->path));
	return *slot ? NULL : rt_error_nomem();
}

static struct rt_error *map(struct rt_events *w, const struct rt_wire_map *r, struct rt_sink *sink)
{
	const uint64_t *path = rt_map_get(&w->programs, rt_key_make(r->module, 0));
	uint64_t *runs = path ? rt_map_put(&w->running, rt_key_make(r->head.pid, 0), NULL) : NULL;

	if (!path)
		return NULL;
	if (!runs)
		return rt_error_nomem();
	if (*runs == *path)
		return NULL;
	*runs = *path;
	rt_sink_printf(sink, "program %s", rt_intern_text(&w->texts, (uint32_t)*path));
	RT_TRY(where(w, &r->head, sink));
	rt_sink_puts(sink, "\n");
	return NULL;
}

static struct rt_error *write_record(struct rt_events *w, const struct rt_wire_head *r, struct rt_sink *sink)
{
	const void *record = r;

	switch (r->kind) {
	case RT_WIRE_TYPE:
		return type(w, record, sink);
	case RT_WIRE_POINT:
		return point(w, record, sink);
	case RT_WIRE_CLASS:
		return klass(w, record, sink);
	case RT_WIRE_STACK:
		return rt_events_keep(w, record);
	case RT_WIRE_EVENT:
		return event(w, record, sink);
	case RT_WIRE_MODULE:
		return module(w, record);
	case RT_WIRE_MAP:
		return map(w, record, sink);
	case RT_WIRE_LOSS:
	case RT_WIRE_HITS:
		return loss(w, record, sink);
	case RT_WIRE_HELD:
	case RT_WIRE_COUNT:
		return held(w, record, sink);
	case RT_WIRE_SAMPLE:
		return sample(w, record, sink);
	case RT_WIRE_STAND:
		return stand(w, record, sink);
	case RT_WIRE_FORK:
	case RT_WIRE_EXEC:
	case RT_WIRE_EXIT:
	case RT_WIRE_THREAD:
	case RT_WIRE_MARK:
		return task(w, record, sink);
	default:
		return NULL;
	}
}

struct rt_error *rt_events_record(struct rt_events *w, const struct rt_wire_head *r, struct rt_sink *sink)
{
	bool told = r->kind == RT_WIRE_EVENT || (!r->seq && w->begun);

	/* numbers of the stream that no event has, and its very beginning */
	if (!told && (r->seq || r->time_ns))
		rt_sink_printf(sink, "other 0x%x t=%" PRIu64 "\n", r->seq, r->time_ns);
	w->begun |= r->time_ns != 0;
	RT_TRY(write_record(w, r, sink));
	/* texts of one record live as long as it */
	if (w->arena.bytes > 1 << 16)
		rt_arena_deinit(&w->arena);
	return NULL;
}
