/* SPDX-License-Identifier: GPL-2.0-only */
#include "event/stream.h"

#include <string.h>

struct rt_error *rt_event_sink_events(struct rt_event_sink *sink, struct rt_wire_event *events, size_t n)
{
	if (sink->events)
		return sink->events(sink, events, n);
	for (size_t i = 0; i < n; i++)
		RT_TRY(sink->record(sink, &events[i].head));
	return NULL;
}

struct rt_error *rt_source_drain(struct rt_source *source, struct rt_event_sink *sink)
{
	for (;;) {
		const struct rt_wire_head *record = NULL;

		RT_TRY(source->next(source, &record));
		if (!record)
			return NULL;
		RT_TRY(sink->record(sink, record));
	}
}

/* the fixed part of each kind; a string starts there for the kinds that end in one */
static const struct {
	uint16_t fixed;
	bool string;
} kinds[] = {
	[RT_WIRE_EVENT] = { sizeof(struct rt_wire_event), false },
	[RT_WIRE_STACK] = { sizeof(struct rt_wire_stack), false },
	[RT_WIRE_TYPE] = { __builtin_offsetof(struct rt_wire_type, name), true },
	[RT_WIRE_POINT] = { __builtin_offsetof(struct rt_wire_point, name), true },
	[RT_WIRE_MODULE] = { __builtin_offsetof(struct rt_wire_module, path), true },
	[RT_WIRE_MAP] = { sizeof(struct rt_wire_map), false },
	[RT_WIRE_UNMAP] = { sizeof(struct rt_wire_map), false },
	[RT_WIRE_FORK] = { sizeof(struct rt_wire_task), false },
	[RT_WIRE_EXEC] = { sizeof(struct rt_wire_task), false },
	[RT_WIRE_EXIT] = { sizeof(struct rt_wire_task), false },
	[RT_WIRE_THREAD] = { sizeof(struct rt_wire_task), false },
	[RT_WIRE_LOSS] = { __builtin_offsetof(struct rt_wire_loss, text), true },
	[RT_WIRE_MARK] = { sizeof(struct rt_wire_task), false },
	[RT_WIRE_HELD] = { sizeof(struct rt_wire_held), false },
	[RT_WIRE_COUNT] = { sizeof(struct rt_wire_held), false },
	[RT_WIRE_HITS] = { __builtin_offsetof(struct rt_wire_loss, text), true },
	[RT_WIRE_ATTR] = { sizeof(struct rt_wire_attr), false },
	[RT_WIRE_PERF] = { sizeof(struct rt_wire_perf) + 8, false },
	[RT_WIRE_BLOB] = { sizeof(struct rt_wire_blob), false },
	[RT_WIRE_SAMPLE] = { sizeof(struct rt_wire_sample), false },
	[RT_WIRE_TALLY] = { sizeof(struct rt_wire_tally), false },
	[RT_WIRE_SITE] = { sizeof(struct rt_wire_site), false },
	[RT_WIRE_CLASS] = { __builtin_offsetof(struct rt_wire_class, name), true },
	[RT_WIRE_STAND] = { sizeof(struct rt_wire_stand), false },
	[RT_WIRE_PART] = { __builtin_offsetof(struct rt_wire_part, text), true },
};

/* counted parts of the records that hold some lie inside them */
static bool counted_parts_fit(const struct rt_wire_head *head, const void *bytes)
{
	if (head->kind == RT_WIRE_STACK) {
		const struct rt_wire_stack *stack = bytes;

		return stack->nr <= RT_STACK_MAX &&
		       head->size - sizeof(*stack) >= stack->nr * sizeof(struct rt_wire_frame);
	}
	if (head->kind == RT_WIRE_TALLY) {
		const struct rt_wire_tally *tally = bytes;

		return (head->size - sizeof(*tally)) / sizeof(tally->site[0]) >= tally->nr;
	}
	if (head->kind == RT_WIRE_ATTR) {
		const struct rt_wire_attr *attr = bytes;
		uint64_t need = (uint64_t)attr->attr_bytes + 8ull * attr->ids + attr->name_bytes;

		return attr->attr_bytes % 8 == 0 && need <= head->size - sizeof(*attr) && attr->name_bytes &&
		       memchr(attr->data + attr->attr_bytes + 8ull * attr->ids, 0, attr->name_bytes);
	}
	if (head->kind == RT_WIRE_BLOB) {
		const struct rt_wire_blob *blob = bytes;

		return blob->bytes <= head->size - sizeof(*blob) && blob->offset <= blob->total &&
		       blob->bytes <= blob->total - blob->offset;
	}
	return head->kind != RT_WIRE_MODULE || ((const struct rt_wire_module *)bytes)->build_id_size <= RT_BUILD_ID_MAX;
}

bool rt_record_valid(const void *bytes, size_t bytes_left)
{
	struct rt_wire_head head;

	if (bytes_left < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.size < sizeof(head) || head.size % 8 || head.size > bytes_left)
		return false;
	if (head.kind >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[head.kind].fixed)
		return true;
	if (head.size < kinds[head.kind].fixed)
		return false;
	if (kinds[head.kind].string &&
	    !memchr((const char *)bytes + kinds[head.kind].fixed, 0, head.size - kinds[head.kind].fixed))
		return false;
	return counted_parts_fit(&head, bytes);
}

enum { STRING_MAX = 24 * 1024 }; /* bytes; strings are cut where a record could not say its size any more */

/* a second string, where there is one, stands behind the NUL of the first; ret_tail is where that starts */
static void *make(enum rt_wire_kind kind, size_t fixed, const char *text, const char *second, char **ret_tail)
{
	size_t len = strnlen(text, STRING_MAX), more = second ? strnlen(second, STRING_MAX) + 1 : 0;
	struct rt_wire_head *head = calloc(1, RT_WIRE_ALIGN(fixed + len + 1 + more));

	if (!head)
		return NULL;
	head->size = (uint16_t)RT_WIRE_ALIGN(fixed + len + 1 + more);
	head->kind = kind;
	*ret_tail = (char *)head + fixed;
	memcpy(*ret_tail, text, len);
	if (more)
		memcpy(*ret_tail + len + 1, second, more - 1);
	return head;
}

struct rt_wire_type *rt_record_type(uint32_t id, const char *name, const char *structure)
{
	char *tail;
	struct rt_wire_type *r =
		make(RT_WIRE_TYPE, __builtin_offsetof(struct rt_wire_type, name), name, structure, &tail);

	if (r) {
		r->id = id;
		r->start = RT_START_UNKNOWN;
		r->counter_offset = RT_COUNTER_UNKNOWN;
	}
	return r;
}

struct rt_wire_point *rt_record_point(uint32_t id, const char *name, const char *second)
{
	char *tail;
	struct rt_wire_point *r =
		make(RT_WIRE_POINT, __builtin_offsetof(struct rt_wire_point, name), name, second, &tail);

	if (r)
		r->id = id;
	return r;
}

struct rt_wire_class *rt_record_class(uint32_t type, uint64_t word, const char *name)
{
	char *tail;
	struct rt_wire_class *r =
		make(RT_WIRE_CLASS, __builtin_offsetof(struct rt_wire_class, name), name, NULL, &tail);

	if (r) {
		r->type = type;
		r->word = word;
	}
	return r;
}

static const char *text_behind(const struct rt_wire_head *r, const char *first)
{
	const char *end = (const char *)r + r->size, *text = first + strlen(first) + 1;

	return text < end && *text && memchr(text, 0, (size_t)(end - text)) ? text : NULL;
}

const char *rt_type_structure(const struct rt_wire_type *r)
{
	return text_behind(&r->head, r->name);
}

const char *rt_point_alias(const struct rt_wire_point *r)
{
	return r->aux == RT_AUX_BLOCK ? NULL : text_behind(&r->head, r->name);
}

const char *rt_point_ender(const struct rt_wire_point *r)
{
	return r->aux == RT_AUX_BLOCK ? text_behind(&r->head, r->name) : NULL;
}

struct rt_wire_module *rt_record_module(uint32_t id, const char *path)
{
	char *tail;
	struct rt_wire_module *r =
		make(RT_WIRE_MODULE, __builtin_offsetof(struct rt_wire_module, path), path, NULL, &tail);

	if (r)
		r->id = id;
	return r;
}

struct rt_wire_loss *rt_record_loss(enum rt_loss cause, uint32_t point, uint64_t value, const char *text)
{
	char *tail;
	struct rt_wire_loss *r = make(RT_WIRE_LOSS, __builtin_offsetof(struct rt_wire_loss, text), text, NULL, &tail);

	if (r) {
		r->cause = cause;
		r->point = point;
		r->value = value;
	}
	return r;
}

static const char *const op_names[RT_OP_NR] = {
	[RT_OP_NEW] = "new",   [RT_OP_GET] = "get",   [RT_OP_PUT] = "put",
	[RT_OP_FREE] = "free", [RT_OP_SINK] = "sink", [RT_OP_STEAL] = "steal",
	[RT_OP_SWAP] = "swap", [RT_OP_MOVE] = "move", [RT_OP_USE] = "use",
};

const char *rt_op_name(enum rt_op op)
{
	return (unsigned)op < RT_OP_NR && op_names[op] ? op_names[op] : "?";
}

const char *rt_loss_name(unsigned cause)
{
	static const char *const names[RT_LOSS_NR] = {
		[RT_LOSS_RING] = "ring",         [RT_LOSS_STACKMAP] = "stackmap", [RT_LOSS_FAULT] = "fault",
		[RT_LOSS_RETURNS] = "returns",   [RT_LOSS_UNARMED] = "unarmed",   [RT_LOSS_CUT] = "cut",
		[RT_LOSS_UNTRACED] = "untraced", [RT_LOSS_BALANCE] = "balance",   [RT_LOSS_REFUSED] = "refused",
		[RT_LOSS_DOUBT] = "doubt",       [RT_LOSS_PASSED] = "passed",     [RT_LOSS_RIGHTS] = "rights",
		[RT_LOSS_LIMIT] = "limit",
	};

	return cause < RT_LOSS_NR ? names[cause] : NULL;
}

enum rt_op rt_op_parse(const char *name, size_t len)
{
	for (unsigned i = 1; i < RT_OP_NR; i++) {
		if (strlen(op_names[i]) == len && !memcmp(op_names[i], name, len))
			return i;
	}
	return RT_OP_NONE;
}
