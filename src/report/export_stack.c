/* SPDX-License-Identifier: GPL-2.0-only */
/* Call paths as a tree: of the analysis' places, and of perf's callchains. */
#include <string.h>

#include "report/export_parts.h"
#include "report/words.h"

enum {
	FRAMES_MAX = 256,    /* source frames of a place; inlined ones at one address */
	CHAIN_MAX = 1024,    /* entries of one callchain that are looked at */
	NODES_MAX = 4000000, /* call paths kept */
};

static bool in_kernel(uint64_t ip)
{
	return ip >> 63;
}

static uint32_t string_of(struct rt_export *e, const char *text, bool *ok)
{
	uint32_t id = text && *text ? rt_intern_string(&e->strings, text) : 0;

	if (text && *text && !id)
		*ok = false;
	return id;
}

static uint32_t build_of(struct rt_export *e, const struct rt_frame *f, bool *ok)
{
	char hex[2 * RT_BUILD_ID_MAX + 1] = "";

	for (unsigned i = 0; i < f->build_id_size && i < RT_BUILD_ID_MAX; i++)
		snprintf(hex + 2 * i, 3, "%02x", f->build_id[i]);
	return string_of(e, hex, ok);
}

static uint32_t frame_of(struct rt_export *e, const struct rt_frame *f, bool kernel, bool *ok)
{
	size_t known = e->frame_ids.items.len;
	struct rt_ex_frame frame;
	uint32_t id;

	memset(&frame, 0, sizeof(frame)); /* its bytes are the key */
	frame.name = string_of(e, f->function ?: f->linkage, ok);
	frame.file = string_of(e, f->file, ok);
	frame.module = string_of(e, f->module, ok);
	frame.build = build_of(e, f, ok);
	frame.line = f->line;
	frame.address = f->address;
	frame.entry = f->entry;
	frame.inlined = f->inlined;
	frame.kernel = kernel;
	id = rt_intern_bytes(&e->frame_ids, &frame, sizeof(frame));
	if (!id || !*ok || (id > known && !rt_vec_push(&e->frames, frame)))
		*ok = false;
	return *ok ? id : 0;
}

/* the path that goes on from parent to frame; parent itself when there are too many */
static uint32_t node_of(struct rt_export *e, uint32_t parent, uint32_t frame, bool *cut, bool *ok)
{
	bool made;
	uint64_t *slot;

	if (!*ok || *cut)
		return parent;
	slot = rt_map_get(&e->node_by_key, rt_key_make(parent, frame));
	if (slot)
		return (uint32_t)*slot;
	if (e->nodes.len >= NODES_MAX) {
		*cut = true;
		e->result.cut_stacks++;
		return parent;
	}
	slot = rt_map_put(&e->node_by_key, rt_key_make(parent, frame), &made);
	if (!slot || !rt_vec_push(&e->nodes, ((struct rt_ex_node){ parent, frame }))) {
		*ok = false;
		return 0;
	}
	*slot = e->nodes.len;
	return (uint32_t)*slot;
}

uint32_t rt_ex_place(struct rt_export *e, uint32_t place, bool *ok)
{
	struct rt_frame frames[FRAMES_MAX];
	uint32_t node = 0;
	bool cut = false;
	size_t n;

	if (!place)
		return 0;
	while (e->node_of_place.len <= place) {
		if (!rt_vec_add(&e->node_of_place)) {
			*ok = false;
			return 0;
		}
	}
	if (e->node_of_place.data[place])
		return e->node_of_place.data[place];
	n = rt_lifetime_frames(e->lifetime, place, frames, FRAMES_MAX);
	while (n--)
		node = node_of(e, node, frame_of(e, &frames[n], false, ok), &cut, ok);
	e->node_of_place.data[place] = node;
	return node;
}

/* Source frames of ip, innermost first, as a range of place_frames. */
static bool name_ip(struct rt_export *e, uint32_t pid, uint64_t time_ns, uint64_t ip, bool is_return,
		    uint32_t *ret_first, uint32_t *ret_count)
{
	uint32_t as = e->options.pid ? e->options.pid(pid) : pid;
	uint64_t *epoch = rt_map_put(&e->epoch_by_pid, rt_key_make(pid, 0), NULL), *slot;
	struct rt_frame frames[FRAMES_MAX];
	bool kernel = in_kernel(ip), ok = true;
	uint64_t who = kernel ? 0 : (uint64_t)pid << 24 | (epoch ? *epoch & 0xffffff : 0);
	size_t n;

	if (!epoch)
		return false;
	slot = rt_map_get(&e->place_by_ip, rt_key_make(ip, who << 1 | is_return));
	/* kernel-side code comes and goes (BPF): its names are asked for at each time */
	if (slot && !kernel) {
		*ret_first = (uint32_t)(*slot >> 12);
		*ret_count = *slot & 0xfff;
		return true;
	}
	n = e->namer->name(e->namer, as, time_ns, ip, is_return, frames, FRAMES_MAX);
	*ret_first = (uint32_t)e->place_frames.len;
	*ret_count = (uint32_t)n;
	if (slot) {
		/* as before, mostly */
		uint32_t first = (uint32_t)(*slot >> 12), count = *slot & 0xfff;
		bool same = count == n;

		for (size_t i = 0; i < n && same; i++)
			same = e->place_frames.data[first + i] == frame_of(e, &frames[i], kernel, &ok);
		if (same) {
			*ret_first = first;
			return ok;
		}
	}
	for (size_t i = 0; i < n && ok; i++)
		ok = rt_vec_push(&e->place_frames, frame_of(e, &frames[i], kernel, &ok)) && ok;
	slot = rt_map_put(&e->place_by_ip, rt_key_make(ip, who << 1 | is_return), NULL);
	if (!slot)
		return false;
	*slot = (uint64_t)*ret_first << 12 | *ret_count;
	return ok;
}

struct walk {
	uint64_t ip[CHAIN_MAX];
	bool is_return[CHAIN_MAX];
	size_t count;
};

/* The sampled instruction and its callers, innermost first. */
static void flatten(uint64_t ip, const uint64_t *chain, size_t count, struct walk *ret)
{
	bool mark = false, first = true;

	ret->ip[0] = ip;
	ret->is_return[0] = false;
	ret->count = 1;
	for (size_t i = 0; i < count && ret->count < CHAIN_MAX; i++) {
		if (chain[i] >= (uint64_t)PERF_CONTEXT_MAX) {
			mark = true;
			continue;
		}
		/* the innermost entry is the sampled instruction itself; one behind a mark is no return address */
		if (!(first && chain[i] == ip)) {
			ret->ip[ret->count] = chain[i];
			ret->is_return[ret->count++] = !mark;
		}
		first = mark = false;
	}
}

uint32_t rt_ex_chain(struct rt_export *e, uint32_t pid, uint64_t time_ns, uint64_t ip, const uint64_t *chain,
		     size_t count, bool *ok)
{
	struct walk walk;
	uint32_t node = 0;
	bool cut = false;

	flatten(ip, chain, count, &walk);
	for (size_t i = walk.count; i-- > 0 && *ok;) {
		uint32_t first, n;

		if (!name_ip(e, pid, time_ns, walk.ip[i], walk.is_return[i], &first, &n)) {
			*ok = false;
			return 0;
		}
		while (n--)
			node = node_of(e, node, e->place_frames.data[first + n], &cut, ok);
	}
	return node;
}

const char *rt_ex_function(const struct rt_export *e, struct rt_arena *arena, const struct rt_ex_frame *frame)
{
	const char *module = rt_basename(rt_ex_text(e, frame->module));

	if (frame->name)
		return rt_ex_text(e, frame->name);
	return rt_format(arena, "[%s]", *module ? module : frame->kernel ? "kernel" : "unknown");
}

static unsigned depth_of(const struct rt_export *e, uint32_t node)
{
	unsigned depth = 0;

	for (; node; node = rt_ex_node(e, node)->parent)
		depth++;
	return depth;
}

static bool same_function(const struct rt_export *e, uint32_t a, uint32_t b)
{
	const struct rt_ex_frame *f = rt_ex_frame(e, rt_ex_node(e, a)->frame);
	const struct rt_ex_frame *g = rt_ex_frame(e, rt_ex_node(e, b)->frame);

	return f->name == g->name && f->module == g->module && (f->name || f->address == g->address);
}

bool rt_ex_same_site(const struct rt_export *e, uint32_t a, uint32_t b)
{
	return a == b || (a && b && same_function(e, a, b));
}

/* Lines do not count: a function that gets and puts is one place. */
unsigned rt_ex_distance(const struct rt_export *e, uint32_t a, uint32_t b)
{
	unsigned da = depth_of(e, a), db = depth_of(e, b), apart = da > db ? da - db : db - da, n = 0;

	for (; da > db; da--)
		a = rt_ex_node(e, a)->parent;
	for (; db > da; db--)
		b = rt_ex_node(e, b)->parent;
	/* from the inside out: what differs further out makes all that is inside differ */
	for (unsigned i = 1; a && b && a != b; i++) {
		if (!same_function(e, a, b))
			n = i;
		a = rt_ex_node(e, a)->parent;
		b = rt_ex_node(e, b)->parent;
	}
	return apart + 2 * n;
}
