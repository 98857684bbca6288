/* SPDX-License-Identifier: GPL-2.0-only */
/* Raw bytes of our events, there and back. */
#include <string.h>

#include "event/stream.h"
#include "perfdata/reftrace_events.h"

void rt_reftrace_op_raw(uint16_t id, const struct rt_wire_event *event, struct rt_reftrace_place place,
			uint8_t ret[RT_REFTRACE_OP_RAW])
{
	const struct rt_reftrace_op op = {
		.point = event->point,
		.stack = event->stack,
		.batch = place.batch,
		.turn = place.turn,
		.delta = event->delta,
		.flags = event->flags,
		.generation = RT_GEN_OF(event->head.pid),
		.op = event->head.op,
		.sp = event->sp,
		.aux = event->aux,
		.object = event->object,
		.count = event->count,
		.seq = event->head.seq,
	};

	rt_perf_raw_common(id, (int32_t)event->head.tid, ret);
	memcpy(ret + RT_PERF_RAW_COMMON, &op, sizeof(op));
}

struct rt_error *rt_reftrace_meta_raw(uint16_t id, const char *text, struct rt_bytes data, uint8_t *buffer, size_t size,
				      size_t *ret_size)
{
	size_t text_size = strlen(text) + 1;
	uint32_t place[2];

	if (data.size > RT_REFTRACE_META_MAX || text_size > RT_REFTRACE_META_MAX - data.size ||
	    size < RT_REFTRACE_META_HEAD + text_size + data.size)
		return rt_error_new(RT_E_LIMIT, "%zu bytes are too many for one record", data.size);
	rt_perf_raw_common(id, 0, buffer);
	/* data first: it stays aligned */
	place[1] = (uint32_t)data.size << 16 | RT_REFTRACE_META_HEAD;
	place[0] = (uint32_t)text_size << 16 | (uint32_t)(RT_REFTRACE_META_HEAD + data.size);
	memcpy(buffer + RT_PERF_RAW_COMMON, place, sizeof(place));
	if (data.size)
		memcpy(buffer + RT_REFTRACE_META_HEAD, data.data, data.size);
	memcpy(buffer + RT_REFTRACE_META_HEAD + data.size, text, text_size);
	*ret_size = RT_REFTRACE_META_HEAD + data.size + text_size;
	return NULL;
}

enum rt_reftrace_kind rt_reftrace_name(const char *name, enum rt_op *ret_op, const char **ret_word, size_t *ret_len)
{
	static const char prefix[] = RT_REFTRACE_SYSTEM ":", meta[] = "meta_";
	const char *word, *last;
	enum rt_op op;

	if (!name || strncmp(name, prefix, strlen(prefix)) != 0)
		return RT_REFTRACE_NONE;
	word = name + strlen(prefix);
	if (strncmp(word, meta, strlen(meta)) == 0) {
		word += strlen(meta);
		if (ret_word)
			*ret_word = word;
		if (ret_len)
			*ret_len = strlen(word);
		return RT_REFTRACE_META;
	}
	last = strrchr(word, '_');
	op = last ? rt_op_parse(last + 1, strlen(last + 1)) : RT_OP_NONE;
	if (op == RT_OP_NONE)
		return RT_REFTRACE_NONE;
	if (ret_op)
		*ret_op = op;
	if (ret_word)
		*ret_word = word;
	if (ret_len)
		*ret_len = (size_t)(last - word);
	return RT_REFTRACE_OP;
}

bool rt_reftrace_op_read(const struct rt_perf_record *sample, bool big_endian, struct rt_wire_event *ret,
			 struct rt_reftrace_place *ret_place)
{
	struct rt_cursor c = rt_cursor_make(sample->sample.raw, big_endian);
	struct rt_wire_event e = {
		.head = { .size = sizeof(e), .kind = RT_WIRE_EVENT, .time_ns = sample->id.time_ns },
	};
	uint16_t turn, delta, generation;
	struct rt_reftrace_place place;

	if (!rt_cursor_skip(&c, RT_PERF_RAW_COMMON - 4) || !rt_cursor_u32(&c, &e.head.tid) ||
	    !rt_cursor_u32(&c, &e.point) || !rt_cursor_u32(&c, &e.stack) || !rt_cursor_u32(&c, &place.batch) ||
	    !rt_cursor_u16(&c, &turn) || !rt_cursor_u16(&c, &delta) || !rt_cursor_u16(&c, &e.flags) ||
	    !rt_cursor_u16(&c, &generation) || !rt_cursor_u8(&c, &e.head.op) || !rt_cursor_skip(&c, 3) ||
	    !rt_cursor_u64(&c, &e.sp) || !rt_cursor_u64(&c, &e.aux) || !rt_cursor_u64(&c, &e.object) ||
	    !rt_cursor_u32(&c, &e.count) || !rt_cursor_u32(&c, &e.head.seq))
		return false;
	if (e.head.op <= RT_OP_NONE || e.head.op >= RT_OP_NR || sample->id.pid > RT_PID_MASK ||
	    generation > RT_GEN_OF(UINT32_MAX))
		return false;
	e.head.pid = RT_PID_MAKE(sample->id.pid, generation);
	e.delta = (int16_t)delta;
	*ret = e;
	place.turn = (int16_t)turn;
	if (ret_place)
		*ret_place = place;
	return true;
}

bool rt_reftrace_meta_read(struct rt_bytes raw, bool big_endian, const char **ret_text, struct rt_bytes *ret_data)
{
	struct rt_cursor c = rt_cursor_make(raw, big_endian);
	struct rt_bytes text, data;
	uint32_t place[2];

	if (!rt_cursor_skip(&c, RT_PERF_RAW_COMMON) || !rt_cursor_u32(&c, &place[0]) || !rt_cursor_u32(&c, &place[1]) ||
	    !rt_bytes_sub(raw, place[0] & 0xffff, place[0] >> 16, &text) ||
	    !rt_bytes_sub(raw, place[1] & 0xffff, place[1] >> 16, &data))
		return false;
	if (!text.size || text.data[text.size - 1])
		return false;
	*ret_text = (const char *)text.data;
	*ret_data = data;
	return true;
}
