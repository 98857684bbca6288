/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/writers.h"

#include <stdlib.h>
#include <string.h>

#include "insn/noreturn.h"
#include "probe/reach.h"

enum { CODE_BYTES = 64 << 10 };

void rt_writers_deinit(struct rt_writers *w)
{
	rt_vec_deinit(&w->insns);
	rt_vec_deinit(&w->ends);
	rt_vec_deinit(&w->edges);
	rt_vec_deinit(&w->todo);
	free(w->seen);
	*w = (struct rt_writers){ 0 };
}

static int by_address(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int by_target(const void *a, const void *b)
{
	const struct rt_writers_edge *x = a, *y = b;

	return (x->to > y->to) - (x->to < y->to);
}

/* the number of the instruction at the address; UINT32_MAX: none begins there */
static uint32_t number_of(const struct rt_writers *w, struct rt_elfaddr at)
{
	const uint64_t *found =
		w->insns.len ? bsearch(&at.v, w->insns.data, w->insns.len, sizeof(at.v), by_address) : NULL;

	return found ? (uint32_t)(found - w->insns.data) : UINT32_MAX;
}

static bool read_code(struct rt_writers *w, struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end)
{
	struct rt_insn insn;

	for (; start.v < end.v; start.v += insn.length) {
		if (!rt_plan_decode(b, start, &insn) || !rt_vec_push(&w->insns, start.v))
			return false;
	}
	return true;
}

struct leading {
	struct rt_writers *w;
	uint32_t from;
	bool known;
};

static bool lead(struct rt_elfaddr target, void *arg)
{
	struct leading *l = arg;
	uint32_t to = number_of(l->w, target);

	l->known &= to != UINT32_MAX && rt_vec_push(&l->w->edges, ((struct rt_writers_edge){ to, l->from }));
	return l->known;
}

/* where the jump leads inside of the function; false: not known */
static bool follow_jump(struct rt_writers *w, struct rt_plan_build *b, uint32_t from, const struct rt_insn *insn)
{
	struct leading l = { w, from, true };
	struct rt_table table;
	uint32_t to;

	if (insn->has_target) {
		to = number_of(w, insn->target);
		return to == UINT32_MAX || rt_vec_push(&w->edges, ((struct rt_writers_edge){ to, from }));
	}
	return rt_reach_table(b, w->start, w->end, insn->addr, &table) &&
	       rt_table_read(b->module->image, &table, lead, &l) == table.entries && l.known;
}

static bool read_jumps(struct rt_writers *w, struct rt_plan_build *b)
{
	struct rt_insn insn;

	for (uint32_t i = 0; i < w->insns.len; i++) {
		if (!rt_plan_decode(b, (struct rt_elfaddr){ w->insns.data[i] }, &insn))
			return false;
		if (insn.jump && !follow_jump(w, b, i, &insn))
			return false;
		if ((insn.ret || (insn.jump && !insn.conditional) ||
		     (insn.call && rt_noreturn(b->module->image, b->module->symtab, b->decoder, &insn))) &&
		    !rt_vec_push(&w->ends, i))
			return false;
	}
	if (w->edges.len)
		qsort(w->edges.data, w->edges.len, sizeof(w->edges.data[0]), by_target);
	return true;
}

/* the function at `at`, with its cold part, which jumps into it as well */
static void look_at(struct rt_writers *w, struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end)
{
	const struct rt_symbol *symbol = rt_symtab_at(b->module->symtab, start);
	struct rt_elfaddr cold, cold_end;
	bool known, more;

	rt_writers_deinit(w);
	w->start = start;
	w->end = end;
	more = symbol && symbol->addr.v == start.v && rt_survey_cold(&b->survey, symbol, &cold, &cold_end);
	known = symbol && symbol->addr.v == start.v && !strstr(symbol->name, ".cold") &&
		end.v - start.v <= CODE_BYTES && (!more || cold_end.v - cold.v <= CODE_BYTES);
	if (more && cold.v < start.v)
		known = known && read_code(w, b, cold, cold_end);
	known = known && read_code(w, b, start, end);
	if (more && cold.v >= start.v)
		known = known && read_code(w, b, cold, cold_end);
	known = known && read_jumps(w, b);
	w->seen = known ? malloc(w->insns.len) : NULL;
	w->unknown = !w->seen;
}

static bool step_to(struct rt_writers *w, uint32_t from)
{
	if (w->seen[from])
		return true;
	w->seen[from] = 1;
	return rt_vec_push(&w->todo, from);
}

/* the first jump that leads to instruction number i, or behind it */
static size_t first_edge(const struct rt_writers *w, uint32_t i)
{
	size_t low = 0, high = w->edges.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->edges.data[middle].to < i)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* the next instruction is not reached from this one */
static bool is_end(const struct rt_writers *w, uint32_t i)
{
	return w->ends.len && bsearch(&i, w->ends.data, w->ends.len, sizeof(i), by_number);
}

/* goes to all instructions that come just before number i; false: none does */
static bool step_back(struct rt_writers *w, uint32_t i)
{
	bool any = false;

	if (i && !is_end(w, i - 1)) {
		any = true;
		if (!step_to(w, i - 1))
			return false;
	}
	for (size_t k = first_edge(w, i); k < w->edges.len && w->edges.data[k].to == i; k++) {
		any = true;
		if (!step_to(w, w->edges.data[k].from))
			return false;
	}
	return any;
}

bool rt_writers_find(struct rt_writers *w, struct rt_plan_build *b, struct rt_elfaddr at, uint8_t reg,
		     struct rt_elfaddr ret[RT_WRITERS_MAX], unsigned *ret_count, bool *ret_entry)
{
	struct rt_elfaddr start, end;
	struct rt_insn insn;
	uint32_t i;

	*ret_count = 0;
	*ret_entry = false;
	if (reg >= RT_TRACK_REGS || !rt_survey_range(&b->survey, at, &start, &end))
		return false;
	if (start.v != w->start.v || end.v != w->end.v)
		look_at(w, b, start, end);
	i = w->unknown ? UINT32_MAX : number_of(w, at);
	if (i == UINT32_MAX)
		return false;
	memset(w->seen, 0, w->insns.len);
	rt_vec_clear(&w->todo);
	for (;;) {
		if (w->insns.data[i] == start.v)
			*ret_entry = true;
		else if (!step_back(w, i))
			return false;
		do {
			if (!w->todo.len)
				return true;
			i = w->todo.data[--w->todo.len];
			if (!rt_plan_decode(b, (struct rt_elfaddr){ w->insns.data[i] }, &insn))
				return false;
			if (insn.writes & 1u << reg && !insn.is_zero) {
				if (*ret_count == RT_WRITERS_MAX)
					return false;
				ret[(*ret_count)++] = insn.addr;
			}
		} while (insn.writes & 1u << reg);
	}
}
