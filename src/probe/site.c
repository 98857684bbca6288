/* SPDX-License-Identifier: GPL-2.0-only */
/* The walk is short (one basic block); what makes it safe is a look at every branch of the function. */
#include "probe/site.h"

#include <string.h>

#include "insn/move.h"

enum {
	LINE_BYTES = 256, /* how far the line is followed */
	LINE_INSNS = 40,
	FUNCTION_BYTES = 256 << 10, /* larger functions are not decoded as a whole */
	BEFORE = 64,                /* bytes before it that are known, too */
	TABLE_MAX = 4096,           /* entries of a jump table */
	WINDOW_BEFORE = 24,         /* how long before the instruction room for it may begin */
};

/* Which bytes from BEFORE the entry on are jump targets. */
struct labels {
	uint64_t bits[(BEFORE + LINE_BYTES) / 64];
	uint64_t begins; /* of the bytes before the entry: where instructions begin, bit 0 = BEFORE bytes before it */
	uint32_t jumps, tables; /* through jump tables; those that were found */
	bool complete;          /* every other branch of the function was looked at */
};

/* Of the byte at entry + offset, which may be negative. */
static bool is_label(const struct labels *labels, int64_t offset)
{
	uint64_t at = (uint64_t)(offset + BEFORE);

	return at < BEFORE + LINE_BYTES && (labels->bits[at / 64] >> (at % 64) & 1);
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

static void add_label(const struct rt_site_request *r, uint64_t target, struct labels *labels)
{
	uint64_t offset = target - r->entry.v + BEFORE;

	if (offset < BEFORE + LINE_BYTES)
		labels->bits[offset / 64] |= UINT64_C(1) << (offset % 64);
}

static bool is_in(uint64_t target, struct rt_elfaddr start, struct rt_elfaddr end)
{
	return target >= start.v && target < end.v;
}

/*
 * What may be a jump table: each entry leads into the function, as a distance from the table (PIC, 4 bytes) or an
 * address (8). Where it ends nobody says: at the first entry that leads elsewhere.
 */
static void read_table(const struct rt_site_request *r, struct rt_elfaddr table, uint8_t width, struct labels *labels)
{
	bool found = false;

	for (unsigned i = 0; i < TABLE_MAX; i++) {
		struct rt_elfaddr at = { table.v + i * width };
		struct rt_bytes entry = rt_image_at(r->image, at, width);
		uint64_t target = 0;

		if (entry.size < width)
			break;
		memcpy(&target, entry.data, width);
		if (width == 4)
			target = table.v + (uint64_t)(int64_t)(int32_t)target;
		if (!is_in(target, r->start, r->end) && !is_in(target, r->cold_start, r->cold_end))
			break;
		add_label(r, target, labels);
		found = true;
	}
	labels->tables += found;
}

static void note_table(const struct rt_site_request *r, const struct rt_insn *insn, uint32_t added,
		       struct labels *labels)
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
		    struct labels *labels)
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
			uint64_t place = start.v - r->entry.v + BEFORE;

			length = insn.length;
			if (insn.jump && insn.has_target)
				add_label(r, insn.target.v, labels);
			if (place < BEFORE)
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
static bool has_room_from(const struct rt_site_request *r, const struct labels *labels, int64_t from, int64_t offset)
{
	bool over = false;

	for (int64_t n = 0; n < r->room || from + n <= offset;) {
		struct rt_elfaddr at = { r->entry.v + (uint64_t)(from + n) };
		struct rt_bytes rest = rt_image_at(r->image, at, LINE_BYTES);
		struct rt_insn insn;

		over |= r->end.v && at.v >= r->end.v;
		if (n && (is_label(labels, from + n) || labels->jumps > labels->tables || !labels->complete))
			return false;
		if (over)
			return from + n > offset && is_padding(r, rest, at, (size_t)(r->room - n));
		if (!rt_decode(r->decoder, rest, at, &insn) || !rt_insn_moves(rest, &insn))
			return false;
		/* others than this function's code might know of a place in between */
		for (int64_t i = 1; i < insn.length; i++)
			if (is_label(labels, from + n + i))
				return false;
		n += insn.length;
		/* a call returns behind its old place */
		if (insn.call && (n < r->room || from + n <= offset))
			return false;
		over = insn.ret || (insn.jump && !insn.conditional);
	}
	return true;
}

/* The same from anywhere before the instruction at offset on that runs straight to it. */
static bool has_room(const struct rt_site_request *r, const struct labels *labels, int64_t offset, uint8_t *ret_before)
{
	for (int64_t before = 0; before <= WINDOW_BEFORE && offset - before >= -BEFORE; before++) {
		int64_t from = offset - before;

		/* what is before the entry is only known where instructions begin there */
		if (before && (from >= 0 || !(labels->begins >> (from + BEFORE) & 1)))
			continue;
		if (has_room_from(r, labels, from, offset)) {
			*ret_before = (uint8_t)before;
			return true;
		}
	}
	return false;
}

bool rt_site_has_room(const struct rt_site_request *r, uint8_t *ret_before)
{
	struct labels labels = { .complete = true };

	collect(r, r->start, r->end, &labels);
	if (r->cold_end.v)
		collect(r, r->cold_start, r->cold_end, &labels);
	return has_room(r, &labels, 0, ret_before);
}

struct choice {
	struct rt_site site;
	bool found;
	bool is_endbr;
};

/* Lower is better. An endbr64 is stepped over like any other, but the next one may be cheap. */
static int rank(const struct rt_site_request *r, uint8_t cost, bool is_endbr)
{
	if (r->room)
		return 0;
	return cost == RT_COST_EMULATED || cost == RT_COST_AVOID ? 0 : is_endbr ? 2 : 1;
}

/* Can the engine arm it? */
static bool is_armable(const struct rt_site_request *r, const struct labels *labels, const struct rt_insn *insn,
		       uint8_t *ret_before)
{
	if (r->room)
		return has_room(r, labels, (int64_t)(insn->addr.v - r->entry.v), ret_before);
	return insn->cost != RT_COST_NEVER && !(insn->cost == RT_COST_AVOID && r->avoid_nop5);
}

static void consider(const struct rt_site_request *r, const struct rt_track *track, const struct rt_insn *insn,
		     uint8_t before, struct choice *best)
{
	struct rt_site site = { .address = insn->addr, .cost = insn->cost, .before = before, .reg = RT_REG_NONE };

	if (!rt_track_cfa(track, &site.cfa_delta) || (r->return_slot && site.cfa_delta != 8))
		return;
	if (r->reg != RT_REG_NONE) {
		site.reg = rt_track_object(track, r->reg);
		if (site.reg == RT_REG_NONE)
			return;
	}
	if (best->found && rank(r, insn->cost, insn->endbr) >= rank(r, best->site.cost, best->is_endbr))
		return;
	best->site = site;
	best->site.track = *track;
	best->is_endbr = insn->endbr;
	best->found = true;
}

/* Puts that take a T ** clear it early: behind a store the slot may hold another object, or a changed one. */
static bool slot_is_stale(const struct rt_site_request *r, const struct rt_track *track)
{
	return r->slot && (track->elsewhere || track->too_many || track->change_count);
}

/* true when the search is over. */
static bool enough(const struct rt_site_request *r, const struct choice *best, unsigned seen, bool complete)
{
	if (r->first_insn)
		return true;
	if (!best->found)
		return false;
	if (rank(r, best->site.cost, best->is_endbr) == 0 || r->nearest)
		return true;
	/* with branches that nobody has looked at, do not wander */
	return !complete && seen > 0 && !best->is_endbr;
}

bool rt_site_find(const struct rt_site_request *request, struct rt_site *ret, const char **ret_why)
{
	struct rt_bytes code = rt_image_at(request->image, request->entry, LINE_BYTES);
	struct labels labels = { .complete = true };
	struct choice best = { .found = false };
	struct rt_insn insn = { 0 };
	struct rt_track track;
	uint64_t offset = 0;
	bool never = false;
	uint8_t before = 0;

	collect(request, request->start, request->end, &labels);
	if (request->cold_end.v)
		collect(request, request->cold_start, request->cold_end, &labels);
	if (request->unshared && !labels.complete)
		code.size = 0;
	rt_track_init(&track, request->reg);
	for (unsigned n = 0; n < LINE_INSNS && offset < code.size; n++) {
		struct rt_bytes rest = rt_bytes_make(code.data + offset, code.size - offset);

		if (n && request->end.v && request->entry.v + offset >= request->end.v)
			break;
		if (!rt_decode(request->decoder, rest, (struct rt_elfaddr){ request->entry.v + offset }, &insn))
			break;
		/* a loop head or a place that others join: does not run once per call */
		if ((n || request->unshared) && is_label(&labels, (int64_t)offset))
			break;
		never |= insn.cost == RT_COST_NEVER;
		if (is_armable(request, &labels, &insn, &before))
			consider(request, &track, &insn, before, &best);
		if (enough(request, &best, n, labels.complete) || insn.jump || insn.ret || insn.call)
			break;
		rt_track_step(&track, &insn);
		if (slot_is_stale(request, &track) ||
		    (rt_track_object(&track, request->reg) == RT_REG_NONE && request->reg != RT_REG_NONE))
			break;
		offset += insn.length;
	}
	if (!best.found) {
		*ret_why = !code.size && !request->unshared ? "its code is not in the file"
			   : request->room
				   ? "no place at its start has room for a jump (short, or branches lead into it)"
			   : never ? "its first instructions cannot hold a probe (lock prefix or unknown)"
				   : "no instruction at its start can hold a probe with the object still in a register";
		return false;
	}
	*ret = best.site;
	return true;
}
