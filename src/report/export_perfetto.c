/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Perfetto's native trace (protos/perfetto/trace/): processes and threads as
 * tracks; in each process a track for each type of objects, below it a
 * track for each life: a slice from birth to end, steps as instants on it, and a
 * flow from the step that took a reference to the one that gave it back. Samples are
 * PerfSample packets, those of each event on a sequence of its own. Call paths are
 * interned by the first packet of each sequence. Times are the recording's own (CLOCK_MONOTONIC).
 */
#include <string.h>

#include "base/text.h"
#include "report/export_parts.h"
#include "report/export_proto.h"
#include "report/words.h"

enum {
	TRACE_PACKET = 1,
	/* TracePacket */
	K_TIMESTAMP = 8,
	K_SEQUENCE = 10,
	K_EVENT = 11,
	K_INTERNED = 12,
	K_SEQUENCE_FLAGS = 13,
	K_TRACK = 60,
	K_SAMPLE = 66,
	K_DEFAULTS = 59,
	K_FIRST = 87,
	/* TracePacketDefaults, PerfSampleDefaults, PerfEvents.Timebase */
	D_SAMPLE = 12,
	D_TIMEBASE = 1,
	D_NAME = 10,
	/* TrackDescriptor */
	T_UUID = 1,
	T_NAME = 2,
	T_PROCESS = 3,
	T_THREAD = 4,
	T_PARENT = 5,
	/* TrackEvent */
	E_ANNOTATION = 4,
	E_TYPE = 9,
	E_TRACK = 11,
	E_CATEGORY = 22,
	E_NAME = 23,
	E_FLOW = 47,
	E_FLOW_END = 48,
	E_CALLSTACK = 56,
	BEGIN = 1,
	END = 2,
	INSTANT = 3,
	/* InternedData */
	I_FUNCTION = 5,
	I_FRAME = 6,
	I_CALLSTACK = 7,
	I_BUILD = 16,
	I_MAPPING_PATH = 17,
	I_SOURCE = 18,
	I_MAPPING = 19,
	FLAG_CLEARED = 1,
	FLAG_NEEDS = 2,
	DEPTH_MAX = 2048,
};

struct perfetto {
	struct rt_export *e;
	struct rt_proto packet, inner, part;
	struct rt_arena arena;
	struct rt_intern mappings;
	struct rt_map tracks; /* (kind, what) -> uuid */
	uint64_t next_track;
	uint8_t *stack_used; /* by node - 1 */
	uint32_t sequence;
	bool begun, nomem;
};

/* Writes the packet that was made. */
static void emit(struct perfetto *p)
{
	struct rt_proto whole = { .nomem = false };

	rt_proto_varint(&p->packet, K_SEQUENCE, p->sequence);
	rt_proto_varint(&p->packet, K_SEQUENCE_FLAGS, p->begun ? FLAG_NEEDS : FLAG_CLEARED | FLAG_NEEDS);
	if (!p->begun)
		rt_proto_varint(&p->packet, K_FIRST, 1);
	p->begun = true;
	rt_proto_message(&whole, TRACE_PACKET, &p->packet);
	p->nomem |= whole.nomem;
	if (!whole.nomem)
		rt_sink_write(p->e->sink, whole.bytes.data, whole.bytes.len);
	rt_proto_deinit(&whole);
}

static const char *clean(struct perfetto *p, const char *text)
{
	return rt_clean(&p->arena, text);
}

/* An interned string of the packet; its iid is id. */
static void string(struct perfetto *p, unsigned field, uint32_t id, const char *text)
{
	rt_proto_varint(&p->part, 1, id);
	rt_proto_string(&p->part, 2, clean(p, text));
	rt_proto_message(&p->inner, field, &p->part);
}

static uint32_t mapping_of(struct perfetto *p, const struct rt_ex_frame *f)
{
	uint32_t key[2] = { f->module, (uint32_t)f->build };
	size_t known = p->mappings.items.len, bytes = 0;
	uint32_t id = rt_intern_bytes(&p->mappings, key, sizeof(key));
	uint8_t build[RT_BUILD_ID_MAX];
	uint64_t byte;

	p->nomem |= !id;
	if (id <= known)
		return id;
	/* raw, where other formats want it in hex */
	for (const char *hex = rt_ex_text(p->e, (uint32_t)f->build); hex[2 * bytes] && bytes < sizeof(build); bytes++) {
		if (!rt_parse_u64(hex + 2 * bytes, 2, 16, &byte))
			break;
		build[bytes] = (uint8_t)byte;
	}
	string(p, I_MAPPING_PATH, id, rt_ex_text(p->e, f->module));
	rt_proto_varint(&p->part, 1, id);
	rt_proto_bytes(&p->part, 2, build, bytes);
	rt_proto_message(&p->inner, I_BUILD, &p->part);
	rt_proto_varint(&p->part, 1, id);
	rt_proto_varint(&p->part, 2, id);
	rt_proto_varint(&p->part, 7, id);
	rt_proto_message(&p->inner, I_MAPPING, &p->part);
	return id;
}

/* Function and source names have the iids of strings; a frame without a name one behind them. */
static void frames(struct perfetto *p)
{
	_cleanup_free_ uint8_t *said = calloc(p->e->strings.items.len + 1, 1);
	uint32_t nameless = (uint32_t)p->e->strings.items.len;

	p->nomem |= !said;
	for (uint32_t i = 0; said && i < p->e->frames.len; i++) {
		const struct rt_ex_frame *f = &p->e->frames.data[i];
		uint32_t name = f->name ? f->name : ++nameless, mapping = mapping_of(p, f);

		if (!f->name || !(said[name] & 1))
			string(p, I_FUNCTION, name, rt_ex_function(p->e, &p->arena, f));
		if (f->file && !(said[f->file] & 2))
			string(p, I_SOURCE, f->file, rt_ex_text(p->e, f->file));
		said[f->name] |= 1;
		said[f->file] |= 2;
		rt_proto_varint(&p->part, 1, i + 1);
		rt_proto_varint(&p->part, 2, name);
		rt_proto_varint(&p->part, 3, mapping);
		rt_proto_varint(&p->part, 4, f->address);
		if (f->file)
			rt_proto_varint(&p->part, 5, f->file);
		if (f->line)
			rt_proto_varint(&p->part, 6, f->line);
		rt_proto_message(&p->inner, I_FRAME, &p->part);
		rt_arena_deinit(&p->arena);
	}
}

static void use_stack(struct perfetto *p, uint32_t node)
{
	uint32_t path[DEPTH_MAX];
	unsigned n = 0;

	if (!node || p->stack_used[node - 1])
		return;
	p->stack_used[node - 1] = 1;
	for (uint32_t at = node; at && n < DEPTH_MAX; at = rt_ex_node(p->e, at)->parent)
		path[n++] = rt_ex_node(p->e, at)->frame;
	rt_proto_varint(&p->part, 1, node);
	/* outermost first */
	while (n--)
		rt_proto_varint(&p->part, 2, path[n]);
	rt_proto_message(&p->inner, I_CALLSTACK, &p->part);
}

/* Begins a sequence: 0 is for lives, index + 1 of a class for its samples. */
static void begin(struct perfetto *p, uint32_t sequence)
{
	memset(p->stack_used, 0, p->e->nodes.len);
	rt_intern_deinit(&p->mappings);
	p->mappings = (struct rt_intern){ .items = { 0 } };
	p->sequence = sequence + 1;
	p->begun = false;
	frames(p);
	for (size_t i = 0; !sequence && i < p->e->lives.len; i++) {
		for (size_t k = 0; k < p->e->lives.data[i]->steps.len; k++)
			use_stack(p, p->e->lives.data[i]->steps.data[k].node);
	}
	for (size_t i = 0; sequence && i < p->e->samples.len; i++) {
		if (p->e->samples.data[i].class == sequence - 1)
			use_stack(p, p->e->samples.data[i].node);
	}
	rt_proto_message(&p->packet, K_INTERNED, &p->inner);
	if (sequence) {
		rt_proto_string(&p->part, D_NAME, clean(p, rt_ex_text(p->e, p->e->classes.data[sequence - 1].name)));
		rt_proto_message(&p->inner, D_TIMEBASE, &p->part);
		rt_proto_message(&p->part, D_SAMPLE, &p->inner);
		rt_proto_message(&p->packet, K_DEFAULTS, &p->part);
	}
	emit(p);
}

enum { TRACK_PROCESS = 1, TRACK_THREAD, TRACK_TYPE };

/* uuid of a track; *ret_new: it is to be described */
static uint64_t track_of(struct perfetto *p, uint64_t kind, uint64_t what, bool *ret_new)
{
	uint64_t *slot = rt_map_put(&p->tracks, rt_key_make(kind, what), ret_new);

	p->nomem |= !slot;
	if (slot && *ret_new)
		*slot = ++p->next_track;
	*ret_new = *ret_new && slot;
	return slot ? *slot : 0;
}

static uint64_t process(struct perfetto *p, uint32_t pid, const char *name)
{
	bool made;
	uint64_t uuid = track_of(p, TRACK_PROCESS, RT_PID_OF(pid), &made);

	if (!made)
		return uuid;
	rt_proto_varint(&p->inner, T_UUID, uuid);
	rt_proto_varint(&p->part, 1, RT_PID_OF(pid));
	rt_proto_string(&p->part, 6, clean(p, name));
	rt_proto_message(&p->inner, T_PROCESS, &p->part);
	rt_proto_message(&p->packet, K_TRACK, &p->inner);
	emit(p);
	return uuid;
}

static void thread(struct perfetto *p, uint32_t pid, uint32_t tid, const char *name)
{
	uint64_t parent = process(p, pid, name), uuid;
	bool made;

	uuid = track_of(p, TRACK_THREAD, tid, &made);
	if (!made)
		return;
	rt_proto_varint(&p->inner, T_UUID, uuid);
	rt_proto_varint(&p->inner, T_PARENT, parent);
	rt_proto_varint(&p->part, 1, pid);
	rt_proto_varint(&p->part, 2, tid);
	rt_proto_string(&p->part, 5, clean(p, name));
	rt_proto_message(&p->inner, T_THREAD, &p->part);
	rt_proto_message(&p->packet, K_TRACK, &p->inner);
	emit(p);
}

static uint64_t named_track(struct perfetto *p, uint64_t uuid, uint64_t parent, const char *name)
{
	rt_proto_varint(&p->inner, T_UUID, uuid);
	rt_proto_varint(&p->inner, T_PARENT, parent);
	rt_proto_string(&p->inner, T_NAME, name);
	rt_proto_message(&p->packet, K_TRACK, &p->inner);
	emit(p);
	return uuid;
}

static void note_text(struct perfetto *p, const char *name, const char *value)
{
	rt_proto_string(&p->part, 10, name);
	rt_proto_string(&p->part, 6, value);
	rt_proto_message(&p->inner, E_ANNOTATION, &p->part);
}

static void note_number(struct perfetto *p, const char *name, uint64_t value)
{
	rt_proto_string(&p->part, 10, name);
	rt_proto_varint(&p->part, 3, value);
	rt_proto_message(&p->inner, E_ANNOTATION, &p->part);
}

static void event(struct perfetto *p, uint64_t time_ns)
{
	rt_proto_varint(&p->packet, K_TIMESTAMP, time_ns);
	rt_proto_message(&p->packet, K_EVENT, &p->inner);
	emit(p);
}

static void step(struct perfetto *p, const struct rt_ex_life *life, uint32_t index, size_t *closed, uint64_t track)
{
	const struct rt_ex_step *s = &life->steps.data[index];
	const char *name = s->point < p->e->points.len ? rt_ex_text(p->e, p->e->points.data[s->point].name) : "?";

	rt_proto_varint(&p->inner, E_TYPE, INSTANT);
	rt_proto_varint(&p->inner, E_TRACK, track);
	rt_proto_string(&p->inner, E_CATEGORY, rt_op_name(s->op));
	rt_proto_string(&p->inner, E_NAME, clean(p, name));
	for (; *closed < life->closed.len && life->closed.data[*closed].step == index; ++*closed)
		rt_proto_fixed64(&p->inner, E_FLOW_END, life->closed.data[*closed].reference);
	for (uint16_t i = 0; i < s->opens; i++)
		rt_proto_fixed64(&p->inner, E_FLOW, s->first + i);
	if (s->node) {
		const struct rt_ex_frame *f = rt_ex_frame(p->e, rt_ex_node(p->e, s->node)->frame);

		rt_proto_varint(&p->inner, E_CALLSTACK, s->node);
		note_text(p, "by", clean(p, rt_ex_function(p->e, &p->arena, f)));
		if (f->file)
			note_text(p, "source",
				  rt_format(&p->arena, "%s:%u", clean(p, rt_ex_text(p->e, f->file)), f->line));
	}
	note_number(p, "thread", s->tid);
	if (s->after_end)
		note_text(p, "state", "after its end");
	event(p, s->time_ns);
}

static void life(struct perfetto *p, const struct rt_ex_life *life)
{
	const char *type = clean(p, rt_ex_text(p->e, p->e->classes.data[life->class].name));
	uint64_t parent = process(p, life->pid, rt_ex_title(p->e, &p->arena)), end = life->end_ns, track;
	size_t closed = 0;
	bool made;

	track = track_of(p, TRACK_TYPE, (uint64_t)RT_PID_OF(life->pid) << 32 | life->class, &made);
	if (made)
		named_track(p, track, parent, type);
	track = named_track(p, ++p->next_track, track,
			    rt_format(&p->arena, "%s #%llu", type, (unsigned long long)life->serial));
	rt_proto_varint(&p->inner, E_TYPE, BEGIN);
	rt_proto_varint(&p->inner, E_TRACK, track);
	rt_proto_string(&p->inner, E_CATEGORY, "life");
	rt_proto_string(&p->inner, E_NAME, rt_format(&p->arena, "%s #%llu", type, (unsigned long long)life->serial));
	note_text(p, "address", rt_format(&p->arena, "0x%llx", (unsigned long long)life->object));
	note_number(p, "open references", life->open.len);
	note_text(p, "end", !life->ended ? "alive at the end" : life->died ? "died" : "not seen");
	if (life->left_out)
		note_number(p, "steps left out", life->left_out);
	event(p, life->birth_ns);
	for (uint32_t i = 0; i < life->steps.len; i++)
		step(p, life, i, &closed, track);
	if (!life->ended)
		end = p->e->last_ns;
	rt_proto_varint(&p->inner, E_TYPE, END);
	rt_proto_varint(&p->inner, E_TRACK, track);
	event(p, end > life->birth_ns ? end : life->birth_ns);
	rt_arena_deinit(&p->arena);
}

static void sample(struct perfetto *p, const struct rt_ex_sample *s)
{
	thread(p, s->pid, s->tid, rt_ex_text(p->e, s->comm));
	rt_proto_varint(&p->inner, 1, s->cpu);
	rt_proto_varint(&p->inner, 2, s->pid);
	rt_proto_varint(&p->inner, 3, s->tid);
	if (s->node)
		rt_proto_varint(&p->inner, 4, s->node);
	rt_proto_varint(&p->packet, K_TIMESTAMP, s->time_ns);
	rt_proto_message(&p->packet, K_SAMPLE, &p->inner);
	emit(p);
	rt_arena_deinit(&p->arena);
}

struct rt_error *rt_ex_perfetto(struct rt_export *e)
{
	_cleanup_free_ uint8_t *used = calloc(e->nodes.len + 1, 1);
	struct perfetto p = { .e = e, .stack_used = used };

	if (!used)
		return rt_error_nomem();
	begin(&p, 0);
	for (size_t i = 0; i < e->lives.len && !p.nomem; i++)
		life(&p, e->lives.data[i]);
	for (uint32_t class = 0; class < e->classes.len && !p.nomem; class ++) {
		if (!e->classes.data[class].samples)
			continue;
		begin(&p, class + 1);
		for (size_t i = 0; i < e->samples.len && !p.nomem; i++) {
			if (e->samples.data[i].class == class)
				sample(&p, &e->samples.data[i]);
		}
	}
	rt_proto_deinit(&p.packet);
	rt_proto_deinit(&p.inner);
	rt_proto_deinit(&p.part);
	rt_intern_deinit(&p.mappings);
	rt_map_deinit(&p.tracks);
	rt_arena_deinit(&p.arena);
	return p.nomem ? rt_error_nomem() : NULL;
}
