/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking samples: places are named once, call paths are nodes of a tree per row. */
#include "profile/parts.h"

#include <string.h>

#include <linux/perf_event.h>

enum {
	CHAIN_MAX = 1024,    /* entries of one callchain that are looked at */
	NODES_MAX = 4000000, /* call paths kept */
	FRAMES_MAX = 64,     /* inlined functions at one address */
};

static struct rt_pf_thread *thread_of(struct rt_profile *p, uint32_t tid)
{
	bool made;
	uint64_t *slot = rt_map_put(&p->thread_by_tid, rt_key_make(tid, 0), &made);
	struct rt_pf_thread *t;

	if (!slot)
		return NULL;
	if (!made)
		return &p->threads.data[*slot];
	t = rt_vec_add(&p->threads);
	if (!t) {
		rt_map_remove(&p->thread_by_tid, rt_key_make(tid, 0), NULL);
		return NULL;
	}
	*slot = p->threads.len - 1;
	return t;
}

/* Images of a pid are told apart: exec and reuse of the pid start a new epoch. */
static uint64_t *epoch_of(struct rt_profile *p, uint32_t pid)
{
	return rt_map_put(&p->epoch_by_pid, rt_key_make(pid, 0), NULL);
}

struct rt_error *rt_profile_comm(struct rt_profile *p, uint32_t pid, uint32_t tid, const char *comm, bool exec)
{
	struct rt_pf_thread *t = thread_of(p, tid);
	uint64_t *epoch = exec ? epoch_of(p, pid) : NULL;
	uint32_t id = rt_intern_string(&p->strings, comm);

	if (!t || !id || (exec && !epoch))
		return rt_error_nomem();
	t->comm = id;
	if (exec)
		++*epoch;
	return NULL;
}

struct rt_error *rt_profile_fork(struct rt_profile *p, uint32_t parent_tid, uint32_t pid, uint32_t tid, bool process)
{
	uint64_t *slot = rt_map_get(&p->thread_by_tid, rt_key_make(parent_tid, 0));
	uint32_t comm = slot ? p->threads.data[*slot].comm : 0;
	struct rt_pf_thread *t = thread_of(p, tid);
	uint64_t *epoch = process ? epoch_of(p, pid) : NULL;

	if (!t || (process && !epoch))
		return rt_error_nomem();
	t->comm = comm;
	if (epoch)
		++*epoch;
	return NULL;
}

static uint32_t comm_of(struct rt_profile *p, uint32_t tid)
{
	struct rt_pf_thread *t = thread_of(p, tid);
	char text[16];

	if (!t)
		return 0;
	if (!t->comm) {
		/* as perf writes a thread whose name it never saw */
		snprintf(text, sizeof(text), tid ? ":%d" : "swapper", (int)tid);
		t->comm = rt_intern_string(&p->strings, text);
	}
	return t->comm;
}

static bool in_kernel(uint64_t ip)
{
	return ip >> 63;
}

/* The function that the symbol table has around ip; innermost inlined ones belong to it. */
static uint32_t make_symbol(struct rt_profile *p, const struct rt_frame *frame, uint64_t ip)
{
	const char *module = frame->module ? frame->module : in_kernel(ip) ? "[kernel]" : "[unknown]";
	const char *name = frame->symbol ?: frame->function ?: frame->linkage;
	uint64_t entry = frame->symbol ? frame->symbol_entry : frame->entry;
	uint32_t module_name = rt_intern_string(&p->strings, module);
	uint32_t function = name ? rt_intern_string(&p->strings, name) : 0;
	/* without a name each address is on its own */
	uint64_t place = function ? entry : frame->address;
	struct rt_pf_symbol *s;
	uint64_t *slot;
	bool made;

	if (!module_name || (name && !function))
		return 0;
	slot = rt_map_put(&p->symbol_by_name,
			  rt_key_make((uint64_t)module_name << 32 | function, function ? 0 : place + 1), &made);
	if (!slot)
		return 0;
	if (!made)
		return (uint32_t)*slot;
	s = rt_vec_add(&p->symbols);
	if (!s)
		return 0;
	*s = (struct rt_pf_symbol){ .module = module_name,
				    .function = function,
				    .module_id = frame->module_id,
				    .entry = entry,
				    .address = frame->address,
				    .kernel = in_kernel(ip) };
	*slot = p->symbols.len;
	return (uint32_t)*slot;
}

/* The place of ip, named at its first use. NULL: out of memory. */
static const struct rt_pf_place *place_of(struct rt_profile *p, uint32_t pid, uint64_t time_ns, uint64_t ip,
					  bool is_return)
{
	uint64_t *epoch = epoch_of(p, pid), *slot;
	struct rt_frame frames[FRAMES_MAX];
	struct rt_pf_place place;
	uint64_t who = in_kernel(ip) ? 0 : (uint64_t)pid << 24 | (*epoch & 0xffffff);
	bool made;
	size_t n;

	if (!epoch)
		return NULL;
	slot = rt_map_put(&p->place_by_ip, rt_key_make(ip, who << 1 | is_return), &made);
	if (!slot)
		return NULL;
	/* kernel-side code comes and goes (BPF): its names are asked for at each time */
	if (!made && *slot && !in_kernel(ip))
		return &p->places.data[*slot - 1];
	n = p->namer->name(p->namer, pid, time_ns, ip, is_return, frames, FRAMES_MAX);
	place.symbol = make_symbol(p, &frames[n - 1], ip);
	place.address = frames[n - 1].address;
	/* code that was loaded again elsewhere counts where it was first */
	if (place.symbol && in_kernel(ip) && frames[n - 1].entry)
		place.address += p->symbols.data[place.symbol - 1].entry - frames[n - 1].entry;
	if (!place.symbol)
		return NULL;
	if (*slot) {
		p->places.data[*slot - 1] = place;
		return &p->places.data[*slot - 1];
	}
	if (!rt_vec_push(&p->places, place))
		return NULL;
	*slot = p->places.len;
	return &p->places.data[p->places.len - 1];
}

static uint32_t row_of(struct rt_profile *p, unsigned event, uint32_t comm, uint32_t symbol)
{
	bool made;
	uint64_t *slot = rt_map_put(&p->row_by_key, rt_key_make((uint64_t)event << 32 | comm, symbol), &made);

	if (!slot)
		return 0;
	if (made) {
		struct rt_pf_row *row = rt_vec_add(&p->rows);

		if (!row)
			return 0;
		*row = (struct rt_pf_row){ .event = event, .comm = comm, .symbol = symbol };
		*slot = p->rows.len;
	}
	return (uint32_t)*slot;
}

/* The node below parent (a row's root: its number with the top bit) for symbol; 0: full or without memory. */
static uint32_t node_of(struct rt_profile *p, uint64_t parent, uint32_t symbol)
{
	bool made;
	uint64_t *slot;

	if (p->nodes.len >= NODES_MAX)
		return 0;
	slot = rt_map_put(&p->node_by_key, rt_key_make(parent, symbol), &made);
	if (!slot)
		return 0;
	if (made) {
		struct rt_pf_node *node = rt_vec_add(&p->nodes);

		if (!node)
			return 0;
		*node = (struct rt_pf_node){ .parent = parent, .symbol = symbol };
		*slot = p->nodes.len;
	}
	return (uint32_t)*slot;
}

/* Counts the callers below row; *seen are the rows that this sample has counted in their totals. */
static struct rt_error *count_chain(struct rt_profile *p, const struct rt_profile_sample *s, uint32_t comm,
				    uint32_t row, struct rt_pf_table *table)
{
	uint64_t parent = (uint64_t)row | RT_PF_ROOT;
	bool first = true, mark = false;
	size_t n = s->chain_count < CHAIN_MAX ? s->chain_count : CHAIN_MAX;

	p->stamp++;
	p->rows.data[row - 1].stamp = p->stamp;
	for (size_t i = 0; i < n; i++) {
		uint64_t ip = s->chain[i];
		const struct rt_pf_place *place;
		uint32_t node, above;

		if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
			mark = true;
			continue;
		}
		/* the innermost entry is the sampled instruction itself; so is the one behind a mark */
		if (first && ip == s->ip) {
			first = mark = false;
			continue;
		}
		place = place_of(p, s->pid, s->time_ns, ip, !mark);
		first = mark = false;
		if (!place)
			return rt_error_nomem();
		node = parent ? node_of(p, parent, place->symbol) : 0;
		if (node) {
			p->nodes.data[node - 1].samples++;
			p->nodes.data[node - 1].period += s->period;
		} else if (parent) {
			table->cut_chains++;
		}
		parent = node;
		above = row_of(p, s->event, comm, place->symbol);
		if (!above)
			return rt_error_nomem();
		if (p->rows.data[above - 1].stamp == p->stamp)
			continue;
		p->rows.data[above - 1].stamp = p->stamp;
		p->rows.data[above - 1].total_samples++;
		p->rows.data[above - 1].total_period += s->period;
	}
	return NULL;
}

struct rt_error *rt_profile_sample(struct rt_profile *p, const struct rt_profile_sample *s)
{
	const struct rt_pf_place *place;
	struct rt_pf_table *table;
	uint32_t comm, row, symbol;
	uint64_t *hit, address;
	struct rt_pf_hit *h;
	bool made;

	if (s->event >= RT_PROFILE_EVENTS)
		return rt_error_new(RT_E_LIMIT, "event %u: more than %d events in one recording", s->event,
				    RT_PROFILE_EVENTS);
	while (p->tables.len <= s->event) {
		if (!rt_vec_add(&p->tables))
			return rt_error_nomem();
	}
	table = &p->tables.data[s->event];
	comm = comm_of(p, s->tid);
	place = place_of(p, s->pid, s->time_ns, s->ip, false);
	row = comm && place ? row_of(p, s->event, comm, place->symbol) : 0;
	if (!row)
		return rt_error_nomem();
	symbol = place->symbol;
	address = place->address;
	table->samples++;
	table->period += s->period;
	p->rows.data[row - 1].samples++;
	p->rows.data[row - 1].period += s->period;
	p->rows.data[row - 1].total_samples++;
	p->rows.data[row - 1].total_period += s->period;
	hit = rt_map_put(&p->hit_by_place, rt_key_make((uint64_t)s->event << 32 | symbol, address), &made);
	h = hit && made ? rt_vec_add(&p->hits) : NULL;
	if (!hit || (made && !h))
		return rt_error_nomem();
	if (made) {
		*hit = p->hits.len - 1;
		*h = (struct rt_pf_hit){ .event = s->event, .symbol = symbol, .address = address };
	}
	h = &p->hits.data[*hit];
	h->samples++;
	h->period += s->period;
	if (!s->chain || !s->chain_count) {
		table->without_chain++;
		return NULL;
	}
	table->has_chains = true;
	return count_chain(p, s, comm, row, table);
}

struct rt_error *rt_profile_create(struct rt_namer *namer, struct rt_profile **ret)
{
	struct rt_profile *p = calloc(1, sizeof(*p));

	if (!p)
		return rt_error_nomem();
	p->namer = namer;
	*ret = p;
	return NULL;
}

void rt_profile_destroy(struct rt_profile *p)
{
	if (!p)
		return;
	rt_arena_deinit(&p->answer);
	rt_intern_deinit(&p->strings);
	rt_map_deinit(&p->thread_by_tid);
	rt_map_deinit(&p->epoch_by_pid);
	rt_map_deinit(&p->symbol_by_name);
	rt_map_deinit(&p->place_by_ip);
	rt_map_deinit(&p->row_by_key);
	rt_map_deinit(&p->node_by_key);
	rt_map_deinit(&p->hit_by_place);
	rt_vec_deinit(&p->threads);
	rt_vec_deinit(&p->symbols);
	rt_vec_deinit(&p->places);
	rt_vec_deinit(&p->tables);
	rt_vec_deinit(&p->rows);
	rt_vec_deinit(&p->nodes);
	rt_vec_deinit(&p->hits);
	free(p);
}
