/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code that lies in no file: the kernel's own functions, which stay, and what
 * is loaded and unloaded again (BPF programs): there the time decides.
 */
#include <stdlib.h>
#include <string.h>

#include "symbol/parts.h"

struct rt_error *rt_chain_add_code(struct rt_chain *chain, const struct rt_chain_code *code)
{
	struct rt_chain_code kept = *code;

	if (code->start >= code->end)
		return NULL;
	kept.name = rt_chain_text(chain, code->name);
	kept.module = rt_chain_text(chain, code->module);
	if (!kept.name || !kept.module)
		return rt_error_nomem();
	if (!kept.from_ns && !kept.to_ns) {
		if (!rt_vec_push(&chain->fixed, kept))
			return rt_error_nomem();
		chain->fixed_sorted = false;
		return NULL;
	}
	if (!rt_vec_push(&chain->loaded, kept))
		return rt_error_nomem();
	chain->loaded_sorted = false;
	if (kept.end - kept.start > chain->loaded_longest)
		chain->loaded_longest = kept.end - kept.start;
	return NULL;
}

void rt_chain_end_code(struct rt_chain *chain, uint64_t start, uint64_t time_ns)
{
	struct rt_chain_code *last = NULL;

	for (size_t i = 0; i < chain->loaded.len; i++) {
		struct rt_chain_code *c = &chain->loaded.data[i];

		if (c->start == start && c->from_ns <= time_ns && c->to_ns == UINT64_MAX &&
		    (!last || c->from_ns >= last->from_ns))
			last = c;
	}
	if (last)
		last->to_ns = time_ns;
}

static int by_start(const void *x, const void *y)
{
	const struct rt_chain_code *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* Number of entries that start at or before pc. */
static size_t up_to(const struct rt_chain_code *data, size_t n, uint64_t pc)
{
	size_t low = 0;

	while (low < n) {
		size_t mid = low + (n - low) / 2;

		if (data[mid].start <= pc)
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

const struct rt_chain_code *rt_chain_find_code(struct rt_chain *chain, uint64_t time_ns, uint64_t pc)
{
	const struct rt_chain_code *best = NULL;
	size_t i;

	if (!chain->loaded_sorted && chain->loaded.len)
		qsort(chain->loaded.data, chain->loaded.len, sizeof(*chain->loaded.data), by_start);
	if (!chain->fixed_sorted && chain->fixed.len)
		qsort(chain->fixed.data, chain->fixed.len, sizeof(*chain->fixed.data), by_start);
	chain->loaded_sorted = chain->fixed_sorted = true;
	for (i = up_to(chain->loaded.data, chain->loaded.len, pc); i-- > 0;) {
		const struct rt_chain_code *c = &chain->loaded.data[i];

		if (pc - c->start >= chain->loaded_longest)
			break;
		if (pc < c->end && c->from_ns <= time_ns && time_ns < c->to_ns && (!best || c->from_ns > best->from_ns))
			best = c;
	}
	if (best)
		return best;
	i = up_to(chain->fixed.data, chain->fixed.len, pc);
	/* several names at one address: the last one that covers it */
	return i && pc < chain->fixed.data[i - 1].end ? &chain->fixed.data[i - 1] : NULL;
}

void rt_chain_name_code(struct rt_chain *chain, const struct rt_chain_code *code, uint64_t pc, bool is_return,
			struct rt_frame *ret)
{
	uint64_t at = pc - is_return;
	size_t low = 0, high = code->line_count;

	*ret = (struct rt_frame){ .function = code->name, .module = code->module, .address = pc, .entry = code->start };
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (code->lines[mid].address <= at)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return;
	ret->file = rt_chain_text(chain, code->lines[low - 1].file);
	ret->line = code->lines[low - 1].line;
}
