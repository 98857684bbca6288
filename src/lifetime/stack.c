/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames and stacks by number.
 *
 * A wire stack holds pcs of one process. The namer turns each into source
 * functions; one (function, line) has one number for all processes, so that
 * shapes of a parent and its children are comparable.
 */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/words.h"
#include "lifetime/state.h"

enum { INLINE_MAX = 16, LOOK_AHEAD = 3 };

/*
 * Where the outermost function of a thread stands nobody says (nothing is above _start), but it stands there as long as
 * the thread lives: just outside of what it called.
 */
static void place_root(struct rt_lifetime *lt, const struct lt_stack *s)
{
	struct lt_machine *root = s->nr > 1 && !s->cut ? &lt->machines.data[s->first + s->nr - 1] : NULL;

	if (root && !root->cfa && root[-1].cfa && root[-1].cfa < UINT32_MAX)
		root->cfa = root[-1].cfa + 1;
}

bool lt_stack_record(struct rt_lifetime *lt, const struct rt_wire_stack *r)
{
	uint64_t content[RT_STACK_MAX * 2 + 1];
	size_t known = lt->stack_ids.items.len;
	struct lt_stack *s;
	uint64_t *by_wire;
	uint32_t id;

	content[0] = (uint64_t)r->head.pid << 32 | r->end;
	for (unsigned i = 0; i < r->nr; i++) {
		content[1 + 2 * i] = r->frame[i].pc;
		content[2 + 2 * i] = (uint64_t)r->frame[i].cfa << 32 | (r->frame[i].flags & RT_FRAME_SITE);
	}
	id = rt_intern_bytes(&lt->stack_ids, content, (1 + 2 * (size_t)r->nr) * sizeof(content[0]));
	by_wire = rt_map_put(&lt->stack_by_wire, rt_key_make(r->head.pid, r->id), NULL);
	if (!id || !by_wire)
		return false;
	if (*by_wire && *by_wire != id)
		memset(lt->known, 0, sizeof(lt->known)); /* the number stands for another one now */
	*by_wire = id;
	if (id <= known)
		return true;
	s = rt_vec_add(&lt->stacks);
	if (!s)
		return false;
	*s = (struct lt_stack){ .pid = r->head.pid, .first = (uint32_t)lt->machines.len };
	lt->given |= r->end == RT_STACK_GIVEN;
	lt->by_rows |= r->nr && r->frame[0].flags & RT_FRAME_ROWS;
	s->cut = r->end != RT_STACK_ROOT && r->end != RT_STACK_GIVEN;
	for (unsigned i = 0; i < r->nr; i++) {
		struct lt_machine *m = rt_vec_add(&lt->machines);

		if (!m)
			return false;
		m->pc = r->frame[i].pc;
		m->cfa = r->frame[i].cfa;
		m->is_site = r->frame[i].flags & RT_FRAME_SITE;
		lt->stacks.data[id - 1].nr++;
	}
	place_root(lt, &lt->stacks.data[id - 1]);
	return true;
}

uint32_t lt_stack_find(struct rt_lifetime *lt, uint32_t pid, uint32_t wire_id)
{
	uint64_t *id = wire_id ? rt_map_get(&lt->stack_by_wire, rt_key_make(pid, wire_id)) : NULL;

	return id ? (uint32_t)*id : 0;
}

uint32_t lt_src_make(struct rt_lifetime *lt, const struct rt_frame *f)
{
	uint32_t name = f->function ? rt_intern_string(&lt->names, f->function) : 0;
	uint32_t file = f->file ? rt_intern_string(&lt->names, f->file) : 0;
	/* one without a name is told apart by where it starts, or where even that is unknown, each place from any other
	 */
	uint64_t who[4] = { name, file, f->module_id * (uint64_t) !(name && file),
			    name       ? 0
			    : f->entry ? f->entry
				       : f->address };
	uint32_t function = rt_intern_bytes(&lt->functions, who, sizeof(who));
	uint64_t key[3] = { function, f->line, f->line ? 0 : f->address };
	size_t known = lt->srcs.len;
	uint32_t id = rt_intern_bytes(&lt->src_ids, key, sizeof(key));

	if (id > known) {
		struct lt_src *src = rt_vec_add(&lt->srcs);

		if (!src)
			return 0;
		*src = (struct lt_src){ .frame = *f, .function = function, .name = lt_told_name(lt, name) };
	}
	return id;
}

uint32_t lt_src_named(struct rt_lifetime *lt, const struct lt_point *p)
{
	const char *name = rt_intern_text(&lt->names, p->name);
	/* no function is called by a number: that is where one without a name begins */
	const bool nameless = name[0] >= '0' && name[0] <= '9' && p->function;
	struct rt_frame f = { .function = nameless ? NULL : name,
			      .module_id = p->module,
			      .entry = nameless ? p->function : 0,
			      .address = nameless ? p->function : 0 };

	for (size_t i = 0; i < lt->srcs.len && !f.file && !(nameless && f.module); i++) {
		const struct lt_src *known = &lt->srcs.data[i];
		const struct rt_frame *k = &known->frame;
		bool named = known->name == p->name, placed = k->entry && p->function;
		/* static functions of several files may have one name; a story does not say in which module a point is
		 */
		bool same = named && (placed ? k->entry == p->function : k->module_id == p->module);

		if (!same && k->module_id != p->module)
			continue;
		f.module = k->module;
		f.module_id = k->module_id;
		f.build_id_size = k->build_id_size;
		memcpy(f.build_id, k->build_id, sizeof(f.build_id));
		if (same)
			f.file = k->file;
	}
	return lt_src_make(lt, &f);
}

/*
 * Source id of the function that a call goes to: where it starts right there, and is no PLT stub, which is nobody:
 * *ret_stub is the name of whom that stands for, in lt->names.
 */
static uint32_t callee_src(struct rt_lifetime *lt, uint32_t pid, uint64_t time_ns, uint64_t callee, uint32_t *ret_stub)
{
	static const char suffix[] = "@plt";
	struct rt_frame frames[INLINE_MAX];
	size_t n = callee ? lt->namer->name(lt->namer, pid, time_ns, callee, false, frames, INLINE_MAX) : 0, len;
	struct rt_frame *f = &frames[n ? n - 1 : 0];

	*ret_stub = 0;
	if (!n || !f->entry || f->entry != f->address)
		return 0;
	len = f->function ? strlen(f->function) : 0;
	if (len < sizeof(suffix) || strcmp(f->function + len - (sizeof(suffix) - 1), suffix) != 0)
		return lt_src_make(lt, f);
	*ret_stub = rt_intern_bytes(&lt->names, f->function, len - (sizeof(suffix) - 1));
	return 0;
}

/*
 * The function to which the callee leaves, if it does so by one jump, and how many source frames there are at that
 * place; these are added to stack_srcs behind their number. false: out of memory.
 */
static bool name_left(struct rt_lifetime *lt, uint32_t src, uint32_t pid, uint64_t time_ns, uint64_t callee)
{
	const uint64_t at = src && lt->namer->leaves ? lt->namer->leaves(lt->namer, pid, time_ns, callee) : 0;
	struct rt_frame frames[INLINE_MAX];
	size_t n = at ? lt->namer->name(lt->namer, pid, time_ns, at, false, frames, INLINE_MAX) : 0;
	uint32_t whole = n ? lt_src_make(lt, &frames[n - 1]) : 0, stub;

	if (!whole || lt_src(lt, whole)->function != lt_src(lt, src)->function)
		n = 0;
	if (!rt_vec_push(&lt->stack_srcs, n ? callee_src(lt, pid, time_ns, frames[n - 1].callee, &stub) : 0) ||
	    !rt_vec_push(&lt->stack_srcs, (uint32_t)n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!rt_vec_push(&lt->stack_srcs, lt_src_make(lt, &frames[i])))
			return false;
	}
	return true;
}

/*
 * Names one pc; equal pcs of a process share their entries of stack_srcs. Behind its source frames stand there whom it
 * calls, where that is a PLT stub, the stub's name, and the source frames that this one has where it leaves.
 */
static bool name_machine(struct rt_lifetime *lt, uint32_t index, uint32_t pid, uint64_t time_ns, bool innermost)
{
	struct rt_frame frames[INLINE_MAX];
	struct lt_machine *m = &lt->machines.data[index];
	bool is_return = !(m->is_site && innermost), made;
	uint64_t *memo = rt_map_put(&lt->memo, rt_key_make(m->pc, (uint64_t)pid << 1 | is_return), &made);
	uint32_t stub = 0;
	size_t n;

	if (!memo)
		return false;
	if (!made) {
		m->src = (uint32_t)(*memo >> 8);
		m->srcs = *memo & 0xff;
		m->callee = lt->stack_srcs.data[m->src + m->srcs + LT_BEHIND_CALLEE];
		m->function = m->srcs ? lt_src(lt, lt->stack_srcs.data[m->src + m->srcs - 1])->function : 0;
		return true;
	}
	n = lt->namer->name(lt->namer, pid, time_ns, m->pc, is_return, frames, INLINE_MAX);
	m->src = (uint32_t)lt->stack_srcs.len;
	m->srcs = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		if (!rt_vec_push(&lt->stack_srcs, lt_src_make(lt, &frames[i])))
			return false;
	}
	m->function = n ? lt_src(lt, lt->stack_srcs.data[m->src + n - 1])->function : 0;
	m->callee = is_return && n ? callee_src(lt, pid, time_ns, frames[n - 1].callee, &stub) : 0;
	if (!rt_vec_push(&lt->stack_srcs, m->callee) || !rt_vec_push(&lt->stack_srcs, stub) ||
	    !name_left(lt, m->callee, pid, time_ns, n ? frames[n - 1].callee : 0))
		return false;
	*memo = (uint64_t)m->src << 8 | m->srcs;
	return true;
}

/*
 * Numbers the frames, outermost first, so that stacks are compared by numbers. Who called the outermost frame of a cut
 * stack is not known, so it has to stand at the same call itself.
 */
static bool name_nodes(struct rt_lifetime *lt, struct lt_stack *s)
{
	const struct lt_machine *m = s->nr ? &lt->machines.data[s->first] : NULL; /* there may be none of any stack */
	struct lt_node node = { .caller_pc = s->cut && s->nr ? m[s->nr - 1].pc : 0 };

	for (uint32_t i = 0; i < s->nr; i++) {
		if (!m[i].cfa)
			return true;
	}
	if (!s->nr)
		return true;
	s->plain.outer_cfa = m[s->nr - 1].cfa;
	s->plain.nodes = (uint32_t)lt->nodes.len;
	for (uint32_t i = s->nr; i-- > 0;) {
		node.function = m[i].function;
		node.below = (uint64_t)s->plain.outer_cfa - m[i].cfa;
		node.outer = rt_intern_bytes(&lt->node_ids, &node, sizeof(node));
		node.caller_pc = m[i].pc;
		if (!node.outer || !rt_vec_push(&lt->nodes, node.outer))
			return false;
	}
	/* numbers that no node and no other stack has */
	while ((lt->nodes.len - s->plain.nodes) % LT_NODES) {
		if (!rt_vec_push(&lt->nodes, UINT32_MAX - (uint32_t)(s - lt->stacks.data)))
			return false;
	}
	s->plain.nr = (uint16_t)s->nr;
	s->plain.cut = s->cut;
	return true;
}

static bool name_stack(struct rt_lifetime *lt, struct lt_stack *s, uint64_t time_ns)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		if (!name_machine(lt, s->first + i, s->pid, time_ns, i == 0))
			return false;
	}
	s->named = true;
	return name_nodes(lt, s);
}

bool lt_stack_named(struct rt_lifetime *lt, uint32_t stack, uint64_t time_ns)
{
	struct lt_stack *s = &lt->stacks.data[stack - 1];

	return s->named || name_stack(lt, s, time_ns);
}

uint32_t lt_callback(struct rt_lifetime *lt, const struct lt_event *e)
{
	const struct lt_use *use = &lt->uses.data[e->use];
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	const uint32_t last = use->up < LT_JUMPED ? use->up : use->machine; /* LT_GONE has no frame to look at */
	uint64_t callee = 0;
	uint32_t stub;

	for (uint32_t i = use->machine; s && lt->namer->callback && i <= last && i < s->nr && !callee; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];
		bool given = false;

		if (!m->is_site || i)
			callee = lt->namer->callback(lt->namer, s->pid, e->time_ns, m->pc, &given);
		/* what a maker, or a lookup, was given is something else */
		if (given && (e->op == RT_OP_NEW || i > use->machine))
			callee = 0;
	}
	return callee_src(lt, s ? s->pid : 0, e->time_ns, callee, &stub);
}

const char *lt_src_text(const struct rt_lifetime *lt, uint32_t src)
{
	const char *name = lt_src(lt, src)->frame.function;

	return name ? name : "";
}
