/* SPDX-License-Identifier: GPL-2.0-only */
#include "perfdata/reftrace_events.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "base/vec.h"
#include "event/stream.h"

enum {
	EVENTS_MAX = 0x10000 - RT_REFTRACE_FIRST_ID,
	WORD_MAX = 120, /* of a type name in an event name; C++ templates have long ones */
};

/* perf's ids of events: far from those that kernels hand out (they count from 1). */
#define FIRST_EVENT_ID 0x5246000000000000ull

#define META_PREFIX "meta_"

#define FIELD(member_, type_) \
	{ \
		.name = #member_, .type = type_, \
		.offset = RT_PERF_RAW_COMMON + __builtin_offsetof(struct rt_reftrace_op, member_), \
		.size = sizeof(((struct rt_reftrace_op *)0)->member_), .is_signed = (type_)[0] == 's' \
	}

static const struct rt_perf_field_spec op_fields[] = {
	FIELD(point, "u32"),  FIELD(stack, "u32"),      FIELD(batch, "u32"), FIELD(turn, "s16"), FIELD(delta, "s16"),
	FIELD(flags, "u16"),  FIELD(generation, "u16"), FIELD(op, "u8"),     FIELD(sp, "u64"),   FIELD(aux, "u64"),
	FIELD(object, "u64"), FIELD(count, "u32"),      FIELD(seq, "u32"),
};

/* perf report takes samples of one text together: only what tells objects apart is in it */
static const char op_print[] =
	"\"object=0x%llx count=%d delta=%hd flags=%s aux=0x%llx\", REC->object, REC->count, "
	"REC->delta, __print_flags(REC->flags, \"|\", { 0x1, \"count-read\" }, { 0x2, \"count-exact\" }, "
	"{ 0x4, \"hidden\" }, { 0x8, \"at-return\" }, { 0x10, \"inline\" }, { 0x20, \"no-object\" }, "
	"{ 0x40, \"count-fault\" }, { 0x80, \"inherited\" }), REC->aux";

static const struct rt_perf_field_spec meta_fields[] = {
	{ .name = "text", .type = "char", .offset = 8, .size = 4, .is_signed = true, .data_loc = true },
	{ .name = "data", .type = "u8", .offset = 12, .size = 4, .data_loc = true },
};

static const char meta_print[] = "\"%s [%d bytes]\", __get_str(text), __get_dynamic_array_len(data)";

struct type_word {
	char *type; /* as the caller says it */
	char *word; /* as it is in event names */
};

struct rt_reftrace_events {
	RT_VEC(struct rt_perf_event) events;
	RT_VEC(struct type_word) types;
};

struct rt_error *rt_reftrace_events_create(struct rt_reftrace_events **ret)
{
	struct rt_reftrace_events *events = calloc(1, sizeof(*events));

	if (!events)
		return rt_error_nomem();
	*ret = events;
	return NULL;
}

void rt_reftrace_events_destroy(struct rt_reftrace_events *events)
{
	if (!events)
		return;
	for (size_t i = 0; i < events->events.len; i++) {
		free(events->events.data[i].name);
		free(events->events.data[i].ids);
	}
	rt_vec_deinit(&events->events);
	for (size_t i = 0; i < events->types.len; i++) {
		free(events->types.data[i].type);
		free(events->types.data[i].word);
	}
	rt_vec_deinit(&events->types);
	free(events);
}

static void make_word(const char *name, char ret[WORD_MAX + 1])
{
	size_t len = 0;

	for (; name[len] && len < WORD_MAX; len++)
		ret[len] = (char)(isascii(name[len]) && isalnum((unsigned char)name[len]) ? name[len] : '_');
	ret[len] = 0;
}

static bool word_taken(const struct rt_reftrace_events *events, const char *word)
{
	for (size_t i = 0; i < events->types.len; i++)
		if (strcmp(events->types.data[i].word, word) == 0)
			return true;
	return false;
}

/* The word that stands for type in event names. */
static struct rt_error *type_word(struct rt_reftrace_events *events, const char *type, const char **ret)
{
	_cleanup_free_ char *copy = NULL, *word = NULL;
	struct type_word *added;
	char plain[WORD_MAX + 1];
	const char *head;

	for (size_t i = 0; i < events->types.len; i++) {
		if (strcmp(events->types.data[i].type, type) == 0) {
			*ret = events->types.data[i].word;
			return NULL;
		}
	}
	make_word(type, plain);
	/* "meta_..." is always a meta event */
	head = !plain[0] || strcmp(plain, "meta") == 0 || strncmp(plain, META_PREFIX, 5) == 0 ? "_" : "";
	for (unsigned n = 1; !word || word_taken(events, word); n++) {
		int done;

		free(rt_take(word));
		done = n == 1 ? asprintf(&word, "%s%s", head, plain) : asprintf(&word, "%s%s_%u", head, plain, n);
		if (done < 0) {
			word = NULL;
			return rt_error_nomem();
		}
	}
	copy = strdup(type);
	added = copy ? rt_vec_add(&events->types) : NULL;
	if (!added)
		return rt_error_nomem();
	*added = (struct type_word){ rt_take(copy), rt_take(word) };
	*ret = added->word;
	return NULL;
}

/* The event "reftrace:<head>_<tail>". */
static struct rt_error *find_event(struct rt_reftrace_events *events, const char *head, const char *tail, bool chain,
				   unsigned *ret)
{
	_cleanup_free_ uint64_t *ids = NULL;
	_cleanup_free_ char *name = NULL;
	struct rt_perf_event *event;
	size_t index = events->events.len;

	if (asprintf(&name, "%s:%s_%s", RT_REFTRACE_SYSTEM, head, tail) < 0) {
		name = NULL;
		return rt_error_nomem();
	}
	for (size_t i = 0; i < events->events.len; i++) {
		if (strcmp(events->events.data[i].name, name) == 0) {
			*ret = (unsigned)i;
			return NULL;
		}
	}
	if (index >= EVENTS_MAX)
		return rt_error_new(RT_E_LIMIT, "more than %d kinds of events in one recording", EVENTS_MAX);
	ids = malloc(sizeof(*ids));
	event = ids ? rt_vec_add(&events->events) : NULL;
	if (!event)
		return rt_error_nomem();
	ids[0] = FIRST_EVENT_ID + index;
	event->attr = (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.size = PERF_ATTR_SIZE_VER7,
		.config = RT_REFTRACE_FIRST_ID + index,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW |
			       (chain ? PERF_SAMPLE_CALLCHAIN : 0),
		.read_format = PERF_FORMAT_ID,
		.sample_id_all = 1,
		/* nothing of it is in the kernel: without that perf warns of kernel symbols that nobody needs */
		.exclude_kernel = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	event->ids = rt_take(ids);
	event->id_count = 1;
	event->name = rt_take(name);
	*ret = (unsigned)index;
	return NULL;
}

struct rt_error *rt_reftrace_events_op(struct rt_reftrace_events *events, const char *type, enum rt_op op,
				       unsigned *ret)
{
	const char *word = NULL;

	if (op <= RT_OP_NONE || op >= RT_OP_NR)
		return rt_error_new(RT_E_INTERNAL, "no event for operation %d", op);
	RT_TRY(type_word(events, type, &word));
	return find_event(events, word, rt_op_name(op), true, ret);
}

struct rt_error *rt_reftrace_events_meta(struct rt_reftrace_events *events, const char *kind, unsigned *ret)
{
	char word[WORD_MAX + 1];

	make_word(kind, word);
	return find_event(events, "meta", word, false, ret);
}

const struct rt_perf_event *rt_reftrace_events_list(const struct rt_reftrace_events *events, size_t *ret_count)
{
	*ret_count = events->events.len;
	return events->events.data;
}

struct rt_error *rt_reftrace_events_tracing_data(const struct rt_reftrace_events *events, struct rt_sink *sink)
{
	_cleanup_free_ struct rt_perf_format_spec *specs = calloc(events->events.len + 1, sizeof(*specs));

	if (!specs)
		return rt_error_nomem();
	for (size_t i = 0; i < events->events.len; i++) {
		const struct rt_perf_event *event = &events->events.data[i];
		bool op = rt_reftrace_name(event->name, NULL, NULL, NULL) == RT_REFTRACE_OP;

		specs[i] = (struct rt_perf_format_spec){
			.group = RT_REFTRACE_SYSTEM,
			.name = event->name + strlen(RT_REFTRACE_SYSTEM ":"),
			.id = (uint16_t)event->attr.config,
			.fields = op ? op_fields : meta_fields,
			.field_count = op ? sizeof(op_fields) / sizeof(op_fields[0])
					  : sizeof(meta_fields) / sizeof(meta_fields[0]),
			.print = op ? op_print : meta_print,
		};
	}
	return rt_perf_tracing_data_write(specs, events->events.len, sink);
}
