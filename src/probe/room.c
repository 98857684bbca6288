/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/room.h"

#include <string.h>

#include "insn/move.h"
#include "probe/build.h"
#include "probe/table.h"

enum {
	FUNCTION_BYTES = 256 << 10, /* larger functions are not decoded as a whole */
	WINDOW_BEFORE = 24,         /* how long before the instruction room for it may begin */
};

bool rt_is_label(const struct rt_labels *labels, int64_t offset)
{
	uint64_t at = (uint64_t)(offset + RT_LINE_BEFORE);

	return at < RT_LINE_BEFORE + RT_LINE_BYTES && (labels->bits[at / 64] >> (at % 64) & 1);
}

/* Jump tables are read with an index, or what was read is added to the table's own address. */
static bool is_table_jump(const struct rt_insn *insn, uint32_t added)
{
	if (!insn->jump || !insn->indirect)
		return false;
	if (insn->has_mem)
		return insn->mem.index != RT_REG_NONE;
	return insn->dst_reg >= RT_REG_NR || (added >> insn->dst_reg & 1);
}

static void add_label(const struct rt_site_request *r, uint64_t target, struct rt_labels *labels)
{
	uint64_t offset = target - r->entry.v + RT_LINE_BEFORE;

	if (offset < RT_LINE_BEFORE + RT_LINE_BYTES)
		labels->bits[offset / 64] |= UINT64_C(1) << (offset % 64);
}

static bool is_in(struct rt_elfaddr target, struct rt_elfaddr start, struct rt_elfaddr end)
{
	return target.v >= start.v && target.v < end.v;
}

struct reading {
	const struct rt_site_request *r;
	struct rt_labels *labels;
};

/* all entries lead into the function */
static bool note_entry(struct rt_elfaddr target, void *arg)
{
	const struct reading *reading = arg;
	const struct rt_site_request *r = reading->r;

	if (!is_in(target, r->start, r->end) && !is_in(target, r->cold_start, r->cold_end))
		return false;
	add_label(r, target.v, reading->labels);
	return true;
}

/* what may be a jump table */
static void read_table(const struct rt_site_request *r, struct rt_elfaddr table, uint8_t width,
		       struct rt_labels *labels)
{
	const struct rt_table t = { .address = table, .width = width };
	struct reading reading = { .r = r, .labels = labels };

	labels->tables += rt_table_read(r->image, &t, note_entry, &reading) != 0;
}

static void note_table(const struct rt_site_request *r, const struct rt_insn *insn, uint32_t added,
		       struct rt_labels *labels)
{
	struct rt_elfaddr at = { (uint64_t)insn->mem.disp };

	if (insn->is_lea && insn->has_mem && insn->mem.base == RT_REG_RIP)
		read_table(r, at, 4, labels);
	if (!is_table_jump(insn, added))
		return;
	labels->jumps++;
	if (insn->has_mem && insn->mem.base == RT_REG_NONE && insn->mem.scale == 8)
		read_table(r, at, 8, labels);
}

/* Notes the jump targets that lie in the line, of all code in [start, end). */
static void collect(const struct rt_site_request *r, struct rt_elfaddr start, struct rt_elfaddr end,
		    struct rt_labels *labels)
{
	uint32_t added = 0; /* registers that were last written by an addition */
	struct rt_bytes code;

	if (end.v <= start.v || end.v - start.v > FUNCTION_BYTES) {
		labels->complete = false;
		return;
	}
	code = rt_image_at(r->image, start, end.v - start.v);
	while (code.size) {
		struct rt_insn insn;
		size_t length = 1;

		/* bytes that are no instruction are data between code: go on behind them */
		if (rt_decode(r->decoder, code, start, &insn)) {
			uint64_t place = start.v - r->entry.v + RT_LINE_BEFORE;

			length = insn.length;
			if (insn.jump && insn.has_target)
				add_label(r, insn.target.v, labels);
			if (place < RT_LINE_BEFORE)
				labels->begins |= UINT64_C(1) << place;
			note_table(r, &insn, added, labels);
			added &= ~insn.writes;
			if (insn.is_add && insn.dst_reg < RT_REG_NR)
				added |= UINT32_C(1) << insn.dst_reg;
		}
		if (!length || length > code.size)
			break;
		code.data += length;
		code.size -= length;
		start.v += length;
	}
}

void rt_labels_read(const struct rt_site_request *r, struct rt_labels *ret)
{
	*ret = (struct rt_labels){ .complete = true };
	collect(r, r->start, r->end, ret);
	if (r->cold_end.v)
		collect(r, r->cold_start, r->cold_end, ret);
}

/* Bytes that nothing runs. */
static bool is_padding(const struct rt_site_request *r, struct rt_bytes code, struct rt_elfaddr at, size_t size)
{
	struct rt_insn insn;

	for (size_t done = 0; done < size; done += insn.length) {
		if (done >= code.size)
			return false;
		if (code.data[done] == 0xcc) {
			insn.length = 1;
			continue;
		}
		if (!rt_decode(r->decoder, rt_bytes_make(code.data + done, code.size - done),
			       (struct rt_elfaddr){ at.v + done }, &insn) ||
		    !insn.nop)
			return false;
	}
	return true;
}

/*
 * Whether the engine may write over what begins at `from` of the line, which may be before it, and can see the
 * instruction at `offset` from there.
 */
static bool has_room_from(const struct rt_site_request *r, const struct rt_labels *labels, int64_t from, int64_t offset)
{
	bool over = false;

	for (int64_t n = 0; n < r->room || from + n <= offset;) {
		struct rt_elfaddr at = { r->entry.v + (uint64_t)(from + n) };
		struct rt_bytes rest = rt_image_at(r->image, at, RT_LINE_BYTES);
		struct rt_insn insn;

		over |= r->end.v && at.v >= r->end.v;
		if (n && (rt_is_label(labels, from + n) || labels->jumps > labels->tables || !labels->complete))
			return false;
		if (over)
			return from + n > offset && is_padding(r, rest, at, (size_t)(r->room - n));
		if (!rt_decode(r->decoder, rest, at, &insn) || !rt_insn_moves(rest, &insn))
			return false;
		/* others than this function's code might know of a place in between */
		for (int64_t i = 1; i < insn.length; i++)
			if (rt_is_label(labels, from + n + i))
				return false;
		n += insn.length;
		/* a call returns behind its old place */
		if (insn.call && (n < r->room || from + n <= offset))
			return false;
		over = insn.ret || (insn.jump && !insn.conditional);
	}
	return true;
}

bool rt_has_room(const struct rt_site_request *r, const struct rt_labels *labels, int64_t offset, uint8_t *ret_before)
{
	for (int64_t before = 0; before <= WINDOW_BEFORE && offset - before >= -RT_LINE_BEFORE; before++) {
		int64_t from = offset - before;

		/* what is before the entry is only known where instructions begin there */
		if (before && (from >= 0 || !(labels->begins >> (from + RT_LINE_BEFORE) & 1)))
			continue;
		if (has_room_from(r, labels, from, offset)) {
			*ret_before = (uint8_t)before;
			return true;
		}
	}
	return false;
}

bool rt_plan_has_room(struct rt_plan_build *b, struct rt_elfaddr at, struct rt_point *p)
{
	struct rt_site_request request = {
		.image = b->module->image, .decoder = b->decoder, .entry = at, .room = b->plan->options.room
	};
	struct rt_labels labels;

	p->before = 0;
	p->breakpoint = false;
	if (!request.room)
		return true;
	if (rt_survey_range(&b->survey, at, &request.start, &request.end)) {
		rt_labels_read(&request, &labels);
		if (rt_has_room(&request, &labels, 0, &p->before))
			return true;
	}
	p->before = 0;
	p->breakpoint = b->plan->options.breakpoints;
	return p->breakpoint;
}
