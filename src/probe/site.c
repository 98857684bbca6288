/* SPDX-License-Identifier: GPL-2.0-only */
/* The walk is short (one basic block); what makes it safe is a look at every branch of the function. */
#include "probe/site.h"

#include "probe/room.h"

enum { LINE_INSNS = 40 };

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
static bool is_armable(const struct rt_site_request *r, const struct rt_labels *labels, const struct rt_insn *insn,
		       uint8_t *ret_before)
{
	if (r->room)
		return rt_has_room(r, labels, (int64_t)(insn->addr.v - r->entry.v), ret_before);
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

static bool find(const struct rt_site_request *request, struct rt_site *ret, const char **ret_why)
{
	struct rt_bytes code = rt_image_at(request->image, request->entry, RT_LINE_BYTES);
	struct rt_labels labels;
	struct choice best = { .found = false };
	struct rt_insn insn = { 0 };
	struct rt_track track;
	uint64_t offset = 0;
	bool never = false;
	uint8_t before = 0;

	rt_labels_read(request, &labels);
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
		if ((n || request->unshared) && rt_is_label(&labels, (int64_t)offset))
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

bool rt_site_find(const struct rt_site_request *request, struct rt_site *ret, const char **ret_why)
{
	struct rt_site_request bare = *request;

	if (find(request, ret, ret_why))
		return true;
	bare.room = 0;
	if (!request->room || !request->breakpoints || !find(&bare, ret, ret_why))
		return false;
	ret->breakpoint = true;
	return true;
}
