/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames as text. What a person reads stands in the frame: name, line, what it returns; its address keeps calls
 * on one line apart. The rest (module, entry, linkage name, where the call goes) is a fact of that frame, told once.
 */
#include <inttypes.h>
#include <string.h>

#include "report/events_build.h"
#include "report/words.h"

enum { FRAMES_MAX = 64 };

/* bytes that mean something in a frame */
#define SPECIAL "%#=;@~>+"

struct rt_error *rt_events_keep(struct rt_events *w, const struct rt_wire_stack *r)
{
	uint64_t *index = rt_map_put(&w->stack_by_id, rt_key_make(r->head.pid, r->id), NULL);
	struct rt_events_stack *s = index ? rt_vec_add(&w->stacks) : NULL;

	if (!s)
		return rt_error_nomem();
	*index = w->stacks.len - 1;
	/* the head holds time and number: equal stacks are not equal bytes there */
	s->raw = rt_intern_bytes(&w->texts, r, r->head.size);
	return s->raw ? NULL : rt_error_nomem();
}

static const char *frame_text(struct rt_events *w, const struct rt_frame *f)
{
	const char *text = f->function
				   ? rt_events_escape(w, f->function, *f->function == '?' ? SPECIAL "?" : SPECIAL)
				   : rt_format(&w->arena, "?%s",
					       f->module ? rt_events_escape(w, rt_basename(f->module), SPECIAL) : "");

	if (f->function && f->file)
		text = rt_format(&w->arena, "%s@%s:%u", text, rt_events_escape(w, f->file, SPECIAL), f->line);
	if (f->function && f->returns)
		/* one word by itself would be read as the name of a structure that is pointed to */
		text = rt_format(&w->arena, "%s->%s%s", text, strpbrk(f->returns, " *") ? "" : ":",
				 rt_events_escape(w, f->returns, SPECIAL));
	return rt_format(&w->arena, "%s+0x%" PRIx64, text, f->address);
}

static const char *hands_text(struct rt_events *w, uint8_t hands)
{
	const char *text = "";

	for (unsigned i = 0; i < RT_HANDS_NR; i++) {
		if (hands >> i & 1)
			text = rt_format(&w->arena, "%s%s%s", text, *text ? "," : "", rt_hands_word(i));
	}
	return text;
}

/* What the namer tells of a frame beside its name; texts: of frames, NULL where there is none. */
struct facts {
	const char *calls, *later, *leaves;
	uint8_t hands;
	bool given; /* later: with what the call was given */
};

/* the line with what the text of the frame does not say; once */
static struct rt_error *frame_fact(struct rt_events *w, const char *text, const struct rt_frame *f,
				   const struct facts *facts, struct rt_sink *sink)
{
	size_t known = w->frames.items.len;
	uint32_t id = rt_intern_string(&w->frames, text);

	if (!id)
		return rt_error_nomem();
	if (id <= known)
		return NULL;
	rt_sink_printf(sink, "frame %s", text);
	if (f->module)
		rt_sink_printf(sink, " module=%s", rt_events_escape(w, f->module, "%#="));
	if (f->entry)
		rt_sink_printf(sink, " entry=0x%" PRIx64, f->entry);
	if (f->linkage)
		rt_sink_printf(sink, " linkage=%s", rt_events_escape(w, f->linkage, "%#="));
	if (facts->calls)
		rt_sink_printf(sink, " calls=%s", facts->calls);
	if (facts->hands)
		rt_sink_printf(sink, " hands=%s", hands_text(w, facts->hands));
	if (facts->later)
		rt_sink_printf(sink, " %s=%s", facts->given ? "given" : "later", facts->later);
	if (facts->leaves)
		rt_sink_printf(sink, " leaves=%s", facts->leaves);
	rt_sink_puts(sink, "\n");
	return NULL;
}

static struct rt_error *machine_text(struct rt_events *w, const struct rt_wire_event *e, uint64_t pc, bool is_return,
				     struct rt_sink *sink, const char **ret);

/* the function that begins at this address, where one does; NULL: not known */
static struct rt_error *callee_text(struct rt_events *w, const struct rt_wire_event *e, uint64_t callee,
				    struct rt_sink *sink, const char **ret)
{
	struct rt_frame frames[FRAMES_MAX];
	size_t n =
		callee ? w->namer->name(w->namer, e->head.pid, e->head.time_ns, callee, false, frames, FRAMES_MAX) : 0;
	const struct rt_frame *f = n ? &frames[n - 1] : NULL;
	struct facts facts = { 0 };
	uint64_t leaves;

	*ret = NULL;
	if (!f || !f->entry || f->entry != f->address)
		return NULL;
	leaves = w->namer->leaves ? w->namer->leaves(w->namer, e->head.pid, e->head.time_ns, callee) : 0;
	if (leaves)
		RT_TRY(machine_text(w, e, leaves, false, sink, &facts.leaves));
	*ret = frame_text(w, f);
	return frame_fact(w, *ret, f, &facts, sink);
}

/* one machine frame: the function, and ";~" and what is inlined into it */
static struct rt_error *machine_text(struct rt_events *w, const struct rt_wire_event *e, uint64_t pc, bool is_return,
				     struct rt_sink *sink, const char **ret)
{
	struct rt_key key = rt_key_make(pc, (uint64_t)e->head.pid << 1 | is_return);
	uint64_t *slot = rt_map_get(&w->machine_by_pc, key);
	struct rt_frame frames[FRAMES_MAX];
	const char *text = "";
	uint32_t id;
	size_t n;

	if (slot) {
		*ret = rt_intern_text(&w->texts, (uint32_t)*slot);
		return NULL;
	}
	n = w->namer->name(w->namer, e->head.pid, e->head.time_ns, pc, is_return, frames, FRAMES_MAX);
	for (size_t i = n; i-- > 0;) {
		const char *one = frame_text(w, &frames[i]);
		struct facts facts = { 0 };

		if (i + 1 == n)
			RT_TRY(callee_text(w, e, frames[i].callee, sink, &facts.calls));
		if (i + 1 == n && is_return) {
			facts.hands = w->namer->hands ? w->namer->hands(w->namer, e->head.pid, e->head.time_ns, pc) : 0;
			if (w->namer->callback)
				RT_TRY(callee_text(
					w, e,
					w->namer->callback(w->namer, e->head.pid, e->head.time_ns, pc, &facts.given),
					sink, &facts.later));
		}
		RT_TRY(frame_fact(w, one, &frames[i], &facts, sink));
		text = rt_format(&w->arena, "%s%s%s", text, i + 1 == n ? "" : ";~", one);
	}
	id = rt_intern_string(&w->texts, text);
	slot = id ? rt_map_put(&w->machine_by_pc, key, NULL) : NULL;
	if (!slot)
		return rt_error_nomem();
	*slot = id;
	*ret = rt_intern_text(&w->texts, id);
	return NULL;
}

static struct rt_error *name_stack(struct rt_events *w, const struct rt_wire_event *e, struct rt_events_stack *s,
				   struct rt_sink *sink)
{
	const struct rt_wire_stack *r =
		(const struct rt_wire_stack *)(const void *)rt_intern_get(&w->texts, s->raw).data;
	bool cut = r->end != RT_STACK_ROOT && r->end != RT_STACK_GIVEN;
	const char *text = cut ? "..." : "", *cfas = "";

	for (unsigned i = r->nr; i-- > 0;) {
		const struct rt_wire_frame *f = &r->frame[i];
		const char *one = "";

		RT_TRY(machine_text(w, e, f->pc, i || !(f->flags & RT_FRAME_SITE), sink, &one));
		text = rt_format(&w->arena, "%s%s%s", text, *text ? ";" : "", one);
		cfas = rt_format(&w->arena, "%s%s%u", cfas, *cfas ? "," : "", f->cfa);
	}
	s->text = rt_intern_string(&w->texts, text);
	s->cfa = rt_intern_string(&w->texts, cfas);
	return s->text && s->cfa ? NULL : rt_error_nomem();
}

struct rt_error *rt_events_stack(struct rt_events *w, const struct rt_wire_event *e, struct rt_sink *sink,
				 const struct rt_events_stack **ret)
{
	const uint64_t *index = e->stack ? rt_map_get(&w->stack_by_id, rt_key_make(e->head.pid, e->stack)) : NULL;
	struct rt_events_stack *s = index ? &w->stacks.data[*index] : NULL;
	const struct rt_wire_stack *r;

	*ret = NULL;
	if (!s)
		return NULL;
	r = (const struct rt_wire_stack *)(const void *)rt_intern_get(&w->texts, s->raw).data;
	if (!r->nr)
		return NULL;
	if (!s->text)
		RT_TRY(name_stack(w, e, s, sink));
	*ret = s;
	return NULL;
}
