/* SPDX-License-Identifier: GPL-2.0-only */
/* The walk is short (one basic block); what makes it safe is a look at every branch of the function. */
#include "probe/site.h"

enum {
	LINE_BYTES = 256, /* how far the line is followed */
	LINE_INSNS = 40,
	FUNCTION_BYTES = 256 << 10, /* larger functions are not decoded as a whole */
};

/* Which bytes behind the entry are jump targets. */
struct labels {
	uint64_t bits[LINE_BYTES / 64];
	bool complete; /* every branch of the function was looked at */
};

static bool is_label(const struct labels *labels, uint64_t offset)
{
	return offset < LINE_BYTES && (labels->bits[offset / 64] >> (offset % 64) & 1);
}

/* Notes the jump targets that lie in the line, of all code in [start, end). */
static void collect(const struct rt_site_request *r, struct rt_elfaddr start, struct rt_elfaddr end,
		    struct labels *labels)
{
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
			uint64_t offset = insn.target.v - r->entry.v;

			length = insn.length;
			if (insn.jump && insn.has_target && insn.target.v >= r->entry.v && offset < LINE_BYTES)
				labels->bits[offset / 64] |= UINT64_C(1) << (offset % 64);
		}
		if (!length || length > code.size)
			break;
		code.data += length;
		code.size -= length;
		start.v += length;
	}
}

struct choice {
	struct rt_site site;
	bool found;
	bool is_endbr;
};

/* Lower is better. An endbr64 is stepped over like any other, but the next one may be cheap. */
static int rank(uint8_t cost, bool is_endbr)
{
	return cost == RT_COST_EMULATED || cost == RT_COST_AVOID ? 0 : is_endbr ? 2 : 1;
}

static void consider(const struct rt_site_request *r, const struct rt_track *track, const struct rt_insn *insn,
		     struct choice *best)
{
	struct rt_site site = { .address = insn->addr, .cost = insn->cost, .reg = RT_REG_NONE };

	if (insn->cost == RT_COST_NEVER || (insn->cost == RT_COST_AVOID && r->avoid_nop5))
		return;
	if (!rt_track_cfa(track, &site.cfa_delta) || (r->return_slot && site.cfa_delta != 8))
		return;
	if (r->reg != RT_REG_NONE) {
		site.reg = rt_track_object(track, r->reg);
		if (site.reg == RT_REG_NONE)
			return;
	}
	if (best->found && rank(insn->cost, insn->endbr) >= rank(best->site.cost, best->is_endbr))
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
	if (rank(best->site.cost, best->is_endbr) == 0 || r->nearest)
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
		if ((n || request->unshared) && is_label(&labels, offset))
			break;
		never |= insn.cost == RT_COST_NEVER;
		consider(request, &track, &insn, &best);
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
			   : never ? "its first instructions cannot hold a probe (lock prefix or unknown)"
				   : "no instruction at its start can hold a probe with the object still in a register";
		return false;
	}
	*ret = best.site;
	return true;
}
