/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sites by number: whose business an operation is, by the stack in which it was done. What helps with it (the type's
 * own functions, wrappers) is left out, and what takes a reference for its callers has these on the site's path. A site
 * is found once per (stack, point) and remembered: the hot path only looks it up.
 */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/words.h"
#include "lifetime/site.h"
#include "lifetime/state.h"

enum { LOOK_AHEAD = 3 };

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
 * The function is the one that runs in the frame within machine frame i, or the API: it has not gone. Where the point
 * is a place inside of the innermost frame, that frame calls nothing: a call that stands just before the place is over.
 */
static bool is_there(const struct rt_lifetime *lt, const struct lt_stack *s, const struct lt_point *point, uint32_t i,
		     uint32_t src)
{
	const struct lt_machine *m = &lt->machines.data[s->first + i];
	const struct lt_src *callee = lt_src(lt, src), *runs;

	if (!i)
		return (point->flags & RT_EV_INLINE) ||
		       is_point(callee, point, rt_intern_text(&lt->names, point->name));
	if (!m[-1].srcs)
		return true;
	runs = lt_src(lt, lt->stack_srcs.data[m[-1].src + m[-1].srcs - 1]);
	return !runs->name || runs->name == callee->name || runs->frame.entry == callee->frame.entry;
}

/*
 * Who was called at machine frame i and has no frame, as it jumped on, to the function of the next inner frame or to
 * the API: as it stood there, with what is inlined, where that is known. Where it jumped to yet another one, that one
 * did so, too.
 */
static void add_jumpers(const struct rt_lifetime *lt, const struct lt_stack *s, const struct lt_point *point,
			uint32_t i, struct flat *ret)
{
	const struct lt_machine *m = &lt->machines.data[s->first + i];
	const uint32_t *behind = &lt->stack_srcs.data[m->src + m->srcs];

	if (!m->callee || is_there(lt, s, point, i, m->callee))
		return;
	/* what frees anything says nothing of what it frees */
	if (behind[LT_BEHIND_NEXT] && !lt_point_looks(point) && !is_there(lt, s, point, i, behind[LT_BEHIND_NEXT]))
		flat_add(ret, behind[LT_BEHIND_NEXT], LT_PLACE_CALLED(i));
	for (uint32_t j = 0; j < behind[LT_BEHIND_LEFT]; j++)
		flat_add(ret, behind[LT_BEHIND_LEFT_AT + j], LT_PLACE_CALLED(i));
	if (!behind[LT_BEHIND_LEFT])
		flat_add(ret, m->callee, LT_PLACE_CALLED(i));
}

static void flatten(const struct rt_lifetime *lt, const struct lt_stack *s, const struct lt_point *point,
		    struct flat *ret)
{
	ret->nr = 0;
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		add_jumpers(lt, s, point, i, ret);
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

/* the get of another type: who takes one of those takes what that takes along, "up_ref(struct any *)" of tables */
static bool is_get_of_another(const struct rt_lifetime *lt, const struct lt_point *point, const struct lt_src *src)
{
	for (size_t i = 0; point->op == RT_OP_GET && src->name && i < lt->types.len; i++) {
		const uint64_t *api = rt_map_get(&lt->types.data[i].api, rt_key_make(src->name, 0));

		if (api && (*api & LT_API_GETS))
			return true;
	}
	return false;
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
				 does_alike(lt, point, lt_src(lt, flat->src[at])) ||
				 is_get_of_another(lt, point, lt_src(lt, flat->src[at]))))
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
 * Function number at, or the one that called it, returns a void *, and so do those further out, up to one that is seen
 * to hand out such objects: what they pass on is what that returns.
 */
static bool hands_further(const struct rt_lifetime *lt, const struct lt_type *type, const struct flat *flat,
			  unsigned at)
{
	unsigned i = at + !rt_returns_anything(lt_src(lt, flat->src[at])->frame.returns);
	const unsigned first = i;

	while (i < flat->nr && rt_returns_anything(lt_src(lt, flat->src[i])->frame.returns))
		i++;
	return i > first && i < flat->nr && (lt_is_api(lt, type, lt_src(lt, flat->src[i])) & LT_API_HANDS);
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

	if (!lt_stack_named(lt, use->stack, time_ns))
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
		    (!hands_up(lt, type, lt_src(lt, flat.src[at])) && !hands_up_inlined(lt, type, &flat, at) &&
		     !hands_further(lt, type, &flat, at)))
			break;
		at++;
	}
	use->site = lt_site_make(lt, &site);
	use->function = lt_site_function(lt, use->site);
	return use->site != 0;
}

/* the use of this key; *ret_made: it is new, and nothing is in it. UINT32_MAX: out of memory */
static uint32_t use_of(struct rt_lifetime *lt, struct rt_key key, bool *ret_made)
{
	uint64_t *index = rt_map_put(&lt->use_by_key, key, ret_made);

	if (!index)
		return UINT32_MAX;
	if (!*ret_made)
		return (uint32_t)*index;
	if (!rt_vec_add(&lt->uses)) {
		rt_map_remove(&lt->use_by_key, key, NULL);
		return UINT32_MAX;
	}
	*index = lt->uses.len - 1;
	return (uint32_t)*index;
}

uint32_t lt_use_find(struct rt_lifetime *lt, uint32_t stack, uint32_t point, uint32_t pid, uint64_t time_ns)
{
	bool made;
	const uint32_t id = use_of(lt, rt_key_make(stack, point), &made);

	if (id == UINT32_MAX || !made)
		return id;
	lt->uses.data[id] = (struct lt_use){ .stack = stack, .point = point };
	return stack && !use_fill(lt, &lt->uses.data[id], time_ns) ? UINT32_MAX : id;
}

uint32_t lt_use_instead(struct rt_lifetime *lt, uint32_t use, uint32_t src)
{
	const struct lt_use was = lt->uses.data[use];
	const struct lt_site site = { { src }, 1 };
	bool made;
	const uint32_t id = use_of(lt, rt_key_make((uint64_t)src << 32 | was.stack, was.point), &made);

	if (id == UINT32_MAX || !made)
		return id;
	lt->uses.data[id] = (struct lt_use){ .stack = was.stack,
					     .point = was.point,
					     .site = lt_site_make(lt, &site),
					     .function = lt_src(lt, src)->function,
					     .jumped = was.jumped,
					     .machine = was.machine,
					     .up = was.machine };
	return lt->uses.data[id].site ? id : UINT32_MAX;
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
	return m->callee || (m->srcs && lt->stack_srcs.data[m->src + m->srcs + LT_BEHIND_STUB] == point->name);
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

const char *lt_function_name(const struct rt_lifetime *lt, uint32_t site, unsigned level)
{
	const struct lt_site *s = lt_site(lt, site);

	return level < s->nr ? lt_src_text(lt, s->src[level]) : "";
}

bool lt_in_stack(const struct rt_lifetime *lt, uint32_t stack, uint32_t function, const struct lt_type *type)
{
	const struct lt_stack *s = &lt->stacks.data[stack - 1];

	for (uint32_t i = 0; i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		for (uint32_t k = 0; k < m->srcs; k++) {
			const struct lt_src *src = lt_src(lt, lt->stack_srcs.data[m->src + k]);

			if (type ? lt_is_api(lt, type, src) != 0 : src->function == function)
				return true;
		}
	}
	return false;
}
