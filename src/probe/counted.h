/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where an inlined instance counts. Compilers move the instruction that counts ahead of the place where the instance is
 * said to begin, copy it into several branches, and drop the word about where the object is; but the instruction itself
 * names it: what it adds to is the object's counter. Private to probe/.
 */
#pragma once

#include "probe/build.h"

enum {
	RT_COUNTED_MAX = 64,   /* sites of one instance */
	RT_COUNTED_AT_ONCE = 8 /* references that one instruction takes or gives back, at most */
};

/* An instruction that adds the operation's delta to a counter: the object is at reg + offset when it is run. */
struct rt_counted_site {
	struct rt_elfaddr address;
	struct rt_elfaddr begin; /* of its part of the instance, where that is a way into it; UINT64_MAX: it is not */
	uint8_t reg;
	int64_t offset;
};

struct rt_counted {
	RT_VEC(struct rt_counted_site) sites;
	unsigned copies;  /* parts of the instance that have one, and do not come from other parts */
	bool plain;       /* each part that has one has no other, at the register itself, and nothing is unclear */
	unsigned unclear; /* instructions that may count in a way that is not understood */
};

void rt_counted_deinit(struct rt_counted *counted);

/* In the instance's own code, for a type whose counter is known. false: out of memory */
RT_CHECK bool rt_counted_find(struct rt_plan_build *b, const struct rt_plan_type *type, int16_t delta,
			      const struct rt_inlined *instance, struct rt_counted *ret);

/*
 * Some come to where the instance counts past where it begins: compilers that know how its first test ends for those
 * who come from some place let these come in behind it. Walks the function: to be asked once.
 */
bool rt_counted_passed(struct rt_plan_build *b, const struct rt_inlined *instance, const struct rt_counted *counted);

/* By how much an instruction that stores through a plain register changes what lies there. false: not understood */
bool rt_counted_delta(struct rt_plan_build *b, const struct rt_insn *insn, int64_t *ret_delta);

/*
 * rt_site_find() for an instruction inside a function: where that and what follows cannot be armed (a lock prefix, and
 * others join behind it), the last place before it that leads nowhere else and has the same in request->reg.
 */
bool rt_counted_place(struct rt_plan_build *b, const struct rt_site_request *request, struct rt_site *ret,
		      const char **ret_why);

/*
 * rt_track_bias() for a site that was found from the instruction at `counts` on, which changes the field by delta: that
 * may follow from what had been put into registers before the walk to the site began.
 */
bool rt_counted_bias(struct rt_plan_build *b, const struct rt_site *site, struct rt_elfaddr counts, int64_t offset,
		     uint32_t size, int64_t delta, int8_t *ret);

/* Straight code ends with it: a jump, a return, or a call, behind which registers are others. */
static inline bool rt_counted_ends_line(const struct rt_insn *insn)
{
	return insn->jump || insn->ret || insn->call;
}

/* Does the jump lead, or may it, where its target is not known, to an instruction of (from, to]? */
bool rt_counted_leads_into(struct rt_plan_build *b, const struct rt_insn *jump, struct rt_elfaddr from,
			   struct rt_elfaddr to);

/* Does any branch of [start, end) lead into (from, to]? */
bool rt_counted_joined(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr from,
		       struct rt_elfaddr to);

/* Does what is in the site's register there lie in it at `from`, too, on the way that comes through all code between?
 */
bool rt_counted_holds(struct rt_plan_build *b, const struct rt_counted_site *site, struct rt_elfaddr from);

/*
 * Does debug information say the same where the instance counts? param: of the function, from 1. RT_COUNTED_OTHER: what
 * it adds to is no object's counter, so that the instruction alone proves nothing about this function.
 */
enum rt_counted_proof { RT_COUNTED_SILENT, RT_COUNTED_SAME, RT_COUNTED_OTHER };
enum rt_counted_proof rt_counted_prove(struct rt_plan_build *b, const struct rt_inlined *instance, unsigned param,
				       const struct rt_counted *counted);
