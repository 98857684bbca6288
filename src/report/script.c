/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/script.h"

#include <inttypes.h>
#include <string.h>

#include "base/intern.h"
#include "base/map.h"
#include "perfdata/reftrace_events.h"
#include "report/words.h"

enum { FRAMES_MAX = 64, CHAIN_MAX = 1024 };

struct rt_script {
	struct rt_namer *namer;
	const struct rt_tracing *tracing;
	struct rt_script_options options;
	struct rt_intern strings;
	struct rt_map comm_by_tid;
	struct rt_arena arena;    /* of one record */
	struct rt_map chain_line; /* (address, module) -> entry of a chain, in strings */
	uint64_t samples;
};

struct rt_error *rt_script_create(struct rt_namer *namer, const struct rt_tracing *tracing,
				  const struct rt_script_options *options, struct rt_script **ret)
{
	struct rt_script *s = calloc(1, sizeof(*s));

	if (!s)
		return rt_error_nomem();
	s->namer = namer;
	s->tracing = tracing;
	s->options = *options;
	*ret = s;
	return NULL;
}

void rt_script_destroy(struct rt_script *s)
{
	if (!s)
		return;
	rt_intern_deinit(&s->strings);
	rt_map_deinit(&s->comm_by_tid);
	rt_map_deinit(&s->chain_line);
	rt_arena_deinit(&s->arena);
	free(s);
}

uint64_t rt_script_samples(const struct rt_script *s)
{
	return s->samples;
}

static const char *comm_of(struct rt_script *s, uint32_t tid)
{
	const uint64_t *slot = rt_map_get(&s->comm_by_tid, rt_key_make(tid, 0));

	if (slot)
		return rt_clean(&s->arena, rt_intern_text(&s->strings, (uint32_t)*slot));
	/* as perf calls a thread whose name it never saw */
	return tid ? rt_format(&s->arena, ":%d", (int)tid) : "swapper";
}

static struct rt_error *keep_comm(struct rt_script *s, uint32_t tid, uint32_t id)
{
	uint64_t *slot = id ? rt_map_put(&s->comm_by_tid, rt_key_make(tid, 0), NULL) : NULL;

	if (!slot)
		return rt_error_nomem();
	*slot = id;
	return NULL;
}

static struct rt_error *follow(struct rt_script *s, const struct rt_perf_record *r)
{
	const uint64_t *parent;

	if (r->type == RT_PERF_COMM)
		return keep_comm(s, r->comm.tid, rt_intern_string(&s->strings, r->comm.comm));
	if (r->type != RT_PERF_FORK)
		return NULL;
	parent = rt_map_get(&s->comm_by_tid, rt_key_make(r->task.ptid, 0));
	return parent ? keep_comm(s, r->task.tid, (uint32_t)*parent) : NULL;
}

static uint32_t pid_of(const struct rt_script *s, uint32_t pid)
{
	return s->options.pid ? s->options.pid(pid) : pid;
}

static size_t name_place(struct rt_script *s, const struct rt_perf_record *r, uint64_t ip,
			 struct rt_frame frames[FRAMES_MAX])
{
	return s->namer->name(s->namer, pid_of(s, r->id.pid), r->id.time_ns, ip, false, frames, FRAMES_MAX);
}

/* "  1139 leaf+0x10 (/tmp/hot)" */
static void place(struct rt_script *s, uint64_t address, const struct rt_frame *f, struct rt_sink *sink)
{
	const char *name = f->symbol ?: f->function ?: f->linkage;

	rt_sink_printf(sink, "%16" PRIx64, address);
	if (name)
		rt_sink_printf(sink, " %s+0x%" PRIx64, rt_clean(&s->arena, name),
			       f->address - (f->symbol ? f->symbol_entry : f->entry));
	else
		rt_sink_puts(sink, " [unknown]");
	rt_sink_printf(sink, " (%s)", f->module ? rt_clean(&s->arena, f->module) : "[unknown]");
}

static void write_chain_line(struct rt_script *s, uint64_t ip, const struct rt_frame *f, struct rt_sink *sink)
{
	rt_sink_puts(sink, "\t");
	/* perf writes the address in the file here, the one in memory elsewhere */
	place(s, f->module ? f->address : ip, f, sink);
	rt_sink_puts(sink, "\n");
}

/* Chains say the same again and again: what a place of a module is called is written once. */
static void chain_line(struct rt_script *s, const struct rt_perf_record *r, uint64_t ip, struct rt_sink *sink)
{
	struct rt_frame frames[FRAMES_MAX];
	const struct rt_frame *f = &frames[name_place(s, r, ip, frames) - 1];
	bool fresh = false;
	uint64_t *known = NULL;

	if (f->module && f->module_id)
		known = rt_map_put(&s->chain_line, rt_key_make(f->address, f->module_id), &fresh);
	if (known && fresh) {
		struct rt_sink text;

		rt_sink_init_memory(&text);
		write_chain_line(s, ip, f, &text);
		*known = text.len ? rt_intern_bytes(&s->strings, text.buffer, text.len) : 0;
		rt_error_free(rt_sink_end(&text));
		rt_sink_deinit(&text);
	}
	if (known && *known) {
		struct rt_bytes text = rt_intern_get(&s->strings, (uint32_t)*known);

		rt_sink_write(sink, text.data, text.size);
	} else {
		write_chain_line(s, ip, f, sink);
	}
}

static void chain(struct rt_script *s, const struct rt_perf_record *r, struct rt_sink *sink)
{
	bool first = true, caller = false, user = false;

	for (uint64_t i = 0; i < r->sample.chain_count && i < CHAIN_MAX; i++) {
		uint64_t ip = r->sample.chain[i];

		if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
			user = ip == (uint64_t)PERF_CONTEXT_USER;
			caller = false;
			continue;
		}
		/* perf names what the kernel walked as it is, and the call where it has unwound a copied stack */
		chain_line(s, r, ip - (caller && user && r->sample.unwound), sink);
		first = false;
		caller = true;
	}
	if (!first)
		rt_sink_puts(sink, "\n");
}

/* The place of a sample without a chain. */
static void sample_place(struct rt_script *s, const struct rt_perf_record *r, struct rt_sink *sink)
{
	struct rt_frame frames[FRAMES_MAX];
	size_t n = name_place(s, r, r->sample.ip, frames);

	place(s, r->sample.ip, &frames[n - 1], sink);
}

static void when(const struct rt_perf_record *r, struct rt_sink *sink)
{
	rt_sink_printf(sink, "%5" PRIu64 ".%06" PRIu64 ": ", r->id.time_ns / 1000000000,
		       r->id.time_ns % 1000000000 / 1000);
}

static void head(struct rt_script *s, const struct rt_perf_event *event, const struct rt_perf_record *r,
		 struct rt_sink *sink)
{
	rt_sink_printf(sink, "%16s %7u ", comm_of(s, r->id.tid), r->id.tid);
	if (event->attr.sample_type & PERF_SAMPLE_CPU)
		rt_sink_printf(sink, "[%03u] ", r->id.cpu);
	when(r, sink);
}

/* Raw bytes of our own events, as their print format says in perf. false: not one of them */
static bool ours(struct rt_script *s, const struct rt_perf_event *event, const struct rt_perf_record *r,
		 struct rt_sink *sink)
{
	static const char *const flags[] = { "count-read", "count-exact", "hidden",      "at-return",
					     "inline",     "no-object",   "count-fault", "inherited" };
	struct rt_wire_event e;
	struct rt_bytes data;
	const char *text, *bar = "";

	switch (event->name ? rt_reftrace_name(event->name, NULL, NULL, NULL) : RT_REFTRACE_NONE) {
	case RT_REFTRACE_META:
		if (!rt_reftrace_meta_read(r->sample.raw, s->options.big_endian, &text, &data))
			return false;
		rt_sink_printf(sink, "%s [%zu bytes]", rt_clean(&s->arena, text), data.size);
		return true;
	case RT_REFTRACE_OP:
		if (!rt_reftrace_op_read(r, s->options.big_endian, &e, NULL))
			return false;
		rt_sink_printf(sink, "object=0x%" PRIx64 " count=%d delta=%d flags=", e.object, (int)e.count, e.delta);
		for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
			if (e.flags & (1u << i)) {
				rt_sink_printf(sink, "%s%s", bar, flags[i]);
				bar = "|";
			}
		}
		rt_sink_printf(sink, " aux=0x%" PRIx64, e.aux);
		return true;
	default:
		return false;
	}
}

static void sample(struct rt_script *s, const struct rt_perf_event *event, const struct rt_perf_record *r,
		   struct rt_sink *sink)
{
	const struct rt_trace_event *format = NULL;
	bool done;

	s->samples++;
	head(s, event, r, sink);
	if (event->attr.type == PERF_TYPE_TRACEPOINT) {
		rt_sink_printf(sink, "%s: ", rt_clean(&s->arena, event->name ?: "event"));
		format = s->tracing ? rt_tracing_event(s->tracing, event->attr.config) : NULL;
		done = ours(s, event, r, sink);
		if (!done && format)
			rt_trace_print(s->tracing, format, r->sample.raw, sink);
		else if (!done && r->sample.raw.size)
			rt_sink_printf(sink, "%zu bytes of raw data whose format the recording does not have",
				       r->sample.raw.size);
	} else {
		bool has_own = r->sample.moved || event->attr.sample_type & PERF_SAMPLE_PERIOD;
		uint64_t period = has_own ? r->sample.period : event->attr.sample_period;

		rt_sink_printf(sink, "%10" PRIu64 " %s: ", period, rt_clean(&s->arena, event->name ?: "event"));
		if (event->attr.type == PERF_TYPE_RAW && event->attr.sample_type & PERF_SAMPLE_ADDR)
			rt_sink_printf(sink, "%16" PRIx64 " ", r->sample.addr);
	}
	if (event->attr.sample_type & PERF_SAMPLE_CALLCHAIN) {
		rt_sink_puts(sink, "\n");
		chain(s, r, sink);
		return;
	}
	if (event->attr.type != PERF_TYPE_TRACEPOINT && event->attr.sample_type & PERF_SAMPLE_IP)
		sample_place(s, r, sink);
	rt_sink_puts(sink, "\n");
}

static void mapping(struct rt_script *s, const struct rt_perf_record *r, struct rt_sink *sink)
{
	const struct rt_perf_mmap *m = &r->mmap;

	rt_sink_printf(sink, "PERF_RECORD_%s %d/%d: [0x%" PRIx64 "(0x%" PRIx64 ") @ 0x%" PRIx64,
		       rt_perf_type_name(r->type), (int)m->pid, (int)m->tid, m->addr, m->len, m->pgoff);
	if (m->build_id_size) {
		rt_sink_puts(sink, " <");
		for (unsigned i = 0; i < m->build_id_size; i++)
			rt_sink_printf(sink, "%02x", m->build_id[i]);
		rt_sink_puts(sink, ">");
	} else if (r->type == RT_PERF_MMAP2) {
		rt_sink_printf(sink, " %02x:%02x %" PRIu64 " %" PRIu64, m->maj, m->min, m->ino, m->ino_gen);
	}
	rt_sink_printf(sink, "]: %s\n", rt_clean(&s->arena, m->filename));
}

/* false: the record is not of a kind that was asked for */
static bool wanted(const struct rt_script_options *o, uint32_t type)
{
	switch (type) {
	case RT_PERF_COMM:
	case RT_PERF_FORK:
	case RT_PERF_EXIT:
		return o->tasks;
	case RT_PERF_MMAP:
	case RT_PERF_MMAP2:
		return o->mappings;
	case RT_PERF_LOST:
	case RT_PERF_LOST_SAMPLES:
		return o->lost;
	case RT_PERF_KSYMBOL:
	case RT_PERF_BPF_EVENT:
		return o->bpf;
	default:
		return false;
	}
}

static void other(struct rt_script *s, const struct rt_perf_record *r, struct rt_sink *sink)
{
	rt_sink_printf(sink, "%16s %7u ", comm_of(s, r->id.tid), r->id.tid);
	when(r, sink);
	switch (r->type) {
	case RT_PERF_COMM:
		rt_sink_printf(sink, "PERF_RECORD_COMM%s: %s:%u/%u\n", r->comm.exec ? " exec" : "",
			       rt_clean(&s->arena, r->comm.comm), r->comm.pid, r->comm.tid);
		break;
	case RT_PERF_FORK:
	case RT_PERF_EXIT:
		rt_sink_printf(sink, "PERF_RECORD_%s(%u:%u):(%u:%u)\n", rt_perf_type_name(r->type), r->task.pid,
			       r->task.tid, r->task.ppid, r->task.ptid);
		break;
	case RT_PERF_MMAP:
	case RT_PERF_MMAP2:
		mapping(s, r, sink);
		break;
	case RT_PERF_LOST:
	case RT_PERF_LOST_SAMPLES:
		rt_sink_printf(sink, "PERF_RECORD_%s lost %" PRIu64 "\n", rt_perf_type_name(r->type), r->lost.count);
		break;
	case RT_PERF_KSYMBOL:
		rt_sink_printf(sink, "PERF_RECORD_KSYMBOL addr %" PRIx64 " len %u type %u flags 0x%x name %s\n",
			       r->ksymbol.addr, r->ksymbol.len, r->ksymbol.type, r->ksymbol.unregister,
			       rt_clean(&s->arena, r->ksymbol.name));
		break;
	case RT_PERF_BPF_EVENT:
		rt_sink_printf(sink, "PERF_RECORD_BPF_EVENT type %u, flags %u, id %u\n", r->bpf.type, r->bpf.flags,
			       r->bpf.id);
		break;
	default:
		break;
	}
}

struct rt_error *rt_script_record(struct rt_script *s, const struct rt_perf_event *events,
				  const struct rt_perf_record *r, struct rt_sink *sink)
{
	RT_TRY(follow(s, r));
	if (r->type == RT_PERF_SAMPLE)
		sample(s, &events[r->event], r, sink);
	else if (wanted(&s->options, r->type))
		other(s, r, sink);
	/* texts of one record live as long as it */
	if (s->arena.bytes > 1 << 16)
		rt_arena_deinit(&s->arena);
	return NULL;
}
