/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames, stacks and sites by number.
 *
 * A wire stack holds pcs of one process. The namer turns each into source
 * functions; one (function, line) has one number for all processes, so that
 * shapes of a parent and its children are comparable. A site is found once
 * per (stack, point) and remembered: the hot path only looks it up.
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

/* what stands in stack_srcs behind the source frames of a machine frame */
enum { CALLEE, STUB, LEFT, LEFT_AT };

/*
 * How many source frames there are at the place that the callee leaves by, if it does so by one jump; they are added to
 * stack_srcs behind their number. false: out of memory.
 */
static bool name_left(struct rt_lifetime *lt, uint32_t src, uint32_t pid, uint64_t time_ns, uint64_t callee)
{
	const uint64_t at = src && lt->namer->leaves ? lt->namer->leaves(lt->namer, pid, time_ns, callee) : 0;
	struct rt_frame frames[INLINE_MAX];
	size_t n = at ? lt->namer->name(lt->namer, pid, time_ns, at, false, frames, INLINE_MAX) : 0;
	uint32_t whole = n ? lt_src_make(lt, &frames[n - 1]) : 0;

	if (!whole || lt_src(lt, whole)->function != lt_src(lt, src)->function)
		n = 0;
	if (!rt_vec_push(&lt->stack_srcs, (uint32_t)n))
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
		m->callee = lt->stack_srcs.data[m->src + m->srcs + CALLEE];
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

struct flat {
	uint32_t src[RT_STACK_MAX * 2];
	uint16_t place[RT_STACK_MAX * 2]; /* as of lt_use_levels() */
	unsigned nr;
};

static void flat_add(struct flat *flat, uint32_t src, uint32_t place)
{
	if (flat->nr == RT_STACK_MAX * 2)
		return;
	flat->src[flat->nr] = src;
	flat->place[flat->nr++] = (uint16_t)place;
}

/* The machine frame that it stands in, or LT_JUMPED, LT_GONE. */
static uint8_t flat_machine(const struct flat *flat, unsigned i)
{
	uint32_t machine = flat->place[i] / 2;

	if (flat->place[i] == LT_PLACE(machine))
		return (uint8_t)machine;
	return machine ? LT_GONE : LT_JUMPED;
}

/* the API function itself, by address or by one of its names */
static bool is_point(const struct lt_src *src, const struct lt_point *point, const char *name)
{
	return src->name == point->name || src->frame.entry == point->function ||
	       (src->frame.linkage && !strcmp(src->frame.linkage, name));
}

/*
 * The function that was called at machine frame i and has no frame: it jumped to
 * the function of the next inner frame, or to the API. 0: none. Where the point is a
 * place inside of the innermost frame, that frame calls nothing: a call that stands
 * just before the place is over.
 */
static uint32_t jumper(const struct rt_lifetime *lt, const struct lt_stack *s, const struct lt_point *point, uint32_t i)
{
	const struct lt_machine *m = &lt->machines.data[s->first + i];
	const struct lt_src *callee = lt_src(lt, m->callee), *runs;

	if (!m->callee || (!i && (point->flags & RT_EV_INLINE)))
		return 0;
	if (!i)
		return is_point(callee, point, rt_intern_text(&lt->names, point->name)) ? 0 : m->callee;
	if (!m[-1].srcs)
		return 0;
	runs = lt_src(lt, lt->stack_srcs.data[m[-1].src + m[-1].srcs - 1]);
	return !runs->name || runs->name == callee->name || runs->frame.entry == callee->frame.entry ? 0 : m->callee;
}

/* who was called at machine frame i and jumped on: as it stood there, with what is inlined, where that is known */
static void add_jumper(const struct rt_lifetime *lt, const struct lt_machine *m, uint32_t jumped, uint32_t i,
		       struct flat *ret)
{
	const uint32_t *behind = &lt->stack_srcs.data[m->src + m->srcs];

	for (uint32_t j = 0; j < behind[LEFT]; j++)
		flat_add(ret, behind[LEFT_AT + j], LT_PLACE_CALLED(i));
	if (!behind[LEFT])
		flat_add(ret, jumped, LT_PLACE_CALLED(i));
}

static void flatten(const struct rt_lifetime *lt, const struct lt_stack *s, const struct lt_point *point,
		    struct flat *ret)
{
	ret->nr = 0;
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];
		uint32_t jumped = jumper(lt, s, point, i);

		if (jumped)
			add_jumper(lt, m, jumped, i, ret);
		for (uint32_t j = 0; j < m->srcs; j++)
			flat_add(ret, lt->stack_srcs.data[m->src + j], LT_PLACE(i));
	}
}

/* Where an inlined API function is over: what lies further in, in the same frame, is inlined into it. */
static unsigned inlined_end(const struct rt_lifetime *lt, const struct lt_point *point, const struct flat *flat)
{
	const char *name = rt_intern_text(&lt->names, point->name);
	unsigned end = 0;

	for (unsigned i = 0; (point->flags & RT_EV_INLINE) && i < flat->nr && !flat_machine(flat, i); i++) {
		const struct lt_src *src = lt_src(lt, flat->src[i]);

		if (src->name == point->name || (src->frame.linkage && !strcmp(src->frame.linkage, name)))
			end = i + 1;
	}
	return end;
}

/* "obj_put_locked" of "obj_put", "obj_put0" */
static bool is_kind_of(const char *name, const char *api)
{
	size_t n = strlen(api);

	while (n && isdigit((unsigned char)api[n - 1]))
		n--;
	return n && !strncmp(name, api, n) && name[n] == '_';
}

/*
 * "static inline T *t_ref(T *t) { base_ref(&t->base); ... }" of a header does for who calls it what base_ref() does,
 * and "static inline void t_put_all(T *t) { t_put0(t, 1); }" what t_put0() does.
 */
static bool does_alike(const struct rt_lifetime *lt, const struct lt_point *point, const struct lt_src *src)
{
	const char *file = src->frame.file, *end = file ? strrchr(file, '.') : NULL,
		   *api = rt_intern_text(&lt->names, point->name);

	return (point->op == RT_OP_GET || point->op == RT_OP_PUT) && src->frame.inlined && src->name && end &&
	       end[1] == 'h' && (rt_words_same_end(src->frame.function, api) || is_kind_of(src->frame.function, api));
}

/*
 * First frame that is not API. Frames below a constructor (for new) or a
 * finder are its helpers, if it is near; further out only API that follows API
 * is left out: a deeper look would swallow callers that a wrapper calls back.
 * A constructor that gets or puts does so on its own account.
 */
static unsigned skip_api(const struct rt_lifetime *lt, const struct lt_type *type, const struct lt_point *point,
			 const struct flat *flat)
{
	unsigned makes = LT_API_FINDS | (point->op == RT_OP_NEW ? LT_API_NEW : 0), all = LT_API | makes;
	unsigned at = inlined_end(lt, point, flat);

	for (unsigned i = at; i < flat->nr && i <= at + LOOK_AHEAD; i++) {
		if (lt_is_api(lt, type, lt_src(lt, flat->src[i])) & makes)
			at = i + 1;
	}
	while (at < flat->nr && ((lt_is_api(lt, type, lt_src(lt, flat->src[at])) & all) ||
				 does_alike(lt, point, lt_src(lt, flat->src[at]))))
		at++;
	return at < flat->nr ? at : flat->nr ? flat->nr - 1 : 0;
}

static bool word_is(const char *s, size_t len, const char *name)
{
	size_t n = strlen(name);

	return (len == n && !memcmp(s, name, n)) || (len == n + 2 && !memcmp(s, name, n) && !memcmp(s + n, "_t", 2));
}

/* A structure's tag is mostly its typedef's name, or that with a '_' before it: struct _GObject is a GObject. */
static bool is_structure(const char *s, size_t len, const char *name)
{
	size_t under = len ? strspn(s, "_") : 0;

	under = under < len ? under : len;
	return word_is(s + under, len - under, name + strspn(name, "_"));
}

/* s, of so many bytes, is "struct obj *" of type obj */
static bool is_pointer_to(const struct lt_type *type, const char *s, size_t len)
{
	const char *end = s + len, *star;

	while (!strncmp(s, "const ", 6) || !strncmp(s, "struct ", 7) || !strncmp(s, "class ", 6))
		s = strchr(s, ' ') + 1;
	star = s < end ? memchr(s, '*', (size_t)(end - s)) : NULL;
	if (!star || memchr(star + 1, '*', (size_t)(end - star - 1)))
		return false;
	while (star > s && star[-1] == ' ')
		star--;
	return is_structure(s, (size_t)(star - s), type->name) ||
	       (type->structure && is_structure(s, (size_t)(star - s), type->structure));
}

bool lt_returns_object(const struct lt_type *type, const struct rt_frame *f)
{
	for (const char *s = f->returns; s && *s;) {
		size_t len = strcspn(s, "|");

		if (is_pointer_to(type, s, len))
			return true;
		s += len + (s[len] == '|');
	}
	return false;
}

bool lt_returns_stranger(const struct rt_lifetime *lt, const struct rt_frame *f)
{
	bool pointer = f->returns && strchr(f->returns, '*') && !strstr(f->returns, "char");

	for (size_t i = 0; pointer && i < lt->types.len; i++)
		pointer = !lt_returns_object(&lt->types.data[i], f);
	return pointer;
}

bool lt_starts_with(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t function)
{
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;

	for (uint32_t i = s && !s->cut ? s->nr : 0; i-- > 0;) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];
		const uint32_t *srcs = &lt->stack_srcs.data[m->src];

		if (m->srcs && !lt_is_c_library(lt_src(lt, srcs[0])))
			return lt_src(lt, srcs[m->srcs - 1])->function == function;
	}
	return false;
}

/* a function without a name whose results are looked at */
static bool is_watched(const struct rt_lifetime *lt, const struct lt_type *type, const struct lt_src *src)
{
	for (size_t i = 0; !src->name && i < lt->points.len; i++) {
		const struct lt_point *p = &lt->points.data[i];

		if (&lt->types.data[p->type] == type && lt_point_hands(p) && lt_point_is(p, src))
			return true;
	}
	return false;
}

static bool hands_up(const struct rt_lifetime *lt, const struct lt_type *type, const struct lt_src *src)
{
	if (is_watched(lt, type, src))
		return true;
	return lt_returns_object(type, &src->frame) || (lt_is_api(lt, type, src) & (LT_API_NEW | LT_API_HANDS));
}

/* function number at returns a void * and is inlined into one that hands up: that may be what this returns */
static bool hands_up_inlined(const struct rt_lifetime *lt, const struct lt_type *type, const struct flat *flat,
			     unsigned at)
{
	unsigned own = at;

	while (own + 1 < flat->nr && flat_machine(flat, own + 1) == flat_machine(flat, at))
		own++;
	return own > at && rt_returns_anything(lt_src(lt, flat->src[at])->frame.returns) &&
	       hands_up(lt, type, lt_src(lt, flat->src[own]));
}

/*
 * An init function of a derived type: it was given the memory, as what it calls to begin the object was, by a
 * constructor, which hands the object up.
 */
static bool begins_for_caller(const struct rt_lifetime *lt, const struct lt_type *type, const struct lt_point *point,
			      const struct flat *flat, unsigned at)
{
	return point->op == RT_OP_NEW && (point->flags & RT_EV_FIRST) && at + 1 < flat->nr &&
	       !hands_up(lt, type, lt_src(lt, flat->src[at])) && hands_up(lt, type, lt_src(lt, flat->src[at + 1]));
}

uint32_t lt_site_make(struct rt_lifetime *lt, const struct lt_site *site)
{
	size_t known = lt->sites.len;
	uint32_t id = rt_intern_bytes(&lt->site_ids, site, sizeof(*site));

	if (id > known && !rt_vec_push(&lt->sites, *site))
		return 0;
	return id;
}

static uint8_t hands_at(const struct rt_lifetime *lt, const struct lt_stack *s, uint64_t time_ns, uint32_t machine)
{
	const struct lt_machine *m = machine < s->nr ? &lt->machines.data[s->first + machine] : NULL;

	if (!m || (m->is_site && !machine) || !lt->namer->hands)
		return 0;
	return lt->namer->hands(lt->namer, s->pid, time_ns, m->pc);
}

/*
 * Who frees what it is given without a look into it is as good as the free() itself: what the block was its caller
 * knows.
 */
static unsigned skip_blind(const struct rt_lifetime *lt, const struct lt_stack *s, uint64_t time_ns,
			   const struct flat *flat, unsigned at)
{
	while (at + 1 < flat->nr) {
		uint32_t machine = flat->place[at] / 2;
		bool jumped = flat->place[at] != LT_PLACE(machine);

		if (!(hands_at(lt, s, time_ns, machine) & (jumped ? RT_HANDS_JUMPED : RT_HANDS_BLIND)))
			break;
		while (at + 1 < flat->nr && flat->place[at + 1] == flat->place[at])
			at++;
		at++;
	}
	return at < flat->nr ? at : flat->nr - 1;
}

static bool use_fill(struct rt_lifetime *lt, struct lt_use *use, uint64_t time_ns)
{
	const struct lt_point *point = &lt->points.data[use->point];
	const struct lt_type *type = &lt->types.data[point->type];
	struct lt_stack *s = &lt->stacks.data[use->stack - 1];
	struct lt_site site = { { 0 }, 0 };
	bool takes = point->op != RT_OP_PUT && point->op != RT_OP_FREE && point->op != RT_OP_USE;
	struct flat flat;
	unsigned at;

	if (!s->named && !name_stack(lt, s, time_ns))
		return false;
	flatten(lt, s, point, &flat);
	if (!flat.nr)
		return true;
	for (unsigned i = 0; i < flat.nr && flat_machine(&flat, i) == LT_JUMPED; i++)
		use->jumped = flat.src[i];
	at = skip_api(lt, type, point, &flat);
	if (begins_for_caller(lt, type, point, &flat, at))
		at++;
	if (lt_point_looks(point))
		at = skip_blind(lt, s, time_ns, &flat, at);
	use->machine = flat_machine(&flat, at);
	for (;;) {
		site.src[site.nr++] = flat.src[at];
		use->up = flat_machine(&flat, at);
		if (!takes || site.nr == LT_PATH || at + 1 == flat.nr ||
		    (!hands_up(lt, type, lt_src(lt, flat.src[at])) && !hands_up_inlined(lt, type, &flat, at)))
			break;
		at++;
	}
	use->site = lt_site_make(lt, &site);
	use->function = lt_site_function(lt, use->site);
	return use->site != 0;
}

uint32_t lt_use_find(struct rt_lifetime *lt, uint32_t stack, uint32_t point, uint32_t pid, uint64_t time_ns)
{
	bool made;
	uint64_t *index = rt_map_put(&lt->use_by_key, rt_key_make(stack, point), &made);
	struct lt_use *use;

	if (!index)
		return UINT32_MAX;
	if (!made)
		return (uint32_t)*index;
	use = rt_vec_add(&lt->uses);
	if (!use) {
		rt_map_remove(&lt->use_by_key, rt_key_make(stack, point), NULL);
		return UINT32_MAX;
	}
	*index = lt->uses.len - 1;
	*use = (struct lt_use){ .stack = stack, .point = point };
	if (stack && !use_fill(lt, use, time_ns))
		return UINT32_MAX;
	return (uint32_t)*index;
}

size_t lt_use_frames(const struct rt_lifetime *lt, const struct lt_use *use, struct rt_frame *ret, size_t max)
{
	struct flat flat = { .nr = 0 };

	if (use->stack)
		flatten(lt, &lt->stacks.data[use->stack - 1], &lt->points.data[use->point], &flat);
	for (size_t i = 0; i < flat.nr && i < max; i++)
		ret[i] = lt_src(lt, flat.src[i])->frame;
	return flat.nr < max ? flat.nr : max;
}

bool lt_use_called(const struct rt_lifetime *lt, const struct lt_use *use)
{
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;

	const struct lt_point *point = &lt->points.data[use->point];
	const struct lt_machine *m;

	if (!s || !s->nr || use->jumped || (point->flags & RT_EV_INLINE))
		return false;
	m = &lt->machines.data[s->first];
	return m->callee || (m->srcs && lt->stack_srcs.data[m->src + m->srcs + STUB] == point->name);
}

uint8_t lt_hands(const struct rt_lifetime *lt, const struct lt_event *e, uint32_t machine)
{
	const struct lt_use *use = &lt->uses.data[e->use];
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	const struct lt_machine *m = s && machine < s->nr ? &lt->machines.data[s->first + machine] : NULL;
	uint8_t hands;

	if (!m)
		return 0;
	hands = hands_at(lt, s, e->time_ns, machine);
	/* what is inlined there has the call, and no result of its own */
	return m->srcs == 1 ? hands : hands & (RT_HANDS_TAKEN | RT_HANDS_AGAIN);
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

unsigned lt_use_levels(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t src[], uint16_t place[],
		       unsigned max)
{
	uint32_t first = lt_site(lt, use->site)->src[0];
	unsigned from = 0, nr = 0;
	struct flat flat;

	if (!use->stack || !first)
		return 0;
	flatten(lt, &lt->stacks.data[use->stack - 1], &lt->points.data[use->point], &flat);
	while (from < flat.nr && (flat.src[from] != first || flat_machine(&flat, from) != use->machine))
		from++;
	for (; from < flat.nr && nr < max; from++) {
		src[nr] = flat.src[from];
		place[nr++] = flat.place[from];
	}
	return nr;
}

unsigned lt_use_depth(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t function)
{
	struct flat flat = { .nr = 0 };

	if (use->stack)
		flatten(lt, &lt->stacks.data[use->stack - 1], &lt->points.data[use->point], &flat);
	for (unsigned i = 0; i < flat.nr; i++) {
		if (lt_src(lt, flat.src[i])->function == function)
			return i;
	}
	return UINT_MAX;
}

bool lt_puts_itself(const struct rt_lifetime *lt, uint32_t function, uint32_t type)
{
	for (size_t i = 0; i < lt->uses.len; i++) {
		const struct lt_use *use = &lt->uses.data[i];
		const struct lt_point *p = &lt->points.data[use->point];

		if (use->events && p->type == type && p->op == RT_OP_PUT && lt_site_function(lt, use->site) == function)
			return true;
	}
	return false;
}

bool lt_use_within_call(const struct rt_lifetime *lt, const struct lt_use *use, const struct lt_use *of,
			unsigned frames)
{
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	const struct lt_stack *t = of->stack ? &lt->stacks.data[of->stack - 1] : NULL;

	return s && t && t->nr && (!of->machine || of->machine == LT_JUMPED) && use->machine + frames < s->nr &&
	       lt->machines.data[s->first + use->machine + frames].pc == lt->machines.data[t->first].pc;
}

bool lt_use_inlined(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t function)
{
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	const struct lt_machine *m = s && use->machine < s->nr ? &lt->machines.data[s->first + use->machine] : NULL;
	bool inside = false;

	for (uint32_t i = 0; m && i < m->srcs; i++) {
		uint32_t src = lt->stack_srcs.data[m->src + i];

		if (inside && lt_src(lt, src)->function == function)
			return true;
		inside |= src == lt_site(lt, use->site)->src[0];
	}
	return false;
}

bool lt_known_make(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t point, struct lt_known *ret)
{
	const struct lt_point *p = &lt->points.data[point];
	uint32_t stack = lt_stack_find(lt, e->head.pid, e->stack);
	const struct lt_use *use;

	*ret = (struct lt_known){ e->head.pid, e->stack, e->point };
	ret->use = lt_use_find(lt, stack, point, e->head.pid, e->head.time_ns);
	if (ret->use == UINT32_MAX)
		return false;
	/* what was not found may be told later */
	if (e->stack && !stack) {
		lt->inconsistent++;
		ret->wire_point = 0;
	}
	use = &lt->uses.data[ret->use];
	ret->type = p->type;
	ret->machine = use->site ? use->machine : LT_GONE;
	ret->up = use->site ? use->up : LT_GONE;
	if (use->stack && !use->jumped)
		ret->plain = lt->stacks.data[use->stack - 1].plain;
	ret->slot = p->aux == RT_AUX_SLOT || p->aux == RT_AUX_BLOCK || p->aux == RT_AUX_STORED;
	ret->classed = p->aux == RT_AUX_CLASS;
	return true;
}

const struct lt_known *lt_known_find(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	struct lt_known *k = lt_known_place(lt, e), now;
	const struct lt_point *point = lt_point(lt, e->point);

	if (!point || !lt_known_make(lt, e, (uint32_t)(point - lt->points.data), &now))
		return NULL;
	*k = now;
	return k;
}

const char *lt_src_text(const struct rt_lifetime *lt, uint32_t src)
{
	const char *name = lt_src(lt, src)->frame.function;

	return name ? name : "";
}

const char *lt_function_name(const struct rt_lifetime *lt, uint32_t site, unsigned level)
{
	const struct lt_site *s = lt_site(lt, site);

	return level < s->nr ? lt_src_text(lt, s->src[level]) : "";
}
