/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records for engine text. The made-up machine is as simple as can be: every
 * frame takes FRAME bytes of its thread's stack, so that the CFA of a frame
 * follows from its depth, as activations need it; equal frames have equal
 * pcs, and the pc says which frame of the file it is.
 */
#include "engine/text_build.h"

#include <string.h>

#include "base/text.h"

enum { FRAME = 64, MODULE_ID = 1 };
static const uint64_t TEXT_BASE = 0x400000, ENTRY_BASE = 0x10000000, STACK_BASE = UINT64_C(0x7f0000000000);

bool text_emit(struct text_build *b, const void *record, size_t size)
{
	size_t words = size / 8, at = b->words.len;

	if (at + words > b->words.cap && !rt_vec_reserve(&b->words, (at + words) * 2))
		return false;
	memcpy(b->words.data + at, record, size);
	b->words.len = at + words;
	return true;
}

static bool emit_owned(struct text_build *b, struct rt_wire_head *head)
{
	bool ok = head && text_emit(b, head, head->size);

	free(head);
	return ok;
}

static bool text_module(struct text_build *b)
{
	if (b->module)
		return true;
	b->module = MODULE_ID;
	return emit_owned(b, &rt_record_module(MODULE_ID, b->module_path)->head);
}

uint32_t text_type(struct text_build *b, const char *name, size_t len, const struct rt_wire_type *attributes,
		   const char *structure)
{
	const char *plain = text_unescape(b, name, len);
	uint32_t text = plain ? rt_intern_string(&b->names, plain) : 0;
	struct rt_wire_type *record;
	uint32_t id = 0;

	if (!text)
		return 0;
	for (uint32_t i = 0; i < b->types.len && !id; i++) {
		if (b->types.data[i].name == text)
			id = i + 1;
	}
	if (id && !attributes)
		return id;
	if (!id) {
		struct text_type *t = rt_vec_add(&b->types);

		if (!t)
			return 0;
		*t = (struct text_type){ .name = text, .counter = RT_COUNTER_UNKNOWN };
		id = (uint32_t)b->types.len;
	}
	record = rt_record_type(id, rt_intern_text(&b->names, text), structure);
	if (record && attributes) {
		record->start = attributes->start;
		record->counter_offset = attributes->counter_offset;
		record->counter_size = attributes->counter_size;
		record->object_size = attributes->object_size;
		record->flags = attributes->flags;
		b->types.data[id - 1].counter = attributes->counter_offset;
	}
	return record && emit_owned(b, &record->head) ? id : 0;
}

static uint64_t text_entry(struct text_build *b, uint32_t name)
{
	bool made;
	uint64_t *entry = rt_map_put(&b->functions, rt_key_make(name, 0), &made);

	if (entry && made)
		*entry = ENTRY_BASE + 0x1000 * b->functions.len;
	return entry ? *entry : 0;
}

static uint32_t point_new(struct text_build *b, uint32_t name, const struct rt_wire_point *like, const char *second)
{
	struct text_point *p = text_module(b) ? rt_vec_add(&b->points) : NULL;
	uint32_t id = (uint32_t)b->points.len;
	struct rt_wire_point *record;

	if (!p)
		return 0;
	*p = (struct text_point){ .type = like->type, .function = name, .op = like->head.op };
	p->flags = (uint16_t)like->flags;
	record = rt_record_point(id, rt_intern_text(&b->names, name), second);
	if (record) {
		record->head.op = like->head.op;
		record->type = like->type;
		record->module = MODULE_ID;
		record->delta = like->delta;
		record->address = record->function = like->function ?: text_entry(b, name);
		record->flags = like->flags;
		record->aux = like->aux;
	}
	return record && emit_owned(b, &record->head) ? id : 0;
}

uint32_t text_declare(struct text_build *b, uint64_t number, const struct rt_wire_point *like, const char *function,
		      size_t len, const char *second)
{
	const char *plain = text_unescape(b, function, len);
	uint32_t name = plain ? rt_intern_string(&b->names, plain) : 0;
	uint32_t id = name ? point_new(b, name, like, second) : 0;
	uint64_t *slot = id ? rt_map_put(&b->declared, rt_key_make(number, 0), NULL) : NULL;

	if (!slot)
		return 0;
	*slot = id;
	return id;
}

uint32_t text_declared(const struct text_build *b, const char *s, size_t len)
{
	uint64_t number, *slot;

	if (len < 2 || *s != ':' || !rt_parse_u64(s + 1, len - 1, 10, &number))
		return 0;
	slot = rt_map_get(&b->declared, rt_key_make(number, 0));
	return slot ? (uint32_t)*slot : 0;
}

uint32_t text_module_id(struct text_build *b, const char *path)
{
	uint32_t id = rt_intern_string(&b->modules, path);

	return id ? id + MODULE_ID : 0;
}

bool text_program(struct text_build *b, const char *path, uint32_t pid, uint64_t time_ns)
{
	struct rt_wire_map map = { .head = { sizeof(map), RT_WIRE_MAP, 0, 0, time_ns, pid, 0 } };
	struct rt_wire_module *module;

	map.module = text_module_id(b, path);
	map.start = (uint64_t)map.module << 32;
	map.end = map.start + 4096;
	if (!map.module)
		return false;
	module = rt_record_module(map.module, path);
	if (module)
		module->flags = RT_MODULE_MAIN;
	return emit_owned(b, module ? &module->head : NULL) && text_emit(b, &map, sizeof(map));
}

uint32_t text_point(struct text_build *b, uint32_t type, enum rt_op op, uint16_t flags, uint32_t aux, int32_t delta,
		    const char *function, size_t len)
{
	uint32_t name = rt_intern_bytes(&b->names, function, len);
	struct rt_key key = rt_key_make((uint64_t)type << 32 | (uint64_t)op << 24 | aux << 16 | flags, name);
	const struct rt_wire_point like = {
		.head = { .op = op }, .type = type, .delta = delta, .flags = flags, .aux = aux
	};
	bool made;
	uint64_t *id;

	if (!name)
		return 0;
	id = rt_map_put(&b->point_ids, key, &made);
	if (!id || !made)
		return id ? (uint32_t)*id : 0;
	*id = point_new(b, name, &like, NULL);
	return (uint32_t)*id;
}

/* a piece of a frame, with %XX for bytes that have a meaning in the file */
const char *text_unescape(struct text_build *b, const char *s, size_t len)
{
	_cleanup_free_ char *plain = malloc(len + 1);
	size_t n = 0;
	uint32_t id;

	if (!plain)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		uint64_t byte;

		if (s[i] == '%' && i + 2 < len && rt_parse_u64(s + i + 1, 2, 16, &byte) && byte) {
			plain[n++] = (char)byte;
			i += 2;
		} else {
			plain[n++] = s[i];
		}
	}
	id = rt_intern_bytes(&b->names, plain, n);
	return id ? rt_intern_text(&b->names, id) : NULL;
}

/* where `what` starts in s, or len */
static size_t text_find(const char *s, size_t len, const char *what)
{
	const char *p = s && len ? memmem(s, len, what, strlen(what)) : NULL;

	return p ? (size_t)(p - s) : len;
}

/* length of s without "+0xADDRESS" at its end */
static size_t text_address(const char *s, size_t len, uint64_t *ret)
{
	for (size_t i = len; i-- > 0 && s[i] != '@';) {
		if (s[i] != '+')
			continue;
		return len - i > 3 && s[i + 1] == '0' && s[i + 2] == 'x' &&
				       rt_parse_u64(s + i + 3, len - i - 3, 16, ret)
			       ? i
			       : len;
	}
	return len;
}

static bool text_fact(struct text_build *b, const char *s, size_t len, struct rt_frame *ret, struct text_pc *pc)
{
	uint32_t text = rt_intern_bytes(&b->names, s, len);
	const uint64_t *index = text ? rt_map_get(&b->fact_of, rt_key_make(text, 0)) : NULL;
	const struct text_fact *fact = index ? &b->facts.data[*index] : NULL;

	pc->hands = fact ? fact->hands : 0;
	pc->later = fact ? fact->later : 0;
	pc->given = fact && fact->given;
	pc->leaves = fact ? fact->leaves : 0;
	if (!fact)
		return text != 0;
	if (fact->module) {
		ret->module = fact->module;
		ret->module_id = fact->module_id;
	}
	ret->linkage = fact->linkage;
	ret->entry = fact->entry ?: ret->entry;
	ret->callee = fact->callee;
	return true;
}

/*
 * NAME[@FILE:LINE][->RETURNS][+0xADDRESS], without what facts say. RETURNS: STRUCT for a pointer to one, :TYPE for any
 * type.
 */
static bool text_frame(struct text_build *b, const char *s, size_t whole, struct rt_frame *ret)
{
	size_t len, arrow, at;
	const char *name;

	*ret = (struct rt_frame){ .module = b->module_path, .module_id = MODULE_ID };
	len = text_address(s, whole, &ret->address);
	arrow = text_find(s, len, "->");
	at = text_find(s, arrow, "@");
	if (!at || s[0] == '?')
		return true;
	name = text_unescape(b, s, at);
	if (!name)
		return false;
	ret->function = name;
	ret->entry = text_entry(b, rt_intern_string(&b->names, name));
	if (at < arrow) {
		const char *colon = memrchr(s + at + 1, ':', arrow - at - 1);
		size_t file_end = colon ? (size_t)(colon - s) : arrow;
		uint64_t line = 0;

		if (colon && rt_parse_u64(colon + 1, arrow - file_end - 1, 10, &line))
			ret->line = (uint32_t)line;
		ret->file = text_unescape(b, s + at + 1, file_end - at - 1);
	}
	if (arrow < len) {
		const char *word = text_unescape(b, s + arrow + 2, len - arrow - 2);
		_cleanup_free_ char *spelled = NULL;
		uint32_t id;

		if (!word)
			return false;
		if (*word == ':' || strpbrk(word, " *"))
			id = rt_intern_string(&b->names, word + (*word == ':'));
		else
			id = asprintf(&spelled, "struct %s *", word) < 0 ? 0 : rt_intern_string(&b->names, spelled);
		ret->returns = rt_intern_text(&b->names, id);
	}
	return true;
}

/* pc of one machine frame, given as written: outermost function, ";~" and the ones inlined into it */
uint64_t text_frame_pc(struct text_build *b, const char *s, size_t len)
{
	uint32_t id = rt_intern_bytes(&b->groups, s, len);
	struct text_pc *pc;
	size_t end = len;

	if (!id)
		return 0;
	if (id <= b->pcs.len)
		return TEXT_BASE + 16 * (uint64_t)id;
	pc = rt_vec_add(&b->pcs);
	if (!pc)
		return 0;
	pc->first = (uint32_t)b->frames.len;
	/* parts from the innermost on */
	while (end) {
		const char *semi = memrchr(s, ';', end);
		size_t start = semi ? (size_t)(semi - s) + 1 : 0;
		struct rt_frame *f = rt_vec_add(&b->frames);
		bool inlined = start < end && s[start] == '~';

		if (!f || !text_frame(b, s + start + inlined, end - start - inlined, f) ||
		    !text_fact(b, s + start + inlined, end - start - inlined, f, pc))
			return 0;
		f->inlined = inlined;
		f->address = f->address ?: TEXT_BASE + 16 * (uint64_t)id;
		pc->count++;
		end = start ? start - 1 : 0;
	}
	return TEXT_BASE + 16 * (uint64_t)id;
}

bool text_frame_fact(struct text_build *b, const char *s, size_t len, const struct text_fact *fact)
{
	uint32_t text = rt_intern_bytes(&b->names, s, len);
	uint64_t *index = text ? rt_map_put(&b->fact_of, rt_key_make(text, 0), NULL) : NULL;
	struct text_fact *to = index ? rt_vec_add(&b->facts) : NULL;

	if (!to)
		return false;
	*index = b->facts.len - 1;
	*to = *fact;
	return true;
}

/* CFAs as told, outermost first; 0 for those that are not */
static bool text_cfas(const struct text_event *e, struct rt_wire_frame *frame, unsigned n)
{
	const char *s = e->cfa, *end = s + e->cfa_len;

	for (unsigned i = n; i-- > 0;) {
		const char *comma = s < end ? memchr(s, ',', (size_t)(end - s)) : NULL;
		uint64_t cfa = 0;

		if (s < end && !rt_parse_u64(s, (size_t)((comma ?: end) - s), 10, &cfa))
			return false;
		if (cfa > UINT32_MAX)
			return false;
		frame[i].cfa = (uint32_t)cfa;
		s = comma ? comma + 1 : end;
	}
	return s == end;
}

/* splits "a;b;~c;d" into machine frames, outermost first; returns how many, 0: too many or no memory */
static unsigned text_split(struct text_build *b, const char *s, size_t len, uint64_t pcs[RT_STACK_MAX])
{
	unsigned n = 0;
	size_t start = 0;

	while (start < len) {
		size_t end = start;

		do {
			end += 1 + text_find(s + end + 1, len - end - 1, ";");
		} while (end < len && end + 1 < len && s[end + 1] == '~');
		if (end > len)
			end = len;
		if (n == RT_STACK_MAX)
			return 0;
		pcs[n] = text_frame_pc(b, s + start, end - start);
		if (!pcs[n++])
			return 0;
		start = end + 1;
	}
	return n;
}

/* id of the stack for pid; *ret_depth: its machine frames */
static bool text_stack(struct text_build *b, const struct text_event *e, uint32_t *ret_id, unsigned *ret_depth)
{
	union {
		struct rt_wire_stack stack;
		uint8_t bytes[sizeof(struct rt_wire_stack) + RT_STACK_MAX * sizeof(struct rt_wire_frame)];
	} u = { 0 };
	uint64_t pcs[RT_STACK_MAX], key[2 * RT_STACK_MAX + 2];
	size_t skip = e->stack_len >= 4 && !memcmp(e->stack, "...;", 4) ? 4 : 0;
	unsigned n = text_split(b, e->stack + skip, e->stack_len - skip, pcs);
	size_t known = b->stacks.items.len;
	uint32_t id;

	if (!n)
		return false;
	key[0] = e->pid;
	key[1] = (uint64_t)skip << 32 | (e->flags & RT_EV_INLINE);
	memcpy(key + 2, pcs, n * sizeof(pcs[0]));
	for (unsigned i = 0; i < n; i++)
		u.stack.frame[i].cfa = FRAME * (i + 1);
	if (e->cfa && !text_cfas(e, u.stack.frame, n))
		return false;
	for (unsigned i = 0; i < n; i++)
		key[2 + n + i] = u.stack.frame[i].cfa;
	id = rt_intern_bytes(&b->stacks, key, (2 * n + 2) * sizeof(key[0]));
	*ret_depth = n;
	if (!id || id <= known) {
		*ret_id = id;
		return id != 0;
	}
	u.stack.head.kind = RT_WIRE_STACK;
	u.stack.head.pid = e->pid;
	u.stack.head.time_ns = e->time_ns;
	u.stack.head.size = (uint16_t)(sizeof(u.stack) + n * sizeof(struct rt_wire_frame));
	u.stack.id = id;
	u.stack.nr = (uint16_t)n;
	u.stack.end = skip ? RT_STACK_DEPTH : RT_STACK_GIVEN;
	for (unsigned i = 0; i < n; i++) {
		u.stack.frame[i].pc = pcs[n - 1 - i];
		u.stack.frame[i].flags = !i && (e->flags & RT_EV_INLINE) ? RT_FRAME_SITE : 0;
	}
	*ret_id = id;
	return text_emit(b, &u.stack, u.stack.head.size);
}

uint32_t text_seq(struct text_build *b, uint32_t producer, uint32_t skip)
{
	uint64_t *counter = rt_map_put(&b->seqs, rt_key_make(producer, 0), NULL);

	if (!counter)
		return 0;
	*counter = (*counter + 1 + skip) & RT_SEQ_MASK;
	if (!*counter && !producer)
		*counter = 1;
	return producer << RT_SEQ_BITS | (uint32_t)*counter;
}

static bool text_api(struct text_build *b, const struct text_event *e, uint32_t type, uint32_t *ret)
{
	const char *op = e->flags & RT_EV_HIDDEN ? "find" : rt_op_name(e->op);
	uint16_t flags = e->flags & (RT_EV_HIDDEN | RT_EV_AT_RETURN | RT_EV_INLINE);
	uint32_t aux = e->has_slot ? RT_AUX_SLOT : e->has_class ? RT_AUX_CLASS : e->aux ? RT_AUX_OBJECT : RT_AUX_NONE;
	_cleanup_free_ char *made = NULL;

	if (!e->via && asprintf(&made, "%.*s_%s", (int)e->type_len, e->type, op) < 0)
		return false;
	*ret = text_point(b, type, e->op, flags, aux, e->delta, made ? made : e->via, made ? strlen(made) : e->via_len);
	return *ret != 0;
}

bool text_event(struct text_build *b, const struct text_event *e)
{
	struct rt_wire_event r = { .head = { sizeof(r), RT_WIRE_EVENT, e->op, 0, e->time_ns, e->pid, e->tid } };
	uint32_t type = text_type(b, e->type, e->type_len, NULL, NULL);
	unsigned depth = 0;

	r.point = e->point;
	if (!type || (!r.point && !text_api(b, e, type, &r.point)))
		return false;
	b->points.data[r.point - 1].events++;
	if (e->stack_len && !text_stack(b, e, &r.stack, &depth))
		return false;
	r.head.seq = e->has_seq ? e->seq : text_seq(b, e->cpu, 0);
	r.object = e->object;
	r.aux = e->aux;
	r.sp = e->has_sp ? e->sp : STACK_BASE - (uint64_t)e->tid * 0x100000 - FRAME * depth;
	r.count = e->count;
	r.delta = (int16_t)e->delta;
	r.flags = e->flags;
	return text_emit(b, &r, sizeof(r));
}

/* what was told of the machine frame at pc; NULL: nothing has this address */
static const struct text_pc *text_frame_at(const struct text_build *b, uint64_t pc)
{
	uint64_t id = pc >= TEXT_BASE ? (pc - TEXT_BASE) / 16 : 0;

	return id && id <= b->pcs.len ? &b->pcs.data[id - 1] : NULL;
}

size_t text_frames(const struct text_build *b, uint64_t pc, struct rt_frame *ret, size_t max)
{
	const struct text_pc *frame = text_frame_at(b, pc);
	size_t n;

	if (!frame) {
		ret[0] = (struct rt_frame){ .address = pc };
		return 1;
	}
	n = frame->count < max ? frame->count : max;
	memcpy(ret, b->frames.data + frame->first, n * sizeof(*ret));
	return n;
}

/* the next word of a list */
static size_t text_word(const char *s, size_t len)
{
	const char *comma = memchr(s, ',', len);

	return comma ? (size_t)(comma - s) : len;
}

static bool text_is(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(s, word, len) == 0;
}

static bool text_rank(const char *s, size_t len, uint16_t *ret)
{
	uint64_t rank;

	if (len < 5 || memcmp(s, "rank", 4) != 0 || !rt_parse_u64(s + 4, len - 4, 10, &rank) || rank > RT_RANK_MAX)
		return false;
	*ret |= (uint16_t)(rank << RT_RANK_SHIFT);
	return true;
}

const char *text_flags(const char *s, size_t len, uint16_t *ret)
{
	static const struct {
		const char *name;
		uint16_t flag;
	} flags[] = {
		{ "hidden", RT_EV_HIDDEN },      { "return", RT_EV_AT_RETURN },    { "inline", RT_EV_INLINE },
		{ "noobject", RT_EV_NO_OBJECT }, { "inherited", RT_EV_INHERITED }, { "fault", RT_EV_COUNT_FAULT },
		{ "outside", RT_EV_OUTSIDE },    { "maybe", RT_EV_MAYBE },         { "first", RT_EV_FIRST },
	};

	for (size_t n, skip; len; s += skip, len -= skip) {
		unsigned i = 0;

		n = text_word(s, len);
		skip = n + (n < len);
		while (i < sizeof(flags) / sizeof(flags[0]) && !text_is(s, n, flags[i].name))
			i++;
		if (i < sizeof(flags) / sizeof(flags[0]))
			*ret |= flags[i].flag;
		else if (!text_rank(s, n, ret))
			return s;
	}
	return NULL;
}

const char *text_hands_list(const char *s, size_t len, uint8_t *ret)
{
	for (size_t n, skip; len; s += skip, len -= skip) {
		unsigned i = 0;

		n = text_word(s, len);
		skip = n + (n < len);
		while (i < RT_HANDS_NR && !text_is(s, n, rt_hands_word(i)))
			i++;
		if (i == RT_HANDS_NR)
			return s;
		*ret |= (uint8_t)(1u << i);
	}
	return NULL;
}

uint8_t text_frame_hands(const struct text_build *b, uint64_t pc)
{
	const struct text_pc *frame = text_frame_at(b, pc);

	return frame ? frame->hands : 0;
}

uint64_t text_frame_later(const struct text_build *b, uint64_t pc, bool *ret_given)
{
	const struct text_pc *frame = text_frame_at(b, pc);

	*ret_given = frame && frame->given;
	return frame ? frame->later : 0;
}

uint64_t text_frame_leaves(const struct text_build *b, uint64_t pc)
{
	const struct text_pc *frame = text_frame_at(b, pc);

	return frame ? frame->leaves : 0;
}

bool text_stand(struct text_build *b, const struct text_event *e, uint32_t signal)
{
	struct rt_wire_stand r = { .head = { sizeof(r), RT_WIRE_STAND, 0, 0, e->time_ns, e->pid, e->tid } };
	struct text_event place = *e;
	unsigned depth = 0;

	place.flags = RT_EV_INLINE; /* its innermost frame is at no call */
	if (!text_stack(b, &place, &r.stack, &depth))
		return false;
	r.sp = e->has_sp ? e->sp : STACK_BASE - (uint64_t)e->tid * 0x100000 - FRAME * depth;
	r.signal = signal;
	return text_emit(b, &r, sizeof(r));
}

void text_build_deinit(struct text_build *b)
{
	rt_vec_deinit(&b->words);
	rt_intern_deinit(&b->names);
	rt_intern_deinit(&b->stacks);
	rt_intern_deinit(&b->groups);
	rt_intern_deinit(&b->modules);
	rt_map_deinit(&b->fact_of);
	rt_map_deinit(&b->declared);
	rt_vec_deinit(&b->facts);
	rt_vec_deinit(&b->pcs);
	rt_vec_deinit(&b->frames);
	rt_vec_deinit(&b->types);
	rt_vec_deinit(&b->points);
	rt_map_deinit(&b->functions);
	rt_map_deinit(&b->point_ids);
	rt_map_deinit(&b->seqs);
}
