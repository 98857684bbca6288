/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine text: reads .events lines (reftrace.events(5)) into wire records.
 * The whole file is turned into records at once; the source then hands them
 * out. What a frame is called stands in the file, so the namer is here, too.
 */
#include "engine/text.h"

#include <string.h>

#include "base/text.h"
#include "engine/text_build.h"
#include "engine/text_namer.h"

#define BAD_STACK "too many frames, cfa= that is no list of numbers, or out of memory"

enum { WORDS = 64, STEP_NS = 1000 };

struct word {
	const char *s;
	size_t len;
};

struct rt_text {
	struct rt_source source;
	struct text_namer namer;
	struct text_build build;
	size_t pos; /* next record, in words */
	const char *name;
	/* where the parser is */
	const char *line_start;
	unsigned line;
	uint64_t time_ns;
	uint32_t pid, tid;
	struct rt_map generations; /* pid -> exec generation */
	/* the line */
	struct word words[WORDS]; /* without the key=value ones */
	unsigned nr;
	struct text_event e;
	struct word holder, signal, point, count, module, linkage, alias, ender, structure, calls, hands, later, given,
		leaves;
	uint64_t entry, bytes; /* 0 = not told */
	int32_t start;
	uint64_t object_size;
	int32_t counter;
	bool has_counter;
};

static struct rt_error *bad(const struct rt_text *t, const char *at, const char *what)
{
	return rt_error_new(RT_E_FORMAT, "%s:%u:%zu: %s", t->name, t->line, (size_t)(at - t->line_start) + 1, what);
}

static bool is(struct word w, const char *text)
{
	return w.len == strlen(text) && !memcmp(w.s, text, w.len);
}

static struct rt_error *number(const struct rt_text *t, struct word w, uint64_t max, uint64_t *ret)
{
	bool hex = w.len > 2 && w.s[0] == '0' && w.s[1] == 'x';
	uint64_t v;

	if (!rt_parse_u64(w.s + (hex ? 2 : 0), w.len - (hex ? 2 : 0), hex ? 16 : 10, &v) || v > max)
		return bad(t, w.s, "not a number, or too large");
	*ret = v;
	return NULL;
}

static uint32_t wire_pid(struct rt_text *t, uint32_t pid)
{
	uint64_t *gen = rt_map_get(&t->generations, rt_key_make(pid, 0));

	return RT_PID_MAKE(pid, gen ? (uint32_t)*gen : 0);
}

/* PID or PID/GENERATION */
static struct rt_error *key_pid(struct rt_text *t, struct word v, uint32_t *ret)
{
	const char *slash = memchr(v.s, '/', v.len);
	struct word pid = { v.s, slash ? (size_t)(slash - v.s) : v.len };
	uint64_t n = 0, *gen, g = 0;

	RT_TRY(number(t, pid, RT_PID_MASK, &n));
	if (slash) {
		RT_TRY(number(t, (struct word){ slash + 1, v.len - pid.len - 1 }, UINT32_MAX >> RT_PID_BITS, &g));
		gen = rt_map_put(&t->generations, rt_key_make(n, 0), NULL);
		if (!gen)
			return rt_error_nomem();
		*gen = g;
	}
	*ret = (uint32_t)n;
	return NULL;
}

static struct rt_error *flag_list(struct rt_text *t, struct word w)
{
	const char *unknown = text_flags(w.s, w.len, &t->e.flags);

	return unknown ? bad(t, unknown, "unknown flag") : NULL;
}

static struct rt_error *key_time(struct rt_text *t, struct word v)
{
	bool relative = v.len && v.s[0] == '+';
	uint64_t n;

	RT_TRY(number(t, (struct word){ v.s + relative, v.len - relative }, UINT64_MAX / 4, &n));
	t->time_ns = relative ? t->time_ns - STEP_NS + n : n;
	return NULL;
}

static struct rt_error *key_count(struct rt_text *t, struct word v, uint16_t flag)
{
	uint64_t n = 0;

	t->count = v;
	if (is(v, "fault")) {
		t->e.flags |= RT_EV_COUNT_FAULT;
		return NULL;
	}
	RT_TRY(number(t, v, UINT32_MAX, &n));
	t->e.count = (uint32_t)n;
	t->e.flags |= flag;
	return NULL;
}

static struct rt_error *key_delta(struct rt_text *t, struct word v)
{
	bool minus = v.len && v.s[0] == '-';
	uint64_t n;

	RT_TRY(number(t, (struct word){ v.s + minus, v.len - minus }, INT16_MAX, &n));
	t->e.delta = minus ? -(int32_t)n : (int32_t)n;
	t->e.has_delta = true;
	return NULL;
}

static struct rt_error *key_number(struct rt_text *t, struct word k, struct word v, bool *ret_known)
{
	uint64_t n = 0;

	*ret_known = true;
	if (is(k, "pid")) {
		RT_TRY(key_pid(t, v, &t->pid));
		t->tid = t->pid;
	} else if (is(k, "tid")) {
		RT_TRY(number(t, v, RT_PID_MASK, &n));
		t->tid = (uint32_t)n;
	} else if (is(k, "cpu")) {
		RT_TRY(number(t, v, UINT32_MAX >> RT_SEQ_BITS, &n));
		t->e.cpu = (uint32_t)n;
	} else if (is(k, "seq")) {
		RT_TRY(number(t, v, UINT32_MAX, &n));
		t->e.seq = (uint32_t)n;
		t->e.has_seq = true;
	} else if (is(k, "slot")) {
		RT_TRY(number(t, v, UINT64_MAX, &t->e.aux));
		t->e.has_slot = true;
	} else if (is(k, "class")) {
		RT_TRY(number(t, v, UINT64_MAX, &t->e.aux));
		t->e.has_class = true;
	} else if (is(k, "aux")) {
		RT_TRY(number(t, v, UINT64_MAX, &t->e.aux));
	} else if (is(k, "entry")) {
		RT_TRY(number(t, v, UINT64_MAX, &t->entry));
	} else if (is(k, "bytes")) {
		RT_TRY(number(t, v, 8, &t->bytes));
	} else if (is(k, "sp")) {
		RT_TRY(number(t, v, UINT64_MAX, &t->e.sp));
		t->e.has_sp = true;
	} else if (is(k, "start")) {
		RT_TRY(number(t, v, INT16_MAX, &n));
		t->start = (int32_t)n;
	} else if (is(k, "size")) {
		RT_TRY(number(t, v, UINT32_MAX, &t->object_size));
	} else if (is(k, "counter")) {
		bool before = v.len && *v.s == '-';

		RT_TRY(number(t, (struct word){ v.s + before, v.len - before }, INT32_MAX, &n));
		t->counter = before ? -(int32_t)n : (int32_t)n;
		t->has_counter = true;
	} else {
		*ret_known = false;
	}
	return NULL;
}

/* takes KEY=VALUE; *ret_taken is false for other words */
static struct rt_error *key_value(struct rt_text *t, struct word w, bool *ret_taken)
{
	const char *eq = memchr(w.s, '=', w.len);
	struct word k, v;

	*ret_taken = eq != NULL;
	if (!eq)
		return NULL;
	k = (struct word){ w.s, (size_t)(eq - w.s) };
	v = (struct word){ eq + 1, w.len - k.len - 1 };
	if (is(k, "t"))
		return key_time(t, v);
	if (is(k, "count"))
		return key_count(t, v, RT_EV_COUNT_EXACT);
	if (is(k, "read"))
		return key_count(t, v, RT_EV_COUNT_READ);
	if (is(k, "delta"))
		return key_delta(t, v);
	if (is(k, "flags"))
		return flag_list(t, v);
	if (is(k, "via")) {
		if (!v.len)
			return bad(t, v.s, "via= needs a function name");
		t->e.via = v.s;
		t->e.via_len = v.len;
	} else if (is(k, "cfa")) {
		t->e.cfa = v.s;
		t->e.cfa_len = v.len;
	} else if (is(k, "module")) {
		t->module = v;
	} else if (is(k, "linkage")) {
		t->linkage = v;
	} else if (is(k, "leaves")) {
		t->leaves = v;
	} else if (is(k, "alias")) {
		t->alias = v;
	} else if (is(k, "ender")) {
		t->ender = v;
	} else if (is(k, "structure")) {
		t->structure = v;
	} else if (is(k, "calls")) {
		t->calls = v;
	} else if (is(k, "hands")) {
		t->hands = v;
	} else if (is(k, "later")) {
		t->later = v;
	} else if (is(k, "given")) {
		t->given = v;
	} else if (is(k, "signal")) {
		t->signal = v;
	} else if (is(k, "holder")) {
		t->holder = v;
	} else if (is(k, "point")) {
		t->point = v;
	} else {
		RT_TRY(key_number(t, k, v, ret_taken));
	}
	return NULL;
}

static struct rt_error *split(struct rt_text *t, const char *s, const char *end)
{
	t->e = (struct text_event){ 0 };
	t->holder = t->signal = t->point = t->count = t->module = t->linkage = (struct word){ 0 };
	t->alias = t->ender = t->structure = t->calls = t->hands = t->later = t->given = t->leaves = (struct word){ 0 };
	t->entry = t->bytes = 0;
	t->start = RT_START_UNKNOWN;
	t->object_size = 0;
	t->has_counter = false;
	t->nr = 0;
	t->time_ns += STEP_NS;
	while (s < end) {
		struct word w = { s, 0 };
		bool taken;

		if (*s == ' ' || *s == '\t' || *s == '\r') {
			s++;
			continue;
		}
		if (*s == '#')
			break;
		while (s < end && *s != ' ' && *s != '\t' && *s != '\r')
			s++;
		w.len = (size_t)(s - w.s);
		RT_TRY(key_value(t, w, &taken));
		if (taken)
			continue;
		if (t->nr == WORDS)
			return bad(t, w.s, "too many words");
		t->words[t->nr++] = w;
	}
	return NULL;
}

static struct rt_error *emit(struct rt_text *t, const void *record, size_t size)
{
	return text_emit(&t->build, record, size) ? NULL : rt_error_nomem();
}

static struct rt_error *task(struct rt_text *t, enum rt_wire_kind kind, uint32_t other, int32_t value)
{
	struct rt_wire_task r = { .head = { sizeof(r), kind, 0, 0, t->time_ns, wire_pid(t, t->pid), t->tid } };

	r.other = other;
	r.value = value;
	return emit(t, &r, sizeof(r));
}

/* each thread has its CPU, unless the line names one */
static uint32_t producer(const struct rt_text *t)
{
	return t->e.cpu ? t->e.cpu : t->tid & (UINT32_MAX >> RT_SEQ_BITS);
}

/* who was where, and when: the event says it as the line does */
static struct rt_error *place(struct rt_text *t, struct word stack)
{
	struct text_event *e = &t->e;

	e->stack = stack.s;
	e->stack_len = stack.len;
	e->cpu = producer(t);
	e->time_ns = t->time_ns;
	e->pid = wire_pid(t, t->pid);
	e->tid = t->tid;
	return stack.len && (*stack.s == ';' || *stack.s == '~' || memmem(stack.s, stack.len, ";;", 2))
		       ? bad(t, stack.s, "empty frame")
		       : NULL;
}

/* stand STACK [signal=N] */
static struct rt_error *line_stand(struct rt_text *t)
{
	uint64_t signal = 0;

	if (t->nr != 2)
		return bad(t, t->words[0].s, "expected: stand STACK [signal=N]");
	if (t->signal.len)
		RT_TRY(number(t, t->signal, 255, &signal));
	RT_TRY(place(t, t->words[1]));
	return text_stand(&t->build, &t->e, (uint32_t)signal) ? NULL : bad(t, t->words[1].s, BAD_STACK);
}

/* OP TYPE OBJECT [STACK] */
static struct rt_error *line_event(struct rt_text *t, enum rt_op op)
{
	struct text_event *e = &t->e;

	if (t->nr < 3 || t->nr > 4)
		return bad(t, t->words[0].s, "expected: OP TYPE OBJECT [STACK]");
	RT_TRY(number(t, t->words[2], UINT64_MAX, &e->object));
	e->point = e->via ? text_declared(&t->build, e->via, e->via_len) : 0;
	if (e->via && *e->via == ':' && !e->point && e->via_len > 1 && e->via[1] != ':')
		return bad(t, e->via, "no such point so far");
	e->op = op;
	e->type = t->words[1].s;
	e->type_len = t->words[1].len;
	RT_TRY(place(t, t->nr == 4 ? t->words[3] : (struct word){ 0 }));
	if (!e->has_delta)
		e->delta = op == RT_OP_GET || op == RT_OP_SWAP ? 1 : op == RT_OP_PUT ? -1 : 0;
	return text_event(&t->build, e) ? NULL : bad(t, t->words[0].s, BAD_STACK);
}

/* type NAME [WORD...] [start=] [counter=] [size=] */
static struct rt_error *line_type(struct rt_text *t)
{
	/* by bit of RT_TYPE_* */
	static const char *const words[] = { "floating", "heap", "free", "kernel", "descriptor", "sampled", "owned" };
	struct rt_wire_type a = { .start = t->start, .counter_offset = RT_COUNTER_UNKNOWN };
	const char *structure;

	if (t->nr < 2)
		return bad(t, t->words[0].s,
			   "expected: type NAME [floating|heap|free|kernel|descriptor|sampled|owned...] [start=N]");
	if (t->has_counter) {
		a.counter_offset = t->counter;
		a.counter_size = t->bytes ? (uint32_t)t->bytes : 4;
	}
	a.object_size = (uint32_t)t->object_size;
	for (unsigned i = 2; i < t->nr; i++) {
		unsigned bit = 0;

		while (bit < sizeof(words) / sizeof(words[0]) && !is(t->words[i], words[bit]))
			bit++;
		if (bit == sizeof(words) / sizeof(words[0]))
			return bad(t, t->words[i].s, "expected: floating, heap, free, kernel, descriptor or sampled");
		a.flags |= 1u << bit;
	}
	structure = t->structure.len ? text_unescape(&t->build, t->structure.s, t->structure.len) : NULL;
	if (t->structure.len && !structure)
		return rt_error_nomem();
	return text_type(&t->build, t->words[1].s, t->words[1].len, &a, structure) ? NULL : rt_error_nomem();
}

static struct rt_error *loss(struct rt_text *t, enum rt_wire_kind kind, uint32_t cause, uint32_t point, uint64_t value,
			     unsigned text_from)
{
	const char *text = "", *end = text;
	_cleanup_free_ struct rt_wire_loss *r = NULL;
	_cleanup_free_ char *copy = NULL;

	if (text_from < t->nr) {
		text = t->words[text_from].s;
		end = t->words[t->nr - 1].s + t->words[t->nr - 1].len;
	}
	text = text_unescape(&t->build, text, (size_t)(end - text));
	copy = text ? strdup(text) : NULL;
	r = copy ? rt_record_loss(cause, point, value, copy) : NULL;
	if (!r)
		return rt_error_nomem();
	r->head.kind = kind;
	r->head.time_ns = t->time_ns;
	r->head.pid = wire_pid(t, t->pid);
	return emit(t, r, r->head.size);
}

/* every point of this name, or all when the name is empty */
static struct rt_error *each_point(struct rt_text *t, struct word name, enum rt_wire_kind kind, uint32_t cause,
				   bool own_count, uint64_t value, unsigned text_from)
{
	uint32_t declared = text_declared(&t->build, name.s, name.len);
	bool any = false;

	for (uint32_t i = 0; i < t->build.points.len; i++) {
		const struct text_point *p = &t->build.points.data[i];

		if (name.len && declared != i + 1 &&
		    (declared || !is(name, rt_intern_text(&t->build.names, p->function))))
			continue;
		any = true;
		RT_TRY(loss(t, kind, cause, i + 1, own_count ? p->events : value, text_from));
	}
	return any || !name.len ? NULL : bad(t, name.s, "no such function so far");
}

/* loss CAUSE [N] [point=NAME] [TEXT...]; cut [TEXT...] */
static struct rt_error *line_loss(struct rt_text *t)
{
	uint64_t value = 0;
	uint32_t cause = 1;
	unsigned text = 2;

	if (t->nr < 2)
		return bad(t, t->words[0].s, "expected: loss CAUSE [N] [point=FUNCTION] [TEXT]");
	while (cause < RT_LOSS_NR && !is(t->words[1], rt_loss_name(cause)))
		cause++;
	if (cause == RT_LOSS_NR)
		return bad(t, t->words[1].s, "unknown cause");
	if (t->nr > 2 && rt_parse_u64(t->words[2].s, t->words[2].len, 10, &value))
		text = 3;
	if (t->point.len)
		return each_point(t, t->point, RT_WIRE_LOSS, cause, false, value, text);
	return loss(t, RT_WIRE_LOSS, cause, 0, value, text);
}

/* unarmed FUNCTION TYPE OP [TEXT...]: a point that the plan had and that could not be armed */
static struct rt_error *line_unarmed(struct rt_text *t)
{
	enum rt_op op = t->nr > 3 ? rt_op_parse(t->words[3].s, t->words[3].len) : RT_OP_NONE;
	uint32_t type, point;

	if (op == RT_OP_NONE)
		return bad(t, t->words[0].s, "expected: unarmed FUNCTION TYPE OP [TEXT]");
	type = text_type(&t->build, t->words[2].s, t->words[2].len, NULL, NULL);
	point = type ? text_point(&t->build, type, op, 0, 0, 0, t->words[1].s, t->words[1].len) : 0;
	return point ? loss(t, RT_WIRE_LOSS, RT_LOSS_UNARMED, point, 0, 4) : rt_error_nomem();
}

/* held OBJECT none|global|stack|heap|object|freed [N] [holder=OBJECT] [slot=]; final OBJECT count=N */
static struct rt_error *line_held(struct rt_text *t, bool final)
{
	static const char *const where[] = { "none", "global", "stack", "heap", "object", "freed", "exec" };
	struct rt_wire_held r = { .head = { sizeof(r), final ? RT_WIRE_COUNT : RT_WIRE_HELD, 0, 0, t->time_ns,
					    wire_pid(t, t->pid) } };
	uint64_t n = 1;

	if (t->nr < (final ? 2 : 3))
		return bad(t, t->words[0].s, "expected: held OBJECT WHERE [N], or final OBJECT count=N");
	RT_TRY(number(t, t->words[1], UINT64_MAX, &r.object));
	if (t->holder.len)
		RT_TRY(number(t, t->holder, UINT64_MAX, &r.holder));
	if (final) {
		if (!t->count.len)
			return bad(t, t->words[0].s, "expected: final OBJECT count=N");
		r.where = t->bytes ? (uint32_t)t->bytes : 4;
		r.value = t->e.count;
		return emit(t, &r, sizeof(r));
	}
	while (r.where <= RT_HOLDER_EXEC && !is(t->words[2], where[r.where]))
		r.where++;
	if (r.where > RT_HOLDER_EXEC)
		return bad(t, t->words[2].s, "expected: none, global, stack, heap, object, freed or exec");
	if (t->nr > 3)
		RT_TRY(number(t, t->words[3], UINT32_MAX, &n));
	r.value = r.where == RT_HOLDER_NONE || r.where >= RT_HOLDER_FREED ? 0 : (uint32_t)n;
	r.slot = t->e.aux;
	return emit(t, &r, sizeof(r));
}

/* class TYPE WORD NAME: what the events say with class=WORD */
static struct rt_error *line_class(struct rt_text *t)
{
	_cleanup_free_ struct rt_wire_class *r = NULL;
	uint64_t of = 0;
	uint32_t type;
	const char *name;

	if (t->nr != 4)
		return bad(t, t->words[0].s, "expected: class TYPE WORD NAME");
	RT_TRY(number(t, t->words[2], UINT64_MAX, &of));
	type = text_type(&t->build, t->words[1].s, t->words[1].len, NULL, NULL);
	name = text_unescape(&t->build, t->words[3].s, t->words[3].len);
	r = type && name ? rt_record_class(type, of, name) : NULL;
	if (!r)
		return rt_error_nomem();
	r->head.time_ns = t->time_ns;
	r->head.pid = wire_pid(t, t->pid);
	return emit(t, r, r->head.size);
}

static struct rt_error *line_mark(struct rt_text *t)
{
	static const char *const marks[] = { "", "attach", "census", "detach", "census-skipped", "execed", "inside" };

	for (int32_t i = 1; t->nr == 2 && i < (int32_t)(sizeof(marks) / sizeof(marks[0])); i++) {
		if (is(t->words[1], marks[i]))
			return task(t, RT_WIRE_MARK, 0, i);
	}
	return bad(t, t->words[0].s, "expected: mark attach|census|detach|census-skipped|execed|inside");
}

/* sample RATE [governed|total LIMIT COST EVENT PASSED] */
static struct rt_error *line_sample(struct rt_text *t)
{
	struct rt_wire_sample r = { .head = { sizeof(r), RT_WIRE_SAMPLE, 0, 0, t->time_ns } };
	bool total = t->nr == 7 && is(t->words[2], "total");
	uint32_t *const to[] = { &r.rate, NULL, &r.limit_ppm, &r.cost_ppm, &r.event_ns, &r.passed_ns };

	if (t->nr != 2 && !total && (t->nr != 7 || !is(t->words[2], "governed")))
		return bad(t, t->words[0].s, "expected: sample RATE [governed|total LIMIT COST EVENT PASSED]");
	for (unsigned i = 1; i < t->nr; i++) {
		uint64_t n = 0;

		if (!to[i - 1])
			continue;
		RT_TRY(number(t, t->words[i], UINT32_MAX, &n));
		*to[i - 1] = (uint32_t)n;
	}
	r.flags = t->nr == 7 ? RT_SAMPLE_GOVERNED | (total ? RT_SAMPLE_TOTAL : 0) : 0;
	return emit(t, &r, sizeof(r));
}

/* fork PID; exec; exit [STATUS] [signal=N]; thread TID [end] */
static struct rt_error *line_task(struct rt_text *t, bool *ret_known)
{
	uint64_t n = 0, *gen;

	*ret_known = true;
	if (is(t->words[0], "fork")) {
		uint32_t child = 0;

		if (t->nr > 1)
			RT_TRY(key_pid(t, t->words[1], &child));
		return task(t, RT_WIRE_FORK, wire_pid(t, child), 0);
	}
	if (t->nr > 1)
		RT_TRY(number(t, t->words[1], RT_PID_MASK, &n));
	if (is(t->words[0], "thread"))
		return task(t, RT_WIRE_THREAD, (uint32_t)n, t->nr > 2);
	if (is(t->words[0], "exit")) {
		uint64_t signal = 0;

		if (t->signal.len)
			RT_TRY(number(t, t->signal, 255, &signal));
		return task(t, RT_WIRE_EXIT, 0, (int32_t)((n & 0xff) << 8 | signal));
	}
	if (is(t->words[0], "exec")) {
		gen = rt_map_put(&t->generations, rt_key_make(t->pid, 0), NULL);
		if (!gen)
			return rt_error_nomem();
		*gen = (*gen + 1) & (UINT32_MAX >> RT_PID_BITS);
		return task(t, RT_WIRE_EXEC, 0, 0);
	}
	*ret_known = false;
	return NULL;
}

/* point NUMBER TYPE OP FUNCTION [slot|object|size|result|block|class|stored] [flags=] [delta=] [entry=] [alias=|ender=]
 */
static struct rt_error *line_point(struct rt_text *t)
{
	static const char *const kinds[] = { "", "slot", "object", "size", "result", "block", "class", "stored" };
	enum rt_op op = t->nr > 3 ? rt_op_parse(t->words[3].s, t->words[3].len) : RT_OP_NONE;
	struct rt_wire_point p = { .head = { .op = op }, .delta = t->e.delta, .function = t->entry };
	const struct word behind = t->ender.len ? t->ender : t->alias;
	const char *second;
	uint64_t id = 0;

	if (op == RT_OP_NONE || t->nr < 5 || t->nr > 6)
		return bad(t, t->words[0].s,
			   "expected: point NUMBER TYPE OP FUNCTION [slot|object|size|result|block|class|stored]");
	RT_TRY(number(t, t->words[1], UINT32_MAX, &id));
	for (p.aux = 0; t->nr == 6 && !is(t->words[5], kinds[p.aux]);) {
		if (++p.aux == sizeof(kinds) / sizeof(kinds[0]))
			return bad(t, t->words[5].s, "expected: slot, object, size, result, block, class or stored");
	}
	p.flags = t->e.flags & (RT_EV_HIDDEN | RT_EV_AT_RETURN | RT_EV_INLINE | RT_EV_MAYBE | RT_EV_FIRST);
	p.type = text_type(&t->build, t->words[2].s, t->words[2].len, NULL, NULL);
	if (p.aux == RT_AUX_BLOCK ? t->alias.len : t->ender.len)
		return bad(t, behind.s, "expected: ender= with block, alias= without");
	second = behind.len ? text_unescape(&t->build, behind.s, behind.len) : NULL;
	if (!p.type || (behind.len && !second) ||
	    !text_declare(&t->build, id, &p, t->words[4].s, t->words[4].len, second))
		return rt_error_nomem();
	return NULL;
}

/* frame FRAME [module=] [entry=] [linkage=] [calls=] [hands=] [later=|given=] [leaves=]; program PATH */
static struct rt_error *line_code(struct rt_text *t)
{
	struct text_fact fact = { .entry = t->entry };
	struct word later = t->given.len ? t->given : t->later;
	const char *unknown;

	if (t->nr != 2)
		return bad(t, t->words[0].s, "expected: frame FRAME [KEY=VALUE...], or program PATH");
	if (is(t->words[0], "program")) {
		const char *path = text_unescape(&t->build, t->words[1].s, t->words[1].len);

		return path && text_program(&t->build, path, wire_pid(t, t->pid), t->time_ns) ? NULL : rt_error_nomem();
	}
	if (t->module.len) {
		fact.module = text_unescape(&t->build, t->module.s, t->module.len);
		fact.module_id = fact.module ? text_module_id(&t->build, fact.module) : 0;
	}
	unknown = text_hands_list(t->hands.s, t->hands.len, &fact.hands);
	if (unknown)
		return bad(t, unknown, "expected: hands=result|argument|own|taken|blind|jumped|again,...");
	if (t->linkage.len)
		fact.linkage = text_unescape(&t->build, t->linkage.s, t->linkage.len);
	fact.callee = t->calls.len ? text_frame_pc(&t->build, t->calls.s, t->calls.len) : 0;
	fact.given = t->given.len;
	if (later.len)
		fact.later = text_frame_pc(&t->build, later.s, later.len);
	if (t->leaves.len)
		fact.leaves = text_frame_pc(&t->build, t->leaves.s, t->leaves.len);
	if ((t->leaves.len && !fact.leaves) || (t->calls.len && !fact.callee) || (later.len && !fact.later) ||
	    !text_frame_fact(&t->build, t->words[1].s, t->words[1].len, &fact))
		return rt_error_nomem();
	return NULL;
}

/* other [SEQ]: a record that tells nothing of objects, but took its place in the stream */
static struct rt_error *line_other(struct rt_text *t)
{
	struct rt_wire_head r = { .size = sizeof(r), .time_ns = t->time_ns, .pid = wire_pid(t, t->pid) };
	uint64_t n = 0;

	if (t->nr > 1)
		RT_TRY(number(t, t->words[1], UINT32_MAX, &n));
	r.seq = (uint32_t)n;
	return emit(t, &r, sizeof(r));
}

static struct rt_error *line(struct rt_text *t)
{
	static const struct {
		const char *word;
		struct rt_error *(*read)(struct rt_text *t);
	} lines[] = { { "type", line_type },       { "other", line_other },  { "point", line_point },
		      { "frame", line_code },      { "program", line_code }, { "loss", line_loss },
		      { "unarmed", line_unarmed }, { "class", line_class },  { "mark", line_mark },
		      { "sample", line_sample },   { "stand", line_stand } };
	struct word first = t->words[0];
	enum rt_op op = rt_op_parse(first.s, first.len);
	bool known;
	uint64_t n = 0;

	if (is(first, "find")) {
		t->e.flags |= RT_EV_HIDDEN | RT_EV_AT_RETURN;
		op = RT_OP_GET;
	}
	if (op != RT_OP_NONE)
		return line_event(t, op);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (is(first, lines[i].word))
			return lines[i].read(t);
	}
	if (is(first, "cut"))
		return loss(t, RT_WIRE_LOSS, RT_LOSS_CUT, 0, 0, 1);
	if (is(first, "held") || is(first, "final"))
		return line_held(t, is(first, "final"));
	if (is(first, "gap")) {
		n = 1;
		if (t->nr > 1)
			RT_TRY(number(t, t->words[1], RT_SEQ_MASK, &n));
		return n && !text_seq(&t->build, producer(t), (uint32_t)n - 1) ? rt_error_nomem() : NULL;
	}
	if (is(first, "hits")) {
		if (t->nr > 2)
			RT_TRY(number(t, t->words[2], UINT64_MAX, &n));
		return each_point(t, t->nr > 1 ? t->words[1] : (struct word){ 0 }, RT_WIRE_HITS, 0, t->nr < 3, n,
				  t->nr);
	}
	RT_TRY(line_task(t, &known));
	return known ? NULL : bad(t, first.s, "unknown word");
}

static struct rt_error *parse(struct rt_text *t, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = nl ? nl : end;

		t->line++;
		t->line_start = text;
		RT_TRY(split(t, text, line_end));
		if (t->nr)
			RT_TRY(line(t));
		else
			t->time_ns -= STEP_NS;
		text = line_end + 1;
	}
	return NULL;
}

static struct rt_error *text_next(struct rt_source *self, const struct rt_wire_head **ret)
{
	struct rt_text *t = (struct rt_text *)self;
	const struct rt_wire_head *head;

	*ret = NULL;
	if (t->pos >= t->build.words.len)
		return NULL;
	head = (const struct rt_wire_head *)(const void *)(t->build.words.data + t->pos);
	t->pos += head->size / 8u;
	*ret = head;
	return NULL;
}

static void text_source_destroy(struct rt_source *self)
{
	(void)self; /* a part of struct rt_text */
}

struct rt_error *rt_text_create(const char *text, size_t len, const char *name, struct rt_text **ret)
{
	_cleanup_(rt_text_destroyp) struct rt_text *t = calloc(1, sizeof(*t));

	if (!t)
		return rt_error_nomem();
	t->source = (struct rt_source){ text_next, text_source_destroy };
	text_namer_init(&t->namer, &t->build);
	t->name = name;
	t->build.module_path = "text";
	t->pid = t->tid = 1;
	RT_TRY(parse(t, text, len));
	*ret = rt_take(t);
	return NULL;
}

void rt_text_destroy(struct rt_text *t)
{
	text_build_deinit(&t->build);
	rt_map_deinit(&t->generations);
	free(t);
}

struct rt_source *rt_text_source(struct rt_text *t)
{
	return &t->source;
}

void rt_text_rewind(struct rt_text *t)
{
	t->pos = 0;
}

struct rt_namer *rt_text_namer(struct rt_text *t)
{
	return &t->namer.namer;
}
